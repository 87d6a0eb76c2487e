// SPDX-License-Identifier: Apache-2.0
// Spellings of other vendors' tools: words rewritten by exact name, from a table, before CLI11 sees
// them. Without this "-stats-level=70" would be "-s tats-level=70".
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::tools {

// Further spellings of one option.
struct CompatOption {
    // What the option is called here: "--stats-level". "" is the positional argument: of
    // "-model=X" and "-model X" only X is handed on.
    std::string_view option;
    std::vector<std::string_view> spellings;  // "-stats-level", without value
    // Line of --help; "" = "same as OPTION".
    std::string_view help = {};
    // Its absence is said here: CLI11 does not name an option that its help hides.
    bool needs_value = false;
};

// Words of another subcommand.
struct RefusedWords {
    std::string_view prefix;    // "--aic-profiling-"; of any number of dashes
    std::string_view sentence;  // follows "'WORD' ": "belongs to …"
};

struct CompatTable {
    std::vector<CompatOption> options;
    std::vector<RefusedWords> refused = {};
};

// The words behind argv[0] with each spelling replaced, with "=VALUE" or without; words behind "--"
// stay. Errors: invalid_argument for a refused word, and for an absent value, where one is needed.
Result<std::vector<std::string>> rewrite_compat(const CompatTable& table,
                                                std::span<const char* const> words);

// The last part of --help: one line per option.
std::string compat_help(const CompatTable& table);

}  // namespace vartml::tools
