// SPDX-License-Identifier: Apache-2.0
// `vartml doctor`: what is installed, which device answers, whether a model fits it, the line to
// change.
#include "lib/tools/doctor/doctor.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"

namespace vartml::tools {

int doctor(int argc, const char* const* argv) {
    CLI::App app(
        "Says in plain words what is wrong with the system, a model or a pipeline, and what to "
        "change.",
        "vartml doctor");
    vartml::doctor::Request request;
    std::string json_file;
    app.add_option("MODEL", request.models, "compiled models, or ONNX files, which are compiled")
        ->type_name("");
    app.add_option("--pipeline", request.pipeline,
                   "look at a line of gst-launch, and try the part of it that infers")
        ->type_name("LINE");
    app.add_flag("--calibrate", request.calibrate,
                 "measure what the processor and the memory can do at most; takes half a minute");
    app.add_option("--json", json_file,
                   "also write the findings to this file; -: in place of the text")
        ->type_name("FILE");
    app.footer("Exit status: 0 no problem, 1 a problem found, 2 usage.");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    if (auto good = check_result_file("--json", json_file, request.models); !good) {
        print_error(good.error());
        return exit_of(good.error());
    }
    print_json_alone(json_file);
    request.progress = [](const std::string& step) { std::fprintf(stderr, "%s\n", step.c_str()); };
    const vartml::doctor::Report report = vartml::doctor::examine(request);
    std::fputs(vartml::doctor::text_of(report).c_str(), stdout);
    if (auto done = write_json(json_file, vartml::doctor::json_of(report)); !done) {
        print_error(done.error());
        return exit_fault;
    }
    return report.problems() == 0 ? exit_done : exit_fault;
}

}  // namespace vartml::tools
