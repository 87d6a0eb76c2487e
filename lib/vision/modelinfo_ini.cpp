// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/modelinfo_ini.h"

#include <algorithm>
#include <cstdint>

namespace vartml::vision {

const IniEntry* IniSection::find(std::string_view key) const {
    const auto it = std::ranges::find(entries, key, &IniEntry::key);
    return it == entries.end() ? nullptr : &*it;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view space = " \t\r\n";
    const size_t first = text.find_first_not_of(space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(space) - first + 1);
}

Error sidecar_error(const std::string& file, unsigned line, const std::string& what) {
    const std::string name =
        file.empty() ? "sidecar in the compiled model" : "sidecar '" + file + "'";
    return {ErrorCode::bad_model, name + ", line " + std::to_string(line) + ": " + what};
}

namespace {

IniSection& section_named(std::vector<IniSection>& sections, std::string_view name, unsigned line) {
    const auto it = std::ranges::find(sections, name, &IniSection::name);
    if (it != sections.end()) return *it;
    sections.push_back({std::string(name), line, {}});
    return sections.back();
}

void set_entry(IniSection& section, IniEntry entry) {
    const auto it = std::ranges::find(section.entries, entry.key, &IniEntry::key);
    if (it == section.entries.end()) {
        section.entries.push_back(std::move(entry));
    } else {
        *it = std::move(entry);
    }
}

}  // namespace

Result<std::vector<IniSection>> parse_ini(std::string_view text, const std::string& file) {
    std::vector<IniSection> sections;
    std::string current;  // by name: a section that is added moves the others
    bool inside = false;
    unsigned line_number = 0;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        const std::string_view line = trim(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        ++line_number;
        if (line.empty() || line.front() == '#') continue;
        if (!is_utf8(line))
            return sidecar_error(file, line_number, "not UTF-8, save the file as UTF-8");
        if (line.front() == '[') {
            if (line.back() != ']' || line.size() < 3) {
                return sidecar_error(file, line_number,
                                     "found '" + std::string(line) + "', expected [section]");
            }
            current = line.substr(1, line.size() - 2);
            section_named(sections, current, line_number);
            inside = true;
            continue;
        }
        const size_t equals = line.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            return sidecar_error(file, line_number,
                                 "found '" + std::string(line) + "', expected key=value");
        }
        if (!inside) {
            return sidecar_error(
                file, line_number,
                "a key before the first section, begin the file with the line [modelinfo]");
        }
        set_entry(section_named(sections, current, line_number),
                  {std::string(trim(line.substr(0, equals))),
                   std::string(trim(line.substr(equals + 1))), line_number});
    }
    return sections;
}

std::string unescape(std::string_view value) {
    constexpr std::string_view codes = "stnr\\;", plain = " \t\n\r\\;";
    std::string out;
    for (size_t i = 0; i < value.size(); ++i) {
        size_t code = std::string_view::npos;
        if (value[i] == '\\' && i + 1 < value.size()) code = codes.find(value[i + 1]);
        if (code == std::string_view::npos) {
            out += value[i];
        } else {
            out += plain[code];
            ++i;
        }
    }
    return out;
}

std::vector<std::string> split_list(std::string_view value, char separator) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t i = 0; i <= value.size(); ++i) {
        if (i + 1 < value.size() && value[i] == '\\') {
            ++i;
        } else if (i == value.size() || value[i] == separator) {
            parts.push_back(unescape(trim(value.substr(begin, i - begin))));
            begin = i + 1;
        }
    }
    if (!parts.empty() && parts.back().empty()) parts.pop_back();
    return parts;
}

std::string escape_item(std::string_view text) {
    constexpr std::string_view plain = "\t\n\r\\;", codes = "tnr\\;";
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const size_t code = plain.find(text[i]);
        const bool edge = i == 0 || i + 1 == text.size();
        if (code != std::string_view::npos) {
            out += '\\';
            out += codes[code];
        } else if (edge && text[i] == ' ') {
            out += "\\s";
        } else {
            out += text[i];
        }
    }
    return out;
}

bool is_utf8(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto byte = static_cast<uint8_t>(text[i]);
        const int more = byte < 0x80             ? 0
                         : (byte & 0xe0) == 0xc0 ? 1
                         : (byte & 0xf0) == 0xe0 ? 2
                         : (byte & 0xf8) == 0xf0 ? 3
                                                 : -1;
        if (more < 0 || i + static_cast<size_t>(more) >= text.size()) return false;
        uint32_t code = more == 0 ? byte : byte & (0x3fu >> more);
        for (int k = 1; k <= more; ++k) {
            const auto next = static_cast<uint8_t>(text[i + static_cast<size_t>(k)]);
            if ((next & 0xc0) != 0x80) return false;
            code = code << 6 | (next & 0x3f);
        }
        constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
            return false;
        }
        i += static_cast<size_t>(more) + 1;
    }
    return true;
}

}  // namespace vartml::vision
