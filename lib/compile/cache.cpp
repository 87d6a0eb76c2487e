// SPDX-License-Identifier: Apache-2.0
// The part of compile() that knows files: where a result goes, whether it is fresh, and how it gets
// there in one piece.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <vartml/version.h>
#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/sha256.h"
#include "lib/compile/compile.h"
#include "lib/compile/hw_views.h"
#include "lib/compile/onnx/import.h"
#include "lib/compile/perf_metrics.h"
#include "lib/compile/sidecar.h"
#include "lib/model/containers.h"
#include "lib/model/target.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;

// Where the containers go; "" for one that is not wanted.
struct Places {
    std::string directory, rai, tar;
    std::string lock;
    const std::string& main() const {
        return !directory.empty() ? directory : !rai.empty() ? rai : tar;
    }
};

bool is_cache_key(const std::string& key) {
    const auto ok = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    };
    return !key.empty() && key.size() <= 128 && key[0] != '.' && std::ranges::all_of(key, ok);
}

// The containers that --format names.
Result<void> check_formats(const CompileRequest& request) {
    constexpr std::string_view known[] = {"dir", "rai", "tar"};
    for (const std::string& format : request.formats)
        if (std::ranges::find(known, format) == std::end(known))
            return Error{ErrorCode::invalid_argument,
                         "--format: '" + format + "' is not a container; known: dir, rai, tar"};
    return {};
}

// The files beside the entries in the directory, which is always written.
void add_files(const CompileRequest& request, bool rai_by_default, Places& places) {
    const std::string stem = places.directory + '/' + default_cache_key(request.model);
    const auto wants = [&](const char* format) {
        return std::ranges::find(request.formats, format) != request.formats.end();
    };
    if (wants("rai") || (rai_by_default && request.formats.empty())) places.rai = stem + ".rai";
    if (wants("tar")) places.tar = stem + ".tar.gz";
}

Result<Places> find_places(const CompileRequest& request) {
    if (auto good = check_formats(request); !good) return good.error();
    Places places;
    if (!request.archive.empty()) {
        places.rai = request.archive;
    } else if (!request.output.empty()) {
        const std::string out = without_trailing_slashes(request.output);
        if (out.ends_with(".rai")) {
            places.rai = out;
        } else if (out.ends_with(".tar.gz")) {
            places.tar = out;
        } else {
            places.directory = out;
            add_files(request, false, places);
        }
    } else {
        const std::string key =
            request.cache_key.empty() ? default_cache_key(request.model) : request.cache_key;
        if (!is_cache_key(key))
            return Error{ErrorCode::invalid_argument,
                         "--cache-key: '" + key +
                             "' is no key; expected 1 to 128 characters of "
                             "[A-Za-z0-9._-], not starting with a dot"};
        places.directory = without_trailing_slashes(request.cache_dir) + '/' + key;
        add_files(request, request.cpu_partition, places);
    }
    const std::string& main = places.main();
    places.lock = parent_of(main) + "/." + std::string(last_part(main)) + ".lock";
    return places;
}

