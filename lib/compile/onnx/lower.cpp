// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/lower.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>

#include "lib/compile/onnx/check.h"
#include "lib/compile/onnx/model_file.h"
#include "lib/graph/attribute_values.h"
#include "lib/graph/canonical.h"
#include "lib/graph/ops.h"
#include "lib/graph/resize_position.h"

namespace vartml::onnx {
namespace {

// Takes the node over under the kind given; append_node settles attributes and inputs.
void keep_as(Builder& b, OnnxNode& n, const std::string& kind, const std::string& domain = {}) {
    const ValueIds ids = b.emit_named(kind, n.inputs, n.attributes, domain, n.outputs);
    if (b.error()) return;
    for (size_t i = 0; i < n.outputs.size(); ++i) b.bind(n.outputs[i], ids[i]);
}
void keep(Builder& b, ModelFile&, OnnxNode& n) {
    keep_as(b, n, n.proto.op_type(), n.domain);
}
void keep_in_default_domain(Builder& b, ModelFile&, OnnxNode& n) {
    keep_as(b, n, n.proto.op_type());
}

void constant_node(Builder& b, ModelFile& file, OnnxNode& n) {
    const std::string name = n.outputs.empty() ? "" : n.outputs[0];
    if (const auto* value = n.find("value")) {
        auto tensor = read_tensor(file, value->t(), "has a value that");
        if (!tensor) return b.fail(tensor.error().code, tensor.error().message);
        const ValueId id = b.constant(name, std::move(tensor->type), std::move(tensor->constant));
        if (is_4_bit(value->t().data_type())) b.four_bits.insert(id);
        return b.bind(name, id);
    }
    const auto add = [&]<typename T>(DataType type, bool is_list, const std::vector<T>& values) {
        const std::vector<int64_t> shape =
            is_list ? std::vector{static_cast<int64_t>(values.size())} : std::vector<int64_t>{};
        b.bind(name,
               b.constant(name, {type, shape}, graph::make_constant(std::span<const T>(values))));
    };
    if (const auto* v = n.find("value_float"))
        return add(DataType::float32, false, std::vector<float>{v->f()});
    if (const auto* v = n.find("value_int"))
        return add(DataType::int64, false, std::vector<int64_t>{v->i()});
    if (const auto* v = n.find("value_floats"))
        return add(DataType::float32, true,
                   std::vector<float>(v->floats().begin(), v->floats().end()));
    if (const auto* v = n.find("value_ints"))
        return add(DataType::int64, true, std::vector<int64_t>(v->ints().begin(), v->ints().end()));
    // ONNX Runtime does not take one in a node either.
    if (n.find("sparse_value"))
        return b.fail(ErrorCode::bad_model,
                      "(Constant) holds a sparse tensor; export it as a dense one");
    b.fail(ErrorCode::unsupported, "(Constant) holds strings; export it as a tensor of numbers");
}

void constant_of_shape(Builder& b, ModelFile& file, OnnxNode& n) {
    if (const auto* value = n.find("value")) {
        auto tensor = read_tensor(file, value->t(), "has a value that");
        if (!tensor) return b.fail(tensor.error().code, tensor.error().message);
        n.inputs.resize(1, graph::none);
        n.inputs.push_back(
            b.constant(b.node() + "/value", std::move(tensor->type), std::move(tensor->constant)));
    }
    n.attributes.erase("value");
    keep(b, file, n);
}

// The value under a second name.
void alias(Builder& b, ModelFile&, OnnxNode& n) {
    bind_first(b, n, n.input(0));
}

void dropout(Builder& b, ModelFile& file, OnnxNode& n) {
    const ValueId mode = n.input(2);
    const bool constant_false =
        mode == graph::none ||
        (b.graph.value(mode).constant && b.graph.value(mode).constant->bytes.size() == 1 &&
         b.graph.value(mode).constant->bytes[0] == std::byte{0});
    if (!constant_false)
        return b.fail(
            ErrorCode::unsupported,
            "uses Dropout in training mode, a random operator; export the model in inference mode");
    if (n.has_output(1)) {  // nothing is dropped
        const graph::Type mask{DataType::boolean, b.type(n.input(0)).shape};
        const ValueId ones = b.constant(n.outputs[1], mask,
                                        graph::make_constant(std::vector<std::byte>(
                                            static_cast<size_t>(mask.elements()), std::byte{1})));
        // Before set 10 it has the type of the data.
        const std::string type(graph::short_name(b.type(n.input(0)).data_type));
        b.bind(n.outputs[1], n.opset < 10 ? b.emit("Cast", {ones}, {{"to", type}}) : ones);
    }
    alias(b, file, n);
}

// Inputs that have nothing along the axis add nothing, however long their other axes are in a run.
void concat(Builder& b, ModelFile& file, OnnxNode& n) {
    const int64_t axis = n.get("axis", int64_t{0});
    const auto adds_nothing = [&](ValueId id) {
        const std::vector<int64_t>& shape = b.type(id).shape;
        const int64_t at = axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis;
        return at >= 0 && at < static_cast<int64_t>(shape.size()) &&
               shape[static_cast<size_t>(at)] == 0;
    };
    if (!std::ranges::all_of(n.inputs, adds_nothing)) std::erase_if(n.inputs, adds_nothing);
    keep(b, file, n);
}

// An attribute that holds a number of TensorProto.DataType becomes the name of the type.
void name_type(Builder& b, OnnxNode& n, const char* key) {
    const auto found = n.attributes.find(key);
    if (found == n.attributes.end()) return;
    const auto number = n.get(key, int64_t{0});
    if (number == 0) {
        n.attributes.erase(found);  // "not given" where it is optional
        return;
    }
    const DataType type = data_type(static_cast<int32_t>(number));
    if (type == DataType::unknown || number == pb::TensorProto::INT4 ||
        number == pb::TensorProto::UINT4)
        return b.fail(ErrorCode::unsupported,
                      "(" + n.proto.op_type() + ") makes elements of type " +
                          elem_type_name(static_cast<int32_t>(number)) +
                          ", which cannot be compiled; use a float or an integer type");
    found->second = std::string(graph::short_name(type));
}

void cast(Builder& b, ModelFile& file, OnnxNode& n) {
    for (const char* key : {"saturate", "round_mode"}) n.attributes.erase(key);  // of 8-bit floats
    name_type(b, n, "to");
    keep(b, file, n);
}

void cast_like(Builder& b, ModelFile&, OnnxNode& n) {
    if (b.four_bits.contains(n.input(1)))
        return b.fail(ErrorCode::unsupported,
                      "(CastLike) makes elements of 4 bits, which cannot be compiled; use a float "
                      "or an integer type of 8 bits or more");
    bind_first(b, n,
               b.emit("Cast", {n.input(0)},
                      {{"to", std::string(graph::short_name(b.type(n.input(1)).data_type))}}));
}

void eye_like(Builder& b, ModelFile& file, OnnxNode& n) {
    name_type(b, n, "dtype");
    keep(b, file, n);
}

// com.microsoft's means the same, as does its DequantizeLinear.
void quantize(Builder& b, ModelFile&, OnnxNode& n) {
    const auto precision = static_cast<int32_t>(n.get("precision", int64_t{0}));
    const DataType type = data_type(precision);
    if (precision != 0 && type != DataType::float32 && type != b.type(n.input(1)).data_type)
        return b.fail(ErrorCode::unsupported,
                      "(QuantizeLinear) divides in " + elem_type_name(precision) +
                          " by its attribute 'precision', which is not done here; export it "
                          "without, or with FLOAT");
    for (const char* key : {"saturate", "precision"}) n.attributes.erase(key);
    name_type(b, n, "output_dtype");
    if (!b.four_bits.contains(n.input(2))) return keep_as(b, n, "QuantizeLinear");
    // Codes of 4 bits lie in 8, but end where 4 bits do.
    const DataType codes = b.type(n.input(2)).data_type;
    const auto bound = [&](const char* name, int value) {
        return b.constant(b.node() + name, {codes, {}},
                          graph::make_constant(std::vector{static_cast<std::byte>(value)}));
    };
    const bool is_signed = codes == DataType::int8;
    const ValueId low = bound("/low", is_signed ? -8 : 0);
    const ValueId high = bound("/high", is_signed ? 7 : 15);
    bind_first(b, n, b.emit("Clip", {b.emit("QuantizeLinear", n.inputs, n.attributes), low, high}));
}

// The result has the type of the scale, or the one that is named.
void dequantize(Builder& b, ModelFile&, OnnxNode& n) {
    name_type(b, n, "output_dtype");
    const std::string named = n.get("output_dtype", "");
    n.attributes.erase("output_dtype");
    if (named.empty() || named == graph::short_name(b.type(n.input(1)).data_type))
        return keep_as(b, n, "DequantizeLinear");
    // The type of the result is that of the product, too, which a narrower one might not hold.
    const auto wide = graph::parse_short_name(named);
    if (wide && size_bytes(*wide) > size_bytes(b.type(n.input(1)).data_type)) {
        n.inputs[1] = cast_to(b, n.input(1), *wide);
        return keep_as(b, n, "DequantizeLinear");
    }
    const ValueId y = b.emit("DequantizeLinear", n.inputs, n.attributes);
    bind_first(b, n, b.emit("Cast", {y}, {{"to", named}}));
}

// Softmax or LogSoftmax over several axes at once, for a tensor whose real shape only the run
// knows.
ValueId softmax_over(Builder& b, const std::string& kind, ValueId x, int64_t axis, int64_t rank) {
    std::vector<int64_t> axes(static_cast<size_t>(rank - axis));
    std::iota(axes.begin(), axes.end(), axis);
    const ValueId below = b.emit("Sub", {x, b.emit("ReduceMax", {x, b.ints(axes)})});
    const ValueId powers = b.emit("Exp", {below});
    const ValueId sum = b.emit("ReduceSum", {powers, b.ints(axes)});
    if (kind == "Softmax") return b.emit("Div", {powers, sum});
    return b.emit("Sub", {below, b.emit("Log", {sum})});
}

// Before set 13 these flatten the tensor to two dimensions at `axis` and work on rows.
void softmax(Builder& b, ModelFile& file, OnnxNode& n) {
    if (n.opset >= 13) return keep(b, file, n);
    const ValueId x = n.input(0);
    const std::vector<int64_t> shape = b.type(x).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    int64_t axis = n.get("axis", int64_t{1});
    if (axis < -rank || axis > rank)
        return b.fail(ErrorCode::bad_model, "has the axis " + std::to_string(axis));
    if (axis < 0) axis += rank;
    const auto product = [&](auto first, auto last) {
        return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
    };
    const int64_t inner = product(shape.begin() + axis, shape.end());
    if (axis < rank && shape[static_cast<size_t>(axis)] == inner) {
        n.attributes["axis"] = axis;
        return keep(b, file, n);
    }
    if (b.graph.value(x).data_dependent) {
        if (n.proto.op_type() == "Hardmax" || axis == rank)
            return b.fail(ErrorCode::unsupported,
                          "(" + n.proto.op_type() + ") flattens tensor '" + b.graph.value(x).name +
                              "', whose shape depends on the data; export with opset 13 or later");
        return bind_first(b, n, softmax_over(b, n.proto.op_type(), x, axis, rank));
    }
    const ValueId rows =
        b.emit("Reshape", {x, b.ints({product(shape.begin(), shape.begin() + axis), inner})});
    const ValueId y = b.emit(n.proto.op_type(), {rows}, {{"axis", int64_t{1}}});
    bind_first(b, n, b.emit("Reshape", {y, b.ints(shape)}));
}

// Corners that are aligned: to scale * length, as ONNX's tests have it; PyTorch and ONNX Runtime
// take the whole length.
void warn_of_part_lengths(Builder& b, const OnnxNode& n) {
    const ValueId scales = n.opset < 11 ? graph::none : n.input(2);
    if (scales == graph::none || !b.graph.value(scales).constant || n.find("axes") ||
        b.type(scales).data_type != DataType::float32 ||
        n.get("coordinate_transformation_mode", "half_pixel") != "align_corners")
        return;
    const auto scale = b.graph.value(scales).constant->as<float>();
    const auto& shape = b.type(n.input(0)).shape;
    for (size_t i = 0; i < std::min(scale.size(), shape.size()); ++i) {
        const float length = static_cast<float>(shape[i]) * scale[i];
        if (!(length >= 2 && length < 1e9F) || shape[i] < 2)
            continue;  // one element has no corners
        const auto whole = static_cast<int64_t>(length);
        if (graph::resize_axis(shape[i], whole, &scale[i]).is_ratio) continue;
        constexpr float unseen = 1e-4F;  // of an element, as a rounded scale leaves it
        if (length - static_cast<float>(whole) < unseen) continue;
        return b.warn("(Resize) aligns the corners of an axis of " + std::to_string(shape[i]) +
                      " to " + std::to_string(length) +
                      ", which is how ONNX defines it; PyTorch and ONNX Runtime align them to " +
                      std::to_string(whole) + "; export the model with sizes instead of scales");
    }
}

// Set 10's Resize means what Upsample does.
void resize(Builder& b, ModelFile&, OnnxNode& n) {
    warn_of_part_lengths(b, n);
    keep_as(b, n, n.opset < 11 ? "Upsample" : "Resize");
}

// BatchNormalization in training mode: by the statistics of this batch, which move the running
// ones.
void normalise_by_batch(Builder& b, OnnxNode& n) {
    const auto rank = static_cast<int64_t>(b.type(n.input(0)).shape.size());
    if (rank < 2) return b.fail(ErrorCode::bad_model, "(BatchNormalization) has no channels");
    std::vector<int64_t> axes, column(static_cast<size_t>(rank) - 1, 1);
    for (int64_t axis = 0; axis < rank; ++axis)
        if (axis != 1) axes.push_back(axis);
    column[0] = -1;
    const float momentum = n.get("momentum", 0.9F), epsilon = n.get("epsilon", 1e-5F);
    const auto mean_of = [&](ValueId x) {
        return b.emit("ReduceMean", {x, b.ints(axes)}, {{"keepdims", int64_t{0}}});
    };
    const auto wide = [&](ValueId per_channel) {
        return b.emit("Reshape", {per_channel, b.ints(column)});
    };
    const ValueId x = n.input(0), mean = mean_of(x);
    const ValueId centred = b.emit("Sub", {x, wide(mean)});
    const ValueId variance = mean_of(b.emit("Mul", {centred, centred}));
    const ValueId spread =
        b.emit("Sqrt", {b.emit("Add", {variance, number(b, epsilon, variance)})});
    const ValueId scaled =
        b.emit("Mul", {b.emit("Div", {centred, wide(spread)}), wide(n.input(1))});
    bind_first(b, n, b.emit("Add", {scaled, wide(n.input(2))}));
    const ValueId now[] = {mean, variance};
    for (size_t i = 0; i < 2 && !b.error(); ++i) {
        if (!n.has_output(i + 1)) continue;
        const ValueId old = b.emit("Mul", {n.input(i + 3), number(b, momentum, n.input(i + 3))});
        const ValueId step = b.emit("Mul", {now[i], number(b, 1 - momentum, now[i])});
        const ValueId moved = b.emit("Add", {old, cast_to(b, step, b.type(old).data_type)});
        if (!b.error()) b.bind(n.outputs[i + 1], moved);
    }
}

void batch_normalization(Builder& b, ModelFile& file, OnnxNode& n) {
    if (n.get("training_mode", int64_t{0}) != 0) return normalise_by_batch(b, n);
    if (n.get("spatial", int64_t{1}) != 1)
        return b.fail(ErrorCode::unsupported,
                      "(BatchNormalization) has spatial 0, which later operator sets dropped; "
                      "export with opset 9 or later");
    if (refuse_outputs(b, n, 1)) return;
    for (const char* key : {"training_mode", "spatial", "momentum"}) n.attributes.erase(key);
    n.outputs.resize(1);
    keep(b, file, n);
}

void layer_normalization(Builder& b, ModelFile&, OnnxNode& n) {
    // Sets before 17 have no schema that counts the outputs.
    if (!n.has_output(0))
        return b.fail(ErrorCode::bad_model, "(LayerNormalization) lacks output 0");
    n.attributes.erase("stash_type");
    keep_as(b, n, "LayerNormalization");
}

// Set 18 has a scale and a bias per group, set 21 per channel.
void group_normalization(Builder& b, ModelFile& file, OnnxNode& n) {
    n.attributes.erase("stash_type");
    const std::vector<int64_t> shape = b.type(n.input(0)).shape;
    const int64_t groups = n.get("num_groups", int64_t{1});
    if (n.opset < 21 && shape.size() >= 2 && groups > 0 && shape[1] % groups == 0) {
        for (size_t i : {1, 2}) {
            const ValueId column = b.emit("Reshape", {n.input(i), b.ints({groups, 1})});
            const ValueId wide = b.emit("Expand", {column, b.ints({groups, shape[1] / groups})});
            if (b.error()) return;
            n.inputs[i] = b.emit("Reshape", {wide, b.ints({shape[1]})});
        }
    }
    keep(b, file, n);
}

// Sets before 16 do not shift by half a pixel.
void roi_align(Builder& b, ModelFile& file, OnnxNode& n) {
    if (n.opset < 16)
        n.attributes["coordinate_transformation_mode"] = std::string("output_half_pixel");
    keep(b, file, n);
}

void scatter(Builder& b, ModelFile&, OnnxNode& n) {
    keep_as(b, n, "ScatterElements");
}

void grid_sample(Builder& b, ModelFile& file, OnnxNode& n) {
    n.domain.clear();  // com.microsoft's means the same
    const std::string mode = n.get("mode", "linear");
    n.attributes["mode"] = mode == "bilinear"  ? std::string("linear")
                           : mode == "bicubic" ? std::string("cubic")
                                               : mode;
    keep(b, file, n);
}

void dynamic_quantize_linear(Builder& b, ModelFile&, OnnxNode& n) {
    const Codes codes = quantise_by_range(b, n.input(0));
    if (b.error()) return;
    const ValueId results[] = {codes.values, codes.scale, codes.zero_point};
    for (size_t i = 0; i < std::min<size_t>(n.outputs.size(), 3); ++i)
        b.bind(n.outputs[i], results[i]);
}

void center_crop_pad(Builder& b, ModelFile& file, OnnxNode& n) {
    const ValueId x = n.input(0);
    if (!b.int_values(n.input(1)) || (x != graph::none && b.graph.value(x).data_dependent))
        return keep(b, file, n);
    const std::vector<int64_t> shape = b.type(x).shape;
    const auto target = b.int_values(n.input(1));
    std::vector<int64_t> axes = n.get("axes", std::vector<int64_t>{});
    if (!n.attributes.contains("axes")) {
        axes.resize(shape.size());
        std::iota(axes.begin(), axes.end(), 0);
    }
    if (!target || target->size() != axes.size())
        return b.fail(ErrorCode::unsupported,
                      "(CenterCropPad) needs a constant shape with one number per axis");
    std::vector<int64_t> starts, ends, pads(2 * shape.size(), 0);
    for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i] < 0) axes[i] += static_cast<int64_t>(shape.size());
        if (axes[i] < 0 || axes[i] >= static_cast<int64_t>(shape.size()))
            return b.fail(ErrorCode::bad_model,
                          "(CenterCropPad) names an axis that its input does not have");
        const auto axis = static_cast<size_t>(axes[i]);
        const int64_t more = (*target)[i] - shape[axis];
        starts.push_back(more < 0 ? -more / 2 : 0);
        ends.push_back(starts.back() + std::min((*target)[i], shape[axis]));
        if (more > 0) {
            pads[axis] = more / 2;
            pads[shape.size() + axis] = more - more / 2;
        }
    }
    const ValueId cropped = b.emit("Slice", {x, b.ints(starts), b.ints(ends), b.ints(axes)});
    bind_first(b, n, b.emit("Pad", {cropped, b.ints(pads)}));
}

