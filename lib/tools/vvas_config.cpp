// SPDX-License-Identifier: Apache-2.0
// Walks the JSON of a configuration along the tables of its keys.
#include "lib/tools/vvas_config.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace vartml::tools {

// The keys of VVAS's configurations, a table per object.

// A value of the file, without its JSON library.
struct VvasValue {
    std::optional<bool> flag;
    std::optional<int64_t> integer;
    std::optional<double> number;  // also of an integer
    std::optional<std::string> text;
    std::optional<std::vector<std::string>> texts;
    std::optional<std::vector<int>> integers;
    std::optional<std::vector<std::vector<double>>> rows;  // a list of lists of numbers
};

// One of `set`, `inside` and `left_out`.
struct VvasKey {
    std::string_view name;
    const char* expected = nullptr;  // what `set` takes
    bool (*set)(VvasConfig&, const VvasValue&) = nullptr;
    // The keys of this object; empty: those of a library that is not known here.
    std::span<const VvasKey> (*inside)(const VvasConfig&) = nullptr;
    const char* left_out = nullptr;
};

std::span<const VvasKey> vvas_keys();             // release 6
std::span<const VvasKey> vvas_dpu_keys();         // releases 1 to 3
std::span<const VvasKey> vvas_preprocess_keys();  // their second file

namespace {

using Json = nlohmann::ordered_json;
using Keys = std::span<const VvasKey>;

constexpr size_t limit_bytes = 4u << 20;

Error fault(const std::string& file, const std::string& what) {
    // A list of known keys fits.
    return {ErrorCode::invalid_argument, printable(file + ": " + what, 2000)};
}

VvasValue value_of(const Json& json) {
    VvasValue v;
    if (json.is_boolean()) v.flag = json.get<bool>();
    // A whole number beyond the range is one that no key takes.
    if (json.is_number_unsigned())
        v.integer = json.get<uint64_t>() > INT64_MAX ? INT64_MAX : json.get<int64_t>();
    if (json.is_number_integer() && !v.integer) v.integer = json.get<int64_t>();
    if (json.is_number()) v.number = json.get<double>();
    if (json.is_string()) v.text = json.get<std::string>();
    const auto all = [&](auto is) { return json.is_array() && std::ranges::all_of(json, is); };
    if (all([](const Json& j) { return j.is_string(); }))
        v.texts = json.get<std::vector<std::string>>();
    if (all([](const Json& j) {
            return j.is_number_integer() && j.get<int64_t>() >= INT32_MIN &&
                   j.get<int64_t>() <= INT32_MAX;
        }))
        v.integers = json.get<std::vector<int>>();
    if (all([](const Json& row) {
            return row.is_array() &&
                   std::ranges::all_of(row, [](const Json& j) { return j.is_number(); });
        }))
        v.rows = json.get<std::vector<std::vector<double>>>();
    return v;
}

// The start of a value, for messages; what may be nested deeply is only counted.
std::string shown(const Json& json) {
    if (json.is_object()) return "an object";
    if (json.is_array()) return "a list of " + std::to_string(json.size());
    std::string text = json.dump(-1, ' ', true);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return text;
}

// Says nothing, so that it need not be named where it is left out.
bool is_off(const Json& json) {
    return json == false || json == 0 || json == "" || json == "false" || json.is_null();
}

class Reader {
public:
    Reader(std::string file, VvasConfig& config) : file_(std::move(file)), config_(config) {}

    Result<Json> parse() const {
        auto text = read_file(file_, limit_bytes);
        if (!text) return text.error();
        try {
            Json json = Json::parse(*text);
            if (json.is_object()) return json;
            return fault(file_, "holds " + shown(json) + ", expected a JSON object");
        } catch (const Json::exception& e) {
            const std::string_view what = e.what();
            const size_t begin = what.find("] ");
            return fault(file_, "is no JSON: " +
                                    std::string(what.substr(begin == what.npos ? 0 : begin + 2)));
        }
    }