// Everything that decides the bytes of the result, apart from the model's own.
Result<Sha256::Digest> config_digest(const CompileRequest& request) {
    auto side = sidecar_inputs(request.model, request.labels);
    if (!side) return side.error();
    nlohmann::ordered_json json;
    json["device"] = request.device;
    const device::Target* target = device::find_target(request.device);
    json["target"] = target ? std::string(target->program) : "";
    json["commit"] = std::string(source_commit());
    json["model_name"] = model_name(request);
    json["optimize_level"] = request.optimize_level;
    json["cpu_partition"] = request.cpu_partition;
    json["batch_size"] = request.batch_size;
    json["threshold_gops_percent"] = request.threshold_gops_percent;
    json["device_memory_limit"] = request.device_memory_limit;
    json["cpu_memory_limit"] = request.cpu_memory_limit;
    json["input_shapes"] = request.input_shapes;
    auto tessellation = tessellation_key(request.tessellate);
    if (!tessellation) return tessellation.error();
    json["tessellation"] = *tessellation;
    json["keep_outputs"] = request.keep_outputs;
    json["npu"] = request.npu;
    json["onnxruntime"] = request.onnxruntime;
    json["columns"] = {request.dp_size, request.tp_size};
    json["quantised_edges"] = {request.quantised_inputs, request.quantised_outputs};
    json["calibration_set"] = request.quantise.set;
    if (request.quantise.target) json["quantise_target"] = *request.quantise.target;
    for (const EmbeddedPreprocess& e : request.embed)
        json["embed_preprocess"].push_back({e.input, e.order, e.mean, e.scale});
    for (const auto& [name, layout] : request.layouts) json["layouts"][name] = to_string(layout);
    json["enable_f32_to_bf16_conversion"] = request.convert_floats;
    json["decoder"] = request.decoder;
    json["pixels"] = {request.pixels.mean, request.pixels.scale,
                      static_cast<int>(request.pixels.channels.value_or(ChannelOrder{})),
                      request.pixels.channels.has_value()};
    json["perf_metrics"] = request.perf_metrics;
    const StatsRequest& stats = request.stats;
    json["stats"] = {stats.level, stats.batchsize, stats.ddr, stats.pmu.recipe, stats.pmu.events};
    json["side_files"] = to_hex(sha256(as_bytes(*side)));
    return sha256(
        as_bytes(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
}

// The compiled model at `path` if it is whole and was made from the same bytes in the same way. One
// that is there but damaged gets a warning that names the part.
std::optional<CompiledModel> read_fresh(const std::string& path, const std::string& signature,
                                        const Sha256::Digest& config,
                                        const CompileRequest& request) {
    auto model = artifact::read(path);
    if (!model) {
        if (model.error().code != ErrorCode::not_found && request.message)
            request.message(LogLevel::warning, model.error().message + "; it is compiled again");
        return std::nullopt;
    }
    const bool same = model->model_signature == signature && model->config_sha256 == config &&
                      model->tool_version == "vartml " + std::string(version());
    return same ? std::optional(std::move(*model)) : std::nullopt;
}

// Operators that ONNX Runtime runs, by name.
std::string in_onnxruntime(const CompiledModel& model) {
    std::map<std::string_view, size_t> counts;
    for (const artifact::Fallback& f : model.summary.fallbacks)
        if (f.code == "onnxruntime") ++counts[f.op_type];
    std::string text;
    for (const auto& [op, count] : counts)
        text += (text.empty() ? "" : ", ") + std::string(op) +
                (count > 1 ? " x" + std::to_string(count) : "");
    return text;
}

CompileOutcome outcome_of(const CompiledModel& model, const CompileRequest& request,
                          const Places& places) {
    CompileOutcome out;
    for (const artifact::Partition& p : model.partitions) {
        artifact::Count& count = p.kind == artifact::PartitionKind::npu ? out.npu : out.cpu;
        count.operators += p.operators;
        count.ops += p.ops;
        ++count.subgraphs;
    }
    out.onnxruntime = in_onnxruntime(model);
    out.desired_batch_size = model.desired_batch_size;
    out.actual_batch_size = model.actual_batch_size;
    out.model_path = places.rai.empty() ? places.main() : places.rai;
    if (!places.directory.empty())
        out.summary_path = places.directory + "/final-vaiml-pass-summary.txt";
    const device::Target* target = device::find_target(request.device);
    if (target && request.perf_metrics) out.perf_metrics = metrics_text(measure(model, *target));
    if (target && request.perf_warnings) out.perf_warnings = perf_warnings(model, *target);
    return out;
}

std::optional<CompileOutcome> find_up_to_date(const CompileRequest& request, const Places& places,
                                              const std::string& signature,
                                              const Sha256::Digest& config) {
    std::optional<CompiledModel> model;
    for (const std::string& place : {places.directory, places.rai, places.tar}) {
        if (place.empty()) continue;
        model = read_fresh(place, signature, config, request);
        if (!model) return std::nullopt;
    }
    if (request.require_full_offload && !model->summary.fallbacks.empty()) return std::nullopt;
    CompileOutcome out = outcome_of(*model, request, places);
    out.up_to_date = true;
    return out;
}

Result<void> write(const CompiledModel& model, const Places& places,
                   const std::vector<std::string>& log, std::vector<artifact::File> extras) {
    if (places.directory.empty())
        return places.rai.empty() ? artifact::write_tar(model, places.tar)
                                  : artifact::write_rai(model, places.rai);
    std::string text;
    for (const std::string& line : log) text += line + '\n';
    extras.push_back({"compile.log", std::move(text)});
    return artifact::write_directory(
        model, places.directory,
        {.rai = !places.rai.empty(), .tar = !places.tar.empty(), .extras = std::move(extras)});
}

// A result replaces what is at its place, a directory with all that is in it: never what it is made
// from, and never a pipe or a device.
Result<void> check_place(const CompileRequest& request, const Places& places) {
    namespace fs = std::filesystem;
    const auto refuse = [&](const std::string& why) {
        return Error{ErrorCode::invalid_argument,
                     places.main() + ": " + why + ", so it is not replaced; give another place"};
    };
    std::error_code ignored;
    const fs::path main = fs::weakly_canonical(places.main(), ignored);
    std::vector<std::string> inputs = request.read_files;
    inputs.insert(inputs.end(), {request.model, request.labels, request.tessellate});
    for (const std::string& input : inputs) {
        const fs::path file = fs::canonical(input, ignored);
        if (ignored || main.empty()) continue;  // not there; who reads it says so
        const auto [rest, end] = std::mismatch(main.begin(), main.end(), file.begin(), file.end());
        if (rest != main.end()) continue;
        return refuse(end == file.end() ? "is what is compiled" : "holds '" + input + "'");
    }
    if (!places.directory.empty()) return artifact::check_replaceable(places.directory);
    const fs::file_status status = fs::symlink_status(places.main(), ignored);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_symlink(status))
        return refuse("exists and is no file");
    return {};
}

}  // namespace

