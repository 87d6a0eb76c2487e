// SPDX-License-Identifier: Apache-2.0
// Resampling of pictures and regions.
#include <algorithm>

#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"

namespace vartml::graph {

namespace {

using Ints = std::vector<int64_t>;

Error bad_inputs(const Node& node, const Type& a, const Type& b) {
    return bad_node(node, "has the inputs " + to_string(a) + " and " + to_string(b) +
                              ", which do not go together");
}

Result<Types> infer_resize(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto sizes = node.get("sizes", Ints());
    if (node.inputs.size() > 1) {
        return Error{ErrorCode::unsupported, "node '" + node.name +
                                                 "' (Resize) takes its sizes or scales from a "
                                                 "tensor that depends on the input data; "
                                                 "export the model with static shapes"};
    }
    if (sizes.size() != x.shape.size() ||
        node.get("scales", std::vector<float>(sizes.size())).size() != sizes.size()) {
        return bad_node(node, "resizes " + to_string(x) + " to " + to_string(sizes) +
                                  ", expected one size and one scale per axis");
    }
    return Types{{x.data_type, sizes}};
}

uint64_t count_resampling(const Graph& graph, const Node& node) {
    const std::string mode = node.get("mode", node.base() == "GridSample" ? "linear" : "nearest");
    const uint64_t per_element = mode == "nearest" ? 0 : mode == "cubic" ? 31 : 7;
    return per_element * count_output(graph, node);
}

Result<Types> infer_grid_sample(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &grid = input_type(graph, node, 1);
    const size_t rank = x.shape.size();
    if (rank < 3 || grid.shape.size() != rank || grid.shape[0] != x.shape[0] ||
        grid.shape.back() != static_cast<int64_t>(rank) - 2) {
        return bad_inputs(node, x, grid);
    }
    Type y{x.data_type, {x.shape[0], x.shape[1]}};
    y.shape.insert(y.shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    return Types{y};
}

Result<Types> infer_roi_align(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &rois = input_type(graph, node, 1);
    if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 4)
        return bad_inputs(node, x, rois);
    return Types{{x.data_type,
                  {rois.shape[0], x.shape[1], node.get("output_height", int64_t{1}),
                   node.get("output_width", int64_t{1})}}};
}

Result<Types> infer_max_roi_pool(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &rois = input_type(graph, node, 1);
    const auto pooled = node.get("pooled_shape", Ints());
    if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 5 || pooled.size() != 2) {
        return bad_inputs(node, x, rois);
    }
    return Types{{x.data_type, {rois.shape[0], x.shape[1], pooled[0], pooled[1]}}};
}

Result<Types> infer_affine_grid(const Graph& graph, const Node& node) {
    const Type& theta = input_type(graph, node, 0);
    const auto size = node.get("size", Ints());
    if (size.size() < 4 || theta.shape.size() != 3) {
        return bad_node(
            node, "has the size " + to_string(size) + ", expected a constant of 4 or 5 numbers");
    }
    const auto rank = static_cast<int64_t>(size.size()) - 2;
    if (theta.shape != Ints{size[0], rank, rank + 1}) {
        return bad_node(node, "has the matrices " + to_string(theta) + " for the size " +
                                  to_string(size) + ", which do not go together");
    }
    Type y{theta.data_type, {size[0]}};
    y.shape.insert(y.shape.end(), size.begin() + 2, size.end());
    y.shape.push_back(rank);
    return Types{y};
}

// x w offset bias? mask?: the shape is that of the offsets in space.
Result<Types> infer_deform_conv(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1),
               &offset = input_type(graph, node, 2);
    if (offset.shape.size() != x.shape.size()) return bad_inputs(node, x, offset);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    int64_t taps = 1;
    for (const int64_t size : window->kernel) taps = bounded_product(taps, size);
    const int64_t groups = node.get("offset_group", int64_t{1});
    const int64_t shifts = bounded_product(taps, std::clamp<int64_t>(groups, 1, 1 << 20));
    const auto rank = static_cast<int64_t>(window->rank());
    Type y{x.data_type, {x.shape[0], w.shape[0]}};
    for (size_t i = 0; i < window->rank(); ++i)
        y.shape.push_back(window_positions(x.shape[i + 2], *window, i, false));
    Ints places(y.shape.begin() + 2, y.shape.end());
    places.insert(places.begin(), {x.shape[0], shifts});
    const bool mask_fits = !has_input(node, 4) || input_type(graph, node, 4).shape == places;
    const bool bias_fits =
        !has_input(node, 3) || input_type(graph, node, 3).shape == Ints{w.shape[0]};
    places[1] = bounded_product(shifts, rank);
    if (groups < 1 || x.shape[1] % groups != 0 || offset.shape != places || !mask_fits ||
        !bias_fits || x.shape[1] != bounded_product(w.shape[1], window->group) ||
        w.shape[0] % window->group != 0) {
        return bad_node(node, "has the input " + to_string(x) + ", the weight " + to_string(w) +
                                  " and offsets " + to_string(offset) + ", where " +
                                  to_string(places) +
                                  " and channels that go together are expected");
    }
    return Types{y};
}

