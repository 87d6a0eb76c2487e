// SPDX-License-Identifier: Apache-2.0
// Lowers and runs whatever text is a graph, as a program of another compiler may have it: borders
// are as long as their views, so that a step which reads or writes beside them is seen.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "lib/graph/text.h"
#include "lib/graph/verify.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/fuzz/bytes.h"
#include "tests/run/softnpu_cases.h"
#include "tests/support/run_once.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr int64_t most_elements = 1
                                  << 15;  // ours: of all tensors, so that a run takes milliseconds

bool is_small(const graph::Graph& graph) {
    int64_t elements = 0;
    for (const graph::Value& value : graph.values) {
        if (value.type.elements() > most_elements) return false;
        elements += value.type.elements();
    }
    // The runtime hands over no tensors without elements.
    const auto is_empty = [&](graph::ValueId id) { return graph.value(id).type.elements() == 0; };
    return elements <= most_elements && std::ranges::none_of(graph.inputs, is_empty) &&
           std::ranges::none_of(graph.outputs, is_empty);
}

// Pictures in the views that the compiler chooses where `of_device`, else as they are.
TensorInfo border(const graph::Value& value, bool of_device) {
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
    if (shape.empty()) shape = {1};
    const DataType type = value.type.data_type;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
    if (shape.size() != 4 || !of_device) {
        const TensorView cpu = make_view(type, Layout::GENERIC, shape, order);
        return {value.name, cpu, hw_view(cpu, Layout::GENERIC, type), value.data_dependent, {}};
    }
    const TensorView cpu = make_view(type, Layout::NCHW, shape, {});
    const Layout hw = shape[0] > 1 || shape[1] == 1 ? Layout::NHWC
                      : shape[1] <= 4               ? Layout::HCWNC4
                                                    : Layout::HCWNC8;
    return {value.name, cpu, hw_view(cpu, hw, type), value.data_dependent, {}};
}

void load_and_run(const graph::Graph& graph, device::Numerics numerics, bool of_device) {
    auto program = std::make_shared<device::Program>();
    program->name = "fuzz";
    program->target = "softnpu-1";
    program->graph = graph;
    std::mt19937 random(1);
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const auto id : graph.inputs) {
        program->inputs.push_back(border(graph.value(id), of_device));
        auto& bytes = memory.emplace_back(program->inputs.back().hw->size_bytes);
        std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
        inputs.push_back(bytes.data());
    }
    for (const auto id : graph.outputs) {
        program->outputs.push_back(border(graph.value(id), of_device));
        outputs.push_back(memory.emplace_back(program->outputs.back().hw->size_bytes).data());
    }
    auto executable = device::softnpu_device().load(program, {.numerics = numerics, .threads = 1});
    check_refusal(executable);
    if (executable) check_refusal(run_once(**executable, inputs, outputs));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    size_t i = 0;
    for (const GraphCase& c : graphs_of_floats) seed("floats" + std::to_string(i++), c.text);
    for (const GraphCase& c : graphs_of_codes) seed("codes" + std::to_string(i++), c.text);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto graph = graph::parse(as_text(data, size));
    if (!graph || !graph::verify(*graph) || !is_small(*graph)) return 0;
    load_and_run(*graph, size % 2 ? device::Numerics::bf16 : device::Numerics::f32, size % 4 < 2);
    return 0;
}
