// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/picture_input.h"

namespace vartml::gst::infer {
namespace {

// The property wins over all that is known of the model.
void apply(ResizeChoice choice, vartml::ResizeMode& resize) {
    switch (choice) {
        case ResizeChoice::automatic:
            break;
        case ResizeChoice::stretch:
            resize = vartml::ResizeMode::stretch;
            break;
        case ResizeChoice::letterbox:
            resize = vartml::ResizeMode::letterbox;
            break;
        case ResizeChoice::letterbox_top_left:
            resize = vartml::ResizeMode::letterbox_top_left;
            break;
        case ResizeChoice::crop:
            resize = vartml::ResizeMode::crop;
            break;
    }
}

std::string named(const DecoderWish& wish, const vartml::PixelChoice& choice) {
    const std::string family = choice.family ? std::string(choice.family->nick) : "no decoder";
    return "vartmldecode '" + wish.element + "' takes " + family + " (" + choice.words() + ")";
}

}  // namespace

std::optional<PictureExtent> picture_extent(const vartml::TensorView& cpu, bool four_channels) {
    const auto& s = cpu.shape;
    PictureExtent e;
    switch (cpu.layout) {
        case vartml::Layout::NCHW:
            e = {s[1], s[2], s[3]};
            break;
        case vartml::Layout::NHWC:
            e = {s[3], s[1], s[2]};
            break;
        case vartml::Layout::NHW:
            e = {1, s[1], s[2]};
            break;
        default:
            return std::nullopt;
    }
    const bool fits = e.channels == 1 || e.channels == 3 || (four_channels && e.channels == 4);
    if (s[0] != 1 || !fits) return std::nullopt;
    return e;
}

const vartml::ModelInfo::Input* sidecar_input(const vartml::ModelInfo& info,
                                              const std::string& name) {
    for (const vartml::ModelInfo::Input& input : info.inputs) {
        if (input.name == name) return &input;
    }
    return nullptr;
}

bool choose_picture_pixels(const Settings& settings, const vartml::ModelInfo& info,
                           const vartml::ModelDescription& description, size_t picture,
                           std::span<const DecoderWish> wishes, vartml::PixelChoice& choice,
                           Failure& failure) {
    const vartml::TensorInfo& input = description.inputs[picture];
    const PictureExtent extent = *picture_extent(input.cpu, true);
    const auto choose = [&](const vartml::ModelInfo& known, const std::string& decoder) {
        auto made = vartml::choose_pixels(known, description.outputs, input, extent.width,
                                          extent.height, decoder);
        apply(settings.resize, made.options.resize);
        return made;
    };
    if (wishes.empty()) {
        choice = choose(info, "");
        return true;
    }
    for (size_t i = 0; i < wishes.size(); ++i) {
        auto made = choose(info_for_decoder(info, wishes[i]), wishes[i].decoder);
        if (i > 0 && made.options != choice.options) {
            failure = {{vartml::ErrorCode::invalid_argument,
                        named(wishes[0], choice) + " and " + named(wishes[i], made) +
                            ", but a frame becomes one tensor for both; set the same decoder in "
                            "both, or say with property 'preprocess' what the model takes"},
                       "infer-decoders",
                       "preprocess"};
            return false;
        }
        if (i == 0 || choice.source.empty()) choice = std::move(made);
    }
    return true;
}

Failure pixels_doubt(const vartml::PixelChoice& choice, const std::string& input) {
    std::string keys = choice.words();
    Failure failure = {{vartml::ErrorCode::not_found,
                        choice.sentence() +
                            "; say it with property preprocess='channels=… resize=… mean=… "
                            "scale=…', or in the sidecar with x-vartml-mean, x-vartml-scale and "
                            "x-vartml-channels in section [" +
                            input + "]"},
                       "infer-pixels",
                       "preprocess"};
    failure.found = std::move(keys);
    failure.fix = choice.section(input);
    return failure;
}

}  // namespace vartml::gst::infer
