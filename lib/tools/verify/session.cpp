// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/session.h"

#include <algorithm>
#include <any>
#include <cstring>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "lib/base/convert.h"
#include "lib/graph/ops.h"

namespace vartml::verify {
namespace {

using vart::TensorDirection;
using vart::TensorType;

bool all_have_hw(const std::vector<TensorInfo>& tensors) {
    return std::ranges::all_of(tensors, [](const TensorInfo& t) { return t.hw.has_value(); });
}

Result<std::shared_ptr<vart::Runner>> make_runner(const std::string& path,
                                                  const Session::Options& options, bool hw_in,
                                                  bool hw_out) {
    std::unordered_map<std::string, std::any> values = {
        {"input_tensor_type", std::string(hw_in ? "HW" : "CPU")},
        {"output_tensor_type", std::string(hw_out ? "HW" : "CPU")},
        {"log_level", std::string("ERROR")},
        {"name", std::string("verify")},
        {"vartml_numerics", options.numerics},
    };
    if (!options.device.empty()) values["vartml_device"] = options.device;
    try {
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path, values);
    } catch (const std::invalid_argument& e) {
        return Error{ErrorCode::invalid_argument, e.what()};
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model, e.what()};
    }
}

}  // namespace

Result<Session> Session::open(const std::string& path, const Options& options) {
    auto description = open_model(path);
    if (!description) return description.error();
    Session session;
    session.description_ = std::move(*description);
    session.hw_in_ = !options.cpu_views && all_have_hw(session.inputs());
    session.hw_out_ = !options.cpu_views && all_have_hw(session.outputs());
    auto runner = make_runner(path, options, session.hw_in_, session.hw_out_);
    if (!runner) return runner.error();
    session.runner_ = std::move(*runner);
    const vart::Runner& r = *session.runner_;
    const auto model = artifact::read(path);
    if (!model) return model.error();
    for (const TensorInfo& output : session.outputs()) {
        session.compute_types_.push_back(verify::computed_type(r, output.name));
        session.steps_.push_back(step_of(*model, r, output.name));
    }
    session.in_.resize(1);
    session.out_.resize(1);
    const auto type = [](bool hw) { return hw ? TensorType::HW : TensorType::CPU; };
    for (const auto& info : r.get_tensors_info(TensorDirection::INPUT, type(session.hw_in_)))
        session.in_[0].push_back(r.allocate_npu_tensor(info));
    for (const auto& info : r.get_tensors_info(TensorDirection::OUTPUT, type(session.hw_out_)))
        session.out_[0].push_back(r.allocate_npu_tensor(info));
    return session;
}

const TensorView& Session::input_view(size_t i) const {
    return hw_in_ ? *inputs()[i].hw : inputs()[i].cpu;
}

const TensorView& Session::output_view(size_t i) const {
    return hw_out_ ? *outputs()[i].hw : outputs()[i].cpu;
}

Tolerance Session::tolerance_of_output(size_t i, std::optional<double> limit) const {
    return tolerance_of(outputs()[i].cpu.data_type, compute_types_[i], steps_[i], limit);
}

std::optional<double> Session::step(size_t i) const {
    return is_float(outputs()[i].cpu.data_type) ? steps_[i] : std::nullopt;
}

std::string Session::compute_type() const {
    return std::any_cast<std::string>(runner_->get_property("compute_type"));
}

Result<Buffer> Session::to_input(size_t i, const Buffer& cpu) const {
    const TensorView& view = input_view(i);
    if (cpu.size() != inputs()[i].cpu.size_bytes)
        return Error{ErrorCode::invalid_argument,
                     "input '" + inputs()[i].name + "' gets " + std::to_string(cpu.size()) +
                         " bytes, expected " + std::to_string(inputs()[i].cpu.size_bytes)};
    auto conversion = Conversion::create(inputs()[i].cpu, view);
    if (!conversion) return conversion.error();
    Buffer buffer(view.size_bytes);
    conversion->run(cpu.data(), buffer.data());
    return buffer;
}

Result<std::vector<Buffer>> Session::run(const std::vector<Buffer>& inputs) {
    for (size_t i = 0; i < in_[0].size(); ++i) {
        const size_t size = in_[0][i].get_info().size_in_bytes;
        if (i >= inputs.size() || inputs[i].size() != size)
            return Error{ErrorCode::invalid_argument,
                         "input '" + this->inputs()[i].name + "' gets " +
                             std::to_string(i < inputs.size() ? inputs[i].size() : 0) +
                             " bytes, expected " + std::to_string(size)};
        if (size != 0) std::memcpy(in_[0][i].get_virtual_address(), inputs[i].data(), size);
    }
    if (runner_->execute(in_, out_) != vart::StatusCode::SUCCESS)
        return Error{ErrorCode::device,
                     std::any_cast<std::string>(runner_->get_property("last_error"))};
    std::vector<Buffer> outputs;
    for (vart::NpuTensor& tensor : out_[0]) {
        Buffer& bytes = outputs.emplace_back(tensor.get_info().size_in_bytes);
        if (!bytes.empty()) std::memcpy(bytes.data(), tensor.get_virtual_address(), bytes.size());
    }
    return outputs;
}

namespace {

// Scale of the dequantise that made an output, seen through operators that only move elements.
std::optional<double> last_dequantise(const graph::Graph& graph, const std::string& output) {
    using graph::Trait;
    const auto found = std::ranges::find_if(
        graph.outputs, [&](graph::ValueId id) { return graph.value(id).name == output; });
    if (found == graph.outputs.end()) return std::nullopt;
    const graph::Uses uses = graph::find_uses(graph);
    graph::ValueId value = *found;
    for (;;) {
        const int32_t index = uses.producer[static_cast<size_t>(value)];
        if (index < 0) return std::nullopt;
        const graph::Node& node = graph.nodes[static_cast<size_t>(index)];
        if (node.kind == "DequantizeLinear" && node.inputs.size() > 1) {
            const graph::ValueId scale = node.inputs[1];
            if (scale == graph::none || !graph.value(scale).constant) return std::nullopt;
            const auto scales = graph.value(scale).constant->as<float>();
            if (graph.value(scale).type.data_type != DataType::float32 || scales.empty())
                return std::nullopt;
            return *std::ranges::max_element(scales);
        }
        if (!has_trait(node, Trait::reshapes | Trait::permutes | Trait::picks)) return std::nullopt;
        value = node.inputs[0];
    }
}

}  // namespace

std::optional<double> step_of(const artifact::CompiledModel& model, const vart::Runner& runner,
                              const std::string& output) {
    const auto& quant = runner.get_quant_parameters(output);
    if (quant.rounding_mode != vart::RoundingMode::UNKNOWN) return quant.scale;
    for (const auto& partition : model.partitions)
        if (const auto step = last_dequantise(partition.graph, output)) return step;
    return std::nullopt;
}

std::string computed_type(const vart::Runner& runner, const std::string& output) {
    const auto narrow = [](vart::DataType type) {
        return type == vart::DataType::BF16 ? "bf16" : type == vart::DataType::FP16 ? "fp16" : "";
    };
    for (const auto& info :
         runner.get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::HW))
        if (*narrow(info.data_type)) return narrow(info.data_type);
    for (const auto& info :
         runner.get_tensors_info(vart::TensorDirection::OUTPUT, vart::TensorType::HW))
        if (info.name == output && *narrow(info.data_type)) return narrow(info.data_type);
    return std::any_cast<std::string>(runner.get_property("compute_type"));
}

}  // namespace vartml::verify