// The number that Pad fills up with is a float in the graph. Of integers that no float holds the
// tensor is shifted by it, filled up with 0 and shifted back; integers wrap, so that nothing is
// lost.
void pad(Builder& b, ModelFile& file, OnnxNode& n) {
    const ValueId value = n.input(2);
    if (value == graph::none || n.get("mode", "constant") != "constant") return keep(b, file, n);
    const auto& constant = b.graph.value(value).constant;
    const DataType type = b.type(n.input(0)).data_type;
    const bool wide = type == DataType::int32 || type == DataType::uint32 ||
                      type == DataType::int64 || type == DataType::uint64;
    const bool exact =
        constant ? graph::survives_float(b.graph.value(value)) : !wide && type != DataType::float64;
    if (exact) return keep(b, file, n);
    if (!wide)
        return b.fail(
            ErrorCode::unsupported,
            "(Pad) fills up with a float64 that no float32 holds; cast to float32 before");
    const ValueId shifted = b.emit("Sub", {n.input(0), value});
    std::vector<ValueId> inputs = n.inputs;
    inputs[0] = shifted;
    inputs[2] = graph::none;
    const ValueId padded = b.emit("Pad", inputs, n.attributes);
    bind_first(b, n, b.emit("Add", {padded, value}));
}

// ---- com.microsoft, ai.onnx.ml
// -------------------------------------------------------------------------------------

