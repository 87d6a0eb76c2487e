// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "lib/tensor/describe.h"
#include "lib/vision/pixel_format.h"
#include "lib/vision/preprocess_impl.h"

namespace vartml {

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
