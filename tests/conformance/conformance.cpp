// SPDX-License-Identifier: Apache-2.0
// The node tests of ONNX itself, and models with stored outputs, through what a user does: compile,
// write a .rai, open a runner, execute, compare. Each case runs twice: as the compiler places it,
// and with everything in CPU partitions.
//
// usage: conformance [--list FILE] [--foreign-list FILE] [--update] [--only TEXT] [--models FOLDER]
//   --list FILE     cases that must pass; one that does not fails the run
//   --foreign-list FILE  the same for cases outside of our operators, which ONNX Runtime computes;
//                   they are skipped where VARTML_ONNXRUNTIME_CHILD names no program
//   --update        writes the lists anew; cases whose data are not installed stay in them
//   --only TEXT     cases whose name contains it
//   --models FOLDER also FOLDER/*/model.onnx with test_data_set_*
// Ends with `N passed, N failed, N skipped`. Skipped is only what names an operator or a type of an
// input or output outside of the lists of the compiled format, and does not pass by ONNX Runtime.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/compile/compile.h"
#include "lib/compile/onnx/lower.h"
#include "lib/compile/onnx/model_file.h"
#include "lib/graph/ops.h"
#include "lib/run/vart/runner.h"
#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using runtime::Tensors;
using vart::TensorDirection;
using vart::TensorType;

struct Case {
    std::string name;
    fs::path model, data;
    std::map<std::string, std::vector<int64_t>> shapes;
    std::vector<std::string> inputs = {};  // names, in the order of the file
    // Node tests: those of ONNX's backend test suite. Models: of the range of the output.
    double relative = 1e-3, absolute = 1e-7, of_range = 0;
    // The makers of the node tests cut bf16 off where ONNX rounds.
    static constexpr double bf16_step = 1.0 / 128;
};

enum class Outcome { passed, passed_foreign, failed, skipped };
struct Verdict {
    Outcome outcome;
    std::string why;
};

// ---- what is outside of the lists

std::string unclaimed_operator(const ::onnx::GraphProto& graph) {
    for (const auto& node : graph.node()) {
        const std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
        if (domain.empty() && node.op_type() == "If") return "operator If (control flow)";
        if (domain.empty() && node.op_type() == "Dropout" && node.input_size() > 2)
            return "operator Dropout in training mode";
        if (!onnx::can_lower(domain, node.op_type()) && !graph::find_op(node.op_type()))
            return "operator " + (domain.empty() ? "" : domain + "::") + node.op_type();
    }
    return {};
}

std::string unclaimed_type(const ::onnx::GraphProto& graph) {
    for (const auto* infos : {&graph.input(), &graph.output()})
        for (const auto& info : *infos) {
            if (!info.type().has_tensor_type()) return "tensor '" + info.name() + "' is no tensor";
            const int32_t type = info.type().tensor_type().elem_type();
            const DataType own = onnx::data_type(type);
            const bool packed =
                type == ::onnx::TensorProto::INT4 || type == ::onnx::TensorProto::UINT4;
            if (own == DataType::unknown || own == DataType::float64 || packed)
                return "tensor '" + info.name() + "' of type " + onnx::elem_type_name(type);
        }
    return {};
}

struct Outside {
    std::string op, type;  // what is, or ""
};
Outside outside_of_the_lists(const fs::path& model) {
    ::onnx::ModelProto proto;
    std::ifstream file(model, std::ios::binary);
    if (!proto.ParseFromIstream(&file)) return {"", "the file is no model"};
    return {proto.functions_size() ? "" : unclaimed_operator(proto.graph()),
            unclaimed_type(proto.graph())};
}

bool has_onnxruntime() {
    return std::getenv("VARTML_ONNXRUNTIME_CHILD") != nullptr;
}

// ---- run and compare

struct Data {
    std::vector<int64_t> dims;
    std::vector<std::byte> raw;
};

std::vector<Data> tensors(const fs::path& folder, const char* stem) {
    std::vector<Data> result;
    for (int i = 0;; ++i) {
        const fs::path file = folder / (stem + std::to_string(i) + ".pb");
        if (!fs::exists(file)) return result;
        auto tensor = onnx::read_tensor_file(file.string());
        Data& data = result.emplace_back();
        if (!tensor) continue;
        data.dims = tensor->type.shape;
        const auto bytes = tensor->constant.bytes;
        data.raw.assign(bytes.begin(), bytes.end());
    }
}

