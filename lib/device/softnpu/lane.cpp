// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/lane.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace vartml::softnpu {
namespace {

constexpr size_t page = 4096;

size_t whole_pages(size_t size) {
    return std::max(page, (size + page - 1) / page * page);
}

// Zeros that take memory only where they are touched: the arena of a run that never goes on beside
// another costs nothing.
std::byte* reserve(size_t size) {
    void* const memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Lane::Lane(std::shared_ptr<const device::Program> program, Plan plan)
    : program_(std::move(program)), plan_(std::move(plan)) {}

void Lane::FreeArena::operator()(std::byte* p) const {
    ::munmap(p, size);
}

Result<std::unique_ptr<Lane>> Lane::create(std::shared_ptr<const device::Program> program,
                                           Plan plan) {
    std::unique_ptr<Lane> self(new Lane(std::move(program), std::move(plan)));
    const Plan& p = self->plan_;
    const size_t size = whole_pages(p.arena_bytes);
    std::byte* const arena = reserve(size);
    if (!arena) {
        return Error{ErrorCode::out_of_memory, self->program_->name +
                                                   ": no memory for an arena of " +
                                                   std::to_string(size) + " bytes"};
    }
    self->arena_ = {arena, FreeArena{size}};
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

void Lane::bind(std::span<const void* const> inputs, std::span<void* const> outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
        // Steps only read inputs.
        bases_[input_buffers_[i]] = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        bases_[output_buffers_[i]] = static_cast<std::byte*>(outputs[i]);
    }
    plan_.state->error.reset();
}

std::string Lane::describe() const {
    std::string text;
    for (const auto& step : plan_.steps) text += step->name + ": " + step->describe() + "\n";
    return text;
}

std::vector<double> Lane::time_steps(unsigned runs) {
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
    bind(inputs, outputs);
    std::vector<double> best(plan_.steps.size(), std::numeric_limits<double>::infinity());
    for (unsigned r = 0; r < runs; ++r) {
        for (size_t s = 0; s < plan_.steps.size(); ++s) {
            const auto start = clock::now();
            for (uint32_t i = 0; i < plan_.steps[s]->items(); ++i) run_item(s, i);
            const double ns =
                std::chrono::duration<double, std::nano>(clock::now() - start).count();
            best[s] = std::min(best[s], ns);
        }
    }
    return best;
}

}  // namespace vartml::softnpu
