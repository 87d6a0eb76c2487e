// SPDX-License-Identifier: Apache-2.0
// `vartml import-vvas`: a configuration of VVAS's vvas_xinfer as launch line and sidecar.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include <vartml/log.h>

#include "lib/common/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/vvas_import.h"

namespace vartml::tools {
namespace {

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

// x.json becomes x.modelinfo.
std::string default_sidecar(const std::string& file) {
    return (file.ends_with(".json") ? file.substr(0, file.size() - 5) : file) + ".modelinfo";
}

}  // namespace

int import_vvas(int argc, const char* const* argv) {
    CLI::App app(
        "Prints the launch line that does what an element vvas_xinfer with this configuration "
        "does, "
        "and writes the model's sidecar. Keys without counterpart are named on standard error; an "
        "unknown key is an error.",
        "vartml import-vvas");
    std::string file, preprocess_file;
    VvasImportOptions options;
    app.add_option("FILE", file,
                   "config-file (VVAS 6) or infer-config (VVAS 1 to 3) of vvas_xinfer")
        ->required();
    app.add_option("--preprocess-config", preprocess_file, "the second file of VVAS 1 to 3")
        ->type_name("FILE");
    app.add_option("-o,--output", options.sidecar, "the sidecar [FILE with the ending .modelinfo]")
        ->type_name("FILE");
    app.add_option("--model", options.model, "the model, instead of the configuration's")
        ->type_name("FILE");
    app.add_option("--labels", options.labels,
                   "labels, one per line, instead of the configuration's")
        ->type_name("FILE");
    app.add_option("--input", options.input, "name of the model's picture input [the model's own]")
        ->type_name("NAME");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    if (options.sidecar.empty()) options.sidecar = default_sidecar(file);

    const auto config = read_vvas_config(file, preprocess_file);
    if (!config) return fail(config.error());
    const auto imported = import_vvas_config(*config, options);
    if (!imported) return fail(imported.error());
    const Bytes pieces[] = {as_bytes(imported->sidecar)};
    if (auto written = replace_file(options.sidecar, pieces); !written)
        return fail(written.error());
    for (const std::string& warning : imported->warnings) log(LogLevel::warning, "", warning);
    std::printf("%s\n", imported->launch.c_str());
    return exit_done;
}

}  // namespace vartml::tools
