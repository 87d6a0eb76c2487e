// SPDX-License-Identifier: Apache-2.0
// vartml inspect: shows, verifies and unpacks a compiled model without a device.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <string>

#include "lib/artifact/compiled_model.h"
#include "lib/artifact/foreign.h"
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

int show(const Options& options) {
    const bool everything = options.verify || !options.extract.empty();
    const auto model = artifact::read(options.path, {.programs = everything});
    if (!model && show_foreign(options)) return exit_done;
    if (!model) return fail(model.error(), options.path);
    if (!options.extract.empty())
        if (const int status = extract(*model, options); status != exit_done) return status;
    if (!options.against.empty()) return compare(*model, options);
    if (options.summary) return show_summary(*model, options);
    if (!options.json.empty())
        put(inspect_json(*model, options.path,
                         options.json == "compat" ? JsonForm::compat : JsonForm::numbers));
    else if (options.verify)
        put(options.path + ": valid\n");
    else if (options.extract.empty())
        put(inspect_text(*model, options.path));
    return exit_done;
}

}  // namespace

int inspect(int argc, const char* const* argv) {
    Options options;
    CLI::App app("Shows a compiled model: its tensors, partitions and what runs on the CPU.",
                 "vartml inspect");
    app.add_option("PATH", options.path, "compiled model: a directory, a .rai or a .tar.gz")
        ->required();
    app.add_flag("--json{numbers}", options.json,
                 "print JSON; --json=compat: as AMD's model-info dump, every number a string")
        ->check(CLI::IsMember({"numbers", "compat"}));
    app.add_flag("--summary", options.summary, "print the compiler's summary");
    app.add_flag("--verify", options.verify,
                 "check every byte: containers, checksums, programs, operators");
    app.add_option("--extract", options.extract, "write the directory form to this new folder")
        ->type_name("DIR");
    app.add_option("--against", options.against,
                   "compare layouts, shapes, types and quantisation with a model-info dump")
        ->type_name("FILE.json");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        put(app.help());
        return exit_done;
    } catch (const CLI::ParseError& e) {
        print_error({ErrorCode::invalid_argument,
                     std::string("inspect: ") + e.what() + "; see vartml inspect --help"});
        return exit_usage;
    }
    return show(options);
}

}  // namespace vartml::tools
