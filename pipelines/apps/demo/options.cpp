// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/options.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include <vartml/postprocess.h>

namespace demo {

const char* usage() {
    return "usage: vartml-demo [OPTION...]\n"
           "Finds objects in moving pictures and writes DIR/demo.mp4 and DIR/demo.png with boxes.\n"
           "\n"
           "  (no input)           a moving scene with QR codes, through a real encoder and "
           "decoder\n"
           "  --background FILE    the same scene over a picture or clip of yours\n"
           "  --video FILE         your video\n"
           "  --camera [DEVICE]    your camera (/dev/video0), until Ctrl-C\n"
           "  --model FILE         .onnx, .rai, .tar.gz or directory (the QR-code finder)\n"
           "  --decoder NAME       decoder family of the model, where it does not say so itself\n"
           "  --labels FILE        names of the classes, one per line\n"
           "  --seconds N          stop after N seconds of video (scene: 10)\n"
           "  --out DIR            where to write (out)\n";
}

namespace {

vartml::Error wrong(std::string sentence) {
    return {vartml::ErrorCode::invalid_argument, sentence + "; see vartml-demo --help"};
}

vartml::Result<double> positive(const char* text) {
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.1 && value <= 86400)) {
        return wrong(std::string("--seconds is '") + text +
                     "', a number from 0.1 to 86400 is expected");
    }
    return value;
}

}  // namespace

vartml::Result<Options> parse_options(std::span<char* const> arguments) {
    Options options;
    const struct {
        std::string_view name;
        std::string* value;
    } texts[] = {
        {"--background", &options.backdrop},
        {"--model", &options.model},
        {"--decoder", &options.decoder},
        {"--labels", &options.labels},
        {"--out", &options.out},
    };
    for (size_t i = 1; i < arguments.size(); ++i) {
        const std::string_view name = arguments[i];
        const char* next = i + 1 < arguments.size() ? arguments[i + 1] : nullptr;
        if (name == "--help" || name == "-h") {
            options.help = true;
            return options;
        }
        if (name == "--camera" || name == "--video") {
            if (options.input != Input::scene) return wrong("give one of --video and --camera");
        }
        if (name == "--camera") {
            const bool named = next && next[0] != '-';
            options.input = Input::camera;
            options.source = named ? next : "/dev/video0";
            i += named;
            continue;
        }
        std::string* text = nullptr;
        for (const auto& row : texts) {
            if (name == row.name) text = row.value;
        }
        if (!text && name != "--video" && name != "--seconds") {
            return wrong("there is no option '" + std::string(name) + "'");
        }
        if (!next || *next == '\0') return wrong(std::string(name) + " needs a value");
        ++i;
        if (text) {
            *text = next;
        } else if (name == "--video") {
            options.input = Input::video;
            options.source = next;
        } else {
            auto seconds = positive(next);
            if (!seconds) return seconds.error();
            options.seconds = *seconds;
        }
    }
    if (!options.decoder.empty()) {
        auto nick = nick_of_decoder(options.decoder);
        if (!nick) return nick.error();
        options.decoder = std::move(*nick);
    }
    if (!options.backdrop.empty() && options.input != Input::scene) {
        return wrong("--background belongs to the scene, not to --video or --camera");
    }
    return options;
}

vartml::Result<std::string> nick_of_decoder(const std::string& name) {
    if (const auto* family = vartml::find_decoder_family(name)) return std::string(family->nick);
    std::string known;
    for (const vartml::DecoderFamily& family : vartml::decoder_families())
        known += (known.empty() ? "" : ", ") + std::string(family.nick);
    return vartml::Error{vartml::ErrorCode::invalid_argument,
                         "--decoder is '" + name + "', expected one of " + known};
}

}  // namespace demo