void bias_gelu(Builder& b, ModelFile&, OnnxNode& n) {
    bind_first(b, n, b.emit("Gelu", {b.emit("Add", {n.input(0), n.input(1)})}));
}

void fast_gelu(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId x =
        n.input(1) == graph::none ? n.input(0) : b.emit("Add", {n.input(0), n.input(1)});
    bind_first(b, n, b.emit("Gelu", {x}, {{"approximate", std::string("tanh")}}));
}

// input + skip + bias, normalised over the last axis; the sum is the fourth output.
void skip_layer_normalization(Builder& b, ModelFile&, OnnxNode& n) {
    if (refuse_outputs(b, n, 1, 3)) return;
    ValueId sum = b.emit("Add", {n.input(0), n.input(1)});
    if (n.input(4) != graph::none) sum = b.emit("Add", {sum, n.input(4)});
    const Attributes attributes{{"axis", int64_t{-1}}, {"epsilon", n.get("epsilon", 1e-12f)}};
    const ValueId y = b.emit("LayerNormalization", {sum, n.input(2), n.input(3)}, attributes);
    if (b.error()) return;
    bind_first(b, n, y);
    if (n.has_output(3)) b.bind(n.outputs[3], sum);
}

// Elements of the last axis; a list counts as one row.
void array_feature_extractor(Builder& b, ModelFile&, OnnxNode& n) {
    const auto rank = static_cast<int64_t>(b.type(n.input(0)).shape.size());
    const ValueId which = b.emit("Reshape", {n.input(1), b.ints({-1})});
    const ValueId y = b.emit("Gather", {n.input(0), which}, {{"axis", int64_t{-1}}});
    bind_first(b, n, rank == 1 ? b.emit("Unsqueeze", {y, b.ints({0})}) : y);
}

