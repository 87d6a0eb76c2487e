// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "lib/base/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/trace/descriptor.h"

namespace vartml::tools {
namespace {

// In the order of ProfileType.
constexpr const char* type_names[profile_type_count] = {"stats", "trace", "latency",
                                                        "raw_device_stats"};

struct Words {
    std::string test_data, sampling_rate = "full";
    std::vector<std::string> types;
};

constexpr uint64_t most_ms = uint64_t{1000} * 86'400'000;

void add_data(CLI::App& app, RunOptions& o, Words& words) {
    app.add_option("MODEL", o.model, "a compiled model, or an ONNX file, which is compiled first")
        ->type_name("");
    app.add_option("--test-data", words.test_data,
                   "instead of MODEL: folder with programqpc.bin, as -aic-binary-dir leaves it")
        ->type_name("DIR");
    app.add_option("--input", o.input_files, "contents of an input, .npy or .pb; repeatable")
        ->type_name("NAME=FILE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--inputs", o.inputs_dir, "folder with input_<i>.npy or .pb")->type_name("DIR");
    app.add_option("--expect", o.expect_dir,
                   "folder with output_<i>.npy or .pb; exit 6 if the outputs differ")
        ->type_name("DIR");
    app.add_option("--save-outputs", o.save_dir,
                   "write the outputs to this folder, as output_<i>.npy")
        ->type_name("DIR");
    app.add_option("--tolerance", o.tolerance, "replaces the limit of the comparison of --expect")
        ->type_name("T")
        ->check(number_from(0))
        ->needs("--expect");
}

void add_runner(CLI::App& app, RunOptions& o) {
    app.add_option("--numerics", o.numerics,
                   "type of float work: auto, f32, or bf16 also where that is slow")
        ->type_name("auto|f32|bf16")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}).description(""))
        ->capture_default_str();
    app.add_option("--view", o.view,
                   "tensors that the runner gets: hw in place, cpu converted; auto: hw where every "
                   "tensor of that direction has it")
        ->type_name("auto|hw|cpu")
        ->check(CLI::IsMember({"auto", "hw", "cpu"}).description(""))
        ->capture_default_str();
    app.add_option("--device", o.device, "the device [the one that the program is for]")
        ->type_name("NAME");
    app.add_option("--threads", o.threads, "threads of the software NPU [processors]")
        ->type_name("N")
        ->check(within(0U, 1024U));
    app.add_option("-a,--activations", o.activations,
                   "runners of the model that run at the same time, each all iterations")
        ->type_name("N")
        ->check(within(1U, 256U))
        ->capture_default_str();
}

void add_measurement(CLI::App& app, RunOptions& o) {
    app.add_option("--warmup", o.warmup, "runs before the measurement")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("-n,--iterations,--num-iter", o.iterations,
                   "runs that are measured, counted from the begin of profiling")
        ->type_name("N")
        ->check(within(1U, 1000000000U))
        ->capture_default_str();
    app.add_option("--time", o.seconds,
                   "measure for this time instead of a number of runs, one at least")
        ->type_name("S")
        ->check(number_from(1e-9));
    app.add_option("--in-flight", o.in_flight, "jobs submitted at the same time")
        ->type_name("N")
        ->check(within(1U, 256U))
        ->capture_default_str();
    app.add_option("--json", o.json_file,
                   "also write the figures to this file; -: in place of the text")
        ->type_name("FILE");
    app.add_flag("--steps", o.steps, "print the time of each step of the program");
}

CLI::Validator profile_types() {
    return {[](std::string& text) -> std::string {
                if (std::ranges::find(type_names, text) != std::end(type_names)) return {};
                for (const char* name : {"trace", "latency"})
                    if (text == std::string(name) + "_stream")
                        return "is " + text + ", which needs a device that streams; use " + name;
                return "is " + text + ", expected stats, trace, latency or raw_device_stats";
            },
            ""};
}

// Of --profiling-sampling-rate.
const std::map<std::string, unsigned>& rates() {
    static const std::map<std::string, unsigned> table = {
        {"full", 1}, {"half", 2}, {"fourth", 4}, {"eighth", 8}, {"sixteenth", 16}};
    return table;
}

void add_profiling(CLI::App& app, ProfileOptions& p, Words& words) {
    app.add_option("--profiling-type", words.types,
                   "record inferences and write stats (a summary each), trace (a timeline), "
                   "latency (a table), or raw_device_stats for vartml opstats; repeatable")
        ->type_name("T")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(profile_types());
    app.add_option("--profiling-out-dir", p.out_dir, "where those files go; it must exist")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--profiling-num-samples", p.num_samples,
                   "inferences of each activation that are saved, the first ones")
        ->type_name("N")
        ->check(within(uint64_t{1}, uint64_t{1} << 32))
        ->capture_default_str();
    app.add_option("--profiling-start-iter", p.start_iteration,
                   "begin with this iteration after the warm-up, counted from 0")
        ->type_name("I")
        ->check(within(uint64_t{0}, uint64_t{1000000000}))
        ->capture_default_str();
    app.add_option("--profiling-start-delay", p.start_delay_ms, "begin after this time")
        ->type_name("MS")
        ->check(within(uint64_t{0}, most_ms))
        ->capture_default_str();
    app.add_option("--profiling-duration", p.duration_ms, "end after this time [with the run]")
        ->type_name("MS")
        ->check(within(uint64_t{1}, most_ms));
    app.add_option("--profiling-sampling-rate", words.sampling_rate,
                   "record every 1st, 2nd, 4th, 8th or 16th inference")
        ->type_name("full|half|fourth|eighth|sixteenth")
        ->check(CLI::IsMember({"full", "half", "fourth", "eighth", "sixteenth"}).description(""))
        ->capture_default_str();
    app.add_option("--profiling-level", p.level,
                   "record less than the model was compiled for [--stats-level of vartml compile]")
        ->type_name("L")
        ->check(within(profiling::level_inference, profiling::level_pmu_per_operator));
    app.add_flag("--profiling-overhead", p.overhead,
                 "measure what recording costs: runs with and without, in turn [at level 50]");
    app.add_option("--profiling-overhead-limit", p.overhead_limit,
                   "budget in percent instead of 2; exit 3 if the 95 % interval is above it")
        ->type_name("P")
        ->check(number_from(0));
}

