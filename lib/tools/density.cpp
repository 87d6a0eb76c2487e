// SPDX-License-Identifier: Apache-2.0
// `vartml density`: how many streams a machine carries, by trials that the program vartml-density
// makes, and whether that is worse than an earlier figure.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vartml/version.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/process.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/doctor/peaks.h"
#include "lib/tools/opstats/diff.h"
#include "lib/tools/run.h"
#include "lib/tools/run_report.h"

namespace vartml::tools {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t max_bytes = size_t{16} << 20;  // of an earlier file

struct Request {
    std::string model, video, modelinfo, decoder, device = "auto", json_file, against;
    double p95_ms = 0, seconds = 10, warm_up = 2, rate = 0, threshold = 5;
    unsigned most = 256;
    bool apart = false;
};

struct Figures {
    unsigned streams = 0;
    double rate = 0, p50_ms = 0, p95_ms = 0, p99_ms = 0, max_ms = 0;
    uint64_t frames = 0, lost = 0, in_flight_end = 0, in_flight_max = 0, in_flight_limit = 0;
    std::string refused;  // why it is too many; "": it is not
};

void add_options(CLI::App& app, Request& r) {
    app.add_option("MODEL", r.model, "a compiled model, or an ONNX file, which is compiled first")
        ->required()
        ->type_name("");
    app.add_option("VIDEO", r.video, "what each stream sends, again and again, as it is encoded")
        ->required()
        ->type_name("");
    app.add_option("--p95", r.p95_ms,
                   "milliseconds within which 95 of 100 frames have their result")
        ->required()
        ->type_name("MS")
        ->check(number_from(0.1));
    app.add_option("--rate", r.rate, "frames per second of a stream [the video's]")
        ->type_name("FPS")
        ->check(within(0.1, 1000.));
    app.add_option("--time", r.seconds, "seconds of each trial")
        ->type_name("S")
        ->check(number_from(0.5))
        ->capture_default_str();
    app.add_option("--warm-up", r.warm_up, "seconds before, which do not count")
        ->type_name("S")
        ->check(number_from(0))
        ->capture_default_str();
    app.add_option("--most", r.most, "streams beyond which nothing is tried")
        ->type_name("N")
        ->check(within(1U, 4096U))
        ->capture_default_str();
    app.add_flag("--apart", r.apart,
                 "each stream in a process of its own, as vartml worker has cameras; else they "
                 "share one model");
    add_decoder_option(app, r.decoder, "what reads the model's outputs [what the model says]");
    app.add_option("--modelinfo", r.modelinfo, "a sidecar, instead of the model's own")
        ->type_name("FILE");
    app.add_option("--device", r.device, "the device that runs the model")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--json", r.json_file,
                   "also write the figures to this file; -: in place of the text")
        ->type_name("FILE");
    app.add_option("--against", r.against, "what --json wrote earlier: whether it is worse now")
        ->type_name("FILE");
    app.add_option("--threshold", r.threshold, "changes of up to so many percent are none")
        ->type_name("PERCENT")
        ->check(number_from(0))
        ->capture_default_str();
    app.footer(
        "Each stream sends the video at its rate, as a camera does, through decoder, model,\n"
        "vartmldecode and vartmltrack. So many streams are carried where 95 of 100 frames have\n"
        "their result in time, none is lost, and at the end not more frames are under way than\n"
        "arrive in that time. A number that fails is tried once more.\n"
        "Exit status: 0 done, 1 worse than --against, or a fault of files or plugins, 2 usage,\n"
        "3 the ONNX file cannot be compiled, 4 no compiled model, or none whose outputs can be "
        "read.");
}

