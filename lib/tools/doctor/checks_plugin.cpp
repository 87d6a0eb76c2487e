// SPDX-License-Identifier: Apache-2.0
// Whether GStreamer finds the plugin. Asked of its own program, so that nothing here links it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <vartml/version.h>

#include "lib/base/process.h"
#include "lib/tools/doctor/checks.h"

namespace vartml::doctor {

namespace {

namespace fs = std::filesystem;

constexpr const char* library = "libgstvartml.so";

struct Answer {
    bool is_there = false;  // the program
    int status = -1;
    std::vector<std::string> lines;
};

// What `gst-inspect-1.0 ARGUMENT` says on both streams.
Answer ask(const std::string& program, const std::string& argument) {
    Answer answer;
    Child child;
    child.arguments = {"/bin/sh", "-c", R"(exec "$0" "$1" >&3 2>&1)", program, argument};
    child.on_line = [&](std::string_view line) { answer.lines.emplace_back(line); };
    const auto result = run_child(child);
    constexpr int not_found = 127, not_executable = 126;  // given: POSIX, "Shell Command Language"
    if (!result || result->exit_status == not_found || result->exit_status == not_executable)
        return answer;
    answer.is_there = true;
    answer.status = result->exit_status;
    return answer;
}

bool holds_plugin(const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / library, error);
}

// Where the plugin lies beside this program: PREFIX/lib[/TRIPLET]/gstreamer-1.0 of
// PREFIX/bin/vartml, or gst/ of a build folder; "" where it does not.
std::string plugin_folder() {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    std::vector<fs::path> candidates = {folder / "../../gst"};
    for (const char* name : {"../lib", "../lib64"}) {
        candidates.push_back(folder / name / "gstreamer-1.0");
        for (const auto& entry : fs::directory_iterator(folder / name, error))
            candidates.push_back(entry.path() / "gstreamer-1.0");
    }
    for (const fs::path& candidate : candidates)
        if (holds_plugin(candidate)) return fs::weakly_canonical(candidate, error).string();
    return {};
}

// "  Version                  1.0.0" of the plugin's details.
std::string detail(const Answer& answer, const std::string& key) {
    for (const std::string& line : answer.lines) {
        const size_t at = line.find_first_not_of(' ');
        if (at == line.npos || line.compare(at, key.size(), key) != 0) continue;
        const size_t value = line.find_first_not_of(' ', at + key.size());
        if (value != line.npos && value > at + key.size()) return line.substr(value);
    }
    return {};
}

void check_found(Examination& e, const std::string& gstreamer, const Answer& element) {
    const std::string file = detail(element, "Filename"), theirs = detail(element, "Version");
    const std::string ours(version());
    if (!file.empty()) e.report.facts["plugin"] = file;
    if (theirs.empty() || theirs == ours)
        return e.fine(gstreamer + " finds vartmlinfer" +
                      (file.empty() ? "" : " " + theirs + " in " + file));
    const std::string beside = plugin_folder();
    e.problem(gstreamer + " finds vartmlinfer in " + file + ", which is of version " + theirs +
                  ", but this program and its libraries are " + ours,
              beside.empty() ? "rm " + file : "export GST_PLUGIN_PATH=" + beside);
}

}  // namespace

