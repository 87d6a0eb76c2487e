// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/extreme.h"

#include <algorithm>
#include <array>

#include "lib/device/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

using kernels::Binary;

// Item i takes part i of the elements into element i of the destination.
class ExtremeStep final : public Step {
public:
    ExtremeStep(Binary op, View src, View dst)
        : op_(op), src_(std::move(src)), dst_(std::move(dst)) {}

    Extent extent() const override { return {src_.elements(), 0}; }
    void share_among(unsigned) override { set_items(static_cast<uint32_t>(dst_.elements())); }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const auto* const src = reinterpret_cast<const float*>(address(bases, src_));
        reinterpret_cast<float*>(address(bases, dst_))[item] =
            extreme(src + first, static_cast<size_t>(last - first));
    }

    std::string describe() const override {
        return std::string(op_ == Binary::max ? "largest of " : "smallest of ") + text(src_);
    }

private:
    void fold(float* into, const float* from, size_t count) const {
        kernels::binary_rows(op_, {into, 0, 1}, {from, 0, 1}, into, 0, 1, count);
    }

    // Lanes side by side, then halves of the lanes.
    float extreme(const float* src, size_t count) const {
        constexpr size_t lanes = 512;
        std::array<float, lanes> best;
        size_t width = std::min(count, lanes);
        std::copy_n(src, width, best.begin());
        for (size_t at = width; at < count; at += lanes)
            fold(best.data(), src + at, std::min(lanes, count - at));
        while (width > 1) {
            const size_t half = (width + 1) / 2;
            fold(best.data(), best.data() + half, width - half);
            width = half;
        }
        return best[0];
    }

    Binary op_;
    View src_, dst_;
};

}  // namespace

void lower_extreme(Lowering& lowering, Binary op, const View& src, const View& dst,
                   std::string_view name) {
    const uint32_t items = items_for({src.elements(), src.elements() / 4}, lowering.threads());
    if (items == 1) {
        lowering.emit(std::make_unique<ExtremeStep>(op, src, dst), name, {&src, &dst});
        return;
    }
    const View parts = lowering.new_buffer(DataType::float32, {items}, row_major(1));
    lowering.emit(std::make_unique<ExtremeStep>(op, src, parts), name, {&src, &parts});
    lowering.emit(std::make_unique<ExtremeStep>(op, parts, dst), name, {&parts, &dst});
}

}  // namespace vartml::softnpu
