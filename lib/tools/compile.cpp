// SPDX-License-Identifier: Apache-2.0
// `vartml compile`: options in, console lines and exit status out.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <vartml/log.h>

#include "lib/base/text.h"
#include "lib/compile/compile.h"
#include "lib/compile/config.h"
#include "lib/tools/arguments.h"
#include "lib/tools/calibration.h"
#include "lib/tools/commands.h"
#include "lib/tools/compat_arguments.h"
#include "lib/tools/progress.h"

namespace vartml::tools {

// The options of `vartml compile` about measuring, and the spellings of other vendors' tools.

struct StatsOptions {
    std::string events;      // as given
    std::string binary_dir;  // of --aic-binary-dir
};

void add_stats_options(CLI::App& app, compiler::CompileRequest& request, StatsOptions& options);
const CompatTable& compile_spellings();

// Checks what goes together and completes the request. Errors: invalid_argument.
Result<void> finish_stats(const StatsOptions& options, compiler::CompileRequest& request);

// What a user should know of what was asked for, in warnings; `batch` is the model's.
void warn_of_stats(const compiler::StatsRequest& stats, unsigned batch);

namespace {

struct Options {
    compiler::CompileRequest request;
    std::vector<std::string> input_shapes, layouts, embedded;
    std::string numerics = "auto";
    std::string config;
    std::string quantize;
    PixelOptions pixels;
    StatsOptions stats;
    bool allow_unknown_config_keys = false;
    int progress_fd = -1;
    unsigned jobs = 0;
    bool quiet = false;
    bool no_onnxruntime = false;
};

// Where the result goes.
void add_places(CLI::App& app, compiler::CompileRequest& r) {
    app.add_option("-o,--output", r.output,
                   "write this instead of the cache: one file ending in .rai or .tar.gz, else a "
                   "directory")
        ->type_name("OUT");
    app.add_option("--cache-dir", r.cache_dir, "the cache: parent of result directories")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--cache-key", r.cache_key,
                   "name of the result directory in it [name of the model]")
        ->type_name("KEY");
    app.add_option("--format", r.formats,
                   "containers to write, of dir,rai,tar; the files lie in the directory, which is "
                   "always written [dir,rai; dir with -o DIR or without CPU partitions]")
        ->type_name("LIST")
        ->delimiter(',')
        ->option_text("LIST");
    app.add_option(
           "--name", r.name,
           "what the model is called in records, traces and on the screen [its file's name]")
        ->type_name("NAME")
        ->check([](const std::string& name) -> std::string {
            const bool good = !name.empty() && name.size() <= 128 &&
                              std::ranges::none_of(name, [](char c) { return c >= 0 && c < ' '; });
            return good ? "" : "is '" + name + "', expected 1 to 128 characters without controls";
        });
    app.add_flag("--force", r.force, "compile even if the result is up to date");
}

// For which device, and how.
void add_target(CLI::App& app, Options& o) {
    compiler::CompileRequest& r = o.request;
    app.add_option("--config", o.config,
                   "a vitisai_config.json; options given here win over it [all passes, softnpu]")
        ->type_name("FILE");
    app.add_flag("--allow-unknown-config-keys", o.allow_unknown_config_keys,
                 "warn of unknown keys of the configuration instead of refusing them");
    app.add_option("--device", r.device,
                   "device whose operators, limits and layouts hold; a wrong name lists them")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--batch-size", r.batch_size,
                   "desired batch size, 1 to 256; the largest up to it that fits is taken")
        ->type_name("N")
        ->check(within(1u, 256u))
        ->capture_default_str();
    app.add_option("--device-memory-limit", r.device_memory_limit,
                   "memory for weights, arena and tensors of one NPU partition [the device's]")
        ->type_name("BYTES")
        ->check(within(uint64_t{1}, uint64_t{1} << 40));
    app.add_option(
           "--cpu-memory-limit", r.cpu_memory_limit,
           "memory for weights, arena and tensors of one CPU partition [8589934592, and 2147483648 "
           "for one tensor]")
        ->type_name("BYTES")
        ->check(within(uint64_t{1}, uint64_t{1} << 40));
    app.add_option("--numerics", o.numerics,
                   "auto: float work and HW tensors may be bfloat16; f32: never [auto]")
        ->check(CLI::IsMember({"auto", "f32"}))
        ->option_text("auto|f32");
    app.add_flag("--no-onnxruntime", o.no_onnxruntime,
                 "refuse operators that neither the NPU nor the CPU partition has, instead of "
                 "leaving them to ONNX Runtime");
    app.add_flag("--require-full-offload", r.require_full_offload,
                 "write nothing and exit with 5 unless every operator runs on the NPU");
}

