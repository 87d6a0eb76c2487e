// SPDX-License-Identifier: Apache-2.0
// The runner of the stand-in. Its one model means each channel of a picture: input `images`, fp32
// NCHW [1,3,H,W], in hardware int8 HCWNC4; output `means`, fp32 [1,3], in hardware int8. A compiled
// model is a directory whose vaiml_par_0/extent holds "H W", and then one word or none: "cpu" where
// a CPU partition stands at both ends, so that there are no HW views; "hangs" where the first run
// of all does not end, nor does its process; "stays" where each process that made a runner does not
// end.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include <vart/vart_runner_factory.hpp>

namespace vart {
namespace {

using Options = std::unordered_map<std::string, std::any>;

constexpr double scale = 0.5;  // of both tensors
constexpr uint32_t channels = 3, block = 4;

NpuTensorInfo make_info(const std::string& name, TensorDirection direction, TensorType type,
                        DataType data_type, MemoryLayout layout, std::vector<uint32_t> shape) {
    NpuTensorInfo info;
    info.name = name;
    info.direction = direction;
    info.tensor_type = type;
    info.data_type = data_type;
    info.memory_layout = layout;
    info.strides.resize(shape.size());
    info.size = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        info.strides[i] = static_cast<uint32_t>(info.size);
        info.size *= shape[i];
    }
    info.size_in_bytes = info.size * (data_type == DataType::FLOAT32 ? sizeof(float) : 1);
    if (layout == MemoryLayout::GENERIC)
        for (uint32_t i = 0; i < shape.size(); ++i) info.memory_layout_order.push_back(i);
    info.shape = std::move(shape);
    return info;
}

// given: VART ML architecture overview, "Configuration Options"; whatever else an application
// passes is a mistake of the application.
void check_options(const Options& options) {
    static const std::map<std::string, const std::type_info*> known = {
        {"input_tensor_type", &typeid(std::string)},
        {"output_tensor_type", &typeid(std::string)},
        {"skip_in_bo_sync", &typeid(bool)},
        {"skip_out_bo_sync", &typeid(bool)},
        {"cma_index", &typeid(int)},
        {"aie_columns_sharing", &typeid(bool)},
        {"start_column", &typeid(unsigned)},
        {"async_threadpool_depth", &typeid(unsigned)},
        {"max_concurrent_runs", &typeid(unsigned)},
        {"callback_order", &typeid(std::string)},
        {"log_level", &typeid(std::string)},
        {"debug", &typeid(bool)},
        {"config_json", &typeid(std::string)},
        {"cache_path", &typeid(std::string)},
        {"ai_analyzer_profiling", &typeid(bool)},
    };
    for (const auto& [key, value] : options) {
        const auto row = known.find(key);
        if (row == known.end()) throw std::invalid_argument("unknown option " + key);
        if (*row->second != value.type()) throw std::invalid_argument("type of option " + key);
    }
}

[[noreturn]] void hang() {
    for (;;) pause();
}

class MeanRunner : public Runner {
public:
    MeanRunner(const std::string& path, const Options& options) {
        check_options(options);
        std::ifstream file(path + "/vaiml_par_0/extent");
        std::string kind;
        if (!(file >> height_ >> width_))
            throw std::runtime_error("no compiled model with vaiml_par_0 in " + path);
        file >> kind;
        if (kind == "hangs") hung_ = path + "/hung";
        if (kind == "stays") std::atexit(hang);
        using enum TensorDirection;
        using enum TensorType;
        infos_[0][0] = {make_info("images", INPUT, CPU, DataType::FLOAT32, MemoryLayout::NCHW,
                                  {1, channels, height_, width_})};
        infos_[1][0] = {make_info("means", OUTPUT, CPU, DataType::FLOAT32, MemoryLayout::GENERIC,
                                  {1, channels})};
        if (kind != "cpu") {
            infos_[0][1] = {make_info("images", INPUT, HW, DataType::INT8, MemoryLayout::HCWNC4,
                                      {height_, 1, width_, 1, block})};
            infos_[1][1] = {make_info("means", OUTPUT, HW, DataType::INT8, MemoryLayout::GENERIC,
                                      {1, channels})};
        }
        in_ = view_of(options, "input_tensor_type");
        out_ = view_of(options, "output_tensor_type");
        if (const auto runs = options.find("max_concurrent_runs"); runs != options.end())
            slots_ = std::any_cast<unsigned>(runs->second);
        worker_ = std::thread([this] { work(); });
    }
    ~MeanRunner() override {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }

    const std::vector<NpuTensorInfo>& get_tensors_info(TensorDirection direction,
                                                       TensorType type) const override {
        return infos_[static_cast<int>(direction)][static_cast<int>(type)];
    }
    const NpuTensorInfo& get_tensor_info_by_name(const std::string& name,
                                                 TensorType type) const override {
        for (const auto& side : infos_)
            for (const NpuTensorInfo& info : side[static_cast<int>(type)])
                if (info.name == name) return info;
        throw std::runtime_error("no tensor " + name);
    }
    const QuantParameters& get_quant_parameters(const std::string&) const override {
        static const QuantParameters both{scale, 0, RoundingMode::ROUND_TO_NEAREST_EVEN};
        return both;
    }
    size_t get_num_input_tensors() const override { return 1; }
    size_t get_num_output_tensors() const override { return 1; }
    size_t get_batch_size() const override { return 1; }

