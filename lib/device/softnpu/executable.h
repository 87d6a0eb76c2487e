// SPDX-License-Identifier: Apache-2.0
// A plan with its arena: what the runtime runs.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lib/device/device.h"
#include "lib/device/softnpu/plan.h"

namespace vartml::softnpu {

class SoftExecutable final : public device::Executable, private device::SharedRun::Work {
public:
    // Errors: out_of_memory naming the arena's size.
    static Result<std::unique_ptr<SoftExecutable>> create(
        std::shared_ptr<const device::Program> program, Plan plan, DataType compute,
        unsigned threads);

    Result<void> run(std::span<const void* const> inputs,
                     std::span<void* const> outputs) noexcept override;
    Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     device::RealShapes& shapes) noexcept override;
    std::string compute_type() const override { return std::string(to_string(compute_)); }
    unsigned border_conversions() const override { return plan_.border_conversions; }
    size_t private_weight_bytes() const override { return plan_.private_bytes; }
    std::string describe() const override;
    std::vector<double> time_steps(unsigned runs) override;

private:
    struct FreeArena {
        void operator()(std::byte* p) const;
        size_t size;
    };
    SoftExecutable(std::shared_ptr<const device::Program> program, Plan plan, DataType compute,
                   unsigned threads);
    void run_item(size_t step, size_t item) noexcept override;
    void bind(std::span<const void* const> inputs, std::span<void* const> outputs);

    std::shared_ptr<const device::Program> program_;  // keeps the constants alive
    Plan plan_;
    DataType compute_;
    std::unique_ptr<std::byte, FreeArena> arena_;
    std::vector<std::byte*> bases_;
    std::vector<size_t> input_buffers_, output_buffers_;  // index into bases_, per border tensor
    device::SharedRun shared_;                            // last: its end waits for helpers
};

}  // namespace vartml::softnpu
