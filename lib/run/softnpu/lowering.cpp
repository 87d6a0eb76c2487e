// SPDX-License-Identifier: Apache-2.0
// The common part of lowering: types, orders, places, copies, lifetimes.
#include "lib/run/softnpu/lowering.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/graph/coordinates.h"
#include "lib/graph/memory_plan.h"
#include "lib/graph/ops.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/direct_conv.h"
#include "lib/run/softnpu/early_convs.h"
#include "lib/run/softnpu/general_step.h"
#include "lib/run/softnpu/operators.h"
#include "lib/run/softnpu/plan.h"

namespace vartml::softnpu {

namespace {

// Views that name the same elements; strides of size-1 dimensions do not matter.
bool same_place(const View& a, const View& b) {
    if (a.buffer != b.buffer || a.type != b.type || a.offset != b.offset || a.dims != b.dims) {
        return false;
    }
    for (size_t i = 0; i < a.dims.size(); ++i) {
        if (a.dims[i] != 1 && a.strides[i] != b.strides[i]) return false;
    }
    return true;
}

// The order of a reshaped tensor whose elements must move: channels stay innermost where they are,
// as in a channel shuffle.
Order order_of_reshaped(const View& view, const Dims& shape) {
    const auto inner = static_cast<size_t>(order_of(view).back());
    int64_t behind = 1, from = 1;
    for (size_t i = inner + 1; i < view.dims.size(); ++i) behind *= view.dims[i];
    for (size_t i = 2; i < shape.size(); ++i) from *= shape[i];
    const bool in_channels = shape.size() > 2 && behind >= from && behind < from * shape[1];
    return in_channels ? channels_last(shape.size()) : row_major(shape.size());
}

// The values that codes are made from which other nodes read, back to the products that make them:
// a change in the last digits can be another code, and another scale other codes of a whole tensor.
// Products lose no more in bf16 than they do elsewhere.
std::vector<bool> find_values_before_codes(const graph::Graph& graph, const graph::Uses& uses) {
    std::vector<bool> before(graph.values.size(), false);
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
        const auto is_read = [&](graph::ValueId out) {
            return out >= 0 && !uses.consumers[static_cast<size_t>(out)].empty();
        };
        const bool makes_codes = node->kind == "QuantizeLinear" && is_read(node->outputs[0]);
        const bool leads =
            makes_codes || (!has_trait(*node, graph::Trait::product) &&
                            std::ranges::any_of(node->outputs, [&](graph::ValueId out) {
                                return out >= 0 && before[static_cast<size_t>(out)];
                            }));
        for (const graph::ValueId in : node->inputs)
            if (in >= 0 && leads) before[static_cast<size_t>(in)] = true;
    }
    return before;
}

}  // namespace

Lowering::Lowering(const device::Program& program, DataType compute, unsigned threads)
    : program_(program),
      compute_(compute),
      threads_(threads),
      uses_(graph::find_uses(program.graph)) {
    const size_t n = program.graph.values.size();
    types_.resize(n);
    orders_.resize(n);
    views_.resize(n);
    places_.resize(n);
    shape_index_.assign(n, -1);
    for (const graph::Node& node : program.graph.nodes)
        functions_.push_back(find_lowering(program.graph, node));
    early_ = find_early_convs(program.graph);
    for (const graph::Node& node : program.graph.nodes) {
        const size_t i = index_of(node);
        early_[i] = early_[i] && functions_[i] == lower_conv && fits_direct_conv(*this, node);
    }
    RunState& real = *plan_.state;
    for (size_t i = 0; i < n; ++i) {
        if (!program.graph.values[i].data_dependent) continue;
        shape_index_[i] = static_cast<int32_t>(real.shapes.size());
        real.shapes.emplace_back(program.graph.values[i].type.shape);
    }
    for (const graph::ValueId id : program.graph.inputs)
        real.input_shapes.push_back(shape_index(id));
    for (const graph::ValueId id : program.graph.outputs)
        real.output_shapes.push_back(shape_index(id));
}

