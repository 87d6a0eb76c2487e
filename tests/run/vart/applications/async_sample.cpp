// SPDX-License-Identifier: Apache-2.0
// An application as it is written for VART-ML, of the interface description alone and in C++17: two
// asynchronous jobs in flight, waited for first in, first out; a refused submission is tried again.
// Each job is a batch in one parent tensor, for which only size_in_bytes was multiplied.
//
// usage: async_sample MODEL INPUT_FILE OUTPUT_FILE     frames of the model's HW views, one after
// the other
#include <algorithm>
#include <any>
#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "vart/vart_runner_factory.hpp"

namespace {

constexpr uint32_t jobs_in_flight = 2;

// The batch of one job: a parent for the input and one for the output, and a view per frame.
struct Slot {
    vart::NpuTensor input, output;
    std::vector<std::vector<vart::NpuTensor>> inputs, outputs;

    Slot(const vart::Runner& runner, const vart::NpuTensorInfo& in,
         const vart::NpuTensorInfo& out) {
        const size_t batch = runner.get_batch_size();
        input = allocate_batch(runner, in, batch);
        output = allocate_batch(runner, out, batch);
        for (size_t i = 0; i < batch; ++i) {
            inputs.push_back({runner.allocate_sub_tensor(input, in, i * in.size_in_bytes)});
            outputs.push_back({runner.allocate_sub_tensor(output, out, i * out.size_in_bytes)});
        }
    }
    static vart::NpuTensor allocate_batch(const vart::Runner& runner, vart::NpuTensorInfo info,
                                          size_t batch) {
        info.size_in_bytes *= batch;
        return runner.allocate_npu_tensor(info);
    }
};

struct Job {
    vart::JobHandle handle;
    size_t slot;
    size_t frames;
};

class Application {
public:
    Application(const std::string& model, const std::string& output_file)
        : file_(output_file, std::ios::binary) {
        std::unordered_map<std::string, std::any> options;
        options["max_concurrent_runs"] = jobs_in_flight;
        options["log_level"] = std::string("WARNING");
        runner_ = vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model, options);
        const auto type = vart::TensorType::HW;
        in_ = runner_->get_tensors_info(vart::TensorDirection::INPUT, type).at(0);
        out_ = runner_->get_tensors_info(vart::TensorDirection::OUTPUT, type).at(0);
        // One more than jobs in flight: the last one is filled while the others run.
        for (size_t i = 0; i < jobs_in_flight + 1; ++i) slots_.emplace_back(*runner_, in_, out_);
    }

    void run(const std::vector<char>& frames) {
        const size_t batch = runner_->get_batch_size();
        const size_t total = frames.size() / in_.size_in_bytes;
        size_t slot = 0;
        for (size_t first = 0; first < total; first += batch) {
            if (jobs_.size() == slots_.size()) finish_oldest();   // its slot is the next
            const size_t count = std::min(batch, total - first);  // the last batch may be partial
            auto* const data = static_cast<char*>(slots_[slot].input.get_virtual_address());
            std::copy_n(frames.data() + first * in_.size_in_bytes, count * in_.size_in_bytes, data);
            submit(slot, count);
            slot = (slot + 1) % slots_.size();
        }
        while (!jobs_.empty()) finish_oldest();
        std::cout << total << " frames, refused " << refused_ << '\n';
    }

private:
    void submit(size_t slot, size_t count) {
        const Slot& from = slots_[slot];
        std::vector<std::vector<vart::NpuTensor>> inputs(
            from.inputs.begin(), from.inputs.begin() + static_cast<ptrdiff_t>(count));
        std::vector<std::vector<vart::NpuTensor>> outputs(
            from.outputs.begin(), from.outputs.begin() + static_cast<ptrdiff_t>(count));
        for (;;) {
            const vart::JobHandle handle = runner_->execute_async(inputs, outputs);
            if (handle.status == vart::StatusCode::SUCCESS) {
                jobs_.push_back({handle, slot, count});
                return;
            }
            if (handle.status != vart::StatusCode::RESOURCE_UNAVAILABLE)
                throw std::runtime_error("execute_async: " +
                                         std::string(vart::to_string(handle.status)));
            ++refused_;
            finish_oldest();
        }
    }
    void finish_oldest() {
        const Job job = jobs_.front();
        jobs_.pop_front();
        vart::StatusCode status;
        do {
            status = runner_->wait(job.handle, std::chrono::milliseconds(100));
        } while (status == vart::StatusCode::JOB_PENDING);
        if (status != vart::StatusCode::SUCCESS)
            throw std::runtime_error("wait: " + std::string(vart::to_string(status)));
        const vart::NpuTensor& output = slots_[job.slot].output;
        file_.write(static_cast<const char*>(output.get_virtual_address()),
                    static_cast<std::streamsize>(job.frames * out_.size_in_bytes));
    }

    std::ofstream file_;
    std::shared_ptr<vart::Runner> runner_;
    vart::NpuTensorInfo in_, out_;
    std::vector<Slot> slots_;
    std::deque<Job> jobs_;
    unsigned refused_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: async_sample MODEL INPUT_FILE OUTPUT_FILE\n";
        return 2;
    }
    try {
        std::ifstream file(argv[2], std::ios::binary);
        const std::vector<char> frames{std::istreambuf_iterator<char>(file), {}};
        Application(argv[1], argv[3]).run(frames);
        return 0;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
