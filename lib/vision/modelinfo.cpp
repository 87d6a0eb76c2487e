// SPDX-License-Identifier: Apache-2.0
// Reads sidecars: text to ModelInfo, and the search for the file.
#include "lib/vision/modelinfo.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <vartml/postprocess.h>

#include "lib/base/text.h"
#include "lib/vision/modelinfo_ini.h"
#include "lib/vision/modelinfo_keys.h"
#include "lib/vision/tensor_access.h"

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

bool is_known(std::string_view key) {
    return vision::find_key(vision::general_keys(), key) ||
           vision::find_key(vision::input_keys(), key) ||
           vision::find_key(vision::output_keys(), key);
}

template <typename T>
Error unknown_key(const Source& source, const IniEntry& entry, std::span<const Key<T>> keys) {
    std::string known;
    std::vector<std::string_view> names;
    for (const Key<T>& key : keys) {
        if (!known.empty()) known += ", ";
        known += key.name;
        names.push_back(key.name);
    }
    std::string_view near = nearest_name(entry.key, names);
    if (const auto same = std::ranges::find(names, std::string(vision::own_prefix) + entry.key);
        same != names.end())
        near = *same;
    return source.error(
        entry.line, "key '" + entry.key + "' " +
                        (is_known(entry.key) ? "does not belong in this section" : "is unknown") +
                        (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?") +
                        (near.empty() ? ", the keys of this section are " + known : ""));
}

// A key with our prefix, with a misspelt one, or one of ours without it. Other programs have keys
// of their own in a sidecar.
bool is_meant_as_ours(const std::string& key) {
    if (key.starts_with(vision::own_prefix)) return true;
    if (is_known(key)) return false;  // GStreamer's
    std::vector<std::string_view> names;
    const auto add = [&](auto keys) {
        for (const auto& known : keys)
            if (known.name.starts_with(vision::own_prefix)) names.push_back(known.name);
    };
    add(vision::general_keys());
    add(vision::input_keys());
    add(vision::output_keys());
    return is_known(std::string(vision::own_prefix) + key) || !nearest_name(key, names).empty();
}

template <typename T>
Result<void> read_section(const Source& source, const IniSection& section,
                          std::span<const Key<T>> keys, T& target) {
    for (const IniEntry& entry : section.entries) {
        const Key<T>* key = vision::find_key(keys, entry.key);
        if (!key) {
            if (is_meant_as_ours(entry.key)) return unknown_key(source, entry, keys);
            continue;  // upstream's keys, and those of other programs
        }
        if (key->set && !key->set(target, entry.value)) {
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

// A section that says something and not of what: [modelinfo] misspelt, or a tensor without dir.
Error without_direction(const Source& source, const IniSection& section, const IniEntry& entry) {
    const std::string_view general = "modelinfo";
    const bool is_general = vision::find_key(vision::general_keys(), entry.key) != nullptr;
    const bool near = !nearest_name(section.name, {&general, 1}).empty();
    return source.error(entry.line,
                        "section [" + section.name + "] has key '" + entry.key +
                            (is_general || near ? "', which belongs in section [modelinfo]"
                                                : "' but no dir=input or dir=output, add one"));
}

Result<void> read_tensor(const Source& source, const IniSection& section, ModelInfo& info) {
    const IniEntry* dir = section.find("dir");
    if (dir && dir->value == "input") {
        ModelInfo::Input input;
        input.name = section.name;
        input.line = section.line;
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
        output.line = section.line;
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
        if (is_meant_as_ours(entry.key) || entry.key == "ranges")
            return without_direction(source, section, entry);
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
    // A pipe that nobody writes would be waited for.
    std::error_code error;
    if (std::filesystem::is_fifo(info.labels_file, error))
        return source.error(entry.line, "x-vartml-labels names '" + info.labels_file +
                                            "', which is a pipe, expected a file");
    auto labels = read_labels(info.labels_file);
    if (!labels) return source.error(entry.line, labels.error().message);
    info.labels = std::move(*labels);
    return {};
}

Result<void> read_general(const Source& source, const IniSection& section, ModelInfo& info) {
    if (auto done = read_section(source, section, vision::general_keys(), info); !done) return done;
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
    // In growing parts: a file may be small where the limit is large.
    std::string text;
    while (stream && text.size() <= limit_bytes) {
        constexpr size_t least = 65536;
        const size_t had = text.size(),
                     more = std::min(std::max(had, least), limit_bytes + 1 - had);
        text.resize(had + more);
        stream.read(text.data() + had, static_cast<std::streamsize>(more));
        text.resize(had + static_cast<size_t>(stream.gcount()));
    }
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

namespace {

std::string names_of(std::span<const TensorInfo> tensors) {
    std::string text;
    for (const TensorInfo& tensor : tensors)
        text += (text.empty() ? "'" : ", '") + tensor.name + "'";
    return text.empty() ? "none" : text;
}

bool has_name(std::span<const TensorInfo> tensors, const std::string& name) {
    return std::ranges::find(tensors, name, &TensorInfo::name) != tensors.end();
}

// Of a section whose name none of the `tensors` has.
Error no_tensor(const ModelInfo& info, const std::string& name, unsigned line, bool is_input,
                std::span<const TensorInfo> tensors, std::span<const TensorInfo> others) {
    const std::string direction = is_input ? "input" : "output";
    if (has_name(others, name))
        return vision::sidecar_error(info.file, line,
                                     "section [" + name + "] has dir=" + direction + ", but '" +
                                         name + "' is an " + (is_input ? "output" : "input") +
                                         " of the model; correct the line dir");
    std::vector<std::string_view> known;
    for (const TensorInfo& tensor : tensors) known.push_back(tensor.name);
    const std::string_view near = nearest_name(name, known);
    return vision::sidecar_error(
        info.file, line,
        "section [" + name + "] names no " + direction + " of the model, which has " +
            names_of(tensors) +
            (near.empty() ? "; name the section after one of them"
                          : "; did you mean [" + std::string(near) + "]?"));
}

}  // namespace

Result<void> check_modelinfo(const ModelInfo& info, std::span<const TensorInfo> inputs,
                             std::span<const TensorInfo> outputs) {
    for (const ModelInfo::Input& input : info.inputs) {
        if (!inputs.empty() && !has_name(inputs, input.name))
            return no_tensor(info, input.name, input.line, true, inputs, outputs);
    }
    for (const ModelInfo::Output& output : info.outputs) {
        const auto tensor = std::ranges::find(outputs, output.name, &TensorInfo::name);
        if (tensor == outputs.end())
            return no_tensor(info, output.name, output.line, false, outputs, inputs);
        const DataType type = tensor->cpu.data_type;
        if ((output.quant_scale || output.zero_point) && !vision::is_integer(type))
            return vision::sidecar_error(
                info.file, output.line,
                "section [" + output.name +
                    "] has x-vartml-quant-scale or x-vartml-zero-point, but the output holds " +
                    std::string(to_string(type)) + " and no codes; take them out");
    }
    return {};
}

ModelInfo::Input vision::seen_in_graph(const ModelInfo::Input& input) {
    ModelInfo::Input seen;
    seen.name = input.name;
    seen.feed = input.feed;
    seen.weights_for = input.weights_for;
    return seen;
}

ModelInfo::Output vision::seen_in_graph(const ModelInfo::Output& output) {
    return {.name = output.name,
            .id = "",
            .role = "",
            .quant_scale = output.quant_scale,
            .zero_point = output.zero_point,
            .ends_in = output.ends_in};
}

bool vision::says_more_than_graph(const ModelInfo::Input& input) {
    const ModelInfo::Input seen = seen_in_graph(input);
    return (seen.feed.empty() && seen.weights_for.empty()) ||
           key_lines(input_keys(), input) != key_lines(input_keys(), seen);
}

namespace {

// What a compiler sees in a graph, which holds whatever a file says of the rest.
ModelInfo seen_in_graph(const ModelInfo& info) {
    ModelInfo seen;
    seen.columns = info.columns;
    if (info.labels.empty()) seen.num_classes = info.num_classes;
    for (const ModelInfo::Input& input : info.inputs) {
        const ModelInfo::Input of_graph = vision::seen_in_graph(input);
        if (!of_graph.feed.empty() || !of_graph.weights_for.empty())
            seen.inputs.push_back(of_graph);
    }
    for (const ModelInfo::Output& output : info.outputs)
        seen.outputs.push_back(vision::seen_in_graph(output));
    return seen;
}

// The first file beside the model; nothing where there is none.
Result<std::optional<ModelInfo>> read_beside(const std::string& model_path) {
    std::string model = model_path;
    while (model.size() > 1 && model.back() == '/') model.pop_back();
    if (model.empty()) return std::optional<ModelInfo>();
    const std::filesystem::path path = model;
    std::filesystem::path without = path;
    without.replace_extension();
    for (const auto& candidate :
         {std::filesystem::path(model + ".modelinfo"),
          std::filesystem::path(without.string() + ".modelinfo"), path / "modelinfo"}) {
        if (!is_file(candidate)) continue;
        auto read = read_sidecar(candidate.string());
        if (!read) return std::move(read).error();
        return std::optional(*std::move(read));
    }
    return std::optional<ModelInfo>();
}

}  // namespace

bool is_of_graph_alone(const ModelInfo& info) {
    if (std::ranges::any_of(info.inputs, vision::says_more_than_graph)) return false;
    ModelInfo all = info, seen = seen_in_graph(info);
    all.file.clear();
    for (ModelInfo* const sections : {&all, &seen}) {
        sections->inputs.clear();
        for (ModelInfo::Output& output : sections->outputs) {
            output.line = 0;
            output.column_major = false;
        }
    }
    return all == seen;
}

Result<ModelInfo> find_modelinfo(const std::string& file, const std::string& model_path,
                                 const std::string& entry) {
    auto inside = parse_modelinfo(entry, "");
    if (!inside && file.empty()) return inside;
    ModelInfo seen;
    if (inside) seen = seen_in_graph(*inside);
    // Where somebody wrote the rest of the entry, these may be theirs, too.
    if (inside && !is_of_graph_alone(*inside)) {
        seen.columns.clear();
        seen.num_classes.reset();
        for (ModelInfo::Input& input : seen.inputs) input.feed.clear();
    }
    const auto with_seen = [&](ModelInfo said) {
        if (!said.labels.empty()) seen.num_classes.reset();
        return join_modelinfo(std::move(said), seen);
    };
    if (!file.empty()) {
        auto read = read_sidecar(file);
        if (!read) return read;
        return with_seen(*std::move(read));
    }
    if (!is_of_graph_alone(*inside)) return inside;
    auto beside = read_beside(model_path);
    if (!beside) return std::move(beside).error();
    if (!*beside) return inside;
    return with_seen(**std::move(beside));
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
        if (!is_utf8(line) || line.find('\0') != std::string_view::npos) {
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

// Two sidecars as one.

namespace {

// Takes over a field of `from` that `to` leaves open: an empty text, list or optional.
template <typename T>
void take(T& to, const T& from) {
    if (to == T{}) to = from;
}

void join(ModelInfo::Input& to, const ModelInfo::Input& from) {
    take(to.resize, from.resize);
    take(to.interpolation, from.interpolation);
    take(to.channels, from.channels);
    take(to.mean, from.mean);
    take(to.scale, from.scale);
    take(to.pad, from.pad);
    take(to.crop_fraction, from.crop_fraction);
    take(to.feed, from.feed);
    take(to.picture, from.picture);
    take(to.weights_for, from.weights_for);
}

void join(ModelInfo::Output& to, const ModelInfo::Output& from) {
    take(to.id, from.id);
    take(to.role, from.role);
    take(to.stride, from.stride);
    take(to.quant_scale, from.quant_scale);
    take(to.zero_point, from.zero_point);
    take(to.ends_in, from.ends_in);
    take(to.column_major, from.column_major);
    take(to.picture, from.picture);
    take(to.ranges, from.ranges);
}

template <typename T>
void join(std::vector<T>& to, const std::vector<T>& from) {
    for (const T& one : from) {
        const auto same = std::ranges::find(to, one.name, &T::name);
        if (same == to.end()) {
            to.push_back(one);
        } else {
            join(*same, one);
        }
    }
}

}  // namespace

ModelInfo join_modelinfo(ModelInfo first, const ModelInfo& second) {
    take(first.file, second.file);
    take(first.group_id, second.group_id);
    take(first.decoder, second.decoder);
    if (first.labels.empty()) {
        first.labels = second.labels;
        first.labels_file = second.labels_file;
    }
    take(first.num_classes, second.num_classes);
    take(first.class_offset, second.class_offset);
    take(first.score_threshold, second.score_threshold);
    take(first.iou_threshold, second.iou_threshold);
    take(first.max_detections, second.max_detections);
    take(first.strides, second.strides);
    take(first.anchors, second.anchors);
    take(first.variance, second.variance);
    take(first.activation, second.activation);
    take(first.background, second.background);
    take(first.columns, second.columns);
    take(first.box_order, second.box_order);
    take(first.box_unit, second.box_unit);
    take(first.box_form, second.box_form);
    take(first.peak, second.peak);
    take(first.blank, second.blank);
    take(first.skeleton, second.skeleton);
    take(first.keypoints, second.keypoints);
    join(first.inputs, second.inputs);
    join(first.outputs, second.outputs);
    return first;
}

}  // namespace vartml
