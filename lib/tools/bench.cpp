// SPDX-License-Identifier: Apache-2.0
// `vartml bench`: inferences per second of models, in turn with ONNX Runtime on the same inputs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <vartml/log.h>
#include <vartml/processors.h>
#include <vartml/version.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/model/entries.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/doctor/peaks.h"
#include "lib/tools/run.h"
#include "lib/tools/run_report.h"
#include "lib/tools/tensor_file.h"
#include "lib/tools/verify/folder_check.h"
#include "lib/tools/verify/onnxruntime.h"
#include "lib/trace/clock.h"

namespace vartml::tools {
namespace {

using verify::OnnxRuntime;

struct Request {
    std::vector<std::string> models, input_shapes;
    RunOptions run;
    unsigned rounds = 5;
    double seconds = 0.5;
};

// What was measured of a model.
struct Row {
    std::string model, compute_type;
    double per_s = 0;                     // ours, median of the rounds
    std::optional<double> peer_per_s;     // ONNX Runtime's
    std::optional<MedianInterval> ratio;  // of pairs: ours to ONNX Runtime's
};

void add_options(CLI::App& app, Request& r) {
    app.add_option("MODEL", r.models, "ONNX files; of a compiled model there is nothing to compare")
        ->required()
        ->type_name("");
    app.add_option("--rounds", r.rounds, "pairs of measurements, each of both")
        ->type_name("N")
        ->check(within(1U, 1000U))
        ->capture_default_str();
    app.add_option("--time", r.seconds, "of one measurement, in seconds")
        ->type_name("S")
        ->check(number_from(1e-3))
        ->capture_default_str();
    app.add_option("--threads", r.run.threads, "of either [processors]")
        ->type_name("N")
        ->check(within(0U, 1024U));
    app.add_option("--numerics", r.run.numerics, "type of our float work, as of vartml run")
        ->type_name("auto|f32|bf16")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}).description(""))
        ->capture_default_str();
    app.add_option("--input-shape", r.input_shapes,
                   "shape of an input, as in x:1,3,640,640; repeatable")
        ->type_name("NAME:D0,D1,…")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--json", r.run.json_file,
                   "also write the figures to this file; -: in place of the text")
        ->type_name("FILE");
    app.footer(
        "Both get the same pseudo-random inputs in the tensors of the ONNX file, one inference\n"
        "after another, in turn, so that what else the machine does meets both; what brings them\n"
        "to another layout or type and back is part of either's time. A ratio above 1 says that\n"
        "ours is faster. Exit status: 0 done, also without ONNX Runtime, 1 fault of files or\n"
        "memory, 2 usage, 3 an ONNX file cannot be compiled, 4 no compiled model; the other\n"
        "models are measured all the same.");
}

// The inputs as make_buffers() makes them, in a folder for the child.
Result<void> write_inputs(const vart::Runner& runner, const std::string& folder) {
    std::vector<verify::NamedTensor> inputs;
    unsigned seed = 1;
    for (const auto& cpu :
         runner.get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::CPU)) {
        verify::NamedTensor& input = inputs.emplace_back();
        input.name = cpu.name;
        input.data.type = static_cast<DataType>(cpu.data_type);
        input.data.shape.assign(cpu.shape.begin(), cpu.shape.end());
        input.data.bytes = random_bytes(input.data.type, cpu.size_in_bytes, seed++);
    }
    return verify::write_request(folder, inputs);
}

Result<double> our_round(Activation& activation, double seconds) {
    const uint64_t end_ns = profiling::monotonic_ns() + static_cast<uint64_t>(seconds * 1e9);
    auto times = run_jobs(activation, [&](uint64_t submitted) {
        return submitted >= 3 && profiling::monotonic_ns() >= end_ns;
    });
    if (!times) return times.error();
    return median_interval(std::move(times->round_trip_us)).median;
}

Result<Activation> activate(const RunOptions& o, const std::string& path) {
    Activation activation;
    auto runner = open_runner(path, o, nullptr);
    if (!runner) return runner.error();
    activation.runner = std::move(*runner);
    auto buffers = make_buffers(o, *activation.runner, {});
    if (!buffers) return buffers.error();
    activation.buffers.push_back(std::move(*buffers));
    if (auto warm = warm_up(o, activation); !warm) return warm.error();
    return activation;
}

// `peer`: nullptr where there is nothing to compare with.
Result<Row> measure_model(const Request& r, const std::string& model, const std::string& path,
                          const OnnxRuntime* peer) {
    RunOptions o = r.run;
    o.model = path;
    if (auto chosen = choose_views(o, path); !chosen) return chosen.error();
    auto activation = activate(o, path);
    if (!activation) return activation.error();
    const auto folder = artifact::ExtractionFolder::create({});
    if (!folder) return folder.error();
    if (auto written = write_inputs(*activation->runner, folder->path()); !written)
        return written.error();

    const unsigned threads = o.threads ? o.threads : usable_processors();
    const auto batch = static_cast<double>(activation->runner->get_batch_size());
    std::vector<double> ours, theirs, ratios;
    for (unsigned round = 0; round < r.rounds; ++round) {
        const auto us = our_round(*activation, r.seconds);
        if (!us) return us.error();
        ours.push_back(batch * 1e6 / *us);
        if (!peer) continue;
        const auto timed = peer->time(model, folder->path(), r.seconds, threads);
        if (!timed) {
            log(LogLevel::warning, "", timed.error().message);
            peer = nullptr;
            theirs.clear();
            ratios.clear();
            continue;
        }
        theirs.push_back(1e9 / static_cast<double>(timed->median_ns));
        ratios.push_back(ours.back() / theirs.back());
    }
    Row row{title_of(model),
            property<std::string>(*activation->runner, "compute_type"),
            median_interval(ours).median,
            {},
            {}};
    if (!ratios.empty()) {
        row.peer_per_s = median_interval(theirs).median;
        row.ratio = median_interval(ratios);
    }
    return row;
}

