// SPDX-License-Identifier: Apache-2.0
#include <vartml/output_picture.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/postprocess/pixels.h"
#include "lib/vision/head.h"
#include "lib/vision/maps.h"
#include "lib/vision/modelinfo_keys.h"
#include "lib/vision/output_views.h"

namespace vartml {

using kernels::ByteScale;
using vision::HeadRequest;

namespace {

// ours: pictures of one frame may well be black; these many in a row are not
constexpr unsigned frames_looked_at = 30;

// Where the pixels lie; strides in values.
struct Form {
    size_t output = 0;
    uint32_t channels = 0, height = 0, width = 0;
    bool channels_last = false;
};

// The form of a picture, by the shape alone. Of three axes the one of 1 to 3 is that of the
// channels, the first where both are.
std::optional<Form> form_of(std::span<const TensorInfo> outputs, size_t index) {
    std::vector<uint32_t> s = outputs[index].cpu.shape;
    while (s.size() > 2 && s.front() == 1) s.erase(s.begin());
    Form form{index, 1, 0, 0, false};
    const auto is_channels = [](uint32_t n) { return n >= 1 && n <= 3; };
    if (s.size() == 2) {
        form.height = s[0], form.width = s[1];
    } else if (s.size() == 3 && is_channels(s[0])) {
        form.channels = s[0], form.height = s[1], form.width = s[2];
    } else if (s.size() == 3 && is_channels(s[2])) {
        form.channels = s[2], form.height = s[0], form.width = s[1];
        form.channels_last = form.channels > 1;
    }
    // ours: less is a table or a vector
    const bool picture = form.height >= 8 && form.width >= 8;
    return picture ? std::optional(form) : std::nullopt;
}

const ModelInfo::Output* said_of(const ModelInfo& info, const std::string& name) {
    const auto found = std::ranges::find(info.outputs, name, &ModelInfo::Output::name);
    return found == info.outputs.end() ? nullptr : &*found;
}

Error output_error(const HeadRequest& request, const std::string& what) {
    const std::string found = vision::outputs_text(request.outputs);
    const std::string fix =
        "name it by the property 'output', or in the sidecar with "
        "x-vartml-picture=color (or luma, map, alpha)";
    if (request.fault) *request.fault = {"pic-output", found, "[1,C,h,w] of 1 to 3 channels", fix};
    return {ErrorCode::not_found, what + ", found " + found + "; " + fix};
}

// The output that was named, else the one that the sidecar calls a picture, else the only one with
// the shape of one.
Result<Form> choose_output(const HeadRequest& request, const std::string& wanted) {
    const auto named = [&](const TensorInfo& output) {
        return output.name == wanted || vision::tensor_id(request, output) == wanted;
    };
    std::vector<Form> fitting, said;
    for (size_t i = 0; i < request.outputs.size(); ++i) {
        const TensorInfo& output = request.outputs[i];
        if (!wanted.empty() && !named(output)) continue;
        const auto form = form_of(request.outputs, i);
        if (!form && wanted.empty()) continue;
        if (!form) {
            return output_error(request, "output '" + output.name + "' of shape " +
                                             vision::shape_text(output.cpu.shape) +
                                             " is no picture of 1 to 3 channels");
        }
        fitting.push_back(*form);
        const auto* of_sidecar = said_of(request.info, output.name);
        if (of_sidecar && !of_sidecar->picture.empty()) said.push_back(*form);
    }
    if (said.size() == 1) return said.front();
    if (fitting.size() == 1) return fitting.front();
    if (!wanted.empty())
        return output_error(request, "no output has the name or id '" + wanted + "'");
    return output_error(request, fitting.empty() ? "no output has the shape of a picture"
                                                 : "several outputs may be the picture");
}

struct KindNick {
    std::string_view nick;
    PictureKind kind;
};
constexpr KindNick kinds[] = {{"color", PictureKind::color},
                              {"luma", PictureKind::luma},
                              {"map", PictureKind::map},
                              {"alpha", PictureKind::alpha}};

// "rgb" and "bgr" of a sidecar are color.
std::optional<PictureKind> kind_named(std::string_view text) {
    for (const KindNick& row : kinds) {
        if (row.nick == text) return row.kind;
    }
    return text.empty() ? std::nullopt : std::optional(PictureKind::color);
}

Result<PictureKind> choose_kind(const HeadRequest& request, const Form& form,
                                const TensorInfo* input, std::optional<PictureKind> wanted) {
    const TensorInfo& output = request.outputs[form.output];
    const auto* said = said_of(request.info, output.name);
    auto kind = wanted;
    if (!kind && said) kind = kind_named(said->picture);
    if (!kind && form.channels == 3) kind = PictureKind::color;
    if (!kind && form.channels == 1 && input && vision::has_one_channel(*input))
        kind = PictureKind::luma;
    if (!kind) kind = PictureKind::map;
    const bool fits = *kind == PictureKind::color  ? form.channels == 3
                      : *kind == PictureKind::luma ? form.channels == 1
                                                   : form.channels <= 2;
    if (fits) return *kind;
    const std::string found = std::to_string(form.channels);
    const std::string expected = *kind == PictureKind::color  ? "3"
                                 : *kind == PictureKind::luma ? "1"
                                                              : "1 or 2";
    const std::string fix =
        form.channels == 3 ? "choose kind=color" : "choose kind=map, or another output";
    if (request.fault) *request.fault = {"pic-channels", found, expected, fix};
    return Error{ErrorCode::bad_model, "output '" + output.name + "' of shape " +
                                           vision::shape_text(output.cpu.shape) + " has " + found +
                                           " channels, kind " + std::string(to_string(*kind)) +
                                           " has " + expected + "; " + fix};
}

// Black and white of each channel; nothing: those of each frame.
using Ranges = std::optional<std::array<ByteScale, 3>>;

ByteScale between(float black, float white) {
    return {.zero = black, .factor = 255 / (white - black)};
}

std::array<ByteScale, 3> same(float black, float white) {
    const ByteScale scale = between(black, white);
    return {scale, scale, scale};
}

Result<Ranges> named_range(const HeadRequest& request, const std::string& text) {
    if (text == "frame") return Ranges();
    std::vector<float> numbers;
    if (vision::parse_numbers(text, numbers) && numbers.size() == 2 && numbers[0] != numbers[1] &&
        std::isfinite(255 / (numbers[1] - numbers[0])))
        return Ranges(same(numbers[0], numbers[1]));
    const std::string expected = "MIN,MAX, the values of black and white, or frame";
    if (request.fault) *request.fault = {"pic-range", text, expected, "range=0,1"};
    return Error{ErrorCode::invalid_argument,
                 "range is '" + text + "', expected " + expected + ", such as range=0,1"};
}

// Whether its first channel is blue: as the sidecar says, else as the model is fed.
bool is_blue_first(const HeadRequest& request, const std::string& output, const TensorInfo* input) {
    const auto* said = said_of(request.info, output);
    if (said && !said->picture.empty() && said->picture != "color") return said->picture == "bgr";
    return input &&
           choose_pixels(request.info, request.outputs, *input, request.width, request.height)
                   .options.channels == ChannelOrder::bgr;
}

// What 0 and 255 are in the model's input, in the output's order of channels.
std::array<ByteScale, 3> of_input(const HeadRequest& request, const std::string& output,
                                  PictureKind kind, const TensorInfo* input) {
    if (!input) return same(0, 1);
    const PreprocessOptions fed =
        choose_pixels(request.info, request.outputs, *input, request.width, request.height).options;
    std::array<ByteScale, 3> scales;
    for (size_t c = 0; c < 3; ++c)
        scales[c] = {.zero = 0 - fed.mean[c] * fed.scale[c], .factor = 1 / fed.scale[c]};
    if (kind == PictureKind::color &&
        is_blue_first(request, output, input) != (fed.channels == ChannelOrder::bgr))
        std::swap(scales[0], scales[2]);
    return scales;
}

Result<Ranges> choose_range(const HeadRequest& request, const Form& form, PictureKind kind,
                            const TensorInfo* input, const std::string& wanted, bool sigmoid) {
    if (!wanted.empty()) return named_range(request, wanted);
    const TensorInfo& output = request.outputs[form.output];
    const auto* said = said_of(request.info, output.name);
    if (said && !said->ranges.empty()) {
        std::array<ByteScale, 3> scales;
        for (size_t c = 0; c < 3; ++c) {
            const size_t at = said->ranges.size() == 2 ? 0 : 2 * c;
            scales[c] = between(said->ranges[at], said->ranges[at + 1]);
        }
        return Ranges(scales);
    }
    const std::string_view end = vision::ends_in(request, output);
    if (sigmoid || form.channels == 2 || end == "sigmoid" || end == "softmax" ||
        kind == PictureKind::alpha)
        return Ranges(same(0, 1));
    if (kind == PictureKind::map) return Ranges();
    if (vision::is_whole(output)) return Ranges(same(0, 255));
    return Ranges(of_input(request, output.name, kind, input));
}

std::string number(float value) {
    char text[32];
    const auto [end, error] =
        std::to_chars(text, text + sizeof text, value, std::chars_format::general, 5);
    return {text, end};
}

float white_of(const ByteScale& scale) {
    return scale.zero + 255 / scale.factor;
}

}  // namespace

std::string_view to_string(PictureKind kind) {
    return kinds[static_cast<size_t>(kind)].nick;
}

struct OutputPicture::State {
    Form form;
    PictureKind kind{};
    std::string name;
    std::vector<uint32_t> shape;  // CPU view
    bool bgr = false, sigmoid = false;
    Ranges range;
    vision::CodedOutputs coded;
    vision::FloatView view{};

