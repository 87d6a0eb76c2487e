// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/pixel_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace vartml::tools {
namespace {

// "103.5", or "123,117,104".
Result<std::vector<float>> three_numbers(const char* option, const std::string& text) {
    std::vector<float> values;
    for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
        end = std::min(text.find(',', begin), text.size());
        float value = NAN;
        const auto [stop, fault] = std::from_chars(&text[begin], &text[end], value);
        if (fault != std::errc() || stop != &text[end] || !std::isfinite(value)) {
            values.clear();
            break;
        }
        values.push_back(value);
    }
    if (values.size() == 1) values.resize(3, values[0]);
    if (values.size() != 3)
        return Error{ErrorCode::invalid_argument,
                     std::string(option) + ": is '" + text + "', expected one number or three"};
    return values;
}

}  // namespace

void add_pixel_options(CLI::App& app, PixelOptions& options, const std::string& effect) {
    app.add_option("--mean", options.mean, "what is taken off the pixels, 0 to 255, " + effect)
        ->type_name("V[,V,V]");
    app.add_option("--scale", options.scale, "what they are multiplied by then, " + effect)
        ->type_name("V[,V,V]");
    app.add_option("--channels", options.channels, "the order of a pixel's numbers, " + effect)
        ->type_name("rgb|bgr|gray")
        ->check(CLI::IsMember({"rgb", "bgr", "gray"}).description(""));
}

Result<ModelInfo::Input> parse_pixels(const PixelOptions& options) {
    ModelInfo::Input said;
    if (!options.mean.empty()) {
        auto mean = three_numbers("--mean", options.mean);
        if (!mean) return mean.error();
        said.mean = std::move(*mean);
    }
    if (!options.scale.empty()) {
        auto scale = three_numbers("--scale", options.scale);
        if (!scale) return scale.error();
        if (std::ranges::find(*scale, 0.0f) != scale->end())
            return Error{ErrorCode::invalid_argument,
                         "--scale: is '" + options.scale + "', expected numbers other than 0"};
        said.scale = std::move(*scale);
    }
    if (options.channels == "rgb") said.channels = ChannelOrder::rgb;
    if (options.channels == "bgr") said.channels = ChannelOrder::bgr;
    if (options.channels == "gray") said.channels = ChannelOrder::gray;
    return said;
}

}  // namespace vartml::tools
