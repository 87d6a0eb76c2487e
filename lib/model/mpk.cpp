// SPDX-License-Identifier: Apache-2.0
// Keys, values and references of NAME_mpk.json.
#include "lib/model/mpk.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include <vartml/version.h>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/model/derived.h"
#include "lib/model/manifest.h"
#include "lib/model/tar_stream.h"

namespace vartml::artifact {

namespace {

using nlohmann::json;

enum class Kind { text, number, flag, object, texts, shape, shapes, nodes, plugins, tessellation };

struct Key {
    const char* name;
    Kind kind;
    bool required = true;
};
constexpr Key top_keys[] = {
    {"name", Kind::text},           {"model_path", Kind::text},
    {"model_checksum", Kind::text}, {"model_sdk_version", Kind::text},
    {"sequence", Kind::number},     {"input_nodes", Kind::nodes},
    {"output_nodes", Kind::nodes},  {"plugins", Kind::plugins},
};
constexpr Key node_keys[] = {
    {"name", Kind::text},           {"type", Kind::text},          {"size", Kind::number},
    {"logical_shape", Kind::shape}, {"logical_dtype", Kind::text},
};
constexpr Key plugin_keys[] = {
    {"name", Kind::text},          {"sequence", Kind::number},      {"processor", Kind::text},
    {"type", Kind::text},          {"config_params", Kind::object}, {"input_nodes", Kind::nodes},
    {"output_nodes", Kind::nodes}, {"resources", Kind::object},
};
constexpr Key config_keys[] = {
    {"desired_batch_size", Kind::number, false},
    {"actual_batch_size", Kind::number, false},
    {"number_of_quads_to_user", Kind::number, false},
    {"input_shapes", Kind::shapes},
    {"output_shapes", Kind::shapes},
    {"input_data_type", Kind::texts},
    {"data_type", Kind::texts},
    {"tessellation", Kind::tessellation, false},
};
constexpr Key resource_keys[] = {{"executable", Kind::text}};
constexpr Key tile_keys[] = {
    {"tile_shape", Kind::shape}, {"enable_mla", Kind::flag}, {"dram_layout", Kind::text, false}};

constexpr const char* kind_names[] = {
    "a text",           "a whole number from 0 on", "true or false",
    "an object",        "a list of texts",          "a list of whole numbers",
    "a list of shapes", "a list of nodes",          "a list of plugins",
    "an object"};

bool is_list(const json& value, bool (*each)(const json&)) {
    return value.is_array() && std::ranges::all_of(value, each);
}
bool is_text(const json& v) {
    return v.is_string();
}
bool is_number(const json& v) {
    return v.is_number_unsigned();
}
bool is_object(const json& v) {
    return v.is_object();
}
bool is_shape(const json& v) {
    return is_list(v, is_number);
}

bool is_of(Kind kind, const json& value) {
    switch (kind) {
        case Kind::text:
            return is_text(value);
        case Kind::number:
            return is_number(value);
        case Kind::flag:
            return value.is_boolean();
        case Kind::texts:
            return is_list(value, is_text);
        case Kind::shape:
            return is_shape(value);
        case Kind::shapes:
            return is_list(value, is_shape);
        case Kind::nodes:
        case Kind::plugins:
            return is_list(value, is_object);
        default:
            return is_object(value);
    }
}

class MpkChecks {
public:
    MpkChecks(Checks& checks, const CompiledModel& model, const std::set<std::string>& files)
        : checks_(checks), model_(model), files_(files) {}

    bool run(std::string_view text) {
        const json j = json::parse(text, nullptr, false);
        if (!j.is_object()) return fail("", "is no JSON object");
        const auto version_of = j.find("model_sdk_version");
        is_known_version_ =
            version_of != j.end() && *version_of == "vartml-" + std::string(version());
        if (!check_keys(j, "", top_keys)) return false;
        const std::string signature = j["model_checksum"];
        if (signature != model_.model_signature)
            return fail("/model_checksum", "is '" + printable(signature) + "', model.vmf says " +
                                               model_.model_signature);
        if (!check_nodes(j["input_nodes"], "/input_nodes") ||
            !check_nodes(j["output_nodes"], "/output_nodes") || !check_plugins(j) ||
            !check_file(j["model_path"], "/model_path") || !check_links(j))
            return false;
        if (is_known_version_ && text != mpk_text(model_))
            return fail("", "differs from what model.vmf says, it was edited or damaged");
        return true;
    }

private:
    bool fail(const std::string& at, const std::string& text) {
        return checks_.fail((at.empty() ? "" : at + ": ") + text);
    }

