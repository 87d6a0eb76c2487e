// SPDX-License-Identifier: Apache-2.0
// `vartml diff`: two result files, what got better and what got worse.
#include "lib/tools/opstats/diff.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include <vartml/log.h>

#include "lib/base/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"

namespace vartml::tools {
namespace {

constexpr size_t max_bytes = size_t{256} << 20;

Result<profiling::ResultFile> open(const std::string& path) {
    auto text = read_file(path, max_bytes);
    if (!text) return text.error();
    return profiling::read_result(*text, path);
}

int fail(const Error& error) {
    print_error(error);
    return exit_of(error);
}

void warn_of_machines(const profiling::ResultFile& a, const profiling::ResultFile& b) {
    const bool machines = a.machine != b.machine, versions = a.versions != b.versions;
    if (!machines && !versions) return;
    log(LogLevel::warning, "",
        std::string("the two files come from different ") + (machines && versions
                                                                 ? "machines and versions"
                                                             : machines ? "machines"
                                                                        : "versions"));
}

}  // namespace

int diff(int argc, const char* const* argv) {
    std::string first, second;
    double threshold = 5;
    CLI::App app("Compares two result files: what got better, what got worse.", "vartml diff");
    app.add_option("A", first, "the reference")->required()->type_name("");
    app.add_option("B", second, "what is compared with it")->required()->type_name("");
    app.add_option("--threshold", threshold, "changes of up to so many percent are none")
        ->type_name("PERCENT")
        ->check(number_from(0))
        ->capture_default_str();
    app.footer(
        "Both files are what `vartml run`, `bench` or `density` writes with --json, bench.json of\n"
        "`./dev bench`, or a layers.csv of `vartml opstats`. Exit status: 0 nothing worse, 1 a\n"
        "row is worse or gone, or a fault of files, 2 usage, other files, or no row in both.");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    const auto a = open(first);
    if (!a) return fail(a.error());
    const auto b = open(second);
    if (!b) return fail(b.error());
    const auto found = profiling::compare(*a, *b, threshold);
    if (!found) return fail(found.error());
    warn_of_machines(*a, *b);
    std::fputs(profiling::diff_text(*found).c_str(), stdout);
    return found->is_worse() ? exit_fault : exit_done;
}

}  // namespace vartml::tools