// A map of names to the elements of each row: no tensor. The elements are one.
void zip_map(Builder& b, ModelFile&, OnnxNode& n) {
    if (!n.outputs.empty())
        b.warn("(ZipMap) makes a map of names; output '" + n.outputs[0] +
               "' is the tensor of its numbers instead, give the names with --labels");
    bind_first(b, n, n.input(0));
}

// (x - offset) * scale, per feature or for all.
void scaler(Builder& b, ModelFile&, OnnxNode& n) {
    ValueId y = n.input(0);
    if (b.type(y).data_type != DataType::float32)
        y = b.emit("Cast", {y}, {{"to", std::string("f32")}});
    for (const auto& [key, kind] : {std::pair{"offset", "Sub"}, std::pair{"scale", "Mul"}}) {
        const std::vector<float> values = n.get(key, std::vector<float>{});
        if (!values.empty())
            y = b.emit(kind, {y, b.floats({static_cast<int64_t>(values.size())}, values)});
    }
    bind_first(b, n, y);
}

constexpr std::string_view ms = microsoft;
constexpr LowerRow own_rows[] = {
    {"", "BatchNormalization", batch_normalization},
    {"", "Cast", cast},
    {"", "CastLike", cast_like},
    {"", "CenterCropPad", center_crop_pad},
    {"", "Concat", concat},
    {"", "Constant", constant_node},
    {"", "ConstantOfShape", constant_of_shape},
    {"", "DequantizeLinear", dequantize},
    {"", "Dropout", dropout},
    {"", "DynamicQuantizeLinear", dynamic_quantize_linear},
    {"", "EyeLike", eye_like},
    {"", "GridSample", grid_sample},
    {"", "GroupNormalization", group_normalization},
    {"", "Hardmax", softmax},
    {"", "Identity", alias},
    {"", "LayerNormalization", layer_normalization},
    {"", "LogSoftmax", softmax},
    {"", "Pad", pad},
    {"", "QuantizeLinear", quantize},
    {"", "Resize", resize},
    {"", "RoiAlign", roi_align},
    {"", "Scatter", scatter},
    {"", "Softmax", softmax},
    {"", "Upsample", resize},
    {ms, "Attention", keep},
    {ms, "BiasGelu", bias_gelu, ""},
    {ms, "DequantizeLinear", dequantize},
    {ms, "FastGelu", fast_gelu, ""},
    {ms, "GatherND", keep_in_default_domain},
    {ms, "Gelu", keep_in_default_domain},
    {ms, "GridSample", grid_sample},
    {ms, "QuantizeLinear", quantize},
    {ms, "QuickGelu", keep},
    {ms, "SkipLayerNormalization", skip_layer_normalization, "epsilon:f"},
    {ms, "Trilu", keep_in_default_domain},
    {"ai.onnx.ml", "ArrayFeatureExtractor", array_feature_extractor, ""},
    {"ai.onnx.ml", "Scaler", scaler, "offset:fs scale:fs"},
    {"ai.onnx.ml", "ZipMap", zip_map},
};

