// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/average_codes.h"

#include <algorithm>

#include "lib/device/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

constexpr int64_t most_channels = 256;

class AverageStep final : public Step {
public:
    AverageStep(View src, const Coding& from, View dst, const Coding& to, const Window& window)
        : src_(std::move(src)), dst_(std::move(dst)), from_(from), to_(to), window_(window) {
        chunks_ = (src_.dims[1] + most_channels - 1) / most_channels;
    }

    // Units are up to 256 channels of a position.
    Extent extent() const override {
        const int64_t area = window_.size[0] * window_.size[1];
        return {dst_.dims[0] * dst_.dims[2] * dst_.dims[3] * chunks_,
                dst_.elements() * (area + 8) / 16};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* src = reinterpret_cast<const uint8_t*>(address(bases, src_));
        auto* dst = reinterpret_cast<uint8_t*>(address(bases, dst_));
        const auto [first, last] = part(item);
        for (int64_t i = first; i < last; ++i) {
            const int64_t c = i % chunks_ * most_channels, position = i / chunks_;
            const int64_t x = position % dst_.dims[3], y = position / dst_.dims[3] % dst_.dims[2];
            const int64_t n = position / dst_.dims[3] / dst_.dims[2];
            average(src + n * src_.strides[0] + c,
                    dst + n * dst_.strides[0] + y * dst_.strides[2] + x * dst_.strides[3] + c, y, x,
                    std::min(most_channels, src_.dims[1] - c));
        }
    }

    std::string describe() const override {
        return "average codes " + text(src_) + " -> " + text(dst_);
    }

private:
    struct Taps {
        int64_t first, count;
    };
    // What of the window lies in the picture along an axis.
    Taps taps(size_t axis, int64_t at) const {
        const int64_t step = window_.dilations[axis], size = src_.dims[axis + 2];
        const int64_t start = at * window_.strides[axis] - window_.pads[axis];
        const int64_t skip = start < 0 ? (-start + step - 1) / step : 0;
        const int64_t first = start + skip * step;
        const int64_t fit = first < size ? (size - 1 - first) / step + 1 : 0;
        return {first, std::clamp<int64_t>(window_.size[axis] - skip, 0, fit)};
    }

    void average(const uint8_t* src, uint8_t* dst, int64_t y, int64_t x, int64_t channels) const {
        std::array<int32_t, most_channels> sums{};
        std::array<float, most_channels> steps;
        const Taps rows = taps(0, y), columns = taps(1, x);
        for (int64_t k = 0; k < rows.count; ++k) {
            const uint8_t* const at = src +
                                      (rows.first + k * window_.dilations[0]) * src_.strides[2] +
                                      columns.first * src_.strides[3];
            kernels::add_codes(at, src_.strides[3] * window_.dilations[1],
                               static_cast<size_t>(columns.count), from_.is_signed, sums.data(),
                               static_cast<size_t>(channels));
        }
        const int64_t counted = rows.count * columns.count;
        const int64_t divisor =
            window_.counts_padding ? window_.size[0] * window_.size[1] : counted;
        const float scale = from_.scale / (to_.scale * static_cast<float>(divisor));
        const auto zeros = static_cast<int32_t>(counted * from_.zero);
        for (int64_t i = 0; i < channels; ++i) {
            const auto at = static_cast<size_t>(i);
            steps[at] = static_cast<float>(sums[at] - zeros) * scale;
        }
        kernels::quantise_row(steps.data(), {1, to_.zero, to_.is_signed}, dst,
                              static_cast<size_t>(channels));
    }

    View src_, dst_;
    Coding from_, to_;
    Window window_;
    int64_t chunks_ = 1;
};

}  // namespace

void emit_average(Lowering& lowering, const View& src, const Coding& from, const View& dst,
                  const Coding& to, const Window& window, std::string_view name) {
    lowering.emit(std::make_unique<AverageStep>(src, from, dst, to, window), name, {&src, &dst});
}

}  // namespace vartml::softnpu