uint64_t count_deform_conv(const Graph& graph, const Node& node) {
    return has_input(node, 3) ? count_output(graph, node) : 0;
}

uint64_t macs_deform_conv(const Graph& graph, const Node& node) {
    const Type& w = input_type(graph, node, 1);
    return saturating_product(
        count_output(graph, node),
        static_cast<uint64_t>(w.elements() / std::max<int64_t>(w.shape[0], 1)));
}

// The values of a constant input, which these shapes depend on.
Result<Ints> constant_ints(const Graph& graph, const Node& node, size_t index) {
    const Value& value = graph.value(node.inputs[index]);
    if (!value.constant || value.type.data_type != DataType::int64) {
        return bad_node(node, "takes its output shape from '" + value.name +
                                  "', which is no constant of type i64");
    }
    const auto values = value.constant->as<int64_t>();
    return Ints(values.begin(), values.end());
}

Result<Types> infer_col2im(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto image = constant_ints(graph, node, 1), block = constant_ints(graph, node, 2);
    if (!image) return image.error();
    if (!block) return block.error();
    int64_t elements = 1;
    for (const int64_t size : *block) elements = bounded_product(elements, size);
    if (x.shape.size() != 3 || elements < 1 || x.shape[1] % elements != 0) {
        return bad_node(node, "has the input " + to_string(x) + " and blocks of " +
                                  to_string(*block) + ", which do not go together");
    }
    Type y{x.data_type, {x.shape[0], x.shape[1] / elements}};
    y.shape.insert(y.shape.end(), image->begin(), image->end());
    return Types{y};
}

// x indices output_shape?: the indices count in the shape that was pooled.
Result<Types> infer_max_unpool(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
    if (indices != Type{DataType::int64, x.shape}) return bad_inputs(node, x, indices);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    Type y = x;
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape[i + 2] = bounded_product(y.shape[i + 2] - 1, window->strides[i]) -
                         window->pads_begin[i] - window->pads_end[i] + window->kernel[i];
    }
    if (!has_input(node, 2) || !is_reasonable(y)) return Types{y};
    auto shape = constant_ints(graph, node, 2);
    if (!shape) return shape.error();
    if (shape->size() != x.shape.size()) {
        return bad_node(node, "has the output shape " + to_string(*shape) +
                                  ", which does not fit its input " + to_string(x));
    }
    y.shape = std::move(*shape);
    return Types{y};
}

Result<Types> infer_picture_input(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto mean = node.get("mean", std::vector<float>());
    const auto channels = static_cast<int64_t>(mean.size());
    const bool fits = x.data_type == DataType::uint8 && x.shape.size() == 4 && x.shape[0] == 1 &&
                      channels >= 1 && channels <= x.shape[3] &&
                      node.get("scale", std::vector<float>()).size() == mean.size();
    if (!fits) {
        return bad_node(node, "has the input " + to_string(x) + " and " + std::to_string(channels) +
                                  " means, expected u8[1,H,W,bytes] and a mean and a scale for "
                                  "each channel");
    }
    const int64_t height = x.shape[1], width = x.shape[2];
    if (node.get("layout", "NCHW") == "NHWC")
        return Types{{DataType::float32, {1, height, width, channels}}};
    return Types{{DataType::float32, {1, channels, height, width}}};
}

constexpr OpInfo ops[] = {
    {"PictureInput", 1, 1, 1, 1, "layout:s* mean:fs* scale:fs*", infer_picture_input, count_output},
    {"Resize", 1, 4, 1, 1,
     "antialias:i coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
     "extrapolation_value:f mode:s nearest_mode:s roi:fs scales:fs sizes:is",
     infer_resize, count_resampling},
    {"GridSample", 2, 2, 1, 1, "align_corners:i mode:s padding_mode:s", infer_grid_sample,
     count_resampling},
    {"RoiAlign", 3, 3, 1, 1,
     "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i "
     "spatial_scale:f",
     infer_roi_align, count_none},
    {"MaxRoiPool", 2, 2, 1, 1, "pooled_shape:is* spatial_scale:f", infer_max_roi_pool, count_none},
    {"AffineGrid", 1, 2, 1, 1, "align_corners:i size:is", infer_affine_grid, count_none},
    {"DeformConv", 3, 5, 1, 1,
     "dilations:is group:i kernel_shape:is offset_group:i pads:is strides:is", infer_deform_conv,
     count_deform_conv, macs_deform_conv},
    {"Col2Im", 3, 3, 1, 1, "dilations:is pads:is strides:is", infer_col2im, count_none},
    {"MaxUnpool", 2, 3, 1, 1, "kernel_shape:is* pads:is strides:is", infer_max_unpool, count_none},
};

}  // namespace

std::span<const OpInfo> picture_ops() {
    return ops;
}

}  // namespace vartml::graph
