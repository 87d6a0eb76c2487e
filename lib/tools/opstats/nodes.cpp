// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/nodes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/tools/opstats/instances.h"
#include "lib/tools/opstats/verdict.h"

namespace vartml::profiling {
namespace {

constexpr Column<NodeRow> columns[] = {
    {"node", &NodeRow::name},
    {"operator", &NodeRow::kind},
    {"engine", &NodeRow::engine},
    {"ms", &NodeRow::ms, 3},
    {"share", &NodeRow::percent, 1, " %"},
    {"Gop/s", &NodeRow::gops_per_s, 1},
};

std::string name_of(const Op& op) {
    std::string text;
    for (const std::string& node : op.onnx_nodes) text += (text.empty() ? "" : " + ") + node;
    return text.empty() ? op.name : text;
}

struct Spent {
    const Op* op = nullptr;
    uint32_t engine = 0;
    double ns = 0, wall_ns = 0;
};

}  // namespace

std::span<const Column<NodeRow>> node_columns() {
    return columns;
}

Result<NodeTable> build_nodes(const BufferFile& file, const Descriptor& descriptor) {
    const auto verdict = verdict_of(file, descriptor);
    if (!verdict) return verdict.error();
    uint64_t begin_ns = not_captured, end_ns = 0;
    for (const auto& thread : file.threads()) {
        if (!was_run(thread) || thread.end == not_captured) continue;
        begin_ns = std::min(begin_ns, file.to_ns(thread.start));
        end_ns = std::max(end_ns, file.to_ns(thread.end));
    }
    std::map<uint32_t, Spent> spent;  // by Op::id
    auto readers = group_readers(file, descriptor);
    const auto sums = attribute(readers, descriptor, std::min(begin_ns, end_ns), end_ns,
                                [&](const Instance& i, double ns) {
                                    Spent& s = spent[i.op->id];
                                    s.op = i.op;
                                    s.engine = i.engine;
                                    s.ns += ns;
                                    s.wall_ns += static_cast<double>(i.end - i.start);
                                });
    if (!sums) return sums.error();

    NodeTable table;
    const double all_ns = std::max(verdict->round_trip_ns, verdict->device_ns);
    table.ms = all_ns / 1e6;
    table.batch = descriptor.batch;
    const auto add = [&](NodeRow row, double ns) {
        row.ms = ns / 1e6;
        if (all_ns > 0) row.percent = 100 * ns / all_ns;
        table.rows.push_back(std::move(row));
    };
    for (const auto& [id, s] : spent) {
        NodeRow row;
        row.name = name_of(*s.op);
        row.kind = descriptor.kind(*s.op);
        row.engine = descriptor.engines[s.engine];
        if (s.op->ops > 0 && s.wall_ns > 0)
            row.gops_per_s = static_cast<double>(s.op->ops) / s.wall_ns;
        add(std::move(row), s.ns);
    }
    const std::pair<const char*, double> others[] = {
        {"(conversion at the border)", sums->conversion_ns},
        {"(between operators)", verdict->device_ns - sums->work_ns - sums->conversion_ns},
        {"(on the host)", all_ns - verdict->device_ns},
    };
    for (const auto& [name, ns] : others) {
        if (ns <= 0) continue;
        NodeRow row;
        row.name = name;
        add(std::move(row), ns);
    }
    std::ranges::stable_sort(table.rows, std::ranges::greater(),
                             [](const NodeRow& row) { return *row.ms; });
    return table;
}

}  // namespace vartml::profiling
