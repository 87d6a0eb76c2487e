// SPDX-License-Identifier: Apache-2.0
// Checks what of the public contract of VART-ML the runtime at hand does, differs in or refuses.
//
//     vart-ml-conformance MODEL [--report FILE] [--only TEXT] [--timeout SECONDS]
//
// It sees the runtime through <vart/...> alone, so that it builds with AMD's library or with
// libvartml. A check that crashes costs that check.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "child.h"

using namespace conformance;

namespace {

constexpr const char* usage =
    "usage: vart-ml-conformance MODEL [--report FILE] [--only TEXT] [--timeout SECONDS]\n"
    "\n"
    "Checks the VART-ML runtime of this machine with a compiled model (a directory with\n"
    "vaiml_par_0, or a .rai) and writes a report to send in.\n"
    "\n"
    "  --report FILE       Markdown, or JSON where FILE ends in .json; default: "
    "vart-ml-conformance.md\n"
    "  --only TEXT         checks with TEXT in their names\n"
    "  --timeout SECONDS   how long a check may take; default: 120\n"
    "\n"
    "Status: 0 where every check is as expected, 1 where one is not, 2 for wrong usage.\n";

struct Arguments {
    std::string model, report = "vart-ml-conformance.md", only;
    std::chrono::seconds limit{120};
};

int wrong(const std::string& what) {
    std::fprintf(stderr, "vart-ml-conformance: %s\n%s", what.c_str(), usage);
    return 2;
}

// In the same order in each process, so that a number names a check.
std::vector<Check> chosen(const std::string& only) {
    std::vector<Check> checks;
    for (Check& check : all_checks())
        if (check.name.find(only) != std::string::npos) checks.push_back(std::move(check));
    return checks;
}

int run(const Arguments& arguments) {
    const std::vector<Check> checks = chosen(arguments.only);
    if (checks.empty()) return wrong("no check has '" + arguments.only + "' in its name");
    Facts facts = machine_facts();
    for (const auto& [name, value] : facts) std::printf("%s: %s\n", name.c_str(), value.c_str());
    std::printf("\n");
    std::vector<Outcome> outcomes =
        run_checks(arguments.model, checks, arguments.only, arguments.limit, facts);
    if (arguments.only.empty()) {
        outcomes.push_back(run_element(arguments.model, arguments.limit, facts));
        print_outcome(outcomes.back());
    }
    write_report(arguments.report, arguments.model, facts, outcomes);
    std::printf("\n%s\n", summary(outcomes).c_str());
    std::printf(
        "Please send in %s: with an issue of gst-vartml, or to whom you have this program from.\n"
        "It holds what is above, with the names of the model's tensors and of this machine's "
        "packages.\n",
        arguments.report.c_str());
    for (const Outcome& outcome : outcomes)
        if (outcome.seen.verdict != Verdict::same && outcome.seen.verdict != Verdict::not_shown)
            return 1;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    // --child FIRST ONLY MODEL: what run_checks() starts; outcomes go to descriptor 3.
    if (argc == 5 && std::strcmp(argv[1], "--child") == 0)
        return run_in_child(argv[4], chosen(argv[3]), size_t(std::atol(argv[2])), 3);
    Arguments arguments;
    const std::vector<std::string> words(argv + 1, argv + argc);
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--help" || word == "-h") return std::fputs(usage, stdout), 0;
        if (word.empty() || word[0] != '-') {
            if (!arguments.model.empty())
                return wrong("two models: '" + arguments.model + "' and '" + word + "'");
            arguments.model = word;
            continue;
        }
        if (i + 1 == words.size()) return wrong("'" + word + "' is unknown or lacks its value");
        const std::string& value = words[++i];
        if (word == "--report") {
            arguments.report = value;
        } else if (word == "--only") {
            arguments.only = value;
        } else if (word == "--timeout") {
            char* end = nullptr;
            const long seconds = std::strtol(value.c_str(), &end, 10);
            if (*end || seconds < 1 || seconds > 86400)
                return wrong("--timeout is '" + value + "', expected 1 to 86400 seconds");
            arguments.limit = std::chrono::seconds(seconds);
        } else {
            return wrong("unknown option '" + word + "'");
        }
    }
    if (arguments.model.empty()) return wrong("no model");
    std::error_code error;
    if (!std::filesystem::exists(arguments.model, error))
        return wrong("model '" + arguments.model +
                     "': " + std::strerror(error ? error.value() : ENOENT));
    try {
        return run(arguments);
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "vart-ml-conformance: %s\n", fault.what());
        return 2;
    }
}
