// SPDX-License-Identifier: Apache-2.0
// The options --mean, --scale and --channels: how the pixels of a picture become numbers.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

#include <vartml/postprocess.h>
#include <vartml/result.h>

namespace vartml::tools {

struct PixelOptions {
    std::string mean, scale, channels;  // as given; "" = not said
};

// `effect` ends the help of each, as in "of pictures, instead of the sidecar's".
void add_pixel_options(CLI::App& app, PixelOptions& options, const std::string& effect);

// What they say in the words of a sidecar; a field is empty where its option is not given. Errors:
// invalid_argument naming the option.
Result<ModelInfo::Input> parse_pixels(const PixelOptions& options);

}  // namespace vartml::tools
