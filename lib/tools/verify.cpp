// SPDX-License-Identifier: Apache-2.0
// `vartml verify`: options in, report and exit status out; --all does so for every model of a
// folder.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vartml/model.h>
#include <vartml/result.h>
#include <CLI/CLI.hpp>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/sha256.h"
#include "lib/compile/compile.h"
#include "lib/compile/onnx/import.h"
#include "lib/compile/onnx/rounded.h"
#include "lib/model/entries.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/pictures.h"
#include "lib/tools/progress.h"
#include "lib/tools/tensor_file.h"
#include "lib/tools/verify/collection.h"
#include "lib/tools/verify/folder_check.h"
#include "lib/tools/verify/verify.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> interrupted{false};

struct CollectionOptions {
    std::string folder, json_file, picture, again = "changed";
    std::vector<std::string> only;
    double memory_gib = 8;
    unsigned seconds = 300;
    int64_t picture_side = 320;
};

void add_options(CLI::App& app, CollectionOptions& o) {
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
        "  codes    of floats that are dequantised none differs by more than one step\n"
        "  and where a decoder takes the outputs: the top class is the same, and each box is "
        "found\n"
        "  again with an IoU of at least 0.9 and a score within 0.1; rows of a list of boxes may\n"
        "  then come in another order.\n"
        "Where ONNX Runtime gives something else at another optimisation level, or of an input "
        "that\n"
        "differs by one in a million (int8, fp16, lists in the order of their scores), being "
        "within\n"
        "that spread is enough; where that is more than half of the range, or a cosine below 0.5,\n"
        "the verdict is unclear: give pictures that the model is for. Where a device that "
        "computes\n"
        "exactly but rounds each tensor to bf16\n"
        "does not reach the default limits either, a cosine of 0.99 is. Every step is a process\n"
        "with limits: a model that crashes, hangs or eats memory is a row of the table. "
        "Percentages\n"
        "are over the models that ONNX Runtime runs. Exit status: 0 all of those agree, 6 not all, "
        "or\n"
        "there are none, or a model could not be read or ended without a sentence; 1 fault of "
        "files "
        "or\nmemory, or no ONNX Runtime; 2 usage.");
}

// Beside the other things that can be made again.
std::string default_results(const std::string& folder) {
    std::error_code error;
    const std::string path = fs::canonical(folder, error).string();
    const std::string cache = user_cache_folder();
    if (cache.empty() || path.empty()) return {};
    return cache + "/verify/" + to_hex(sha256(as_bytes(path))).substr(0, 16) + ".json";
}

// What lies in a folder, by name.
Result<std::vector<std::string>> entries_of(const std::string& folder) {
    std::vector<std::string> entries;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        entries.push_back(it->path().string());
    if (error) return system_error(folder, "read the folder", error.value());
    std::ranges::sort(entries);
    return entries;
}