    // of the last read
    const float* values = nullptr;
    std::array<ByteScale, 3> scales{};
    std::vector<float> probabilities{};              // one channel made of two, or of logits
    std::array<std::vector<float>, 3> row_planes{};  // of channels that come last
    std::vector<uint8_t> row{};                      // of write_mapped

    unsigned looked_at = 0, odd = 0;
    kernels::ValueRange seen{0, 0};

    size_t pixels() const { return size_t{form.width} * form.height; }
    size_t channels() const { return probabilities.empty() ? form.channels : 1; }
    void make_probabilities();
    void look();
    size_t write_row(size_t first, size_t count, const std::array<ByteScale, 3>& with,
                     uint8_t* dst);
};

Result<OutputPicture> OutputPicture::create(const ModelInfo& info,
                                            std::span<const TensorInfo> outputs,
                                            const TensorInfo* input, uint32_t input_width,
                                            uint32_t input_height,
                                            const OutputPictureOptions& options,
                                            DecodeFault* fault) {
    const auto known = vision::with_quantisation(outputs, info);
    const HeadRequest request{info, known, input_width, input_height, fault};
    const auto form = choose_output(request, options.output);
    if (!form) return form.error();
    const auto kind = choose_kind(request, *form, input, options.kind);
    if (!kind) return kind.error();
    const TensorInfo& output = known[form->output];
    const std::string_view unknown = "", logits = "sigmoid";
    const bool wants_probability =
        *kind == PictureKind::alpha || (*kind == PictureKind::map && !info.activation.empty());
    const bool sigmoid = wants_probability && form->channels == 1 &&
                         vision::activation_for(request, output, logits, unknown) == "sigmoid";
    const auto range = choose_range(request, *form, *kind, input, options.range, sigmoid);
    if (!range) return range.error();
    auto state = std::make_unique<State>(State{.form = *form,
                                               .kind = *kind,
                                               .name = output.name,
                                               .shape = output.cpu.shape,
                                               .bgr = is_blue_first(request, output.name, input),
                                               .sigmoid = sigmoid,
                                               .range = *range,
                                               .coded = vision::CodedOutputs(known)});
    return OutputPicture(std::move(state));
}

Result<void> OutputPicture::read(std::span<const OutputTensor> tensors) {
    State& s = *state_;
    tensors = s.coded.with_codes(tensors);
    if (s.form.output >= tensors.size() || !tensors[s.form.output].cpu ||
        tensors[s.form.output].cpu->shape != s.shape) {
        return Error{ErrorCode::invalid_argument,
                     "these are not the tensors of the model that output '" + s.name +
                         "' is of, whose shape is " + vision::shape_text(s.shape)};
    }
    auto values = s.view.read(tensors[s.form.output]);
    if (!values) return std::move(values).error();
    s.values = *values;
    if (s.form.channels == 2 || s.sigmoid) s.make_probabilities();
    if (s.range) {
        s.scales = *s.range;
        s.look();
        return {};
    }
    const kernels::ValueRange seen = kernels::range_of(s.values, s.pixels() * s.channels());
    // One value alone has no range; it is black.
    const bool some = seen.least < seen.greatest;
    const float white = some ? seen.greatest : seen.least + 1;
    s.scales = same(std::isfinite(seen.least) ? seen.least : 0, std::isfinite(white) ? white : 1);
    return {};
}

// Of background and object their softmax, unless they are that.
void OutputPicture::State::make_probabilities() {
    probabilities.resize(pixels());
    const auto sigmoid_of = [](float x) { return 1 / (1 + std::exp(-x)); };
    if (form.channels == 1) {
        std::transform(values, values + pixels(), probabilities.begin(), sigmoid_of);
        values = probabilities.data();
        return;
    }
    const size_t step = form.channels_last ? 2 : 1, other = form.channels_last ? 1 : pixels();
    const float* const background = values;
    const float* const object = values + other;
    bool sums_to_one = true;
    for (size_t i = 0; i < pixels() && sums_to_one; ++i) {
        const float b = background[i * step], o = object[i * step];
        sums_to_one = b >= 0 && o >= 0 && std::abs(b + o - 1) < 0.01f;
    }
    for (size_t i = 0; i < pixels(); ++i) {
        const float b = background[i * step], o = object[i * step];
        probabilities[i] = sums_to_one ? o : sigmoid_of(o - b);
    }
    values = probabilities.data();
}

// Whether the first frames lie where black and white are.
void OutputPicture::State::look() {
    if (looked_at == frames_looked_at) return;
    ++looked_at;
    seen = kernels::range_of(values, pixels() * channels());
    const auto byte = [&](float v) { return (v - scales[0].zero) * scales[0].factor; };
    const auto [low, high] = std::minmax({byte(seen.least), byte(seen.greatest)});
    odd += high < 8 || low > 247 || low < -255 || high > 510;
}

size_t OutputPicture::State::write_row(size_t first, size_t count,
                                       const std::array<ByteScale, 3>& with, uint8_t* dst) {
    if (channels() == 1) return kernels::to_bytes(values + first, count, with[0], dst);
    if (!form.channels_last) {
        const size_t plane = pixels();
        return kernels::to_pixels(
            {values + first, values + plane + first, values + 2 * plane + first}, count, with, dst);
    }
    const float* const pixel = values + 3 * first;
    const auto equal = [&](size_t c) {
        return with[c].zero == with[0].zero && with[c].factor == with[0].factor;
    };
    if (equal(1) && equal(2)) return kernels::to_bytes(pixel, 3 * count, with[0], dst);
    for (size_t c = 0; c < 3; ++c) {
        row_planes[c].resize(count);
        for (size_t i = 0; i < count; ++i) row_planes[c][i] = pixel[3 * i + c];
    }
    return kernels::to_pixels({row_planes[0].data(), row_planes[1].data(), row_planes[2].data()},
                              count, with, dst);
}

size_t OutputPicture::write(const PictureCut& cut, uint8_t* dst, size_t stride_bytes,
                            bool limited) {
    State& s = *state_;
    std::array<ByteScale, 3> scales = s.scales;
    for (ByteScale& scale : scales) {
        if (!limited) continue;
        scale.factor *= 219.f / 255;
        scale.span = 219;
        scale.base = 16;
    }
    size_t not_finite = 0;
    for (uint32_t y = 0; y < cut.height; ++y, dst += stride_bytes)
        not_finite += s.write_row(size_t{cut.y + y} * s.form.width + cut.x, cut.width, scales, dst);
    return not_finite;
}

size_t OutputPicture::write_mapped(const PictureCut& cut, ColorMap map, uint8_t* dst,
                                   size_t stride_bytes) {
    State& s = *state_;
    const auto colors = colors_of(map);
    s.row.resize(cut.width);
    size_t not_finite = 0;
    for (uint32_t y = 0; y < cut.height; ++y, dst += stride_bytes) {
        not_finite += write({cut.x, cut.y + y, cut.width, 1}, s.row.data(), cut.width);
        for (uint32_t x = 0; x < cut.width; ++x)
            std::copy_n(colors.data() + 3 * size_t{s.row[x]}, 3, dst + 3 * size_t{x});
    }
    return not_finite;
}

PictureKind OutputPicture::kind() const {
    return state_->kind;
}
uint32_t OutputPicture::width() const {
    return state_->form.width;
}
uint32_t OutputPicture::height() const {
    return state_->form.height;
}
bool OutputPicture::bgr() const {
    return state_->bgr;
}
std::string OutputPicture::output() const {
    return state_->name;
}

std::string OutputPicture::range() const {
    if (!state_->range) return "each frame's own";
    const ByteScale& first = (*state_->range)[0];
    return number(first.zero) + " to " + number(white_of(first));
}

std::string OutputPicture::doubt() const {
    const State& s = *state_;
    if (s.odd < frames_looked_at) return {};
    return "output '" + s.name + "' is read as " + range() + ", but its values are " +
           number(s.seen.least) + " to " + number(s.seen.greatest) + " (frame " +
           std::to_string(frames_looked_at) +
           "); say what black and white are by the property 'range', or with ranges=MIN,MAX in the "
           "sidecar's section [" +
           s.name + "]";
}

OutputPicture::OutputPicture(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputPicture::OutputPicture(OutputPicture&&) noexcept = default;
OutputPicture& OutputPicture::operator=(OutputPicture&&) noexcept = default;
OutputPicture::~OutputPicture() = default;

}  // namespace vartml
