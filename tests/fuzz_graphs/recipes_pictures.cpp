// SPDX-License-Identifier: Apache-2.0
// Recipes: operators with windows, and those that sample pictures.
#include <algorithm>

#include "tests/fuzz_graphs/draft.h"

namespace vartml::fuzz_graphs {
namespace {

// Kernel, strides, dilations and paddings that leave at least one position per axis.
struct Window {
    Ints kernel, strides, dilations, pads;
    std::string auto_pad;
};

Window window_for(Draft& d, const Ints& shape, bool dilates, bool pads_within_kernel) {
    const size_t axes = shape.size() - 2;
    Window w;
    const bool same_kernel = d.random.chance(0.6);
    const bool centred = d.random.chance(0.4);
    const int64_t stride = d.random.chance(0.6) ? 1 : d.random.between(1, 4);
    w.pads.assign(2 * axes, 0);
    for (size_t a = 0; a < axes; ++a) {
        const int64_t size = shape[a + 2];
        int64_t k = d.random.chance(0.4) ? 3 : d.random.between(1, 6);
        if (same_kernel && a > 0) k = w.kernel[0];
        int64_t dilation = dilates && d.random.chance(0.25) ? d.random.between(1, 3) : 1;
        int64_t before = 0, after = 0;
        if (centred) {
            before = after = (k - 1) * dilation / 2;
        } else if (d.random.chance(0.5)) {
            before = d.random.between(0, k - 1), after = d.random.between(0, k - 1);
        }
        if (pads_within_kernel) before = std::min(before, k - 1), after = std::min(after, k - 1);
        while ((k - 1) * dilation + 1 > size + before + after) {
            if (dilation > 1)
                --dilation;
            else
                --k, before = std::min(before, k - 1), after = std::min(after, k - 1);
        }
        w.kernel.push_back(k);
        w.dilations.push_back(dilation);
        w.strides.push_back(d.random.chance(0.7) ? stride : d.random.between(1, 5));
        w.pads[a] = before, w.pads[a + axes] = after;
    }
    if (d.random.chance(0.12))
        w.auto_pad = d.random.pick<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"});
    const auto reach = [&](size_t a) { return (w.kernel[a] - 1) * w.dilations[a] + 1; };
    if (w.auto_pad == "VALID")
        for (size_t a = 0; a < axes; ++a)
            if (reach(a) > shape[a + 2]) w.auto_pad.clear();
    // ONNX Runtime forgets the dilation of pools then, and moves windows smaller than the stride.
    for (size_t a = 0; a < axes; ++a)
        if ((pads_within_kernel && w.dilations[a] > 1) || reach(a) < w.strides[a])
            w.auto_pad.clear();
    return w;
}

void write_window(Draft& d, const Window& w, Request& request, bool has_kernel, bool dilates) {
    if (has_kernel) request.attributes.emplace_back("kernel_shape", w.kernel);
    const auto all = [](const Ints& values, int64_t v) {
        return std::ranges::all_of(values, [&](int64_t x) { return x == v; });
    };
    if (!all(w.strides, 1) || d.random.chance(0.5))
        request.attributes.emplace_back("strides", w.strides);
    if (dilates && (!all(w.dilations, 1) || d.random.chance(0.3)))
        request.attributes.emplace_back("dilations", w.dilations);
    if (!w.auto_pad.empty())
        request.attributes.emplace_back("auto_pad", w.auto_pad);
    else if (!all(w.pads, 0) || d.random.chance(0.3))
        request.attributes.emplace_back("pads", w.pads);
}

int64_t divisor(Draft& d, int64_t number) {
    Ints all;
    for (int64_t i = 1; i <= number; ++i)
        if (number % i == 0) all.push_back(i);
    return d.random.pick(all);
}

int64_t groups_of(Draft& d, int64_t channels) {
    if (d.random.chance(0.6)) return 1;
    return d.random.chance(0.6) ? channels : divisor(d, channels);
}

int64_t filters(Draft& d) {
    return d.random.chance(0.25) ? d.random.pick<int64_t>({8, 13, 16, 17, 24, 32, 40})
                                 : d.random.between(1, 9);
}

bool conv(Draft& d, const std::string& kind) {
    const Tensor& x = d.picture(d.random.chance(0.9) ? f32 : floats);
    if (x.type() == DataType::bf16) return false;
    const int64_t groups = groups_of(d, x.size(1));
    const int64_t per_group = groups == 1 ? filters(d) : d.random.between(1, 3);
    const Window w = window_for(d, x.shape(), true, false);
    Ints shape = {groups * per_group, x.size(1) / groups};
    shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
    const bool is_computed = d.random.chance(0.06);
    const Tensor& weights =
        is_computed ? d.second(x.type(), shape, -0.5, 0.5) : d.weights(x.type(), shape);
    Request request{kind, {x.name, weights.name}};
    if (d.random.chance(0.6)) request.inputs.push_back(d.second(x.type(), {shape[0]}, -1, 1).name);
    write_window(d, w, request, d.random.chance(0.5), true);
    if (groups != 1 || d.random.chance(0.2)) request.attributes.emplace_back("group", groups);
    return d.one(request);
}

bool conv_transpose(Draft& d, const std::string& kind) {
    const Tensor& x = d.picture(f32);
    const int64_t groups = groups_of(d, x.size(1));
    const size_t axes = x.shape().size() - 2;
    Ints shape = {x.size(1), d.random.between(1, 4)}, kernel, strides, dilations, more,
         pads(2 * axes, 0);
    for (size_t a = 0; a < axes; ++a) {
        kernel.push_back(d.random.between(1, 4));
        strides.push_back(d.random.chance(0.4) ? 2 : d.random.between(1, 3));
        dilations.push_back(d.random.chance(0.2) ? 2 : 1);
        more.push_back(d.random.chance(0.3) ? d.random.between(0, strides[a] - 1) : 0);
        const int64_t whole =
            (x.shape()[a + 2] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1;
        if (d.random.chance(0.4))
            pads[a] = std::min(d.random.between(0, kernel[a] - 1), (whole - 1) / 2);
        if (d.random.chance(0.4))
            pads[a + axes] = std::min(d.random.between(0, kernel[a] - 1), (whole - 1) / 2);
    }
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    Request request{kind, {x.name, d.weights(x.type(), shape).name}};
    if (d.random.chance(0.5))
        request.inputs.push_back(d.second(x.type(), {shape[1] * groups}, -1, 1).name);
    request.attributes = {{"strides", strides}, {"group", groups}};
    if (std::ranges::count(dilations, 2)) request.attributes.emplace_back("dilations", dilations);
    if (d.random.chance(0.5)) request.attributes.emplace_back("kernel_shape", kernel);
    // Of kernels below the stride ONNX Runtime has a smaller result than input times stride.
    bool covers = true;
    for (size_t a = 0; a < axes; ++a) covers = covers && kernel[a] >= strides[a];
    if (covers && d.random.chance(0.15)) {
        request.attributes.emplace_back(
            "auto_pad", d.random.pick<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"}));
    } else {
        request.attributes.emplace_back("pads", pads);
        if (std::ranges::any_of(more, [](int64_t v) { return v > 0; }))
            request.attributes.emplace_back("output_padding", more);
    }
    return d.one(request);
}

bool deform_conv(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 4, 4);
    if (x.is_empty()) return false;
    const Window w = window_for(d, x.shape(), true, false);
    const int64_t offsets = d.random.chance(0.6) ? 1 : divisor(d, x.size(1));
    Ints out = {x.size(0), 0, 0, 0};
    for (size_t a = 0; a < 2; ++a)
        out[a + 2] = (x.shape()[a + 2] + w.pads[a] + w.pads[a + 2] -
                      (w.kernel[a] - 1) * w.dilations[a] - 1) /
                         w.strides[a] +
                     1;
    const int64_t points = offsets * w.kernel[0] * w.kernel[1];
    Ints shape = {d.random.between(1, 5), x.size(1), w.kernel[0], w.kernel[1]};
    out[1] = 2 * points;
    Request request{
        kind,
        {x.name, d.weights(x.type(), shape).name, d.input(DataType::float32, out, -1.5, 1.5).name}};
    if (d.random.chance(0.6)) {
        request.inputs.push_back(
            d.random.chance(0.5) ? d.constant(DataType::float32, {shape[0]}).name : "");
        out[1] = points;
        if (d.random.chance(0.5))
            request.inputs.push_back(d.input(DataType::float32, out, 0, 1).name);
    }
    request.attributes = {{"pads", w.pads},
                          {"strides", w.strides},
                          {"dilations", w.dilations},
                          {"offset_group", offsets}};
    return d.one(request);
}

bool pool(Draft& d, const std::string& kind) {
    const bool is_max = kind == "MaxPool";
    Types types = f32;
    if (d.random.chance(0.1)) types.push_back(DataType::fp16);
    if (is_max && d.opset >= 12 && d.random.chance(0.2)) types = codes;
    const Tensor& x = d.picture(types);
    const bool dilates = is_max ? d.opset >= 10 : d.opset >= (kind == "LpPool" ? 18 : 19);
    const Window w = window_for(d, x.shape(), dilates, true);
    Request request{kind, {x.name}};
    write_window(d, w, request, true, dilates);
    const bool has_ceil = d.opset >= (kind == "LpPool" ? 18 : 10);
    const bool ceil = has_ceil && d.random.chance(0.25) && w.auto_pad.empty();
    if (ceil) request.attributes.emplace_back("ceil_mode", int64_t{1});
    // ONNX Runtime 1.21 takes the padding of another side where sides differ, and counts what
    // hangs over because of ceil_mode as padding.
    const bool same_pads =
        std::ranges::all_of(w.pads, [&](int64_t pad) { return pad == w.pads[0]; });
    if (kind == "AveragePool" && same_pads && !ceil && d.random.chance(0.6))
        request.attributes.emplace_back("count_include_pad", d.random.between(0, 1));
    if (kind == "LpPool" && d.random.chance(0.5))
        request.attributes.emplace_back("p", d.random.between(1, 3));
    if (is_max && d.random.chance(0.12)) {
        request.outputs = 2;
        if (d.random.chance(0.3)) request.attributes.emplace_back("storage_order", int64_t{1});
        return !d.add(request).empty();
    }
    return d.one(request);
}

bool global_pool(Draft& d, const std::string& kind) {
    const Tensor& x = d.picture(f32);
    Request request{kind, {x.name}};
    if (kind == "GlobalLpPool" && d.random.chance(0.5))
        request.attributes = {{"p", d.random.between(1, 3)}};
    return d.one(request);
}

bool max_unpool(Draft& d, const std::string& kind) {
    // Of odd sizes it is nobody's promise in what shape the indices count.
    const Tensor& x = d.input(
        DataType::float32,
        {1, d.random.between(1, 4), 2 * d.random.between(1, 5), 2 * d.random.between(1, 5)});
    const test::TinyOnnx::Ints two = {2, 2};
    const auto pooled =
        d.add({"MaxPool", {x.name}, {{"kernel_shape", two}, {"strides", two}}, {}, 2});
    if (pooled.empty()) return false;
    return d.one(
        {kind, {pooled[0]->name, pooled[1]->name}, {{"kernel_shape", two}, {"strides", two}}});
}

bool local_response(Draft& d, const std::string& kind) {
    const Tensor& x = d.picture(f32);
    return d.one({kind,
                  {x.name},
                  {{"size", d.random.between(1, 5)},
                   {"alpha", static_cast<float>(d.random.real(0.0001, 0.5))},
                   {"beta", static_cast<float>(d.random.real(0.3, 0.9))}}});
}

bool per_channel_norm(Draft& d, const std::string& kind) {
    const bool grouped = kind == "GroupNormalization";
    if (!d.has(kind)) return false;
    const Tensor& x = d.picture(f32);
    const int64_t groups = grouped ? divisor(d, x.size(1)) : 1;
    const int64_t channels = grouped && d.opset < 21 ? groups : x.size(1);
    Request request{kind,
                    {x.name, d.constant(x.type(), {channels}, 0.2, 2).name,
                     d.constant(x.type(), {channels}).name}};
    if (kind == "BatchNormalization") {
        request.inputs.push_back(d.constant(x.type(), {channels}).name);
        request.inputs.push_back(d.constant(x.type(), {channels}, 0.1, 3).name);
    }
    request.attributes = {{"epsilon", static_cast<float>(d.random.real(1e-5, 1e-2))}};
    if (grouped) request.attributes.emplace_back("num_groups", groups);
    return d.one(request);
}

bool depth_and_space(Draft& d, const std::string& kind) {
    const int64_t block = d.random.between(2, 3);
    const bool is_depth = kind == "DepthToSpace";
    const Tensor* x = &d.operand(f32, 4, 4);
    const int64_t area = block * block;
    const bool fits =
        is_depth ? x->size(1) % area == 0 : x->size(2) % block == 0 && x->size(3) % block == 0;
    if (x->is_empty() || !fits) {
        Ints shape = {1, d.random.between(1, 4), d.random.between(1, 5), d.random.between(1, 5)};
        if (is_depth)
            shape[1] *= area;
        else
            shape[2] *= block, shape[3] *= block;
        x = &d.input(DataType::float32, shape);
    }
    Request request{kind, {x->name}, {{"blocksize", block}}};
    if (is_depth && d.opset >= 11 && d.random.chance(0.6))
        request.attributes.emplace_back("mode", d.random.pick<std::string>({"DCR", "CRD"}));
    return d.one(request);
}

bool resize(Draft& d, const std::string& kind) {
    const Tensor& x = d.random.chance(0.85) ? d.operand(f32, 4, 4) : d.operand(codes, 4, 4);
    if (x.is_empty()) return false;
    const bool old = d.opset < 11;
    std::vector<double> scales = {1, 1, 1, 1};
    std::vector<std::string> ways = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                     "asymmetric"};
    if (d.opset >= 19) ways.push_back("half_pixel_symmetric");
    const std::string way = d.random.pick(ways);
    // Of the length that corners are aligned in, ONNX Runtime drops the fraction.
    const bool whole = d.random.chance(0.5) || way == "align_corners";
    for (size_t a : {2, 3})
        scales[a] = whole ? static_cast<double>(d.random.between(1, 3)) : d.random.real(0.4, 2.6);
    Request request{old && d.opset == 9 ? "Upsample" : kind, {x.name}};
    // Of blends that are whole numbers ONNX Runtime drops a fraction that rounding made.
    const bool is_float = x.type() == DataType::float32;
    std::string mode = is_float ? d.random.pick<std::string>({"nearest", "nearest", "linear"})
                                : std::string("nearest");
    if (!old && d.random.chance(0.15) && is_float) mode = "cubic";
    request.attributes = {{"mode", mode}};
    if (old) {
        for (double& s : scales) s = std::max(s, 1.0);
        request.parameters = {{"scales", scales}};
        return d.one(request);
    }
    request.attributes.emplace_back("coordinate_transformation_mode", way);
    if (mode == "nearest" && d.random.chance(0.7))
        request.attributes.emplace_back(
            "nearest_mode", d.random.pick<std::string>(
                                {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    if (mode == "cubic" && d.random.chance(0.5))
        request.attributes.emplace_back("cubic_coeff_a", -0.5F);
    if (d.opset >= 18 && mode != "nearest" && d.random.chance(0.2))
        request.attributes.emplace_back("antialias", int64_t{1});
    request.inputs.push_back(d.opset >= 13 ? ""
                                           : d.numbers(DataType::float32, {0}, {}).name);  // roi
    if (d.random.chance(0.5)) {
        request.parameters = {{"scales", scales}};
    } else {
        std::vector<double> sizes;
        for (size_t a = 0; a < 4; ++a)
            sizes.push_back(
                std::max(1.0, std::floor(static_cast<double>(x.shape()[a]) * scales[a])));
        if (d.opset < 13)
            request.inputs.push_back(d.numbers(DataType::float32, {0}, {}).name);  // scales
        request.parameters = {{"sizes", sizes}};
    }
    return d.one(request);
}

bool grid_sample(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 4, 4);
    if (x.is_empty()) return false;
    const std::string padding = d.random.pick<std::string>({"zeros", "border", "reflection"});
    // ONNX Runtime moves the position into the picture, not the elements around it.
    const bool may_be_cubic = padding == "zeros";
    const Tensor& grid =
        d.input(DataType::float32, {x.size(0), d.random.between(1, 6), d.random.between(1, 6), 2},
                -1.3, 1.3);
    const bool new_names = d.opset >= 20;
    Request request{kind, {x.name, grid.name}};
    request.attributes = {
        {"mode", may_be_cubic && d.random.chance(0.4) ? std::string(new_names ? "cubic" : "bicubic")
                 : d.random.chance(0.6) ? std::string(new_names ? "linear" : "bilinear")
                                        : std::string("nearest")},
        {"padding_mode", padding},
        {"align_corners", d.random.between(0, 1)}};
    return d.one(request);
}

bool affine_grid(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const int64_t n = d.random.between(1, 2);
    const Tensor& theta = d.input(DataType::float32, {n, 2, 3}, -1, 1);
    Request request{kind, {theta.name}, {{"align_corners", d.random.between(0, 1)}}};
    request.parameters = {{"size",
                           {static_cast<double>(n), 3, static_cast<double>(d.random.between(1, 6)),
                            static_cast<double>(d.random.between(1, 6))}}};
    return d.one(request);
}

bool regions(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const Tensor& x = d.operand(f32, 4, 4);
    if (x.is_empty()) return false;
    const int64_t count = d.random.between(1, 4);
    const bool is_align = kind == "RoiAlign";
    std::vector<double> boxes, frames;
    for (int64_t i = 0; i < count; ++i) {
        const double left = d.random.real(0, 4), top = d.random.real(0, 4);
        frames.push_back(static_cast<double>(d.random.between(0, x.size(0) - 1)));
        if (!is_align) boxes.push_back(frames.back());
        for (const double v : {left, top, left + d.random.real(1, 6), top + d.random.real(1, 6)})
            boxes.push_back(is_align ? v : std::floor(v));
    }
    const Tensor& rois = d.numbers(DataType::float32, {count, is_align ? 4 : 5}, boxes);
    Request request{kind, {x.name, rois.name}};
    if (!is_align) {
        request.attributes = {
            {"pooled_shape", Ints{d.random.between(1, 3), d.random.between(1, 3)}}};
        return d.one(request);
    }
    request.inputs.push_back(d.numbers(DataType::int64, {count}, frames).name);
    request.attributes = {{"output_height", d.random.between(1, 3)},
                          {"output_width", d.random.between(1, 3)},
                          {"sampling_ratio", d.random.between(0, 2)},
                          {"spatial_scale", static_cast<float>(d.random.real(0.5, 1))},
                          {"mode", d.random.pick<std::string>({"avg", "avg", "max"})}};
    if (d.opset >= 16 && d.random.chance(0.5))
        request.attributes.emplace_back(
            "coordinate_transformation_mode",
            d.random.pick<std::string>({"half_pixel", "output_half_pixel"}));
    return d.one(request);
}

bool col2im(Draft& d, const std::string& kind) {
    if (!d.has(kind)) return false;
    const int64_t h = d.random.between(3, 8), w = d.random.between(3, 8),
                  kh = d.random.between(1, 3), kw = d.random.between(1, 3),
                  stride = d.random.between(1, 2), pad = d.random.between(0, 1);
    const int64_t blocks = ((h + 2 * pad - kh) / stride + 1) * ((w + 2 * pad - kw) / stride + 1);
    const Tensor& x = d.input(DataType::float32, {1, d.random.between(1, 3) * kh * kw, blocks});
    const auto pair = [&](int64_t a, int64_t b) {
        return d.numbers(DataType::int64, {2}, {static_cast<double>(a), static_cast<double>(b)})
            .name;
    };
    return d.one({kind,
                  {x.name, pair(h, w), pair(kh, kw)},
                  {{"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}}});
}

constexpr Recipe recipes[] = {
    {"AffineGrid", affine_grid},
    {"AveragePool", pool},
    {"BatchNormalization", per_channel_norm},
    {"Col2Im", col2im},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"DeformConv", deform_conv},
    {"DepthToSpace", depth_and_space},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"GridSample", grid_sample},
    {"GroupNormalization", per_channel_norm},
    {"InstanceNormalization", per_channel_norm},
    {"LRN", local_response},
    {"LpPool", pool},
    {"MaxPool", pool},
    {"MaxRoiPool", regions},
    {"MaxUnpool", max_unpool},
    {"Resize", resize},
    {"RoiAlign", regions},
    {"SpaceToDepth", depth_and_space},
};

}  // namespace

std::span<const Recipe> picture_recipes() {
    return recipes;
}

}  // namespace vartml::fuzz_graphs
