// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/hw_views.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <ranges>
#include <string_view>

#include "lib/base/file.h"
#include "lib/compile/config.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_any_of(std::string_view kind, std::initializer_list<std::string_view> kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
}

// A 4-D tensor is NHWC when its last dimension looks like channels and its second does not.
bool looks_channels_last(const std::vector<int64_t>& shape) {
    const auto is_channels = [](int64_t d) { return d == 1 || d == 3 || d == 4; };
    return is_channels(shape[3]) && !is_channels(shape[1]);
}

class ViewMaker {
public:
    ViewMaker(const Graph& graph, const ViewOptions& options) : graph_(graph), options_(options) {
        first_input_layout_ =
            options.picture_layout ? options.picture_layout : find_picture_layout();
    }

    std::optional<Layout> find_picture_layout() const {
        for (const ValueId id : graph_.inputs)
            if (graph_.value(id).type.shape.size() == 4)
                return embedded_layout(id).value_or(image_layout(graph_.value(id), false));
        return std::nullopt;
    }

    TensorInfo make(ValueId id, bool is_output) const {
        const graph::Value& value = graph_.value(id);
        TensorInfo info;
        info.name = value.name;
        info.data_dependent = value.data_dependent;
        const bool inner = options_.inner.contains(value.name);
        info.cpu = inner ? make_view(value.type.data_type, Layout::GENERIC, dimensions(value))
                         : cpu_view(value, is_output);
        const auto picture = options_.pictures.find(value.name);
        if (picture != options_.pictures.end()) {
            info.picture = picture->second;
            info.cpu = make_view(value.type.data_type, Layout::NHWC, dimensions(value));
        }
        if (options_.on_host) return info;
        if (picture != options_.pictures.end()) {
            info.hw = info.cpu;
            return info;
        }
        if (const auto edge = options_.quantised.find(value.name);
            edge != options_.quantised.end()) {
            const DataType codes = info.cpu.data_type;
            info.cpu = make_view(edge->second.real, info.cpu.layout, dimensions(value));
            info.hw = hw_view(info.cpu, hw_layout(value.name, info.cpu), codes);
            info.hw->quantisation = edge->second.quantisation;
            return info;
        }
        info.hw = inner
                      ? info.cpu
                      : hw_view(info.cpu, hw_layout(value.name, info.cpu), hw_type(id, is_output));
        return info;
    }

private:
    // Of the model's own input, where pixels are made into it.
    std::optional<Layout> embedded_layout(ValueId pixels) const {
        for (const Node& node : graph_.nodes)
            if (node.kind == "PictureInput" && node.inputs[0] == pixels)
                return node.get("layout", "NCHW") == "NHWC" ? Layout::NHWC : Layout::NCHW;
        return std::nullopt;
    }

    Layout image_layout(const graph::Value& value, bool is_output) const {
        if (const auto given = options_.layouts.find(value.name); given != options_.layouts.end())
            return given->second;
        if (looks_channels_last(value.type.shape)) return Layout::NHWC;
        return is_output ? first_input_layout_.value_or(Layout::NCHW) : Layout::NCHW;
    }

    static std::vector<uint32_t> dimensions(const graph::Value& value) {
        const std::vector<int64_t>& dims = value.type.shape;
        if (dims.empty()) return {1};  // a scalar
        return {dims.begin(), dims.end()};
    }

    TensorView cpu_view(const graph::Value& value, bool is_output) const {
        std::vector<uint32_t> shape = dimensions(value);
        const Layout layout = shape.size() == 4   ? image_layout(value, is_output)
                              : shape.size() == 3 ? Layout::NHW
                                                  : Layout::GENERIC;
        return make_view(value.type.data_type, layout, std::move(shape));
    }

    Layout hw_layout(const std::string& name, const TensorView& cpu) const {
        if (const auto asked = options_.hw_layouts.find(name); asked != options_.hw_layouts.end())
            return asked->second;
        if (cpu.shape.size() == 3) return Layout::NHW;
        if (cpu.shape.size() != 4) return Layout::GENERIC;
        const uint32_t channels = cpu.layout == Layout::NHWC ? cpu.shape[3] : cpu.shape[1];
        if (cpu.shape[0] > 1 || channels == 1) return Layout::NHWC;
        return channels <= 4 ? Layout::HCWNC4 : Layout::HCWNC8;
    }

    // Floats that are quantised first, perhaps by their own range: a narrower type would round them
    // twice.
    bool is_only_quantised(ValueId id) const {
        bool read = false;
        for (const Node& node : graph_.nodes) {
            if (std::ranges::find(node.inputs, id) == node.inputs.end()) continue;
            if (!is_any_of(node.kind, {"QuantizeLinear", "ReduceMax", "ReduceMin"})) return false;
            read = read || node.kind == "QuantizeLinear";
        }
        return read;
    }