    bool check_keys(const json& object, const std::string& at, std::span<const Key> keys) {
        for (const Key& key : keys) {
            const auto found = object.find(key.name);
            if (found == object.end()) {
                if (key.required) return fail(at + '/' + key.name, "is missing");
            } else if (!is_of(key.kind, *found)) {
                return fail(at + '/' + key.name, "is " + std::string(found->type_name()) +
                                                     ", expected " +
                                                     kind_names[static_cast<int>(key.kind)]);
            }
        }
        if (!is_known_version_) return true;  // a newer one may have more keys
        for (const auto& [name, value] : object.items())
            if (std::ranges::find(keys, std::string_view(name), [](const Key& k) {
                    return std::string_view(k.name);
                }) == keys.end())
                return fail(at + '/' + printable(name), "is a key that nobody knows");
        return true;
    }

    bool check_one_of(const json& value, const std::string& at,
                      std::initializer_list<std::string_view> allowed) {
        const std::string& text = value.get_ref<const std::string&>();
        if (std::ranges::find(allowed, text) != allowed.end()) return true;
        std::string list;
        for (const std::string_view a : allowed)
            list += (list.empty() ? "" : ", ") + std::string(a);
        return fail(at, "is '" + printable(text) + "', allowed: " + list);
    }

    bool check_data_type(const json& value, const std::string& at) {
        const std::string& text = value.get_ref<const std::string&>();
        return parse_data_type(text) ||
               fail(at, "is '" + printable(text) + "', which is no data type");
    }

    bool check_nodes(const json& list, const std::string& at) {
        for (size_t i = 0; i < list.size(); ++i) {
            const std::string here = at + '/' + std::to_string(i);
            if (!check_keys(list[i], here, node_keys) ||
                !check_one_of(list[i]["type"], here + "/type", {"buffer"}) ||
                !check_data_type(list[i]["logical_dtype"], here + "/logical_dtype"))
                return false;
        }
        return true;
    }

    bool check_plugins(const json& j) {
        const json& list = j["plugins"];
        for (size_t i = 0; i < list.size(); ++i) {
            const std::string here = "/plugins/" + std::to_string(i);
            const json& plugin = list[i];
            if (!check_keys(plugin, here, plugin_keys) ||
                !check_one_of(plugin["processor"], here + "/processor", {"MLA", "A65"}) ||
                !check_one_of(plugin["type"], here + "/type", {"elf", "vnp"}) ||
                !check_config(plugin["config_params"], here + "/config_params") ||
                !check_keys(plugin["resources"], here + "/resources", resource_keys) ||
                !check_file(plugin["resources"]["executable"], here + "/resources/executable") ||
                !check_nodes(plugin["input_nodes"], here + "/input_nodes") ||
                !check_nodes(plugin["output_nodes"], here + "/output_nodes"))
                return false;
        }
        return true;
    }

    bool check_config(const json& config, const std::string& at) {
        if (!check_keys(config, at, config_keys)) return false;
        for (const char* key : {"input_data_type", "data_type"})
            for (const json& type : config[key])
                if (!check_data_type(type, at + '/' + key)) return false;
        const auto tessellation = config.find("tessellation");
        if (tessellation == config.end()) return true;
        for (const auto& [name, tile] : tessellation->items()) {
            const std::string here = at + "/tessellation/" + printable(name);
            if (!tile.is_object()) return fail(here, "is no object");
            if (!check_keys(tile, here, tile_keys)) return false;
            if (tile.contains("dram_layout") &&
                !check_one_of(tile["dram_layout"], here + "/dram_layout", {"HWC", "HWC16"}))
                return false;
        }
        return true;
    }

    // "" is the first .elf of a model that has none.
    bool check_file(const json& value, const std::string& at) {
        const std::string& name = value.get_ref<const std::string&>();
        return name.empty() || files_.contains(name) ||
               fail(at, "names '" + printable(name) + "', which is not in the archive");
    }

    // Every tensor comes from one place. A standard compilation may leave operators, and the
    // tensors between them, to another runtime.
    bool check_links(const json& j) {
        std::map<std::string, std::string> makers;
        const auto add = [&](const json& list, const std::string& at) {
            for (const json& node : list) {
                const std::string name = node["name"];
                const auto [before, fresh] = makers.emplace(name, at);
                if (!fresh)
                    return fail(at, "makes tensor '" + printable(name) + "', as " + before->second +
                                        " does");
            }
            return true;
        };
        const auto find = [&](const json& list, const std::string& at) {
            for (const json& node : list) {
                const std::string name = node["name"];
                if (!makers.contains(name) && !is_partial())
                    return fail(at, "takes tensor '" + printable(name) + "', which nothing makes");
            }
            return true;
        };
        if (!add(j["input_nodes"], "/input_nodes")) return false;
        const json& plugins = j["plugins"];
        const auto at = [](size_t i) { return "/plugins/" + std::to_string(i); };
        for (size_t i = 0; i < plugins.size(); ++i)
            if (!add(plugins[i]["output_nodes"], at(i))) return false;
        for (size_t i = 0; i < plugins.size(); ++i)
            if (!find(plugins[i]["input_nodes"], at(i))) return false;
        return find(j["output_nodes"], "/output_nodes");
    }

