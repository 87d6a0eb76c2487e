// SPDX-License-Identifier: Apache-2.0
// Checks of what the header declares, of creation and its options, and of what a runner says of its
// model.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "checks.h"

namespace conformance {
namespace {

using vart::DataType;
using vart::MemoryLayout;
using vart::NpuTensorInfo;
using vart::TensorDirection;
using vart::TensorType;

// Later releases add members: asked of the class as a template parameter, so that the program also
// compiles with headers that lack them.
template <class Runner>
std::optional<std::any> property(const Runner& runner, const std::string& key) {
    if constexpr (requires { runner.get_property(key); }) return runner.get_property(key);
    return std::nullopt;
}
template <class Runner>
std::optional<size_t> batch_of(const Runner& runner, TensorDirection direction) {
    if constexpr (requires { runner.get_batch_size(direction); })
        return runner.get_batch_size(direction);
    return std::nullopt;
}
template <class Enum>
std::optional<std::string> text_of(Enum value) {
    if constexpr (requires { to_string(value); }) return std::string(to_string(value));
    return std::nullopt;
}
template <class Layout>
Seen newest_layouts() {
    if constexpr (requires { Layout::NH2HWC4C, Layout::NH2C4HWC; })
        return same_if(int(Layout::NH2HWC4C) == 17 && int(Layout::NH2C4HWC) == 18,
                       "declared, GENERIC is " + std::to_string(int(Layout::GENERIC)));
    return refused("not declared, GENERIC is " + std::to_string(int(Layout::GENERIC)));
}
template <class Info>
bool prints(const Info& info) {
    if constexpr (requires { info.print(); }) return info.print(), true;
    return false;
}
template <class Tensor>
bool prints_info(const Tensor& tensor) {
    if constexpr (requires { tensor.print_info(); }) return tensor.print_info(), true;
    return false;
}
constexpr const char* not_declared = "the header does not declare it";

template <class Enum>
Seen named(std::initializer_list<std::pair<Enum, const char*>> names) {
    for (const auto& [value, name] : names) {
        const auto text = text_of(value);
        if (!text) return refused(not_declared);
        if (*text != name) return differs("'" + *text + "' for " + name);
    }
    return same();
}

// ---- tensors ----

constexpr TensorDirection directions[] = {TensorDirection::INPUT, TensorDirection::OUTPUT};
constexpr TensorType types[] = {TensorType::CPU, TensorType::HW};

// The first fault that `look` finds in a tensor of the model.
template <class Look>
Seen each_tensor(Model& model, std::vector<TensorType> which, Look look) {
    const vart::Runner& runner = model.runner();
    size_t count = 0;
    for (const TensorDirection direction : directions) {
        for (const TensorType type : which) {
            for (const NpuTensorInfo& info : runner.get_tensors_info(direction, type)) {
                ++count;
                const std::string fault = look(runner, info, direction, type);
                if (!fault.empty()) return differs("'" + info.name + "' " + fault);
            }
        }
    }
    if (count == 0) return not_shown("the model has no HW views");
    return same(std::to_string(count) + " tensors");
}

std::string list(const std::vector<uint32_t>& numbers) {
    std::string text = "[";
    for (const uint32_t number : numbers) {
        if (text.size() > 1) text += ",";
        text += std::to_string(number);
    }
    return text + "]";
}

std::string sizes(const vart::Runner&, const NpuTensorInfo& info, TensorDirection, TensorType) {
    const size_t count =
        std::accumulate(info.shape.begin(), info.shape.end(), size_t{1}, std::multiplies<>());
    if (info.shape.empty()) return "has no shape";
    if (info.size != count)
        return "has size " + std::to_string(info.size) + " and shape " + list(info.shape);
    if (info.size_in_bytes != count * bytes_of_element(info.data_type))
        return "has size_in_bytes " + std::to_string(info.size_in_bytes) + " for " +
               std::to_string(count) + " elements";
    return "";
}
std::string strides(const vart::Runner&, const NpuTensorInfo& info, TensorDirection, TensorType) {
    std::vector<uint32_t> dense(info.shape.size());
    uint32_t step = 1;
    for (size_t d = info.shape.size(); d-- > 0; step *= info.shape[d]) dense[d] = step;
    return info.strides == dense
               ? ""
               : "has strides " + list(info.strides) + " for shape " + list(info.shape);
}
std::string layouts(const vart::Runner&, const NpuTensorInfo& info, TensorDirection, TensorType) {
    const std::set<MemoryLayout> known = {
        MemoryLayout::NHW,    MemoryLayout::NHWC,    MemoryLayout::NCHW,   MemoryLayout::HCWNC4,
        MemoryLayout::HCWNC8, MemoryLayout::HCWNC16, MemoryLayout::GENERIC};
    if (!known.contains(info.memory_layout))
        return "has layout " + std::to_string(int(info.memory_layout));
    if (bytes_of_element(info.data_type) == 0)
        return "has data type " + std::to_string(int(info.data_type));
    if (info.memory_layout != MemoryLayout::GENERIC) return "";
    auto order = info.memory_layout_order;
    std::sort(order.begin(), order.end());
    std::vector<uint32_t> identity(info.shape.size());
    std::iota(identity.begin(), identity.end(), 0u);
    return order == identity ? "" : "has memory_layout_order " + list(info.memory_layout_order);
}
std::string addresses(const vart::Runner& runner, const NpuTensorInfo& info, TensorDirection,
                      TensorType) {
    const auto places = places_in(info, runner.get_tensor_info_by_name(info.name, TensorType::CPU));
    if (!places) return "has shape " + list(info.shape) + ", which does not hold its CPU view";
    return std::set<size_t>(places->begin(), places->end()).size() == places->size()
               ? ""
               : "has elements at one place";
}
std::string quantisation(const vart::Runner& runner, const NpuTensorInfo& info, TensorDirection,
                         TensorType) {
    const vart::QuantParameters& quant = runner.get_quant_parameters(info.name);
    const bool integer = info.data_type != DataType::FLOAT32 && info.data_type != DataType::BF16 &&
                         info.data_type != DataType::FP16;
    const bool was_float =
        runner.get_tensor_info_by_name(info.name, TensorType::CPU).data_type == DataType::FLOAT32;
    if (!integer || !was_float || quant.scale > 0) return "";
    return "is an integer in its HW view and has scale " + std::to_string(quant.scale);
}

size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return size_t(std::distance(begin(all), end(all)));
}

std::string text_of_any(const std::any& value) {
    if (const auto* text = std::any_cast<std::string>(&value)) return *text;
    if (const auto* number = std::any_cast<size_t>(&value)) return std::to_string(*number);
    if (const auto* number = std::any_cast<uint32_t>(&value)) return std::to_string(*number);
    return value.type().name();
}

Check accepted(const std::string& key, const std::string& shown, std::any value) {
    return {"option/" + key, "a runner with " + key + " = " + shown, true,
            [key, value](Model& model) {
                const bool hw = key.ends_with("_tensor_type");
                const TensorDirection direction =
                    key.starts_with("output") ? TensorDirection::OUTPUT : TensorDirection::INPUT;
                if (hw && !model.has_hw(direction))
                    return not_shown("the model has no HW view there");
                model.open({{key, value}});
                return same("a runner");
            }};
}
Check rejected(const std::string& name, const std::string& expected, Options options) {
    return {name, expected, false, [options](Model& model) {
                return expect_throw<std::invalid_argument>([&] { model.open(options); });
            }};
}

Seen refuses_path(const std::string& path) {
    return expect_throw<std::runtime_error>([&] { Model(path).open(); });
}

}  // namespace

