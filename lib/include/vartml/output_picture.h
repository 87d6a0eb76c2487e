// SPDX-License-Identifier: Apache-2.0
// Outputs that are pictures themselves: colours, brightness, depth, a mask.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <vartml/postprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml {

/// What a picture's values are: three colours; brightness alone, of a picture whose colours come
/// from elsewhere; a measure of each pixel such as depth; how much of each pixel belongs to the
/// object. Nicks: color, luma, map, alpha.
enum class PictureKind : uint8_t { color, luma, map, alpha };
std::string_view to_string(PictureKind kind);

/// Colours for a measure, from its least to its greatest value.
enum class ColorMap : uint8_t { gray, turbo, inferno, viridis };
/// Red, green and blue of 256 equal steps.
std::span<const uint8_t, 768> colors_of(ColorMap map);

/// What a user may want otherwise than model and sidecar say.
struct OutputPictureOptions {
    std::string output{};               ///< name or id of the tensor; "": the only one that may be
    std::optional<PictureKind> kind{};  ///< unset: by the sidecar, else by the shape
    std::string range{};  ///< "": by the sidecar, else by the graph and the input; "frame": least
                          ///< and greatest value of each frame; "MIN,MAX": black and white
};

/// A part of a picture, in its pixels.
struct PictureCut {
    uint32_t x = 0, y = 0, width = 0, height = 0;
    bool operator==(const PictureCut&) const = default;
};

/// Reads the picture that one output of a model is: [1,C,h,w] or [1,h,w,C] of 3, 2 (background and
/// object) or 1 channels, also without batch and, for one channel, without C. Values become bytes
/// between two numbers, black and white: those of the options; of the sidecar (`ranges`); 0 and 1
/// where the graph ends in a sigmoid or softmax, for two channels, and for alpha; 0 and 255 for
/// whole numbers; for color and luma what 0 and 255 are in the model's input; for a map the least
/// and greatest value of the frame. Values beyond are clamped; what is not finite is black.
/// Thread-safety: keeps scratch memory; one thread at a time.
class OutputPicture {
public:
    /// `input` is the model's picture input, or nullptr where it is not known: pictures are then 0
    /// to 1. Errors: not_found (no output, or several, may be one: the sentence lists them),
    /// bad_model (number of channels), invalid_argument (range). `fault`, if given, gets an id:
    /// pic-output, pic-channels, pic-range.
    static Result<OutputPicture> create(const ModelInfo& info, std::span<const TensorInfo> outputs,
                                        const TensorInfo* input, uint32_t input_width,
                                        uint32_t input_height, const OutputPictureOptions& options,
                                        DecodeFault* fault = nullptr);

    PictureKind kind() const;
    uint32_t width() const;  ///< pixels
    uint32_t height() const;
    bool bgr() const;            ///< kind color: the first channel is blue
    std::string output() const;  ///< the tensor's name
    /// "0 to 1", "each frame's own".
    std::string range() const;

    /// Takes the picture of a run; its tensors must live until the last write. Errors:
    /// invalid_argument (tensors of another model), unsupported (type or layout).
    Result<void> read(std::span<const OutputTensor> tensors);

    /// Writes rows of bytes, 3 a pixel for color and 1 for other kinds; `limited`: 16 to 235
    /// instead of 0 to 255. Gives how many values are not finite.
    size_t write(const PictureCut& cut, uint8_t* dst, size_t stride_bytes, bool limited = false);
    /// The same of one channel, 3 bytes a pixel: red, green, blue.
    size_t write_mapped(const PictureCut& cut, ColorMap map, uint8_t* dst, size_t stride_bytes);

    /// Why the numbers of the first frames can hardly be what the range takes them for; "" =
    /// nothing speaks against it.
    std::string doubt() const;

    OutputPicture(OutputPicture&&) noexcept;
    OutputPicture& operator=(OutputPicture&&) noexcept;
    ~OutputPicture();

private:
    struct State;
    explicit OutputPicture(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace vartml
