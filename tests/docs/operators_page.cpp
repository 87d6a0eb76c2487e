// SPDX-License-Identifier: Apache-2.0
// Prints docs/operators.md from the tables of importer, devices and kernels.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/compile/onnx/check.h"
#include "lib/compile/onnx/lower.h"
#include "lib/graph/kernel.h"
#include "lib/graph/ops.h"
#include "lib/model/target.h"

namespace vartml {
namespace {

using device::OperatorRule;
using device::Target;
using Names = std::vector<std::string>;

std::string join(const Names& words, const char* between = ", ") {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}
std::string join(const std::vector<int64_t>& numbers, const char* between) {
    Names words;
    for (const int64_t n : numbers) words.push_back(std::to_string(n));
    return join(words, between);
}

void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
}
void put_row(const Names& cells) {
    put("| " + join(cells, " | ") + " |\n");
}
void put_head(const Names& cells) {
    put("\n");
    put_row(cells);
    put_row(Names(cells.size(), "---"));
}

// ---- the NPU

// "float, int8": the classes of target.h in words.
std::string types_of(const OperatorRule& rule) {
    Names words;
    for (const char c : rule.types)
        words.push_back(c == 'f'   ? rule.only.empty() ? "float" : rule.only
                        : c == 'q' ? "8-bit"
                        : c == 'i' ? "integer"
                        : c == 'u' ? "unsigned"
                                   : "bool");
    return join(words);
}

std::string constraints_of(const OperatorRule& rule) {
    Names words;
    if (!rule.spatial.empty()) words.push_back(join(rule.spatial, "-D or ") + "-D");
    if (!rule.ranks.empty()) words.push_back("rank " + join(rule.ranks, " or "));
    for (const auto& [key, accepted] : rule.attributes)
        words.push_back(key + ' ' + join(accepted, " or "));
    if (!rule.fixed.empty()) words.push_back("constant " + join(rule.fixed));
    if (rule.foldable_only) words.push_back("only where it folds into a constant");
    return words.empty() ? "–" : join(words, "; ");
}

// Operators with the same types and constraints share a row; rows in the order of their first.
void put_rules(const std::vector<OperatorRule>& rules) {
    std::vector<std::pair<std::pair<std::string, std::string>, Names>> rows;
    for (const OperatorRule& rule : rules) {
        const std::pair key{types_of(rule), constraints_of(rule)};
        auto row = std::ranges::find(rows, key, [](const auto& r) { return r.first; });
        if (row == rows.end()) row = rows.insert(rows.end(), {key, {}});
        row->second.push_back(rule.kind);
    }
    put_head({"operators", "types", "constraints"});
    for (const auto& [key, names] : rows) put_row({join(names), key.first, key.second});
}

bool same_rules(const Target& a, const Target& b) {
    return std::ranges::equal(a.operators, b.operators,
                              [](const OperatorRule& x, const OperatorRule& y) {
                                  return x.kind == y.kind && types_of(x) == types_of(y) &&
                                         constraints_of(x) == constraints_of(y);
                              });
}

void put_npu() {
    put("\n## On the NPU\n\n"
        "A node runs on the NPU if its operator, the types of its tensors and its attributes are "
        "in "
        "a row, every shape is known at compile time and no tensor has more dimensions than the "
        "device takes. *float* is float32, float16 and bfloat16, *8-bit* int8 and uint8, *integer* "
        "int16, int32 and int64, *unsigned* uint16, uint32 and uint64; 1-D and 2-D count spatial "
        "dimensions. Two operators are ours: "
        "SiLU "
        "is x · Sigmoid(x), PictureInput what `--embed-preprocess` puts in.\n");
    std::set<const Target*> done;
    const auto targets = device::all_targets();
    for (const Target& target : targets) {
        if (done.contains(&target)) continue;
        Names names;
        for (const Target& other : targets)
            if (same_rules(target, other)) {
                names.push_back(other.device);
                done.insert(&other);
            }
        put("\nOn " + join(names) + ":\n");
        put_rules(target.operators);
    }
}

// ---- the CPU, decomposed and refused operators

bool on_every_npu(std::string_view kind) {
    return std::ranges::all_of(device::all_targets(),
                               [&](const Target& t) { return device::runs_operator(t, kind); });
}

void put_cpu() {
    Names names;
    for (const graph::OpInfo& op : graph::all_ops())
        if (cpu::find_kernel(op.kind) && !on_every_npu(op.kind)) names.emplace_back(op.kind);
    put("\n## Only in CPU partitions\n\n"
        "A CPU partition runs every operator above without the constraints: all types that ONNX "
        "gives it but strings, complex numbers and float8, up to 8 dimensions, shapes and "
        "parameters known only at run time. float64 and 4-bit integers stay inside of a partition. "
        "Besides:\n\n" +
        join(names) + ".\n");
    names.clear();
    for (const graph::OpInfo& op : graph::all_ops())
        if (!cpu::find_kernel(op.kind) && !graph::has_trait(op.kind, graph::Trait::internal))
            names.emplace_back(op.kind);
    if (!names.empty()) put("\nOnly where they fold into a constant: " + join(names) + ".\n");
}

void put_lowered() {
    std::map<std::string_view, Names> kept, decomposed;
    for (const auto& [domain, op, is_kept] : onnx::lowered_operators())
        if (!is_kept)
            decomposed[domain].emplace_back(op);
        else if (!domain.empty())
            kept[domain].emplace_back(op);
    put("\n## Taken from other domains, and taken apart\n\n"
        "The importer turns these into the operators above, or removes them.\n");
    put_head({"domain", "as they are", "taken apart"});
    for (const auto& [domain, names] : decomposed)
        put_row({domain.empty() ? "default" : std::string(domain),
                 domain.empty()          ? "all others"
                 : kept.contains(domain) ? join(kept[domain])
                                         : "–",
                 join(names)});
}

void put_refused() {
    put("\n## In ONNX Runtime\n\n"
        "All other operators that ONNX Runtime has, of sets up to " +
        std::to_string(onnx::schema_opset) +
        " and of other domains, run there, in CPU partitions with "
        "`engine onnxruntime`: control flow, and sequences, strings and optional values that stay "
        "inside, included; also forms of our operators that are none of ours (`If` whose condition "
        "is computed, Dropout in training mode). `vartml compile` and `vartml inspect` name them. "
        "The machine that runs the model needs ONNX Runtime (Debian: `libonnxruntime1.21`; "
        "`VARTML_ONNXRUNTIME` names the library where the loader does not find it); the one that "
        "compiles needs it where ONNX's shape inference does not know how large an output is. With "
        "`--no-onnxruntime`, and with a standard configuration, a node of these ends `vartml "
        "compile` with exit status 3; up to 20 nodes are named with the way out.\n");
    put_head({"class", "operators", "way out"});
    for (const onnx::RefusedClass& c : onnx::refused_classes()) {
        std::string way_out(c.way_out);
        if (const size_t at = way_out.find("{}"); at != std::string::npos)
            way_out.replace(at, 2, "…");
        put_row(
            {std::string(c.problem), join(Names(c.operators.begin(), c.operators.end())), way_out});
    }
    put("\nWithout ONNX Runtime `If` is taken where its condition is a constant, Dropout and "
        "BatchNormalization in inference mode, and an operator of another domain that is not named "
        "above is refused too: replace it with standard operators, or split the model.\n");
}

// ---- devices

// "36 MiB", "10 GB/s", "1.5 GHz", "256".
std::string figure(std::string_view key, double value) {
    struct Unit {
        std::string_view key, text;
        double scale;
    };
    constexpr Unit units[] = {{"memory_bytes", " MiB", 1 << 20},
                              {"on_chip_bytes", " MiB", 1 << 20},
                              {"bandwidth_bytes_per_second", " GB/s", 1e9},
                              {"clock_hz", " GHz", 1e9}};
    const auto* unit = std::ranges::find(units, key, &Unit::key);
    const bool plain = unit == std::end(units);
    char text[32];
    const auto end =
        std::to_chars(text, text + sizeof text, plain ? value : value / unit->scale).ptr;
    return std::string(text, end) + std::string(plain ? "" : unit->text);
}

struct Figure {
    std::string_view key, title;
    double (*of)(const Target&);
};
template <auto member>
double value_of(const Target& target) {
    return static_cast<double>(target.*member);
}
constexpr Figure figures[] = {
    {"columns", "columns, cores or quads", value_of<&Target::columns>},
    {"footprint", "of them in one program", value_of<&Target::footprint>},
    {"max_rank", "dimensions of a tensor", value_of<&Target::max_rank>},
    {"memory_bytes", "memory of one partition", value_of<&Target::memory_bytes>},
    {"on_chip_bytes", "memory on the chip, of one program", value_of<&Target::on_chip_bytes>},
    {"bandwidth_bytes_per_second", "bandwidth of the memory outside",
     value_of<&Target::bandwidth_bytes_per_second>},
    {"clock_hz", "clock", value_of<&Target::clock_hz>},
    {"macs_per_cycle", "multiply-accumulates per cycle", value_of<&Target::macs_per_cycle>},
    {"elements_per_cycle", "element-wise operations per cycle",
     value_of<&Target::elements_per_cycle>},
    {"bytes_per_cycle", "bytes of local memory per cycle", value_of<&Target::bytes_per_cycle>},
};

void put_devices() {
    const auto targets = device::all_targets();
    put("\n## Devices\n\n"
        "`--device NAME`, or `device` in a configuration. Every device gives programs that the "
        "software NPU runs, with the columns, layouts, types and limits of the device; cycles are "
        "estimates for it. The vendors' hardware cannot run them.\n");
    put_head({"device", "is"});
    for (const Target& t : targets) put_row({'`' + t.device + '`', t.title});
    put("\nThe figures below decide what fits and what the cycle estimate says, never a result. "
        "`~` marks an assumption: no public source gives the figure.\n");
    Names head{"figure"};
    for (const Target& t : targets) head.push_back(t.device);
    put_head(head);
    for (const Figure& f : figures) {
        Names row{std::string(f.title)};
        for (const Target& t : targets) {
            const bool assumed = std::ranges::find(t.assumptions, f.key) != t.assumptions.end();
            row.push_back((assumed ? "~" : "") + figure(f.key, f.of(t)));
        }
        put_row(row);
    }
    put("\nSources of the others:\n\n");
    for (const Figure& f : figures) {
        std::vector<std::pair<std::string, Names>> sources;
        for (const Target& t : targets) {
            const auto source = t.sources.find(std::string(f.key));
            if (source == t.sources.end()) continue;
            auto at =
                std::ranges::find(sources, source->second, [](const auto& s) { return s.first; });
            if (at == sources.end()) at = sources.insert(sources.end(), {source->second, {}});
            at->second.push_back(t.device);
        }
        for (const auto& [source, devices] : sources)
            put("- " + std::string(f.title) + ": " + source +
                (devices.size() == targets.size() ? "" : " (" + join(devices) + ')') + '\n');
    }
    std::map<std::string, Names> lists;
    for (const Target& t : targets) {
        Names types, layouts;
        for (const DataType type : t.types) types.emplace_back(to_string(type));
        for (const Layout layout : t.layouts) layouts.emplace_back(to_string(layout));
        lists["Types of tensors: " + join(types) + ". Layouts of HW views: " + join(layouts) + '.']
            .push_back(t.device);
    }
    for (const auto& [text, devices] : lists)
        put('\n' + (lists.size() == 1 ? "" : "On " + join(devices) + ": ") + text + '\n');
}

void put_page() {
    put("# Operators and devices\n\n"
        "<!-- Written by tests/docs/operators_page.cpp; `./dev run ninja -C build pages` writes it "
        "anew. -->\n\n"
        "Of the default domain operator sets " +
        std::to_string(onnx::min_opset) + " to " + std::to_string(onnx::max_opset) +
        " are accepted; older ones where nothing of what the model uses has changed. What of a "
        "model runs where, and why, `vartml inspect` says; the rules are in "
        "[formats.md](formats.md).\n");
    put_npu();
    put_cpu();
    put_lowered();
    put_refused();
    put_devices();
}

}  // namespace
}  // namespace vartml

int main() {
    vartml::put_page();
    return std::fflush(stdout) == 0 ? 0 : 1;
}
