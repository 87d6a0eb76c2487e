// SPDX-License-Identifier: Apache-2.0
#include "tests/support/gst_fake_model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "gst/support/vart_runner.h"

namespace vartml::test {
namespace {

std::unique_ptr<FakeModel>& holder() {
    static std::unique_ptr<FakeModel> model = std::make_unique<FakeModel>();
    return model;
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
    FakeRunner() : vart::Runner("", {}), random_(fake_model().shuffle_seed) {
        using enum vart::TensorType;
        using enum vart::TensorDirection;
        const auto in = fake_input(), out = fake_output();
        infos_[0][0] = {vart_info(in.name, in.cpu, INPUT, CPU)};
        infos_[0][1] = {vart_info(in.name, *in.hw, INPUT, HW)};
        infos_[1][0] = {vart_info(out.name, out.cpu, OUTPUT, CPU)};
        if (out.hw) infos_[1][1] = {vart_info(out.name, *out.hw, OUTPUT, HW)};
        ++fake_model().live_runners;
        worker_ = std::thread([this] { work(); });
    }
    ~FakeRunner() override {
        {
            const std::lock_guard lock(fake_model().mutex);
            stop_ = true;
            fake_model().changed.notify_all();
        }
        worker_.join();
        for (void* memory : memory_) std::free(memory);
        --fake_model().live_runners;
    }

    const std::vector<vart::NpuTensorInfo>& get_tensors_info(vart::TensorDirection d,
                                                             vart::TensorType t) const override {
        return infos_[int(d)][int(t)];
    }
    const vart::NpuTensorInfo& get_tensor_info_by_name(const std::string&,
                                                       vart::TensorType t) const override {
        return infos_[0][int(t)][0];
    }
    const vart::QuantParameters& get_quant_parameters(const std::string&) const override {
        static const vart::QuantParameters none{1.0, 0, vart::RoundingMode::UNKNOWN};
        return none;
    }
    size_t get_num_input_tensors() const override { return 1; }
    size_t get_num_output_tensors() const override { return 1; }
    size_t get_batch_size() const override { return 1; }
    size_t get_batch_size(vart::TensorDirection) const override { return 1; }
    std::any get_property(const std::string& key) const override {
        throw std::invalid_argument("no property " + key);
    }

    vart::StatusCode execute(const std::vector<std::vector<vart::NpuTensor>>&,
                             std::vector<std::vector<vart::NpuTensor>>&) noexcept override {
        return vart::StatusCode::SUCCESS;  // the warm-up
    }
    vart::JobHandle execute_async(const std::vector<std::vector<vart::NpuTensor>>&,
                                  std::vector<std::vector<vart::NpuTensor>>&) noexcept override {
        return {vart::StatusCode::UNSUPPORTED, 0};
    }
    vart::StatusCode wait(const vart::JobHandle&, std::chrono::milliseconds) noexcept override {
        return vart::StatusCode::SUCCESS;
    }
    vart::JobHandle execute_async(const std::vector<std::vector<vart::NpuTensor>>& inputs,
                                  std::vector<std::vector<vart::NpuTensor>>& outputs,
                                  ExecuteAsyncCallback callback) noexcept override {
        FakeModel& model = fake_model();
        const std::lock_guard lock(model.mutex);
        if (model.refusals > 0) {
            --model.refusals;
            return {vart::StatusCode::RESOURCE_UNAVAILABLE, 0};
        }
        const auto* bytes = static_cast<const uint8_t*>(inputs[0][0].get_virtual_address());
        model.last_input.assign(bytes, bytes + inputs[0][0].get_info().size_in_bytes);
        pending_.push_back({model.submitted++, outputs[0][0], std::move(callback)});
        model.changed.notify_all();
        return {vart::StatusCode::SUCCESS, model.submitted};
    }

    vart::NpuTensor allocate_npu_tensor(const vart::NpuTensorInfo& info) const override {
        void* memory = std::aligned_alloc(64, (info.size_in_bytes + 63) / 64 * 64);
        std::memset(memory, 0, info.size_in_bytes);
        {
            const std::lock_guard lock(fake_model().mutex);
            memory_.push_back(memory);
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
    struct Run {
        unsigned number;
        vart::NpuTensor output;
        ExecuteAsyncCallback callback;
    };

    void work() {
        FakeModel& model = fake_model();
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
            const bool fails = model.failing.contains(run.number);
            lock.unlock();
            auto* scores = static_cast<float*>(run.output.get_virtual_address());
            scores[0] = float(run.number);
            scores[1] = scores[2] = scores[3] = -1;
            run.callback({fails ? vart::StatusCode::RUNTIME_ERROR : vart::StatusCode::SUCCESS,
                          run.number + 1});
            run = {};
            lock.lock();
            ++model.finished;
            model.changed.notify_all();
        }
    }

    std::vector<vart::NpuTensorInfo> infos_[2][2];
    mutable std::vector<void*> memory_;
    std::deque<Run> pending_;
    std::mt19937 random_;
    bool stop_ = false;
    std::thread worker_;
};

}  // namespace

FakeModel& fake_model() {
    return *holder();
}

void reset_fake_model() {
    holder() = std::make_unique<FakeModel>();
}

vartml::TensorInfo fake_input() {
    vartml::TensorInfo t;
    t.name = "images";
    t.cpu = vartml::make_view(DataType::float32, Layout::NCHW, {1, 3, fake_height, fake_width});
    t.hw = vartml::hw_view(t.cpu, Layout::HCWNC4, DataType::bf16);
    return t;
}

vartml::TensorInfo fake_output() {
    vartml::TensorInfo t;
    t.name = "scores";
    t.cpu = vartml::make_view(DataType::float32, Layout::GENERIC, {1, 4}, {0, 1});
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
    d.signature = "00112233445566778899aabbccddeeff";
    d.device = "softnpu";
    d.actual_batch_size = d.desired_batch_size = model.batch;
    d.npu_operators = 10;
    d.cpu_operators = model.cpu_operators;
    d.first_cpu_operator = "TopK node 'topk_3' (unsupported-operator)";
    d.inputs = {test::fake_input()};
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

namespace gst {

Result<std::shared_ptr<vart::Runner>> create_runner(const std::string&, const RunnerOptions&) {
    if (!test::fake_model().create) return test::fake_model().create.error();
    return std::shared_ptr<vart::Runner>(std::make_shared<test::FakeRunner>());
}

}  // namespace gst
}  // namespace vartml
