// SPDX-License-Identifier: Apache-2.0
// An application with several models at once, as public applications for VART-ML are written, in
// C++17 and with the public headers alone: each model at its columns, shared or alone, with a
// thread of its own. Inputs are descriptors of the application's memory, outputs are read through
// the descriptors that the runner's tensors give.
//
// usage: tenants_sample RUNS HW|CPU MODEL COLUMN shared|alone [MODEL COLUMN shared|alone]...
// Every byte of an input is 1; prints a line per model with a sum over its outputs.
#include <sys/mman.h>
#include <unistd.h>

#include <any>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vart/vart_npu_tensor.hpp>
#include <vart/vart_runner_factory.hpp>

namespace {

const std::unordered_map<vart::StatusCode, std::string> status_names = {
    {vart::StatusCode::SUCCESS, "SUCCESS"},
    {vart::StatusCode::FAILURE, "FAILURE"},
    {vart::StatusCode::INVALID_INPUT, "INVALID_INPUT"},
    {vart::StatusCode::INVALID_OUTPUT, "INVALID_OUTPUT"},
    {vart::StatusCode::OUT_OF_MEMORY, "OUT_OF_MEMORY"},
    {vart::StatusCode::RUNTIME_ERROR, "RUNTIME_ERROR"},
    {vart::StatusCode::JOB_PENDING, "JOB_PENDING"},
    {vart::StatusCode::INVALID_JOB_ID, "INVALID_JOB_ID"},
    {vart::StatusCode::RESOURCE_UNAVAILABLE, "RESOURCE_UNAVAILABLE"},
    {vart::StatusCode::UNSUPPORTED, "UNSUPPORTED"},
};

// Memory of the application that others reach by descriptors.
class Frame {
public:
    explicit Frame(size_t size_bytes)
        : size_bytes_(size_bytes), fd_(memfd_create("frame", MFD_CLOEXEC)) {
        if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(size_bytes)) != 0)
            throw std::runtime_error("no memory for a frame");
        void* const data = mmap(nullptr, size_bytes, PROT_WRITE, MAP_SHARED, fd_, 0);
        if (data == MAP_FAILED) throw std::runtime_error("cannot map a frame");
        std::memset(data, 1, size_bytes);
        munmap(data, size_bytes);
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    ~Frame() {
        for (const int fd : exported_) close(fd);
        close(fd_);
    }
    size_t size_bytes() const { return size_bytes_; }
    int export_buffer() {
        exported_.push_back(dup(fd_));
        return exported_.back();
    }

private:
    size_t size_bytes_;
    int fd_;
    std::vector<int> exported_;
};

// The bytes behind a descriptor that a tensor gave.
class View {
public:
    View(int fd, size_t size_bytes)
        : size_bytes_(size_bytes), data_(mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0)) {
        close(fd);
        if (data_ == MAP_FAILED) throw std::runtime_error("cannot map an output");
    }
    View(View&& other) noexcept
        : size_bytes_(other.size_bytes_), data_(std::exchange(other.data_, MAP_FAILED)) {}
    View& operator=(View&&) = delete;
    ~View() {
        if (data_ != MAP_FAILED) munmap(data_, size_bytes_);
    }
    uint64_t sum() const {
        uint64_t sum = 0;
        for (size_t i = 0; i < size_bytes_; ++i)
            sum = sum * 31 + static_cast<const unsigned char*>(data_)[i];
        return sum;
    }

private:
    size_t size_bytes_;
    void* data_;
};