std::span<const LowerRow> own() {
    return own_rows;
}
constexpr std::span<const LowerRow> (*tables[])() = {own, experimental_rows, fused_rows,
                                                     quantised_rows, transformer_rows};

const LowerRow* find_row(std::string_view domain, std::string_view op) {
    for (const auto table : tables)
        for (const LowerRow& row : table())
            if (row.domain == domain && row.op == op) return &row;
    return nullptr;
}

using Handler = decltype(LowerRow::handler);
Handler find_handler(std::string_view domain, std::string_view op) {
    if (const LowerRow* row = find_row(domain, op)) return row->handler;
    // The graph has operators of other domains, and some of its own.
    return domain.empty() && is_in_default_domain(op) && graph::find_op(op) ? keep : nullptr;
}

std::string_view kind_of(const pb::AttributeProto& attribute) {
    switch (attribute.type()) {
        case pb::AttributeProto::INT:
            return "i";
        case pb::AttributeProto::FLOAT:
            return "f";
        case pb::AttributeProto::STRING:
            return "s";
        case pb::AttributeProto::INTS:
            return "is";
        case pb::AttributeProto::FLOATS:
            return "fs";
        default:
            return "?";
    }
}
bool is_listed(std::string_view list, const pb::AttributeProto& attribute) {
    const std::string padded = ' ' + std::string(list) + ' ';
    const std::string entry = attribute.name() + ':' + std::string(kind_of(attribute));
    return padded.find(' ' + entry + ' ') != padded.npos;
}

