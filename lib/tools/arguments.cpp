// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/arguments.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/compile/sidecar.h"
#include "lib/tools/commands.h"

namespace vartml::tools {
namespace {

const std::function<void(const CLI::App&)>* describing = nullptr;
int json_fd = STDOUT_FILENO;  // where --json is "-": standard output as it was

int refuse(const CLI::App& app, const std::string& sentence) {
    const std::string& name = app.get_name();
    print_error({ErrorCode::invalid_argument,
                 name.substr(name.rfind(' ') + 1) + ": " + sentence + "; see " + name + " --help"});
    return exit_usage;
}

// Also of one that the help does not list.
std::string name_of(const CLI::Option& option) {
    const std::string name = option.get_name();
    return name.empty() && !option.get_lnames().empty() ? "--" + option.get_lnames()[0] : name;
}

// An option that is given without a value, as a script's empty variable gives it: without it the
// command would do something else, and say that all is well.
const CLI::Option* find_empty(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options())
        if (std::ranges::find(option->results(), "") != option->results().end()) return option;
    return nullptr;
}

// Newer versions of CLI11 break lines of their own, which have their breaks here.
template <typename Formatter>
void keep_line_breaks(Formatter& formatter) {
    if constexpr (requires { formatter.enable_footer_formatting(false); }) {
        formatter.enable_footer_formatting(false);
        formatter.enable_description_formatting(false);
    }
}

}  // namespace

Describing::Describing(std::function<void(const CLI::App&)> take) : take_(std::move(take)) {
    describing = &take_;
}

Describing::~Describing() {
    describing = nullptr;
}

void print_json_alone(const std::string& file) {
    if (file != "-") return;
    json_fd = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(nowhere.get(), STDOUT_FILENO);
}

Result<void> write_json(const std::string& file, const std::string& text) {
    if (file.empty()) return {};
    const Bytes pieces[] = {as_bytes(text)};
    auto done =
        file == "-" ? write_pieces(json_fd, "standard output", pieces) : write_output(file, text);
    if (!done) return Error{done.error().code, "--json: " + done.error().message};
    return done;
}

bool is_same_file(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    std::error_code error;
    const auto place = [&](const std::string& file) {
        return fs::weakly_canonical(fs::absolute(file, error), error);
    };
    if (fs::equivalent(a, b, error)) return true;
    const fs::path one = place(a);
    return !one.empty() && one == place(b);
}

Result<void> check_output(const std::string& option, const std::string& output,
                          std::span<const std::string> inputs) {
    if (output.empty() || output == "-") return {};
    for (const std::string& input : inputs)
        if (!input.empty() && is_same_file(output, input))
            return Error{ErrorCode::invalid_argument,
                         option + ": is " + input + " itself, which would be lost"};
    return {};
}

Result<void> check_result_file(const std::string& option, const std::string& output,
                               std::span<const std::string> inputs) {
    if (auto good = check_output(option, output, inputs); !good) return good;
    if (output.empty() || output == "-") return {};
    if (auto good = probe_output(output); !good)
        return Error{good.error().code, option + ": " + good.error().message};
    return {};
}

std::optional<int> parse_arguments(CLI::App& app, int argc, const char* const* argv,
                                   const CompatTable& compat) {
    auto words = rewrite_compat(compat, {argv + 1, static_cast<size_t>(argc - 1)});
    if (!words) return refuse(app, words.error().message);
    if (const std::string help = compat_help(compat); !help.empty())
        app.footer(app.get_footer() + "\n\n" + help);
    if (describing) {
        (*describing)(app);
        return exit_done;
    }
    std::vector<const char*> arguments{argv[0]};
    for (const std::string& word : *words) arguments.push_back(word.c_str());
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::CallForHelp&) {
        keep_line_breaks(*app.get_formatter());
        std::fputs(app.help().c_str(), stdout);
        return exit_done;
    } catch (const CLI::ParseError& e) {
        return refuse(app, e.what());
    }
    if (const CLI::Option* empty = find_empty(app))
        return refuse(app,
                      name_of(*empty) + ": is '', expected " +
                          (empty->get_type_name().empty() ? "a value" : empty->get_type_name()));
    return std::nullopt;
}

CLI::Validator number_from(double least) {
    return {
        [least](std::string& text) -> std::string {
            double value;
            if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && value >= least)
                return {};
            char expected[64];
            std::snprintf(expected, sizeof expected, "%g", least);
            return "is '" + text + "', expected a finite number of at least " + expected;
        },
        ""};
}

template <>
CLI::Validator within(double low, double high) {
    return {[range = CLI::Range(low, high)](std::string& text) {
                double value;
                if (CLI::detail::lexical_cast(text, value) && std::isnan(value))
                    return "is '" + text + "', expected a number";
                return range(text);
            },
            ""};
}

