// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gst_fake_model.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>
#include <thread>

#include "gst/support/vart_runner.h"

namespace vartml::test {
namespace {

// Runners of a model that was reset keep it.
std::shared_ptr<FakeModel>& holder() {
    static std::shared_ptr<FakeModel> model = std::make_shared<FakeModel>();
    return model;
}

// Calls `read` with the bytes of a tensor.
template <typename Read>
void with_bytes(const vart::NpuTensor& tensor, Read&& read) {
    const size_t size = tensor.get_info().size_in_bytes;
    if (tensor.get_memory_type() != vart::MemoryType::DMA_FD)
        return read(static_cast<const uint8_t*>(tensor.get_virtual_address()), size);
    const int fd = *static_cast<const int*>(tensor.get_buffer());
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) std::abort();
    read(static_cast<const uint8_t*>(mapped), size);
    munmap(mapped, size);
}

vart::NpuTensorInfo vart_info(const std::string& name, const vartml::TensorView& view,
                              vart::TensorDirection direction, vart::TensorType type) {
    vart::NpuTensorInfo info;
    info.name = name;
    info.data_type = vart::DataType(int(view.data_type));
    info.direction = direction;
    info.tensor_type = type;
    info.memory_layout = vart::MemoryLayout(int(view.layout));
    info.memory_layout_order = view.order;
    info.shape = view.shape;
    info.strides = view.strides;
    info.size = view.size;
    info.size_in_bytes = view.size_bytes;
    return info;
}

class FakeRunner : public vart::Runner {
public:
    FakeRunner() : vart::Runner("", {}), model_(holder()), random_(model_->shuffle_seed) {
        using enum vart::TensorType;
        using enum vart::TensorDirection;
        const auto in = fake_input(), out = fake_output();
        infos_[0][0] = {vart_info(in.name, in.cpu, INPUT, CPU)};
        infos_[0][1] = {vart_info(in.name, *in.hw, INPUT, HW)};
        if (in.hw->quantisation) quant_.scale = in.hw->quantisation->scale;
        if (model_->second_input) {
            const auto size = fake_second_input();
            infos_[0][0].push_back(vart_info(size.name, size.cpu, INPUT, CPU));
            infos_[0][1].push_back(vart_info(size.name, *size.hw, INPUT, HW));
        }
        infos_[1][0] = {vart_info(out.name, out.cpu, OUTPUT, CPU)};
        if (out.hw) infos_[1][1] = {vart_info(out.name, *out.hw, OUTPUT, HW)};
        ++model_->live_runners;
        worker_ = std::thread([this] { work(); });
    }
    ~FakeRunner() override {
        {
            const std::lock_guard lock(model_->mutex);
            stop_ = true;
            model_->changed.notify_all();
        }
        worker_.join();
        const std::lock_guard lock(model_->mutex);
        --model_->live_runners;
        model_->changed.notify_all();
    }

    const std::vector<vart::NpuTensorInfo>& get_tensors_info(vart::TensorDirection d,
                                                             vart::TensorType t) const override {
        return infos_[int(d)][int(t)];
    }
    const vart::NpuTensorInfo& get_tensor_info_by_name(const std::string& name,
                                                       vart::TensorType t) const override {
        for (const auto& side : infos_)
            for (const vart::NpuTensorInfo& info : side[int(t)])
                if (info.name == name) return info;
        throw std::runtime_error("no tensor " + name);
    }
    const vart::QuantParameters& get_quant_parameters(const std::string&) const override {
        return quant_;
    }
    size_t get_num_input_tensors() const override { return infos_[0][0].size(); }
    size_t get_num_output_tensors() const override { return 1; }
    size_t get_batch_size() const override { return model_->batch; }
    size_t get_batch_size(vart::TensorDirection) const override { return model_->batch; }
    std::any get_property(const std::string& key) const override {
        if (key == "backend" && model_->on_host) return std::string("softnpu");
        throw std::invalid_argument("no property " + key);
    }

