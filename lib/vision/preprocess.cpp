// SPDX-License-Identifier: Apache-2.0
// A prepared Preprocessor: how it is made and run.
//
// The output is done in tiles of columns, so that all scratch memory fits on the stack and stays in
// the first-level cache; within a tile, rows of the frame are converted once and kept while two
// output rows need them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <vartml/preprocess.h>

#include "kernels/layout/cast.h"
#include "kernels/layout/interleave.h"
#include "kernels/preprocess/read_row.h"
#include "kernels/preprocess/resample.h"
#include "lib/base/view.h"
#include "lib/vision/preprocess_plan.h"

namespace vartml {

constexpr uint32_t preprocess_tile_columns = 1024;  // of the frame
constexpr uint32_t preprocess_tile_pixels = 512;    // of the model

// Columns of the frame that make some columns of the model. Tiles of area resizing whose one pixel
// has more than preprocess_tile_columns under it have several parts.
struct PreprocessPart {
    uint32_t first = 0, count = 0;  // columns of the frame
    uint32_t spans = 0;             // area: index of the first span
};
struct PreprocessTile {
    uint32_t first = 0, count = 0;  // pixels of the model, from the left edge of the picture in it
    PreprocessPart part;
    uint32_t num_parts = 1, more_parts = 0;  // further parts lie in Plan::parts
    bool plain = false;  // neighbouring columns without weights: nothing to sample
};

struct PreprocessScratch {
    int16_t planes[2][3][preprocess_tile_columns + kernels::row_slack];
    int16_t dropped[preprocess_tile_columns + kernels::row_slack];
    int16_t quads[4 * (preprocess_tile_columns + kernels::row_slack)];
    int16_t sampled[4 * preprocess_tile_pixels];
    float values[4 * preprocess_tile_pixels];
    uint32_t typed[4 * preprocess_tile_pixels];  // quads of the tensor's type
};
struct PreprocessAreaScratch {
    float sums[4 * preprocess_tile_columns];
    float pixels[4 * preprocess_tile_pixels];
};

struct Preprocessor::Plan {
    PictureInfo picture;
    Interpolation interpolation = Interpolation::bilinear;
    Geometry geometry;

    // Reading.
    kernels::RowFormat format;
    unsigned num_planes = 1, chroma_rows_shift = 0;
    size_t colour_planes = 3;  // that read_row writes
    size_t copies = 1;         // values of a quad that are made of one plane

    // Resizing.
    std::vector<Tap> rows;
    AreaTaps area_rows;
    std::vector<PreprocessTile> tiles;
    std::vector<PreprocessPart> parts;  // beyond the first, see PreprocessTile
    std::vector<uint32_t> offsets;      // per model column, from the first column of its tile
    std::vector<int16_t> weights;       // per model column, four times
    std::vector<kernels::Span> spans;
    std::vector<float> span_weights;

    // Writing.
    DataType type = DataType::unknown;
    Layout layout = Layout::unknown;
    size_t word = 0, channels = 0, block = 0, padded_width = 0;
    uint32_t width = 0, height = 0;
    float mean[4] = {}, scale[4] = {};
    kernels::Cast cast;
    std::vector<std::byte> pad_quads;  // one row of pad colour in the tensor's type

    Result<void> set_picture(const PictureInfo& info, ChannelOrder order);
    Result<void> set_tensor(const TensorView& cpu, const TensorView& tensor);
    Result<void> set_values(const TensorView& tensor, const PreprocessOptions& options);
    void set_columns();
    void set_area_columns();