Result<Plan> Lowering::run(const std::function<const WeightCache*(bool)>& open) {
    choose_types();
    choose_orders();
    place_borders();
    choose_places();
    for (const graph::Node& node : graph().nodes) {
        op_ = node.name;
        if (is_there(node)) continue;
        if (auto ok = lower_node(node); !ok) return ok.error();
    }
    finish_outputs();
    if (error_) return *error_;
    plan_lifetimes();
    plan_arena();
    constants_.settle(plan_, open(uses_onednn_));
    return std::move(plan_);
}

namespace {

// A primitive that oneDNN refused to make, as a sentence: unsupported, or device where the library
// itself is at fault.
Error onednn_error(const graph::Node& node, const dnnl::error& error) {
    // Not there, or broken: no reason to compute by other means without a word.
    if (error.status == dnnl_runtime_error)
        return {ErrorCode::device, "node '" + node.name + "': oneDNN: " + error.what()};
    return {ErrorCode::unsupported, "node '" + node.name + "': oneDNN cannot run " + node.type() +
                                        " with these shapes (" + error.what() + ")"};
}

}  // namespace

// Through steps of its own kind; where those do not take it after all, and oneDNN refuses more
// than its documentation says, through the kernels of lib/graph. What was emitted before goes.
Result<void> Lowering::lower_node(const graph::Node& node) {
    const size_t before = plan_.steps.size();
    Result<void> ok;
    try {
        ok = lowering_of(node)(*this, node);
    } catch (const dnnl::error& e) {
        ok = onednn_error(node, e);
    }
    if (ok && error_) ok = *std::exchange(error_, std::nullopt);
    if (ok || ok.error().code != ErrorCode::unsupported || lowering_of(node) == lower_general)
        return ok;
    plan_.steps.resize(before);
    return lower_general(*this, node) ? Result<void>() : ok;
}

// Float work in the compute type. In f32: what only early convolutions read, what codes are made
// from behind a product, what leads to indices and coordinates, and what follows the last
// convolution or matrix product.
void Lowering::choose_types() {
    const std::vector<bool> before_codes = find_values_before_codes(graph(), uses_);
    const graph::Coordinates coordinates = graph::find_coordinates(graph());
    exact_ = early_;
    for (const graph::Node& node : graph().nodes) {
        const bool leads = std::ranges::any_of(node.outputs, [&](graph::ValueId out) {
            return out >= 0 && before_codes[static_cast<size_t>(out)];
        });
        const bool is_product = has_trait(node, graph::Trait::product);
        if ((leads && !is_product) || coordinates.products[index_of(node)])
            exact_[index_of(node)] = true;
    }
    std::vector<bool> before_matrix_work(types_.size(), false);
    for (auto node = graph().nodes.rbegin(); node != graph().nodes.rend(); ++node) {
        const bool exact = exact_[index_of(*node)];
        bool needed = has_trait(*node, graph::Trait::product) && !exact;
        for (const graph::ValueId out : node->outputs)
            needed = needed || (out >= 0 && before_matrix_work[static_cast<size_t>(out)]);
        for (const graph::ValueId in : node->inputs) {
            if (in < 0 || !needed || early_[index_of(*node)]) continue;
            const auto id = static_cast<size_t>(in);
            before_matrix_work[id] = !before_codes[id] && !coordinates.values[id];
        }
    }
    for (size_t i = 0; i < types_.size(); ++i) {
        const DataType own = graph().values[i].type.data_type;
        const bool as_it_is = !is_float(own) || graph().values[i].data_dependent;
        types_[i] = as_it_is ? own : before_matrix_work[i] ? compute_ : DataType::float32;
    }
    for (size_t i = 0; i < graph().outputs.size(); ++i) {
        const auto id = static_cast<size_t>(graph().outputs[i]);
        const DataType border = program_.outputs[i].hw->data_type;
        if (border == compute_ && is_float(types_[id]) && shape_index_[id] < 0) types_[id] = border;
    }
}

