// SPDX-License-Identifier: Apache-2.0
// The INI text of a sidecar as sections and keys with their lines; knows no key.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::vision {

struct IniEntry {
    std::string key, value;  // value as written, without the spaces around it
    unsigned line = 0;
};

struct IniSection {
    std::string name;
    unsigned line = 0;
    std::vector<IniEntry> entries;
    const IniEntry* find(std::string_view key) const;
};

// Sections in the order of the text; a section that occurs twice is joined, as GKeyFile does, a key
// that has two values in it is refused. Lines that begin with # are comments. Errors: bad_model
// with the place from sidecar_error.
Result<std::vector<IniSection>> parse_ini(std::string_view text, const std::string& file);

// bad_model: `what` is wrong in a line of a sidecar; `file` "" is the one inside a compiled model.
Error sidecar_error(const std::string& file, unsigned line, const std::string& what);

// Resolves \s \t \n \r \\ and \; in a value.
std::string unescape(std::string_view value);
// Splits a value at `separator`, not at an escaped one; parts are trimmed and unescaped, an empty
// last part is dropped.
std::vector<std::string> split_list(std::string_view value, char separator);
// Makes `text` safe as one item of a list with ';'.
std::string escape_item(std::string_view text);

std::string_view trim(std::string_view text);

}  // namespace vartml::vision
