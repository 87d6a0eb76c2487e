// SPDX-License-Identifier: Apache-2.0
// From a program to a plan: chooses types, memory orders and places, then asks one function per
// operator for its steps.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/graph/graph.h"
#include "lib/run/exec/device.h"
#include "lib/run/softnpu/plan.h"
#include "lib/run/softnpu/view.h"
#include "lib/run/softnpu/weight_cache.h"

namespace vartml::softnpu {

// Constants that are derived from those of the model at load: packed weights, weights of another
// type, scales. Each is made when somebody reads it, and not at all where the side cache has what
// the steps read.

class Constants {
public:
    using Make = std::function<Bytes()>;

    // The constant of a buffer of the plan. What decides the bytes, beside program, processor and
    // library, is in `layout`.
    void add(int32_t buffer, size_t size_bytes, std::string_view layout, Make make);
    bool holds(int32_t buffer) const { return constants_.contains(buffer); }
    // Its bytes, made now if they are not yet there.
    const std::byte* data(int32_t buffer);

    // Sets the data of all buffers that steps of the plan read: from the cache (nullptr: none),
    // which is built where it does not have them, else from private memory. What only the making
    // of others needed goes.
    void settle(Plan& plan, const WeightCache* cache);

private:
    struct Constant {
        size_t size_bytes;
        uint32_t layout;
        Make make;
        std::shared_ptr<const Bytes> bytes;
    };
    std::map<int32_t, Constant> constants_;  // by buffer
};

class Lowering;

// Lowers one node: with steps of its own where the software NPU has some for it, else through the
// kernels of lib/graph.
using LowerFunction = Result<void> (*)(Lowering&, const graph::Node&);

// What lowering functions work with. Values are lowered in execution order; after a node each of
// its outputs has a view.
class Lowering {
public:
    // `threads` may take part in a run.
    Lowering(const device::Program& program, DataType compute, unsigned threads);
    // Constants made at load come from the cache that `open` gives (nullptr: none); it is told
    // whether oneDNN runs steps of the program.
    Result<Plan> run(const std::function<const WeightCache*(bool uses_onednn)>& open);

    const graph::Graph& graph() const { return program_.graph; }
    const graph::Value& value(graph::ValueId id) const { return program_.graph.value(id); }
    // The type that a node multiplies in: f32, or bf16 where the program computes in it, but for
    // the first convolutions and what codes are made from.
    DataType compute(const graph::Node& node) const {
        return exact_[index_of(node)] ? DataType::float32 : compute_;
    }
    unsigned threads() const { return threads_; }
    // Type that a value is stored in: the compute type for float work, its own type otherwise, f32
    // in the tail.
    DataType stored_type(graph::ValueId id) const { return types_[static_cast<size_t>(id)]; }

    // The node that reads a value, where it is the only one and the value no output of the graph.
    const graph::Node* only_reader(graph::ValueId id) const {
        const auto& readers = uses_.consumers[static_cast<size_t>(id)];
        return readers.size() == 1 && !uses_.is_output[static_cast<size_t>(id)]
                   ? &graph().nodes[static_cast<size_t>(readers[0])]
                   : nullptr;
    }

    // Where a value lies; constants are placed at first use.
    const View& view(graph::ValueId id);
    // The same elements dense in `order` and of `type`; adds a copy only where the value is not so
    // already.
    View dense(graph::ValueId id, const Order& order, DataType type);
    View dense(const View& view, const Order& order, DataType type, std::string_view what);
    // The natural memory order of a value.
    const Order& order(graph::ValueId id) const { return orders_[static_cast<size_t>(id)]; }
    // A constant's bytes converted to `type`, dense row-major.
    const std::byte* constant_bytes(graph::ValueId id, DataType type);

    // Where a step should write a value: the place reserved for it where the step can write there,
    // else a new buffer. A step that can write any strides passes any_strides; others get a dense
    // view in `order`.
    View destination(graph::ValueId id, const Order& order, bool any_strides);
    // Tells that a value lies in `view` now; copies it to the place reserved for it if that is
    // another.
    void finish(graph::ValueId id, const View& view);

    View new_buffer(DataType type, const Dims& dims, const Order& order);
    View add_constant(DataType type, const Dims& dims, const Order& order, Bytes bytes);
    // A constant that `make` makes when it is needed: for a constant that is made from it, or at
    // the end of lowering, where the side cache does not have it. What `make` refers to lives as
    // long as this object.
    View add_constant(DataType type, const Dims& dims, const Order& order, Constants::Make make);
    // The same for bytes whose layout only their reader knows; `layout` names all that decides it.
    View add_packed(size_t size_bytes, std::string_view layout, Constants::Make make);
    // Real shapes of data-dependent values, while a run goes on.
    RunState& state() { return *plan_.state; }
    // Where the real shape of a value is; -1 where the shape is static.
    int32_t shape_index(graph::ValueId id) const { return shape_index_[static_cast<size_t>(id)]; }
    // Appends a step; `views` are all that it touches.
    void emit(std::unique_ptr<Step> step, std::string_view name,
              std::initializer_list<const View*> views);
    // The same for a step of oneDNN.
    void emit_onednn(std::unique_ptr<Step> step, std::string_view name);
    // Lowering fails where can_copy() does not hold.
    void copy(const View& src, const View& dst, std::string_view name);
    void copy_unless_there(const View& src, const View& dst, std::string_view name);
    // Memory that a step may use during its run; shared by all steps.
    View scratch_view(size_t size_bytes);
    // Whether it is a whole input of the program, as it lies in the caller's memory: what is beside
    // its channels there is padding, and no channel of another part.
    bool is_whole_input(const View& view);
    // First byte of a view of a constant buffer.
    const std::byte* constant_data(const View& view);

private:
    LowerFunction lowering_of(const graph::Node& node) const { return functions_[index_of(node)]; }
    // Whether a node before has made what this one makes.
    bool is_there(const graph::Node& node) const {
        return node.outputs[0] >= 0 && views_[static_cast<size_t>(node.outputs[0])].has_value();
    }
    size_t index_of(const graph::Node& node) const {
        return static_cast<size_t>(&node - graph().nodes.data());
    }
    void choose_types();
    void choose_orders();
    void place_borders();
    void choose_places();
    void place_inputs_of(const graph::Node& node);
    Order natural_order(const graph::Node& node, size_t output) const;
    void finish_outputs();
    void take_real_shape(size_t input, int32_t buffer);
    void plan_arena();
    Result<void> lower_node(const graph::Node& node);
    void plan_lifetimes();
    void refuse_copy(DataType from, DataType to, std::string_view what);

    // The operator that the steps from here on belong to.
    void begin_border(const char* way, const TensorInfo& info) {
        op_ = program_.name + way + info.name;
    }

    const device::Program& program_;
    const DataType compute_;
    const unsigned threads_;
    std::string op_;  // that steps belong to now
    bool uses_onednn_ = false;
    Plan plan_;
    std::optional<Error> error_;  // of a copy between types that have none
    Constants constants_;
    graph::Uses uses_;
    std::vector<DataType> types_;
    std::vector<Order> orders_;
    std::vector<std::optional<View>> views_, places_;
    std::vector<std::optional<View>> border_;  // per graph output
    std::vector<int32_t> shape_index_;
    std::vector<LowerFunction> functions_;  // per node
    std::vector<bool> early_;               // per node: a first convolution, in f32
    std::vector<bool> exact_;               // per node: multiplies in f32
};

LowerFunction find_lowering(const graph::Graph& graph, const graph::Node& node);

}  // namespace vartml::softnpu