    // Only float32 has another type on the NPU: half types are what the NPU computes in already.
    DataType hw_type(ValueId id, bool is_output) const {
        const DataType type = graph_.value(id).type.data_type;
        if (type != DataType::float32 || !options_.convert_floats) return type;
        if (!is_output && (is_only_quantised(id) || options_.exact.contains(graph_.value(id).name)))
            return type;
        return !is_output || is_straight_after_matrix_work(graph_, id) ? DataType::bf16
                                                                       : DataType::float32;
    }

    const Graph& graph_;
    const ViewOptions& options_;
    std::optional<Layout> first_input_layout_;
};

// Walks from an output towards the inputs over what may stand between it and the matrix work.
class Trail {
public:
    explicit Trail(const Graph& graph) : graph_(graph), uses_(find_uses(graph)) {}

    bool leads_to_matrix_work(ValueId id) {
        while (true) {
            const int32_t producer = uses_.producer[static_cast<size_t>(id)];
            if (producer < 0) return false;
            const Node& node = graph_.nodes[static_cast<size_t>(producer)];
            if (!pass_fused_parts(node)) return false;
            if (has_trait(node, graph::Trait::product)) return true;
            if (has_trait(node, graph::Trait::reshapes | graph::Trait::permutes)) {
                id = node.inputs[0];
                continue;
            }
            const auto next = pass_element_wise(node.kind, node.inputs);
            if (!next) return false;
            id = *next;
        }
    }

private:
    bool is_constant(ValueId id) const {
        return id != graph::none && graph_.value(id).constant.has_value();
    }

    // An activation comes after the bias, so that going backwards it is met first; each at most
    // once.
    bool pass_activation(std::string_view kind) {
        if (!is_any_of(kind, {"Relu", "LeakyRelu", "Clip"}) || activation_ || bias_) return false;
        activation_ = true;
        return true;
    }
    bool pass_bias() {
        if (bias_) return false;
        bias_ = true;
        return true;
    }

    std::optional<ValueId> pass_element_wise(std::string_view kind,
                                             const std::vector<ValueId>& inputs) {
        if (pass_activation(kind)) return inputs[0];
        if (kind != "Add" || inputs.size() != 2) return std::nullopt;
        for (const size_t i : {0, 1})
            if (is_constant(inputs[1 - i]) && !is_constant(inputs[i]) && pass_bias())
                return inputs[i];
        return std::nullopt;
    }

    // Parts behind the base, from the last to the first; an operand of a fused Add must be a
    // constant.
    bool pass_fused_parts(const Node& node) {
        size_t operand = node.inputs.size();
        for (const graph::Operation& part : std::views::reverse(node.fused)) {
            if (pass_activation(part.kind)) continue;
            if (part.kind != "Add" || operand == 0 || !is_constant(node.inputs[--operand]) ||
                !pass_bias())
                return false;
        }
        return true;
    }

    const Graph& graph_;
    const graph::Uses uses_;
    bool activation_ = false, bias_ = false;
};

}  // namespace

BorderViews make_border_views(const Graph& graph, const ViewOptions& options) {
    const ViewMaker maker(graph, options);
    BorderViews views;
    for (const ValueId id : graph.inputs) views.inputs.push_back(maker.make(id, false));
    for (const ValueId id : graph.outputs) views.outputs.push_back(maker.make(id, true));
    return views;
}

std::optional<Layout> find_picture_layout(const Graph& graph, const ViewOptions& options) {
    return ViewMaker(graph, options).find_picture_layout();
}

bool is_straight_after_matrix_work(const Graph& graph, ValueId output) {
    return Trail(graph).leads_to_matrix_work(output);
}

namespace {

using config::Json;
using graph::Value;

struct DramLayout {
    std::string_view name;
    Layout layout;
};
constexpr DramLayout dram_layouts[] = {{"HWC", Layout::NHWC}, {"HWC16", Layout::HCWNC16}};

bool is_picture(const Value& value) {
    return value.type.shape.size() == 4 && value.type.shape[0] == 1;
}

Tessellation make_default(const Graph& graph) {
    Tessellation t;
    for (const graph::ValueId id : graph.inputs)
        if (is_picture(graph.value(id))) t.hw_layouts[graph.value(id).name] = Layout::NHWC;
    for (const graph::ValueId id : graph.outputs)
        if (is_picture(graph.value(id))) t.hw_layouts[graph.value(id).name] = Layout::HCWNC16;
    return t;
}

class Reader {
public:
    Reader(const std::string& file, const Graph& graph, std::string_view device)
        : file_(file), graph_(graph), device_(device) {}

