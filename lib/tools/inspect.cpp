// SPDX-License-Identifier: Apache-2.0
// vartml inspect: shows, verifies and unpacks a compiled model without a device.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>

#include "lib/artifact/compiled_model.h"
#include "lib/artifact/foreign.h"
#include "lib/artifact/stats_descriptor.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/inspect_report.h"

namespace vartml::tools {
namespace {

struct Options {
    std::string path, json, extract, against;
    bool summary = false, verify = false;
};

bool exists(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0;
}

int fail(const Error& error, const std::string& path) {
    print_error(error);
    switch (error.code) {
        case ErrorCode::bad_model:
        case ErrorCode::unsupported:
            return exit_not_a_model;
        case ErrorCode::invalid_argument:
            return exit_usage;
        // A folder in which no model was found is there, and is no model.
        case ErrorCode::not_found:
            return exists(path) ? exit_not_a_model : exit_fault;
        default:
            return exit_fault;
    }
}

void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}

int extract(const artifact::CompiledModel& model, const Options& options) {
    if (exists(options.extract)) {
        print_error(
            {ErrorCode::invalid_argument,
             options.extract + ": exists; --extract makes a new folder, give another name"});
        return exit_usage;
    }
    if (const auto r = artifact::write_directory(model, options.extract); !r) {
        print_error(r.error());
        return exit_fault;
    }
    ::chmod(options.extract.c_str(), 0700);  // the user opens it to others, if at all
    return exit_done;
}

int show_summary(const artifact::CompiledModel& model, const Options& options) {
    constexpr const char* name = "final-vaiml-pass-summary.txt";
    const std::string* text = model.find_file(name);
    if (!text)
        return fail({ErrorCode::bad_model, options.path + ": has no entry " + name}, options.path);
    put(*text);
    return exit_done;
}

int compare(const artifact::CompiledModel& model, const Options& options) {
    const auto lines = inspect_differences(model, options.against);
    if (!lines) {
        print_error(lines.error());
        return lines.error().code == ErrorCode::invalid_argument ? exit_usage : exit_fault;
    }
    for (const std::string& line : *lines) put(line + '\n');
    return lines->empty() ? exit_done : exit_not_expected;
}

// An archive of another compiler can be looked at, and nothing else.
bool show_foreign(const Options& options) {
    if (options.verify || options.summary || !options.extract.empty() || !options.against.empty() ||
        !artifact::is_gzip(options.path))
        return false;
    const auto mpk = artifact::foreign_mpk(options.path);
    if (!mpk) return false;
    if (options.json.empty())
        put("--- Model info ---\nModel file        : " + options.path +
            "\nMade by           : another compiler, for other hardware; vartml does not run it\n\n"
            "--- _mpk.json ---\n");
    put(inspect_foreign(*mpk));
    return true;
}

// The model with its programs where they can be read; what the manifest says is shown in any case.
artifact::CompiledModel with_programs(const artifact::CompiledModel& model,
                                      const std::string& path) {
    auto whole = artifact::read(path);
    return whole ? std::move(*whole) : model;
}

int show(const Options& options) {
    const bool everything = options.verify || !options.extract.empty();
    const auto model = artifact::read(options.path, {.programs = everything});
    if (!model && show_foreign(options)) return exit_done;
    if (!model) return fail(model.error(), options.path);
    if (options.verify && model->find_file(profiling::descriptor_entry))
        if (auto d = artifact::descriptor_of(*model, options.path); !d)
            return fail(d.error(), options.path);
    if (!options.extract.empty())
        if (const int status = extract(*model, options); status != exit_done) return status;
    if (!options.against.empty()) return compare(*model, options);
    if (options.summary) return show_summary(*model, options);
    if (options.json == "compat")
        put(inspect_json(*model, options.path, JsonForm::compat));
    else if (!options.json.empty())
        put(inspect_json(with_programs(*model, options.path), options.path, JsonForm::numbers));
    else if (options.verify)
        put(options.path + ": valid\n");
    else if (options.extract.empty())
        put(inspect_text(with_programs(*model, options.path), options.path));
    return exit_done;
}

// "--json" alone gives "true".
std::string check_json(const std::string& form) {
    if (form == "true" || form == "numbers" || form == "compat") return {};
    return "is '" + form + "', expected --json or --json=compat";
}

void add_options(CLI::App& app, Options& options) {
    app.add_option("PATH", options.path, "compiled model: a directory, a .rai or a .tar.gz")
        ->required()
        ->type_name("");
    auto* json = app.add_flag("--json", options.json,
                              "print JSON; --json=compat: only what AMD's model-info dump has, "
                              "every number as a string")
                     ->check(CLI::Validator(check_json, ""))
                     ->option_text("[=compat]");
    // The blank stands where --help would list what the option excludes.
    auto* summary = app.add_flag("--summary", options.summary, "print the compiler's summary")
                        ->option_text(" ");
    app.add_flag("--verify", options.verify,
                 "check every byte: containers, checksums, programs, operators");
    app.add_option("--extract", options.extract,
                   "write the directory form to this folder, which must not exist")
        ->type_name("DIR");
    app.add_option(
           "--against", options.against,
           "compare layouts, shapes, types and quantisation with a model-info dump, made on "
           "a board or by --json: a line per difference")
        ->option_text("FILE.json")
        ->excludes(json)
        ->excludes(summary);
    summary->excludes(json);
    app.footer(
        "Exit status: 0 done, 1 fault of files or memory, 2 usage, 4 not a valid compiled model,\n"
        "6 --against found differences.");
}

}  // namespace

int inspect(int argc, const char* const* argv) {
    Options options;
    CLI::App app(
        "Shows a compiled model: its tensors, its partitions, what runs on the CPU and why.",
        "vartml inspect");
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return show(options);
}

}  // namespace vartml::tools
