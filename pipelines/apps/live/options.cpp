// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

namespace live {

std::string labels_of(const Options& options, size_t model) {
    if (options.labels.empty()) return {};
    return options.labels.size() == 1 ? options.labels[0] : options.labels[model];
}

int parse_options(int argc, char** argv, Options& options) {
    CLI::App app("Shows what a model sees, in a browser, while the pipeline runs.", "vartml-live");
    std::string video, camera;
    auto* video_option = app.add_option("--video", video, "a video file, again and again")
                             ->type_name("FILE")
                             ->check(CLI::ExistingFile);
    app.add_option("--camera", camera, "a camera [/dev/video0]")
        ->type_name("DEVICE")
        ->expected(0, 1)
        ->default_str("/dev/video0")
        ->excludes(video_option);
    app.add_option("--model", options.models,
                   "a model: .onnx, .rai, .tar.gz or directory; repeat it to switch between them")
        ->type_name("FILE")
        ->check(CLI::ExistingPath);
    app.add_option("--decoder", options.decoder,
                   "decoder family, where the models do not say so themselves")
        ->type_name("NAME");
    app.add_option("--labels", options.labels,
                   "names of the classes, one per line; repeat it for each --model, in their order")
        ->type_name("FILE")
        ->check(CLI::ExistingFile);
    app.add_option("--out", options.out, "folder for the scene that is played without an input")
        ->type_name("DIR")
        ->take_last()
        ->capture_default_str();
    app.add_option("--bind", options.bind,
                   "address to listen on; others than loopback ask for a token")
        ->type_name("ADDRESS")
        ->capture_default_str();
    unsigned port = options.port;
    app.add_option("--port", port, "port; 0 = one that is free")
        ->check(CLI::Range(0u, 65535u))
        ->capture_default_str();
    app.add_option("--token", options.token,
                   "what a browser must know; made at random where one is needed")
        ->type_name("TEXT");
    app.get_option("--token")->check(CLI::Validator(
        [](const std::string& text) {
            const bool plain = std::ranges::all_of(text, [](char c) {
                return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
            });
            return plain ? std::string() : "a token has letters, digits, - and _ alone";
        },
        ""));
    try {
        app.parse(argc, argv);
        if (options.labels.size() > 1 && options.labels.size() != options.models.size())
            throw CLI::ValidationError(
                "--labels", "is given " + std::to_string(options.labels.size()) + " times for " +
                                std::to_string(options.models.size()) +
                                " models, expected once, or once for each --model");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    options.port = static_cast<uint16_t>(port);
    if (!video.empty()) {
        options.input = Input::video;
        options.source = video;
    } else if (app.count("--camera") > 0) {
        options.input = Input::camera;
        options.source = camera.empty() ? "/dev/video0" : camera;
    }
    return -1;
}

}  // namespace live
