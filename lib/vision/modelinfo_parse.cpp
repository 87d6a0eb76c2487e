// SPDX-License-Identifier: Apache-2.0
// Reads sidecars: text to ModelInfo, and the search for the file.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "lib/common/nearest.h"
#include "lib/vision/modelinfo.h"
#include "lib/vision/modelinfo_ini.h"
#include "lib/vision/modelinfo_keys.h"

namespace vartml {

using vision::IniEntry;
using vision::IniSection;
using vision::Key;

namespace {

constexpr size_t sidecar_limit_bytes = 4u << 20, labels_limit_bytes = 16u << 20;

// What the functions below need to know of the file they read.
struct Source {
    const std::string& file;
    Error error(unsigned line, const std::string& what) const {
        return vision::sidecar_error(file, line, what);
    }
};

template <typename T>
Error unknown_key(const Source& source, const IniEntry& entry, std::span<const Key<T>> keys) {
    const bool elsewhere = vision::find_key(vision::general_keys(), entry.key) ||
                           vision::find_key(vision::input_keys(), entry.key) ||
                           vision::find_key(vision::output_keys(), entry.key);
    std::string known;
    std::vector<std::string_view> names;
    for (const Key<T>& key : keys) {
        if (!known.empty()) known += ", ";
        known += key.name;
        names.push_back(key.name);
    }
    const std::string_view near = nearest_name(entry.key, names);
    return source.error(entry.line,
                        "key '" + entry.key + "' " +
                            (elsewhere ? "does not belong in this section" : "is unknown") +
                            (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?") +
                            (near.empty() ? ", the keys of this section are " + known : ""));
}

template <typename T>
Result<void> read_section(const Source& source, const IniSection& section,
                          std::span<const Key<T>> keys, T& target) {
    for (const IniEntry& entry : section.entries) {
        const Key<T>* key = vision::find_key(keys, entry.key);
        if (!key) {
            if (entry.key.starts_with(vision::own_prefix)) {
                return unknown_key(source, entry, keys);
            }
            continue;  // upstream's keys, and those of other programs
        }
        if (!key->set(target, entry.value)) {
            return source.error(entry.line, "key '" + entry.key + "' is '" + entry.value +
                                                "', expected " + std::string(key->expected));
        }
    }
    return {};
}

bool same(float a, float b) {
    return std::abs(a - b) <= 1e-4f * std::max(1.f, std::abs(b));
}

// Whether one value stands for all of `list`, or both lists agree; an empty list means `absent`.
bool same_numbers(const std::vector<float>& list, const std::vector<float>& other, float absent) {
    const auto at = [absent](const std::vector<float>& values, size_t i) {
        return values.empty() ? absent : values[values.size() == 1 ? 0 : i];
    };
    for (size_t i = 0; i < std::max<size_t>({list.size(), other.size(), 1}); ++i) {
        if (!same(at(list, i), at(other, i))) return false;
    }
    return true;
}

// Upstream's `ranges=min,max[;…]` means in * (max - min) / 255 + min.
Result<void> read_ranges(const Source& source, const IniEntry& entry, ModelInfo::Input& input) {
    const auto bad = [&](const std::string& why) {
        return source.error(entry.line, "key 'ranges' is '" + entry.value + "', " + why);
    };
    std::vector<float> mean, scale, range;
    for (const std::string& part : vision::split_list(entry.value, ';')) {
        if (!vision::parse_numbers(part, range) || range.size() != 2 || range[0] >= range[1]) {
            return bad("expected min,max for all channels or for each, separated by ';'");
        }
        scale.push_back((range[1] - range[0]) / 255);
        mean.push_back(0 - range[0] / scale.back());
    }
    if (mean.size() != 1 && mean.size() != 3) return bad("expected 1 or 3 ranges");
    const bool own = !input.mean.empty() || !input.scale.empty();
    if (own && !(same_numbers(input.mean, mean, 0) && same_numbers(input.scale, scale, 1))) {
        return bad("which differs from x-vartml-mean and x-vartml-scale, drop one of them");
    }
    if (!own) {
        input.mean = mean;
        input.scale = scale;
    }
    return {};
}

Result<void> read_tensor(const Source& source, const IniSection& section, ModelInfo& info) {
    const IniEntry* dir = section.find("dir");
    if (dir && dir->value == "input") {
        ModelInfo::Input input;
        input.name = section.name;
        if (auto done = read_section(source, section, vision::input_keys(), input); !done) {
            return done;
        }
        if (const IniEntry* ranges = section.find("ranges")) {
            if (auto done = read_ranges(source, *ranges, input); !done) return done;
        }
        info.inputs.push_back(std::move(input));
        return {};
    }
    if (dir && dir->value == "output") {
        ModelInfo::Output output;
        output.name = section.name;
        if (auto done = read_section(source, section, vision::output_keys(), output); !done) {
            return done;
        }
        info.outputs.push_back(std::move(output));
        return {};
    }
    if (dir) {
        return source.error(dir->line,
                            "key 'dir' is '" + dir->value + "', expected input or output");
    }
    for (const IniEntry& entry : section.entries) {
        if (entry.key.starts_with(vision::own_prefix)) {
            return source.error(entry.line, "section [" + section.name + "] has key '" + entry.key +
                                                "' but no dir=input or dir=output, add one");
        }
    }
    return {};
}

// A value without ';' names a file in the folder of the sidecar.
Result<void> read_label_file(const Source& source, const IniEntry& entry, ModelInfo& info) {
    if (entry.value.find(';') != std::string::npos) return {};
    const std::string name = info.labels.front();
    if (source.file.empty()) {
        return source.error(entry.line, "x-vartml-labels names the file '" + name +
                                            "', but a sidecar in a compiled model must hold the "
                                            "labels themselves, as a;b;c");
    }
    info.labels_file = (std::filesystem::path(source.file).parent_path() / name).string();
    auto labels = read_labels(info.labels_file);
    if (!labels) return source.error(entry.line, labels.error().message);
    info.labels = std::move(*labels);
    return {};
}

Result<void> read_general(const Source& source, const IniSection& section, ModelInfo& info) {
    if (auto done = read_section(source, section, vision::general_keys(), info); !done) return done;
    if (const IniEntry* version = section.find("version");
        version && version->value.substr(0, version->value.find('.')) != "1") {
        return source.error(version->line,
                            "version is '" + version->value + "', this program reads 1.0");
    }
    if (const IniEntry* group = section.find("group-id")) info.group_id = group->value;
    const IniEntry* labels = section.find("x-vartml-labels");
    return labels ? read_label_file(source, *labels, info) : Result<void>();
}

bool is_file(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error);
}

Result<ModelInfo> read_sidecar(const std::string& file) {
    auto text = vision::read_text(file, sidecar_limit_bytes);
    if (!text) return std::move(text).error();
    return parse_modelinfo(*text, file);
}

}  // namespace

Result<std::string> vision::read_text(const std::string& file, size_t limit_bytes) {
    errno = 0;
    std::ifstream stream(file, std::ios::binary);
    std::error_code error;
    if (!stream || std::filesystem::is_directory(file, error)) {
        const int reason = stream ? EISDIR : errno;
        return Error{reason == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                     "file '" + file + "' cannot be read: " + std::strerror(reason)};
    }
    std::string text(limit_bytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(stream.gcount()));
    if (stream.bad()) return Error{ErrorCode::io, "file '" + file + "' could not be read whole"};
    if (text.size() > limit_bytes) {
        return Error{ErrorCode::bad_model, "file '" + file + "' is larger than " +
                                               std::to_string(limit_bytes >> 20) +
                                               " MiB, which no sidecar or label file needs"};
    }
    return text;
}

Result<ModelInfo> parse_modelinfo(std::string_view text, const std::string& file) {
    const Source source{file};
    auto sections = vision::parse_ini(text, file);
    if (!sections) return std::move(sections).error();
    ModelInfo info;
    info.file = file;
    for (const IniSection& section : *sections) {
        auto done = section.name == "modelinfo" ? read_general(source, section, info)
                                                : read_tensor(source, section, info);
        if (!done) return done.error();
    }
    return info;
}

Result<ModelInfo> find_modelinfo(const std::string& file, const std::string& model_path,
                                 const std::string& entry) {
    if (!file.empty()) return read_sidecar(file);
    if (!entry.empty()) return parse_modelinfo(entry, "");
    if (model_path.empty()) return ModelInfo{};
    std::string model = model_path;
    while (model.size() > 1 && model.back() == '/') model.pop_back();
    const std::filesystem::path path = model;
    std::filesystem::path without = path;
    without.replace_extension();
    for (const auto& candidate :
         {std::filesystem::path(model + ".modelinfo"),
          std::filesystem::path(without.string() + ".modelinfo"), path / "modelinfo"}) {
        if (is_file(candidate)) return read_sidecar(candidate.string());
    }
    return ModelInfo{};
}

Result<std::vector<std::string>> read_labels(const std::string& file) {
    auto text = vision::read_text(file, labels_limit_bytes);
    if (!text) return Error{text.error().code, "label " + text.error().message};
    std::vector<std::string> labels;
    std::string_view rest = *text;
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // byte order mark of some editors
    while (!rest.empty()) {
        const size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!vision::is_utf8(line) || line.find('\0') != std::string_view::npos) {
            return Error{ErrorCode::bad_model, "label file '" + file + "', line " +
                                                   std::to_string(labels.size() + 1) +
                                                   ": not UTF-8 text, save the file as UTF-8"};
        }
        labels.emplace_back(line);
    }
    if (!labels.empty() && labels.back().empty()) labels.pop_back();
    if (labels.empty()) {
        return Error{ErrorCode::bad_model,
                     "label file '" + file + "' is empty, expected one label per line"};
    }
    return labels;
}

}  // namespace vartml
