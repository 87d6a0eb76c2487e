// SPDX-License-Identifier: Apache-2.0
// vartml opstats: what raw stats buffers say, as summaries, traces, layer tables and pages.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

#include "lib/base/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/opstats/identities.h"
#include "lib/tools/opstats_run.h"

namespace vartml::tools {
namespace {

constexpr size_t max_summary_bytes = size_t{64} << 20;

struct Options {
    OpstatsRequest request;
    std::string check, cores, devices, merge_devices = "true", merge_groups = "true",
                                       flow_events = "none", names = "qaic";
    double host_offset_us = 0;
};

void add_inputs(CLI::App& app, Options& o) {
    OpstatsRequest& r = o.request;
    app.add_option("-q,--qpc,--model", r.model,
                   "compiled model in any container, a folder that holds exactly one, or an "
                   "extracted opstatsdesc.bin")
        ->type_name("MODEL");
    app.add_option("-i,--input-dir", r.input_dir, "folder with raw stats buffers")
        ->type_name("DIR");
    app.add_option("--host-trace", r.trace_options.host_trace,
                   "merge this host trace into each trace")
        ->type_name("FILE");
    app.add_option("--host-clock-offset-us", o.host_offset_us,
                   "added to the times of a host trace that names no clock")
        ->type_name("US");
    app.add_option("--estimate", r.estimates,
                   "for --layers: estimates of the NPU partitions, in order; repeatable [auto: the "
                   "model's own]")
        ->type_name("FILE|auto")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_outputs(CLI::App& app, Options& o) {
    OpstatsRequest& r = o.request;
    app.add_flag("--summary", r.summary, "write a summary of the operators: text");
    app.add_flag("--trace", r.trace, "write a trace for Perfetto and chrome://tracing: JSON");
    app.add_flag("--layers", r.layers, "write the estimate beside the measurement: CSV");
    app.add_flag("--html", r.html, "write a page that needs nothing else");
    app.add_option("-o,--output-dir", r.output_dir, "folder for them")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--infix", r.infix, "part of their names")
        ->type_name("S")
        ->capture_default_str();
    app.add_option("--names", o.names,
                   "of summaries and traces: qaic, one of each per buffer, or run, as vartml run "
                   "--profiling-type names them, one trace of all buffers")
        ->check(CLI::IsMember({"qaic", "run"}))
        ->option_text("qaic|run [qaic]");
    app.add_option("--ucycle-hz", r.trace_options.ucycle_hz, "ucycles per second")
        ->type_name("N")
        ->check(within(uint64_t{1}, uint64_t{1'000'000'000'000}))
        ->capture_default_str();
}

void add_trace_options(CLI::App& app, Options& o) {
    const auto boolean = CLI::IsMember({"true", "false"});
    app.add_option("-c,--select-cores", o.cores, "cores in the trace, as in 0,5,1 [all]")
        ->type_name("LIST");
    app.add_option("-d,--select-devices", o.devices, "devices in the trace, as in 0,1 [all]")
        ->type_name("LIST");
    app.add_option("--merge-mq-traces", o.merge_devices,
                   "one trace for the buffers of an inference on several devices")
        ->check(boolean)
        ->option_text("true|false [true]");
    app.add_option("--merge-thread-groups", o.merge_groups, "one lane for a group of threads")
        ->check(boolean)
        ->option_text("true|false [true]");
    app.add_option("--flow-events", o.flow_events, "arrows between operators that depend")
        ->check(CLI::IsMember({"none", "full"}))
        ->option_text("none|full [none]");
    app.add_flag("--show-barrier-events", o.request.trace_options.barrier_events,
                 "a lane of barriers for every thread");
}

void add_options(CLI::App& app, Options& o) {
    add_inputs(app, o);
    add_outputs(app, o);
    add_trace_options(app, o);
    app.add_flag("-v,--verbose", o.request.verbose, "say what is in each buffer");
    app.add_option("--check", o.check,
                   "test what holds between the numbers of this summary, ours or not; needs no "
                   "other option")
        ->type_name("FILE");
    app.footer(
        "Exit status: 0 all done, 1 a buffer, a file or an identity failed, 2 usage. A buffer\n"
        "that fails does not stop the others.");
}

Error usage(const std::string& sentence) {
    return {ErrorCode::invalid_argument, sentence};
}

Result<std::vector<unsigned>> numbers_of(const char* flag, const std::string& list) {
    std::vector<unsigned> numbers;
    const char *at = list.data(), *end = at + list.size();
    while (at != end) {
        unsigned number = 0;
        const auto [next, error] = std::from_chars(at, end, number);
        const bool goes_on = error == std::errc() && (next == end || *next == ',');
        if (!goes_on || (next != end && next + 1 == end))
            return usage(std::string(flag) + ": is '" + list +
                         "', expected numbers with commas between, as in 0,5,1");
        numbers.push_back(number);
        at = next == end ? end : next + 1;
    }
    return numbers;
}

Result<void> finish(const CLI::App& app, Options& o) {
    OpstatsRequest& r = o.request;
    if (r.model.empty())
        return usage(
            "--qpc: is missing; give the compiled model, a folder that holds exactly one, "
            "or an opstatsdesc.bin");
    if (r.input_dir.empty())
        return usage("--input-dir: is missing; give the folder with raw stats buffers");
    if (!r.summary && !r.trace && !r.layers && !r.html)
        return usage(
            "opstats: has nothing to write; give one or more of --summary, --trace, "
            "--layers, --html");
    const struct {
        const char* flag;
        bool is_given, has_base;
        const char* base;
    } rows[] = {
        {"--host-trace", app.count("--host-trace") > 0, r.trace, "--trace"},
        {"--host-clock-offset-us", app.count("--host-clock-offset-us") > 0,
         app.count("--host-trace") > 0, "--host-trace"},
        {"--estimate", app.count("--estimate") > 0, r.layers, "--layers"},
        {"--select-cores", app.count("--select-cores") > 0, r.trace, "--trace"},
        {"--select-devices", app.count("--select-devices") > 0, r.trace, "--trace"},
        {"--merge-mq-traces", app.count("--merge-mq-traces") > 0, r.trace, "--trace"},
        {"--merge-thread-groups", app.count("--merge-thread-groups") > 0, r.trace, "--trace"},
        {"--flow-events", app.count("--flow-events") > 0, r.trace, "--trace"},
        {"--show-barrier-events", app.count("--show-barrier-events") > 0, r.trace, "--trace"},
    };
    for (const auto& row : rows)
        if (row.is_given && !row.has_base)
            return usage(std::string(row.flag) + ": needs " + row.base);
    r.run_names = o.names == "run";
    if (r.run_names && (r.layers || r.html))
        return usage(std::string(r.layers ? "--layers" : "--html") +
                     ": has no name of --names run; give --names qaic");
    for (const char* const of_qaic : {"--infix", "--merge-mq-traces"})
        if (r.run_names && app.count(of_qaic) > 0)
            return usage(std::string(of_qaic) + ": is for --names qaic; leave out one");
    if (r.infix.empty() || r.infix.find('/') != r.infix.npos)
        return usage("--infix: is '" + r.infix + "', expected a part of a file's name");
    const struct {
        const char* flag;
        const std::string& list;
        std::vector<unsigned>& numbers;
    } lists[] = {{"--select-cores", o.cores, r.trace_options.cores},
                 {"--select-devices", o.devices, r.trace_options.devices}};
    for (const auto& row : lists) {
        auto numbers = numbers_of(row.flag, row.list);
        if (!numbers) return numbers.error();
        if (app.count(row.flag) > 0 && numbers->empty())
            return usage(std::string(row.flag) + ": is empty, expected numbers as in 0,5,1");
        row.numbers = std::move(*numbers);
    }
    r.merge_devices = o.merge_devices == "true";
    r.trace_options.merge_thread_groups = o.merge_groups == "true";
    r.trace_options.flow_events = o.flow_events == "full";
    if (app.count("--host-clock-offset-us") > 0)
        r.trace_options.host_clock_offset_us = o.host_offset_us;
    return {};
}

int check_summary(const CLI::App& app, const Options& o) {
    const auto text = read_file(o.check, max_summary_bytes);
    if (!text) {
        print_error(text.error());
        return exit_fault;
    }
    const auto summary = profiling::parse_summary(*text, o.check);
    if (!summary) {
        print_error(summary.error());
        return exit_fault;
    }
    const uint64_t hz = app.count("--ucycle-hz") > 0 ? o.request.trace_options.ucycle_hz
                                                     : profiling::ucycle_hz_of(*summary);
    const auto results = profiling::check_identities(*summary, hz);
    for (const profiling::IdentityResult& r : results)
        std::printf("%s\n", profiling::text_of(r).c_str());
    return std::ranges::all_of(results, &profiling::IdentityResult::holds) ? exit_done : exit_fault;
}

}  // namespace

int opstats(int argc, const char* const* argv) {
    Options options;
    CLI::App app(
        "Reads what vartml run --profiling-type=raw_device_stats left behind: which operator took "
        "how long, and what bounds the inference.",
        "vartml opstats");
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    if (app.count("--check") > 0) return check_summary(app, options);
    if (auto good = finish(app, options); !good) {
        print_error(good.error());
        return exit_usage;
    }
    return run_opstats(options.request);
}

}  // namespace vartml::tools