    StatusCode execute(const Tensors& inputs, Tensors& outputs) noexcept override {
        if (!fits(inputs, in_)) return StatusCode::INVALID_INPUT;
        if (!fits(outputs, out_)) return StatusCode::INVALID_OUTPUT;
        // Whoever comes after the one that hangs finds the file.
        if (!hung_.empty() && !std::ifstream(hung_)) {
            std::ofstream(hung_) << "hung" << std::flush;
            hang();
        }
        const void* in = inputs[0][0].get_virtual_address();
        void* out = outputs[0][0].get_virtual_address();
        if (!in || !out) return StatusCode::RUNTIME_ERROR;
        for (uint32_t c = 0; c < channels; ++c) {
            double sum = 0;
            for (size_t i = 0; i < size_t{height_} * width_; ++i)
                sum += in_ == TensorType::HW
                           ? static_cast<const int8_t*>(in)[i * block + c] * scale
                           : static_cast<const float*>(in)[c * height_ * width_ + i];
            const double mean = sum / height_ / width_;
            if (out_ == TensorType::HW)
                static_cast<int8_t*>(out)[c] = static_cast<int8_t>(mean / scale);
            else
                static_cast<float*>(out)[c] = static_cast<float>(mean);
        }
        return StatusCode::SUCCESS;
    }
    JobHandle execute_async(const Tensors& inputs, Tensors& outputs) noexcept override {
        return execute_async(inputs, outputs, nullptr);
    }
    JobHandle execute_async(const Tensors& inputs, Tensors& outputs,
                            ExecuteAsyncCallback cb) noexcept override {
        const std::lock_guard lock(mutex_);
        if (running_ >= slots_) return {StatusCode::RESOURCE_UNAVAILABLE, 0};
        ++running_;
        jobs_.push_back({++last_id_, inputs, outputs, std::move(cb)});
        changed_.notify_all();
        return {StatusCode::SUCCESS, last_id_};
    }
    StatusCode wait(const JobHandle& job, std::chrono::milliseconds timeout) noexcept override {
        std::unique_lock lock(mutex_);
        if (job.job_id == 0 || job.job_id > last_id_) return StatusCode::INVALID_JOB_ID;
        const auto done = [&] { return finished_.contains(job.job_id); };
        // The clock cannot count the longest time.
        if (timeout >= std::chrono::hours(24))
            changed_.wait(lock, done);
        else if (!changed_.wait_for(lock, timeout, done))
            return StatusCode::JOB_PENDING;
        const StatusCode status = finished_[job.job_id];
        finished_.erase(job.job_id);
        return status;
    }

    NpuTensor allocate_npu_tensor(const NpuTensorInfo& info) const override {
        auto* memory = static_cast<char*>(std::calloc(1, info.size_in_bytes));
        if (!memory) throw std::runtime_error("no memory");
        const std::lock_guard lock(mutex_);
        memory_.emplace_back(memory, std::free);
        return NpuTensor(info, memory, MemoryType::XRT_BO);
    }
    NpuTensor allocate_sub_tensor(const NpuTensor& parent, const NpuTensorInfo& info,
                                  size_t offset) const override {
        auto* memory = static_cast<char*>(const_cast<void*>(parent.get_virtual_address()));
        return NpuTensor(info, memory + offset, MemoryType::XRT_BO);
    }

private:
    struct Job {
        uint32_t id;
        Tensors inputs, outputs;
        ExecuteAsyncCallback callback;
    };

    TensorType view_of(const Options& options, const char* key) const {
        const auto found = options.find(key);
        const bool cpu =
            found != options.end() && std::any_cast<std::string>(found->second) == "CPU";
        if (!cpu && infos_[0][1].empty())
            throw std::runtime_error(std::string("no HW view for ") + key);
        return cpu ? TensorType::CPU : TensorType::HW;
    }
    static bool fits(const Tensors& tensors, TensorType type) {
        return tensors.size() == 1 && tensors[0].size() == 1 &&
               tensors[0][0].get_info().tensor_type == type;
    }
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            Job job = std::move(jobs_.front());
            jobs_.pop_front();
            lock.unlock();
            const StatusCode status = execute(job.inputs, job.outputs);
            lock.lock();
            --running_;
            finished_[job.id] = status;
            changed_.notify_all();
            lock.unlock();
            if (job.callback) job.callback({status, job.id});
            job = {};
            lock.lock();
        }
    }

    uint32_t height_ = 0, width_ = 0;
    std::string hung_;
    std::vector<NpuTensorInfo> infos_[2][2];  // by direction and type
    TensorType in_, out_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    mutable std::vector<std::unique_ptr<char, void (*)(void*)>> memory_;
    std::deque<Job> jobs_;
    std::map<uint32_t, StatusCode> finished_;
    unsigned slots_ = 2, running_ = 0;
    uint32_t last_id_ = 0;
    bool stop_ = false;
    std::thread worker_;
};

}  // namespace

std::shared_ptr<Runner> RunnerFactory::create_runner(RunnerType, const std::string& model_path,
                                                     const Options& options) {
    return std::make_shared<MeanRunner>(model_path, options);
}

}  // namespace vart
