// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/compat_arguments.h"

#include <algorithm>

namespace vartml::tools {
namespace {

constexpr size_t help_column = 30;  // where CLI11 begins the texts

std::string_view name_of(std::string_view word) {
    return word.substr(0, word.find('='));
}

std::string_view without_dashes(std::string_view word) {
    return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

const CompatOption* find(const CompatTable& table, std::string_view name) {
    for (const CompatOption& option : table.options)
        if (std::ranges::find(option.spellings, name) != option.spellings.end()) return &option;
    return nullptr;
}

const RefusedWords* find_refused(const CompatTable& table, std::string_view word) {
    if (!word.starts_with('-')) return nullptr;
    for (const RefusedWords& refused : table.refused)
        if (without_dashes(word).starts_with(without_dashes(refused.prefix))) return &refused;
    return nullptr;
}

}  // namespace

Result<std::vector<std::string>> rewrite_compat(const CompatTable& table,
                                                std::span<const char* const> words) {
    std::vector<std::string> out;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == "--") {
            out.insert(out.end(), words.begin() + static_cast<ptrdiff_t>(i), words.end());
            break;
        }
        const std::string_view name = name_of(word);
        if (const RefusedWords* refused = find_refused(table, name))
            return Error{ErrorCode::invalid_argument,
                         '\'' + std::string(name) + "' " + std::string(refused->sentence)};
        const CompatOption* option = find(table, name);
        if (!option) {
            out.emplace_back(word);
            continue;
        }
        const bool is_joined = name.size() < word.size(), is_positional = option->option.empty();
        const std::string_view next = i + 1 < words.size() ? words[i + 1] : "";
        const std::string_view value = is_joined ? word.substr(name.size() + 1) : next;
        const bool is_absent = value.empty() || (!is_joined && value.starts_with('-'));
        if ((is_positional || option->needs_value) && is_absent)
            return Error{
                ErrorCode::invalid_argument,
                '\'' + std::string(name) + "' needs a value, as in " + std::string(name) + "=PATH"};
        if (!is_positional) {
            out.push_back(std::string(option->option) + std::string(word.substr(name.size())));
            continue;
        }
        out.emplace_back(value);
        i += is_joined ? 0 : 1;
    }
    return out;
}

std::string compat_help(const CompatTable& table) {
    if (table.options.empty()) return {};
    std::string text = "compatibility:\n";
    for (const CompatOption& option : table.options) {
        std::string line = "  ";
        for (const std::string_view spelling : option.spellings)
            line += (line.size() > 2 ? ", " : "") + std::string(spelling);
        line += line.size() + 2 > help_column ? "\n" + std::string(help_column, ' ')
                                              : std::string(help_column - line.size(), ' ');
        text += line +
                (option.help.empty() ? "same as " + std::string(option.option)
                                     : std::string(option.help)) +
                '\n';
    }
    return text;
}

}  // namespace vartml::tools