    vart::StatusCode execute(const std::vector<std::vector<vart::NpuTensor>>& inputs,
                             std::vector<std::vector<vart::NpuTensor>>& outputs) noexcept override {
        std::unique_lock lock(model_->mutex);
        Run run = take(inputs, outputs);
        const vart::StatusCode status = status_of(run);
        lock.unlock();
        perform(run);
        return status;
    }
    // The warm-up.
    vart::JobHandle execute_async(const std::vector<std::vector<vart::NpuTensor>>&,
                                  std::vector<std::vector<vart::NpuTensor>>&) noexcept override {
        return {vart::StatusCode::SUCCESS, 0};
    }
    vart::StatusCode wait(const vart::JobHandle&, std::chrono::milliseconds) noexcept override {
        // Also how the element lets go of finished runs, which takes no time.
        unsigned duration_ms;
        {
            const std::lock_guard lock(model_->mutex);
            duration_ms = model_->submitted == 0 ? model_->warm_up_ms : 0;
        }
        if (duration_ms) std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms));
        return vart::StatusCode::SUCCESS;
    }
    vart::JobHandle execute_async(const std::vector<std::vector<vart::NpuTensor>>& inputs,
                                  std::vector<std::vector<vart::NpuTensor>>& outputs,
                                  ExecuteAsyncCallback callback) noexcept override {
        FakeModel& model = *model_;
        const std::lock_guard lock(model.mutex);
        if (model.refusals > 0) {
            --model.refusals;
            return {vart::StatusCode::RESOURCE_UNAVAILABLE, 0};
        }
        Run run = take(inputs, outputs);
        run.callback = std::move(callback);
        pending_.push_back(std::move(run));
        model.changed.notify_all();
        return {vart::StatusCode::SUCCESS, model.submitted};
    }

    vart::NpuTensor allocate_npu_tensor(const vart::NpuTensorInfo& info) const override {
        void* memory = std::aligned_alloc(64, (info.size_in_bytes + 63) / 64 * 64);
        std::memset(memory, 0, info.size_in_bytes);
        {
            const std::lock_guard lock(model_->mutex);
            model_->tensors.emplace_back(memory, std::free);
        }
        return vart::NpuTensor(info, memory, vart::MemoryType::USER_POINTER_CMA);
    }
    vart::NpuTensor allocate_npu_tensor(const vart::NpuTensorInfo& info, uint32_t) const override {
        return allocate_npu_tensor(info);
    }
    vart::NpuTensor allocate_sub_tensor(const vart::NpuTensor&, const vart::NpuTensorInfo&,
                                        size_t) const override {
        throw std::invalid_argument("no sub-tensors");
    }

private:
    struct Element {
        vart::NpuTensor output;
        uint8_t first_byte;
    };
    struct Run {
        unsigned number = 0;
        std::vector<Element> elements;
        ExecuteAsyncCallback callback;
        bool refused = false;
    };

    // With the mutex: what the run reads.
    Run take(const std::vector<std::vector<vart::NpuTensor>>& inputs,
             const std::vector<std::vector<vart::NpuTensor>>& outputs) {
        FakeModel& model = *model_;
        Run run = {model.submitted++, {}, nullptr, false};
        for (size_t i = 0; i < inputs.size(); ++i) {
            const bool dma = inputs[i][0].get_memory_type() == vart::MemoryType::DMA_FD;
            run.refused = run.refused || (dma && model.refuses_imports);
            model.dma_inputs += dma;
            uint8_t first = 0;
            with_bytes(inputs[i][0], [&](const uint8_t* bytes, size_t size) {
                model.last_input.assign(bytes, bytes + size);
                first = bytes[0];
            });
            run.elements.push_back({outputs[i][0], first});
            if (inputs[i].size() > 1)
                std::memcpy(model.last_size, inputs[i][1].get_virtual_address(), sizeof(float) * 2);
        }
        model.fills.push_back(inputs.size());
        return run;
    }
    vart::StatusCode status_of(const Run& run) const {
        if (run.refused) return vart::StatusCode::INVALID_INPUT;
        return model_->failing.contains(run.number) ? vart::StatusCode::RUNTIME_ERROR
                                                    : vart::StatusCode::SUCCESS;
    }
    static void perform(Run& run) {
        for (size_t i = 0; i < run.elements.size(); ++i) {
            auto* scores = static_cast<float*>(run.elements[i].output.get_virtual_address());
            scores[0] = float(run.number);
            scores[1] = float(i);
            scores[2] = float(run.elements[i].first_byte);
            scores[3] = -1;
        }
    }

    void work() {
        FakeModel& model = *model_;
        std::unique_lock lock(model.mutex);
        for (;;) {
            model.changed.wait(lock,
                               [&] { return stop_ ? true : !model.hold && !pending_.empty(); });
            if (pending_.empty()) return;
            if (model.shuffle_seed && pending_.size() < 2) {
                // Give another run the chance to come; the last one of a stream does not wait for
                // ever.
                model.changed.wait_for(lock, std::chrono::milliseconds(1));
            }
            const size_t pick = model.shuffle_seed ? random_() % pending_.size() : 0;
            Run run = std::move(pending_[pick]);
            pending_.erase(pending_.begin() + std::ptrdiff_t(pick));
            if (model.lost.contains(run.number)) {
                lost_.push_back(std::move(run));
                continue;
            }
            const vart::StatusCode status = status_of(run);
            const unsigned run_ms = model.run_ms;
            lock.unlock();
            if (run_ms) std::this_thread::sleep_for(std::chrono::milliseconds(run_ms));
            perform(run);
            run.callback({status, run.number + 1});
            run = {};
            lock.lock();
            ++model.finished;
            model.changed.notify_all();
        }
    }

    const std::shared_ptr<FakeModel> model_;
    std::vector<vart::NpuTensorInfo> infos_[2][2];
    vart::QuantParameters quant_{1.0, 0, vart::RoundingMode::UNKNOWN};
    std::deque<Run> pending_;
    std::deque<Run> lost_;
    std::mt19937 random_;
    bool stop_ = false;
    std::thread worker_;
};

}  // namespace

