// SPDX-License-Identifier: Apache-2.0
// Man pages and completions, made of what --help is made of: the table of commands and the options
// of each.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "lib/tools/commands.h"

namespace vartml::tools {

struct OptionText {
    std::vector<std::string> names;    // "-o", "--output"; of a positional its one name
    std::string value;                 // "FILE"; "" of flags and positionals
    std::string text, initial;         // what it does; its default, "" = none
    std::vector<std::string> choices;  // where the value is one of a few words
    bool is_positional = false, is_required = false;
};

// What the command line of a command says of itself.
struct CommandText {
    std::string name, summary;  // of the table
    std::string about, footer;
    std::vector<OptionText> options;  // in the order of --help
};
CommandText describe(const CLI::App& app);

// The pages: of the program, and of a command.
std::string man_page(std::span<const CommandText> commands);
std::string man_page(const CommandText& command);

// A script for the shell "bash", "zsh" or "fish"; "" for another.
std::string completion(std::string_view shell, std::span<const CommandText> commands);
inline constexpr std::string_view shells[] = {"bash", "zsh", "fish"};

}  // namespace vartml::tools
