// SPDX-License-Identifier: Apache-2.0
// `vartml profile`: where the time of an inference goes, node by node of the ONNX file, as one
// page.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <vartml/compile.h>
#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <CLI/CLI.hpp>

#include "lib/base/file.h"
#include "lib/model/entries.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/opstats/nodes.h"
#include "lib/tools/opstats/page.h"
#include "lib/tools/opstats/summary_build.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/tools/pictures.h"
#include "lib/tools/run.h"
#include "lib/tools/verify/feed.h"

namespace vartml::tools {
namespace {

namespace p = vartml::profiling;

struct Request {
    std::string model, picture, out;
    std::vector<std::string> input_shapes;
    RunOptions run;
};

// ours: lines of the console
constexpr size_t most_lines = 10;

void add_options(CLI::App& app, Request& r) {
    app.add_option("MODEL", r.model, "an ONNX file, or a model compiled with --stats-level 70")
        ->required()
        ->type_name("");
    app.add_option("PICTURE", r.picture, "what it is fed, .png or .jpg [fixed pseudo-random data]")
        ->type_name("");
    app.add_option("-o,--output", r.out, "the page [MODEL.profile.html in this folder]")
        ->type_name("FILE");
    app.add_option("-n,--iterations", r.run.iterations,
                   "inferences that are recorded; the page shows the median one")
        ->type_name("N")
        ->check(within(1U, 10000U));
    app.add_option("--input-shape", r.input_shapes,
                   "shape of an input of the ONNX file, as in x:1,3,640,640; repeatable")
        ->type_name("NAME:D0,D1,…")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--numerics", r.run.numerics, "type of float work, as of vartml run")
        ->type_name("auto|f32|bf16")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}).description(""))
        ->capture_default_str();
    app.add_option("--device", r.run.device, "the device [the one that the program is for]")
        ->type_name("NAME");
    app.add_option("--threads", r.run.threads, "threads of the software NPU [processors]")
        ->type_name("N")
        ->check(within(0U, 1024U));
    app.footer(
        "The page is one file: times in milliseconds by the names of the ONNX file, the longest\n"
        "first, what bounds them, a timeline and the latencies. Exit status: 0 done, 1 fault of\n"
        "files or memory, 2 usage, 3 the ONNX file cannot be compiled, 4 no compiled model.");
}

Result<std::string> profiled_model(const Request& r) {
    if (!r.model.ends_with(".onnx")) {
        if (!r.input_shapes.empty())
            return Error{ErrorCode::invalid_argument, "--input-shape: is for an ONNX file, and " +
                                                          r.model + " is compiled; leave it out"};
        return r.model;
    }
    std::vector<std::string> arguments = {"--stats-level", std::to_string(p::level_operators)};
    for (const std::string& shape : r.input_shapes) {
        arguments.push_back("--input-shape");
        arguments.push_back(shape);
    }
    return compiled_model(r.model, arguments);
}

Result<ProfileModel> open_model_of_operators(const Request& r, const std::string& path) {
    auto model = open_profile_model(path, r.run.profile);
    if (!model) return model.error();
    if (model->descriptor.compiled_level < p::level_operators)
        return Error{ErrorCode::invalid_argument,
                     path + ": was compiled with --stats-level " +
                         std::to_string(model->descriptor.compiled_level) +
                         ", times of operators need " + std::to_string(p::level_operators) +
                         "; give the ONNX file, or compile it with --stats-level " +
                         std::to_string(p::level_operators)};
    return model;
}

// The picture as the tensors of all inputs, in the views that the runner gets.
Result<std::vector<verify::Buffer>> feed(const Request& r, const std::string& path) {
    auto loaded = load_picture(r.picture);
    if (!loaded) return loaded.error();
    auto session =
        verify::Session::open(path, {.numerics = r.run.numerics, .device = r.run.device});
    if (!session) return session.error();
    auto info = find_modelinfo("", r.model, session->description().modelinfo);
    if (!info) return info.error();
    verify::feed_sizes(*info, session->inputs());
    const verify::Feeder feeder(*session, *info, "");
    if (!feeder.picture())
        return Error{ErrorCode::invalid_argument,
                     r.model + ": no input is a picture; leave PICTURE out"};
    verify::Sample sample;
    sample.name = r.picture;
    sample.picture = {loaded->width, loaded->height, std::move(loaded->rgb)};
    auto fed = feeder.feed(sample, verify::product_stages());
    if (!fed) return fed.error();
    return std::move(fed->inputs);
}

Result<Activation> activate(const Request& r, const ProfileModel& model) {
    Activation activation;
    activation.collector = make_collector(model, r.run.profile, 0);
    auto runner = open_runner(model.path, r.run, activation.collector);
    if (!runner) return runner.error();
    activation.runner = std::move(*runner);
    auto buffers = make_buffers(r.run, *activation.runner, {});
    if (!buffers) return buffers.error();
    if (!r.picture.empty()) {
        const auto fed = feed(r, model.path);
        if (!fed) return fed.error();
        for (auto& frame : buffers->inputs)
            for (size_t i = 0; i < frame.size() && i < fed->size(); ++i)
                if (frame[i].get_info().size_in_bytes == (*fed)[i].size())
                    std::memcpy(frame[i].get_virtual_address(), (*fed)[i].data(), (*fed)[i].size());
    }
    activation.buffers.push_back(std::move(*buffers));
    return activation;
}

