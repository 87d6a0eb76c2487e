// SPDX-License-Identifier: Apache-2.0
// The command line of a subcommand.
#pragma once
#include <optional>

#include <CLI/CLI.hpp>

namespace vartml::tools {

// Parses it. nullopt: go on; else the exit status of a program that was asked for help, or that
// said what is wrong. `app` is named as the user calls it: "vartml compile".
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv);

}  // namespace vartml::tools