// What becomes of inputs and outputs.
void add_tensors(CLI::App& app, Options& o) {
    compiler::CompileRequest& r = o.request;
    app.add_option("--input-shape", o.input_shapes,
                   "shape of an input with symbolic dimensions, as in x:1,3,640,640; repeatable")
        ->type_name("NAME:D0,D1,...")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--layout", o.layouts,
                   "what the dimensions of a 4-D input or output mean, NHWC or NCHW, where the "
                   "guess is wrong; repeatable")
        ->type_name("NAME=LAYOUT")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--tessellate", r.tessellate,
                   "layouts of inputs and outputs on the NPU: 'default' (pictures HWC in, HWC16 "
                   "out), or a JSON file: {\"NAME\": {\"dram_layout\": \"HWC\"}}")
        ->type_name("default|FILE");
    app.add_option(
           "--quantize", o.quantize,
           "make an int8 model, calibrated on this file or on those in this folder: .npy, .pb, "
           ".png or .jpg files, clips, or folders with input_<i>.npy; prints what it cost")
        ->type_name("FOLDER");
    app.add_option(
           "--quantize-target", r.quantise.target,
           "keep in floats what loses most, until the int8 model agrees with the float one: "
           "the part of the boxes that it finds again, without boxes the least correlation "
           "of an output, or part of its whole numbers that are the same; 0: keep nothing "
           "[0.97 of boxes and whole numbers, 0.9995 of other outputs]")
        ->check(within(0.0, 1.0))
        ->type_name("0-1");
    add_pixel_options(app, o.pixels, "recorded for whoever feeds pictures [by sidecar or decoder]");
    app.add_option("--embed-preprocess", o.embedded,
                   "make a picture's bytes the input NAME: the program computes (byte - M) * S. "
                   "ORDER is rgb, bgr, rgbx, bgrx or gray; M and S one number, or one per channel "
                   "with '/' between; repeatable")
        ->type_name("NAME:u8,ORDER,hwc,mean=M,scale=S")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add_decoder_option(app, r.decoder,
                       "record which decoder makes boxes or classes of the outputs, and the pixels "
                       "that its models want");
    app.add_option("--labels", r.labels, "record the class names of this text file, one per line")
        ->type_name("FILE");
}

void add_options(CLI::App& app, Options& o) {
    app.add_option("MODEL", o.request.model, "the ONNX file")->required()->type_name("");
    add_places(app, o.request);
    add_target(app, o);
    add_tensors(app, o);
    add_stats_options(app, o.request, o.stats);
    app.add_option("--progress-fd", o.progress_fd,
                   "write 'progress <percent> <stage>' lines to this descriptor")
        ->type_name("N");
    app.add_option("--jobs", o.jobs,
                   "most threads; never changes the result, the compiler uses one so far")
        ->type_name("N")
        ->check(within(1u, 1024u));
    app.add_flag("-q,--quiet", o.quiet, "print errors only");
    app.footer(
        "Without -o the result is the directory vartml-cache/MODEL with MODEL.rai in it. Nothing\n"
        "is done where it is up to date: same model, options and version.\n"
        "Exit status: 0 written or up to date, 1 fault of files or memory, 2 usage or\n"
        "configuration, 3 the model cannot be compiled, 5 --require-full-offload is not met.");
}

Result<void> take_layout(const std::string& text, compiler::CompileRequest& request) {
    const size_t equals = text.rfind('=');
    const std::string layout = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (equals == 0 || (layout != "NHWC" && layout != "NCHW"))
        return Error{ErrorCode::invalid_argument,
                     "--layout: is '" + text + "', expected NAME=NHWC or NAME=NCHW"};
    request.layouts[text.substr(0, equals)] = layout == "NHWC" ? Layout::NHWC : Layout::NCHW;
    return {};
}