FakeModel& fake_model() {
    return *holder();
}

void reset_fake_model() {
    holder() = std::make_shared<FakeModel>();
}

vartml::TensorInfo fake_input() {
    vartml::TensorInfo t;
    t.name = "images";
    switch (fake_model().input) {
        case FakeInput::floats:
            t.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, fake_height, fake_width});
            t.hw = hw_view(t.cpu, Layout::HCWNC4, DataType::bf16);
            break;
        case FakeInput::picture:
            t.cpu = make_view(DataType::uint8, Layout::NHWC, {1, fake_height, fake_width, 3});
            t.hw = t.cpu;
            t.picture = "rgb";
            break;
        case FakeInput::four_bytes:
            t.cpu = make_view(DataType::uint8, Layout::NCHW, {1, 3, fake_height, fake_width});
            t.hw = hw_view(t.cpu, Layout::HCWNC4, DataType::uint8);
            break;
        case FakeInput::codes:
            t.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, fake_height, fake_width});
            t.hw = hw_view(t.cpu, Layout::HCWNC4, DataType::int8);
            t.hw->quantisation = {1.0 / 64, 0};
            break;
        case FakeInput::permuted:
            t.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, fake_height, fake_width});
            t.hw = make_view(DataType::float32, Layout::GENERIC, {1, fake_width, fake_height, 3},
                             {0, 3, 2, 1});
            break;
    }
    return t;
}

vartml::TensorInfo fake_second_input() {
    vartml::TensorInfo t;
    t.name = "size";
    t.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 2}, {0, 1});
    t.hw = t.cpu;
    return t;
}

vartml::TensorInfo fake_output() {
    vartml::TensorInfo t;
    t.name = "scores";
    t.cpu = fake_model().table
                ? vartml::make_view(DataType::float32, Layout::GENERIC, {1, 1, 4}, {0, 1, 2})
                : vartml::make_view(DataType::float32, Layout::GENERIC, {1, 4}, {0, 1});
    if (fake_model().output_hw_view) t.hw = t.cpu;
    return t;
}

}  // namespace vartml::test

// In the place of the library's functions of these names.
namespace vartml {

Result<ModelDescription> open_model(const std::string& path) {
    const test::FakeModel& model = test::fake_model();
    if (!model.open) return model.open.error();
    ModelDescription d;
    d.path = path;
    d.format = "rai";
    d.name = "fake";
    d.signature = model.signature;
    d.device = "softnpu";
    d.actual_batch_size = d.desired_batch_size = model.batch;
    d.npu_operators = 10;
    d.cpu_operators = model.cpu_operators;
    d.first_cpu_operator = "TopK node 'topk_3' (unsupported-operator)";
    d.inputs = {test::fake_input()};
    if (model.second_input) d.inputs.push_back(test::fake_second_input());
    d.outputs = {test::fake_output()};
    d.modelinfo = model.modelinfo;
    return d;
}

Result<CompileResult> compile_onnx(const std::string& onnx_path, const CompileOptions& options) {
    test::FakeModel& model = test::fake_model();
    {
        const std::lock_guard lock(model.mutex);
        ++model.compiles;
        model.changed.notify_all();
    }
    if (options.progress) options.progress(50, "passes");
    while (model.compile_waits) {
        if (*options.cancel) return Error{ErrorCode::timeout, "cancelled"};
        std::this_thread::yield();
    }
    if (!model.compile) return model.compile.error();
    return CompileResult{onnx_path, false};
}

namespace {

Result<std::shared_ptr<vart::Runner>> create_fake(const std::string&, const gst::RunnerOptions&) {
    if (!test::fake_model().create) return test::fake_model().create.error();
    return std::shared_ptr<vart::Runner>(std::make_shared<test::FakeRunner>());
}
[[maybe_unused]] const bool in_place = (gst::create_runner = create_fake) != nullptr;

}  // namespace
}  // namespace vartml