std::optional<double> number(vart::DataType type, const std::byte* at) {
    const auto as = [&]<typename T>(T value) {
        std::memcpy(&value, at, sizeof value);
        return static_cast<double>(value);
    };
    switch (type) {
        case vart::DataType::BOOLEAN:
        case vart::DataType::UINT8:
            return as(uint8_t());
        case vart::DataType::INT8:
            return as(int8_t());
        case vart::DataType::UINT16:
            return as(uint16_t());
        case vart::DataType::INT16:
            return as(int16_t());
        case vart::DataType::BF16: {
            uint16_t bits = 0;
            std::memcpy(&bits, at, sizeof bits);
            return std::bit_cast<float>(uint32_t{bits} << 16);
        }
        case vart::DataType::FP16:
            return as(_Float16());
        case vart::DataType::INT32:
            return as(int32_t());
        case vart::DataType::UINT32:
            return as(uint32_t());
        case vart::DataType::FLOAT32:
            return as(float());
        case vart::DataType::INT64:
            return as(int64_t());
        case vart::DataType::UINT64:
            return as(uint64_t());
        default:
            return std::nullopt;
    }
}

size_t element_bytes(const vart::NpuTensorInfo& info) {
    return info.size_in_bytes / std::max<size_t>(info.size, 1);
}

bool is_float(vart::DataType type) {
    return type == vart::DataType::FLOAT32 || type == vart::DataType::FP16 ||
           type == vart::DataType::BF16;
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (const int64_t d : shape) text += (text.size() > 1 ? "," : "") + std::to_string(d);
    return text + "]";
}

// The expected elements lie in the corner of the found tensor, whose shape is an upper bound; what
// is around them is filled.
std::string compare(const Case& c, vart::NpuTensor& found, const Data& expected) {
    const vart::NpuTensorInfo& info = found.get_info();
    std::vector<int64_t> shape(info.shape.begin(), info.shape.end()), dims = expected.dims;
    if (dims.empty()) dims = {1};
    if (shape.size() != dims.size())
        return "has the shape " + shape_text(shape) + ", expected " + shape_text(dims);
    size_t elements = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] > shape[i])
            return "has the shape " + shape_text(shape) + ", expected " + shape_text(dims);
        elements *= static_cast<size_t>(dims[i]);
    }
    const size_t size = element_bytes(info);
    if (elements * size != expected.raw.size())
        return "has elements of " + std::to_string(size) + " bytes, expected " +
               std::to_string(expected.raw.size()) + " bytes in all";
    const auto* data = static_cast<const std::byte*>(found.get_virtual_address());
    const auto* wanted = expected.raw.data();
    double range = 0;
    for (size_t i = 0; i < elements; ++i) {
        const auto b = number(info.data_type, wanted + i * size);
        if (b && std::isfinite(*b)) range = std::max(range, std::fabs(*b));
    }
    std::vector<int64_t> index(dims.size(), 0);
    for (size_t i = 0; i < elements; ++i) {
        size_t at = 0;
        for (size_t k = 0; k < dims.size(); ++k)
            at = at * static_cast<size_t>(shape[k]) + static_cast<size_t>(index[k]);
        const auto a = number(info.data_type, data + at * size);
        const auto b = number(info.data_type, wanted + i * size);
        if (!a || !b) return "has a type that cannot be compared";
        const bool same = *a == *b || (std::isnan(*a) && std::isnan(*b));
        const double relative =
            info.data_type == vart::DataType::BF16 ? Case::bf16_step : c.relative;
        const double tolerance = is_float(info.data_type)
                                     ? c.absolute + relative * std::fabs(*b) + c.of_range * range
                                     : 0;
        if (!same && !(std::fabs(*a - *b) <= tolerance))
            return "element " + std::to_string(i) + " is " + std::to_string(*a) + ", expected " +
                   std::to_string(*b);
        for (size_t k = dims.size(); k-- > 0;) {
            if (++index[k] < dims[k]) break;
            index[k] = 0;
        }
    }
    return {};
}

