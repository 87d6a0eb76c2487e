// SPDX-License-Identifier: Apache-2.0
// A plan with its arena: what one inference needs while it goes on.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/device/device.h"
#include "lib/device/softnpu/plan.h"

namespace vartml::softnpu {

class Lane {
public:
    // Errors: out_of_memory naming the arena's size.
    static Result<std::unique_ptr<Lane>> create(std::shared_ptr<const device::Program> program,
                                                Plan plan);

    // What the next run reads and writes; forgets the error of the run before.
    void bind(std::span<const void* const> inputs, std::span<void* const> outputs);
    void run_item(size_t step, size_t item) noexcept { plan_.steps[step]->run(bases_, item); }
    RunState& state() { return *plan_.state; }

    const Plan& plan() const { return plan_; }
    const device::Program& program() const { return *program_; }
    std::string describe() const;
    // Shortest duration of each step in nanoseconds over `runs` runs on scratch data.
    std::vector<double> time_steps(unsigned runs);

private:
    struct FreeArena {
        void operator()(std::byte* p) const;
        size_t size;
    };
    Lane(std::shared_ptr<const device::Program> program, Plan plan);

    std::shared_ptr<const device::Program> program_;  // keeps the constants alive
    Plan plan_;
    std::unique_ptr<std::byte, FreeArena> arena_;
    std::vector<std::byte*> bases_;
    std::vector<size_t> input_buffers_, output_buffers_;  // index into bases_, per border tensor
};

}  // namespace vartml::softnpu