// Of a file, or of a folder in the order of their names; none for "".
Result<std::vector<verify::NamedPicture>> read_pictures(const std::string& place) {
    std::vector<std::string> files;
    std::error_code error;
    if (fs::is_directory(place, error)) {
        auto entries = entries_of(place);
        if (!entries) return Error{entries.error().code, "--picture: " + entries.error().message};
        std::ranges::copy_if(*entries, std::back_inserter(files), is_picture_file);
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

int verify_models(const CollectionOptions& o) {
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
    if (o.json_file == "-") {
        print_error({ErrorCode::invalid_argument,
                     "--json: is -, expected a file, from which the next call goes on"});
        return exit_usage;
    }
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

// Arguments as those of `verify`, with --all among them.
int verify_all(int argc, const char* const* argv) {
    CollectionOptions options;
    CLI::App app(
        "Checks every ONNX model of a folder: compiles it, runs it, compares it with ONNX "
        "Runtime.",
        "vartml verify");
    add_options(app, options);
    // `--all --help` would take --help for the folder.
    for (int i = 1; i < argc; ++i)
        if (const std::string_view word = argv[i]; word == "--help" || word == "-h") {
            std::fputs(app.help().c_str(), stdout);
            return exit_done;
        }
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return verify_models(options);
}

}  // namespace

// The frames of `vartml verify`: pictures, stored tensors, random numbers.

class SampleList {
public:
    // Each place is a picture, or a folder: one with input_<i>.npy or .pb (and output_<i>, where
    // there are stored outputs) is a frame, another one holds pictures and such folders. Without
    // places one frame of fixed random numbers. Errors: not_found, invalid_argument for a place
    // without frames.
    static Result<SampleList> open(const std::vector<std::string>& places);

    size_t size() const { return sources_.size(); }
    std::string kind() const;  // verify::Report::kind
    bool is_random() const { return random_; }
    std::vector<std::string> files() const;
    // Errors: those of reading; invalid_argument.
    Result<verify::Sample> load(size_t i, const ModelDescription& model) const;

private:
    struct Source {
        std::string name;
        std::string picture;                       // or
        std::vector<std::string> inputs, outputs;  // files
    };
    Result<void> add(const std::string& place);

    std::vector<Source> sources_;
    bool random_ = false;
};

namespace {

struct Options {
    std::string model, compiled, inputs_dir, modelinfo, labels, json_file;
    std::string check_folder, rounded_twin;
    std::vector<std::string> pictures, input_shapes;
    PixelOptions pixels;
    compiler::CompileRequest compile;
    verify::Request request;
};

void add_options(CLI::App& app, Options& o) {
    app.add_option("MODEL", o.model, "the ONNX file")->required()->type_name("");
    app.add_option("PICTURES", o.pictures,
                   "pictures (.png, .jpg), or folders of them [one frame of random numbers]")
        ->type_name("");
    app.add_option("--inputs", o.inputs_dir,
                   "folder with input_<i>.npy or .pb, or with such folders, or with pictures; "
                   "output_<i> beside them is the reference where there is no ONNX Runtime")
        ->type_name("DIR");
    app.add_option("--compiled", o.compiled,
                   "the compiled model to check [compiled into a temporary folder]")
        ->type_name("PATH");
    app.add_flag("--layers", o.request.layers,
                 "also compare the tensors inside the model, and name the first that differs");
    app.add_option("--tolerance", o.request.tolerance,
                   "of the outputs, instead of the rules that --all --help tells: least cosine for "
                   "bf16, largest part of the range for fp32, steps for int8, elements for "
                   "integers")
        ->type_name("T")
        ->check(number_from(0));
    app.add_option("--json", o.json_file,
                   "also write what was found to this file; -: in place of the text")
        ->type_name("FILE");
    app.add_option("--modelinfo", o.modelinfo,
                   "the sidecar [that of the compiled model, else MODEL.modelinfo]")
        ->type_name("FILE");
    add_decoder_option(app, o.request.decoder,
                       "what makes boxes or classes of the outputs [by sidecar or shapes]");
    app.add_option("--labels", o.labels, "class names, one per line")->type_name("FILE");
    add_pixel_options(app, o.pixels, "instead of what the sidecar says");
    app.add_option("--numerics", o.request.numerics,
                   "type of float work: auto, f32, or bf16 also where that is slow")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->option_text("auto|f32|bf16 [auto]");
    auto* device = app.add_option("--device", o.compile.device, "device to compile for [softnpu]")
                       ->type_name("NAME");
    auto* shape = app.add_option("--input-shape", o.input_shapes,
                                 "shape of an input with symbolic dimensions, as in x:1,3,640,640; "
                                 "repeatable")
                      ->type_name("NAME:D0,D1,...")
                      ->expected(1)
                      ->allow_extra_args(false)
                      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    for (CLI::Option* of_compiling : {device, shape})
        of_compiling->excludes(app.get_option("--compiled"));
    // Steps of --all, in processes of their own.
    app.add_option("--rounded-twin", o.rounded_twin, "")->group("");
    app.add_option("--check-folder", o.check_folder, "")->group("")->needs("--compiled");
    app.footer(
        "Runs each frame through pre-process, model, dequantisation, decode and NMS, and through "
        "a\n"
        "float reference: ONNX Runtime in a process of its own for the model, plain loops for the\n"
        "rest. Names the first stage beyond tolerance, and says what it does to detections. A "
        "model\n"
        "agrees by the rules of --all.\n"
        "Every model of a folder: `vartml verify --all FOLDER`, see `vartml verify --all --help`.\n"
        "Exit status: 0 agrees, 6 does not, or cannot be judged; 1 fault of files or memory, or "
        "no\n"
        "reference; 2 usage, 3 the model cannot be compiled, 4 no valid compiled model.");
}

// The compiled model; in `folder` where we make it.
Result<std::string> compile_model(Options& o, const artifact::ExtractionFolder& folder) {
    compiler::CompileRequest& r = o.compile;
    for (const std::string& text : o.input_shapes)
        if (auto done = take_input_shape(text, r.input_shapes); !done) return done.error();
    r.model = o.model;
    r.output = folder.path() + "/model.rai";
    r.convert_floats = o.request.numerics != "f32";
    r.message = [](LogLevel level, const std::string& text) { log(level, "", text); };
    auto out = compiler::compile(r);
    if (!out) return out.error();
    return out->model_path;
}

// What the options say instead of the sidecar.
Result<void> override_sidecar(Options& o, const ModelDescription& model, ModelInfo& info) {
    if (!o.labels.empty()) {
        auto labels = read_labels(o.labels);
        if (!labels) return labels.error();
        info.labels = std::move(*labels);
        info.labels_file = o.labels;
    }
    const auto said = parse_pixels(o.pixels);
    if (!said) return said.error();
    if (*said == ModelInfo::Input{}) return {};
    bool has_more = false;  // the sidecar says the other number
    for (const TensorInfo& input : model.inputs) {
        auto it = std::ranges::find(info.inputs, input.name, &ModelInfo::Input::name);
        if (it == info.inputs.end()) {
            info.inputs.emplace_back().name = input.name;
            it = info.inputs.end() - 1;
        }
        has_more = has_more || (said->mean.empty() && !it->mean.empty()) ||
                   (said->scale.empty() && !it->scale.empty());
        if (!said->mean.empty()) it->mean = said->mean;
        if (!said->scale.empty()) it->scale = said->scale;
        if (said->channels) it->channels = said->channels;
    }
    const std::string options = said->scale.empty()  ? "--mean"
                                : said->mean.empty() ? "--scale"
                                                     : "--mean and --scale";
    if (!said->mean.empty() || !said->scale.empty())
        o.request.pixels_from =
            "the command line (" + options + ')' + (has_more ? " over the sidecar" : "");
    return {};
}

// Makes the request and runs it.
Result<verify::Report> check(Options& o, const std::string& compiled) {
    auto description = open_model(compiled);
    if (!description) return description.error();
    std::vector<std::string> places = o.pictures;
    if (!o.inputs_dir.empty()) places.push_back(o.inputs_dir);
    const auto samples = SampleList::open(places);
    if (!samples) return samples.error();
    std::vector<std::string> read = samples->files();
    read.insert(read.end(), {o.model, o.compiled, o.modelinfo, o.labels});
    if (auto good = check_result_file("--json", o.json_file, read); !good) return good.error();
    auto info = find_modelinfo(o.modelinfo, o.model, description->modelinfo);
    if (!info) return info.error();
    if (auto fits = check_modelinfo(*info, description->inputs, description->outputs); !fits)
        return fits.error();
    if (auto done = override_sidecar(o, *description, *info); !done) return done.error();

    verify::Request& r = o.request;
    r.model = o.model;
    r.compiled = compiled;
    r.compiled_name = o.compiled.empty() ? "for this check" : o.compiled;
    r.info = std::move(*info);
    r.kind = samples->kind();
    r.judge_effect = !samples->is_random();
    r.num_samples = samples->size();
    std::optional<Progress> progress(std::in_place, "comparing");
    r.sample = [&](size_t i) {
        progress->show(i, samples->size());
        return samples->load(i, *description);
    };
    const auto signature = onnx::model_signature(o.model);
    const bool of_another = signature && *signature != description->signature;
    const std::string another =
        r.compiled_name + " was not compiled of " + o.model + ": the signatures differ";
    auto report = verify::verify(r);
    progress.reset();
    if (!report && of_another)
        return Error{ErrorCode::invalid_argument, another + "; " + report.error().message};
    if (!report) return report;
    if (of_another) report->notes.push_back(another);
    if (samples->is_random())
        report->notes.push_back(
            "random numbers are no pictures: give some, so that the model works on what it is for");
    return report;
}

int verify_model(Options& o) {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) {
        print_error(folder.error());
        return exit_fault;
    }
    std::string compiled = o.compiled;
    if (compiled.empty()) {
        auto made = compile_model(o, *folder);
        if (!made) {
            print_error(made.error());
            return exit_of(made.error());
        }
        compiled = *made;
    }
    const auto report = check(o, compiled);
    if (!report) {
        print_error(report.error());
        return exit_of_model(report.error());
    }
    std::fputs(verify::console_text(*report).c_str(), stdout);
    if (auto done = write_json(o.json_file, verify::json_text(*report)); !done) {
        print_error(done.error());
        return exit_fault;
    }
    return report->is_good() ? exit_done : exit_not_expected;
}

int write_twin(const Options& o) {
    const auto done = onnx::write_rounded(o.model, o.rounded_twin);
    if (!done) print_error(done.error());
    return done ? exit_done : exit_of(done.error());
}

int check_folder(const Options& o) {
    const auto verdict = verify::check_folder(
        {.model = o.model,
         .compiled = o.compiled,
         .folder = o.check_folder,
         .numerics = o.request.numerics,
         .rule = o.request.numerics == "f32" ? verify::Rule::f32 : verify::Rule::standard});
    if (!verdict) {
        print_error(verdict.error());
        return exit_of_model(verdict.error());
    }
    const std::string text = to_json(*verdict);
    const Bytes bytes = as_bytes(text);
    if (auto done = write_new_file(o.check_folder + "/verdict", std::span(&bytes, 1)); !done) {
        print_error(done.error());
        return exit_fault;
    }
    return exit_done;
}

}  // namespace

int verify(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i)
        if (const std::string_view word = argv[i]; word == "--all" || word.starts_with("--all="))
            return verify_all(argc, argv);
    Options options;
    CLI::App app("Checks that a compiled model gives what ONNX Runtime gives.", "vartml verify");
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    print_json_alone(options.json_file);
    if (!options.rounded_twin.empty()) return write_twin(options);
    return options.check_folder.empty() ? verify_model(options) : check_folder(options);
}

