// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/compile_stats.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include <vartml/log.h>

namespace vartml::tools {
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
        ->check(CLI::Range(0u, 100u).description(""))
        ->capture_default_str();
    app.add_option("--stats-batchsize", stats.batchsize,
                   "inferences that one run counts as in rates [the model's batch size]")
        ->type_name("N")
        ->check(CLI::Range(1u, 1u << 20).description(""));
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
