// SPDX-License-Identifier: Apache-2.0
// Turns a video frame into a model's input tensor in one pass: crop, colour, resize, pad,
// normalise, quantise, layout.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml {

/// Pixel formats, named and laid out as GStreamer's video formats of the same name.
enum class PixelFormat : uint8_t {
    unknown,
    NV12,
    NV21,
    NV16,
    NV24,
    I420,
    YV12,
    Y42B,
    P010_10LE,
    I420_10LE,
    YUY2,
    UYVY,
    RGB,
    BGR,
    RGBA,
    BGRA,
    RGBx,
    BGRx,
    xRGB,
    xBGR,
    RGBP,
    BGRP,
    GRAY8
};
std::string_view to_string(PixelFormat format);
PixelFormat parse_pixel_format(std::string_view text);  ///< unknown for another name
unsigned num_planes(PixelFormat format);

enum class ColorMatrix : uint8_t { bt601, bt709, bt2020 };
enum class ColorRange : uint8_t { limited, full };

/// What stays the same over the frames of a stream. Sizes in pixels.
struct PictureInfo {
    PixelFormat format = PixelFormat::unknown;
    uint32_t width = 0, height = 0;
    ColorMatrix matrix = ColorMatrix::bt601;  ///< YUV only
    ColorRange range = ColorRange::limited;   ///< YUV only
    double pixel_aspect_ratio = 1.0;          ///< width of a pixel / its height
    bool operator==(const PictureInfo&) const = default;
};

/// One frame. Planes in GStreamer's order of the format (YV12: Y, V, U), each with its own stride;
/// nothing is demanded of alignment.
struct Picture {
    std::array<const uint8_t*, 4> planes{};
    std::array<uint32_t, 4> stride_bytes{};
    /// Rows belong to two fields in turn, those of chroma as well: of 4:2:0 rows 0 and 2 of luma
    /// have row 0 of chroma, 1 and 3 have row 1.
    bool interlaced = false;
};

/// Part of a frame in pixels; width 0 = the whole frame.
struct Region {
    double x = 0, y = 0, width = 0, height = 0;
};

enum class ResizeMode : uint8_t { stretch, letterbox, letterbox_top_left, crop };
/// bilinear and nearest with pixel centres at halves; area: mean of the pixels covered, by the part
/// that is covered.
enum class Interpolation : uint8_t { bilinear, nearest, area };
/// gray: the luma of YUV, BT.601's luma of RGB; always for a model of one channel, the same three
/// times for one of three.
enum class ChannelOrder : uint8_t { rgb, bgr, gray };

struct PreprocessOptions {
    ResizeMode resize = ResizeMode::stretch;
    Interpolation interpolation = Interpolation::bilinear;
    ChannelOrder channels = ChannelOrder::rgb;
    std::array<float, 3> mean{0, 0, 0};   ///< in the model's channel order, of pixel values 0–255
    std::array<float, 3> scale{1, 1, 1};  ///< out = (in - mean) * scale
    std::array<float, 3> pad{
        114, 114, 114};          ///< pad colour in the model's channel order, before mean and scale
    double crop_fraction = 1.0;  ///< resize crop: part of the largest centred crop that is used
    bool operator==(const PreprocessOptions&) const = default;
};

/// Affine map of model-input pixels (u, v) to frame pixels: x = a·u + b·v + c, y = d·u + e·v + f.
struct Affine {
    double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
    bool operator==(const Affine&) const = default;
};

/// One prepared conversion: tables for a picture format and size, a region, a tensor. Chroma is
/// that of the sample that covers a pixel, colours are limited to 0–255 before they are resized,
/// pixels outside the region are not read; GRAY8 is full range. Thread-safety: run() is const and
/// may be called concurrently; it allocates nothing.
class Preprocessor {
public:
    /// `tensor` is the HW or CPU view of a picture input: NHWC, NCHW, HCWNC4/8/16 of 1 or 3
    /// channels (N = 1), NHW of one channel, or NHWC of four bytes a pixel (uint8), of which the
    /// fourth is written as 0; types bf16, fp16, float32, uint8, int8 (integer
    /// types are quantised by the view's scale and zero point, without them the value is rounded).
    /// `cpu` is the CPU view of the same input: it says which axes are C, H and W. Errors:
    /// invalid_argument or unsupported naming format, layout, type or size.
    static Result<Preprocessor> create(const PictureInfo& picture, const Region& region,
                                       const TensorView& cpu, const TensorView& tensor,
                                       const PreprocessOptions& options);

    /// Reads one frame, writes the whole tensor, padding channels (zero) included. `tensor` holds
    /// size_bytes of the view.
    void run(const Picture& picture, void* tensor) const;

    /// Rows first…last-1 of the model's input only, so that several threads can share a frame.
    void run_rows(const Picture& picture, void* tensor, uint32_t first, uint32_t last) const;
    uint32_t rows() const;  ///< height of the model's input

    /// Where model pixels lie in the frame: corners map back to within half a pixel.
    Affine to_frame() const;

    Preprocessor(Preprocessor&&) noexcept;
    Preprocessor& operator=(Preprocessor&&) noexcept;
    ~Preprocessor();

private:
    struct Plan;
    explicit Preprocessor(std::unique_ptr<Plan> plan);
    std::unique_ptr<Plan> plan_;
};

}  // namespace vartml