struct Recorded {
    std::string path;  // of the raw buffer
    double us = 0;     // from call to result
};

// The inferences by their length.
Result<std::vector<Recorded>> by_length(const std::vector<std::string>& paths,
                                        const ProfileModel& model) {
    std::vector<Recorded> all;
    for (const std::string& path : paths) {
        const auto buffer = p::BufferFile::open(path);
        if (!buffer) return buffer.error();
        const auto verdict = p::verdict_of(*buffer, model.descriptor);
        if (!verdict) return verdict.error();
        all.push_back({path, std::max(verdict->round_trip_ns, verdict->device_ns) / 1000});
    }
    std::ranges::stable_sort(all, {}, &Recorded::us);
    return all;
}

std::string page_name(const Request& r) {
    return r.out.empty() ? title_of(r.model) + ".profile.html" : r.out;
}

// "Conv_41 + Concat_40 + 10 more": a line of the console holds no more.
std::string short_name(const std::string& name) {
    constexpr size_t most = 56;
    size_t end = name.find(" + ", name.find(" + ") + 1);
    if (name.size() <= most || end == name.npos) return name;
    size_t more = 0;
    for (size_t at = end; at != name.npos; at = name.find(" + ", at + 1)) ++more;
    return name.substr(0, end) + " + " + std::to_string(more) + " more";
}

void print_rows(const p::NodeTable& nodes, const RunMeasurement& m) {
    const std::string each =
        nodes.batch > 1 ? "run of " + std::to_string(nodes.batch) + " frames" : "inference";
    std::printf("%.3f ms per %s, the median of %zu, on %s, float work in %s\n", nodes.ms,
                each.c_str(), nodes.inferences, m.backend.c_str(), m.compute_type.c_str());
    for (size_t i = 0; i < std::min(nodes.rows.size(), most_lines); ++i) {
        const p::NodeRow& row = nodes.rows[i];
        std::printf("%10.3f ms %5.1f %%  %s%s%s\n", row.ms.value_or(0), row.percent.value_or(0),
                    short_name(row.name).c_str(), row.kind.empty() ? "" : "  ", row.kind.c_str());
    }
    if (nodes.rows.size() > most_lines)
        std::printf("%zu more in the page\n", nodes.rows.size() - most_lines);
}

Result<void> write_profile_page(const Request& r, const ProfileModel& model,
                                const std::vector<Recorded>& all, const RunMeasurement& m) {
    const auto buffer = p::BufferFile::open(all[all.size() / 2].path);
    if (!buffer) return buffer.error();
    const auto lacking = buffer->lacks(p::field::later_frames);
    if (!lacking) return lacking.error();
    if (*lacking)
        return Error{ErrorCode::invalid_argument,
                     r.model + ": its batch of " + std::to_string(model.descriptor.batch) +
                         " goes through the program in groups of frames, of which only the first "
                         "has times of operators; compile it with --batch-size 1"};
    auto nodes = p::build_nodes(*buffer, model.descriptor);
    if (!nodes) return nodes.error();
    nodes->inferences = all.size();
    const auto verdict = p::verdict_of(*buffer, model.descriptor);
    if (!verdict) return verdict.error();
    const auto summary = p::build_summary(*buffer, model.descriptor, *verdict);
    if (!summary) return summary.error();
    std::vector<double> round_trips_us;
    for (const Recorded& one : all) round_trips_us.push_back(one.us);
    const std::string page = page_name(r);
    if (auto done = p::write_page(*buffer, model.descriptor,
                                  {*summary, *verdict, {}, round_trips_us, &*nodes}, page);
        !done)
        return done;
    print_rows(*nodes, m);
    std::printf("page: %s\n", page.c_str());
    return {};
}

Result<void> work(Request& r, const std::string& path) {
    r.run.model = path;
    r.run.profile.num_samples = r.run.iterations;
    const auto model = open_model_of_operators(r, path);
    if (!model) return model.error();
    if (auto chosen = choose_views(r.run, path); !chosen) return chosen;
    std::vector<Activation> activations;
    auto activation = activate(r, *model);
    if (!activation) return activation.error();
    activations.push_back(std::move(*activation));
    auto m = measure(r.run, activations);
    if (!m) return m.error();
    const auto folder = artifact::ExtractionFolder::create({});
    if (!folder) return folder.error();
    const auto buffers = write_raw_buffers(*model, r.run, activations, *m, folder->path());
    if (!buffers) return buffers.error();
    const auto all = by_length(*buffers, *model);
    if (!all) return all.error();
    return write_profile_page(r, *model, *all, *m);
}

}  // namespace

int profile(int argc, const char* const* argv) {
    Request r;
    r.run.iterations = 20;
    CLI::App app(
        "Runs a model and writes one page that says where the time goes, node by node of the ONNX "
        "file.",
        "vartml profile");
    add_options(app, r);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    const std::string inputs[] = {r.model, r.picture};
    if (auto good = check_result_file("-o", r.out, inputs); !good) {
        print_error(good.error());
        return exit_of(good.error());
    }
    const auto path = profiled_model(r);
    if (!path) {
        print_error(path.error());
        return r.model.ends_with(".onnx") ? exit_of(path.error()) : exit_of_model(path.error());
    }
    if (auto done = work(r, *path); !done) {
        print_error(done.error());
        return exit_of_model(done.error());
    }
    return exit_done;
}

}  // namespace vartml::tools