std::vector<Check> header_checks() {
    return {
        {"header/numbers", "the enumerators' numbers", true,
         [](Model&) {
             const bool right =
                 int(DataType::FLOAT32) == 10 && int(DataType::UINT64) == 12 &&
                 int(MemoryLayout::HCWNC4) == 12 && int(MemoryLayout::NHW16WC4C) == 16 &&
                 int(vart::MemoryType::USER_POINTER_NON_CMA) == 4 && int(TensorType::HW) == 1 &&
                 int(TensorDirection::OUTPUT) == 1 && int(vart::StatusCode::UNSUPPORTED) == 9 &&
                 int(vart::RoundingMode::ROUND_TOWARD_ZERO) == 2;
             return same_if(right, right ? "as expected" : "others");
         }},
        {"header/layouts", "NH2HWC4C is 17, NH2C4HWC is 18", true,
         [](Model&) { return newest_layouts<MemoryLayout>(); }},
        {"header/defaults", "JobHandle {FAILURE, 0}, info HW, scale 0", true,
         [](Model&) {
             const vart::JobHandle job;
             const NpuTensorInfo info;
             const vart::QuantParameters quant;
             return same_if(
                 job.status == vart::StatusCode::FAILURE && job.job_id == 0 &&
                     info.tensor_type == TensorType::HW && info.size_in_bytes == 0 &&
                     quant.scale == 0 && quant.zero_point == 0,
                 "job " + name_of(job.status) + ", scale " + std::to_string(quant.scale));
         }},
        {"header/noexcept", "execute, execute_async, wait are noexcept", true,
         [](Model&) {
             using R = vart::Runner&;
             const bool right =
                 noexcept(std::declval<R>().execute(std::declval<Tensors&>(),
                                                    std::declval<Tensors&>())) &&
                 noexcept(std::declval<R>().wait(std::declval<vart::JobHandle&>(), long_wait));
             return same_if(right, right ? "noexcept" : "not noexcept");
         }},
        {"header/to_string StatusCode", "names of enumerators", true,
         [](Model&) {
             return named<vart::StatusCode>({{vart::StatusCode::SUCCESS, "SUCCESS"},
                                             {vart::StatusCode::JOB_PENDING, "JOB_PENDING"},
                                             {vart::StatusCode::UNSUPPORTED, "UNSUPPORTED"}});
         }},
        {"header/to_string DataType", "names of enumerators", true,
         [](Model&) {
             return named<DataType>({{DataType::INT8, "INT8"}, {DataType::BF16, "BF16"}});
         }},
        {"header/to_string MemoryLayout", "names of enumerators", true,
         [](Model&) {
             return named<MemoryLayout>(
                 {{MemoryLayout::HCWNC4, "HCWNC4"}, {MemoryLayout::GENERIC, "GENERIC"}});
         }},
        {"header/print", "NpuTensorInfo::print, NpuTensor::print_info", true,
         [](Model& model) {
             const auto& info =
                 model.runner().get_tensors_info(TensorDirection::INPUT, TensorType::CPU).at(0);
             const bool both = prints(info) && prints_info(vart::NpuTensor());
             return both ? same("declared") : refused(not_declared);
         }},
    };
}

