// SPDX-License-Identifier: Apache-2.0
// `vartml detect`: checks the command line, compiles the model where that is needed, and becomes
// the program vartml-detect, which runs the pipeline.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/compile/sidecar.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/run.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

struct Request {
    std::string model, source, out, json_file, decoder, labels, modelinfo, preprocess,
        device = "auto";
    double threshold = -1;
    uint64_t frames = 0;
};

struct Source {
    const char* kind;  // as vartml-detect calls it
    std::string name;
};

// By the ending of -o.
struct Format {
    std::string_view ending;
    const char* name;
};
constexpr Format formats[] = {
    {".jpg", "jpeg"}, {".jpeg", "jpeg"}, {".png", "png"},
    {".mp4", "mp4"},  {".mkv", "mkv"},   {".webm", "webm"},
};

Error wrong(const std::string& sentence) {
    return {ErrorCode::invalid_argument, sentence + "; see vartml detect --help"};
}

std::string cameras() {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/dev", error))
        if (const std::string name = entry.path().string(); name.starts_with("/dev/video"))
            names.push_back(name);
    std::ranges::sort(names);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

Result<Source> camera_source(const std::string& device) {
    struct stat status{};
    const std::string there = cameras();
    if (::stat(device.c_str(), &status) != 0)
        return Error{ErrorCode::not_found, "there is no camera " + device +
                                               (there.empty() ? "; plug one in, or give a file"
                                                              : "; there are " + there)};
    if (!S_ISCHR(status.st_mode))
        return Error{ErrorCode::invalid_argument, device + ": is no camera"};
    if (::access(device.c_str(), R_OK | W_OK) != 0)
        return Error{ErrorCode::io, device + ": you may not use this camera; join the group that " +
                                        "may, which is mostly 'video'"};
    return Source{"camera", device};
}

// The path of a URI `file:///a%20b` or `file://localhost/a`; other text as it is.
std::string path_of(const std::string& source) {
    constexpr std::string_view local = "file://";
    if (!source.starts_with(local)) return source;
    const size_t root = source.find('/', local.size());
    if (root == source.npos) return source.substr(local.size());
    std::string path;
    for (size_t i = root; i < source.size(); ++i) {
        unsigned byte = 0;
        const char* const digits = source.data() + i + 1;
        const bool is_code = source[i] == '%' && i + 2 < source.size() &&
                             std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
        path += is_code ? static_cast<char>(byte) : source[i];
        if (is_code) i += 2;
    }
    return path;
}

// A file, a device or the number of one, or an address.
Result<Source> find_source(const std::string& text) {
    if (const std::string path = path_of(text); path != text && fs::is_regular_file(path))
        return Source{"file", path};
    struct stat status{};
    if (::stat(text.c_str(), &status) == 0) {
        if (S_ISREG(status.st_mode)) return Source{"file", text};
        if (S_ISCHR(status.st_mode)) return camera_source(text);
        return wrong(text + ": is no picture, video or camera" +
                     (S_ISDIR(status.st_mode) ? " but a folder; give one of its files" : ""));
    }
    if (text.find("://") != text.npos) return Source{"address", text};
    if (text.find_first_not_of("0123456789") == text.npos)
        return camera_source("/dev/video" + text);
    if (text.starts_with("/dev/")) return camera_source(text);
    return Error{ErrorCode::not_found,
                 text +
                     ": there is no such file; give a picture, a video, an address such as "
                     "rtsp://…, or a camera such as /dev/video0"};
}

Result<std::string> find_format(const Request& r) {
    if (r.out.empty()) return std::string();
    const std::string ending = CLI::detail::to_lower(fs::path(r.out).extension().string());
    const Format* format = std::ranges::find(formats, ending, &Format::ending);
    if (format == std::end(formats))
        return wrong("-o: is '" + r.out +
                     "', expected a name that ends in .jpg or .png for a picture, in .mp4, .mkv or "
                     ".webm for a video");
    std::error_code error;
    const fs::file_status there = fs::status(r.out, error);
    if (fs::exists(there) && !fs::is_regular_file(there))
        return wrong("-o: is '" + r.out + "', which is " +
                     (fs::is_directory(there) ? "a folder" : "a pipe or device") +
                     ", expected the name of a file");
    const fs::path folder = fs::absolute(r.out, error).parent_path();
    if (!fs::is_directory(folder, error))
        return Error{ErrorCode::not_found,
                     "-o: folder " + folder.string() + " does not exist; make it first"};
    return std::string(format->name);
}

// That nothing is written over what is read, or over each other.
Result<void> check_outputs(const Request& r) {
    const std::string source = path_of(r.source);
    const std::pair<const char*, const std::string&> outputs[] = {{"-o", r.out},
                                                                  {"--json", r.json_file}};
    const std::string inputs[] = {source, r.model, r.labels, r.modelinfo};
    for (const auto& [option, output] : outputs)
        if (auto good = check_output(option, output, inputs); !good)
            return wrong(good.error().message);
    if (!r.out.empty() && !r.json_file.empty() && is_same_file(r.out, r.json_file))
        return wrong("--json: is " + r.json_file + ", which -o draws into");
    return {};
}

Result<void> check_files(const Request& r) {
    const std::pair<const char*, const std::string&> files[] = {{"--labels", r.labels},
                                                                {"--modelinfo", r.modelinfo}};
    std::error_code error;
    for (const auto& [option, file] : files)
        if (!file.empty() && !fs::is_regular_file(file, error))
            return Error{ErrorCode::not_found,
                         std::string(option) + ": " + file + ": there is no such file"};
    if (!r.decoder.empty() && !find_decoder_family(r.decoder))
        return wrong("--decoder: is '" + r.decoder + "', expected one of " +
                     compiler::decoder_nicks());
    return {};
}

void add_options(CLI::App& app, Request& r) {
    app.add_option("MODEL", r.model, "a compiled model, or an ONNX file, which is compiled first")
        ->required()
        ->type_name("");
    app.add_option("SOURCE", r.source,
                   "a picture, a video, a camera (/dev/video0, or 0), or an address (rtsp://…)")
        ->required()
        ->type_name("");
    app.add_option("-o,--output", r.out,
                   "also draw what was found: a picture into .jpg or .png, others into .mp4, .mkv "
                   "or .webm")
        ->type_name("FILE");
    app.add_option("--json", r.json_file,
                   "also write a vartml.frame/1 object per frame to this file; -: in place of the "
                   "lines")
        ->type_name("FILE");
    app.add_option("--threshold", r.threshold,
                   "least score of what is found [the sidecar's, else the decoder's]")
        ->type_name("T")
        ->check(within(0., 1.));
    add_decoder_option(app, r.decoder,
                       "what reads the model's outputs [what the model says, else its shapes]");
    app.add_option("--labels", r.labels, "names of the classes, a line each")->type_name("FILE");
    app.add_option("--modelinfo", r.modelinfo, "a sidecar, instead of the model's own")
        ->type_name("FILE");
    app.add_option("--preprocess", r.preprocess,
                   "how the model takes pictures, such as 'channels=bgr mean=0 scale=1' [the "
                   "sidecar's, else the decoder's]")
        ->type_name("KEYS");
    app.add_option("--device", r.device, "the device that runs the model")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--frames", r.frames, "end after so many; 0: at the end, or by Ctrl-C")
        ->type_name("N")
        ->capture_default_str();
    app.footer(
        "A line per object goes to standard output: time (of videos and cameras), label, score,\n"
        "place and size in pixels; also of classes, areas of a class map, keypoints and text.\n"
        "Exit status: 0 done, also where nothing is found, 1 fault of files, cameras or plugins,\n"
        "2 usage, 3 the ONNX file cannot be compiled, 4 no compiled model, or none whose outputs\n"
        "can be read.");
}

// This process goes on as the child, which has its terminal, its signals and its standard streams.
Error become(const std::string& program, const std::string& argument) {
    // What compiles on behalf of the plugins.
    ::setenv("VARTML_COMPILER", doctor::own_program().c_str(), 0);
    std::fflush(nullptr);
    ::execl(program.c_str(), program.c_str(), argument.c_str(), nullptr);
    return system_error(program, "run", errno);
}

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

}  // namespace

