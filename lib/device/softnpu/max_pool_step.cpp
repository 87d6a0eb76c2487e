// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/max_pool_step.h"

#include <algorithm>

#include "lib/device/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

class MaxPoolStep final : public Step {
public:
    MaxPoolStep(const kernels::PoolShape& shape, View src, View dst)
        : shape_(shape), src_(std::move(src)), dst_(std::move(dst)) {}

    // Rows of all images.
    Extent extent() const override {
        const int64_t window = shape_.kernel_height + shape_.kernel_width;
        return {dst_.dims[0] * dst_.dims[2], dst_.elements() * window / 16};
    }

    // Scratch memory of one item lies behind that of another.
    size_t scratch_bytes(unsigned threads) const {
        return items_for(extent(), threads) * kernels::max_pool_scratch_size(shape_) *
               sizeof(float);
    }
    void set_scratch(View scratch) { scratch_ = std::move(scratch); }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const int64_t rows = dst_.dims[2];
        auto* const scratch = reinterpret_cast<float*>(address(bases, scratch_)) +
                              item * kernels::max_pool_scratch_size(shape_);
        for (int64_t at = first; at < last;) {
            const int64_t n = at / rows, y = at % rows, end = std::min(rows, y + last - at);
            const auto* src =
                reinterpret_cast<const float*>(address(bases, src_)) + n * src_.strides[0];
            auto* dst = reinterpret_cast<float*>(address(bases, dst_)) + n * dst_.strides[0];
            kernels::max_pool_rows(shape_, {src, distance(src_, 2), distance(src_, 3)},
                                   {dst, distance(dst_, 2), distance(dst_, 3)}, scratch,
                                   static_cast<size_t>(y), static_cast<size_t>(end));
            at += end - y;
        }
    }

    std::string describe() const override {
        return "MaxPool " + std::to_string(shape_.kernel_height) + "x" +
               std::to_string(shape_.kernel_width) + " " + text(src_) + " -> " + text(dst_);
    }

private:
    static size_t distance(const View& view, size_t dim) {
        return static_cast<size_t>(view.strides[dim]);
    }

    kernels::PoolShape shape_;
    View src_, dst_, scratch_;
};

}  // namespace

void emit_max_pool(Lowering& lowering, const graph::Node& node, const kernels::PoolShape& shape,
                   const View& src, const View& dst) {
    auto step = std::make_unique<MaxPoolStep>(shape, src, dst);
    const View scratch = lowering.scratch_view(step->scratch_bytes(lowering.threads()));
    step->set_scratch(scratch);
    lowering.emit(std::move(step), node.name, {&src, &dst, &scratch});
}

}  // namespace vartml::softnpu
