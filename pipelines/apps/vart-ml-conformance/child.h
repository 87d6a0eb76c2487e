// SPDX-License-Identifier: Apache-2.0
// Runs what may crash or hang in a process of its own.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"

namespace conformance {

struct Outcome {
    std::string name, expected;
    bool documented;
    Seen seen;
};

struct Ended {
    int status = 0;       // as of waitpid
    bool in_time = true;  // else it was ended
    std::string output;   // the last of what it wrote, on both streams
};
Ended run_program(const std::vector<std::string>& command, std::chrono::seconds limit);
std::string how_it_ended(int status);

using Facts = std::vector<std::pair<std::string, std::string>>;

// Runs the checks in a child, and where one ends the child, those after it in another. `facts` gets
// what only the process with the runtime knows; `only` is what the checks were chosen by.
std::vector<Outcome> run_checks(const std::string& model, const std::vector<Check>& checks,
                                const std::string& only, std::chrono::seconds limit, Facts& facts);
// In the child: checks from `first` on; outcomes go to the descriptor.
int run_in_child(const std::string& model, const std::vector<Check>& checks, size_t first, int fd);

// What the machine and the packages are.
Facts machine_facts();
// The element vartmlinfer on the same model, where GStreamer has it.
Outcome run_element(const std::string& model, std::chrono::seconds limit, Facts& facts);

// Markdown, or JSON where the name ends so. \throws std::runtime_error
void write_report(const std::string& file, const std::string& model, const Facts& facts,
                  const std::vector<Outcome>& outcomes);
void print_outcome(const Outcome& outcome);
std::string summary(const std::vector<Outcome>& outcomes);

}  // namespace conformance
