// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/picture_input.h"

namespace vartml::gst::infer {
namespace {

// Also of pixels of four bytes, rgbx and bgrx.
vartml::ChannelOrder channel_order(const std::string& text) {
    if (text.starts_with("bgr")) return vartml::ChannelOrder::bgr;
    if (text == "gray") return vartml::ChannelOrder::gray;
    return vartml::ChannelOrder::rgb;
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

vartml::PreprocessOptions picture_options(const Settings& settings, const vartml::ModelInfo& info,
                                          const vartml::ModelDescription& description,
                                          size_t picture) {
    const vartml::TensorInfo& input = description.inputs[picture];
    const PictureExtent extent = *picture_extent(input.cpu, true);
    // Without a sidecar the shapes of a detection head say how its published models take pictures.
    const vartml::DecoderFamily* family =
        vartml::guess_decoder_family(info, description.outputs, extent.width, extent.height);
    vartml::PreprocessOptions options = vartml::preprocess_options(info, family, input.name);
    const vartml::ModelInfo::Input* said = sidecar_input(info, input.name);
    const std::string& bytes = input.picture.empty() && said ? said->picture : input.picture;
    if (!bytes.empty()) {
        options.mean = {0, 0, 0};
        options.scale = {1, 1, 1};
        options.channels = channel_order(bytes);
    }
    switch (settings.resize) {
        case ResizeChoice::automatic:
            break;
        case ResizeChoice::stretch:
            options.resize = vartml::ResizeMode::stretch;
            break;
        case ResizeChoice::letterbox:
            options.resize = vartml::ResizeMode::letterbox;
            break;
        case ResizeChoice::letterbox_top_left:
            options.resize = vartml::ResizeMode::letterbox_top_left;
            break;
        case ResizeChoice::crop:
            options.resize = vartml::ResizeMode::crop;
            break;
    }
    return options;
}

}  // namespace vartml::gst::infer