namespace {

std::vector<std::string> numbered(const std::string& folder, const std::string& stem) {
    std::vector<std::string> files;
    while (const auto file = find_tensor_file(folder, stem, files.size())) files.push_back(*file);
    return files;
}

std::string short_name(const std::string& path) {
    const fs::path p = fs::path(path).lexically_normal();
    return (p.has_filename() ? p.filename() : p.parent_path().filename()).string();
}

Result<std::vector<verify::TensorData>> read_all(const std::vector<std::string>& files) {
    std::vector<verify::TensorData> tensors;
    for (const std::string& file : files) {
        auto tensor = read_tensor(file);
        if (!tensor) return tensor.error();
        tensors.push_back(std::move(*tensor));
    }
    return tensors;
}

}  // namespace

Result<void> SampleList::add(const std::string& place) {
    std::error_code error;
    if (is_picture_file(place) && fs::is_regular_file(place, error)) {
        sources_.push_back({short_name(place), place, {}, {}});
        return {};
    }
    if (!fs::exists(place, error))
        return Error{ErrorCode::not_found, place + ": no such file or folder"};
    if (!fs::is_directory(place, error))
        return Error{ErrorCode::invalid_argument,
                     place + ": is no picture (.png, .jpg) and no folder"};
    if (auto inputs = numbered(place, "input"); !inputs.empty()) {
        sources_.push_back({short_name(place), {}, std::move(inputs), numbered(place, "output")});
        return {};
    }
    const auto entries = entries_of(place);
    if (!entries) return entries.error();
    const size_t before = sources_.size();
    for (const std::string& name : *entries) {
        const bool tensors = fs::is_directory(name, error) && find_tensor_file(name, "input", 0);
        if (!tensors && !is_picture_file(name)) continue;
        if (auto done = add(name); !done) return done;
    }
    if (sources_.size() == before)
        return Error{ErrorCode::invalid_argument,
                     place +
                         ": holds no frame; expected .png or .jpg files, or input_<i>.npy or "
                         ".pb, here or in a folder of its own"};
    return {};
}

