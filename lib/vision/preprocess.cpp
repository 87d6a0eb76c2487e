// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/layout/interleave.h"
#include "lib/vision/preprocess_impl.h"

namespace vartml {

void Preprocessor::Plan::read(const Picture& frame, uint32_t y, const PreprocessPart& part,
                              PreprocessScratch& s, size_t slot) const {
    const uint8_t* src[3] = {};
    for (unsigned p = 0; p < num_planes; ++p) {
        const size_t row = p == 0 ? y : y >> chroma_rows_shift;
        src[p] = frame.planes[p] + row * frame.stride_bytes[p];
    }
    int16_t* const planes[4] = {s.planes[slot][0], s.planes[slot][1], s.planes[slot][2], s.dropped};
    kernels::read_row(format, src, part.first, part.count, planes);
}

void Preprocessor::Plan::run_tile(const Picture& frame, std::byte* dst, const PreprocessTile& tile,
                                  uint32_t first, uint32_t last) const {
    PreprocessScratch s;
    constexpr uint32_t none = std::numeric_limits<uint32_t>::max();
    uint32_t held[2] = {none, none};
    // The slot that holds row y, read into the one that does not hold `keep`.
    const auto fetch = [&](uint32_t y, uint32_t keep) -> size_t {
        if (held[0] == y) return 0;
        if (held[1] == y) return 1;
        const size_t slot = held[0] == keep ? 1 : 0;
        read(frame, y, tile.part, s, slot);
        held[slot] = y;
        return slot;
    };
    for (uint32_t y = first; y < last; ++y) {
        const Tap tap = rows[y];
        const uint32_t next = tap.weight != 0 ? tap.first + 1 : tap.first;
        const size_t a = fetch(tap.first, next), b = fetch(next, tap.first);
        const int16_t* const upper[3] = {s.planes[a][0], s.planes[a][1], s.planes[a][2]};
        const int16_t* const lower[3] = {s.planes[b][0], s.planes[b][1], s.planes[b][2]};
        kernels::blend_rows(upper, lower, tap.weight, colour_planes, copies, tile.part.count,
                            s.quads);
        const int16_t* pixels = s.quads + 4 * size_t{offsets[tile.first]};
        if (!tile.plain) {
            kernels::sample_columns(s.quads, &offsets[tile.first], &weights[4 * size_t{tile.first}],
                                    tile.count, s.sampled);
            pixels = s.sampled;
        }
        finish(pixels, geometry.x.offset + tile.first, geometry.y.offset + y, tile.count, dst, s);
    }
}

void Preprocessor::Plan::run_area_tile(const Picture& frame, std::byte* dst,
                                       const PreprocessTile& tile, uint32_t first,
                                       uint32_t last) const {
    PreprocessScratch s;
    PreprocessAreaScratch area;
    const int16_t* const planes[3] = {s.planes[0][0], s.planes[0][1], s.planes[0][2]};
    for (uint32_t y = first; y < last; ++y) {
        const kernels::Span& under = area_rows.spans[y];
        for (uint32_t p = 0; p < tile.num_parts; ++p) {
            const PreprocessPart& part = p == 0 ? tile.part : parts[tile.more_parts + p - 1];
            for (uint32_t k = 0; k < under.count; ++k) {
                read(frame, under.first + k, part, s, 0);
                kernels::blend_rows(planes, planes, 0, colour_planes, copies, part.count, s.quads);
                kernels::accumulate_rows(s.quads, area_rows.weights[under.weights + k], k == 0,
                                         part.count, area.sums);
            }
            kernels::sum_columns(area.sums, &spans[part.spans], span_weights.data(), p == 0,
                                 tile.count, area.pixels);
        }
        kernels::round_quads(area.pixels, tile.count, s.sampled);
        finish(s.sampled, geometry.x.offset + tile.first, geometry.y.offset + y, tile.count, dst,
               s);
    }
}

// Where quads of the tensor's type may be written at once; nullptr where place() has to arrange
// them.
std::byte* Preprocessor::Plan::dense_target(std::byte* dst, uint32_t x, uint32_t y) const {
    return layout == Layout::HCWNC4 ? dst + (size_t{y} * width + x) * 4 * word : nullptr;
}

void Preprocessor::Plan::finish(const int16_t* quads, uint32_t x, uint32_t y, size_t count,
                                std::byte* dst, PreprocessScratch& s) const {
    std::byte* const direct = dense_target(dst, x, y);
    std::byte* const typed = direct != nullptr ? direct : reinterpret_cast<std::byte*>(s.typed);
    if (type == DataType::bf16) {
        kernels::normalise_bf16(quads, mean, scale, count, reinterpret_cast<uint16_t*>(typed));
    } else if (type == DataType::float32) {
        kernels::normalise(quads, mean, scale, count, reinterpret_cast<float*>(typed));
    } else {
        kernels::normalise(quads, mean, scale, count, s.values);
        kernels::cast_rows(cast, s.values, 0, typed, 0, 1, 4 * count, 0);
        clear_padding(typed, count);
    }
    if (direct == nullptr) place(typed, x, y, count, dst);
}

// Padding channels are zero bytes, which a quantised 0 need not be.
void Preprocessor::Plan::clear_padding(std::byte* quads, size_t count) const {
    if (word != 1 || cast.zero_point == 0) return;
    const uint32_t mask = channels == 3 ? 0x00ffffff : 0x000000ff;
    for (size_t i = 0; i < count; ++i) {
        uint32_t quad;
        std::memcpy(&quad, quads + 4 * i, 4);
        quad &= mask;
        std::memcpy(quads + 4 * i, &quad, 4);
    }
}

void Preprocessor::Plan::place(const std::byte* quads, uint32_t x, uint32_t y, size_t count,
                               std::byte* dst) const {
    const size_t pixel = size_t{y} * width + x;
    switch (layout) {
        case Layout::HCWNC4:
            std::memcpy(dense_target(dst, x, y), quads, count * 4 * word);
            return;
        case Layout::HCWNC8:
        case Layout::HCWNC16:
            return kernels::pixels_to_pixels(word, quads, 4, dst + pixel * block * word, block, 4,
                                             block, count);
        case Layout::NHWC:
            return kernels::pixels_to_pixels(word, quads, 4, dst + pixel * channels * word,
                                             channels, channels, channels, count);
        case Layout::NHW:
            return kernels::pixels_to_pixels(word, quads, 4, dst + (y * padded_width + x) * word, 1,
                                             1, 1, count);
        default:  // NCHW
            return kernels::pixels_to_planes(word, quads, 4, channels, count, dst + pixel * word,
                                             size_t{width} * height * word);
    }
}

// Everything around the picture in rows first...last-1.
void Preprocessor::Plan::pad(std::byte* dst, uint32_t first, uint32_t last) const {
    const uint32_t left = geometry.x.offset, right = left + geometry.x.scaled;
    const uint32_t top = geometry.y.offset, bottom = top + geometry.y.scaled;
    const std::byte* quads = pad_quads.data();
    for (uint32_t y = first; y < last; ++y) {
        if (padded_width > width)
            std::memset(dst + (y * padded_width + width) * word, 0, (padded_width - width) * word);
        if (y < top || y >= bottom) {
            place(quads, 0, y, width, dst);
            continue;
        }
        if (left > 0) place(quads, 0, y, left, dst);
        if (right < width) place(quads, right, y, width - right, dst);
    }
}

void Preprocessor::run(const Picture& picture, void* tensor) const {
    run_rows(picture, tensor, 0, plan_->height);
}

void Preprocessor::run_rows(const Picture& picture, void* tensor, uint32_t first,
                            uint32_t last) const {
    const Plan& plan = *plan_;
    auto* const dst = static_cast<std::byte*>(tensor);
    last = std::min(last, plan.height);
    if (first >= last) return;
    plan.pad(dst, first, last);
    const Axis& y = plan.geometry.y;
    const uint32_t begin = std::max(first, y.offset), end = std::min(last, y.offset + y.scaled);
    if (begin >= end) return;
    for (const PreprocessTile& tile : plan.tiles) {
        if (plan.interpolation == Interpolation::area)
            plan.run_area_tile(picture, dst, tile, begin - y.offset, end - y.offset);
        else
            plan.run_tile(picture, dst, tile, begin - y.offset, end - y.offset);
    }
}

uint32_t Preprocessor::rows() const {
    return plan_->height;
}

Affine Preprocessor::to_frame() const {
    return plan_->geometry.to_frame();
}

Preprocessor::Preprocessor(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Preprocessor::Preprocessor(Preprocessor&&) noexcept = default;
Preprocessor& Preprocessor::operator=(Preprocessor&&) noexcept = default;
Preprocessor::~Preprocessor() = default;

}  // namespace vartml