    void run_tile(const Picture& frame, std::byte* dst, const PreprocessTile& tile, uint32_t first,
                  uint32_t last) const;
    void run_area_tile(const Picture& frame, std::byte* dst, const PreprocessTile& tile,
                       uint32_t first, uint32_t last) const;
    size_t chroma_row(uint32_t y, bool interlaced) const;
    void read(const Picture& frame, uint32_t y, const PreprocessPart& part, PreprocessScratch& s,
              size_t slot) const;
    void finish(const int16_t* quads, uint32_t x, uint32_t y, size_t count, std::byte* dst,
                PreprocessScratch& s) const;
    void clear_padding(std::byte* quads, size_t count) const;
    std::byte* dense_target(std::byte* dst, uint32_t x, uint32_t y) const;
    void place(const std::byte* quads, uint32_t x, uint32_t y, size_t count, std::byte* dst) const;
    void pad(std::byte* dst, uint32_t first, uint32_t last) const;
};

size_t Preprocessor::Plan::chroma_row(uint32_t y, bool interlaced) const {
    if (!interlaced || chroma_rows_shift == 0) return y >> chroma_rows_shift;
    const size_t row = (y >> 2) * 2 + (y & 1);
    // Where the height is no multiple of 4, the last rows of a field may have none of their own.
    if (row < (size_t{picture.height} + 1) / 2) return row;
    return row < 2 ? 0 : row - 2;
}

void Preprocessor::Plan::read(const Picture& frame, uint32_t y, const PreprocessPart& part,
                              PreprocessScratch& s, size_t slot) const {
    const uint8_t* src[3] = {};
    for (unsigned p = 0; p < num_planes; ++p) {
        const size_t row = p == 0 ? y : chroma_row(y, frame.interlaced);
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

using kernels::CastKind;

Result<void> Preprocessor::Plan::set_picture(const PictureInfo& info, ChannelOrder order) {
    const PixelLayout* pixels = find_pixel_layout(info.format);
    if (pixels == nullptr)
        return Error{ErrorCode::invalid_argument, "the picture has no pixel format"};
    if (info.width == 0 || info.height == 0)
        return Error{ErrorCode::invalid_argument, "the picture is " + std::to_string(info.width) +
                                                      "x" + std::to_string(info.height) +
                                                      " pixels; both sizes must be at least 1"};
    if (!std::isfinite(info.pixel_aspect_ratio) || info.pixel_aspect_ratio <= 0)
        return Error{ErrorCode::invalid_argument, "the pixel aspect ratio is " +
                                                      std::to_string(info.pixel_aspect_ratio) +
                                                      "; it must be above 0"};
    picture = info;
    num_planes = pixels->num_planes;
    chroma_rows_shift = pixels->chroma_rows_shift;
    const bool grey_model = channels == 1 || order == ChannelOrder::gray;
    format = row_format(info, grey_model ? ChannelOrder::gray : order);
    colour_planes = grey_model || info.format == PixelFormat::GRAY8 ? 1 : 3;
    copies = channels;
    return {};
}

Result<void> Preprocessor::Plan::set_tensor(const TensorView& cpu, const TensorView& tensor) {
    const auto refuse = [&](const std::string& why) {
        return Error{ErrorCode::unsupported, "pre-processing cannot write " + describe(tensor) +
                                                 " (of " + describe(cpu) + "): " + why};
    };
    // A pixel of four bytes lies as three channels do in HCWNC4.
    const bool four_bytes = cpu.layout == Layout::NHWC && cpu.shape.size() == 4 &&
                            cpu.shape[3] == 4 && cpu.data_type == DataType::uint8;
    if (four_bytes && tensor.layout == Layout::NHWC && tensor.shape == cpu.shape) {
        const TensorView three =
            make_view(DataType::uint8, Layout::NHWC, {cpu.shape[0], cpu.shape[1], cpu.shape[2], 3});
        return set_tensor(three, hw_view(three, Layout::HCWNC4, tensor.data_type));
    }
    type = tensor.data_type;
    layout = tensor.layout;
    word = size_bytes(type);
    if (cpu.layout == Layout::NHW && cpu.shape.size() == 3) {
        channels = 1;
        height = cpu.shape[1];
        width = cpu.shape[2];
    } else if ((cpu.layout == Layout::NCHW || cpu.layout == Layout::NHWC) &&
               cpu.shape.size() == 4) {
        const bool last = cpu.layout == Layout::NHWC;
        channels = cpu.shape[last ? 3 : 1];
        height = cpu.shape[last ? 1 : 2];
        width = cpu.shape[last ? 2 : 3];
    } else {
        return refuse("the CPU view of a picture is NCHW, NHWC or NHW");
    }
    if (cpu.shape[0] != 1) return refuse("a picture input has N = 1");
    if (channels != 1 && channels != 3)
        return refuse("a picture has 1 or 3 channels, not " + std::to_string(channels));
    if (width == 0 || height == 0) return refuse("a side is 0");
    if (cpu.layout == Layout::NHW && layout != Layout::NHW)
        return refuse("an input of rank 3 is written as NHW");
    const bool known = layout == Layout::NHWC || layout == Layout::NCHW || layout == Layout::NHW ||
                       layout == Layout::HCWNC4 || layout == Layout::HCWNC8 ||
                       layout == Layout::HCWNC16;
    if (!known || (layout == Layout::NHW && cpu.layout != Layout::NHW))
        return refuse("the layouts are NHWC, NCHW, NHW and HCWNC4, 8 and 16");
    const TensorView want = hw_view(cpu, layout, type);
    const bool unpadded = layout == Layout::NHW && tensor.shape == cpu.shape;
    if (tensor.shape != want.shape && !unpadded) return refuse("the shapes are not of one tensor");
    padded_width = layout == Layout::NHW ? tensor.shape[2] : width;
    block = layout == Layout::HCWNC8 ? 8 : layout == Layout::HCWNC16 ? 16 : 4;
    switch (type) {
        case DataType::bf16:
            cast.kind = CastKind::f32_bf16;
            return {};
        case DataType::fp16:
            cast.kind = CastKind::f32_f16;
            return {};
        case DataType::float32:
            cast.kind = CastKind::copy4;
            return {};
        case DataType::uint8:
            cast.kind = CastKind::f32_u8;
            return {};
        case DataType::int8:
            cast.kind = CastKind::f32_i8;
            return {};
        default:
            return refuse("the types are bf16, fp16, fp32, uint8 and int8");
    }
}

Result<void> Preprocessor::Plan::set_values(const TensorView& tensor,
                                            const PreprocessOptions& options) {
    if (tensor.quantisation) {
        cast.scale = static_cast<float>(tensor.quantisation->scale);
        cast.zero_point = tensor.quantisation->zero_point;
        const int low = type == DataType::int8 ? -128 : 0;
        if (!(cast.scale > 0) || !std::isfinite(cast.scale) || cast.zero_point < low ||
            cast.zero_point > low + 255)
            return Error{ErrorCode::invalid_argument,
                         "the quantisation of " + describe(tensor) + " has scale " +
                             std::to_string(tensor.quantisation->scale) + " and zero point " +
                             std::to_string(cast.zero_point) +
                             "; the scale must be above 0, the zero point within the type"};
    }
    alignas(16) float pad_value[4] = {};
    for (size_t c = 0; c < channels; ++c) {
        mean[c] = options.mean[c];
        scale[c] = options.scale[c];
        pad_value[c] = (options.pad[c] - mean[c]) * scale[c];
        if (!std::isfinite(mean[c]) || !std::isfinite(scale[c]) || !std::isfinite(pad_value[c]))
            return Error{ErrorCode::invalid_argument, "mean, scale and pad must be finite numbers"};
    }
    pad_quads.resize(4 * word * width);
    for (size_t x = 0; x < width; ++x)
        kernels::cast_rows(cast, pad_value, 0, pad_quads.data() + 4 * word * x, 0, 1, 4, 0);
    clear_padding(pad_quads.data(), width);
    return {};
}

// Cuts the columns of the model into tiles whose source columns fit the scratch memory.
void Preprocessor::Plan::set_columns() {
    const std::vector<Tap> taps = interpolation == Interpolation::nearest
                                      ? nearest_taps(geometry.x)
                                      : bilinear_taps(geometry.x);
    const auto end_of = [](const Tap& t) { return t.first + (t.weight != 0 ? 2 : 1); };
    // Equal tiles, as few as fit.
    const auto size = static_cast<uint32_t>(taps.size());
    for (uint32_t num_tiles = (size + preprocess_tile_pixels - 1) / preprocess_tile_pixels;
         tiles.empty(); ++num_tiles) {
        const uint32_t wanted = (size + num_tiles - 1) / num_tiles;
        bool fits = true;
        for (uint32_t i = 0; i < size && fits; i += wanted) {
            const uint32_t count = std::min(wanted, size - i);
            const uint32_t first = taps[i].first & ~1u;
            const uint32_t columns = end_of(taps[i + count - 1]) - first;
            fits = columns <= preprocess_tile_columns;
            PreprocessTile tile;
            tile.first = i;
            tile.count = count;
            tile.part = {first, columns, 0};
            tile.plain = true;
            for (uint32_t k = i; k < i + count; ++k)
                tile.plain &= taps[k].weight == 0 && taps[k].first == taps[i].first + (k - i);
            tiles.push_back(tile);
        }
        if (!fits) tiles.clear();
    }
    for (const PreprocessTile& tile : tiles)
        for (uint32_t k = tile.first; k < tile.first + tile.count; ++k) {
            offsets.push_back(taps[k].first - tile.part.first);
            weights.insert(weights.end(), 4, taps[k].weight);
        }
}

void Preprocessor::Plan::set_area_columns() {
    AreaTaps taps = area_taps(geometry.x);
    span_weights = std::move(taps.weights);
    const auto& all = taps.spans;
    for (uint32_t i = 0; i < all.size();) {
        PreprocessTile tile;
        tile.first = i;
        tile.part.first = all[i].first & ~1u;
        tile.part.spans = static_cast<uint32_t>(spans.size());
        const auto end_of = [](const kernels::Span& s) { return s.first + s.count; };
        while (i < all.size() && tile.count < preprocess_tile_pixels &&
               end_of(all[i]) - tile.part.first <= preprocess_tile_columns) {
            spans.push_back({all[i].first - tile.part.first, all[i].count, all[i].weights});
            tile.part.count = end_of(all[i]) - tile.part.first;
            ++tile.count;
            ++i;
        }
        if (tile.count == 0) {  // one pixel, in parts
            tile.count = 1;
            tile.more_parts = static_cast<uint32_t>(parts.size());
            tile.num_parts = 0;
            for (uint32_t at = all[i].first; at < end_of(all[i]);) {
                const uint32_t begin = at & ~1u;
                const uint32_t end = std::min(begin + preprocess_tile_columns, end_of(all[i]));
                const PreprocessPart part{begin, end - begin, static_cast<uint32_t>(spans.size())};
                spans.push_back({at - begin, end - at, all[i].weights + (at - all[i].first)});
                if (tile.num_parts++ == 0)
                    tile.part = part;
                else
                    parts.push_back(part);
                at = end;
            }
            ++i;
        }
        tiles.push_back(tile);
    }
}

Result<Preprocessor> Preprocessor::create(const PictureInfo& picture, const Region& region,
                                          const TensorView& cpu, const TensorView& tensor,
                                          const PreprocessOptions& options) {
    auto plan = std::make_unique<Plan>();
    if (Result<void> r = plan->set_tensor(cpu, tensor); !r) return r.error();
    if (Result<void> r = plan->set_picture(picture, options.channels); !r) return r.error();
    if (Result<void> r = plan->set_values(tensor, options); !r) return r.error();
    Region part = region;
    if (part.width == 0) part = {0, 0, double(picture.width), double(picture.height)};
    constexpr double edge = 1e-6;
    const bool inside = part.x >= -edge && part.y >= -edge && part.width > 0 && part.height > 0 &&
                        part.x + part.width <= picture.width + edge &&
                        part.y + part.height <= picture.height + edge;
    if (!inside)
        return Error{ErrorCode::invalid_argument,
                     "the region at " + std::to_string(part.x) + "," + std::to_string(part.y) +
                         " of size " + std::to_string(part.width) + "x" +
                         std::to_string(part.height) + " is not inside the picture of " +
                         std::to_string(picture.width) + "x" + std::to_string(picture.height)};
    if (!(options.crop_fraction > 0) || options.crop_fraction > 1)
        return Error{ErrorCode::invalid_argument, "the crop fraction is " +
                                                      std::to_string(options.crop_fraction) +
                                                      "; it must be above 0 and at most 1"};
    plan->geometry = plan_geometry(picture, part, plan->width, plan->height, options);
    plan->interpolation = options.interpolation;
    if (options.interpolation == Interpolation::area) {
        plan->area_rows = area_taps(plan->geometry.y);
        plan->set_area_columns();
    } else {
        plan->rows = options.interpolation == Interpolation::nearest
                         ? nearest_taps(plan->geometry.y)
                         : bilinear_taps(plan->geometry.y);
        plan->set_columns();
    }
    return Preprocessor(std::move(plan));
}

}  // namespace vartml
