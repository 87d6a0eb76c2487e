// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/negation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <vartml/preprocess.h>
#include <vartml/tensor.h>

namespace vartml::test {
namespace {

constexpr size_t num_pixels = size_t{negation_width} * negation_height;

float round_to_bf16(float value) {  // to nearest, ties to even
    auto bits = std::bit_cast<uint32_t>(value);
    bits += 0x7fff + ((bits >> 16) & 1);
    return std::bit_cast<float>(bits & 0xffff0000u);
}

PictureInfo picture_info(const GstVideoInfo& format) {
    PictureInfo picture;
    picture.format = parse_pixel_format(GST_VIDEO_INFO_NAME(&format));
    picture.width = uint32_t(GST_VIDEO_INFO_WIDTH(&format));
    picture.height = uint32_t(GST_VIDEO_INFO_HEIGHT(&format));
    const GstVideoColorimetry& color = GST_VIDEO_INFO_COLORIMETRY(&format);
    if (color.matrix == GST_VIDEO_COLOR_MATRIX_BT709) picture.matrix = ColorMatrix::bt709;
    if (color.matrix == GST_VIDEO_COLOR_MATRIX_BT2020) picture.matrix = ColorMatrix::bt2020;
    if (color.range == GST_VIDEO_COLOR_RANGE_0_255) picture.range = ColorRange::full;
    return picture;
}

}  // namespace

std::string negation_model() {
    const char* models = std::getenv("VARTML_VM_MODELS");
    return models ? std::string(models) + "/negation.rai" : std::string();
}

std::vector<float> negated(const GstVideoInfo& format, const std::vector<guint8>& pixels) {
    const auto view =
        make_view(DataType::float32, Layout::NCHW, {1, 3, negation_height, negation_width});
    const auto preprocessor = Preprocessor::create(picture_info(format), {}, view, view, {});
    if (!preprocessor) {
        ADD_FAILURE() << preprocessor.error().message;
        return {};
    }
    GstVideoInfo dense;
    gst_video_info_set_format(&dense, GST_VIDEO_INFO_FORMAT(&format),
                              guint(GST_VIDEO_INFO_WIDTH(&format)),
                              guint(GST_VIDEO_INFO_HEIGHT(&format)));
    Picture picture;
    for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(&dense); ++plane) {
        picture.planes[plane] = pixels.data() + GST_VIDEO_INFO_PLANE_OFFSET(&dense, plane);
        picture.stride_bytes[plane] = uint32_t(GST_VIDEO_INFO_PLANE_STRIDE(&dense, plane));
    }
    std::vector<float> tensor(3 * num_pixels), result(3 * num_pixels);
    preprocessor->run(picture, tensor.data());
    for (size_t pixel = 0; pixel < num_pixels; ++pixel) {
        for (size_t c = 0; c < 3; ++c)
            result[pixel * 3 + c] = -round_to_bf16(tensor[c * num_pixels + pixel]);
    }
    return result;
}

std::vector<float> values_of_hw_view(const std::vector<guint8>& tensor) {
    std::vector<uint16_t> words(4 * num_pixels);
    if (tensor.size() != words.size() * sizeof words[0]) {
        ADD_FAILURE() << "the tensor has " << tensor.size() << " bytes";
        return {};
    }
    std::memcpy(words.data(), tensor.data(), tensor.size());
    std::vector<float> result(3 * num_pixels);
    for (size_t pixel = 0; pixel < num_pixels; ++pixel) {
        for (size_t c = 0; c < 3; ++c)
            result[pixel * 3 + c] = std::bit_cast<float>(uint32_t{words[pixel * 4 + c]} << 16);
    }
    return result;
}

}  // namespace vartml::test