    Result<Tessellation> run() {
        auto json = config::parse(file_);
        if (!json) return json.error();
        if (!json->is_object())
            return fault(config::is(*json) + ", expected an object from tensor names to settings");
        for (const auto& [name, settings] : json->items())
            if (auto done = read_tensor(name, settings); !done) return done.error();
        return std::move(out_);
    }

private:
    Error fault(const std::string& text) const {
        return {ErrorCode::invalid_argument, file_ + ": " + text};
    }
    Error fault(const std::string& tensor, const std::string& text) const {
        return fault("tensor '" + tensor + "': " + text);
    }

    const Value* find(const std::string& name) const {
        for (const auto* ids : {&graph_.inputs, &graph_.outputs})
            for (const graph::ValueId id : *ids)
                if (graph_.value(id).name == name) return &graph_.value(id);
        return nullptr;
    }
    std::string edge_tensors() const {
        std::string names;
        for (const auto* ids : {&graph_.inputs, &graph_.outputs})
            for (const graph::ValueId id : *ids)
                names += (names.empty() ? "'" : ", '") + graph_.value(id).name + '\'';
        return names;
    }

    Result<void> read_tensor(const std::string& name, const Json& settings) {
        const Value* value = find(name);
        if (!value) return fault("'" + name + "' is no edge tensor; there are " + edge_tensors());
        if (!settings.is_object())
            return fault(name, config::is(settings) +
                                   ", expected an object with tile_shape, enable_mla, dram_layout");
        bool enabled = true;
        std::optional<Layout> layout;
        for (const auto& [key, setting] : settings.items()) {
            Result<void> done = {};
            if (key == "tile_shape")
                done = check_tile_shape(*value, setting);
            else if (key == "enable_mla")
                done = read_enabled(name, setting, enabled);
            else if (key == "dram_layout")
                done = read_layout(*value, setting, layout);
            else
                done = fault(
                    name, "has the key '" + key + "'; known: tile_shape, enable_mla, dram_layout");
            if (!done) return done;
        }
        if (!enabled)
            out_.without_hw.insert(name);
        else if (layout)
            out_.hw_layouts[name] = *layout;
        return {};
    }

    // N, H, W, C; 0 is the whole dimension. No device of ours works on less than a whole tensor at
    // its border, so that a tile is the tensor or refused.
    Result<void> check_tile_shape(const Value& value, const Json& setting) const {
        const bool is_shape =
            setting.is_array() && setting.size() == 4 &&
            std::ranges::all_of(setting, [](const Json& d) { return d.is_number_unsigned(); });
        const std::string found = "tile_shape " + setting.dump();
        if (!is_shape)
            return fault(value.name, found + ": expected four whole numbers, N, H, W and C");
        if (std::ranges::all_of(setting, [](const Json& d) { return d == 0; })) return {};
        if (is_picture(value)) {
            const auto& s = value.type.shape;
            const bool is_last = looks_channels_last(s);
            const std::array<int64_t, 4> whole = {s[0], s[is_last ? 1 : 2], s[is_last ? 2 : 3],
                                                  s[is_last ? 3 : 1]};
            bool fits = true;
            for (size_t i = 0; i < whole.size(); ++i)
                fits = fits && (setting[i] == 0 || setting[i] == whole[i]);
            if (fits) return {};
        }
        return fault(value.name, found + ": device '" + std::string(device_) +
                                     "' exchanges whole tensors, not tiles; use [0,0,0,0]");
    }

    Result<void> read_enabled(const std::string& name, const Json& setting, bool& enabled) const {
        if (!setting.is_boolean())
            return fault(name, "enable_mla " + config::is(setting) + ", expected true or false");
        enabled = setting.get<bool>();
        return {};
    }

    Result<void> read_layout(const Value& value, const Json& setting,
                             std::optional<Layout>& layout) const {
        const std::string wanted =
            setting.is_string() ? setting.get<std::string>() : setting.dump();
        const auto row = std::ranges::find(dram_layouts, wanted, &DramLayout::name);
        if (row == std::end(dram_layouts))
            return fault(value.name, "dram_layout is '" + wanted + "', expected HWC or HWC16");
        if (!is_picture(value))
            return fault(value.name, "dram_layout " + wanted +
                                         " is for 4-D tensors with N = 1, "
                                         "it is " +
                                         to_string(value.type));
        layout = row->layout;
        return {};
    }

    const std::string& file_;
    const Graph& graph_;
    const std::string_view device_;
    Tessellation out_;
};

}  // namespace

Result<Tessellation> read_tessellation(const std::string& wish, const Graph& graph,
                                       std::string_view device) {
    if (wish.empty()) return Tessellation{};
    if (wish == "default") return make_default(graph);
    return Reader(wish, graph, device).run();
}

Result<std::string> tessellation_key(const std::string& wish) {
    if (wish.empty() || wish == "default") return wish;
    const auto file = MappedFile::open(wish);
    if (!file) return Error{ErrorCode::invalid_argument, file.error().message};
    return "file:" + std::string(as_text((*file)->bytes()));
}

}  // namespace vartml::compiler
