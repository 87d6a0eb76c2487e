// SPDX-License-Identifier: Apache-2.0
// vartml-demo: finds QR codes in a moving scene whose codes are known, or objects in the user's own
// pictures.
#include <gst/gst.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "pipelines/apps/demo/finder.h"
#include "pipelines/apps/demo/options.h"
#include "pipelines/apps/demo/own_scene.h"
#include "pipelines/apps/demo/player.h"
#include "pipelines/apps/demo/scene.h"

namespace demo {
namespace {

using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;

Result<void> check_readable(const std::string& file, const char* option) {
    if (access(file.c_str(), R_OK) == 0) return {};
    const bool there = access(file.c_str(), F_OK) == 0;
    return Error{ErrorCode::not_found,
                 file + (there ? ": may not be read" : ": there is no such file") +
                     "; give another with " + option};
}

Result<void> check_inputs(const Options& options) {
    const struct {
        const std::string& file;
        const char* option;
    } files[] = {{options.backdrop, "--background"},
                 {options.model, "--model"},
                 {options.labels, "--labels"}};
    for (const auto& row : files) {
        if (row.file.empty()) continue;
        if (auto ok = check_readable(row.file, row.option); !ok) return ok;
    }
    if (options.input == Input::video)
        if (auto ok = check_readable(options.source, "--video"); !ok) return ok;
    const bool scene = options.input == Input::scene;
    for (const char* made : {"scene.mp4", "demo.mp4", "demo.png"}) {
        const std::string file = options.out + '/' + made;
        for (const std::string& read : {options.source, options.backdrop}) {
            std::error_code none;
            if ((scene || file != options.out + "/scene.mp4") && !read.empty() &&
                std::filesystem::equivalent(file, read, none))
                return Error{ErrorCode::invalid_argument,
                             read + " would be lost: the demo writes " + file +
                                 "; give another folder with --out"};
        }
    }
    if (options.input == Input::camera) return check_camera(options.source);
    return {};
}

double percent(unsigned part, unsigned whole) {
    return whole ? 100.0 * part / whole : 0;
}

// `items`: of which there may be several on a frame, or "".
void print_classes(const char* what, const char* items, const char* best,
                   const ClassTallies& classes, double factor = 1) {
    if (classes.empty()) return;
    std::printf("%-17s %8s %8s %11s\n", what, items, "frames", best);
    for (const auto& [label, tally] : classes) {
        const std::string count = *items ? std::to_string(tally.items) : "";
        std::printf("%-17s %8s %8u %11.2f\n", label.c_str(), count.c_str(), tally.frames,
                    factor * tally.best);
    }
}

void print_frames(const char* what, unsigned with, unsigned frames) {
    if (with > 0) std::printf("%-17s on %u of %u frames\n", what, with, frames);
}

// The line that a table of a hundred classes ends with.
void print_boxes(const FindResult& r) {
    const BoxTally& all = r.all_boxes;
    if (all.boxes() == 0) return;
    std::printf("found             %u %s of %zu %s on %u of %u frames", all.boxes(),
                all.boxes() == 1 ? "box" : "boxes", r.boxes.size(),
                r.boxes.size() == 1 ? "class" : "classes", all.frames(), r.frames);
    if (const std::string doubt = all.doubt(); !doubt.empty())
        std::printf(
            "; %s, which is seldom right: `vartml doctor MODEL` says how pictures are fed and "
            "the outputs are read, `vartml verify MODEL PICTURE` whether the model sees "
            "what it should",
            doubt.c_str());
    std::printf("\n");
}

void print_table(const FindResult& r, bool known) {
    std::printf("frames            %u, inferred %u\n", r.frames, r.inferred);
    if (r.frames > 1) {
        std::printf("frames/s          %.1f (decode, find, draw and encode together)\n",
                    r.frames_per_second);
    }
    std::printf("latency p50, p99  %.1f ms, %.1f ms (of a frame in vartmlinfer)\n",
                r.latency_p50_ms, r.latency_p99_ms);
    if (known) {
        std::printf("codes found       %u of %u (%.1f %%)\n", r.known.found, r.known.known,
                    percent(r.known.found, r.known.known));
        std::printf(
            "false alarms      %u boxes on no code, of bar codes and text in the scene mostly; %u "
            "of them score %.1f or more\n",
            r.known.false_alarms, r.known.sure_false_alarms, KnownTally::sure);
        return;
    }
    if (!r.anything()) {
        std::printf(
            "nothing was found; `vartml doctor MODEL` says how the model is read, `vartml verify "
            "MODEL PICTURE` whether it sees what it should\n");
    }
    print_classes("class", "boxes", "best score", r.boxes);
    print_classes("the picture is", "", "best score", r.classes);
    print_classes("pixels of", "", "most, in %", r.areas, 100);
    print_frames("masks", r.masks, r.frames);
    print_frames("keypoints", r.keypoints, r.frames);
    print_frames("embedding", r.embeddings, r.frames);
    print_boxes(r);
}

Result<int> run(const Options& options) {
    if (auto ok = check_inputs(options); !ok) return ok.error();
    if (auto ok = make_folder(options.out); !ok) return ok.error();
    const bool scene = options.input == Input::scene;
    FindOptions find_options{.input = scene ? Input::video : options.input,
                             .source = scene ? options.out + "/scene.mp4" : options.source,
                             .model = options.model.empty() ? own_model() : options.model,
                             .labels = options.labels,
                             .decoder = options.decoder,
                             .video = options.out + "/demo.mp4",
                             .picture = options.out + "/demo.png",
                             .seconds = scene ? 0 : options.seconds};
    Recording recording;
    if (scene) {
        auto made = record_scene(options.backdrop, options.seconds > 0 ? options.seconds : 10,
                                 find_options.source);
        if (!made) return made.error();
        if (made->interrupted) return Error{ErrorCode::io, "interrupted while the scene was made"};
        recording = std::move(*made);
        // The places are those of QR codes: another model finds other things.
        if (options.model.empty()) find_options.codes = &recording.codes;
        find_options.frames_per_second = Scene::kFramesPerSecond;
    }
    auto result = find(find_options);
    if (!result) return result.error();
    print_table(*result, find_options.codes != nullptr);
    std::printf("%s, %s\n", find_options.video.c_str(), find_options.picture.c_str());
    return 0;
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
    auto options = demo::parse_options({argv, static_cast<size_t>(argc)});
    if (!options) {
        std::fprintf(stderr, "vartml-demo: %s\n", options.error().message.c_str());
        return 2;
    }
    if (options->help) {
        std::fputs(demo::usage(), stdout);
        return 0;
    }
    gst_init(nullptr, nullptr);
    auto result = demo::run(*options);
    if (!result) {
        std::fprintf(stderr, "vartml-demo: %s\n", result.error().message.c_str());
        return 1;
    }
    return *result;
}