// What this version cannot do of a configuration that is good in itself.
Result<void> check_supported(const std::string& file, const compiler::Config& config) {
    struct Row {
        bool wanted;
        const char* text;
    };
    const Row rows[] = {
        {config.floats_to_fp16,
         "enable_f32_to_f16_conversion is true, no device here computes in fp16; set it to false"},
    };
    for (const Row& row : rows)
        if (row.wanted) return Error{ErrorCode::invalid_argument, file + ": " + row.text};
    return {};
}

// The configuration's settings; options of the command line win. Faults are printed, all of them.
bool take_config(const CLI::App& app, Options& o) {
    if (o.config.empty()) return true;
    const compiler::ConfigReading read =
        compiler::read_config(o.config, o.allow_unknown_config_keys);
    for (const std::string& text : read.faults) print_error({ErrorCode::invalid_argument, text});
    if (!read.faults.empty()) return false;
    const compiler::Config& config = read.config;
    if (auto good = check_supported(o.config, config); !good) {
        print_error(good.error());
        return false;
    }
    for (const std::string& text : read.warnings) log(LogLevel::warning, "", text);
    for (const std::string& text : read.notes) log(LogLevel::info, "", text);
    compiler::CompileRequest& r = o.request;
    if (app.count("--device") == 0) {
        r.device = config.device;
    } else if (r.device != config.device) {
        log(LogLevel::info, "",
            o.config + ": device '" + config.device + "' is overridden by --device " + r.device);
    }
    if (app.count("--batch-size") == 0) r.batch_size = config.batch_size;
    if (app.count("--numerics") == 0 && !config.floats_to_bf16) o.numerics = "f32";
    r.optimize_level = config.optimize_level;
    r.keep_outputs = config.keep_outputs;
    r.dp_size = config.dp_size;
    r.tp_size = std::max(config.tp_size, 1u);
    r.quantised_inputs = config.quantized_inputs;
    r.quantised_outputs = config.quantized_outputs;
    r.threshold_gops_percent = config.threshold_gops_percent;
    r.cpu_partition = config.cpu_partition;
    r.require_full_offload = r.require_full_offload || config.require_full_offload;
    return true;
}

// Options that would be ignored.
Result<void> check_together(const Options& o) {
    const compiler::CompileRequest& r = o.request;
    if (r.quantise.target && o.quantize.empty())
        return Error{ErrorCode::invalid_argument,
                     "--quantize-target: is for --quantize, which is not given; give the folder of "
                     "samples to it"};
    if (!r.formats.empty() && (r.output.ends_with(".rai") || r.output.ends_with(".tar.gz")))
        return Error{ErrorCode::invalid_argument,
                     "--format: -o '" + r.output +
                         "' is one file already; give a directory to -o, "
                         "or leave --format out"};
    const bool in_another_folder = r.cache_dir != compiler::CompileRequest().cache_dir;
    if (!r.output.empty() && (!r.cache_key.empty() || in_another_folder))
        return Error{ErrorCode::invalid_argument,
                     std::string(in_another_folder ? "--cache-dir" : "--cache-key") + ": -o '" +
                         r.output + "' says where the result goes; leave one of them out"};
    for (const char* ending : {".onnx", ".tar", ".tgz", ".zip"})
        if (r.output.ends_with(ending))
            return Error{ErrorCode::invalid_argument,
                         "-o: '" + r.output +
                             "' would be a directory; expected a name that ends "
                             "in .rai or .tar.gz for a file, or a directory "
                             "without " +
                             ending};
    return {};
}