// An attribute that nobody would look at may change what the operator means. Those of the default
// domain are checked against ONNX's schemas before.
bool refuse_unknown_attributes(Builder& b, const OnnxNode& n) {
    const LowerRow* const row = find_row(n.domain, n.proto.op_type());
    for (const auto& attribute : n.proto.attribute()) {
        const bool is_tensor = attribute.type() == pb::AttributeProto::TENSOR;
        const bool is_read = !row || row->attributes == "*" ? !is_tensor || n.domain.empty()
                                                            : is_listed(row->attributes, attribute);
        if (is_read) continue;
        b.fail(ErrorCode::unsupported, "(" + n.proto.op_type() + ") has the attribute '" +
                                           attribute.name() +
                                           "', whose meaning is not known here; export it without");
        return true;
    }
    return false;
}

}  // namespace

void bind_first(Builder& b, const OnnxNode& n, ValueId id) {
    if (!b.error() && !n.outputs.empty()) b.bind(n.outputs[0], id);
}

bool refuse_outputs(Builder& b, const OnnxNode& n, size_t first, size_t last) {
    for (size_t i = first; i < std::min(n.outputs.size(), last); ++i)
        if (!n.outputs[i].empty()) {
            b.fail(ErrorCode::unsupported,
                   "(" + n.proto.op_type() + ") makes the output '" + n.outputs[i] +
                       "', which only training needs; export the model in inference mode");
            return true;
        }
    return false;
}