Order Lowering::natural_order(const graph::Node& node, size_t output) const {
    const auto& shape = value(node.outputs[output]).type.shape;
    if (lowering_of(node) == lower_general) return row_major(shape.size());
    const std::string_view base = node.kind;
    if (base == "PictureInput")
        return node.get("layout", "NCHW") == "NHWC" ? row_major(4) : channels_last(4);
    if (has_trait(node, graph::Trait::picture_work)) return channels_last(shape.size());
    // Everything else follows its largest input.
    graph::ValueId like = graph::none;
    for (const graph::ValueId in : node.inputs) {
        if (in < 0 || value(in).constant) continue;
        if (like < 0 || value(in).type.elements() > value(like).type.elements()) like = in;
    }
    if (like < 0 || has_trait(node, graph::Trait::matrix_work)) return row_major(shape.size());
    const auto& dims = value(like).type.shape;
    const View natural{0, DataType::float32, 0, dims, dense_strides(dims, order(like))};
    if (base == "Transpose") return order_of(transpose(natural, node.get("perm", Dims{})));
    if (base == "Reshape") {
        const auto view = reshape(natural, shape);
        return view ? order_of(*view) : order_of_reshaped(natural, shape);
    }
    if (dims.size() == shape.size()) return order(like);
    return row_major(shape.size());
}

void Lowering::choose_orders() {
    for (size_t i = 0; i < orders_.size(); ++i) {
        orders_[i] = row_major(graph().values[i].type.shape.size());
    }
    for (size_t i = 0; i < graph().inputs.size(); ++i) {
        const auto id = static_cast<size_t>(graph().inputs[i]);
        // Views show rank 0 as [1].
        if (!graph().values[id].type.shape.empty()) orders_[id] = border_order(program_.inputs[i]);
    }
    for (const graph::Node& node : graph().nodes) {
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            if (node.outputs[i] < 0) continue;
            orders_[static_cast<size_t>(node.outputs[i])] = natural_order(node, i);
        }
    }
}

// Inputs lie where the caller has them; outputs are reserved where the caller wants them.
void Lowering::place_borders() {
    const auto add = [&](Place place, size_t index, const TensorInfo& info) {
        plan_.buffers.push_back({.place = place,
                                 .size_bytes = info.hw->size_bytes,
                                 .index = static_cast<int32_t>(index)});
        return static_cast<int32_t>(plan_.buffers.size() - 1);
    };
    for (size_t i = 0; i < graph().inputs.size(); ++i) {
        const TensorInfo& info = program_.inputs[i];
        const auto id = static_cast<size_t>(graph().inputs[i]);
        const int32_t buffer = add(Place::input, i, info);
        begin_border("/in/", info);
        const auto& shape = graph().values[id].type.shape;
        if (shape_index_[id] >= 0) {
            take_real_shape(i, buffer);
            continue;
        }
        if (auto view = border_view(info, shape, buffer)) {
            views_[id] = *view;
            continue;
        }
        ++plan_.border_conversions;
        View inside = new_buffer(stored_type(graph().inputs[i]), shape, orders_[id]);
        for (const auto& [border, part] : border_parts(info, inside, buffer)) {
            copy(border, part, info.name);
        }
        views_[id] = inside;
    }
    border_.resize(graph().outputs.size());
    for (size_t i = 0; i < graph().outputs.size(); ++i) {
        const TensorInfo& info = program_.outputs[i];
        const int32_t buffer = add(Place::output, i, info);
        const graph::ValueId id = graph().outputs[i];
        const auto& v = value(id);
        border_[i] = border_view(info, v.type.shape, buffer);
        auto& place = places_[static_cast<size_t>(id)];
        const auto uses = uses_.consumers[static_cast<size_t>(id)].size();
        const bool produced = uses_.producer[static_cast<size_t>(id)] >= 0;
        const bool is_static = shape_index(id) < 0;
        if (border_[i] && produced && is_static && uses == 0 && !place) place = border_[i];
    }
}

// An input of the upper-bound shape becomes dense in its real one.
void Lowering::take_real_shape(size_t input, int32_t buffer) {
    const graph::ValueId id = graph().inputs[input];
    const auto& shape = value(id).type.shape;
    const View border = *border_view(program_.inputs[input], shape, buffer);
    const View inside = new_buffer(value(id).type.data_type, shape, row_major(shape.size()));
    if (border.type != inside.type)
        return refuse_copy(border.type, inside.type, program_.inputs[input].name);
    emit(std::make_unique<RealShapeStep>(RealShapeStep::Direction::in, border, inside,
                                         shape_index(id), state()),
         program_.inputs[input].name, {&border, &inside});
    views_[static_cast<size_t>(id)] = inside;
}

