// SPDX-License-Identifier: Apache-2.0
// The program vartml: finds the subcommand and hands over to it.
#include <fcntl.h>

#include <algorithm>
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

#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/manual.h"
#include "lib/tools/signals.h"

namespace vartml::tools {
namespace {

// Sorted by name.
const std::vector<Command>& commands() {
    static const std::vector<Command> table = {
        {"bench", "measure models, beside ONNX Runtime where it is installed", bench},
        {"camera", "set a board's camera pre-processor to make a model's input", camera},
        {"cameras", "change or show the list of cameras of a fleet", cameras},
        {"compile", "compile an ONNX model", compile},
        {"density", "find how many streams this machine carries with a model", density},
        {"detect", "find things in a picture, a video or a camera's pictures", detect},
        {"diff", "compare two result files", diff},
        {"doctor", "say what is wrong with the system or a model, and what to change", doctor},
        {"import-vvas", "turn a VVAS configuration into a launch line and a sidecar", import_vvas},
        {"inspect", "show, verify or unpack a compiled model", inspect},
        {"opstats", "show what a run left behind: operators, trace, what bounds it", opstats},
        {"profile", "say where the time of an inference goes, as one page", profile},
        {"run", "run a model, measure and compare", run},
        {"verify", "compare a compiled model with ONNX Runtime, stage by stage", verify},
        {"worker", "take cameras of a fleet, and run a pipeline for each", worker},
    };
    return table;
}

void print_usage(FILE* stream) {
    std::fputs("usage: vartml COMMAND [OPTION...]\n\n", stream);
    for (const Command& command : commands())
        std::fprintf(stream, "  %-12s%s\n", command.name, command.summary);
    std::fputs(
        "\n  help [COMMAND]      this text, or the options of a command\n"
        "  -V, --version       version of the program\n"
        "  --completion SHELL  a completion for bash, zsh or fish\n"
        "  --man [COMMAND]     a page for man\n",
        stream);
}

const Command* find(std::string_view word) {
    const auto& all = commands();
    const auto it = std::ranges::find(all, word, &Command::name);
    return it == all.end() ? nullptr : &*it;
}

int unknown(const std::string& word) {
    std::string known;
    for (const Command& command : commands())
        known += (known.empty() ? "" : ", ") + std::string(command.name);
    print_error({ErrorCode::invalid_argument, "'" + word + "' is not a command; known: " + known});
    return exit_usage;
}

CommandText text_of(const Command& command) {
    CommandText text;
    const Describing scope([&](const CLI::App& app) { text = describe(app); });
    command.run(1, &command.name);
    text.name = command.name;
    text.summary = command.summary;
    return text;
}

std::vector<CommandText> all_texts() {
    std::vector<CommandText> texts;
    for (const Command& command : commands()) texts.push_back(text_of(command));
    return texts;
}

int print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    return exit_done;
}

// `word`: "" where none is given.
int help(const std::string& word) {
    if (word.empty()) {
        print_usage(stdout);
        return exit_done;
    }
    const Command* command = find(word);
    if (!command) return unknown(word);
    const char* const arguments[] = {command->name, "--help"};
    return command->run(2, arguments);
}

int print_version(const std::string&) {
    std::printf("vartml %.*s\n", static_cast<int>(version().size()), version().data());
    return exit_done;
}

int man(const std::string& word) {
    if (word.empty()) return print(man_page(all_texts()));
    const Command* command = find(word);
    return command ? print(man_page(text_of(*command))) : unknown(word);
}

int print_completion(const std::string& shell) {
    const std::string script = completion(shell, all_texts());
    if (!script.empty()) return print(script);
    print_error({ErrorCode::invalid_argument,
                 "--completion: is '" + shell + "', expected bash, zsh or fish"});
    return exit_usage;
}

// What the program does by itself.
struct Word {
    std::string_view name;
    int (*run)(const std::string& argument);
};
constexpr Word words[] = {
    {"help", help},
    {"--help", help},
    {"-h", help},
    {"--version", print_version},
    {"-V", print_version},
    {"--man", man},
    {"--completion", print_completion},
};

int dispatch(int argc, const char* const* argv) {
    if (argc < 2) {
        print_usage(stderr);
        return exit_usage;
    }
    const std::string word = argv[1];
    for (const Word& own : words)
        if (word == own.name) return own.run(argc > 2 ? argv[2] : "");
    if (const Command* command = find(word)) return command->run(argc - 1, argv + 1);
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

namespace {

// Standard streams that are closed lead to /dev/null, also those of programs that this one becomes
// or starts. Else the next file or pipe that is opened has their number, and gets what is printed.
// Each is open the wrong way round, so that reading and writing fail as those of a closed one do.
void occupy_closed_streams() {
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace

}  // namespace vartml::tools

int main(int argc, char** argv) {
    using namespace vartml;
    tools::occupy_closed_streams();
    std::signal(SIGPIPE, SIG_IGN);
    tools::leave_nothing_behind();
    int status = tools::exit_fault;
    try {
        status = tools::dispatch(argc, argv);
    } catch (const std::bad_alloc&) {
        tools::print_error({ErrorCode::out_of_memory, "not enough memory"});
    } catch (const std::exception& e) {
        tools::print_error({ErrorCode::internal, std::string("a fault of vartml: ") + e.what()});
    }
    // A full disk or a closed pipe behind standard output must not look like success.
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        // Where an earlier flush failed, its reason is gone.
        const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno)
                                           : "; look whether its disk is full";
        tools::print_error({ErrorCode::io, "cannot write to standard output" + why});
        if (status == tools::exit_done) status = tools::exit_fault;
    }
    return status;
}