// Spellings of the qaic tools.
const CompatTable& compat_table() {
    static const CompatTable table = {{
        {"--profiling-type", {"--aic-profiling-type"}},
        {"--profiling-out-dir", {"--aic-profiling-out-dir"}},
        {"--profiling-num-samples", {"--aic-profiling-num-samples"}},
        {"--profiling-start-iter", {"--aic-profiling-start-iter"}},
        {"--profiling-start-delay", {"--aic-profiling-start-delay"}},
        {"--profiling-duration", {"--aic-profiling-duration"}},
        {"--profiling-sampling-rate", {"--aic-profiling-sampling-rate"}},
    }};
    return table;
}

Error usage(const std::string& sentence) {
    return {ErrorCode::invalid_argument, "run: " + sentence + "; see vartml run --help"};
}

// What one option alone cannot tell.
Result<void> check(const CLI::App& app, RunOptions& o, const Words& words) {
    if (o.model.empty() == words.test_data.empty())
        return usage(o.model.empty() ? "no MODEL is given, and no --test-data"
                                     : "MODEL and --test-data exclude each other, both are given");
    const ProfileOptions& p = o.profile;
    if (p.overhead_limit && !p.overhead)
        return usage("--profiling-overhead-limit needs --profiling-overhead");
    if (p.overhead && p.wants_files())
        return usage(
            "--profiling-overhead and --profiling-type exclude each other, both are given");
    constexpr const char* dependent[] = {"--profiling-start-iter",  "--profiling-start-delay",
                                         "--profiling-duration",    "--profiling-sampling-rate",
                                         "--profiling-num-samples", "--profiling-out-dir"};
    for (const char* option : dependent) {
        const bool on =
            option == std::string_view("--profiling-out-dir") ? p.wants_files() : p.is_on();
        if (app.count(option) > 0 && (p.overhead || !on))
            return usage(option + std::string(p.overhead
                                                  ? " has no effect with --profiling-overhead"
                                                  : " needs --profiling-type"));
    }
    // Its runs are its own.
    constexpr const char* of_one_run[] = {"--expect", "--tolerance", "--save-outputs",
                                          "--steps",  "--time",      "--iterations"};
    for (const char* option : of_one_run)
        if (p.overhead && app.count(option) > 0)
            return usage(option + std::string(" has no effect with --profiling-overhead"));
    if (p.overhead && o.activations > 1)
        return usage("--activations has no effect with --profiling-overhead");
    return {};
}

// What cannot be written is said before time goes into the model.
Result<void> probe_folder(const std::string& folder) {
    std::string probe = folder + "/.vartml-probe-XXXXXX";
    const int fd = ::mkstemp(probe.data());
    if (fd < 0) {
        const int reason = errno;
        return Error{ErrorCode::io, "--profiling-out-dir: " +
                                        system_error(folder, "write into it", reason).message +
                                        "; it must be a folder that exists and can be written"};
    }
    ::close(fd);
    ::unlink(probe.c_str());
    return {};
}

}  // namespace

bool ProfileOptions::wants_files() const {
    return std::ranges::find(types, true) != types.end();
}

std::optional<int> parse_run_options(int argc, const char* const* argv, RunOptions& options) {
    CLI::App app("Runs a model on given or fixed pseudo-random data, prints times and compares.",
                 "vartml run");
    Words words;
    add_data(app, options, words);
    add_runner(app, options);
    add_measurement(app, options);
    add_profiling(app, options.profile, words);
    app.footer(
        "Exit status: 0 done, 1 fault of files or memory, or no inference was recorded, 2 usage,\n"
        "3 the ONNX file cannot be compiled, or recording costs more than the limit, 4 no "
        "compiled\n"
        "model, 6 the outputs are not as expected.");
    if (const auto status = parse_arguments(app, argc, argv, compat_table())) return status;
    for (const std::string& name : words.types)
        options.profile.types[static_cast<size_t>(std::ranges::find(type_names, name) -
                                                  std::begin(type_names))] = true;
    options.profile.every = rates().at(words.sampling_rate);
    if (auto good = check(app, options, words); !good) {
        print_error(good.error());
        return exit_usage;
    }
    if (!words.test_data.empty())
        options.model = without_trailing_slashes(words.test_data) + "/programqpc.bin";
    if (auto good = check_result_file("--json", options.json_file, {&options.model, 1}); !good) {
        print_error(good.error());
        return exit_of(good.error());
    }
    if (options.profile.wants_files())
        if (auto good = probe_folder(options.profile.out_dir); !good) {
            print_error(good.error());
            return exit_fault;
        }
    return std::nullopt;
}

}  // namespace vartml::tools