std::vector<Check> creation_checks() {
    std::vector<Check> checks = {
        {"create/cpu", "a runner with CPU views", true,
         [](Model& model) { return model.open(), same("a runner"); }},
        {"create/default", "a runner; std::runtime_error if no HW views", true,
         [](Model& model) {
             const auto create = [&] {
                 return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model.path());
             };
             if (!model.has_hw()) return expect_throw<std::runtime_error>(create);
             return same_if(create() != nullptr, "a runner");
         }},
        {"create/missing model", "std::runtime_error", true,
         [](Model&) { return refuses_path("/nonexistent/model.rai"); }},
        {"create/not a model", "std::runtime_error", true,
         [](Model&) { return refuses_path("/proc/self"); }},
        {"create/two runners", "both at once, columns shared", true,
         [](Model& model) {
             const auto one = model.open(), two = model.open();
             return same_if(one != two, "two runners");
         }},
        {"create/again and again", "no descriptor stays open", false,
         [](Model& model) {
             model.open();
             const size_t before = open_descriptors();
             for (int i = 0; i < 5; ++i) model.open();
             const size_t after = open_descriptors();
             return same_if(after == before,
                            std::to_string(before) + " descriptors, then " + std::to_string(after));
         }},
        // given: VART ML architecture overview, "Configuration Options".
        accepted("input_tensor_type", "\"HW\"", std::string("HW")),
        accepted("output_tensor_type", "\"HW\"", std::string("HW")),
        accepted("skip_in_bo_sync", "true", true),
        accepted("skip_out_bo_sync", "true", true),
        accepted("cma_index", "0 (int)", 0),
        accepted("aie_columns_sharing", "true", true),
        accepted("start_column", "0 (unsigned)", 0u),
        accepted("async_threadpool_depth", "4 (unsigned)", 4u),
        accepted("max_concurrent_runs", "4 (unsigned)", 4u),
        accepted("callback_order", "\"completion\"", std::string("completion")),
        accepted("log_level", "\"ERROR\"", std::string("ERROR")),
        accepted("debug", "false", false),
        accepted("cache_path", "a folder",
                 (std::filesystem::temp_directory_path() / "vart-ml-conformance-cache").string()),
        accepted("ai_analyzer_profiling", "false", false),
        rejected("option/unknown", "std::invalid_argument for a misspelt key",
                 {{"max_concurent_runs", 2u}}),
        rejected("option/type", "std::invalid_argument for a string as number",
                 {{"start_column", std::string("four")}}),
        rejected("option/value", "std::invalid_argument for \"GPU\"",
                 {{"input_tensor_type", std::string("GPU")}}),
        rejected("option/range", "std::invalid_argument for 0 runs", {{"max_concurrent_runs", 0u}}),
    };
    return checks;
}