int detect(int argc, const char* const* argv) {
    Request r;
    CLI::App app(
        "Runs a model on a picture, a video or a camera, prints what it finds, and draws it.",
        "vartml detect");
    add_options(app, r);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;

    // A file that standard output goes into is no other one.
    if (!r.json_file.empty() && is_same_file(r.json_file, "/dev/stdout")) r.json_file = "-";
    const auto source = find_source(r.source);
    if (!source) return fail(source.error());
    const auto format = find_format(r);
    if (!format) return fail(format.error());
    if (auto good = check_files(r); !good) return fail(good.error());
    if (auto good = check_outputs(r); !good) return fail(good.error());
    const std::string program = doctor::find_gst_program("vartml-detect");
    if (program.empty())
        return fail({ErrorCode::not_found,
                     "the program vartml-detect, which runs the pipeline, is not beside " +
                         doctor::own_program() + "; " +
                         doctor::how_to_get_gst_program("vartml-detect")});
    const auto model = compiled_model(r.model);
    if (!model) {
        print_error(model.error());
        return r.model.ends_with(".onnx") ? exit_of(model.error()) : exit_of_model(model.error());
    }
    nlohmann::json request = {{"threshold", r.threshold}, {"frames", r.frames}};
    const std::pair<const char*, const std::string&> texts[] = {
        {"model", *model},    {"source", source->name},   {"out", r.out},
        {"format", *format},  {"json", r.json_file},      {"decoder", r.decoder},
        {"labels", r.labels}, {"modelinfo", r.modelinfo}, {"preprocess", r.preprocess},
        {"device", r.device},
    };
    for (const auto& [key, text] : texts) request[key] = text_of_bytes(text);
    request["source_kind"] = source->kind;
    return fail(become(program, request.dump()));
}

}  // namespace vartml::tools
