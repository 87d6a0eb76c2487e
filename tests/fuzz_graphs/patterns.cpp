// SPDX-License-Identifier: Apache-2.0
// Groups of nodes as exporters write them: what the passes rewrite.
#include <algorithm>

#include "tests/fuzz_graphs/draft.h"

namespace vartml::fuzz_graphs {
namespace {

const Tensor* activation(Draft& d, const Tensor* x) {
    if (!x) return nullptr;
    const auto scalar = [&](double v) { return d.numbers(x->type(), {}, {v}).name; };
    switch (d.random.between(0, 9)) {
        case 0:
            return d.one({"Relu", {x->name}});
        case 1: {
            Request request{"Clip", {x->name}};
            request.parameters = {{"min", {0}}, {"max", {6}}};
            return d.one(request);
        }
        case 2:
            return d.one({"LeakyRelu", {x->name}, {{"alpha", 0.1F}}});
        case 3: {
            const auto* gate = d.one({"Sigmoid", {x->name}});
            return gate ? d.one({"Mul", {x->name, gate->name}}) : nullptr;
        }
        case 4: {  // HardSwish in parts
            const auto* up = d.one({"Add", {x->name, scalar(3)}});
            if (!up) return nullptr;
            Request request{"Clip", {up->name}};
            request.parameters = {{"min", {0}}, {"max", {6}}};
            const auto* cut = d.one(request);
            const auto* times = cut ? d.one({"Mul", {x->name, cut->name}}) : nullptr;
            return times ? d.one({"Div", {times->name, scalar(6)}}) : nullptr;
        }
        case 5: {  // Mish in parts
            const auto* soft = d.one({"Softplus", {x->name}});
            const auto* gate = soft ? d.one({"Tanh", {soft->name}}) : nullptr;
            return gate ? d.one({"Mul", {x->name, gate->name}}) : nullptr;
        }
        case 6: {  // Gelu in parts
            const auto* part = d.one({"Div", {x->name, scalar(1.41421356)}});
            const auto* erf = part ? d.one({"Erf", {part->name}}) : nullptr;
            const auto* more = erf ? d.one({"Add", {erf->name, scalar(1)}}) : nullptr;
            const auto* times = more ? d.one({"Mul", {x->name, more->name}}) : nullptr;
            return times ? d.one({"Mul", {times->name, scalar(0.5)}}) : nullptr;
        }
        case 7:
            return d.one({"HardSigmoid", {x->name}});
        case 8:
            return d.one(
                {d.random.pick<std::string>({"Tanh", "Sigmoid", "Elu", "Softplus"}), {x->name}});
        default:
            return x;
    }
}

const Tensor* batch_norm(Draft& d, const Tensor& x) {
    const Ints channels = {x.size(1)};
    return d.one(
        {"BatchNormalization",
         {x.name, d.constant(x.type(), channels, 0.3, 2).name, d.constant(x.type(), channels).name,
          d.constant(x.type(), channels).name, d.constant(x.type(), channels, 0.2, 3).name}});
}

// A convolution that keeps height and width where the stride is 1.
const Tensor* conv(Draft& d, const Tensor& x, int64_t filters, int64_t kernel, int64_t stride = 1) {
    const bool depthwise = filters == x.size(1) && d.random.chance(0.3);
    const int64_t groups = depthwise ? filters : 1;
    const int64_t pad = kernel / 2;
    if (x.size(2) + 2 * pad < kernel || x.size(3) + 2 * pad < kernel) return nullptr;
    Request request{
        "Conv", {x.name, d.weights(x.type(), {filters, x.size(1) / groups, kernel, kernel}).name}};
    if (d.random.chance(0.6)) request.inputs.push_back(d.constant(x.type(), {filters}, -1, 1).name);
    request.attributes = {
        {"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}, {"group", groups}};
    return d.one(request);
}

const Tensor& picture(Draft& d) {
    for (int attempt = 0; attempt < 3; ++attempt) {
        const Tensor& x = d.operand(f32, 4, 4);
        if (!x.is_empty()) return x;
    }
    return d.input(DataType::float32, {1, 3, 8, 8});
}

int64_t channels(Draft& d) {
    return d.random.chance(0.4) ? d.random.pick<int64_t>({4, 8, 16, 32}) : d.random.between(1, 11);
}

void conv_block(Draft& d) {
    const Tensor* x = &picture(d);
    const bool residual = d.random.chance(0.5);
    const int64_t stride = residual || d.random.chance(0.7) ? 1 : 2;
    const Tensor* y = conv(d, *x, residual ? x->size(1) : channels(d),
                           d.random.pick<int64_t>({1, 3, 3, 5}), stride);
    if (y && d.random.chance(0.5)) y = batch_norm(d, *y);
    const bool first = d.random.chance(0.5);
    if (first) y = activation(d, y);
    if (y && residual && y->shape() == x->shape())
        y = d.random.chance(0.5) ? d.one({"Add", {x->name, y->name}})
                                 : d.one({"Add", {y->name, x->name}});
    if (!first || d.random.chance(0.3)) activation(d, y);
}

// Several that read one, joined; parts of the result go on.
void concat_block(Draft& d) {
    const Tensor& x = picture(d);
    Request request{"Concat", {}, {{"axis", int64_t{1}}}};
    if (d.random.chance(0.5)) request.inputs.push_back(x.name);
    for (int64_t branches = d.random.between(1, 3); branches > 0; --branches) {
        const Tensor* y = conv(d, x, channels(d), d.random.chance(0.5) ? 1 : 3);
        if (d.random.chance(0.5)) y = activation(d, y);
        if (d.random.chance(0.2) && y)
            y = d.one(
                {"MaxPool", {y->name}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}});
        if (!y) return;
        request.inputs.push_back(y->name);
        if (d.random.chance(0.1)) request.inputs.push_back(y->name);
    }
    const Tensor* joined = d.one(request);
    if (!joined) return;
    if (d.random.chance(0.3)) {
        Request cut{"Slice", {joined->name}};
        const auto from = static_cast<double>(d.random.between(0, joined->size(1) - 1));
        cut.parameters = {{"starts", {from}},
                          {"ends",
                           {static_cast<double>(
                               d.random.between(static_cast<int64_t>(from) + 1, joined->size(1)))}},
                          {"axes", {1}}};
        joined = d.one(cut);
    }
    if (joined && d.random.chance(0.6))
        activation(d, conv(d, *joined, channels(d), d.random.chance(0.5) ? 1 : 3));
}

// To channels last, something there, and back.
void turned(Draft& d) {
    const Tensor& x = picture(d);
    const Tensor* y = d.one({"Transpose", {x.name}, {{"perm", Ints{0, 2, 3, 1}}}});
    if (!y) return;
    switch (d.random.between(0, 4)) {
        case 0:
            y = d.one({"Softmax", {y->name}, {{"axis", int64_t{-1}}}});
            break;
        case 1:
            y = d.one({"Add", {y->name, d.constant(y->type(), {y->shape().back()}).name}});
            break;
        case 2:
            y = d.one(
                {"MatMul", {y->name, d.weights(y->type(), {y->shape().back(), channels(d)}).name}});
            break;
        case 3:
            y = activation(d, y);
            break;
        default:
            break;
    }
    if (y && y->rank() == 4 && d.random.chance(0.7))
        y = d.one({"Transpose", {y->name}, {{"perm", Ints{0, 3, 1, 2}}}});
    if (y && d.random.chance(0.4)) {
        Request flat{"Reshape", {y->name}};
        flat.parameters = {
            {"shape", {static_cast<double>(y->size(0)), static_cast<double>(y->size(1)), -1}}};
        d.one(flat);
    }
}

// Strided slices joined, as the first layer of detectors, and a convolution.
void focus(Draft& d) {
    const int64_t block = d.random.chance(0.8) ? 2 : 3;
    const Tensor* x = &picture(d);
    if (x->size(2) % block || x->size(3) % block)
        x = &d.input(DataType::float32, {1, d.random.between(1, 4), block * d.random.between(1, 5),
                                         block * d.random.between(1, 5)});
    const Tensor* joined = nullptr;
    if (d.random.chance(0.3)) {
        joined = d.one({"SpaceToDepth", {x->name}, {{"blocksize", block}}});
    } else if (d.opset >= 10) {
        std::vector<std::string> pieces;
        for (int64_t i = 0; i < block; ++i)
            for (int64_t j = 0; j < block; ++j) {
                Request cut{"Slice", {x->name}};
                cut.parameters = {
                    {"starts", {static_cast<double>(i), static_cast<double>(j)}},
                    {"ends", {1e6, 1e6}},
                    {"axes", {2, 3}},
                    {"steps", {static_cast<double>(block), static_cast<double>(block)}}};
                const auto* piece = d.one(cut);
                if (!piece) return;
                pieces.push_back(piece->name);
            }
        d.random.shuffle(pieces);
        joined = d.one({"Concat", pieces, {{"axis", int64_t{1}}}});
    }
    if (joined)
        activation(d, conv(d, *joined, channels(d), d.random.pick<int64_t>({1, 3, 3}),
                           d.random.chance(0.8) ? 1 : 2));
}

// Zeros around, then a window.
void padded(Draft& d) {
    const Tensor* x = &picture(d);
    if (d.random.chance(0.4)) x = d.one({"Relu", {x->name}});
    if (!x) return;
    Request pad{"Pad", {x->name}};
    std::vector<double> pads(8, 0);
    for (const size_t i : {2, 3, 6, 7}) pads[i] = static_cast<double>(d.random.between(0, 2));
    if (d.random.chance(0.1)) pads[1] = 1;
    pad.parameters = {{"pads", pads}};
    if (d.random.chance(0.15)) pad.parameters.emplace_back("value", std::vector<double>{0.5});
    const Tensor* y = d.one(pad);
    if (!y) return;
    const int64_t k = std::min({d.random.between(1, 3), y->size(2), y->size(3)});
    const Ints kernel = {k, k}, strides = {d.random.between(1, 2), d.random.between(1, 2)};
    Ints more(4, 0);
    if (d.random.chance(0.3)) more = {0, k / 2, k / 2, 0};
    const std::string kind = d.random.pick<std::string>({"Conv", "Conv", "MaxPool", "AveragePool"});
    Request request{
        kind, {y->name}, {{"kernel_shape", kernel}, {"strides", strides}, {"pads", more}}};
    if (kind == "Conv")
        request.inputs.push_back(d.weights(y->type(), {channels(d), y->size(1), k, k}).name);
    if (kind == "AveragePool" && more == Ints(4, 0) && d.random.chance(0.5))
        request.attributes.emplace_back("count_include_pad", int64_t{1});
    activation(d, d.one(request));
}

// Factors and terms per channel, or of one number, around a convolution.
const Tensor* affine(Draft& d, const Tensor* x) {
    for (int64_t count = d.random.between(1, 3); x && count > 0; --count) {
        const int64_t c = x->size(1);
        const Ints shape = d.random.pick<Ints>(
            {{c, 1, 1}, {1, c, 1, 1}, {}, {1}, {1, 1, 1, 1}, {x->shape().back()}});
        const std::string kind = d.random.pick<std::string>({"Mul", "Add", "Sub", "Div"});
        const bool positive = d.random.chance(0.6);
        const Tensor& by =
            d.constant(x->type(), shape, kind == "Div" || positive ? 0.4 : -1.5, 1.5);
        const bool turned = d.random.chance(0.25) && kind != "Div";
        x = turned ? d.one({kind, {by.name, x->name}}) : d.one({kind, {x->name, by.name}});
        if (d.random.chance(0.2)) x = activation(d, x);
    }
    return x;
}
void scaled(Draft& d) {
    const Tensor* x = &picture(d);
    if (d.random.chance(0.6)) x = affine(d, x);
    if (x && x->rank() == 4)
        x = conv(d, *x, channels(d), d.random.pick<int64_t>({1, 3}), d.random.between(1, 2));
    if (d.random.chance(0.3)) x = activation(d, x);
    if (d.random.chance(0.8)) affine(d, x);
}

void resized(Draft& d) {
    const Tensor* x = &picture(d);
    for (int64_t count = d.random.between(1, 2); x && count > 0; --count) {
        if (d.opset < 11 || x->size(2) > 20) return;
        Request up{"Resize",
                   {x->name, d.opset >= 13 ? "" : d.numbers(DataType::float32, {0}, {}).name}};
        const double s = d.random.pick<double>({2, 2, 2, 0.5, 1});
        // Of the length that corners are aligned in, ONNX Runtime drops the fraction.
        const std::string way =
            s < 1 ? "half_pixel"
                  : d.random.pick<std::string>({"asymmetric", "half_pixel", "align_corners"});
        up.attributes = {
            {"mode", d.random.pick<std::string>({"nearest", "nearest", "linear"})},
            {"coordinate_transformation_mode", way},
            {"nearest_mode", d.random.pick<std::string>({"floor", "round_prefer_floor"})}};
        up.parameters = {{"scales", {1, 1, s, s}}};
        const Tensor* y = d.one(up);
        if (!y || y->is_empty()) return;
        x = d.random.chance(0.6) ? conv(d, *y, channels(d), d.random.chance(0.5) ? 1 : 3) : y;
    }
    if (x && d.random.chance(0.5)) {
        const Tensor& skip = d.input(x->type(), x->shape());
        d.one({"Concat", {x->name, skip.name}, {{"axis", int64_t{1}}}});
    }
}

const Tensor* reshaped(Draft& d, const Tensor* x, const Ints& shape) {
    if (!x) return nullptr;
    Request request{"Reshape", {x->name}};
    request.parameters = {{"shape", {shape.begin(), shape.end()}}};
    return d.one(request);
}

// Pixel shuffles, their inverse and shuffles of channels.
void shuffled(Draft& d) {
    const int64_t b = 2, c = d.random.between(1, 4), h = d.random.between(1, 5),
                  w = d.random.between(1, 5), n = d.random.between(1, 2);
    const Tensor* x = nullptr;
    Ints perm, to;
    switch (d.random.between(0, 3)) {
        case 0:
            x = reshaped(d, &d.input(DataType::float32, {n, c * b * b, h, w}), {n, c, b, b, h, w});
            perm = {0, 1, 4, 2, 5, 3}, to = {n, c, h * b, w * b};
            break;
        case 1:
            x = reshaped(d, &d.input(DataType::float32, {n, c * b * b, h, w}), {n, b, b, c, h, w});
            perm = {0, 3, 4, 1, 5, 2}, to = {n, c, h * b, w * b};
            break;
        case 2:
            x = reshaped(d, &d.input(DataType::float32, {n, c, h * b, w * b}), {n, c, h, b, w, b});
            perm = d.random.chance(0.5) ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4},
            to = {n, c * b * b, h, w};
            break;
        default:
            x = reshaped(d, &d.input(DataType::float32, {n, c * b, h, w}), {n, b, c, h, w});
            perm = {0, 2, 1, 3, 4}, to = {n, c * b, h, w};
            break;
    }
    if (x) x = d.one({"Transpose", {x->name}, {{"perm", perm}}});
    x = reshaped(d, x, to);
    if (x && d.random.chance(0.6))
        activation(d, conv(d, *x, channels(d), d.random.chance(0.5) ? 1 : 3));
}

// A row of biases behind a product, and what stands around it.
void dense(Draft& d) {
    const Tensor* x = &picture(d);
    if (d.random.chance(0.5)) {
        x = d.one({d.random.chance(0.5) ? "GlobalAveragePool" : "GlobalMaxPool", {x->name}});
        if (!x) return;
    }
    x = d.one({"Flatten", {x->name}});
    if (!x) return;
    for (int64_t layers = d.random.between(1, 2); x && layers > 0; --layers) {
        const int64_t columns = d.random.between(1, 20);
        x = d.one({"MatMul", {x->name, d.weights(x->type(), {x->size(1), columns}).name}});
        if (!x) return;
        const Tensor& bias = d.constant(x->type(), {columns}, -1, 1);
        x = d.random.chance(0.5) ? d.one({"Add", {x->name, bias.name}})
                                 : d.one({"Add", {bias.name, x->name}});
        x = activation(d, x);
    }
    if (x && d.random.chance(0.3)) d.one({"Softmax", {x->name}, {{"axis", int64_t{-1}}}});
}

void attention(Draft& d) {
    const int64_t n = d.random.between(1, 2), heads = d.random.between(1, 3),
                  length = d.random.between(1, 7), depth = d.random.between(1, 8);
    const Ints shape = {n, length, heads * depth};
    const Tensor* found = d.find(DataType::float32, shape);
    const Tensor& x = found ? *found : d.input(DataType::float32, shape);
    const Tensor* parts[3] = {};
    for (int i = 0; i < 3; ++i) {
        const Tensor* p =
            d.one({"MatMul", {x.name, d.weights(x.type(), {heads * depth, heads * depth}).name}});
        p = reshaped(d, p, {n, length, heads, depth});
        if (!p) return;
        parts[i] = d.one(
            {"Transpose", {p->name}, {{"perm", i == 1 ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}}});
        if (!parts[i]) return;
    }
    const Tensor* scores = d.one({"MatMul", {parts[0]->name, parts[1]->name}});
    if (scores) scores = d.one({"Mul", {scores->name, d.numbers(x.type(), {}, {0.5}).name}});
    if (scores) scores = d.one({"Softmax", {scores->name}, {{"axis", int64_t{-1}}}});
    const Tensor* y = scores ? d.one({"MatMul", {scores->name, parts[2]->name}}) : nullptr;
    if (y) y = d.one({"Transpose", {y->name}, {{"perm", Ints{0, 2, 1, 3}}}});
    y = reshaped(d, y, shape);
    if (y) d.one({"Add", {x.name, y->name}});
}

// Moments over the last axis, in parts.
void normalised(Draft& d) {
    const Tensor& x = d.operand(f32, 2, 4);
    if (x.is_empty() || d.opset >= 18) return;
    const auto mean = [&](const Tensor* t) {
        return t ? d.one({"ReduceMean", {t->name}, {{"axes", Ints{-1}}}}) : nullptr;
    };
    const auto* m = mean(&x);
    const auto* centred = m ? d.one({"Sub", {x.name, m->name}}) : nullptr;
    if (!centred) return;
    const auto* squares = d.one({"Mul", {centred->name, centred->name}});
    const auto* variance = mean(squares);
    const auto* safe =
        variance ? d.one({"Add", {variance->name, d.numbers(x.type(), {}, {0.01}).name}}) : nullptr;
    const auto* spread = safe ? d.one({"Sqrt", {safe->name}}) : nullptr;
    if (spread) affine(d, d.one({"Div", {centred->name, spread->name}}));
}

// Gates by the mean of each channel.
void squeezed(Draft& d) {
    const Tensor& x = picture(d);
    const Tensor* gate =
        d.random.chance(0.6)
            ? d.one({"GlobalAveragePool", {x.name}})
            : (d.opset < 18 ? d.one({"ReduceMean", {x.name}, {{"axes", Ints{2, 3}}}}) : nullptr);
    if (!gate) return;
    gate = activation(d, conv(d, *gate, channels(d), 1));
    if (gate) gate = conv(d, *gate, x.size(1), 1);
    if (gate) gate = d.one({d.random.chance(0.5) ? "Sigmoid" : "HardSigmoid", {gate->name}});
    if (gate) d.one({"Mul", {x.name, gate->name}});
}

// A split of channels whose parts go different ways.
void divided(Draft& d) {
    const Tensor* x = &picture(d);
    if (d.random.chance(0.6)) x = conv(d, *x, 2 * d.random.between(1, 6), 1);
    if (!x || x->size(1) % 2) return;
    const auto half = static_cast<double>(x->size(1) / 2);
    Request request{"Split", {x->name}, {{"axis", int64_t{1}}}};
    request.parameters = {{"split", {half, half}}};
    request.outputs = 2;
    const auto parts = d.add(request);
    if (parts.empty()) return;
    const Tensor* y = conv(d, *parts[0], parts[0]->size(1), 3);
    y = activation(d, y);
    if (!y) return;
    if (d.random.chance(0.5)) y = d.one({"Add", {parts[0]->name, y->name}});
    if (y) d.one({"Concat", {x->name, y->name, parts[1]->name}, {{"axis", int64_t{1}}}});
}

// Heads of a detector: flattened, joined, some of it changed.
void heads(Draft& d) {
    const int64_t columns = d.random.between(3, 9);
    std::vector<std::string> parts;
    for (int64_t scale = d.random.between(1, 3); scale > 0; --scale) {
        const Tensor& x = picture(d);
        if (x.size(0) != 1) return;
        const Tensor* y = conv(d, x, columns, 1);
        if (!y) return;
        y = reshaped(d, y, {1, columns, -1});
        if (y && d.random.chance(0.3)) y = d.one({"Sigmoid", {y->name}});
        if (!y) return;
        parts.push_back(y->name);
    }
    const Tensor* all = d.one({"Concat", parts, {{"axis", int64_t{2}}}});
    if (all && d.random.chance(0.7))
        all = d.one({"Transpose", {all->name}, {{"perm", Ints{0, 2, 1}}}});
    if (!all) return;
    Request split{"Split", {all->name}, {{"axis", int64_t{2}}}};
    const auto size = static_cast<double>(all->size(2));
    if (size < 3) return;
    split.parameters = {{"split", {2, size - 2}}};
    split.outputs = 2;
    const auto cut = d.add(split);
    if (cut.empty()) return;
    const Tensor* boxes = d.one({"Mul", {cut[0]->name, d.numbers(all->type(), {}, {8}).name}});
    const Tensor* scores = d.one({"Sigmoid", {cut[1]->name}});
    if (boxes && scores && d.random.chance(0.7))
        d.one({"Concat", {boxes->name, scores->name}, {{"axis", int64_t{2}}}});
}

// A chain of moves.
void moved(Draft& d) {
    for (int64_t count = d.random.between(2, 5); count > 0; --count)
        add_operator(d, d.random.pick<std::string>({"Transpose", "Reshape", "Slice", "Concat",
                                                    "Split", "Squeeze", "Unsqueeze", "Pad",
                                                    "Gather", "Expand", "Tile", "Flatten"}));
}

using Pattern = void (*)(Draft&);
constexpr Pattern patterns[] = {conv_block, conv_block, concat_block, concat_block, turned,
                                focus,      padded,     scaled,       scaled,       resized,
                                shuffled,   dense,      attention,    normalised,   squeezed,
                                divided,    heads,      moved};

}  // namespace

void add_pattern(Draft& draft) {
    patterns[draft.random.index(std::size(patterns))](draft);
}

}  // namespace vartml::fuzz_graphs
