// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/modelinfo_ini.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/base/text.h"
#include "lib/vision/families.h"
#include "lib/vision/modelinfo.h"
#include "lib/vision/modelinfo_keys.h"

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
    return {ErrorCode::bad_model,
            name + ", line " + std::to_string(line) + ": " + printable(what, std::string::npos)};
}

namespace {

IniSection& section_named(std::vector<IniSection>& sections, std::string_view name, unsigned line) {
    const auto it = std::ranges::find(sections, name, &IniSection::name);
    if (it != sections.end()) return *it;
    sections.push_back({std::string(name), line, {}});
    return sections.back();
}

}  // namespace

Result<std::vector<IniSection>> parse_ini(std::string_view text, const std::string& file) {
    std::vector<IniSection> sections;
    std::string current;  // by name: a section that is added moves the others
    bool inside = false;
    unsigned line_number = 0;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark of some editors
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
        IniSection& section = section_named(sections, current, line_number);
        IniEntry entry{std::string(trim(line.substr(0, equals))),
                       std::string(trim(line.substr(equals + 1))), line_number};
        const IniEntry* const first = section.find(entry.key);
        if (!first)
            section.entries.push_back(std::move(entry));
        else if (first->value != entry.value)
            return sidecar_error(file, line_number,
                                 "key '" + entry.key + "' of [" + current + "] is '" + entry.value +
                                     "', before it was '" + first->value + "'; remove one of them");
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

}  // namespace vartml::vision

namespace vartml {

// Writes sidecars, and joins what sidecar and decoder family say of an input.

namespace {

// Names of upstream's sidecar; "" for types that it does not know.
std::string_view upstream_type(DataType type) {
    switch (type) {
        case DataType::boolean:
            return "uint8";
        case DataType::int8:
            return "int8";
        case DataType::uint8:
            return "uint8";
        case DataType::int16:
            return "int16";
        case DataType::uint16:
            return "uint16";
        case DataType::bf16:
            return "bfloat16";
        case DataType::fp16:
            return "float16";
        case DataType::int32:
            return "int32";
        case DataType::uint32:
            return "uint32";
        case DataType::float32:
            return "float32";
        case DataType::int64:
            return "int64";
        case DataType::uint64:
            return "uint64";
        case DataType::float64:
            return "float64";
        case DataType::unknown:
            break;
    }
    return "";
}

std::string tensor_section(const TensorInfo& tensor, std::string_view dir) {
    std::string text = "\n[" + tensor.name + "]\ndir=" + std::string(dir) + "\n";
    if (const auto type = upstream_type(tensor.cpu.data_type); !type.empty())
        text += "type=" + std::string(type) + "\n";
    std::string dims;
    for (const uint32_t dim : tensor.cpu.shape)
        dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    return dims.empty() ? text : text + "dims=" + dims + "\n";
}

const ModelInfo::Input* find_input(const ModelInfo& info, std::string_view name) {
    const auto it = std::ranges::find(info.inputs, name, &ModelInfo::Input::name);
    return it == info.inputs.end() ? nullptr : &*it;
}

bool is_picture(const ModelInfo& info, const TensorInfo& tensor) {
    const auto& shape = tensor.cpu.shape;
    const ModelInfo::Input* input = find_input(info, tensor.name);
    if (shape.size() != 4 || (input && !input->feed.empty())) return false;
    const auto channels = {shape[1], shape[3]};
    return std::ranges::any_of(channels, [](uint32_t c) { return c == 1 || c == 3; });
}

// What the input is fed with: `options`, and what `said` says beside.
ModelInfo::Input input_of(const PreprocessOptions& options, const ModelInfo::Input* said) {
    ModelInfo::Input input = said ? *said : ModelInfo::Input{};
    input.resize = options.resize;
    input.interpolation = options.interpolation;
    input.channels = options.channels;
    input.mean.assign(options.mean.begin(), options.mean.end());
    input.scale.assign(options.scale.begin(), options.scale.end());
    input.pad.assign(options.pad.begin(), options.pad.end());
    input.crop_fraction.reset();
    if (options.resize == ResizeMode::crop) input.crop_fraction = options.crop_fraction;
    return input;
}

std::array<float, 3> three(const std::vector<float>& values) {
    if (values.size() == 3) return {values[0], values[1], values[2]};
    return {values[0], values[0], values[0]};
}

}  // namespace

const TensorInfo* vision::find_picture_input(const ModelInfo& info,
                                             std::span<const TensorInfo> inputs) {
    const auto it = std::ranges::find_if(
        inputs, [&](const TensorInfo& tensor) { return is_picture(info, tensor); });
    return it == inputs.end() ? nullptr : &*it;
}

std::string print_modelinfo(const ModelInfo& info, std::span<const TensorInfo> inputs,
                            std::span<const TensorInfo> outputs) {
    const DecoderFamily* family = find_decoder_family(info.decoder);
    ModelInfo general = info;
    if (family && !general.score_threshold) general.score_threshold = family->score_threshold;
    if (family && !general.iou_threshold && family->iou_threshold > 0)
        general.iou_threshold = family->iou_threshold;
    std::string text = "[modelinfo]\n" + vision::key_lines(vision::general_keys(), general);
    const TensorInfo* const picture_input = vision::find_picture_input(info, inputs);
    for (const TensorInfo& tensor : inputs) {
        text += tensor_section(tensor, "input");
        const ModelInfo::Input* const said = find_input(info, tensor.name);
        if (family && &tensor == picture_input) {
            const auto& s = tensor.cpu.shape;
            const bool last = tensor.cpu.layout == Layout::NHWC;
            const uint32_t width = s.size() == 4 ? s[last ? 2 : 3] : s.back();
            const uint32_t height = s.size() == 4 ? s[last ? 1 : 2] : 1;
            const DecoderFamily row = vision::row_of(*vision::find_family(info.decoder),
                                                     {info, outputs, width, height, nullptr});
            text += vision::key_lines(vision::input_keys(),
                                      input_of(preprocess_options(info, &row, tensor.name), said));
        } else if (said) {
            text += vision::key_lines(vision::input_keys(), *said);
        }
    }
    for (const TensorInfo& tensor : outputs) {
        text += tensor_section(tensor, "output");
        const auto it = std::ranges::find(info.outputs, tensor.name, &ModelInfo::Output::name);
        const ModelInfo::Output output = it == info.outputs.end() ? ModelInfo::Output{} : *it;
        text += vision::key_lines(vision::output_keys(), output);
    }
    return text;
}

PreprocessOptions preprocess_options(const ModelInfo& info, const DecoderFamily* family,
                                     std::string_view input_name) {
    PreprocessOptions options = family ? family->input : PreprocessOptions{};
    const ModelInfo::Input* input = find_input(info, input_name);
    if (!input) return options;
    if (input->resize) options.resize = *input->resize;
    if (input->interpolation) options.interpolation = *input->interpolation;
    if (input->channels) options.channels = *input->channels;
    if (!input->mean.empty()) options.mean = three(input->mean);
    if (!input->scale.empty()) options.scale = three(input->scale);
    if (!input->pad.empty()) options.pad = three(input->pad);
    if (input->crop_fraction) options.crop_fraction = *input->crop_fraction;
    return options;
}

}  // namespace vartml