std::vector<Check> tensor_info_checks() {
    const std::vector<TensorType> both(std::begin(types), std::end(types));
    return {
        {"infos/numbers", "as many CPU infos as get_num_*_tensors", true,
         [](Model& model) {
             const vart::Runner& r = model.runner();
             const size_t in = r.get_tensors_info(TensorDirection::INPUT, TensorType::CPU).size(),
                          out = r.get_tensors_info(TensorDirection::OUTPUT, TensorType::CPU).size();
             return same_if(
                 in == r.get_num_input_tensors() && out == r.get_num_output_tensors() && in && out,
                 std::to_string(in) + " inputs, " + std::to_string(out) + " outputs");
         }},
        {"infos/reference", "the same reference each time", false,
         [](Model& model) {
             const vart::Runner& r = model.runner();
             const auto ask = [&] {
                 return &r.get_tensors_info(TensorDirection::INPUT, TensorType::CPU);
             };
             const auto* first = ask();
             return same_if(first == ask(), "two calls");
         }},
        {"infos/names", "names, directions and types as asked for", true,
         [both](Model& model) {
             std::set<std::pair<std::string, TensorType>> names;
             return each_tensor(model, both, [&](auto&, auto& info, auto direction, auto type) {
                 if (info.name.empty()) return std::string("has no name");
                 if (!names.insert({info.name, type}).second) return std::string("is there twice");
                 return std::string(info.direction == direction && info.tensor_type == type
                                        ? ""
                                        : "is of another view or direction");
             });
         }},
        {"infos/sizes", "size of the shape, size_in_bytes of the size", false,
         [both](Model& model) { return each_tensor(model, both, sizes); }},
        {"infos/strides", "dense, in elements", false,
         [both](Model& model) { return each_tensor(model, both, strides); }},
        {"infos/layouts", "layouts and types of RunnerType::VAIML", true,
         [both](Model& model) { return each_tensor(model, both, layouts); }},
        {"infos/addresses", "HW layouts as documented", true,
         [](Model& model) { return each_tensor(model, {TensorType::HW}, addresses); }},
        {"infos/by name", "the info of that name and view", true,
         [both](Model& model) {
             return each_tensor(model, both, [](auto& runner, auto& info, auto, auto type) {
                 const NpuTensorInfo& found = runner.get_tensor_info_by_name(info.name, type);
                 return std::string(found.shape == info.shape && found.tensor_type == type
                                        ? ""
                                        : "is another by name");
             });
         }},
        {"infos/unknown name", "std::runtime_error", true,
         [](Model& model) {
             return expect_throw<std::runtime_error>([&] {
                 model.runner().get_tensor_info_by_name("no such tensor", TensorType::CPU);
             });
         }},
        {"quantisation/scale", "above 0 where floats are integers in HW", true,
         [](Model& model) { return each_tensor(model, {TensorType::HW}, quantisation); }},
        {"quantisation/unknown name", "std::runtime_error", false,
         [](Model& model) {
             return expect_throw<std::runtime_error>(
                 [&] { model.runner().get_quant_parameters("no such tensor"); });
         }},
        {"batch/size", "1 or more", true,
         [](Model& model) {
             const size_t size = model.runner().get_batch_size();
             return same_if(size >= 1, std::to_string(size));
         }},
        {"batch/size of a direction", "as get_batch_size()", false,
         [](Model& model) {
             const auto in = batch_of(model.runner(), TensorDirection::INPUT),
                        out = batch_of(model.runner(), TensorDirection::OUTPUT);
             if (!in || !out) return refused(not_declared);
             return same_if(*in == model.runner().get_batch_size() && *out == *in,
                            std::to_string(*in) + " and " + std::to_string(*out));
         }},
        {"property/unknown", "std::invalid_argument", true,
         [](Model& model) {
             bool declared = true;
             const Seen seen = expect_throw<std::invalid_argument>(
                 [&] { declared = property(model.runner(), "no_such_property").has_value(); });
             return declared ? seen : refused(not_declared);
         }},
        {"property/supported_keys", "the keys, as strings", false,
         [](Model& model) {
             const auto value = property(model.runner(), "supported_keys");
             if (!value) return refused(not_declared);
             const auto* keys = std::any_cast<std::vector<std::string>>(&*value);
             if (!keys) return differs(value->type().name());
             std::string text;
             for (const std::string& key : *keys) text += (text.empty() ? "" : ", ") + key;
             return same(text);
         }},
        {"property/model_name", "a string", false,
         [](Model& model) {
             const auto value = property(model.runner(), "model_name");
             if (!value) return refused(not_declared);
             return same_if(value->type() == typeid(std::string), text_of_any(*value));
         }},
    };
}

}  // namespace conformance
