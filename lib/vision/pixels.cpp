// SPDX-License-Identifier: Apache-2.0
// How pictures become an input: one choice from sidecar, decoder family and the input's type.
#include <algorithm>
#include <array>
#include <optional>

#include "lib/vision/families.h"
#include "lib/vision/modelinfo.h"
#include "lib/vision/modelinfo_keys.h"
#include "lib/vision/output_views.h"

namespace vartml {

namespace {

using Three = std::array<float, 3>;

std::string three_text(const Three& v) {
    std::string text = vision::number_text(v[0]);
    if (v[1] != v[0] || v[2] != v[0])
        text += "," + vision::number_text(v[1]) + "," + vision::number_text(v[2]);
    return text;
}

bool is_picture_of_bytes(const ModelInfo::Input* said, const TensorInfo& input) {
    return !input.picture.empty() || (said && !said->picture.empty());
}

// The numbers that the sidecar gives stay; the others are those of a single channel.
void keep_one_channel(PreprocessOptions& options, const ModelInfo::Input* said) {
    if (!said || !said->resize) options.resize = ResizeMode::stretch;
    if (!said || said->mean.empty()) options.mean = {0, 0, 0};
    if (!said || said->scale.empty()) options.scale = {1 / 255.f, 1 / 255.f, 1 / 255.f};
}

// Codes of a byte; int8 is the byte less 128.
void take_bytes(PreprocessOptions& options, DataType type) {
    const float zero = type == DataType::int8 ? 128.f : 0.f;
    options.mean = {zero, zero, zero};
    options.scale = {1, 1, 1};
}

}  // namespace

bool vision::has_one_channel(const TensorInfo& picture) {
    const auto& s = picture.cpu.shape;
    return s.size() == 3 ||
           (s.size() == 4 && (picture.cpu.layout == Layout::NHWC ? s[3] : s[1]) == 1);
}

PixelChoice choose_pixels(const ModelInfo& info, std::span<const TensorInfo> outputs,
                          const TensorInfo& input, uint32_t input_width, uint32_t input_height,
                          const std::string& decoder) {
    // As they are, else with a batch axis: what Decoder::create() reads.
    const vision::HeadRequest plain{info, outputs, input_width, input_height, nullptr};
    auto chosen = vision::choose_family(plain, decoder);
    const bool reads = chosen && chosen->family->create(plain);
    const auto batched = reads ? std::nullopt : vision::with_batch_axis(outputs);
    const vision::HeadRequest request{info,
                                      batched ? std::span<const TensorInfo>(*batched) : outputs,
                                      input_width, input_height, nullptr};
    if (batched) chosen = vision::choose_family(request, decoder);
    const vision::Family* const family = chosen ? chosen->family : nullptr;
    PixelChoice choice;
    std::optional<DecoderFamily> row;
    if (family) {
        choice.family = find_decoder_family(family->row.nick);
        row = vision::row_of(*family, request);
    }
    const bool shapes_tell =
        family && family->shapes_tell && (!family->knows_pixels || family->knows_pixels(request));
    choice.options = preprocess_options(info, row ? &*row : nullptr, input.name);

    const auto found = std::ranges::find(info.inputs, input.name, &ModelInfo::Input::name);
    const ModelInfo::Input* const said = found == info.inputs.end() ? nullptr : &*found;
    const bool has_mean = said && !said->mean.empty(), has_scale = said && !said->scale.empty();
    if (vision::has_one_channel(input)) choice.options.channels = ChannelOrder::gray;
    const bool is_of_bytes = is_picture_of_bytes(said, input);
    if (is_of_bytes) {
        const std::string& order = input.picture.empty() ? said->picture : input.picture;
        choice.options.channels = order.starts_with("bgr") ? ChannelOrder::bgr
                                  : order == "gray"        ? ChannelOrder::gray
                                                           : ChannelOrder::rgb;
        take_bytes(choice.options, DataType::uint8);
        choice.source = input.picture.empty() ? "the sidecar" : "the compiled model";
    } else if (has_mean && has_scale) {
        choice.source = "the sidecar";
    } else if (vision::is_integer(input.cpu.data_type)) {
        PreprocessOptions bytes;
        take_bytes(bytes, input.cpu.data_type);
        if (!has_mean) choice.options.mean = bytes.mean;
        if (!has_scale) choice.options.scale = bytes.scale;
        choice.source = "the input's type " + std::string(to_string(input.cpu.data_type));
    } else if (shapes_tell) {
        choice.source = "decoder " + std::string(family->row.nick);
    } else if (family && vision::has_one_channel(input)) {
        keep_one_channel(choice.options, said);
    }
    // Of what it says in part the rest is as without it.
    if (!is_of_bytes && (has_mean || has_scale)) choice.source = "the sidecar";
    return choice;
}

std::string PixelChoice::words() const {
    std::string text = std::string(vision::to_string(options.channels)) + ", " +
                       std::string(vision::to_string(options.resize));
    if (options.resize == ResizeMode::crop)
        text += " " + vision::number_text(static_cast<float>(options.crop_fraction));
    return text + ", mean " + three_text(options.mean) + ", scale " + three_text(options.scale);
}

std::string PixelChoice::sentence() const {
    const std::string fed = "pictures are fed as " + words() + "; ";
    if (!source.empty()) return fed + "as " + source + " says";
    const std::string common =
        family ? ", it is what most models of decoder " + std::string(family->nick) + " take" : "";
    return fed + "neither model nor sidecar says so" + common +
           ": results of a model that was trained otherwise, or for something else, are wrong";
}

std::string PixelChoice::section(std::string_view input_name) const {
    ModelInfo::Input said;
    said.channels = options.channels;
    said.resize = options.resize;
    if (options.resize == ResizeMode::crop) said.crop_fraction = options.crop_fraction;
    said.mean.assign(options.mean.begin(), options.mean.end());
    said.scale.assign(options.scale.begin(), options.scale.end());
    return "[" + std::string(input_name) + "]\ndir=input\n" +
           vision::key_lines(vision::input_keys(), said);
}

}  // namespace vartml
