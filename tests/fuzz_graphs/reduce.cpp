// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz_graphs/reduce.h"

namespace vartml::fuzz_graphs {
namespace {

std::vector<std::string> results(const Model& model) {
    std::vector<std::string> names;
    for (const auto& node : model.proto.graph().node())
        for (const std::string& name : node.output())
            if (!name.empty()) names.push_back(name);
    return names;
}

std::vector<std::string> outputs(const Model& model) {
    std::vector<std::string> names;
    for (const auto& output : model.proto.graph().output()) names.push_back(output.name());
    return names;
}

}  // namespace

Model reduce(const Model& model, const Values& values,
             const std::function<bool(const Model&)>& has_fault) {
    Model best = model;
    const auto keep = [&](const Model& part) {
        if (part.feed.empty() || part.proto.graph().node_size() == 0 || !has_fault(part))
            return false;
        best = part;
        return true;
    };
    bool changed = true;
    while (changed) {
        changed = false;
        const int nodes = best.proto.graph().node_size();
        // The first tensor that is wrong, alone.
        for (const std::string& name : results(best)) {
            const std::vector<std::string> now = outputs(best);
            if (now.size() == 1 && now[0] == name) break;
            if (keep(part_of(best, {name}, {}, values))) break;
        }
        // What comes before, from the end of the graph on: the largest part goes first.
        const std::vector<std::string> names = results(best);
        for (size_t i = names.size(); i-- > 0;) {
            const Model part = part_of(best, outputs(best), {names[i]}, values);
            if (part.proto.graph().node_size() < best.proto.graph().node_size()) keep(part);
        }
        // Single outputs, where several are needed.
        for (const std::string& name : outputs(best)) {
            std::vector<std::string> others = outputs(best);
            if (others.size() == 1) break;
            std::erase(others, name);
            keep(part_of(best, others, {}, values));
        }
        changed = best.proto.graph().node_size() < nodes;
    }
    return best;
}

}  // namespace vartml::fuzz_graphs