void Lowering::place_inputs_of(const graph::Node& node) {
    if (lowering_of(node) == lower_general) return;
    const std::string_view base = node.kind;
    const auto out = static_cast<size_t>(node.outputs[0]);
    const bool movable = base == "Transpose" || base == "Reshape";
    if (base != "Concat" && !(movable && places_[out])) return;
    if (!places_[out]) {
        const auto& v = graph().values[out];
        places_[out] = new_buffer(types_[out], v.type.shape, orders_[out]);
    }
    const View& place = *places_[out];
    int64_t start = 0;
    for (const graph::ValueId in : node.inputs) {
        if (in < 0) continue;
        const auto i = static_cast<size_t>(in);
        const auto& shape = value(in).type.shape;
        std::optional<View> part;
        if (base == "Concat") {
            const auto rank = static_cast<int64_t>(shape.size());
            const int64_t axis = (node.get("axis", int64_t{0}) + rank) % rank;
            const int64_t size = shape[static_cast<size_t>(axis)];
            part = slice(place, static_cast<size_t>(axis), start, size, 1);
            start += size;
        } else if (base == "Transpose") {
            const auto perm = node.get("perm", Dims{});
            Dims inverse(perm.size());
            for (size_t k = 0; k < perm.size(); ++k) {
                inverse[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
            }
            part = transpose(place, inverse);
        } else {
            part = reshape(place, shape);
        }
        const bool free = uses_.consumers[i].size() == 1 && !uses_.is_output[i] &&
                          uses_.producer[i] >= 0 && !places_[i];
        if (free && part) places_[i] = part;
        if (base != "Concat") break;
    }
}

// From the outputs backwards: whoever feeds a Concat, or a view of a reserved place, writes right
// there.
void Lowering::choose_places() {
    for (auto node = graph().nodes.rbegin(); node != graph().nodes.rend(); ++node) {
        if (!node->outputs.empty() && node->outputs[0] >= 0) place_inputs_of(*node);
    }
}

const View& Lowering::view(graph::ValueId id) {
    auto& slot = views_[static_cast<size_t>(id)];
    if (slot) return *slot;
    const graph::Value& v = value(id);
    assert(v.constant && "a value is lowered before it is used");
    plan_.buffers.push_back({.place = Place::constant,
                             .size_bytes = v.constant->bytes.size(),
                             .data = v.constant->bytes.data()});
    slot = View{static_cast<int32_t>(plan_.buffers.size() - 1), v.type.data_type, 0, v.type.shape,
                dense_strides(v.type.shape, row_major(v.type.shape.size()))};
    return *slot;
}

void Lowering::refuse_copy(DataType from, DataType to, std::string_view what) {
    if (error_) return;
    error_ = Error{ErrorCode::unsupported,
                   "tensor '" + std::string(what) + "' is " + std::string(to_string(from)) +
                       " where the software NPU needs " + std::string(to_string(to)) +
                       ", between which it does not convert"};
}

View Lowering::dense(graph::ValueId id, const Order& order, DataType type) {
    if (value(id).constant) {
        const View& from = view(id);
        if (from.type == type && is_dense(from, order)) return from;
        if (!can_copy(from.type, type)) {
            refuse_copy(from.type, type, value(id).name);
            return new_buffer(type, from.dims, order);
        }
        return add_constant(type, from.dims, order, [this, from, id, order, type] {
            Bytes bytes(static_cast<size_t>(from.elements()) * size_bytes(type));
            const View to{0, type, 0, from.dims, dense_strides(from.dims, order)};
            copy_now(from, value(id).constant->bytes.data(), to, bytes.data());
            return bytes;
        });
    }
    return dense(view(id), order, type, value(id).name);
}

View Lowering::dense(const View& from, const Order& order, DataType type, std::string_view what) {
    if (from.type == type && is_dense(from, order)) return from;
    const View to = new_buffer(type, from.dims, order);
    copy(from, to, what);
    return to;
}

const std::byte* Lowering::constant_bytes(graph::ValueId id, DataType type) {
    return constant_data(dense(id, row_major(value(id).type.shape.size()), type));
}

View Lowering::destination(graph::ValueId id, const Order& order, bool any_strides) {
    const auto& place = places_[static_cast<size_t>(id)];
    const DataType type = stored_type(id);
    if (place && (any_strides || (place->type == type && is_dense(*place, order)))) return *place;
    return new_buffer(type, value(id).type.shape, order);
}

void Lowering::finish(graph::ValueId id, const View& view) {
    const auto& place = places_[static_cast<size_t>(id)];
    auto& slot = views_[static_cast<size_t>(id)];
    slot = view;
    if (!place || same_place(*place, view)) return;
    copy(view, *place, value(id).name);
    slot = *place;
}

View Lowering::new_buffer(DataType type, const Dims& dims, const Order& order) {
    View view{static_cast<int32_t>(plan_.buffers.size()), type, 0, dims,
              dense_strides(dims, order)};
    plan_.buffers.push_back(
        {.place = Place::arena,
         .size_bytes = static_cast<size_t>(view.elements()) * size_bytes(type)});
    return view;
}

View Lowering::add_constant(DataType type, const Dims& dims, const Order& order, Bytes bytes) {
    return add_constant(type, dims, order,
                        [kept = std::make_shared<Bytes>(std::move(bytes))] { return *kept; });
}

View Lowering::add_constant(DataType type, const Dims& dims, const Order& order,
                            Constants::Make make) {
    View view{0, type, 0, dims, dense_strides(dims, order)};
    const auto size = static_cast<size_t>(view.elements()) * size_bytes(type);
    view.buffer = add_packed(size, to_string(type), std::move(make)).buffer;
    return view;
}

View Lowering::add_packed(size_t size, std::string_view layout, Constants::Make make) {
    const auto buffer = static_cast<int32_t>(plan_.buffers.size());
    plan_.buffers.push_back({.place = Place::constant, .size_bytes = size});
    constants_.add(buffer, size, layout, std::move(make));
    return View{buffer, DataType::uint8, 0, {static_cast<int64_t>(size)}, {1}};
}

void Lowering::emit(std::unique_ptr<Step> step, std::string_view name,
                    std::initializer_list<const View*> views) {
    step->name = name;
    step->op = op_;
    step->share_among(threads_);
    for (const View* view : views) {
        if (view) step->buffers.push_back(view->buffer);
    }
    plan_.steps.push_back(std::move(step));
}

void Lowering::emit_onednn(std::unique_ptr<Step> step, std::string_view name) {
    uses_onednn_ = true;
    emit(std::move(step), name, {});
}

void Lowering::copy(const View& src, const View& dst, std::string_view name) {
    if (!can_copy(src.type, dst.type)) return refuse_copy(src.type, dst.type, name);
    emit(std::make_unique<CopyStep>(src, dst), name, {&src, &dst});
}

void Lowering::copy_unless_there(const View& src, const View& dst, std::string_view name) {
    if (!same_place(src, dst)) copy(src, dst, name);
}

View Lowering::scratch_view(size_t size) {
    if (plan_.scratch_buffer < 0) {
        plan_.scratch_buffer = static_cast<int32_t>(plan_.buffers.size());
        plan_.buffers.push_back({.place = Place::arena});
    }
    plan_.scratch_bytes = std::max(plan_.scratch_bytes, size);
    const auto elements = static_cast<int64_t>(size);
    return View{plan_.scratch_buffer, DataType::uint8, 0, {elements}, {1}};
}

bool Lowering::is_whole_input(const View& view) {
    return plan_.buffers[static_cast<size_t>(view.buffer)].place == Place::input &&
           std::ranges::any_of(graph().inputs,
                               [&](graph::ValueId id) { return this->view(id) == view; });
}

const std::byte* Lowering::constant_data(const View& view) {
    const std::byte* const data = constants_.holds(view.buffer)
                                      ? constants_.data(view.buffer)
                                      : plan_.buffers[static_cast<size_t>(view.buffer)].data;
    return data + view.offset * static_cast<int64_t>(size_bytes(view.type));
}

void Lowering::finish_outputs() {
    for (size_t i = 0; i < graph().outputs.size(); ++i) {
        const graph::ValueId id = graph().outputs[i];
        const TensorInfo& info = program_.outputs[i];
        begin_border("/out/", info);
        const View& from = view(id);
        const auto is_output = [i](const Buffer& b) {
            return b.place == Place::output && b.index == static_cast<int32_t>(i);
        };
        const auto buffer = static_cast<int32_t>(std::ranges::find_if(plan_.buffers, is_output) -
                                                 plan_.buffers.begin());
        // Now that what lies beside it is in the cache.
        for (const View& padding : border_padding(info, value(id).type.shape, buffer))
            emit(std::make_unique<ZeroStep>(padding), info.name, {&padding});
        if (shape_index(id) >= 0) {
            if (from.type != border_[i]->type) refuse_copy(from.type, border_[i]->type, info.name);
            emit(std::make_unique<RealShapeStep>(RealShapeStep::Direction::out, *border_[i], from,
                                                 shape_index(id), state()),
                 info.name, {&*border_[i], &from});
            continue;
        }
        if (border_[i]) {
            if (!same_place(from, *border_[i])) copy(from, *border_[i], info.name);
            continue;
        }
        ++plan_.border_conversions;
        for (const auto& [border, part] : border_parts(info, from, buffer)) {
            copy(part, border, info.name);
        }
    }
}

void Lowering::plan_lifetimes() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
        for (const int32_t b : plan_.steps[s]->buffers) {
            Buffer& buffer = plan_.buffers[static_cast<size_t>(b)];
            if (buffer.first < 0) buffer.first = static_cast<int32_t>(s);
            buffer.last = static_cast<int32_t>(s);
        }
    }
}