Figures figures_of(const Request& r, unsigned streams, const json& result) {
    Figures f;
    f.streams = streams;
    f.rate = result.value("rate", 0.);
    f.frames = result.value("frames", uint64_t{0});
    f.lost = result.value("lost", uint64_t{0});
    f.in_flight_end = result.value("in_flight_end", uint64_t{0});
    f.in_flight_max = result.value("in_flight_max", uint64_t{0});
    // What arrives in that time, and one that has just arrived.
    f.in_flight_limit = streams * (uint64_t(std::ceil(r.p95_ms * f.rate / 1000)) + 1);
    std::vector<double> ms;
    for (const json& us : result.value("latencies_us", json::array()))
        ms.push_back(us.get<double>() / 1000);
    char text[160] = "";
    if (ms.empty()) {
        f.refused = "no frame had its result";
        return f;
    }
    const Summary s = summarise(std::move(ms));
    f.p50_ms = s.p50, f.p95_ms = s.p95, f.p99_ms = s.p99, f.max_ms = s.max;
    if (f.lost > 0)
        std::snprintf(text, sizeof text, "%llu of %llu frames have no result",
                      static_cast<unsigned long long>(f.lost),
                      static_cast<unsigned long long>(f.frames));
    else if (f.p95_ms > r.p95_ms)
        std::snprintf(text, sizeof text, "p95 is above %g ms", r.p95_ms);
    else if (f.in_flight_end > f.in_flight_limit)
        std::snprintf(text, sizeof text, "%llu frames are under way at the end",
                      static_cast<unsigned long long>(f.in_flight_end));
    f.refused = text;
    return f;
}

class Search {
public:
    Search(const Request& request, std::string program, std::string model)
        : r_(request), program_(std::move(program)), model_(std::move(model)) {}

    // The greatest number that is carried, 0: not even one stream.
    Result<unsigned> run() {
        unsigned good = 0, bad = 0;
        for (unsigned n = 1; !bad; n = std::min(2 * n, r_.most)) {
            const auto carried = carries(n);
            if (!carried) return carried.error();
            (*carried ? good : bad) = n;
            if (good == r_.most) return good;
        }
        while (bad - good > 1) {
            const unsigned n = (good + bad) / 2;
            const auto carried = carries(n);
            if (!carried) return carried.error();
            (*carried ? good : bad) = n;
        }
        return good;
    }
    const std::vector<Figures>& trials() const { return trials_; }

private:
    Result<bool> carries(unsigned streams) {
        for (int once_more = 0; once_more < 2; ++once_more) {
            auto figures = trial(streams);
            if (!figures) return figures.error();
            std::fprintf(stderr, "%3u streams: p50 %.1f ms, p95 %.1f ms, max %.1f ms%s%s\n",
                         streams, figures->p50_ms, figures->p95_ms, figures->max_ms,
                         figures->refused.empty() ? "" : "; too many: ", figures->refused.c_str());
            trials_.push_back(*figures);
            if (figures->refused.empty()) return true;
        }
        return false;
    }
    Result<Figures> trial(unsigned streams) const {
        const json request = {{"model", text_of_bytes(model_)},
                              {"video", text_of_bytes(r_.video)},
                              {"modelinfo", text_of_bytes(r_.modelinfo)},
                              {"decoder", text_of_bytes(r_.decoder)},
                              {"device", text_of_bytes(r_.device)},
                              {"streams", streams},
                              {"seconds", r_.seconds},
                              {"warm_up", r_.warm_up},
                              {"rate", r_.rate},
                              {"apart", r_.apart},
                              {"patience", std::max(2., 4 * r_.p95_ms / 1000)}};
        Child child;
        child.arguments = {program_, request.dump()};
        std::string line;
        child.on_line = [&](std::string_view text) { line = text; };
        const auto ended = run_child(child);
        if (!ended) return ended.error();
        const json result = json::parse(line, nullptr, false);
        if (!result.is_object())
            return Error{ErrorCode::internal,
                         "the trial of " + std::to_string(streams) + " streams ended without a " +
                             "result" + (ended->signal ? " (signal " : " (status ") +
                             std::to_string(ended->signal ? ended->signal : ended->exit_status) +
                             "): " + ended->stderr_tail};
        if (result.contains("error"))
            return Error{static_cast<ErrorCode>(result.value("code", 0)),
                         result.value("error", "")};
        return figures_of(r_, streams, result);
    }

    const Request& r_;
    const std::string program_, model_;
    std::vector<Figures> trials_;
};

