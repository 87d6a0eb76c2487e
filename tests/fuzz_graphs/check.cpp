// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz_graphs/check.h"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "lib/compile/compile.h"
#include "lib/model/compiled_model.h"
#include "lib/run/vart/runner.h"

namespace vartml::fuzz_graphs {
namespace {

using vart::TensorDirection;
using vart::TensorType;

constexpr int trials = 4, more_trials = 16;
// Of quantised models a bias is rounded to the unit of the sums.
constexpr double as_it_is = 1, much_wider = 8, wider_by_codes = 256;
constexpr const char* plain_loops = "plain loops";

constexpr Way all_ways[] = {
    {"level 0 f32", 0, "f32"},
    {"level 1 f32", 1, "f32"},
    {"level 2 f32", 2, "f32", true, true, 3},
    {"level 2 f32 on the CPU", 2, "f32", false},
    {"level 2 bf16", 2, "bf16"},
    {"level 0 bf16", 0, "bf16"},
};

DataType data_type(vart::DataType type) {
    return static_cast<DataType>(type);
}

Result<Values> run(const Way& way, const std::string& onnx, const Model& model,
                   const std::string& folder, bool prints_steps) {
    compiler::CompileRequest request;
    request.model = onnx;
    request.optimize_level = way.optimize_level;
    request.convert_floats = std::strcmp(way.numerics, "f32") != 0;
    request.npu = way.npu;
    request.threshold_gops_percent = 0;
    request.batch_size = way.frames;
    auto compiled = compiler::compile_in_memory(request, nullptr, nullptr);
    if (!compiled) return compiled.error();
    if (way.through_file) {
        const std::string file = folder + "/model.rai";
        if (auto written = artifact::write_rai(*compiled, file); !written) return written.error();
        compiled = artifact::read(file);
        if (!compiled) return compiled.error();
    }
    runtime::Options options;
    options.input_tensor_type = options.output_tensor_type = TensorType::CPU;
    options.numerics = way.numerics;
    options.log_level = LogLevel::error;
    auto state = runtime::prepare("model.rai", std::move(*compiled), std::move(options));
    if (!state) return state.error();
    runtime::VaimlRunner runner(std::move(*state));
    if (prints_steps)
        std::printf(
            "%s:\n%s", way.name,
            std::any_cast<std::string>(runner.get_property("vartml_internal_steps")).c_str());
    const size_t frames = runner.get_batch_size();  // fewer, where the model takes one alone
    runtime::Tensors inputs(frames), outputs(frames);
    for (size_t f = 0; f < frames; ++f) {
        for (const auto& info : runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU)) {
            inputs[f].push_back(runner.allocate_npu_tensor(info));
            const auto given = std::ranges::find(model.feed, info.name, &NamedTensor::name);
            if (given == model.feed.end() || given->data.bytes.size() != info.size_in_bytes)
                return Error{ErrorCode::internal, "input '" + info.name + "' has " +
                                                      std::to_string(info.size_in_bytes) +
                                                      " bytes, which the model's has not"};
            std::memcpy(inputs[f].back().get_virtual_address(), given->data.bytes.data(),
                        info.size_in_bytes);
        }
        for (const auto& info : runner.get_tensors_info(TensorDirection::OUTPUT, TensorType::CPU))
            outputs[f].push_back(runner.allocate_npu_tensor(info));
    }
    // The second run finds the memory used, and what a run leaves as it was must be seen.
    for (int i = 0; i < 2; ++i) {
        for (auto& frame : outputs)
            for (vart::NpuTensor& tensor : frame)
                std::memset(tensor.get_virtual_address(), 0x5a, tensor.get_info().size_in_bytes);
        if (runner.execute(inputs, outputs) != vart::StatusCode::SUCCESS)
            return Error{ErrorCode::device,
                         std::any_cast<std::string>(runner.get_property("last_error"))};
    }
    Values values;
    for (vart::NpuTensor& tensor : outputs.back()) {
        const vart::NpuTensorInfo& info = tensor.get_info();
        const auto* data = static_cast<const std::byte*>(tensor.get_virtual_address());
        values[info.name] = {data_type(info.data_type),
                             {info.shape.begin(), info.shape.end()},
                             {data, data + info.size_in_bytes}};
    }
    return values;
}

// Operators that ONNX Runtime rounds more than once: codes by tables, and a variance that is the
// difference of two means.
bool is_rough_in_onnxruntime(const Model& model) {
    static const std::set<std::string> kinds = {"QLinearSoftmax", "QLinearSigmoid",
                                                "MeanVarianceNormalization"};
    return std::ranges::any_of(model.proto.graph().node(),
                               [](const auto& node) { return kinds.contains(node.op_type()); });
}

bool has_codes(const Model& model) {
    return std::ranges::any_of(model.proto.graph().node(), [](const auto& node) {
        return node.op_type().find("Quantize") != std::string::npos;
    });
}

// Where the elements of `shape` lie in a tensor of the shape `bound`; empty where they do not fit.
std::vector<size_t> corner(const Ints& shape, const Ints& bound) {
    std::vector<size_t> at;
    if (shape.size() != bound.size()) return at;
    for (size_t a = 0; a < shape.size(); ++a)
        if (shape[a] > bound[a]) return at;
    Ints index(shape.size(), 0);
    for (int64_t i = 0, n = count_elements(shape); i < n; ++i) {
        int64_t flat = 0;
        for (size_t a = 0; a < shape.size(); ++a) flat = flat * bound[a] + index[a];
        at.push_back(static_cast<size_t>(flat));
        for (size_t a = shape.size(); a-- > 0;) {
            if (++index[a] < shape[a]) break;
            index[a] = 0;
        }
    }
    return at;
}

std::string difference(const TensorData& found, const TensorData& expected, double tolerance) {
    Ints shape = expected.shape;
    if (shape.empty() && found.shape.size() == 1) shape = {1};
    if (found.type != expected.type)
        return "is " + std::string(to_string(found.type)) + ", expected " +
               std::string(to_string(expected.type));
    const std::vector<size_t> at = corner(shape, found.shape);
    if (at.empty() && count_elements(shape) > 0)
        return "has the shape " + shape_text(found.shape) + ", expected " + shape_text(shape);
    const std::vector<double> a = all_numbers(found), b = all_numbers(expected);
    size_t worst = 0, many = 0;
    double most = 0;
    for (size_t i = 0; i < at.size(); ++i) {
        const double x = a[at[i]], y = b[i];
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double d = std::fabs(x - y);
        if (d <= tolerance) continue;
        ++many;
        if (most == 0 || d > most) most = d, worst = i;
    }
    if (many == 0) return {};
    char text[200];
    std::snprintf(text, sizeof text, "element %zu is %.9g, expected %.9g; %zu of %zu, allowed %.3g",
                  worst, a[at[worst]], b[worst], many, at.size(), tolerance);
    return text;
}

}  // namespace