    // Keys are taken in the order of the table, because some decide what others mean.
    Result<void> walk(const Json& object, Keys keys, const std::string& path) {
        for (const auto& [name, value] : object.items())
            if (std::ranges::find(keys, name, &VvasKey::name) == keys.end())
                return unknown(name, keys, path);
        for (const VvasKey& key : keys) {
            const auto found = object.find(key.name);
            if (found == object.end()) continue;
            if (auto done = take(*found, key, path); !done) return done;
        }
        return {};
    }

private:
    Result<void> take(const Json& value, const VvasKey& key, const std::string& path) {
        const std::string name =
            path.empty() ? std::string(key.name) : path + "." + std::string(key.name);
        if (key.left_out) {
            if (!is_off(value)) config_.left_out.emplace_back(name, key.left_out);
            return {};
        }
        if (key.set) {
            if (key.set(config_, value_of(value))) return {};
            return fault(file_,
                         "key '" + name + "' is " + shown(value) + ", expected " + key.expected);
        }
        if (!value.is_object())
            return fault(file_, "key '" + name + "' is " + shown(value) + ", expected an object");
        const Keys inside = key.inside(config_);
        if (!inside.empty()) return walk(value, inside, name);
        config_.left_out.emplace_back(name, "only the library that it names knows its keys");
        return {};
    }

