// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/tessellation.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "lib/base/file.h"
#include "lib/compile/config.h"

namespace vartml::compiler {
namespace {

using config::Json;
using graph::Graph;
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
    Reader(const std::string& file, const Graph& graph) : file_(file), graph_(graph) {}

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
                done = check_tile_shape(name, setting);
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

    Result<void> check_tile_shape(const std::string& name, const Json& setting) const {
        if (setting == Json::array({0, 0, 0, 0})) return {};
        return fault(name, "tile_shape " + setting.dump() + " is not supported, use [0,0,0,0]");
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
    Tessellation out_;
};

}  // namespace

Result<Tessellation> read_tessellation(const std::string& wish, const Graph& graph) {
    if (wish.empty()) return Tessellation{};
    if (wish == "default") return make_default(graph);
    return Reader(wish, graph).run();
}

Result<std::string> tessellation_key(const std::string& wish) {
    if (wish.empty() || wish == "default") return wish;
    const auto file = MappedFile::open(wish);
    if (!file) return Error{ErrorCode::invalid_argument, file.error().message};
    return "file:" + std::string(as_text((*file)->bytes()));
}

}  // namespace vartml::compiler
