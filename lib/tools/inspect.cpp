// SPDX-License-Identifier: Apache-2.0
// vartml inspect: shows, verifies and unpacks a compiled model without a device.
#include "lib/tools/inspect.h"

#include <sys/stat.h>

#include <cstdio>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/json.h"
#include "lib/graph/coordinates.h"
#include "lib/model/compiled_model.h"
#include "lib/model/foreign.h"
#include "lib/model/program.h"
#include "lib/model/stats_descriptor.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"

namespace vartml::tools {

namespace {

struct Options {
    std::string path, json, extract, against;
    bool summary = false, verify = false;
};

bool exists(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
}

int fail(const Error& error, const std::string& path) {
    print_error(error);
    switch (error.code) {
        case ErrorCode::bad_model:
        case ErrorCode::unsupported:
            return exit_not_a_model;
        case ErrorCode::invalid_argument:
            return exit_usage;
        // A folder in which no model was found is there, and is no model.
        case ErrorCode::not_found:
            return exists(path) ? exit_not_a_model : exit_fault;
        default:
            return exit_fault;
    }
}

void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

int extract(const artifact::CompiledModel& model, const Options& options) {
    if (exists(options.extract)) {
        print_error(
            {ErrorCode::invalid_argument,
             options.extract + ": exists; --extract makes a new folder, give another name"});
        return exit_usage;
    }
    if (const auto r = artifact::write_directory(model, options.extract); !r) {
        print_error(r.error());
        return exit_fault;
    }
    ::chmod(options.extract.c_str(), 0700);  // the user opens it to others, if at all
    return exit_done;
}

int show_summary(const artifact::CompiledModel& model, const Options& options) {
    constexpr const char* name = "final-vaiml-pass-summary.txt";
    const std::string* text = model.find_file(name);
    if (!text)
        return fail({ErrorCode::bad_model, options.path + ": has no entry " + name}, options.path);
    put(*text);
    return exit_done;
}

int compare(const artifact::CompiledModel& model, const Options& options) {
    const auto lines = inspect_differences(model, options.against);
    if (!lines) {
        print_error(lines.error());
        return lines.error().code == ErrorCode::invalid_argument ? exit_usage : exit_fault;
    }
    for (const std::string& line : *lines) put(line + '\n');
    if (lines->empty())
        put("No difference: batch size, inputs and outputs are those of " + options.against + '\n');
    return lines->empty() ? exit_done : exit_not_expected;
}

// An archive of another compiler can be looked at, and nothing else.
bool show_foreign(const Options& options) {
    if (options.verify || options.summary || !options.extract.empty() || !options.against.empty() ||
        !artifact::is_gzip(options.path))
        return false;
    const auto mpk = artifact::foreign_mpk(options.path);
    if (!mpk) return false;
    if (options.json.empty())
        put("--- Model info ---\nModel file        : " + options.path +
            "\nMade by           : another compiler, for other hardware; vartml does not run it\n\n"
            "--- _mpk.json ---\n");
    put(inspect_foreign(*mpk));
    return true;
}

// The model with its programs where they can be read; what the manifest says is shown in any case.
artifact::CompiledModel with_programs(const artifact::CompiledModel& model,
                                      const std::string& path) {
    auto whole = artifact::read(path);
    return whole ? std::move(*whole) : model;
}

int show(const Options& options) {
    const bool everything = options.verify || !options.extract.empty();
    const auto model = artifact::read(options.path, {.programs = everything});
    if (!model && show_foreign(options)) return exit_done;
    if (!model) return fail(model.error(), options.path);
    if (options.verify && model->find_file(profiling::descriptor_entry))
        if (auto d = artifact::descriptor_of(*model, options.path); !d)
            return fail(d.error(), options.path);
    if (!options.extract.empty())
        if (const int status = extract(*model, options); status != exit_done) return status;
    if (!options.against.empty()) return compare(*model, options);
    if (options.summary) return show_summary(*model, options);
    if (options.json == "compat")
        put(inspect_json(*model, options.path, JsonForm::compat));
    else if (!options.json.empty())
        put(inspect_json(with_programs(*model, options.path), options.path, JsonForm::numbers));
    else if (options.verify)
        put(options.path + ": valid\n");
    else if (options.extract.empty())
        put(inspect_text(with_programs(*model, options.path), options.path));
    return exit_done;
}

// "--json" alone gives "true".
std::string check_json(const std::string& form) {
    if (form == "true" || form == "numbers" || form == "compat") return {};
    return "is '" + form + "', expected --json or --json=compat";
}

void add_options(CLI::App& app, Options& options) {
    app.add_option("PATH", options.path, "compiled model: a directory, a .rai or a .tar.gz")
        ->required()
        ->type_name("");
    auto* json = app.add_flag("--json", options.json,
                              "print JSON; --json=compat: only what AMD's model-info dump has, "
                              "every number as a string")
                     ->check(CLI::Validator(check_json, ""))
                     ->option_text("[=compat]");
    // The blank stands where --help would list what the option excludes.
    auto* summary = app.add_flag("--summary", options.summary, "print the compiler's summary")
                        ->option_text(" ");
    app.add_flag("--verify", options.verify,
                 "check every byte: containers, checksums, programs, operators");
    app.add_option("--extract", options.extract,
                   "write the directory form to this folder, which must not exist")
        ->type_name("DIR");
    app.add_option(
           "--against", options.against,
           "compare layouts, shapes, types and quantisation with a model-info dump, made on "
           "a board or by --json: a line per difference")
        ->option_text("FILE.json")
        ->excludes(json)
        ->excludes(summary);
    summary->excludes(json);
    app.footer(
        "Exit status: 0 done, 1 fault of files or memory, 2 usage, 4 not a valid compiled model,\n"
        "6 --against found differences.");
}

}  // namespace

int inspect(int argc, const char* const* argv) {
    Options options;
    CLI::App app(
        "Shows a compiled model: its tensors, its partitions, what runs on the CPU and why.",
        "vartml inspect");
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return show(options);
}

namespace {

using Json = nlohmann::ordered_json;
using artifact::CompiledModel;

constexpr int round_to_nearest_even = 1;  // vart::RoundingMode

Json view_json(const TensorView& view) {
    Json j;
    j["shape"] = view.shape;
    j["memory_layout"] = to_string(view.layout);
    if (view.layout == Layout::GENERIC) j["memory_layout_order"] = view.order;
    j["dtype"] = to_string(view.data_type);
    j["size_in_bytes"] = view.size_bytes;
    if (view.quantisation)
        j["quantization"] = {{"scale", view.quantisation->scale},
                             {"zero_point", view.quantisation->zero_point},
                             {"rounding_mode", round_to_nearest_even}};
    return j;
}

Json tensors_json(const std::vector<TensorInfo>& tensors, JsonForm form) {
    Json list = Json::array();
    for (const TensorInfo& t : tensors) {
        Json j;
        j["name"] = t.name;
        j["cpu"] = view_json(t.cpu);
        if (t.hw) j["hw"] = view_json(*t.hw);
        if (form == JsonForm::numbers) {
            j["data_dependent"] = t.data_dependent;
            if (!t.picture.empty()) j["picture"] = t.picture;
        }
        list.push_back(std::move(j));
    }
    return list;
}

void numbers_to_strings(Json& j) {
    if (j.is_number())
        j = j.dump();
    else if (j.is_structured())
        for (Json& item : j) numbers_to_strings(item);
}

Json summary_json(const artifact::Summary& s) {
    const auto count = [](const artifact::Count& c) {
        return Json{{"operators", c.operators}, {"ops", c.ops}, {"subgraphs", c.subgraphs}};
    };
    Json j;
    j["os"] = s.os;
    j["commit"] = s.commit;
    j["model"] = s.model;
    j["model_data_type"] = s.model_data_type;
    j["device_data_type"] = s.device_data_type;
    j["total"] = count(s.total);
    j["supported"] = count(s.supported);
    j["offloaded"] = count(s.offloaded);
    j["compile_errors"] = s.compile_errors;
    j["below_threshold"] = s.below_threshold;
    j["threshold_percent"] = s.threshold_percent;
    j["above_max"] = s.above_max;
    j["max_subgraphs"] = s.max_subgraphs;
    j["folded"] = s.folded;
    return j;
}

void add_own_keys(Json& j, const CompiledModel& model) {
    const auto name = [&](int32_t i, const char* border) {
        return i < 0 ? std::string(border) : model.partitions[static_cast<size_t>(i)].name;
    };
    j["format_version"] = 1;
    j["device"] = model.device;
    j["target"] = model.target;
    const bool standard = model.compilation == artifact::Compilation::standard;
    j["compilation"] = standard ? "standard" : "cpu_partition";
    j["model_signature"] = model.model_signature;
    j["tool_version"] = model.tool_version;
    j["desired_batch_size"] = model.desired_batch_size;
    j["actual_batch_size"] = model.actual_batch_size;
    j["stats_level"] = model.stats_level;
    j["exact_floats"] = model.exact_floats;
    for (const char* key : {"partitions", "execution_order", "graph_edges"}) j[key] = Json::array();
    for (const artifact::Partition& p : model.partitions) {
        const bool npu = p.kind == artifact::PartitionKind::npu;
        Json partition = {{"name", p.name},
                          {"kind", npu ? "npu" : "cpu"},
                          {"operators", p.operators},
                          {"ops", p.ops}};
        if (npu) partition["columns"] = p.columns;
        const auto kept = npu ? graph::find_coordinates(p.graph) : graph::Coordinates{};
        if (kept.num_values() != 0)
            partition["kept_in_f32"] = {{"tensors", kept.num_values()},
                                        {"because_of", kept.reasons}};
        if (p.target == artifact::onnxruntime_target) partition["engine"] = "onnxruntime";
        j["partitions"].push_back(std::move(partition));
    }
    for (const uint32_t i : model.execution_order)
        j["execution_order"].push_back(model.partitions[i].name);
    for (const artifact::Edge& e : model.edges) {
        Json edge = {{"source_partition", name(e.source, "__graph_input__")},
                     {"destination_partition", name(e.destination, "__graph_output__")},
                     {"temp_buffer_name", e.temp_buffer_name},
                     {"tensor_name", e.tensor_name},
                     {"shape", e.shape},
                     {"data_type", to_string(e.data_type)}};
        if (e.data_dependent) edge["data_dependent"] = true;
        j["graph_edges"].push_back(std::move(edge));
    }
    j["summary"] = summary_json(model.summary);
    j["fallbacks"] = Json::array();
    for (const artifact::Fallback& f : model.summary.fallbacks) {
        Json fallback = {
            {"node", f.node}, {"op_type", f.op_type}, {"code", f.code}, {"text", f.text}};
        fallback["partition"] = f.partition < 0 ? Json() : Json(name(f.partition, ""));
        j["fallbacks"].push_back(std::move(fallback));
    }
}

}  // namespace

std::string inspect_foreign(const std::string& mpk) {
    return nlohmann::ordered_json::parse(mpk, nullptr, false)
               .dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) +
           '\n';
}

std::string inspect_json(const CompiledModel& model, const std::string& file, JsonForm form) {
    Json j;
    j["model_file"] = file;
    j["batch_size"] = model.actual_batch_size;
    j["inputs"] = tensors_json(model.inputs, form);
    j["outputs"] = tensors_json(model.outputs, form);
    if (form == JsonForm::compat)
        numbers_to_strings(j);
    else
        add_own_keys(j, model);
    return json_file_text(j);
}

}  // namespace vartml::tools