std::string run_compiled(const Case& c, const std::string& rai) {
    auto model = artifact::read(rai);
    if (!model) return model.error().message;
    runtime::Options options;
    options.input_tensor_type = options.output_tensor_type = TensorType::CPU;
    options.numerics = "f32";
    options.log_level = LogLevel::error;
    auto state = runtime::prepare(rai, std::move(*model), std::move(options));
    if (!state) return state.error().message;
    runtime::VaimlRunner runner(std::move(*state));
    const auto given = tensors(c.data, "input_");
    const auto expected = tensors(c.data, "output_");
    Tensors inputs(1), outputs(1);
    for (const auto& info : runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU)) {
        inputs[0].push_back(runner.allocate_npu_tensor(info));
        // The data are in the order of the model's inputs; those without elements are gone.
        const auto at = std::ranges::find(c.inputs, info.name) - c.inputs.begin();
        const auto i = static_cast<size_t>(at);
        if (i >= given.size()) return "its data has no input_" + std::to_string(i);
        if (given[i].raw.size() != info.size_in_bytes)
            return "input '" + info.name + "' has " + std::to_string(info.size_in_bytes) +
                   " bytes, its data " + std::to_string(given[i].raw.size());
        std::memcpy(inputs[0].back().get_virtual_address(), given[i].raw.data(),
                    info.size_in_bytes);
    }
    for (const auto& info : runner.get_tensors_info(TensorDirection::OUTPUT, TensorType::CPU))
        outputs[0].push_back(runner.allocate_npu_tensor(info));
    if (runner.execute(inputs, outputs) != vart::StatusCode::SUCCESS)
        return std::any_cast<std::string>(runner.get_property("last_error"));
    if (expected.size() < outputs[0].size()) return "its data has too few outputs";
    for (size_t i = 0; i < outputs[0].size(); ++i) {
        const std::string why = compare(c, outputs[0][i], expected[i]);
        if (!why.empty()) return "output '" + outputs[0][i].get_info().name + "' " + why;
    }
    return {};
}

// Names of the inputs that are no initialisers; for a model, the scale of the DequantizeLinear that
// makes its output, if one does: one step of an int8 model.
void read_model(Case& c) {
    ::onnx::ModelProto proto;
    std::ifstream file(c.model, std::ios::binary);
    if (!proto.ParseFromIstream(&file)) return;
    std::set<std::string> initialisers;
    for (const auto& tensor : proto.graph().initializer()) initialisers.insert(tensor.name());
    for (const auto& input : proto.graph().input())
        if (!initialisers.contains(input.name())) c.inputs.push_back(input.name());
    if (c.of_range == 0) return;
    for (const auto& node : proto.graph().node()) {
        if (node.op_type() != "DequantizeLinear" ||
            node.output(0) != proto.graph().output(0).name())
            continue;
        for (const auto& tensor : proto.graph().initializer())
            if (tensor.name() == node.input(1)) {
                float step = tensor.float_data_size() ? tensor.float_data(0) : 0;
                if (tensor.raw_data().size() == sizeof step)
                    std::memcpy(&step, tensor.raw_data().data(), sizeof step);
                c.absolute = step * 1.01;
            }
    }
}

Verdict run_own_case(const Case& c, const std::string& scratch) {
    for (const bool npu : {true, false}) {
        compiler::CompileRequest request;
        request.model = c.model.string();
        request.input_shapes = c.shapes;
        request.convert_floats = false;
        request.npu = npu;
        const std::string where = npu ? "" : "on the CPU: ";
        const auto model = compiler::compile_in_memory(request, nullptr, nullptr);
        if (!model) return {Outcome::failed, where + model.error().message};
        if (auto written = artifact::write_rai(*model, scratch); !written)
            return {Outcome::failed, where + written.error().message};
        if (const std::string why = run_compiled(c, scratch); !why.empty())
            return {Outcome::failed, where + why};
    }
    return {Outcome::passed, {}};
}

Verdict run_case(Case c, const std::string& scratch) {
    read_model(c);
    const Outside outside = outside_of_the_lists(c.model);
    if (!outside.type.empty()) return {Outcome::skipped, outside.type};
    if (outside.op.empty()) return run_own_case(c, scratch);
    if (!has_onnxruntime()) return {Outcome::skipped, outside.op};
    c.of_range = 1e-5;  // ONNX Runtime's own sums
    Verdict verdict = run_own_case(c, scratch);
    verdict.outcome =
        verdict.outcome == Outcome::passed ? Outcome::passed_foreign : Outcome::skipped;
    return verdict;
}

// ---- cases

std::vector<Case> node_tests() {
    const fs::path root = "/usr/share/libonnx-testdata/data/node";
    std::vector<Case> cases;
    if (!fs::is_directory(root)) {
        std::printf("%s is not installed (Debian package libonnx-testdata)\n", root.c_str());
        return cases;
    }
    for (const fs::path& folder : std::set<fs::path>(fs::directory_iterator(root), {}))
        cases.push_back(
            {folder.filename().string(), folder / "model.onnx", folder / "test_data_set_0", {}});
    return cases;
}

