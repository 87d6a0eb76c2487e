// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/details.h"

#include <algorithm>
#include <cmath>

namespace vartml::vision {

namespace {

Keypoint map_point(Keypoint point, const Affine& map, float threshold) {
    const double u = point.x, v = point.y;
    point.x = static_cast<float>(map.a * u + map.b * v + map.c);
    point.y = static_cast<float>(map.d * u + map.e * v + map.f);
    point.visible = point.visible && point.score >= threshold;
    return point;
}

// Maps of pictures have no rotation: two opposite corners are enough.
void map_rectangle(const Affine& map, Mask& mask) {
    const double x0 = map.a * mask.x0 + map.c, x1 = map.a * mask.x1 + map.c;
    const double y0 = map.e * mask.y0 + map.f, y1 = map.e * mask.y1 + map.f;
    mask.x0 = static_cast<float>(x0), mask.x1 = static_cast<float>(x1);
    mask.y0 = static_cast<float>(y0), mask.y1 = static_cast<float>(y1);
}

// Cells [first, last) of `cells` over [low, high) whose centres lie in [0, limit).
struct Range {
    uint32_t first, last;
};
Range inside(float low, float high, uint32_t cells, uint32_t limit) {
    const double cell = (double(high) - low) / cells;
    if (!(cell > 0)) return {0, 0};
    const auto index = [&](double edge) {
        const double i = std::ceil((edge - low) / cell - 0.5);
        return static_cast<uint32_t>(std::clamp<double>(i, 0, cells));
    };
    return {index(0), index(limit)};
}

// Maps a mask and appends what of it lies on the frame; nothing where no cell does.
std::optional<Mask> append_on_frame(Mask mask, const std::vector<uint8_t>& pixels,
                                    const Affine& to_frame, FrameSize frame, Decoded& decoded) {
    map_rectangle(to_frame, mask);
    const Range columns = inside(mask.x0, mask.x1, mask.width, frame.width);
    const Range rows = inside(mask.y0, mask.y1, mask.height, frame.height);
    if (columns.first >= columns.last || rows.first >= rows.last) return std::nullopt;
    const float cell_x = (mask.x1 - mask.x0) / static_cast<float>(mask.width);
    const float cell_y = (mask.y1 - mask.y0) / static_cast<float>(mask.height);
    const Mask cut{.x0 = mask.x0 + cell_x * static_cast<float>(columns.first),
                   .y0 = mask.y0 + cell_y * static_cast<float>(rows.first),
                   .x1 = mask.x0 + cell_x * static_cast<float>(columns.last),
                   .y1 = mask.y0 + cell_y * static_cast<float>(rows.last),
                   .width = columns.last - columns.first,
                   .height = rows.last - rows.first,
                   .first = decoded.mask_pixels.size(),
                   .pixel_bytes = mask.pixel_bytes};
    for (uint32_t row = rows.first; row < rows.last; ++row) {
        const size_t pixel = size_t(row) * mask.width + columns.first;
        const uint8_t* const from = pixels.data() + mask.first + pixel * mask.pixel_bytes;
        decoded.mask_pixels.insert(decoded.mask_pixels.end(), from,
                                   from + size_t(cut.width) * mask.pixel_bytes);
    }
    return cut;
}

}  // namespace

void map_details(const BoxDetails& details, const Affine& to_frame, FrameSize frame,
                 float keypoint_threshold, Detection& detection, Decoded& decoded) {
    detection.first_keypoint = static_cast<uint32_t>(decoded.keypoints.size());
    detection.keypoints = static_cast<uint32_t>(details.keypoints.size());
    for (const Keypoint& point : details.keypoints) {
        decoded.keypoints.push_back(map_point(point, to_frame, keypoint_threshold));
    }
    decoded.not_finite += details.not_finite;
    if (!details.mask) return;
    const auto mask = append_on_frame(*details.mask, details.mask_pixels, to_frame, frame, decoded);
    if (!mask) return;
    detection.mask = static_cast<int32_t>(decoded.masks.size());
    decoded.masks.push_back(*mask);
}

void map_picture(const PictureDetails& picture, const Affine& to_frame, FrameSize frame,
                 float keypoint_threshold, Decoded& decoded) {
    for (const Keypoint& point : picture.keypoints) {
        decoded.keypoints.push_back(map_point(point, to_frame, keypoint_threshold));
    }
    decoded.embedding.assign(picture.embedding.begin(), picture.embedding.end());
    decoded.text = picture.text;
    decoded.text_score = picture.text.empty() ? 0 : picture.text_score;
    for (const Mask& map : picture.class_maps) {
        const auto cut = append_on_frame(map, picture.mask_pixels, to_frame, frame, decoded);
        if (cut) decoded.class_maps.push_back(*cut);
    }
}

}  // namespace vartml::vision