Result<SampleList> SampleList::open(const std::vector<std::string>& places) {
    SampleList list;
    for (const std::string& place : places)
        if (auto done = list.add(place); !done) return done.error();
    if (places.empty()) {
        list.random_ = true;
        list.sources_.push_back({"random numbers", {}, {}, {}});
    }
    return list;
}

std::vector<std::string> SampleList::files() const {
    std::vector<std::string> files;
    for (const Source& source : sources_) {
        files.push_back(source.picture);
        files.insert(files.end(), source.inputs.begin(), source.inputs.end());
        files.insert(files.end(), source.outputs.begin(), source.outputs.end());
    }
    return files;
}

std::string SampleList::kind() const {
    if (random_) return "frame of random numbers";
    const auto is_picture = [](const Source& s) { return !s.picture.empty(); };
    if (std::ranges::all_of(sources_, is_picture)) return "picture";
    return std::ranges::none_of(sources_, is_picture) ? "stored input" : "frame";
}

Result<verify::Sample> SampleList::load(size_t i, const ModelDescription& model) const {
    const Source& source = sources_[i];
    verify::Sample sample;
    sample.name = source.name;
    if (random_) {
        unsigned seed = 1;
        for (const TensorInfo& info : model.inputs)
            sample.inputs.push_back(
                {info.cpu.data_type,
                 {info.cpu.shape.begin(), info.cpu.shape.end()},
                 random_bytes(info.cpu.data_type, info.cpu.size_bytes, seed++)});
        return sample;
    }
    if (!source.picture.empty()) {
        auto picture = load_picture(source.picture);
        if (!picture) return picture.error();
        sample.picture = {picture->width, picture->height, std::move(picture->rgb)};
        return sample;
    }
    auto inputs = read_all(source.inputs), outputs = read_all(source.outputs);
    if (!inputs) return inputs.error();
    if (!outputs) return outputs.error();
    sample.inputs = std::move(*inputs);
    sample.expected = std::move(*outputs);
    return sample;
}

}  // namespace vartml::tools
