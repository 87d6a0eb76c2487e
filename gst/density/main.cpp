// SPDX-License-Identifier: Apache-2.0
// The program vartml-density, a child of `vartml density`, which links no GStreamer: one trial of
// so many streams. With "apart" each stream has a process of its own, as `vartml worker` has
// cameras.
//
// usage: vartml-density JSON        writes the result as a line of JSON to descriptor 3
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vartml/log.h>

#include "gst/density/trial.h"
#include "gst/detect/pipeline.h"

namespace vartml::gst::density {
namespace {

using nlohmann::json;

constexpr int lines_fd = 3;

// Of one process; "error" where it failed.
json trial_of(const json& request, unsigned streams, unsigned first,
              const std::function<void()>& ready) {
    const auto failed = [](const Error& error) {
        return json{{"error", error.message}, {"code", int(error.code)}};
    };
    gst_init(nullptr, nullptr);
    detect::load_own_plugins();
    const auto name = [&](const char* key) { return detect::bytes_of(request.value(key, "")); };
    const auto clip = read_clip(name("video"), request.value("rate", 0.));
    if (!clip) return failed(clip.error());
    const TrialRequest wanted = {.model = name("model"),
                                 .modelinfo = name("modelinfo"),
                                 .decoder = name("decoder"),
                                 .device = name("device"),
                                 .streams = streams,
                                 .first = first,
                                 .of = request.value("streams", 1U),
                                 .seconds = request.value("seconds", 10.),
                                 .warm_up = request.value("warm_up", 2.),
                                 .patience = request.value("patience", 2.)};
    const auto trial = run_trial(wanted, *clip, ready);
    if (!trial) return failed(trial.error());
    return {{"rate", trial->rate},
            {"frames", trial->frames},
            {"lost", trial->lost},
            {"in_flight_end", trial->in_flight_end},
            {"in_flight_max", trial->in_flight_max},
            {"latencies_us", trial->latencies_us}};
}

std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

void write_all(int fd, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
        if (n <= 0) return;
        at += size_t(n);
    }
}

// A process of one stream: tells its parent when all is loaded, and begins when all others are,
// too.
struct Apart {
    pid_t pid = 0;
    int output = -1;  // a byte when it is ready, then its result
};

Apart start_apart(const json& request, unsigned first, int go, int go_writer) {
    int output[2];
    if (::pipe(output) != 0) return {};
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::close(output[0]);
        ::close(go_writer);
        const json result = trial_of(request, 1, first, [&] {
            char byte = 'r';
            write_all(output[1], "r");
            [[maybe_unused]] const ssize_t n = ::read(go, &byte, 1);  // the end of the pipe
        });
        write_all(output[1], text_of(result));
        ::_exit(0);
    }
    ::close(output[1]);
    return {pid, output[0]};
}

json merge(const std::vector<json>& parts) {
    json all = parts.front();
    for (size_t i = 1; i < parts.size() && !all.contains("error"); ++i) {
        const json& one = parts[i];
        if (one.contains("error")) return one;
        for (const char* sum : {"frames", "lost", "in_flight_end"})
            all[sum] = all[sum].get<uint64_t>() + one[sum].get<uint64_t>();
        all["in_flight_max"] =
            std::max(all["in_flight_max"].get<uint64_t>(), one["in_flight_max"].get<uint64_t>());
        for (const json& latency : one["latencies_us"]) all["latencies_us"].push_back(latency);
    }
    return all;
}

json run_apart(const json& request, unsigned streams) {
    int go[2];
    if (::pipe(go) != 0) return {{"error", "no pipe for the streams"}, {"code", 0}};
    std::vector<Apart> all;
    for (unsigned i = 0; i < streams; ++i) all.push_back(start_apart(request, i, go[0], go[1]));
    std::vector<std::string> texts(all.size());
    // A process that failed says so instead of being ready.
    for (size_t i = 0; i < all.size(); ++i) {
        char byte = 0;
        if (::read(all[i].output, &byte, 1) == 1 && byte != 'r') texts[i] += byte;
    }
    ::close(go[0]);
    ::close(go[1]);
    std::vector<json> parts;
    for (size_t i = 0; i < all.size(); ++i) {
        char chunk[65536];
        for (ssize_t n = ::read(all[i].output, chunk, sizeof chunk); n > 0;
             n = ::read(all[i].output, chunk, sizeof chunk))
            texts[i].append(chunk, size_t(n));
        ::close(all[i].output);
        if (all[i].pid > 0) ::waitpid(all[i].pid, nullptr, 0);
        json part = json::parse(texts[i], nullptr, false);
        if (!part.is_object())
            part = {{"error", "the process of a stream ended without a result"}, {"code", 0}};
        parts.push_back(std::move(part));
    }
    return merge(parts);
}

}  // namespace
}  // namespace vartml::gst::density

int main(int argc, char** argv) {
    using namespace vartml::gst::density;
    const auto request =
        argc == 2 ? nlohmann::json::parse(argv[1], nullptr, false) : nlohmann::json();
    if (!request.is_object()) {
        std::fputs("usage: vartml-density JSON; people call vartml density\n", stderr);
        return 2;
    }
    const unsigned streams = request.value("streams", 1U);
    const nlohmann::json result = request.value("apart", false)
                                      ? run_apart(request, streams)
                                      : trial_of(request, streams, 0, [] {});
    write_all(lines_fd, text_of(result));
    return 0;
}
