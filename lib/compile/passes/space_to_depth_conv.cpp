// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/compile/passes/passes.h"
#include "lib/graph/numbers.h"

namespace vartml::compiler {

namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;
using Ints = std::vector<int64_t>;

// A tensor of blocks of pixels in depth: piece k of the channels is every `block`-th pixel of
// `source`, beginning at offsets[k].
struct Blocks {
    ValueId source = none;
    int64_t block = 0;
    struct Offset {
        int64_t y, x;
    };
    std::vector<Offset> offsets;
};

// Where a chain of Slices begins, and what it takes along each axis.
struct Piece {
    ValueId source = none;
    Ints start, step;
};

std::optional<Piece> trace_slices(Rewriter& rewriter, ValueId id) {
    const size_t rank = rewriter.type(id).shape.size();
    Piece piece{id, Ints(rank, 0), Ints(rank, 1)};
    while (const Node* slice = rewriter.producer(piece.source, "Slice")) {
        const Ints axes = slice->get("axes", Ints()), starts = slice->get("starts", Ints());
        const Ints steps = slice->get("steps", Ints(axes.size(), 1));
        if (slice->inputs.size() != 1) return std::nullopt;
        for (size_t i = 0; i < axes.size(); ++i) {
            const auto axis = static_cast<size_t>(axes[i]);
            if (steps[i] < 1) return std::nullopt;
            // This Slice comes before those seen so far: their positions count in its steps.
            piece.start[axis] = starts[i] + piece.start[axis] * steps[i];
            piece.step[axis] *= steps[i];
        }
        piece.source = slice->inputs[0];
    }
    if (piece.source == id) return std::nullopt;
    return piece;
}

std::optional<Blocks> blocks_of_concat(Rewriter& rewriter, const Node& concat) {
    if (concat.get("axis", int64_t{0}) != 1) return std::nullopt;
    Blocks blocks;
    for (const ValueId input : concat.inputs) {
        const auto piece = trace_slices(rewriter, input);
        if (!piece || piece->start.size() != 4 || !rewriter.has_one_use(input)) return std::nullopt;
        if (blocks.source == none) {
            blocks.source = piece->source;
            blocks.block = piece->step[2];
        }
        const Ints steps = {1, 1, blocks.block, blocks.block};
        const bool whole_channels = piece->start[0] == 0 && piece->start[1] == 0;
        if (piece->source != blocks.source || piece->step != steps || !whole_channels)
            return std::nullopt;
        blocks.offsets.push_back({piece->start[2], piece->start[3]});
        // Every block-th pixel to the end, of all channels.
        const auto &from = rewriter.type(piece->source).shape, &to = rewriter.type(input).shape;
        if (to[0] != from[0] || to[1] != from[1] || to[2] * blocks.block != from[2] ||
            to[3] * blocks.block != from[3]) {
            return std::nullopt;
        }
    }
    return blocks;
}

// The blocks that a value holds, each offset once.
std::optional<Blocks> blocks_of(Rewriter& rewriter, ValueId id) {
    const Node* node = rewriter.producer(id);
    if (!node || !rewriter.has_one_use(id)) return std::nullopt;
    if (node->kind == "SpaceToDepth") {
        Blocks blocks{node->inputs[0], node->get("blocksize", int64_t{0}), {}};
        for (int64_t y = 0; y < blocks.block; ++y) {
            for (int64_t x = 0; x < blocks.block; ++x) blocks.offsets.push_back({y, x});
        }
        return blocks;
    }
    if (node->kind != "Concat") return std::nullopt;
    auto blocks = blocks_of_concat(rewriter, *node);
    if (!blocks || blocks->block < 2 ||
        static_cast<int64_t>(blocks->offsets.size()) != blocks->block * blocks->block) {
        return std::nullopt;
    }
    std::vector<bool> seen(blocks->offsets.size(), false);
    for (const auto& offset : blocks->offsets) {
        if (offset.y >= blocks->block || offset.x >= blocks->block) return std::nullopt;
        const auto at = static_cast<size_t>(offset.y * blocks->block + offset.x);
        if (seen[at]) return std::nullopt;
        seen[at] = true;
    }
    return blocks;
}

// w'[o][c][ky * block + y][kx * block + x] = w[o][piece * channels + c][ky][kx], (y, x) being the
// offset of the piece.
std::vector<double> rearranged(const std::vector<double>& weight, const Ints& shape,
                               const Blocks& blocks) {
    const int64_t filters = shape[0], height = shape[2], width = shape[3], block = blocks.block;
    const int64_t channels = shape[1] / static_cast<int64_t>(blocks.offsets.size());
    std::vector<double> result(weight.size());
    size_t from = 0;
    for (int64_t o = 0; o < filters; ++o) {
        for (const auto& offset : blocks.offsets) {
            for (int64_t c = 0; c < channels; ++c) {
                for (int64_t ky = 0; ky < height; ++ky) {
                    for (int64_t kx = 0; kx < width; ++kx) {
                        const int64_t row = ky * block + offset.y, column = kx * block + offset.x;
                        const int64_t to =
                            ((o * channels + c) * height * block + row) * width * block + column;
                        result[static_cast<size_t>(to)] = weight[from++];
                    }
                }
            }
        }
    }
    return result;
}

bool all_equal(const Ints& values, int64_t value) {
    return std::ranges::all_of(values, [value](int64_t v) { return v == value; });
}

bool space_to_depth_conv_at(Rewriter& rewriter, size_t index) {
    const Node& conv = rewriter.node(index);
    if (conv.kind != "Conv" || !rewriter.is_constant(conv.inputs[1])) return false;
    const Type old = rewriter.type(conv.inputs[1]);
    if (old.shape.size() != 4 || !graph::is_float(old.data_type)) return false;
    if (conv.get("group", int64_t{1}) != 1 || !all_equal(conv.get("dilations", Ints()), 1))
        return false;
    const auto blocks = blocks_of(rewriter, conv.inputs[0]);
    if (!blocks) return false;

    const auto weight = graph::read_numbers<double>(rewriter.value(conv.inputs[1]));
    Type type = old;
    type.shape[1] /= blocks->block * blocks->block;
    type.shape[2] *= blocks->block;
    type.shape[3] *= blocks->block;
    const std::string stem = rewriter.value(conv.inputs[1]).name;
    const ValueId new_weight =
        rewriter.add_constant(stem, type, rearranged(weight, old.shape, *blocks));

    Node& node = rewriter.node(index);
    Ints pads = node.get("pads", Ints(4, 0)), strides = node.get("strides", Ints(2, 1));
    for (int64_t& v : pads) v *= blocks->block;
    for (int64_t& v : strides) v *= blocks->block;
    node.attributes["pads"] = pads;
    node.attributes["strides"] = strides;
    std::vector<ValueId> open = {node.inputs[0]};
    while (!open.empty()) {
        const ValueId id = open.back();
        open.pop_back();
        const Node* inner = id == blocks->source ? nullptr : rewriter.producer(id);
        if (!inner) continue;
        Rewriter::merge_sources(node, *inner);
        open.insert(open.end(), inner->inputs.begin(), inner->inputs.end());
    }
    node.inputs[0] = blocks->source;
    node.inputs[1] = new_weight;
    rewriter.refresh();
    return true;
}

}  // namespace

Result<PassStats> space_to_depth_conv(graph::Graph& graph) {
    return rewrite_nodes(graph, space_to_depth_conv_at);
}

}  // namespace vartml::compiler