    Error unknown(const std::string& name, Keys keys, const std::string& path) const {
        std::vector<std::string_view> names;
        std::string known;
        for (const VvasKey& key : keys) {
            names.push_back(key.name);
            known += (known.empty() ? "" : ", ") + std::string(key.name);
        }
        const std::string_view nearest = nearest_name(name, names);
        return fault(file_,
                     "key '" + (path.empty() ? name : path + "." + name) + "' is unknown" +
                         (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?") +
                         (nearest.empty() ? "; known: " : " Known: ") + known);
    }

    std::string file_;
    VvasConfig& config_;
};

// The oldest form has a list of one kernel.
Result<void> unwrap_kernels(const std::string& file, Json& json) {
    const auto kernels = json.find("kernels");
    if (kernels == json.end()) return {};
    if (!kernels->is_array() || kernels->size() != 1 || json.contains("kernel"))
        return fault(file, "key 'kernels' is " + shown(*kernels) +
                               ", expected a list of one kernel and no key 'kernel' beside it");
    json["kernel"] = Json((*kernels)[0]);
    json.erase("kernels");
    return {};
}

}  // namespace

Result<VvasConfig> read_vvas_config(const std::string& file, const std::string& preprocess_file) {
    VvasConfig config;
    config.file = file;
    Reader reader(file, config);
    auto json = reader.parse();
    if (!json) return json.error();
    if (auto done = unwrap_kernels(file, *json); !done) return done.error();
    config.dpu = json->contains("kernel");
    if (!config.dpu && !json->contains("infer-config"))
        return fault(file,
                     "has neither 'infer-config' nor 'kernel', so it is no configuration of "
                     "vvas_xinfer");
    config.has_preprocess = json->contains("preprocess-config");
    if (auto done = reader.walk(*json, config.dpu ? vvas_dpu_keys() : vvas_keys(), ""); !done)
        return done.error();
    if (preprocess_file.empty()) return config;
    if (!config.dpu)
        return fault(file,
                     "has its pre-processing in 'preprocess-config', leave --preprocess-config "
                     "away");
    config.has_preprocess = true;
    Reader second(preprocess_file, config);
    auto preprocess = second.parse();
    if (!preprocess) return preprocess.error();
    if (auto done = second.walk(*preprocess, vvas_preprocess_keys(), ""); !done)
        return done.error();
    return config;
}

// given: key names and value types of the Vitis Video Analytics SDK user guide 6.3 ("config-file
// JSON members" and the pages behind it) and of the configurations and plug-in of releases 1 to 3.
namespace {

using C = VvasConfig;
using V = const VvasValue&;
using Keys = std::span<const VvasKey>;
using Set = bool (*)(C&, V);

constexpr VvasKey key(std::string_view name, const char* expected, Set set) {
    return {name, expected, set};
}
constexpr VvasKey object(std::string_view name, Keys (*inside)(const C&)) {
    return {name, nullptr, nullptr, inside};
}
constexpr VvasKey left_out(std::string_view name, const char* why) {
    return {name, nullptr, nullptr, nullptr, why};
}

constexpr const char* whole_number = "a whole number of at least 0";
constexpr const char* switch_words = "0, 1, false or true";
constexpr const char* switch_or_word = "false, true, \"false\" or \"true\"";
constexpr const char* unit = "a number from 0 to 1";
constexpr const char* some_text = "text";
constexpr const char* model_formats = "\"RGB\", \"BGR\" or \"GRAY8\"";

constexpr const char* runs_itself =
    "vartmlinfer pre-processes in one pass of its own, without that hardware";
constexpr const char* in_model = "the model says it itself";
constexpr const char* every_frame = "every frame carries its inference record";
constexpr const char* own_crops = "every element makes its own crops";
constexpr const char* no_debug = "GST_DEBUG=vartmlinfer:5 is the way here";
constexpr const char* measured = "the property 'stats' and `vartml run` measure";
constexpr const char* compile_it = "give it to `vartml compile --config` and compile the model";
constexpr const char* live = "property 'on-late' of vartmlinfer decides what a late frame gets";
constexpr const char* no_upper_size = "regions have no largest size here";
constexpr const char* vendor_library = "post-processing is vartmldecode's";
constexpr const char* no_calibration = "no decoder family changes scores by such numbers";
constexpr const char* only_dpu = "it concerns DPU programs only";

template <typename T>
bool copy(T& field, const std::optional<std::decay_t<T>>& value) {
    if (value) field = *value;
    return value.has_value();
}
bool text(std::string& field, V v) {
    return copy(field, v.text) && !field.empty();
}
bool flag(std::optional<bool>& field, V v) {
    field = v.flag;
    return field.has_value();
}
// VVAS's switches are the numbers 0 and 1.
bool flag_or_number(std::optional<bool>& field, V v) {
    if (v.integer == 0 || v.integer == 1) field = *v.integer == 1;
    if (v.flag) field = v.flag;
    return field.has_value();
}
bool count(std::optional<int64_t>& field, V v, int64_t low, int64_t high = INT32_MAX) {
    if (v.integer && *v.integer >= low && *v.integer <= high) field = v.integer;
    return field.has_value();
}
bool count(int64_t& field, V v, int64_t low, int64_t high = INT32_MAX) {
    std::optional<int64_t> read;
    return count(read, v, low, high) && copy(field, read);
}
// In some objects a switch is a word.
bool flag_or_word(std::optional<bool>& field, V v) {
    if (v.text == "true" || v.text == "false") field = *v.text == "true";
    if (v.flag) field = v.flag;
    return field.has_value();
}
bool from_0_to_1(std::optional<double>& field, V v) {
    if (v.number && *v.number >= 0 && *v.number <= 1) field = v.number;
    return field.has_value();
}
// What a float of the sidecar can hold.
bool number(std::optional<double>& field, V v) {
    if (v.number && std::isfinite(static_cast<float>(*v.number))) field = v.number;
    return field.has_value();
}
bool factor(std::optional<double>& field, V v) {
    return number(field, v) && static_cast<float>(*field) != 0;
}
bool one_of(std::string& field, V v, std::initializer_list<std::string_view> words) {
    return text(field, v) && std::ranges::find(words, field) != words.end();
}
bool one_of_lower(std::string& field, V v, std::initializer_list<std::string_view> words) {
    if (!text(field, v)) return false;
    std::ranges::transform(field, field.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    return std::ranges::find(words, field) != words.end();
}
bool format(C& c, V v) {
    return one_of(c.model_format, v, {"RGB", "BGR", "GRAY8"});
}
bool runner_flag(C& c, V v, const char* name) {
    if (v.flag) c.runner_options.emplace_back(name, *v.flag ? "(boolean)true" : "(boolean)false");
    return v.flag.has_value();
}
bool runner_number(C& c, V v, const char* name, const char* type) {
    if (v.integer && *v.integer >= 0 && *v.integer <= UINT32_MAX)
        c.runner_options.emplace_back(name, type + std::to_string(*v.integer));
    return v.integer.has_value() && *v.integer <= UINT32_MAX;
}
bool grids(C& c, V v) {
    if (!v.rows) return false;
    const auto is_whole = [](double n) { return n >= 1 && n <= 8192 && n == std::floor(n); };
    for (const std::vector<double>& row : *v.rows) {
        if (row.size() != 2 || !std::ranges::all_of(row, is_whole)) return false;
        c.grids.emplace_back(static_cast<int>(row[0]), static_cast<int>(row[1]));
    }
    return true;
}
bool anchors(C& c, V v) {
    if (!v.rows) return false;
    for (const std::vector<double>& row : *v.rows) {
        if (row.size() % 2) return false;
        for (const double n : row) {
            if (!(n > 0) || !std::isfinite(static_cast<float>(n))) return false;
            c.anchors.push_back(static_cast<float>(n));
        }
    }
    return true;
}
// yolov5, yolo5, YOLOv5 … as "5".
bool preset(C& c, V v) {
    std::string word;
    if (!one_of_lower(word, v,
                      {"yolov5", "yolo5", "yolov7", "yolo7", "yolov8", "yolo8", "yolov9", "yolo9",
                       "yolov11", "yolo11", "yolov12", "yolo12", "yolox", "yolovx"}))
        return false;
    c.preset = word.substr(word.starts_with("yolov") ? 5 : 4);
    return true;
}

// ---- release 6 --------------------------------------------------------------------------------

constexpr VvasKey quantization[] = {
    left_out("scale-factor", in_model),
    left_out("zero-point", in_model),
};
constexpr VvasKey preprocess[] = {
    left_out("software-ppe", runs_itself),
    left_out("xclbin-location", runs_itself),
    left_out("device-index", runs_itself),
    left_out("library-name", runs_itself),
    left_out("library-config", runs_itself),
    left_out("in-mem-bank", runs_itself),
    left_out("out-mem-bank", runs_itself),
    left_out("interpolation-mode",
             "its numbers are those of that hardware; interpolation is "
             "bilinear unless the sidecar's x-vartml-interpolation says else"),
    key("maintain-aspect-ratio", switch_words,
        [](C& c, V v) { return flag_or_number(c.keep_aspect, v); }),
    key("symmetric-padding", switch_words,
        [](C& c, V v) { return flag_or_number(c.symmetric, v); }),
    key("image-pad-value", "a whole number from 0 to 255",
        [](C& c, V v) { return count(c.pad, v, 0, 255); }),
    key("mean-r", "a number", [](C& c, V v) { return number(c.mean[0], v); }),
    key("mean-g", "a number", [](C& c, V v) { return number(c.mean[1], v); }),
    key("mean-b", "a number", [](C& c, V v) { return number(c.mean[2], v); }),
    key("scale-r", "a number other than 0", [](C& c, V v) { return factor(c.scale[0], v); }),
    key("scale-g", "a number other than 0", [](C& c, V v) { return factor(c.scale[1], v); }),
    key("scale-b", "a number other than 0", [](C& c, V v) { return factor(c.scale[2], v); }),
    object("quantization", [](const C&) { return Keys(quantization); }),
};
constexpr VvasKey vitisai_ep[] = {
    left_out("config-file-path", compile_it),
    key("cache-dir", some_text, [](C& c, V v) { return text(c.cache_dir, v); }),
    left_out("cache-key", "the cache's names are made from the model's content"),
    left_out("ai-analyzer-profiling", measured),
    left_out("ai-analyzer-visualization", measured),
};
constexpr VvasKey onnxrt[] = {
    key("onnx-model-path", some_text, [](C& c, V v) { return text(c.onnx_model, v); }),
    left_out("input-tensor-layout", in_model),
    left_out("enable-profiling", measured),
    left_out("profiling-file-path", measured),
    left_out("onnxrt-ep", "the model is compiled, for whatever device runs it"),
    object("vitisai-ep-config", [](const C&) { return Keys(vitisai_ep); }),
};
constexpr VvasKey vart[] = {
    key("vart-model-path", some_text, [](C& c, V v) { return text(c.vart_model, v); }),
    left_out("input-tensor-type", "vartmlinfer takes the HW view where the model has one"),
    key("output-tensor-type", "\"CPU\" or \"HW\"",
        [](C& c, V v) { return one_of_lower(c.output_view, v, {"cpu", "hw"}); }),
    key("ai-analyzer-profiling", "true or false",
        [](C& c, V v) { return runner_flag(c, v, "ai_analyzer_profiling"); }),
    key("aie-columns-sharing", "true or false",
        [](C& c, V v) { return runner_flag(c, v, "aie_columns_sharing"); }),
    // A negative number leaves the choice to the runtime.
    key("start-column", "a whole number",
        [](C& c, V v) { return runner_number(c, v, "start_column", "(uint)"); }),
    key("out-mem-bank", "a whole number",
        [](C& c, V v) { return runner_number(c, v, "cma_index", "(int)"); }),
    key("config-file-path", some_text,
        [](C& c, V v) {
            if (v.text) c.runner_options.emplace_back("config_json", "(string)" + *v.text);
            return v.text && !v.text->empty();
        }),
};
constexpr VvasKey infer[] = {
    key("inference-backend-runtime", "\"onnxrt\" or \"vart\"",
        [](C& c, V v) { return one_of_lower(c.runtime, v, {"onnxrt", "vart"}); }),
    object("onnxrt-config", [](const C&) { return Keys(onnxrt); }),
    object("vart-config", [](const C&) { return Keys(vart); }),
    key("model-format", model_formats, format),
    key("batch-size", "a whole number from 0 to 64",
        [](C& c, V v) { return count(c.batch_size, v, 0, 64); }),
    key("inference-level", "a whole number of at least 1",
        [](C& c, V v) { return count(c.level, v, 1); }),
    key("inference-max-queue", whole_number, [](C& c, V v) { return count(c.max_queue, v, 0); }),
    left_out("low-latency", live),
    left_out("attach-ppe-outbuf", own_crops),
    left_out("attach-empty-metadata", every_frame),
    key("input-obj-min-width", whole_number, [](C& c, V v) { return count(c.min_width, v, 0); }),
    key("input-obj-min-height", whole_number, [](C& c, V v) { return count(c.min_height, v, 0); }),
    left_out("input-obj-max-width", no_upper_size),
    left_out("input-obj-max-height", no_upper_size),
    key("input-class-filters", "a list of labels",
        [](C& c, V v) { return copy(c.input_classes, v.texts); }),
};
constexpr VvasKey classify[] = {
    key("topk", "a whole number of at least 1", [](C& c, V v) { return count(c.top_k, v, 1); }),
    key("label-file-path", some_text, [](C& c, V v) { return text(c.labels, v); }),
    key("disable-softmax", "true or false", [](C& c, V v) { return flag(c.no_softmax, v); }),
};
constexpr VvasKey yolo[] = {
    key("preset", "yolov5, yolov7, yolov8, yolov9, yolov11, yolov12 or yolox", preset),
    key("conf_thresh", unit, [](C& c, V v) { return from_0_to_1(c.score, v); }),
    key("iou_thresh", unit, [](C& c, V v) { return from_0_to_1(c.iou, v); }),
    key("class_agnostic", "true or false", [](C& c, V v) { return flag(c.class_agnostic, v); }),
    left_out("multi_label", "a box has its best class here"),
    key("box_grid_decode", "true or false", [](C& c, V v) { return flag(c.grid, v); }),
    key("has_objectness_score", "true or false", [](C& c, V v) { return flag(c.objectness, v); }),
    key("apply_sigmoid", "true or false", [](C& c, V v) { return flag(c.sigmoid, v); }),
    left_out("preds_per_location", in_model),
    key("grid_strides", "a list of whole numbers from 1 to 4096",
        [](C& c, V v) {
            return copy(c.strides, v.integers) && !c.strides.empty() &&
                   std::ranges::all_of(c.strides, [](int s) { return s >= 1 && s <= 4096; });
        }),
    left_out("input_width", in_model),
    left_out("input_height", in_model),
    key("max_detections", "a whole number of at least 1",
        [](C& c, V v) { return count(c.max_detections, v, 1, 1'000'000); }),
    key("class_label_file", some_text, [](C& c, V v) { return text(c.labels, v); }),
};
constexpr VvasKey vart_model[] = {
    key("is-obj-score-included", switch_or_word,
        [](C& c, V v) { return flag_or_word(c.objectness, v); }),
    key("grid-shape", "a list of [height, width] with whole numbers from 1 to 8192", grids),
    key("num-anchorboxes", "a list of whole numbers",
        [](C& c, V v) { return copy(c.anchors_per_cell, v.integers); }),
    key("anchors", "a list of lists with pairs of positive numbers", anchors),
    key("is-scaling-required", switch_or_word, [](C& c, V v) { return flag_or_word(c.scaled, v); }),
    key("apply-sigmoid-to-obj-conf", switch_or_word,
        [](C& c, V v) { return flag_or_word(c.sigmoid, v); }),
    left_out("input-layout", in_model),
    left_out("output-layout", in_model),
    left_out("quant-scale-factors", in_model),
};
constexpr VvasKey vart_functions[] = {
    left_out("platt-param-a", no_calibration),
    left_out("platt-param-b", no_calibration),
    left_out("temperature-scaling", no_calibration),
    left_out("threshold", no_calibration),
};
constexpr VvasKey vart_library[] = {
    key("type", some_text, [](C& c, V v) { return text(c.type, v); }),
    key("topk", "a whole number of at least 1", [](C& c, V v) { return count(c.top_k, v, 1); }),
    key("label-file-path", some_text, [](C& c, V v) { return text(c.labels, v); }),
    key("nms-threshold", unit, [](C& c, V v) { return from_0_to_1(c.iou, v); }),
    key("conf-threshold", unit, [](C& c, V v) { return from_0_to_1(c.score, v); }),
    left_out("post-process-print", no_debug),
    left_out("outlier-threshold", no_calibration),
    object("function-options", [](const C&) { return Keys(vart_functions); }),
    object("model-params", [](const C&) { return Keys(vart_model); }),
};
Keys library_keys(const C& c) {
    if (c.library.find("postprocess_vart") != std::string::npos) return vart_library;
    if (c.library.find("postprocess_resnet") != std::string::npos) return classify;
    if (c.library.find("postprocess_yolo") != std::string::npos) return yolo;
    return {};
}
constexpr VvasKey postprocess[] = {
    key("library-path", some_text, [](C& c, V v) { return text(c.library, v); }),
    object("library-config", library_keys),
    object("dequantization", [](const C&) { return Keys(quantization); }),
};
constexpr VvasKey root[] = {
    object("preprocess-config", [](const C&) { return Keys(preprocess); }),
    object("infer-config", [](const C&) { return Keys(infer); }),
    object("postprocess-config", [](const C&) { return Keys(postprocess); }),
};

// ---- releases 1 to 3 --------------------------------------------------------------------------

constexpr VvasKey dpu_config[] = {
    key("batch-size", "a whole number from 0 to 64",
        [](C& c, V v) { return count(c.batch_size, v, 0, 64); }),
    key("model-name", some_text, [](C& c, V v) { return text(c.dpu_name, v); }),
    key("model-class", some_text, [](C& c, V v) { return text(c.dpu_class, v); }),
    key("model-format", model_formats, format),
    key("model-path", some_text, [](C& c, V v) { return text(c.dpu_folder, v); }),
    key("max-objects", whole_number,
        [](C& c, V v) { return count(c.max_detections, v, 0, 1'000'000); }),
    key("filter-labels", "a list of labels",
        [](C& c, V v) { return copy(c.output_classes, v.texts); }),
    left_out("vitis-ai-preprocess", runs_itself),
    left_out("need_preprocess", runs_itself),
    left_out("performance-test", measured),
    left_out("performance_test", measured),
    left_out("run_time_model", "writing property 'model' of vartmlinfer is the way here"),
    left_out("float-feature", only_dpu),
    left_out("segoutfactor", only_dpu),
    left_out("seg-out-format", only_dpu),
    left_out("postprocess-lib-path", vendor_library),
    left_out("postprocess-function", vendor_library),
    left_out("debug-level", no_debug),
    left_out("debug_level", no_debug),
};
constexpr VvasKey dpu_kernel[] = {
    left_out("kernel-name", only_dpu),
    left_out("library-name", only_dpu),
    object("config", [](const C&) { return Keys(dpu_config); }),
};
constexpr VvasKey dpu_root[] = {
    key("inference-level", "a whole number of at least 1",
        [](C& c, V v) { return count(c.level, v, 1); }),
    key("inference-max-queue", whole_number, [](C& c, V v) { return count(c.max_queue, v, 0); }),
    left_out("low-latency", live),
    left_out("attach-ppe-outbuf", own_crops),
    left_out("xclbin-location", only_dpu),
    left_out("vvas-library-repo", only_dpu),
    left_out("element-mode", only_dpu),
    left_out("device-index", only_dpu),
    object("kernel", [](const C&) { return Keys(dpu_kernel); }),
};
constexpr VvasKey scaler_config[] = {
    left_out("ppc", runs_itself),          left_out("in-mem-bank", runs_itself),
    left_out("out-mem-bank", runs_itself), left_out("inference-level", runs_itself),
    left_out("debug-level", no_debug),     left_out("debug_level", no_debug),
};
constexpr VvasKey scaler_kernel[] = {
    left_out("kernel-name", runs_itself),
    left_out("library-name", runs_itself),
    object("config", [](const C&) { return Keys(scaler_config); }),
};
constexpr VvasKey scaler_root[] = {
    left_out("software-ppe", runs_itself),
    left_out("xclbin-location", runs_itself),
    left_out("vvas-library-repo", runs_itself),
    left_out("device-index", runs_itself),
    key("scaler-type", "\"default\", \"letterbox\" or \"envelope_cropped\"",
        [](C& c, V v) {
            return one_of(c.scaler, v, {"default", "letterbox", "envelope_cropped"});
        }),
    key("scaler-horz-align", "\"left\", \"center\" or \"right\"",
        [](C& c, V v) { return one_of(c.horizontal, v, {"left", "center", "right"}); }),
    key("scaler-vert-align", "\"top\", \"center\" or \"bottom\"",
        [](C& c, V v) { return one_of(c.vertical, v, {"top", "center", "bottom"}); }),
    key("scaler-pad-value", "a whole number from 0 to 255",
        [](C& c, V v) { return count(c.pad, v, 0, 255); }),
    object("kernel", [](const C&) { return Keys(scaler_kernel); }),
};

}  // namespace

Keys vvas_keys() {
    return root;
}
Keys vvas_dpu_keys() {
    return dpu_root;
}
Keys vvas_preprocess_keys() {
    return scaler_root;
}

}  // namespace vartml::tools
