// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/modelinfo_ini.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/vision/families.h"
#include "lib/vision/modelinfo.h"

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

namespace vartml {

// Writes sidecars, and joins what sidecar and decoder family say of an input.

namespace {

using vision::number_text;

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

template <typename Numbers, typename Print>
std::string join(const Numbers& numbers, Print print) {
    std::string text;
    for (const auto& number : numbers) {
        if (!text.empty()) text += ',';
        text += print(number);
    }
    return text;
}

class Writer {
public:
    void section(std::string_view name) {
        if (!text_.empty()) text_ += '\n';
        ((text_ += '[') += name) += "]\n";
    }
    void key(std::string_view name, std::string_view value) {
        if (!value.empty()) (((text_ += name) += '=') += value) += '\n';
    }
    void numbers(std::string_view name, std::span<const float> values) {
        // Three equal numbers are written as one.
        if (values.size() == 3 && values[0] == values[1] && values[1] == values[2]) {
            values = values.first(1);
        }
        key(name, join(values, number_text));
    }
    void number(std::string_view name, const std::optional<double>& value) {
        if (value) key(name, number_text(static_cast<float>(*value)));
    }
    void tensor(const TensorInfo& tensor, std::string_view dir) {
        section(tensor.name);
        key("dir", dir);
        key("type", upstream_type(tensor.cpu.data_type));
        key("dims", join(tensor.cpu.shape, [](uint32_t dim) { return std::to_string(dim); }));
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

void print_general(Writer& writer, const ModelInfo& info, const DecoderFamily* family) {
    writer.section("modelinfo");
    writer.key("version", "1.0");
    writer.key("group-id", info.group_id);
    writer.key("x-vartml-version", "1");
    writer.key("x-vartml-decoder", info.decoder);
    std::string labels;
    for (const std::string& label : info.labels) labels += vision::escape_item(label) + ";";
    writer.key("x-vartml-labels", labels);
    if (info.num_classes) writer.key("x-vartml-num-classes", std::to_string(*info.num_classes));
    if (info.class_offset) writer.key("x-vartml-class-offset", std::to_string(info.class_offset));
    const auto or_family = [&](std::optional<double> value, double of_family) {
        return value || !family ? value : std::optional(of_family);
    };
    writer.number("x-vartml-score-threshold",
                  or_family(info.score_threshold, family ? family->score_threshold : 0));
    writer.number("x-vartml-iou-threshold",
                  or_family(info.iou_threshold, family ? family->iou_threshold : 0));
    if (info.max_detections) {
        writer.key("x-vartml-max-detections", std::to_string(*info.max_detections));
    }
    writer.key("x-vartml-anchors", join(info.anchors, number_text));
    writer.key("x-vartml-strides", join(info.strides, [](int s) { return std::to_string(s); }));
    writer.key("x-vartml-activation", info.activation);
    writer.key("x-vartml-skeleton", info.skeleton);
    writer.key("x-vartml-peak", info.peak);
    if (info.blank) writer.key("x-vartml-blank", std::to_string(*info.blank));
    writer.key("x-vartml-columns", info.columns);
    writer.key("x-vartml-box-form", info.box_form);
    writer.key("x-vartml-box-order", info.box_order);
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

void print_input(Writer& writer, const ModelInfo::Input* input, const PreprocessOptions* options) {
    if (options) {
        writer.key("x-vartml-resize", vision::to_string(options->resize));
        writer.key("x-vartml-interpolation", vision::to_string(options->interpolation));
        writer.key("x-vartml-channels", vision::to_string(options->channels));
        writer.numbers("x-vartml-mean", options->mean);
        writer.numbers("x-vartml-scale", options->scale);
        writer.numbers("x-vartml-pad", options->pad);
        if (options->resize == ResizeMode::crop) {
            writer.number("x-vartml-crop-fraction", options->crop_fraction);
        }
    } else if (input) {
        if (input->resize) writer.key("x-vartml-resize", vision::to_string(*input->resize));
        if (input->interpolation) {
            writer.key("x-vartml-interpolation", vision::to_string(*input->interpolation));
        }
        if (input->channels) writer.key("x-vartml-channels", vision::to_string(*input->channels));
        writer.numbers("x-vartml-mean", input->mean);
        writer.numbers("x-vartml-scale", input->scale);
        writer.numbers("x-vartml-pad", input->pad);
        writer.number("x-vartml-crop-fraction", input->crop_fraction);
    }
    if (input) {
        writer.key("x-vartml-feed", input->feed);
        writer.key("x-vartml-picture", input->picture);
    }
}

void print_output(Writer& writer, const ModelInfo::Output& output) {
    writer.key("id", vision::escape_item(output.id));
    writer.key("x-vartml-role", output.role);
    if (output.stride) writer.key("x-vartml-stride", std::to_string(*output.stride));
    writer.number("x-vartml-quant-scale", output.quant_scale);
    if (output.zero_point) {
        writer.key("x-vartml-zero-point", std::to_string(*output.zero_point));
    }
    writer.key("x-vartml-ends-in", output.ends_in);
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
    Writer writer;
    print_general(writer, info, family);
    const TensorInfo* const picture_input = vision::find_picture_input(info, inputs);
    for (const TensorInfo& tensor : inputs) {
        writer.tensor(tensor, "input");
        PreprocessOptions options;
        const bool picture = family && &tensor == picture_input;
        if (picture) {
            const auto& s = tensor.cpu.shape;
            const bool last = tensor.cpu.layout == Layout::NHWC;
            const uint32_t width = s.size() == 4 ? s[last ? 2 : 3] : s.back();
            const uint32_t height = s.size() == 4 ? s[last ? 1 : 2] : 1;
            const DecoderFamily row = vision::row_of(*vision::find_family(info.decoder),
                                                     {info, outputs, width, height, nullptr});
            options = preprocess_options(info, &row, tensor.name);
        }
        print_input(writer, find_input(info, tensor.name), picture ? &options : nullptr);
    }
    for (const TensorInfo& tensor : outputs) {
        writer.tensor(tensor, "output");
        writer.key("dims-order", "row-major");
        const auto it = std::ranges::find(info.outputs, tensor.name, &ModelInfo::Output::name);
        if (it != info.outputs.end()) print_output(writer, *it);
    }
    return writer.take();
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
