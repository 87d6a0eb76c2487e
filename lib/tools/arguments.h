// SPDX-License-Identifier: Apache-2.0
// The command line of a subcommand.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>
#include <CLI/CLI.hpp>

#include "lib/tools/compat_arguments.h"

namespace vartml::tools {

// Parses it. nullopt: go on; else the exit status of a program that was asked for help, or that
// said what is wrong. `app` is named as the user calls it: "vartml compile". Spellings of `compat`
// are accepted too; they are the group "compatibility" at the end of --help.
std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   const CompatTable& compat = {});

// While it lives, parse_arguments() parses nothing: it hands over what the command line of the
// command says of itself, and the command is done.
class Describing {
public:
    explicit Describing(std::function<void(const CLI::App&)> take);
    ~Describing();
    Describing(const Describing&) = delete;
    Describing& operator=(const Describing&) = delete;

private:
    std::function<void(const CLI::App&)> take_;
};

// A finite number of at least `least`; CLI11's own ranges hold NaN.
CLI::Validator number_from(double least);

// A range that the text of the option gives, or that nobody comes near.
template <typename T>
CLI::Validator within(T low, T high) {
    return CLI::Range(low, high).description("");
}
template <>
CLI::Validator within(double low, double high);

// The option --json. Where `file` is "-", what is printed from now on goes nowhere: standard output
// is for write_json() alone. Called once, before anything is printed.
void print_json_alone(const std::string& file);
// "" writes nothing. Errors: those of write_output, naming the option.
Result<void> write_json(const std::string& file, const std::string& text);

// That a file to be written is none of those that are read; "" and "-" are none. Errors:
// invalid_argument naming the option.
Result<void> check_output(const std::string& option, const std::string& output,
                          std::span<const std::string> inputs);
// The same of a file that is written when all is done, and that it can be written, which nobody
// wants to learn then. Errors: io too.
Result<void> check_result_file(const std::string& option, const std::string& output,
                               std::span<const std::string> inputs);
// Also where neither is there yet.
bool is_same_file(const std::string& a, const std::string& b);

// The option --input-shape.

using InputShapes = std::map<std::string, std::vector<int64_t>>;

// Adds "x:1,3,640,640"; the name may hold colons itself. Errors: invalid_argument.
Result<void> take_input_shape(const std::string& text, InputShapes& shapes);

// The options --mean, --scale and --channels: how the pixels of a picture become numbers.

struct PixelOptions {
    std::string mean, scale, channels;  // as given; "" = not said
};

// `effect` ends the help of each, as in "of pictures, instead of the sidecar's".
void add_pixel_options(CLI::App& app, PixelOptions& options, const std::string& effect);

// What they say in the words of a sidecar; a field is empty where its option is not given. Errors:
// invalid_argument naming the option.
Result<ModelInfo::Input> parse_pixels(const PixelOptions& options);

// The option --decoder; its help is `effect` and the names of the decoders.
void add_decoder_option(CLI::App& app, std::string& decoder, const std::string& effect);

}  // namespace vartml::tools
