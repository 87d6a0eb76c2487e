// SPDX-License-Identifier: Apache-2.0
#include "lib/onnx/sort.h"

#include <functional>
#include <queue>
#include <unordered_map>

#include "lib/onnx/check.h"

namespace vartml::onnx {

std::set<std::string> reads(const pb::NodeProto& node) {
    std::set<std::string> names(node.input().begin(), node.input().end());
    names.erase("");
    for (const auto& attribute : node.attribute()) {
        if (!attribute.has_g()) continue;
        std::set<std::string> made;
        std::set<std::string> taken;
        for (const auto& input : attribute.g().input()) made.insert(input.name());
        for (const auto& tensor : attribute.g().initializer()) made.insert(tensor.name());
        for (const auto& inner : attribute.g().node()) {
            made.insert(inner.output().begin(), inner.output().end());
            taken.merge(reads(inner));
        }
        for (const auto& output : attribute.g().output()) taken.insert(output.name());
        for (const std::string& name : taken)
            if (!made.contains(name)) names.insert(name);
    }
    return names;
}

Result<std::vector<int>> sort_nodes(const std::string& file, const pb::GraphProto& graph,
                                    const std::set<std::string>& known) {
    std::unordered_map<std::string, int> producer;
    for (int i = 0; i < graph.node_size(); ++i)
        for (const std::string& output : graph.node(i).output()) {
            if (output.empty()) continue;
            if (known.contains(output) || !producer.emplace(output, i).second)
                return Error{ErrorCode::bad_model,
                             file + ": node '" + node_name(graph.node(i)) + "' makes tensor '" +
                                 output + "', which exists already; export the model again"};
        }
    std::vector<std::vector<int>> readers(static_cast<size_t>(graph.node_size()));
    std::vector<int> missing(static_cast<size_t>(graph.node_size()), 0);
    for (int i = 0; i < graph.node_size(); ++i)
        for (const std::string& name : reads(graph.node(i))) {
            const auto made = producer.find(name);
            if (made != producer.end()) {
                readers[static_cast<size_t>(made->second)].push_back(i);
                ++missing[static_cast<size_t>(i)];
            } else if (!known.contains(name)) {
                return Error{
                    ErrorCode::bad_model,
                    file + ": node '" + node_name(graph.node(i)) + "' reads tensor '" + name +
                        "', which no node, input or initialiser makes; export the model again"};
            }
        }

    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < graph.node_size(); ++i)
        if (missing[static_cast<size_t>(i)] == 0) ready.push(i);
    std::vector<int> order;
    while (!ready.empty()) {
        const int i = ready.top();
        ready.pop();
        order.push_back(i);
        for (const int reader : readers[static_cast<size_t>(i)])
            if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
    if (order.size() == missing.size()) return order;
    for (int i = 0;; ++i)
        if (missing[static_cast<size_t>(i)] != 0)
            return Error{
                ErrorCode::bad_model,
                file + ": node '" + node_name(graph.node(i)) +
                    "' stands in a cycle: it needs its own result; export the model again"};
}

}  // namespace vartml::onnx