void check_plugin(Examination& e) {
    const std::string& inspect = e.request.surroundings.gst_inspect;
    const Answer version = ask(inspect, "--version");
    if (!version.is_there)
        return e.note(
            "GStreamer's tools are not installed, so the plugin was not looked for; only "
            "pipelines need them",
            "sudo apt-get install gstreamer1.0-tools");
    // Warnings of a plugin that is broken may stand before it.
    const auto named = std::ranges::find_if(
        version.lines, [](const std::string& line) { return line.starts_with("GStreamer "); });
    const std::string gstreamer = named == version.lines.end() ? "GStreamer" : *named;
    e.report.facts["gstreamer"] = gstreamer;
    const Answer element = ask(inspect, "vartmlinfer");
    if (element.status == 0) return check_found(e, gstreamer, element);
    for (const std::string& line : ask(inspect, "-b").lines)
        if (line.find(library) != line.npos)
            return e.problem(gstreamer + " keeps " + library +
                                 " on its black list, because loading it failed once",
                             "rm ~/.cache/gstreamer-1.0/registry.*.bin; GST_DEBUG=2 " + inspect +
                                 " vartmlinfer");
    std::string folder = e.request.surroundings.plugin_folder;
    if (folder.empty()) folder = plugin_folder();
    if (folder.empty())
        return e.note(gstreamer + " does not find vartmlinfer, and " + library +
                      " is not beside this program; only pipelines need it");
    e.problem(gstreamer + " does not find vartmlinfer: " + folder + " is not on its path",
              "export GST_PLUGIN_PATH=" + folder);
}

// Known defects of this GStreamer, where something at hand runs into them: an environment variable,
// or an element of the pipeline.
namespace {

using Version = std::array<int, 3>;

struct Defect {
    const char* variable;  // or nullptr
    const char* word;      // in the variable, or in the pipeline
    Version fixed;
    Level level;
    const char* text;
    const char* change;
};
// given: release notes of GStreamer 1.26; the same as tests/gst/traps.cpp looks at
constexpr Defect defects[] = {
    {"GST_TRACERS",
     "latency",
     {1, 26, 4},
     Level::problem,
     "the tracer 'latency' of GST_TRACERS deadlocks every pipeline",
     "unset GST_TRACERS"},
    {nullptr,
     "ssdobjectdetector",
     {1, 26, 4},
     Level::note,
     "ssdobjectdetector reads scores that are not float32 wrongly",
     "vartmldecode decoder=ssd"},
    {nullptr,
     "ssdtensordec",
     {1, 26, 4},
     Level::note,
     "ssdtensordec reads scores that are not float32 wrongly",
     "vartmldecode decoder=ssd"},
    {nullptr,
     "objectdetectionoverlay",
     {1, 26, 3},
     Level::note,
     "objectdetectionoverlay leaks its canvas when it stops",
     ""},
    {nullptr,
     "v4l2src",
     {1, 26, 7},
     Level::note,
     "v4l2src leaks caps each time that it negotiates",
     ""},
};

std::string dotted(const Version& v) {
    return std::to_string(v[0]) + '.' + std::to_string(v[1]) + '.' + std::to_string(v[2]);
}

bool is_met(const Defect& defect, const std::string& pipeline) {
    const char* variable = defect.variable ? std::getenv(defect.variable) : nullptr;
    const std::string text = defect.variable ? (variable ? variable : "") : pipeline;
    return text.find(defect.word) != text.npos;
}

}  // namespace

void check_defects(Examination& e) {
    constexpr Version oldest = {1, 26, 0};
    const auto fact = e.report.facts.find("gstreamer");
    Version here{};
    if (fact == e.report.facts.end() ||
        std::sscanf(fact->second.c_str(), "GStreamer %d.%d.%d", &here[0], &here[1], &here[2]) != 3)
        return;
    if (here < oldest)
        return e.problem(
            "GStreamer " + dotted(here) + " is too old, the plugins need " + dotted(oldest),
            "use Debian 13, or its root: ./dev shell");
    bool any = false;
    for (const Defect& defect : defects) {
        if (here >= defect.fixed || !is_met(defect, e.request.pipeline)) continue;
        any = true;
        const std::string text =
            defect.text + ("; GStreamer " + dotted(defect.fixed)) + " corrects it";
        if (defect.level == Level::problem)
            e.problem(text, defect.change);
        else
            e.note(text, defect.change);
    }
    if (!any) e.fine("GStreamer " + dotted(here) + " has no known defect that matters here");
}

}  // namespace vartml::doctor
