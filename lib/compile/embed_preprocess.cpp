// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/embed_preprocess.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace vartml::compiler {
namespace {

struct Order {
    std::string_view name;
    int64_t bytes, channels;
};
constexpr Order orders[] = {
    {"rgb", 3, 3}, {"bgr", 3, 3}, {"rgbx", 4, 3}, {"bgrx", 4, 3}, {"gray", 1, 1},
};
const Order* find_order(std::string_view name) {
    const auto found = std::ranges::find(orders, name, &Order::name);
    return found == std::end(orders) ? nullptr : &*found;
}

Error bad_option(const std::string& text, const std::string& what) {
    return {
        ErrorCode::invalid_argument,
        "--embed-preprocess: '" + text + "' " + what +
            "; expected NAME:u8,ORDER,hwc,mean=M,scale=S with ORDER one of rgb, bgr, rgbx, "
            "bgrx, gray and M, S finite, S not 0, one number or one per channel separated by '/'"};
}

std::optional<std::vector<float>> numbers(std::string_view text) {
    std::vector<float> values;
    while (true) {
        const size_t slash = text.find('/');
        const std::string_view word = text.substr(0, slash);
        float value = 0;
        const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (fault != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
            return std::nullopt;
        values.push_back(value);
        if (slash == text.npos) return values;
        text.remove_prefix(slash + 1);
    }
}

// One number stands for all channels.
bool spread(std::vector<float>& values, size_t channels, float otherwise) {
    if (values.empty()) values.assign(channels, otherwise);
    if (values.size() == 1) values.assign(channels, values[0]);
    return values.size() == channels;
}

}  // namespace

Result<EmbeddedPreprocess> parse_embedded_preprocess(const std::string& text) {
    const size_t colon = text.rfind(':');
    if (colon == text.npos || colon == 0) return bad_option(text, "names no input");
    EmbeddedPreprocess result;
    result.input = text.substr(0, colon);
    bool is_u8 = false, is_hwc = false;
    std::string_view rest = std::string_view(text).substr(colon + 1);
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        if (word == "u8") {
            is_u8 = true;
        } else if (word == "hwc") {
            is_hwc = true;
        } else if (find_order(word)) {
            result.order = word;
        } else if (word.starts_with("mean=") || word.starts_with("scale=")) {
            const size_t equals = word.find('=');
            const auto values = numbers(word.substr(equals + 1));
            // Times 0 every picture is the same.
            if (!values || (word[0] == 's' && std::ranges::count(*values, 0.0f) != 0))
                return bad_option(text, "has '" + std::string(word) + "'");
            (word[0] == 'm' ? result.mean : result.scale) = *values;
        } else {
            return bad_option(text, "has '" + std::string(word) + "'");
        }
    }
    if (!is_u8 || !is_hwc || result.order.empty())
        return bad_option(text, "lacks u8, hwc or the order of the bytes");
    const auto channels = static_cast<size_t>(find_order(result.order)->channels);
    if (!spread(result.mean, channels, 0) || !spread(result.scale, channels, 1))
        return bad_option(text, "has not one mean and one scale per channel");
    return result;
}

Result<void> embed_preprocess(graph::Graph& graph, const EmbeddedPreprocess& preprocess) {
    const auto named = [&](graph::ValueId id) { return graph.value(id).name == preprocess.input; };
    const auto found = std::ranges::find_if(graph.inputs, named);
    if (found == graph.inputs.end())
        return Error{ErrorCode::invalid_argument,
                     "--embed-preprocess: the model has no input '" + preprocess.input + "'"};
    const graph::ValueId picture = *found;
    const graph::Type type = graph.value(picture).type;
    const Order& order = *find_order(preprocess.order);
    const bool is_picture = type.shape.size() == 4 && type.shape[0] == 1;
    const bool first = is_picture && type.shape[1] == order.channels;
    const bool last = is_picture && !first && type.shape[3] == order.channels;
    if (type.data_type != DataType::float32 || (!first && !last))
        return Error{ErrorCode::invalid_argument,
                     "--embed-preprocess: input '" + preprocess.input + "' is " + to_string(type) +
                         ", expected one float32 picture of " + std::to_string(order.channels) +
                         " channels for '" + preprocess.order + "'"};
    const int64_t height = type.shape[first ? 2 : 1], width = type.shape[first ? 3 : 2];
    const graph::ValueId tensor =
        graph.add_value(graph.unique_name(preprocess.input + "/normalised"), type);
    for (graph::Node& node : graph.nodes) std::ranges::replace(node.inputs, picture, tensor);
    graph.value(picture).type = {DataType::uint8, {1, height, width, order.bytes}};
    graph::Node node;
    node.kind = "PictureInput";
    node.attributes = {{"layout", std::string(first ? "NCHW" : "NHWC")},
                       {"mean", preprocess.mean},
                       {"scale", preprocess.scale}};
    node.domain = "vartml";
    node.name = graph.unique_name(preprocess.input + "/preprocess");
    node.inputs = {picture};
    node.outputs = {tensor};
    node.sources = {node.name};
    graph.nodes.insert(graph.nodes.begin(), std::move(node));
    return {};
}

}  // namespace vartml::compiler
