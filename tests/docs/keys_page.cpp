// SPDX-License-Identifier: Apache-2.0
// Prints a table of docs/sidecar.md or docs/runner-options.md from the table that the code reads.
// usage: keys_page modelinfo|inputs|outputs|decoders|runner-options
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lib/run/vart/options.h"
#include "lib/vision/modelinfo_keys.h"

namespace vartml {
namespace {

// As Markdown: words in quotes are code, and < begins no tag.
std::string code(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '<') out += '\\';
        out += c == '\'' ? '`' : c;
    }
    return out;
}

void put_head(std::initializer_list<std::string_view> cells) {
    std::string line = "|", rule = "|";
    for (const std::string_view cell : cells) (line += ' ') += cell, line += " |", rule += "---|";
    std::puts((line + '\n' + rule).c_str());
}

void put_row(std::initializer_list<std::string> cells) {
    std::string line = "|";
    for (const std::string& cell : cells) (line += ' ') += cell, line += " |";
    std::puts(line.c_str());
}

template <typename T>
void put_keys(std::span<const vision::Key<T>> keys) {
    put_head({"key", "value", "default", "read by", "meaning"});
    for (const auto& key : keys)
        put_row({'`' + std::string(key.name) + '`', code(key.expected), std::string(key.fallback),
                 std::string(key.reader), std::string(key.meaning)});
}

std::string numbers(const std::array<float, 3>& v) {
    std::string text = vision::number_text(v[0]);
    if (v[1] != v[0] || v[2] != v[0])
        text += ", " + vision::number_text(v[1]) + ", " + vision::number_text(v[2]);
    return text;
}

void put_decoders() {
    put_head({"decoder", "least score", "IoU", "resize", "channels", "mean", "scale", "pad"});
    for (const DecoderFamily& family : decoder_families()) {
        const PreprocessOptions& input = family.input;
        const bool padded =
            input.resize == ResizeMode::letterbox || input.resize == ResizeMode::letterbox_top_left;
        std::string resize(vision::to_string(input.resize));
        if (input.resize == ResizeMode::crop)
            resize += ' ' + vision::number_text(static_cast<float>(input.crop_fraction));
        const auto threshold = [](double value) {
            return value > 0 ? vision::number_text(static_cast<float>(value)) : "–";
        };
        put_row({'`' + std::string(family.nick) + '`', threshold(family.score_threshold),
                 threshold(family.iou_threshold), resize,
                 std::string(vision::to_string(input.channels)), numbers(input.mean),
                 numbers(input.scale), padded ? numbers(input.pad) : "–"});
    }
}

void put_runner_options() {
    put_head({"option", "type", "default", "meaning"});
    for (const runtime::OptionText& option : runtime::known_options()) {
        const bool is_words = option.fallback.find(' ') != std::string::npos;
        put_row({'`' + option.key + '`', code(option.type),
                 option.fallback.empty() ? "unset"
                 : is_words              ? option.fallback
                                         : '`' + option.fallback + '`',
                 option.meaning});
    }
}

const std::map<std::string_view, std::function<void()>> tables = {
    {"modelinfo", [] { put_keys(vision::general_keys()); }},
    {"inputs", [] { put_keys(vision::input_keys()); }},
    {"outputs", [] { put_keys(vision::output_keys()); }},
    {"decoders", put_decoders},
    {"runner-options", put_runner_options},
};

}  // namespace
}  // namespace vartml

int main(int argc, char** argv) {
    const auto table = vartml::tables.find(argc == 2 ? argv[1] : "");
    if (table == vartml::tables.end()) {
        std::fputs(
            "keys_page: name a table: modelinfo, inputs, outputs, decoders, runner-options\n",
            stderr);
        return 1;
    }
    table->second();
    return 0;
}