std::span<const Way> ways() {
    return all_ways;
}

std::string difference(const Values& found, const Reference& expected) {
    for (const auto& [name, tolerance] : expected.tolerance) {
        const auto output = found.find(name);
        if (output == found.end()) return "output '" + name + "' is not there";
        const std::string what = difference(output->second, expected.values.at(name), tolerance);
        if (!what.empty()) return "output '" + name + "' " + what;
    }
    return {};
}

Checker::Checker(std::string folder, const verify::OnnxRuntime* ort)
    : folder_(std::move(folder)), ort_(ort) {}

std::vector<Finding> Checker::check(const Model& model, const std::string& only) {
    const std::string onnx = folder_ + "/model.onnx", scratch = folder_ + "/node.onnx";
    {
        std::ofstream file(onnx, std::ios::binary);
        model.proto.SerializeToOstream(&file);
    }
    std::vector<Finding> findings;
    auto reference = evaluate(model, scratch);
    if (!reference) return {{Verdict::refused, plain_loops, reference.error().message}};
    std::map<Precision, std::map<std::string, double>> tolerances;
    const auto use = [&](Precision precision, int count, double wider) {
        auto done = find_tolerances(model, precision, count, wider, scratch, *reference);
        return !done ? done.error().message : std::string();
    };
    const auto judge = [&](const std::string& way, Precision precision, const Values& found) {
        const auto known = tolerances.find(precision);
        if (known == tolerances.end()) {
            if (const std::string fault = use(precision, trials, as_it_is); !fault.empty())
                return findings.push_back({Verdict::unsteady, way, fault});
            tolerances[precision] = reference->tolerance;
        } else {
            reference->tolerance = known->second;
        }
        const std::string what = difference(found, *reference);
        if (what.empty()) return;
        // Does rounding decide?
        const std::string fault =
            use(precision, more_trials, has_codes(model) ? wider_by_codes : much_wider);
        const bool unsteady = !fault.empty() || difference(found, *reference).empty();
        findings.push_back({unsteady ? Verdict::unsteady : Verdict::differs, way, what});
    };
    had_onnxruntime_ = false;
    ort_sentence_.clear();
    if (ort_ && (only.empty() || only == plain_loops)) {
        auto found = ort_->run(onnx, model.feed);
        had_onnxruntime_ = static_cast<bool>(found);
        if (found && is_rough_in_onnxruntime(model))
            had_onnxruntime_ = false, ort_sentence_ = "an operator that it rounds more than once";
        else if (found)
            judge(plain_loops, Precision::f32, *found);
        else
            ort_sentence_ = found.error().message;
    }
    for (const Way& way : all_ways) {
        if (!only.empty() && only != way.name) continue;
        auto found = run(way, onnx, model, folder_, prints_steps);
        if (!found) {
            const bool internal = found.error().code == ErrorCode::internal;
            findings.push_back(
                {internal ? Verdict::differs : Verdict::refused, way.name, found.error().message});
            continue;
        }
        const bool rounds = std::strcmp(way.numerics, "f32") != 0;
        judge(way.name, rounds ? Precision::bf16 : Precision::f32, *found);
    }
    return findings;
}

}  // namespace vartml::fuzz_graphs
