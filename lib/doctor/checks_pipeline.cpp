// SPDX-License-Identifier: Apache-2.0
// A line of gst-launch: parsed and tried in part by the program vartml-pipeline, then judged.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lib/doctor/checks.h"
#include "lib/doctor/machine.h"
#include "lib/doctor/pipeline_rules.h"

namespace vartml::doctor {
namespace {

namespace fs = std::filesystem;

// Beside the program in a build folder, in libexec once installed.
std::string find_program() {
    std::error_code error;
    const fs::path folder = fs::path(own_program()).parent_path();
    for (const char* place : {"../../gst", "../libexec", "."})
        if (const fs::path path = folder / place / "vartml-pipeline"; fs::exists(path, error))
            return fs::weakly_canonical(path, error).string();
    return {};
}

// In a build folder it may only not be built; whether it can be, the build's own list says.
std::string how_to_get_it() {
    std::error_code error;
    const fs::path build =
        fs::weakly_canonical(fs::path(own_program()).parent_path() / "../..", error);
    std::ifstream list(build / "build.ninja");
    if (!list) return "install gst-vartml with its plugins: meson setup build -Dgst=enabled";
    for (std::string line; std::getline(list, line);)
        if (line.starts_with("build gst/vartml-pipeline:"))
            return "ninja -C " + build.string() + " user";
    return "meson setup --reconfigure " + build.string() + " -Dgst=enabled";
}

std::string counted(size_t count, const std::string& what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

}  // namespace

void check_pipeline(Examination& e) {
    if (e.request.pipeline.empty()) return;
    std::string program = e.request.surroundings.pipeline_program;
    if (program.empty()) program = find_program();
    if (program.empty())
        return e.problem(
            "the line cannot be looked at: the program vartml-pipeline, which does it, is not "
            "beside " +
                own_program(),
            how_to_get_it());
    e.request.progress("trying the part of the pipeline that infers with test pictures");
    const auto pipeline = read_pipeline(program, e.request.pipeline);
    if (!pipeline)
        return e.problem("the line cannot be looked at: " + pipeline.error().message,
                         "gst-launch-1.0 " + e.request.pipeline);
    const size_t before = e.report.problems();
    apply_pipeline_rules(e, *pipeline);
    if (e.report.problems() != before) return;
    e.fine("the line has " + counted(pipeline->elements.size(), "element") + " and can be linked");
    if (pipeline->trial == "done")
        e.fine(
            "its part that infers ran on test pictures; sources, sinks and files were left "
            "alone");
    if (pipeline->trial == "none")
        e.note("nothing in the line infers, so nothing was tried",
               "vartmlinfer model=MODEL ! vartmldecode");
}

}  // namespace vartml::doctor