void Lowering::plan_arena() {
    if (plan_.scratch_buffer >= 0) {
        Buffer& scratch = plan_.buffers[static_cast<size_t>(plan_.scratch_buffer)];
        scratch.size_bytes = plan_.scratch_bytes;
        scratch.first = 0;
        scratch.last = static_cast<int32_t>(plan_.steps.size());
    }
    std::vector<graph::Block> blocks;
    std::vector<Buffer*> owners;
    for (Buffer& buffer : plan_.buffers) {
        if (buffer.place != Place::arena || buffer.first < 0) continue;
        blocks.push_back({buffer.size_bytes, buffer.first, buffer.last});
        owners.push_back(&buffer);
    }
    const graph::MemoryPlan memory = graph::plan_memory(blocks);
    for (size_t i = 0; i < owners.size(); ++i) owners[i]->offset = memory.offsets[i];
    plan_.arena_bytes = memory.size_bytes;
}

void Constants::add(int32_t buffer, size_t size_bytes, std::string_view layout, Make make) {
    constants_.emplace(buffer,
                       Constant{size_bytes, crc32c(as_bytes(layout)), std::move(make), nullptr});
}

const std::byte* Constants::data(int32_t buffer) {
    Constant& constant = constants_.at(buffer);
    if (!constant.bytes) {
        constant.bytes = std::make_shared<const Bytes>(constant.make());
        assert(constant.bytes->size() == constant.size_bytes);
        constant.make = nullptr;
    }
    return constant.bytes->data();
}

