// SPDX-License-Identifier: Apache-2.0
// Runs a plan.
#include "lib/device/softnpu/executable.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace vartml::softnpu {
namespace {

constexpr size_t page = 4096;

size_t whole_pages(size_t size) {
    return std::max(page, (size + page - 1) / page * page);
}

}  // namespace

void SoftExecutable::FreeArena::operator()(std::byte* p) const {
    std::free(p);
}

Result<std::unique_ptr<SoftExecutable>> SoftExecutable::create(
    std::shared_ptr<const device::Program> program, Plan plan, DataType compute, int threads) {
    std::unique_ptr<SoftExecutable> self(
        new SoftExecutable(std::move(program), std::move(plan), compute, threads));
    const Plan& p = self->plan_;
    const size_t size = whole_pages(p.arena_bytes);
    auto* arena = static_cast<std::byte*>(std::aligned_alloc(page, size));
    if (!arena) {
        return Error{ErrorCode::out_of_memory, self->program_->name +
                                                   ": no memory for an arena of " +
                                                   std::to_string(size) + " bytes"};
    }
    std::memset(arena, 0, size);  // first touch, so that the first inference pays no page faults
    self->arena_.reset(arena);
    self->input_buffers_.resize(self->program_->inputs.size());
    self->output_buffers_.resize(self->program_->outputs.size());
    for (size_t i = 0; i < p.buffers.size(); ++i) {
        const Buffer& b = p.buffers[i];
        std::byte* base = nullptr;
        if (b.place == Place::arena) base = arena + b.offset;
        if (b.place == Place::constant) base = const_cast<std::byte*>(b.data);
        if (b.place == Place::input) self->input_buffers_[static_cast<size_t>(b.index)] = i;
        if (b.place == Place::output) self->output_buffers_[static_cast<size_t>(b.index)] = i;
        self->bases_.push_back(base);
    }
    return self;
}

void SoftExecutable::bind(std::span<const void* const> inputs, std::span<void* const> outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
        // Steps only read inputs.
        bases_[input_buffers_[i]] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        bases_[output_buffers_[i]] = static_cast<std::byte*>(outputs[i]);
    }
}

Result<void> SoftExecutable::run(std::span<const void* const> inputs,
                                 std::span<void* const> outputs) noexcept {
    omp_set_num_threads(threads_);
    bind(inputs, outputs);
    for (const auto& step : plan_.steps) step->run(bases_);
    return {};
}

std::string SoftExecutable::describe() const {
    std::string text;
    for (const auto& step : plan_.steps) text += step->name + ": " + step->describe() + "\n";
    return text;
}

std::vector<double> SoftExecutable::time_steps(unsigned runs) {
    using clock = std::chrono::steady_clock;
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const TensorInfo& info : program_->inputs) {
        memory.emplace_back(info.hw->size_bytes);
        inputs.push_back(memory.back().data());
    }
    for (const TensorInfo& info : program_->outputs) {
        memory.emplace_back(info.hw->size_bytes);
        outputs.push_back(memory.back().data());
    }
    omp_set_num_threads(threads_);
    bind(inputs, outputs);
    std::vector<double> best(plan_.steps.size(), std::numeric_limits<double>::infinity());
    for (unsigned r = 0; r < runs; ++r) {
        for (size_t s = 0; s < plan_.steps.size(); ++s) {
            const auto start = clock::now();
            plan_.steps[s]->run(bases_);
            const double ns =
                std::chrono::duration<double, std::nano>(clock::now() - start).count();
            best[s] = std::min(best[s], ns);
        }
    }
    return best;
}

}  // namespace vartml::softnpu