// Both may be there: the options then say how the pictures of --quantize are fed.
Result<void> check_embedded_pixels(const compiler::CompileRequest& r) {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
        for (size_t i = 0; i < 3; ++i)
            if (a[a.size() < 3 ? 0 : i] != b[b.size() < 3 ? 0 : i]) return false;
        return true;
    };
    for (const compiler::EmbeddedPreprocess& e : r.embed) {
        const ModelInfo::Input& p = r.pixels;
        const ChannelOrder order = e.order.starts_with("bgr") ? ChannelOrder::bgr
                                   : e.order == "gray"        ? ChannelOrder::gray
                                                              : ChannelOrder::rgb;
        const struct {
            const char* option;
            bool differs;
        } rows[] = {{"--mean", !p.mean.empty() && !same(p.mean, e.mean)},
                    {"--scale", !p.scale.empty() && !same(p.scale, e.scale)},
                    {"--channels", p.channels && *p.channels != order}};
        for (const auto& row : rows)
            if (row.differs)
                return Error{ErrorCode::invalid_argument,
                             std::string(row.option) +
                                 ": differs from what --embed-preprocess says of input '" +
                                 e.input + "'; leave the option out, or give the same"};
    }
    return {};
}

Result<void> finish_options(Options& o) {
    for (const std::string& text : o.input_shapes)
        if (auto done = take_input_shape(text, o.request.input_shapes); !done) return done;
    for (const std::string& text : o.layouts)
        if (auto done = take_layout(text, o.request); !done) return done;
    for (const std::string& text : o.embedded) {
        auto parsed = compiler::parse_embedded_preprocess(text);
        if (!parsed) return parsed.error();
        o.request.embed.push_back(std::move(*parsed));
    }
    auto pixels = parse_pixels(o.pixels);
    if (!pixels) return pixels.error();
    o.request.pixels = std::move(*pixels);
    if (auto good = check_embedded_pixels(o.request); !good) return good;
    if (auto done = finish_stats(o.stats, o.request); !done) return done;
    o.request.convert_floats = o.numerics == "auto";
    o.request.onnxruntime = !o.no_onnxruntime;
    if (o.progress_fd >= 0 && ::fcntl(o.progress_fd, F_GETFD) < 0)
        return Error{ErrorCode::invalid_argument,
                     "--progress-fd: " + std::to_string(o.progress_fd) + " is no open descriptor"};
    return {};
}

void print_outcome(const compiler::CompileOutcome& out) {
    std::printf("operators: %u on the NPU, %u on the CPU\n", out.npu.operators, out.cpu.operators);
    if (!out.onnxruntime.empty())
        std::printf(
            "ONNX Runtime: %s; the machine that runs the model needs it (--no-onnxruntime refuses "
            "such operators)\n",
            out.onnxruntime.c_str());
    std::printf("subgraphs: %u NPU, %u CPU\n", out.npu.subgraphs, out.cpu.subgraphs);
    std::printf("batch size: desired %u, actual %u\n", out.desired_batch_size,
                out.actual_batch_size);
    std::printf("model: %s\n", out.model_path.c_str());
    if (!out.summary_path.empty()) std::printf("summary: %s\n", out.summary_path.c_str());
    if (out.up_to_date) std::puts("up to date");
}

// "int8: 97.1 % of the multiply-adds (59 operators), 3 convolutions and products stay float".
std::string share_text(const compiler::QuantisedShare& share, size_t kept_float) {
    const double percent = 100 * static_cast<double>(share.int8_macs) /
                           static_cast<double>(std::max<uint64_t>(share.product_macs, 1));
    char text[160];
    std::snprintf(text, sizeof text, "int8: %.1f %% of the multiply-adds (%zu operators)", percent,
                  share.operators);
    std::string line = text;
    if (kept_float != 0)
        line += ", " + std::to_string(kept_float) +
                " convolutions and products stay float (--quantize-target)";
    return line + '\n';
}

void print_perf_warnings(const compiler::CompileRequest& request,
                         const compiler::CompileOutcome& out) {
    if (!request.perf_warnings) return;
    for (const std::string& line : out.perf_warnings)
        std::fprintf(stderr, "%s\n", printable(line, std::string::npos).c_str());
    std::fprintf(stderr, "performance warnings: %zu\n", out.perf_warnings.size());
}

}  // namespace