// A row as `vartml diff` reads it; its name says what it holds for, so that nothing else is
// compared with it.
std::string report_of(const Request& r, unsigned density, const std::vector<Figures>& trials) {
    const doctor::PeaksKey machine = doctor::peaks_key();
    const double rate = trials.empty() ? 0 : trials.front().rate;
    char conditions[96];
    std::snprintf(conditions, sizeof conditions, "%g fps, p95 %g ms%s", rate, r.p95_ms,
                  r.apart ? ", apart" : "");
    json all = json::array();
    for (const Figures& f : trials)
        all.push_back({{"streams", f.streams},
                       {"p50_ms", f.p50_ms},
                       {"p95_ms", f.p95_ms},
                       {"p99_ms", f.p99_ms},
                       {"max_ms", f.max_ms},
                       {"frames", f.frames},
                       {"lost", f.lost},
                       {"in_flight_end", f.in_flight_end},
                       {"in_flight_limit", f.in_flight_limit},
                       {"in_flight_max_of_a_stream", f.in_flight_max},
                       {"refused", f.refused}});
    const json row = {{"name", title_of(r.model) + "/density " + std::string(last_part(r.video)) +
                                   ", " + conditions},
                      {"unit", "streams"},
                      {"ours", density},
                      {"peer", nullptr},
                      {"peer_name", nullptr},
                      {"ratio", nullptr},
                      {"limit", nullptr},
                      {"sense", "min"},
                      {"pass", nullptr}};
    const json report = {{"machine", {{"cpu", machine.processor}, {"threads", machine.threads}}},
                         {"versions", {{"vartml", version()}, {"onednn", machine.onednn}}},
                         {"rows", json::array({row})},
                         {"density", density},
                         {"rate", rate},
                         {"p95_limit_ms", r.p95_ms},
                         {"apart", r.apart},
                         {"time_s", r.seconds},
                         {"trials", all}};
    return json_file_text(report);
}

// The earlier figure.
Result<profiling::ResultFile> read_reference(const Request& r) {
    auto text = read_file(r.against, max_bytes);
    if (!text) return Error{text.error().code, "--against: " + text.error().message};
    return profiling::read_result(*text, r.against);
}

// Exit status: 1 where it is worse.
Result<int> verdict(const Request& r, const profiling::ResultFile& before,
                    const std::string& report) {
    const auto now = profiling::read_result(report, "the new figure");
    if (!now) return now.error();
    const auto diff = profiling::compare(before, *now, r.threshold);
    if (!diff) return diff.error();
    if (before.machine != now->machine || before.versions != now->versions)
        std::fprintf(stderr, "%s is of another machine or version\n", r.against.c_str());
    std::fputs(profiling::diff_text(*diff).c_str(), stdout);
    return diff->is_worse() ? exit_fault : exit_done;
}

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

}  // namespace

int density(int argc, const char* const* argv) {
    Request r;
    CLI::App app("Finds how many streams this machine carries with a model.", "vartml density");
    add_options(app, r);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    print_json_alone(r.json_file);
    struct stat status{};
    if (::stat(r.video.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
        return fail({ErrorCode::not_found, r.video + ": there is no such file; give a video"});
    const std::string read[] = {r.model, r.video, r.modelinfo, r.against};
    if (auto good = check_result_file("--json", r.json_file, read); !good)
        return fail(good.error());
    // Before minutes of trials.
    std::optional<profiling::ResultFile> before;
    if (!r.against.empty()) {
        auto reference = read_reference(r);
        if (!reference) return fail(reference.error());
        before = std::move(*reference);
    }
    const std::string program = doctor::find_gst_program("vartml-density");
    if (program.empty())
        return fail({ErrorCode::not_found, "the program vartml-density is not beside " +
                                               doctor::own_program() + "; " +
                                               doctor::how_to_get_gst_program("vartml-density")});
    const auto model = compiled_model(r.model);
    if (!model) {
        print_error(model.error());
        return r.model.ends_with(".onnx") ? exit_of(model.error()) : exit_of_model(model.error());
    }
    // What compiles on behalf of the plugins.
    ::setenv("VARTML_COMPILER", doctor::own_program().c_str(), 0);
    Search search(r, program, *model);
    const auto found = search.run();
    if (!found) return fail(found.error());
    std::printf("%u %s\n", *found, *found == 1 ? "stream" : "streams");
    const std::string report = report_of(r, *found, search.trials());
    if (!r.json_file.empty())
        if (auto written = write_json(r.json_file, report); !written) return fail(written.error());
    if (!before) return exit_done;
    const auto worse = verdict(r, *before, report);
    return worse ? *worse : fail(worse.error());
}

}  // namespace vartml::tools
