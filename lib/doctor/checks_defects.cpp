// SPDX-License-Identifier: Apache-2.0
// Known defects of this GStreamer, where something at hand runs into them: an environment variable,
// or an element of the pipeline.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "lib/doctor/checks.h"

namespace vartml::doctor {
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
