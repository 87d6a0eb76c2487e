// SPDX-License-Identifier: Apache-2.0
// The program vartml: finds the subcommand and hands over to it.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/log.h>
#include <vartml/version.h>

#include "lib/tools/commands.h"

namespace vartml::tools {
namespace {

// Sorted by name.
const std::vector<Command>& commands() {
    static const std::vector<Command> table = {
        {"bench", "measure models, beside ONNX Runtime where it is installed", bench},
        {"camera", "set a board's camera pre-processor to make a model's input", camera},
        {"compile", "compile an ONNX model", compile},
        {"detect", "find things in a picture, a video or a camera's pictures", detect},
        {"diff", "compare two result files", diff},
        {"doctor", "say what is wrong with the system or a model, and what to change", doctor},
        {"import-vvas", "turn a VVAS configuration into a launch line and a sidecar", import_vvas},
        {"inspect", "show, verify or unpack a compiled model", inspect},
        {"opstats", "show what a run left behind: operators, trace, what bounds it", opstats},
        {"profile", "say where the time of an inference goes, as one page", profile},
        {"run", "run a model, measure and compare", run},
        {"verify", "compare a compiled model with ONNX Runtime, stage by stage", verify},
    };
    return table;
}

void print_usage(FILE* stream) {
    std::fputs("usage: vartml COMMAND [OPTION...]\n\n", stream);
    for (const Command& command : commands())
        std::fprintf(stream, "  %-12s%s\n", command.name, command.summary);
    std::fputs(
        "\n  --help      this text; `vartml COMMAND --help` for a command\n"
        "  --version   version of the program\n",
        stream);
}

int unknown(const std::string& word) {
    std::string known;
    for (const Command& command : commands())
        known += (known.empty() ? "" : ", ") + std::string(command.name);
    print_error({ErrorCode::invalid_argument, "'" + word + "' is not a command; known: " + known});
    return exit_usage;
}

int dispatch(int argc, const char* const* argv) {
    if (argc < 2) {
        print_usage(stderr);
        return exit_usage;
    }
    const std::string word = argv[1];
    if (word == "--help" || word == "-h" || word == "help") {
        print_usage(stdout);
        return exit_done;
    }
    if (word == "--version") {
        std::printf("vartml %.*s\n", static_cast<int>(version().size()), version().data());
        return exit_done;
    }
    for (const Command& command : commands())
        if (word == command.name) return command.run(argc - 1, argv + 1);
    return unknown(word);
}

}  // namespace

void print_error(const Error& error) {
    std::string_view rest = error.message;
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        log(LogLevel::error, "", rest.substr(0, end), true);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
}

namespace {

int exit_of(const Error& error, int unfit) {
    switch (error.code) {
        case ErrorCode::invalid_argument:
            return exit_usage;
        case ErrorCode::unsupported:
        case ErrorCode::bad_model:
            return unfit;
        default:
            return exit_fault;
    }
}

}  // namespace

int exit_of(const Error& error) {
    return exit_of(error, exit_not_compilable);
}

int exit_of_model(const Error& error) {
    return exit_of(error, exit_not_a_model);
}

}  // namespace vartml::tools

int main(int argc, char** argv) {
    using namespace vartml;
    std::signal(SIGPIPE, SIG_IGN);
    int status = tools::exit_fault;
    try {
        status = tools::dispatch(argc, argv);
    } catch (const std::bad_alloc&) {
        tools::print_error({ErrorCode::out_of_memory, "not enough memory"});
    } catch (const std::exception& e) {
        tools::print_error({ErrorCode::internal, std::string("a fault of vartml: ") + e.what()});
    }
    // A full disk or a closed pipe behind standard output must not look like success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        tools::print_error({ErrorCode::io, std::string("cannot write to standard output: ") +
                                               std::strerror(errno)});
        if (status == tools::exit_done) status = tools::exit_fault;
    }
    return status;
}
