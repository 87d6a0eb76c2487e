// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/map_outputs.h"

#include <algorithm>

#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {

Result<MapOutputs> map_outputs(const std::string& path) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    const pb::GraphProto& graph = file->proto().graph();
    MapOutputs maps;
    for (const pb::NodeProto& node : graph.node()) {
        if (node.op_type() != "ZipMap" || node.input_size() != 1 || node.output_size() != 1)
            continue;
        const std::string& numbers = node.input(0);
        maps.numbers[node.output(0)] = numbers;
        const bool is_output =
            std::ranges::any_of(graph.output(), [&](const auto& o) { return o.name() == numbers; });
        if (!is_output && std::ranges::find(maps.inside, numbers) == maps.inside.end())
            maps.inside.push_back(numbers);
    }
    return maps;
}

}  // namespace vartml::onnx
