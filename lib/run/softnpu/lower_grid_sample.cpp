// SPDX-License-Identifier: Apache-2.0
// GridSample of pictures: channels last, so that an element of the picture is a row of channels.
#include <array>

#include "kernels/ops/elementwise.h"
#include "lib/graph/sampling.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {
namespace {

// Picture [N, C, H, W] and result [N, C, H', W'] with channels contiguous, positions [N, H', W', 2]
// dense; all fp32.
class GridSampleStep final : public Step {
public:
    GridSampleStep(View src, View grid, View dst, const cpu::Sampling& how)
        : src_(std::move(src)), grid_(std::move(grid)), dst_(std::move(dst)), how_(how) {}

    Extent extent() const override {
        constexpr int64_t position = 32;  // costs as much as these elements
        return {dst_.dims[0] * dst_.dims[2], dst_.elements() * 2 + grid_.elements() / 2 * position};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* const src = reinterpret_cast<const float*>(address(bases, src_));
        const auto* const grid = reinterpret_cast<const float*>(address(bases, grid_));
        auto* const dst = reinterpret_cast<float*>(address(bases, dst_));
        const int64_t height = dst_.dims[2], width = dst_.dims[3];
        const auto [first, last] = part(item);
        for (int64_t i = first; i < last; ++i) {
            const float* const picture = src + i / height * src_.strides[0];
            const float* at = grid + i * width * 2;
            float* to = dst + i / height * dst_.strides[0] + i % height * dst_.strides[2];
            for (int64_t x = 0; x < width; ++x, at += 2, to += dst_.strides[3])
                sample(picture, at, to);
        }
    }

    std::string describe() const override {
        return "grid_sample " + text(src_) + " " + text(grid_) + " -> " + text(dst_);
    }

private:
    // The position's coordinate along the width comes first.
    void sample(const float* picture, const float* position, float* to) const {
        const cpu::AxisTaps rows = cpu::sample_axis(position[1], src_.dims[2], how_);
        const cpu::AxisTaps columns = cpu::sample_axis(position[0], src_.dims[3], how_);
        std::array<const float*, 16> elements;
        std::array<float, 16> weights;
        size_t count = 0;
        for (size_t y = 0; y < rows.count; ++y) {
            for (size_t x = 0; x < columns.count; ++x, ++count) {
                elements[count] =
                    picture + rows.index[y] * src_.strides[2] + columns.index[x] * src_.strides[3];
                weights[count] = static_cast<float>(rows.weight[y] * columns.weight[x]);
            }
        }
        kernels::weighted_sum(elements.data(), weights.data(), count, to,
                              static_cast<size_t>(dst_.dims[1]));
    }

    const View src_, grid_, dst_;
    const cpu::Sampling how_;
};

}  // namespace

bool takes_grid_sample(const graph::Graph& graph, const graph::Node& node) {
    const auto& picture = graph.value(node.inputs[0]).type;
    return picture.shape.size() == 4 && picture.elements() > 0;
}

Result<void> lower_grid_sample(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const Order order = channels_last(4);
    const View src = lowering.dense(node.inputs[0], order, DataType::float32);
    const View grid = lowering.dense(node.inputs[1], row_major(4), DataType::float32);
    View dst = lowering.destination(out, order, true);
    if (dst.type != DataType::float32 || (dst.strides[1] != 1 && dst.dims[1] != 1))
        dst = lowering.new_buffer(DataType::float32, lowering.value(out).type.shape, order);
    lowering.emit(std::make_unique<GridSampleStep>(src, grid, dst, cpu::read_sampling(node)),
                  node.name, {&src, &grid, &dst});
    lowering.finish(out, dst);
    return {};
}

}  // namespace vartml::softnpu