int compile(int argc, const char* const* argv) {
    Options options;
    CLI::App app(
        "Compiles an ONNX model for an NPU. What the NPU does not run goes into CPU partitions of "
        "the same result.",
        "vartml compile");
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv, compile_spellings())) return *status;
    if (!take_config(app, options)) return exit_usage;
    auto done = check_together(options);
    if (done) done = finish_options(options);
    if (!done) {
        print_error(done.error());
        return exit_usage;
    }
    if (options.quiet) set_log_level(LogLevel::error);
    std::optional<Progress> progress;
    options.request.message = [&](LogLevel level, const std::string& text) {
        if (progress) progress->clear();
        log(level, "", text);
    };
    if (!options.quiet && options.progress_fd < 0) {
        progress.emplace("compiling");
        options.request.progress = [&](int percent, const char* stage) {
            progress->show(percent, stage);
        };
    }
    if (options.progress_fd >= 0)
        options.request.progress = [fd = options.progress_fd](int percent, const char* stage) {
            ::dprintf(fd, "progress %d %s\n", percent, stage);
        };
    std::optional<CalibrationSet> set;
    std::string share;
    options.request.read_files = {options.quantize, options.config};
    if (!options.quantize.empty()) {
        auto opened = CalibrationSet::open(options.quantize);
        if (!opened) {
            print_error(opened.error());
            return exit_usage;
        }
        set.emplace(std::move(*opened));
        compiler::QuantiseRequest& request = options.request.quantise;
        request.set = set->key();
        request.measure = [&set](const artifact::CompiledModel& probe, size_t own_outputs) {
            return set->measure(probe, own_outputs);
        };
        request.run_both = [&set](const artifact::CompiledModel& exact,
                                  const artifact::CompiledModel& found, size_t most_samples,
                                  const compiler::Take& take) {
            return set->run_both(exact, found, most_samples, take);
        };
        request.remember = [&set](const std::string& key, const auto& make) {
            return set->remember(key, make);
        };
        request.judge = [&set](const artifact::CompiledModel& trial) { return set->judge(trial); };
        request.report = [&](const compiler::QuantisedShare& made, size_t kept_float) {
            share = share_text(made, kept_float);
        };
    }
    auto out = compiler::compile(options.request);
    progress.reset();
    if (!out) {
        print_error(out.error());
        return exit_of(out.error());
    }
    if (!out->not_offloaded.empty()) {
        print_error({ErrorCode::unsupported, out->not_offloaded});
        return exit_not_offloaded;
    }
    warn_of_stats(options.request.stats, out->actual_batch_size);
    print_perf_warnings(options.request, *out);
    if (!options.quiet) print_outcome(*out);
    std::fputs(out->perf_metrics.c_str(), stdout);
    if (set && !options.quiet) {
        auto cost = set->cost(out->model_path);
        if (!cost) {
            print_error(cost.error());
            return exit_fault;
        }
        std::fputs(share.c_str(), stdout);
        std::fputs(cost->c_str(), stdout);
    }
    return exit_done;
}

namespace {

constexpr size_t max_events = 8;
const std::vector<std::string> recipes = {"AxiRd", "AxiWr", "AxiRdWr", "KernelUtil", "HmxMacs"};

Error bad_events(const std::string& text, const std::string& what) {
    return {ErrorCode::invalid_argument,
            "--pmu-events: is '" + text + "', " + what +
                "; expected 1 to 8 different hexadecimal numbers, as in 3F,70,200"};
}

Result<std::vector<uint32_t>> parse_events(const std::string& text) {
    std::vector<uint32_t> events;
    for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
        end = std::min(text.find(',', begin), text.size());
        std::string_view word = std::string_view(text).substr(begin, end - begin);
        if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
        uint32_t event = 0;
        const auto [stop, fault] =
            std::from_chars(word.data(), word.data() + word.size(), event, 16);
        if (fault != std::errc() || stop != word.data() + word.size())
            return bad_events(text, "where '" + std::string(word) +
                                        "' is no hexadecimal number "
                                        "of up to 32 bits");
        if (std::ranges::find(events, event) != events.end())
            return bad_events(text, "which has " + std::string(word) + " twice");
        events.push_back(event);
    }
    if (events.size() > max_events)
        return bad_events(text, "which are " + std::to_string(events.size()));
    return events;
}

}  // namespace

