// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify_all.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/sha256.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/pictures.h"
#include "lib/tools/verify/collection.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> interrupted{false};

struct Options {
    std::string folder, json_file, picture, again = "changed";
    std::vector<std::string> only;
    double memory_gib = 8;
    unsigned seconds = 300;
    int64_t picture_side = 320;
};

void add_options(CLI::App& app, Options& o) {
    app.add_option("--all", o.folder, "the folder; all .onnx files below it are taken")
        ->required()
        ->type_name("FOLDER");
    app.add_option("--json", o.json_file,
                   "write the results to this file; a second call with the same file goes on where "
                   "the first one ended [a file in your cache folder]")
        ->type_name("FILE");
    app.add_option("--again", o.again,
                   "what is done again of what the file has: models that changed, or this program "
                   "or ONNX Runtime did; misses, whatever changed; all")
        ->check(CLI::IsMember({"changed", "misses", "all"}))
        ->option_text("changed|misses|all [changed]");
    app.add_option("--only", o.only, "models with this in their name; repeatable")
        ->type_name("TEXT")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--picture-size", o.picture_side,
                   "side of the pictures of models that leave it open; where ONNX Runtime does not "
                   "run them so, usual sizes are tried")
        ->type_name("PIXELS")
        ->check(CLI::Range(int64_t{8}, int64_t{8192}))
        ->capture_default_str();
    app.add_option(
           "--picture", o.picture,
           "what picture inputs are fed: a .png or .jpg, or a folder of them, which a model "
           "gets one after another [a made scene of gradients and discs]")
        ->type_name("FILE|FOLDER");
    app.add_option("--memory-limit", o.memory_gib, "of each process, in GiB; 0 = none")
        ->type_name("GIB")
        ->check(number_from(0))
        ->capture_default_str();
    app.add_option("--time-limit", o.seconds, "of each step of a model, in seconds; 0 = none")
        ->type_name("S")
        ->capture_default_str();
    app.footer(
        "Each model is compiled as a user would do it: without an option, and where the refusal\n"
        "recommends --input-shape, once more with it. It then runs in f32 and in default numerics\n"
        "on a picture, beside ONNX Runtime. Pixels are fed as sidecar, decoder family or the "
        "first\n"
        "arithmetic of the graph say, else from 0 to 1. A model agrees where\n"
        "  f32      the largest difference of each output is at most 1e-3 of its range\n"
        "  default  the cosine of each output is at least 0.999, its length within 10 %\n"
        "  integers at most 1 element in 1000 differs (default: 100); of 8 bits by more than 1\n"
        "  and where a decoder takes the outputs: the top class is the same, and each box is "
        "found\n"
        "  again with an IoU of at least 0.9 and a score within 0.1.\n"
        "Where ONNX Runtime gives something else at another optimisation level, or of an input "
        "that\n"
        "differs by one in a million (int8, fp16, lists in the order of their scores), being "
        "within\n"
        "that spread is enough; where a device that computes exactly but rounds each tensor to "
        "bf16\n"
        "does not reach the default limits either, a cosine of 0.99 is. Every step is a process\n"
        "with limits: a model that crashes, hangs or eats memory is a row of the table. "
        "Percentages\n"
        "are over the models that ONNX Runtime runs. Exit status: 0 all of those agree, 6 not all; "
        "1 fault of files or memory,\n"
        "or no ONNX Runtime; 2 usage.");
}

// Beside the other things that can be made again.
std::string default_results(const std::string& folder) {
    std::error_code error;
    const std::string path = fs::canonical(folder, error).string();
    const std::string cache = user_cache_folder();
    if (cache.empty() || path.empty()) return {};
    return cache + "/verify/" + to_hex(sha256(as_bytes(path))).substr(0, 16) + ".json";
}

// Of a file, or of a folder in the order of their names; none for "".
Result<std::vector<verify::NamedPicture>> read_pictures(const std::string& place) {
    std::vector<std::string> files;
    std::error_code error;
    if (fs::is_directory(place, error)) {
        for (const fs::directory_entry& entry : fs::directory_iterator(place, error))
            if (is_picture_file(entry.path().string())) files.push_back(entry.path().string());
        std::ranges::sort(files);
        if (files.empty())
            return Error{ErrorCode::invalid_argument,
                         "--picture: " + place + " holds no picture; expected .png or .jpg files"};
    } else if (!place.empty()) {
        files.push_back(place);
    }
    std::vector<verify::NamedPicture> pictures;
    for (const std::string& file : files) {
        auto loaded = load_picture(file);
        if (!loaded) return loaded.error();
        pictures.push_back({fs::path(file).filename().string(),
                            {loaded->width, loaded->height, std::move(loaded->rgb)}});
    }
    return pictures;
}

int run(const Options& o) {
    using Again = verify::CollectionRequest::Again;
    verify::CollectionRequest r;
    std::error_code error;
    r.folder = o.folder;
    r.only = o.only;
    r.program = fs::read_symlink("/proc/self/exe", error).string();
    r.again = o.again == "all" ? Again::all : o.again == "misses" ? Again::misses : Again::changed;
    r.picture_side = o.picture_side;
    r.limits.time = std::chrono::seconds(o.seconds);
    r.limits.memory = static_cast<uint64_t>(o.memory_gib * (uint64_t{1} << 30));
    r.results = o.json_file.empty() ? default_results(o.folder) : o.json_file;
    if (r.results.empty()) {
        print_error({ErrorCode::invalid_argument,
                     o.folder + ": give --json FILE to keep the results in, there is no such "
                                "folder or no cache folder"});
        return exit_usage;
    }
    auto pictures = read_pictures(o.picture);
    if (!pictures) {
        print_error(pictures.error());
        return exit_fault;
    }
    r.pictures = std::move(*pictures);
    if (o.json_file.empty())
        if (auto done = make_directories(parent_of(r.results)); !done) {
            print_error(done.error());
            return exit_fault;
        }
    std::signal(SIGINT, [](int) { interrupted.store(true); });
    std::signal(SIGTERM, [](int) { interrupted.store(true); });
    r.cancel = &interrupted;
    std::vector<std::string> all;
    r.begin = [&](const std::vector<std::string>& names) {
        all = names;
        std::fputs(verify::table_heading(all).c_str(), stdout);
        std::fflush(stdout);
    };
    r.row = [&](const verify::ModelRow& row) {
        std::fputs(verify::table_line(row, all).c_str(), stdout);
        std::fflush(stdout);
    };
    const auto collection = verify::verify_collection(r);
    if (!collection) {
        print_error(collection.error());
        return exit_fault;
    }
    std::fputs(verify::summary_text(*collection).c_str(), stdout);
    std::printf("results: %s\n", r.results.c_str());
    if (!collection->is_complete) return exit_fault;
    return collection->all_good() ? exit_done : exit_not_expected;
}

}  // namespace

int verify_all(int argc, const char* const* argv) {
    Options options;
    CLI::App app(
        "Checks every ONNX model of a folder: compiles it, runs it, compares it with ONNX "
        "Runtime.",
        "vartml verify");
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return run(options);
}

}  // namespace vartml::tools
