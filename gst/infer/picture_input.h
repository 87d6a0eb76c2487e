// SPDX-License-Identifier: Apache-2.0
// Which tensors can be pictures, and what is done to a frame before it becomes one.
#pragma once
#include <optional>
#include <span>

#include "gst/infer/settings.h"
#include "gst/support/decoder_query.h"
#include "gst/support/error.h"

#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

namespace vartml::gst::infer {

struct PictureExtent {
    uint32_t channels = 0, height = 0, width = 0;
};
// Channels, height and width of a CPU view that can be a picture: [1, C, H, W], [1, H, W, C] or
// [1, H, W] with C of 1 or 3, and of 4 where frames are the tensor already.
std::optional<PictureExtent> picture_extent(const vartml::TensorView& cpu, bool four_channels);

const vartml::ModelInfo::Input* sidecar_input(const vartml::ModelInfo& info,
                                              const std::string& name);

// How frames become the input `picture`: sidecar, the family of those who decode the outputs (that
// which an automatic decoder would choose where nobody answered), the input's type, and the
// property `resize-mode`. False: two decoders want different pixels; `failure` is filled.
bool choose_picture_pixels(const Settings& settings, const vartml::ModelInfo& info,
                           const vartml::ModelDescription& description, size_t picture,
                           std::span<const DecoderWish> wishes, vartml::PixelChoice& choice,
                           Failure& failure);

// What to say of a choice that nobody vouches for.
Failure pixels_doubt(const vartml::PixelChoice& choice, const std::string& input);

}  // namespace vartml::gst::infer
