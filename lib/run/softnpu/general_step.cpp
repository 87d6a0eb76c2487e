// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/general_step.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "lib/graph/dynamic.h"
#include "lib/graph/late.h"
#include "lib/graph/walk.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {
namespace {

// What a tensor without elements points to: null means that there is none.
std::byte no_elements;

bool is_signed_integer(DataType type) {
    return type == DataType::int8 || type == DataType::int16 || type == DataType::int32 ||
           type == DataType::int64;
}

std::string shape_text(const cpu::Shape& shape) {
    std::string text;
    for (const int64_t size : shape) text += (text.empty() ? "[" : ",") + std::to_string(size);
    return text.empty() ? "[]" : text + ']';
}

cpu::Array array_of(const Operand& operand) {
    if (operand.view.buffer < 0) return {};
    return {operand.view.type, cpu::Shape(operand.view.dims), &no_elements};
}

void place(const Bases& bases, const Operand& operand, cpu::Array& array) {
    if (operand.view.buffer < 0) return;
    std::byte* const data = address(bases, operand.view);
    array.data = data ? data : &no_elements;
}

}  // namespace

GeneralStep::GeneralStep(graph::Node node, std::vector<Operand> inputs,
                         std::vector<Operand> outputs, RunState& state)
    : node_(std::move(node)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      state_(&state) {
    const auto has_real_shape = [](const Operand& o) { return o.real_shape >= 0; };
    dynamic_ = graph::is_late(node_) || std::ranges::any_of(inputs_, has_real_shape);
    for (const Operand& input : inputs_) input_arrays_.push_back(array_of(input));
    for (const Operand& output : outputs_) output_arrays_.push_back(array_of(output));
    for (const auto* operands : {&inputs_, &outputs_})
        for (const Operand& operand : *operands)
            if (operand.view.buffer >= 0) buffers.push_back(operand.view.buffer);
}

void GeneralStep::run(const Bases& bases, size_t) noexcept {
    if (state_->error) return;
    for (size_t i = 0; i < inputs_.size(); ++i) {
        place(bases, inputs_[i], input_arrays_[i]);
        if (inputs_[i].real_shape >= 0)
            input_arrays_[i].shape = state_->shapes[static_cast<size_t>(inputs_[i].real_shape)];
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
        place(bases, outputs_[i], output_arrays_[i]);
        if (outputs_[i].view.buffer >= 0)
            output_arrays_[i].shape = cpu::Shape(outputs_[i].view.dims);
    }
    try {
        const cpu::Call call{node_, input_arrays_, output_arrays_};
        auto done = dynamic_ ? cpu::run_dynamic(call) : cpu::run(call);
        if (!done) {
            state_->error = std::move(done).error();
            return;
        }
    } catch (const std::bad_alloc&) {
        state_->error = Error{ErrorCode::out_of_memory, {}};  // no memory for a sentence either
        return;
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
        if (outputs_[i].real_shape >= 0)
            state_->shapes[static_cast<size_t>(outputs_[i].real_shape)] = output_arrays_[i].shape;
}

std::shared_ptr<Step> GeneralStep::for_another_run(RunState& state) const {
    auto other = std::make_shared<GeneralStep>(*this);
    other->state_ = &state;
    return other;
}

std::string GeneralStep::describe() const {
    std::string what = graph::op_type(node_) + " general";
    for (const Operand& input : inputs_)
        if (input.view.buffer >= 0) what += ' ' + text(input.view);
    what += " ->";
    for (const Operand& output : outputs_)
        if (output.view.buffer >= 0) what += ' ' + text(output.view);
    return what;
}

RealShapeStep::RealShapeStep(Direction direction, View border, View inside, int32_t real_shape,
                             RunState& state)
    : direction_(direction),
      border_(std::move(border)),
      inside_(std::move(inside)),
      real_shape_(real_shape),
      state_(&state) {}

// No larger along any axis: as many elements in another shape lie elsewhere in the border tensor.
bool RealShapeStep::fits(const cpu::Shape& real) const {
    if (real.size() != border_.dims.size()) return false;
    for (size_t axis = 0; axis < real.size(); ++axis)
        if (real[axis] > border_.dims[axis]) return false;
    return true;
}

void RealShapeStep::run(const Bases& bases, size_t) noexcept {
    if (state_->error) return;
    const cpu::Shape& real = state_->shapes[static_cast<size_t>(real_shape_)];
    if (!fits(real)) {
        state_->error = Error{ErrorCode::bad_model,
                              "tensor '" + name + "' has " + shape_text(real) +
                                  " elements in this run, the model allows for at most " +
                                  shape_text(cpu::Shape(border_.dims)) +
                                  " along each axis; export it with the largest shape it can have"};
        return;
    }
    const auto size = static_cast<int64_t>(size_bytes(border_.type));
    std::byte* const border = address(bases, border_);
    std::byte* const inside = address(bases, inside_);
    if (direction_ == Direction::out) {
        const int value = is_signed_integer(border_.type) ? 0xFF : 0;
        std::memset(border, value, static_cast<size_t>(border_.elements() * size));
    }
    cpu::Strides strides{};
    std::ranges::copy(border_.strides, strides.begin());
    // Rows of the last axis are contiguous on both sides.
    const int64_t row = real.empty() ? 1 : real.back();
    cpu::Shape outer = real;
    if (!outer.empty()) outer[outer.size() - 1] = 1;
    const int64_t rows = row == 0 ? 0 : outer.elements();
    cpu::Walk<1> walk(outer, {strides});
    for (int64_t i = 0; i < rows; ++i) {
        std::byte* const at_border = border + walk.offset() * size;
        std::byte* const at_inside = inside + i * row * size;
        const auto bytes = static_cast<size_t>(row * size);
        if (direction_ == Direction::out)
            std::memcpy(at_border, at_inside, bytes);
        else
            std::memcpy(at_inside, at_border, bytes);
        walk.next();
    }
}

std::shared_ptr<Step> RealShapeStep::for_another_run(RunState& state) const {
    auto other = std::make_shared<RealShapeStep>(*this);
    other->state_ = &state;
    return other;
}

std::string RealShapeStep::describe() const {
    return std::string("real shape ") + (direction_ == Direction::in ? "in " : "out ") +
           text(inside_);
}

Result<void> lower_general(Lowering& lowering, const graph::Node& node) {
    if (!graph::is_late(node)) {
        for (const std::string_view part : node.kinds()) {
            if (cpu::find_kernel(part)) continue;
            return Error{ErrorCode::unsupported,
                         "node '" + node.name + "' uses " + std::string(part) +
                             ", which this libvartml does not run; compile the ONNX model again "
                             "with this version's 'vartml compile'"};
        }
    }
    std::vector<Operand> inputs, outputs;
    for (const graph::ValueId id : node.inputs) {
        Operand& input = inputs.emplace_back();
        if (id == graph::none) continue;
        const graph::Type& type = lowering.value(id).type;
        input = {lowering.dense(id, row_major(type.shape.size()), type.data_type),
                 lowering.shape_index(id)};
    }
    std::vector<View> places;
    for (const graph::ValueId id : node.outputs) {
        Operand& output = outputs.emplace_back();
        View& place = places.emplace_back();
        if (id == graph::none) continue;
        const graph::Type& type = lowering.value(id).type;
        const Order order = row_major(type.shape.size());
        place = lowering.destination(id, order, false);
        const bool same = place.type == type.data_type && is_dense(place, order);
        output = {same ? place : lowering.new_buffer(type.data_type, type.shape, order),
                  lowering.shape_index(id)};
    }
    const std::vector<Operand> written = outputs;
    lowering.emit(std::make_unique<GeneralStep>(node, std::move(inputs), std::move(outputs),
                                                lowering.state()),
                  node.name, {});
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == graph::none) continue;
        lowering.copy_unless_there(written[i].view, places[i], node.name);
        lowering.finish(node.outputs[i], places[i]);
    }
    return {};
}

}  // namespace vartml::softnpu