std::optional<double> geometric_mean(const std::vector<Row>& rows) {
    double sum = 0;
    size_t count = 0;
    for (const Row& row : rows)
        if (row.ratio) sum += std::log(row.ratio->median), ++count;
    return count > 1 ? std::optional(std::exp(sum / static_cast<double>(count))) : std::nullopt;
}

std::string number(double value, const char* format) {
    char text[48];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

void print_row(const Row& row, size_t width) {
    std::printf("%-*s  %10.1f  %-6s", static_cast<int>(width), row.model.c_str(), row.per_s,
                row.compute_type.c_str());
    if (row.ratio)
        std::printf("  %12.1f  %6.2f  %.2f..%.2f", *row.peer_per_s, row.ratio->median,
                    row.ratio->low, row.ratio->high);
    std::printf("\n");
    std::fflush(stdout);
}

// As `vartml diff` reads it.
nlohmann::ordered_json row_of(const Row& row) {
    const auto if_any = [](const auto& value) {
        return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
    };
    std::optional<double> ratio;
    if (row.ratio) ratio = row.ratio->median;
    nlohmann::ordered_json peer;
    if (row.peer_per_s) peer = "ONNX Runtime";
    return {{"name", row.model + "/bench"},
            {"unit", "1/s"},
            {"ours", row.per_s},
            {"peer", if_any(row.peer_per_s)},
            {"peer_name", peer},
            {"ratio", if_any(ratio)},
            {"limit", nullptr},
            {"sense", "min"},
            {"pass", nullptr}};
}

std::string json_of(const Request& r, const std::vector<Row>& rows, const std::string& version) {
    const doctor::PeaksKey machine = doctor::peaks_key(r.run.threads);
    nlohmann::ordered_json json = {
        {"machine", {{"cpu", machine.processor}, {"threads", machine.threads}}},
        {"versions", {{"vartml", vartml::version()}, {"onednn", machine.onednn}}},
        {"rows", nlohmann::ordered_json::array()},
        {"version", std::string(vartml::version())},
        {"processor", doctor::processor_model()},
        {"threads", r.run.threads ? r.run.threads : usable_processors()},
        {"rounds", r.rounds},
        {"seconds", r.seconds}};
    if (!version.empty()) json["onnxruntime"] = version;
    json["models"] = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
        json["rows"].push_back(row_of(row));
        nlohmann::ordered_json one = {{"model", row.model},
                                      {"compute_type", row.compute_type},
                                      {"inferences_per_s", row.per_s}};
        if (row.ratio)
            one.update({{"onnxruntime_per_s", *row.peer_per_s},
                        {"ratio", row.ratio->median},
                        {"ratio_low", row.ratio->low},
                        {"ratio_high", row.ratio->high}});
        json["models"].push_back(one);
    }
    if (const auto mean = geometric_mean(rows)) json["geometric_mean"] = *mean;
    return json_file_text(json);
}

int exit_of_bench(const Error& error, const std::string& model) {
    print_error(error);
    return model.ends_with(".onnx") ? exit_of(error) : exit_of_model(error);
}

}  // namespace

int bench(int argc, const char* const* argv) {
    Request r;
    r.run.view = "cpu";  // as ONNX Runtime takes them
    CLI::App app(
        "Measures inferences per second, and beside them ONNX Runtime's where it is installed.",
        "vartml bench");
    add_options(app, r);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    if (auto good = check_result_file("--json", r.run.json_file, r.models); !good) {
        print_error(good.error());
        return exit_of(good.error());
    }

    for (const std::string& model : r.models)
        if (!r.input_shapes.empty() && !model.ends_with(".onnx")) {
            print_error({ErrorCode::invalid_argument, "--input-shape: is for ONNX files, and " +
                                                          model + " is compiled; leave it out"});
            return exit_usage;
        }
    print_json_alone(r.run.json_file);
    const auto peer = OnnxRuntime::find();
    if (!peer) log(LogLevel::warning, "", peer.error().message);
    size_t width = 5;
    for (const std::string& model : r.models) width = std::max(width, title_of(model).size());
    std::printf("%-*s  %10s  %-6s", static_cast<int>(width), "model", "ours per s", "type");
    if (peer) std::printf("  %12s  %6s  %s", ("ORT " + peer->version()).c_str(), "ratio", "range");
    std::printf("\n");

    std::vector<std::string> arguments;
    for (const std::string& shape : r.input_shapes)
        arguments.insert(arguments.end(), {"--input-shape", shape});
    int status = exit_done;
    std::vector<Row> rows;
    for (const std::string& model : r.models) {
        const auto path = compiled_model(model, arguments);
        const bool compares = peer && model.ends_with(".onnx");
        auto row = path ? measure_model(r, model, *path, compares ? &*peer : nullptr)
                        : Result<Row>(path.error());
        if (!row) {
            const int fault = exit_of_bench(row.error(), model);
            if (status == exit_done) status = fault;
            continue;
        }
        print_row(*row, width);
        rows.push_back(std::move(*row));
    }
    if (const auto mean = geometric_mean(rows))
        std::printf("geometric mean of the ratios: %s\n", number(*mean, "%.2f").c_str());
    if (auto written =
            write_json(r.run.json_file, json_of(r, rows, peer ? peer->version() : std::string()));
        !written) {
        print_error(written.error());
        return exit_fault;
    }
    return status;
}

}  // namespace vartml::tools