class Tenant {
public:
    Tenant(const std::string& model, uint32_t column, bool is_shared, vart::TensorType type) {
        const char* const view = type == vart::TensorType::CPU ? "CPU" : "HW";
        std::unordered_map<std::string, std::any> options{
            {"input_tensor_type", std::string(view)},
            {"output_tensor_type", std::string(view)},
        };
        options["start_column"] = column;
        options["aie_columns_sharing"] = is_shared;
        options["cma_index"] = int32_t{0};
        options["log_level"] = std::string("ERROR");
        runner_ = vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model, options);
        in_ = runner_->get_tensors_info(vart::TensorDirection::INPUT, type)[0];
        out_ = runner_->get_tensors_info(vart::TensorDirection::OUTPUT, type)[0];
        inputs_.resize(runner_->get_batch_size(vart::TensorDirection::INPUT));
        for (auto& element : inputs_) {
            element.resize(1);
            frames_.push_back(std::make_unique<Frame>(in_.size_in_bytes));
        }
        outputs_.resize(runner_->get_batch_size(vart::TensorDirection::OUTPUT));
        for (auto& element : outputs_) {
            vart::NpuTensor tensor;
            tensor = runner_->allocate_npu_tensor(out_);
            const int fd = tensor.export_buffer();
            if (fd < 0) throw std::runtime_error("the output has no descriptor");
            views_.emplace_back(fd, out_.size_in_bytes);
            element.push_back(std::move(tensor));
        }
    }
    Tenant(const Tenant&) = delete;
    Tenant& operator=(const Tenant&) = delete;
    // Runner first: its tensors live on.
    ~Tenant() {
        runner_.reset();
        inputs_.clear();
        for (auto& element : outputs_) element.clear();
    }

    void run(unsigned runs) {
        for (unsigned i = 0; i < runs && status_ == vart::StatusCode::SUCCESS; ++i) {
            for (size_t b = 0; b < inputs_.size(); ++b) {
                inputs_[b].clear();
                inputs_[b].push_back(tensor_of(*frames_[b]));
            }
            status_ = i % 2 ? run_later() : runner_->execute(inputs_, outputs_);
        }
    }
    std::string line() const {
        std::string text = status_names.at(status_);
        for (const View& view : views_) text += ' ' + std::to_string(view.sum());
        return text;
    }

private:
    // A tensor is made once for each frame.
    const vart::NpuTensor& tensor_of(Frame& frame) {
        auto found = tensors_.find(&frame);
        if (found == tensors_.end()) {
            int fd = frame.export_buffer();
            found =
                tensors_.emplace(&frame, vart::NpuTensor(in_, &fd, vart::MemoryType::DMA_FD)).first;
        }
        return found->second;
    }
    vart::StatusCode run_later() {
        vart::JobHandle job;
        for (;;) {
            job = runner_->execute_async(inputs_, outputs_);
            if (job.status != vart::StatusCode::RESOURCE_UNAVAILABLE) break;
            std::this_thread::yield();
        }
        if (job.status != vart::StatusCode::SUCCESS) return job.status;
        job.status = runner_->wait(job, std::chrono::milliseconds{30000});
        return job.status;
    }

    std::shared_ptr<vart::Runner> runner_;
    vart::NpuTensorInfo in_{}, out_{};
    std::vector<std::unique_ptr<Frame>> frames_;
    std::unordered_map<Frame*, vart::NpuTensor> tensors_;
    std::vector<std::vector<vart::NpuTensor>> inputs_, outputs_;
    std::vector<View> views_;
    vart::StatusCode status_ = vart::StatusCode::SUCCESS;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6 || argc % 3 != 0) {
        std::cerr << "usage: tenants_sample RUNS HW|CPU MODEL COLUMN shared|alone "
                     "[MODEL COLUMN shared|alone]...\n";
        return 2;
    }
    try {
        const auto runs = static_cast<unsigned>(std::stoul(argv[1]));
        const auto type =
            std::string(argv[2]) == "CPU" ? vart::TensorType::CPU : vart::TensorType::HW;
        std::vector<std::unique_ptr<Tenant>> tenants;
        for (int i = 3; i < argc; i += 3)
            tenants.push_back(
                std::make_unique<Tenant>(argv[i], static_cast<uint32_t>(std::stoul(argv[i + 1])),
                                         std::string(argv[i + 2]) == "shared", type));
        std::vector<std::thread> threads;
        for (const auto& tenant : tenants)
            threads.emplace_back([&tenant, runs] { tenant->run(runs); });
        for (std::thread& thread : threads) thread.join();
        for (const auto& tenant : tenants) std::cout << tenant->line() << '\n';
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