void Constants::settle(Plan& plan, const WeightCache* cache) {
    std::set<int32_t> read;
    for (const auto& step : plan.steps)
        for (const int32_t buffer : step->buffers)
            if (holds(buffer)) read.insert(buffer);
    if (read.empty()) return;
    WeightTable table;
    for (const int32_t buffer : read)
        table.push_back({constants_.at(buffer).size_bytes, constants_.at(buffer).layout});

    std::optional<StoredWeights> stored;
    if (cache) stored = cache->open(table);
    if (!stored) {
        std::vector<std::span<const std::byte>> pieces;
        for (const int32_t buffer : read)
            pieces.emplace_back(data(buffer), constants_.at(buffer).size_bytes);
        if (cache) stored = cache->build(table, pieces);
    }
    size_t i = 0;
    for (const int32_t buffer : read) {
        Constant& constant = constants_.at(buffer);
        Buffer& place = plan.buffers[static_cast<size_t>(buffer)];
        if (stored) {
            place.data = stored->pieces[i++];
            continue;
        }
        place.data = constant.bytes->data();
        plan.private_bytes += constant.size_bytes;
        plan.owners.push_back(constant.bytes);
    }
    if (stored) plan.owners.push_back(stored->owner);
}

}  // namespace vartml::softnpu