void add_stats_options(CLI::App& app, compiler::CompileRequest& request, StatsOptions& options) {
    compiler::StatsRequest& stats = request.stats;
    app.add_option(
           "--stats-level", stats.level,
           "what runs can be measured by, 0 to 100: from 40 inferences, from 50 also waits, "
           "from 70 also operators, 100 also PMU counters of operators")
        ->type_name("N")
        ->check(within(0u, 100u))
        ->capture_default_str();
    app.add_option("--stats-batchsize", stats.batchsize,
                   "inferences that one run counts as in rates [the model's batch size]")
        ->type_name("N")
        ->check(within(1u, 1u << 20));
    app.add_flag("--ddr-stats", stats.ddr, "record the bytes moved, computed from tensor sizes");
    app.add_option("--pmu-recipe", stats.pmu.recipe,
                   "count processor events: AxiRd, AxiWr, AxiRdWr, KernelUtil or HmxMacs")
        ->type_name("R")
        ->check(CLI::IsMember(recipes))
        ->option_text("R");
    app.add_option("--pmu-events", options.events,
                   "count these raw processor events instead: up to 8 hexadecimal numbers")
        ->type_name("A,B,...");
    app.add_flag("--perf-warnings", request.perf_warnings,
                 "say on standard error what in the result costs speed");
    app.add_flag("--perf-metrics", request.perf_metrics,
                 "print the compiler's estimates and keep them in the result");
    app.add_option("--aic-binary-dir", options.binary_dir)->group("");
}

const CompatTable& compile_spellings() {
    static const CompatTable table = {
        {{"", {"-model", "-m"}, "MODEL"},
         {"--aic-binary-dir",
          {"-aic-binary-dir", "--aic-binary-dir"},
          "write the single file programqpc.bin into this folder",
          true},
         {"--stats-level", {"-stats-level"}},
         {"--stats-batchsize", {"-stats-batchsize"}},
         {"--ddr-stats", {"-ddr-stats"}},
         {"--pmu-recipe", {"-pmu-recipe", "--aic-pmu-recipe", "-aic-pmu-recipe"}},
         {"--pmu-events", {"-pmu-events", "--aic-pmu-events", "-aic-pmu-events"}},
         {"--perf-warnings", {"-perf-warnings", "--aic-perf-warnings", "-aic-perf-warnings"}},
         {"--perf-metrics", {"-perf-metrics", "--aic-perf-metrics", "-aic-perf-metrics"}}},
        {{"--aic-profiling-",
          "is an option of 'vartml run', which takes the measurements; here --stats-level says "
          "what can be measured"}}};
    return table;
}

Result<void> finish_stats(const StatsOptions& options, compiler::CompileRequest& request) {
    compiler::StatsRequest& stats = request.stats;
    const auto fault = [](const std::string& sentence) {
        return Error{ErrorCode::invalid_argument, sentence};
    };
    const bool has_events = !options.events.empty();
    if (has_events && !stats.pmu.recipe.empty())
        return fault("--pmu-recipe and --pmu-events exclude each other; give one of them");
    const struct {
        const char* option;
        bool is_given;
    } rows[] = {{"--ddr-stats", stats.ddr},
                {"--pmu-recipe", !stats.pmu.recipe.empty()},
                {"--pmu-events", has_events}};
    for (const auto& row : rows)
        if (row.is_given && stats.level < profiling::level_inference)
            return fault(std::string(row.option) + ": needs a stats level of 40 or more, it is " +
                         std::to_string(stats.level) + "; raise --stats-level");
    if (has_events) {
        auto events = parse_events(options.events);
        if (!events) return events.error();
        stats.pmu.events = std::move(*events);
    }
    if (options.binary_dir.empty()) return {};
    if (!request.output.empty())
        return fault("--aic-binary-dir and --output exclude each other; give one of them");
    request.archive = options.binary_dir + "/programqpc.bin";
    return {};
}

void warn_of_stats(const compiler::StatsRequest& stats, unsigned batch) {
    if (stats.level < profiling::level_inference)
        log(LogLevel::warning, "",
            "stats level " + std::to_string(stats.level) +
                " records nothing: runs of this model cannot be profiled; 40 or more can");
    if (stats.batchsize != 0 && stats.batchsize != batch)
        log(LogLevel::warning, "",
            "--stats-batchsize is " + std::to_string(stats.batchsize) +
                ", the batch size of the model " + std::to_string(batch) +
                "; rates per inference count " + std::to_string(stats.batchsize) + " per run");
}

}  // namespace vartml::tools