ValueId swap_last_two(Builder& b, ValueId x) {
    std::vector<int64_t> perm(b.type(x).shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    if (perm.size() >= 2) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return b.emit("Transpose", {x}, {{"perm", perm}});
}

// As the operator's definition: uint8 with a range that contains zero.
Codes quantise_by_range(Builder& b, ValueId x) {
    const ValueId zero = b.floats({}, {0.0f});
    const ValueId steps = b.floats({}, {255.0f});
    const Attributes all{{"keepdims", int64_t{0}}};
    const ValueId high = b.emit("Max", {b.emit("ReduceMax", {x}, all), zero});
    const ValueId low = b.emit("Min", {b.emit("ReduceMin", {x}, all), zero});
    const ValueId scale = b.emit("Div", {b.emit("Sub", {high, low}), steps});
    const ValueId shifted = b.emit("Div", {b.emit("Sub", {zero, low}), scale});
    const ValueId clipped = b.emit("Clip", {b.emit("Round", {shifted}), zero, steps});
    const ValueId zero_point = b.emit("Cast", {clipped}, {{"to", std::string("u8")}});
    return {b.emit("QuantizeLinear", {x, scale, zero_point}), scale, zero_point};
}

const pb::AttributeProto* OnnxNode::find(std::string_view key) const {
    for (const auto& attribute : proto.attribute())
        if (attribute.name() == key) return &attribute;
    return nullptr;
}

ValueId cast_to(Builder& b, ValueId x, DataType type) {
    if (b.type(x).data_type == type) return x;
    return b.emit("Cast", {x}, {{"to", std::string(graph::short_name(type))}});
}

// A number of the type of `like`.
ValueId number(Builder& b, float value, ValueId like) {
    return cast_to(b, b.floats({}, {value}), b.type(like).data_type);
}

bool can_lower(std::string_view domain, std::string_view op) {
    return (domain.empty() && op == "If") || find_handler(domain, op) != nullptr;
}

std::vector<LoweredOperator> lowered_operators() {
    // Of some names the graph has the operator of com.microsoft.
    const auto is_another = [](const LowerRow& row) {
        const LowerRow* const ms = row.domain.empty() ? find_row(microsoft, row.op) : nullptr;
        return ms && ms->handler == keep;
    };
    std::vector<LoweredOperator> operators;
    for (const auto table : tables)
        for (const LowerRow& row : table())
            operators.push_back({row.domain, row.op, graph::find_op(row.op) && !is_another(row)});
    return operators;
}

void lower(Builder& builder, ModelFile& file, OnnxNode node) {
    if (refuse_unknown_attributes(builder, node)) return;
    graph::Node as_it_is;
    as_it_is.name = builder.node();
    as_it_is.kind = node.proto.op_type();
    as_it_is.attributes = node.attributes;
    if (auto ok = graph::check_attribute_values(as_it_is, graph::Form::onnx); !ok)
        return builder.fail(ok.error());
    // What ONNX has no schema of, which counts the inputs.
    if (!node.domain.empty() && node.input(0) == graph::none)
        return builder.fail(ErrorCode::bad_model, "(" + node.proto.op_type() + ") lacks input 0");
    const Handler handler = find_handler(node.domain, node.proto.op_type());
    handler(builder, file, node);
}

}  // namespace vartml::onnx
