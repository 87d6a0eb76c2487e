// SPDX-License-Identifier: Apache-2.0
// A node that runs through the kernels of lib/graph: any operator, any type, shapes that depend on
// the data.
#pragma once
#include <string>
#include <vector>

#include "lib/graph/graph.h"
#include "lib/graph/kernel.h"
#include "lib/run/softnpu/plan.h"
#include "lib/run/softnpu/view.h"

namespace vartml::softnpu {

// A tensor of the node: dense row-major in its own type. `real_shape` is its place in
// RunState::shapes, -1 where the shape is static. A view of buffer -1 is absent.
struct Operand {
    View view;
    int32_t real_shape = -1;
};

class GeneralStep final : public Step {
public:
    GeneralStep(graph::Node node, std::vector<Operand> inputs, std::vector<Operand> outputs,
                RunState& state);
    void run(const Bases& bases, size_t item) noexcept override;
    std::shared_ptr<Step> for_another_run(RunState& state) const override;
    std::string describe() const override;

private:
    const graph::Node node_;
    const std::vector<Operand> inputs_, outputs_;
    RunState* state_;
    bool dynamic_ = false;
    std::vector<cpu::Array> input_arrays_, output_arrays_;
};

// Between a border tensor of the upper-bound shape and the value inside, which is dense in its real
// shape. Elements of the border beyond the real shape are written as 0, those of signed integers as
// -1 (data-dependent outputs of the runtime's contract). A run whose real shape is larger along an
// axis fails.
class RealShapeStep final : public Step {
public:
    enum class Direction { in, out };
    RealShapeStep(Direction direction, View border, View inside, int32_t real_shape,
                  RunState& state);
    void run(const Bases& bases, size_t item) noexcept override;
    std::shared_ptr<Step> for_another_run(RunState& state) const override;
    std::string describe() const override;

private:
    bool fits(const cpu::Shape& real) const;

    const Direction direction_;
    const View border_, inside_;
    const int32_t real_shape_;
    RunState* state_;
};

}  // namespace vartml::softnpu