    bool is_partial() const {
        return model_.compilation == Compilation::standard &&
               model_.summary.offloaded.operators != model_.summary.total.operators;
    }

    Checks& checks_;
    const CompiledModel& model_;
    const std::set<std::string>& files_;
    bool is_known_version_ = false;
};

}  // namespace

bool check_mpk(Checks& checks, std::string_view text, const CompiledModel& model,
               const std::set<std::string>& files) {
    return MpkChecks(checks, model, files).run(text);
}

namespace {

using Json = nlohmann::ordered_json;

Json node(const TensorInfo& t) {
    Json j;
    j["name"] = t.name;
    j["type"] = "buffer";
    j["size"] = t.cpu.size_bytes;
    j["logical_shape"] = t.cpu.shape;
    j["logical_dtype"] = to_string(t.cpu.data_type);
    return j;
}

Json nodes(const std::vector<TensorInfo>& tensors) {
    Json list = Json::array();
    for (const TensorInfo& t : tensors) list.push_back(node(t));
    return list;
}

// How the accelerator finds the tensor in memory; layouts that have no name there are left out.
Json tessellation(const Partition& p) {
    Json j = Json::object();
    for (const auto* tensors : {&p.inputs, &p.outputs})
        for (const TensorInfo& t : *tensors) {
            Json& entry = j[t.name];
            entry["tile_shape"] = {0, 0, 0, 0};
            entry["enable_mla"] = t.hw.has_value();
            if (t.hw && t.hw->layout == Layout::NHWC) entry["dram_layout"] = "HWC";
            if (t.hw && t.hw->layout == Layout::HCWNC16) entry["dram_layout"] = "HWC16";
        }
    return j;
}

Json config_params(const CompiledModel& model, const Partition& p) {
    const bool npu = p.kind == PartitionKind::npu;
    Json j;
    if (npu) {
        j["desired_batch_size"] = model.desired_batch_size;
        j["actual_batch_size"] = model.actual_batch_size;
        j["number_of_quads_to_user"] = p.columns;
    }
    for (const char* key : {"input_shapes", "output_shapes", "input_data_type", "data_type"})
        j[key] = Json::array();
    for (const TensorInfo& t : p.inputs) {
        j["input_shapes"].push_back(t.cpu.shape);
        j["input_data_type"].push_back(to_string(t.cpu.data_type));
    }
    for (const TensorInfo& t : p.outputs) {
        j["output_shapes"].push_back(t.cpu.shape);
        j["data_type"].push_back(to_string(t.cpu.data_type));
    }
    if (npu) j["tessellation"] = tessellation(p);
    return j;
}

std::string executable(const CompiledModel& model, const Partition& p) {
    const auto name = tar_name(entry_folder(p) + "program.vnp", model.model_name);
    return name ? name->file : "";
}

Json plugin(const CompiledModel& model, const Partition& p, size_t sequence) {
    const bool npu = p.kind == PartitionKind::npu;
    Json j;
    j["name"] = (npu ? "MLA_" : "CPU_") + std::string(partition_number(p.name));
    j["sequence"] = sequence;
    j["processor"] = npu ? "MLA" : "A65";
    j["type"] = npu ? "elf" : "vnp";
    j["config_params"] = config_params(model, p);
    j["input_nodes"] = nodes(p.inputs);
    j["output_nodes"] = nodes(p.outputs);
    j["resources"] = {{"executable", executable(model, p)}};
    return j;
}

// "vartml 1.0.0" of the manifest becomes "vartml-1.0.0".
std::string sdk_version(std::string_view tool_version) {
    constexpr std::string_view tool = "vartml ";
    if (tool_version.starts_with(tool)) tool_version.remove_prefix(tool.size());
    return "vartml-" + std::string(tool_version);
}

}  // namespace

std::string mpk_text(const CompiledModel& model) {
    Json j;
    j["name"] = model.model_name;
    j["model_path"] = "";
    j["model_checksum"] = model.model_signature;
    j["model_sdk_version"] = sdk_version(model.tool_version);
    j["sequence"] = 1;
    j["input_nodes"] = nodes(model.inputs);
    j["output_nodes"] = nodes(model.outputs);
    j["plugins"] = Json::array();
    for (const uint32_t index : model.execution_order) {
        if (index >= model.partitions.size()) continue;  // refused elsewhere, with a sentence
        const Partition& p = model.partitions[index];
        if (p.kind == PartitionKind::npu && j["model_path"] == "")
            j["model_path"] = executable(model, p);
        j["plugins"].push_back(plugin(model, p, j["plugins"].size() + 1));
    }
    return json_file_text(j);
}

}  // namespace vartml::artifact