Result<CompileOutcome> compile(const CompileRequest& request) {
    auto places = find_places(request);
    if (!places) return places.error();
    auto signature = onnx::model_signature(request.model);
    if (!signature) return signature.error();
    auto config = config_digest(request);
    if (!config) return config.error();
    if (auto free = check_place(request, *places); !free) return free.error();
    if (auto made = make_directories(parent_of(places->main())); !made) return made.error();
    auto lock = FileLock::acquire(places->lock, nullptr);
    if (!lock) return lock.error();
    remove_left_overs(places->main());
    if (!request.force)
        if (auto fresh = find_up_to_date(request, *places, *signature, *config))
            return std::move(*fresh);

    std::vector<std::string> log;
    CompileRequest logged = request;
    logged.message = [&](LogLevel level, const std::string& text) {
        constexpr const char* names[] = {"ERROR", "WARNING", "INFO", "DEBUG"};
        log.push_back(std::string(names[static_cast<int>(level)]) + ": " + text);
        if (request.message) request.message(level, text);
    };
    CompileOutcome out;
    std::vector<artifact::File> debug;
    auto model = compile_in_memory(logged, &out.not_offloaded, &log, &debug);
    if (!out.not_offloaded.empty()) return out;
    if (!model) return model.error();
    model->config_sha256 = *config;
    if (request.progress) request.progress(80, "write");
    if (auto done = write(*model, *places, log, std::move(debug)); !done) return done.error();
    if (request.progress) request.progress(100, "done");
    return outcome_of(*model, request, *places);
}

}  // namespace vartml::compiler