std::vector<Case> models(const fs::path& root) {
    const std::map<std::string, std::map<std::string, std::vector<int64_t>>> shapes = {
        {"ppocr_cls", {{"x", {1, 3, 48, 192}}}}, {"bodypix_s8", {{"input", {1, 241, 321, 3}}}}};
    std::vector<Case> cases;
    if (root.empty() || !fs::is_directory(root)) return cases;
    for (const fs::path& folder : std::set<fs::path>(fs::directory_iterator(root), {}))
        for (int i = 0;; ++i) {
            const fs::path data = folder / ("test_data_set_" + std::to_string(i));
            if (!fs::is_directory(data)) break;
            const std::string name = folder.filename().string();
            Case c{"model/" + name + "/" + std::to_string(i), folder / "model.onnx", data, {}};
            if (const auto found = shapes.find(name); found != shapes.end())
                c.shapes = found->second;
            c.relative = 0;
            c.of_range = 1e-4;
            cases.push_back(std::move(c));
        }
    return cases;
}

// The operator of a node test, for the table of failures: "test_max_uint8" tests Max.
std::string main_operator(const fs::path& model) {
    ::onnx::ModelProto proto;
    std::ifstream file(model, std::ios::binary);
    if (!proto.ParseFromIstream(&file) || proto.graph().node_size() == 0) return "?";
    return proto.graph().node_size() > 3 ? "several" : proto.graph().node(0).op_type();
}

std::set<std::string> read_list(const std::string& file) {
    std::set<std::string> names;
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
        if (!line.empty() && line[0] != '#') names.insert(line);
    return names;
}

int main_program(int argc, char** argv) {
    std::string list, foreign_list, only, models_folder;
    bool update = false;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--update") update = true;
        if (arg == "--list" && i + 1 < argc) list = argv[++i];
        if (arg == "--foreign-list" && i + 1 < argc) foreign_list = argv[++i];
        if (arg == "--only" && i + 1 < argc) only = argv[++i];
        if (arg == "--models" && i + 1 < argc) models_folder = argv[++i];
    }
    test::TempDir temp;
    std::vector<Case> cases = node_tests();
    const auto more = models(models_folder);
    cases.insert(cases.end(), more.begin(), more.end());
    std::map<Outcome, int> counts;
    std::map<std::string, std::vector<std::string>> failures;  // by operator
    std::set<std::string> passed, passed_foreign;
    std::vector<std::string> skipped;
    for (const Case& c : cases) {
        if (c.name.find(only) == std::string::npos) continue;
        const Verdict verdict = run_case(c, temp / "model.rai");
        ++counts[verdict.outcome];
        if (verdict.outcome == Outcome::passed) passed.insert(c.name);
        if (verdict.outcome == Outcome::passed_foreign) passed_foreign.insert(c.name);
        if (verdict.outcome == Outcome::skipped) skipped.push_back(c.name + ": " + verdict.why);
        if (verdict.outcome == Outcome::failed)
            failures[main_operator(c.model)].push_back(c.name + ": " + verdict.why);
    }
    for (const auto& [op, lines] : failures) {
        std::printf("%s (%zu)\n", op.c_str(), lines.size());
        for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
    }
    if (!only.empty() || update)
        for (const std::string& line : skipped) std::printf("skipped %s\n", line.c_str());
    int status = 0;
    const auto check = [&](const std::string& file, std::set<std::string> good) {
        for (const std::string& name : read_list(file)) {
            const bool is_there = std::ranges::find(cases, name, &Case::name) != cases.end();
            if (!is_there) good.insert(name);  // its data is not installed: of another ONNX
            if (update || good.contains(name) || name.find(only) == std::string::npos) continue;
            std::printf("%s is in %s and does not pass\n", name.c_str(), file.c_str());
            status = 1;
        }
        if (!update || file.empty()) return;
        std::ofstream stream(file);
        stream << "# Cases of ./dev conformance that pass; --update writes this file.\n";
        for (const std::string& name : good) stream << name << '\n';
    };
    check(list, passed);
    if (has_onnxruntime()) check(foreign_list, passed_foreign);
    std::printf("%d passed, %d failed, %d skipped\n",
                counts[Outcome::passed] + counts[Outcome::passed_foreign], counts[Outcome::failed],
                counts[Outcome::skipped]);
    return status;
}

}  // namespace
}  // namespace vartml

int main(int argc, char** argv) {
    return vartml::main_program(argc, argv);
}
