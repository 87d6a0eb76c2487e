// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/column_sums.h"

#include "kernels/ops/elementwise.h"
#include "lib/device/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

// Item i sums part i of the positions into position i of the destination.
class ColumnSumsStep final : public Step {
public:
    ColumnSumsStep(View src, float scale, View dst)
        : src_(std::move(src)), scale_(scale), dst_(std::move(dst)) {}

    Extent extent() const override { return {src_.dims[2], 0}; }
    void share_among(unsigned) override { set_items(static_cast<uint32_t>(dst_.dims[2])); }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* src = reinterpret_cast<const float*>(address(bases, src_));
        auto* dst = reinterpret_cast<float*>(address(bases, dst_));
        const auto [first, last] = part(item);
        for (int64_t n = 0; n < src_.dims[0]; ++n) {
            kernels::sum_of_rows(
                src + n * src_.strides[0] + first * src_.strides[2], src_.strides[2],
                static_cast<size_t>(last - first), scale_,
                dst + n * dst_.strides[0] + static_cast<int64_t>(item) * dst_.strides[2],
                static_cast<size_t>(src_.dims[1]));
        }
    }

    std::string describe() const override { return "sum " + text(src_) + " -> " + text(dst_); }

private:
    View src_;
    float scale_;
    View dst_;
};

}  // namespace

void lower_column_sums(Lowering& lowering, const View& src, float scale, const View& dst,
                       std::string_view name) {
    const uint32_t items = items_for({src.dims[2], src.elements() / 8}, lowering.threads());
    if (items == 1) {
        lowering.emit(std::make_unique<ColumnSumsStep>(src, scale, dst), name, {&src, &dst});
        return;
    }
    const View parts =
        lowering.new_buffer(DataType::float32, {src.dims[0], src.dims[1], items}, channels_last(3));
    lowering.emit(std::make_unique<ColumnSumsStep>(src, 1.0F, parts), name, {&src, &parts});
    lowering.emit(std::make_unique<ColumnSumsStep>(parts, scale, dst), name, {&parts, &dst});
}

}  // namespace vartml::softnpu