namespace {

bool parse_number(std::string_view text, int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<void> take_input_shape(const std::string& text, InputShapes& shapes) {
    const size_t colon = text.rfind(':');
    const Error wrong{
        ErrorCode::invalid_argument,
        "--input-shape: is '" + text + "', expected NAME:D0,D1,... as in x:1,3,640,640"};
    if (colon == std::string::npos || colon == 0) return wrong;
    std::vector<int64_t> dims;
    for (std::string_view rest = std::string_view(text).substr(colon + 1);;) {
        const size_t comma = rest.find(',');
        int64_t d = 0;
        if (!parse_number(rest.substr(0, comma), d)) return wrong;
        dims.push_back(d);
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    if (!shapes.emplace(text.substr(0, colon), std::move(dims)).second)
        return Error{ErrorCode::invalid_argument,
                     "--input-shape: names input '" + text.substr(0, colon) + "' twice"};
    return {};
}

namespace {

// "103.5", or "123,117,104".
Result<std::vector<float>> three_numbers(const char* option, const std::string& text) {
    std::vector<float> values;
    for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
        end = std::min(text.find(',', begin), text.size());
        float value = NAN;
        const auto [stop, fault] = std::from_chars(&text[begin], &text[end], value);
        if (fault != std::errc() || stop != &text[end] || !std::isfinite(value)) {
            values.clear();
            break;
        }
        values.push_back(value);
    }
    if (values.size() == 1) values.resize(3, values[0]);
    if (values.size() != 3)
        return Error{ErrorCode::invalid_argument,
                     std::string(option) + ": is '" + text + "', expected one number or three"};
    return values;
}

std::string joined(const std::vector<float>& values) {
    std::string text;
    for (const float value : values) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.6g", static_cast<double>(value));
        text += (text.empty() ? "" : ",") + std::string(digits);
    }
    return text;
}

// Means of training tools are of pixels from 0 to 1, and with them stands a deviation to divide by.
Result<void> check_units(const ModelInfo::Input& said, const PixelOptions& options) {
    const auto is_share = [](float m) { return m < 1; };
    const auto is_deviation = [](float s) { return s >= 0.05F && s <= 1; };
    if (!std::ranges::all_of(said.mean, is_share) ||
        std::ranges::none_of(said.mean, [](float m) { return m > 0; }))
        return {};
    std::vector<float> mean = said.mean, scale = said.scale;
    for (float& m : mean) m *= 255;
    if (std::ranges::all_of(scale, is_deviation))
        for (float& s : scale) s = 1 / (255 * s);
    return Error{
        ErrorCode::invalid_argument,
        "--mean: is '" + options.mean +
            "', a mean of pixels from 0 to 1; here they are 0 to 255, and (pixel - mean) is "
            "multiplied by the scale: give --mean " +
            joined(mean) + (scale.empty() ? "" : " --scale " + joined(scale))};
}

}  // namespace

void add_pixel_options(CLI::App& app, PixelOptions& options, const std::string& effect) {
    app.add_option("--mean", options.mean, "what is taken off the pixels, 0 to 255, " + effect)
        ->type_name("V[,V,V]");
    app.add_option("--scale", options.scale, "what they are multiplied by then, " + effect)
        ->type_name("V[,V,V]");
    app.add_option("--channels", options.channels, "the order of a pixel's numbers, " + effect)
        ->type_name("rgb|bgr|gray")
        ->check(CLI::IsMember({"rgb", "bgr", "gray"}).description(""));
}

Result<ModelInfo::Input> parse_pixels(const PixelOptions& options) {
    ModelInfo::Input said;
    if (!options.mean.empty()) {
        auto mean = three_numbers("--mean", options.mean);
        if (!mean) return mean.error();
        if (std::ranges::any_of(*mean, [](float m) { return m < 0 || m > 255; }))
            return Error{ErrorCode::invalid_argument,
                         "--mean: is '" + options.mean + "', expected numbers from 0 to 255"};
        said.mean = std::move(*mean);
    }
    if (!options.scale.empty()) {
        auto scale = three_numbers("--scale", options.scale);
        if (!scale) return scale.error();
        if (std::ranges::find(*scale, 0.0f) != scale->end())
            return Error{ErrorCode::invalid_argument,
                         "--scale: is '" + options.scale + "', expected numbers other than 0"};
        said.scale = std::move(*scale);
    }
    if (auto good = check_units(said, options); !good) return good.error();
    if (options.channels == "rgb") said.channels = ChannelOrder::rgb;
    if (options.channels == "bgr") said.channels = ChannelOrder::bgr;
    if (options.channels == "gray") said.channels = ChannelOrder::gray;
    return said;
}

void add_decoder_option(CLI::App& app, std::string& decoder, const std::string& effect) {
    app.add_option("--decoder", decoder, effect + ". One of " + compiler::decoder_nicks())
        ->type_name("NAME");
}

}  // namespace vartml::tools
