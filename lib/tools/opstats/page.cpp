// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/page.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/tools/opstats/instances.h"
#include "lib/trace/part_file.h"

namespace vartml::profiling {
namespace {

// What each part may take, so that the page stays within 8 MiB whatever the model.
constexpr size_t max_operators_bytes = size_t{1} << 20, max_layers_bytes = size_t{5} << 19,
                 max_summary_bytes = size_t{1} << 20, max_list_bytes = size_t{1} << 18;
constexpr size_t max_line_bytes = 2000, max_name_bytes = 160;
constexpr size_t max_ops = 2000, max_lanes = 64, max_pairs = 12;

constexpr Column<SummaryRow> operator_columns[] = {
    {"core", &SummaryRow::core},
    {"operators", &SummaryRow::details},
    {"ucycles", &SummaryRow::ucycles},
    {"ucycles(%)", &SummaryRow::ucycles_percent, 2, "%"},
    {"pcycles", &SummaryRow::pcycles},
    {"pcycles(%)", &SummaryRow::pcycles_percent, 2, "%"},
    {"count", &SummaryRow::count},
    {"out KB", &SummaryRow::out_kb, 2},
    {"ucycles/KB", &SummaryRow::ucycles_per_kb, 2},
    {"pcycles/KB", &SummaryRow::pcycles_per_kb, 2},
    {"stddev(pc/KB)", &SummaryRow::deviation, 2},
};

struct ShownOp {
    const Op* op = nullptr;
    size_t lane = 0;
    uint64_t start_ns = 0, end_ns = 0;
    uint64_t longest_ns = 0;  // on one thread
};

bool is_longer(const ShownOp& a, const ShownOp& b) {
    return a.longest_ns > b.longest_ns;
}

// The longest operators of an inference, in the order of lanes and time; waits are not among them.
struct Timeline {
    std::vector<std::string> lanes;  // a thread group each
    std::vector<ShownOp> ops;
    uint64_t ops_left_out = 0, lanes_left_out = 0;
    uint64_t begin_ns = not_captured, end_ns = 0;
};

Result<Timeline> timeline_of(const BufferFile& buffer, const Descriptor& descriptor) {
    Timeline t;
    for (const auto& thread : buffer.threads()) {
        if (!was_run(thread) || thread.end == not_captured) continue;
        t.begin_ns = std::min(t.begin_ns, buffer.to_ns(thread.start));
        t.end_ns = std::max(t.end_ns, buffer.to_ns(thread.end));
    }
    t.begin_ns = std::min(t.begin_ns, t.end_ns);
    std::priority_queue<ShownOp, std::vector<ShownOp>, decltype(&is_longer)> longest{is_longer};
    for (GroupReader& reader : group_readers(buffer, descriptor)) {
        if (reader.group().ops.empty()) continue;
        if (t.lanes.size() == max_lanes) {
            ++t.lanes_left_out;
            continue;
        }
        Instance i;
        while (reader.next(i)) {
            if (descriptor.is_sync(*i.op) || descriptor.is_barrier(*i.op)) continue;
            longest.push({i.op, t.lanes.size(), i.start, i.end, i.longest_ns});
            if (longest.size() <= max_ops) continue;
            longest.pop();
            ++t.ops_left_out;
        }
        if (auto r = reader.status(); !r) return r.error();
        t.lanes.push_back("core " + std::to_string(reader.core()) + " " +
                          descriptor.engines[reader.group().engine]);
    }
    for (; !longest.empty(); longest.pop()) t.ops.push_back(longest.top());
    std::ranges::sort(t.ops, {}, [](const ShownOp& o) {
        return std::tuple(o.lane, o.start_ns, o.end_ns, o.op->id);
    });
    return t;
}

double us(uint64_t ns) {
    return static_cast<double>(ns) / 1000;
}

// The text, or as much of it as takes `max_bytes` in JSON, and "…".
std::string shortened(std::string_view text, size_t max_bytes) {
    const auto size_of = [](char c) -> size_t {
        const bool is_number = c == '<' || (c >= 0 && c < ' ' && c != '\n' && c != '\t');
        return is_number ? 6 : c == '"' || c == '\\' || c == '\n' || c == '\t' ? 2 : 1;
    };
    size_t bytes = 0, at = 0;
    while (at < text.size() && (bytes += size_of(text[at])) <= max_bytes) ++at;
    if (at == text.size()) return std::string(text);
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
    return std::string(text.substr(0, at)) + "…";
}

// The figures of the page.
class PageJson {
public:
    PageJson(const BufferFile& buffer, const Descriptor& descriptor, const PageParts& parts)
        : header_(buffer.header()), descriptor_(descriptor), parts_(parts) {}

    std::string of(const Timeline& timeline) {
        json_.open('{');
        add_head();
        if (parts_.nodes) add_nodes(*parts_.nodes);
        add_notes();
        add_verdict();
        add_table<SummaryRow>("operators", operator_columns, operator_rows(), max_operators_bytes);
        add_table<LayerRow>("layers", layer_columns(), parts_.layers, max_layers_bytes);
        add_pairs();
        add_timeline(timeline);
        if (!parts_.round_trips_us.empty()) add_latency();
        text("summary", shortened(text_of(parts_.summary), max_summary_bytes));
        json_.close('}');
        return std::move(out_);
    }

private:
    // Inside of a script, where "</script" would end it.
    void text(std::string_view value) {
        size_t at = out_.size();
        json_.value(value);
        while ((at = out_.find('<', at)) != out_.npos) out_.replace(at, 1, "\\u003c");
    }
    void text(std::string_view key, std::string_view value) {
        json_.key(key);
        text(value);
    }
    void name(std::string_view key, std::string_view value) {
        text(key, shortened(value, max_name_bytes));
    }
    void number(const Real& value, int digits) {
        value ? json_.fixed(*value, digits) : json_.null();
    }
    void number(std::string_view key, const Real& value, int digits) {
        json_.key(key);
        number(value, digits);
    }

    void add_head();
    void add_nodes(const NodeTable& nodes);
    void add_notes();
    void add_verdict();
    std::vector<SummaryRow> operator_rows() const;
    template <typename Row>
    void add_table(const char* key, std::span<const Column<Row>> columns, std::span<const Row> rows,
                   size_t max_bytes);
    void add_pairs();
    void add_timeline(const Timeline& timeline);
    void add_latency();

    const format::Header& header_;
    const Descriptor& descriptor_;
    const PageParts& parts_;
    std::string out_;
    JsonText json_{out_};
};

void PageJson::add_head() {
    name("network", descriptor_.network);
    json_.member("inference", header_.inference_index);
    json_.member("program", header_.program_index);
    json_.member("activation", header_.activation_index);
    json_.member("device", header_.device_index);
    json_.member("compiled_level", header_.compiled_level);
    json_.member("captured_level", header_.captured_level);
    const SummaryText& s = parts_.summary;
    const auto figure = [&](const char* key, const Real& value, const char* unit) {
        json_.open('[');
        json_.value(key);
        value ? json_.value(*value) : json_.null();
        json_.value(unit);
        json_.close(']');
    };
    json_.key("figures");
    json_.open('[');
    figure("inferences per second", s.inferences_per_s, "device");
    figure("batches per second", s.batches_per_s, "device");
    figure("inference", static_cast<double>(s.total_ucycles), "ucycles");
    if (s.has_waits) figure("longest input wait", s.max_input_wait, "ucycles");
    json_.close(']');
    json_.key("peaks");
    json_.open('{');
    json_.member("ops_per_s", header_.peak_ops_per_s);
    json_.member("bytes_per_s", header_.peak_bytes_per_s);
    json_.close('}');
    if (parts_.verdict.lacks_frames) json_.member("lacks_frames", 1);
}

void PageJson::add_nodes(const NodeTable& nodes) {
    add_table<NodeRow>("nodes", node_columns(), nodes.rows, max_operators_bytes);
    json_.key("nodes_of");
    json_.open('{');
    number("ms", nodes.ms, 3);
    json_.member("inferences", nodes.inferences);
    json_.member("batch", nodes.batch);
    json_.close('}');
}

// The verdict's are drawn from its numbers, and the first only names the form.
void PageJson::add_notes() {
    size_t left_out = 0;
    for (const bool is_missing : {false, true}) {
        json_.key(is_missing ? "missing" : "notes");
        json_.open('[');
        const size_t begin = out_.size();
        for (const Note& note : parts_.summary.notes) {
            const bool has_place = note.key.empty() || note.key.starts_with("verdict");
            if (has_place || (note.key == "not captured") != is_missing) continue;
            if (out_.size() - begin > max_list_bytes) {
                ++left_out;
                continue;
            }
            if (!is_missing) {
                json_.open('[');
                text(note.key);
            }
            text(shortened(note.text, max_line_bytes));
            if (!is_missing) json_.close(']');
        }
        json_.close(']');
    }
    json_.member("notes_left_out", left_out);
}

void PageJson::add_verdict() {
    const Verdict& v = parts_.verdict;
    const auto share = [&](const char* key, const Real& value) {
        json_.open('[');
        json_.value(key);
        number(value, 2);
        json_.close(']');
    };
    json_.key("verdict");
    json_.open('{');
    text("sentence", shortened(v.sentence, max_line_bytes));
    json_.key("shares");
    json_.open('[');
    share("compute", v.shares.compute);
    share("memory", v.shares.memory);
    share("overhead", v.shares.overhead);
    share("host", v.shares.host);
    if (v.shares.device) share("device", v.shares.device);
    json_.close(']');
    json_.key("top");
    json_.open('[');
    for (const TopOperator& t : v.top) {
        json_.open('{');
        text("name", shortened(t.name, max_line_bytes));
        number("us", t.us, 1);
        number("percent", t.percent, 1);
        text("bound", t.bound);
        text("unit", t.unit);
        number("rate", t.rate, 1);
        number("peak", t.peak, 1);
        json_.close('}');
    }
    json_.close(']');
    json_.key("hints");
    json_.open('[');
    for (const std::string& hint : v.hints) text(shortened(hint, max_line_bytes));
    json_.close(']');
    json_.close('}');
}

std::vector<SummaryRow> PageJson::operator_rows() const {
    std::vector<SummaryRow> rows;
    for (const SummaryCore& core : parts_.summary.cores)
        rows.insert(rows.end(), core.rows.begin(), core.rows.end());
    return rows;
}

// Columns are [name], or [name, digits, unit] of numbers.
template <typename Row>
void PageJson::add_table(const char* key, std::span<const Column<Row>> columns,
                         std::span<const Row> rows, size_t max_bytes) {
    json_.key(key);
    json_.open('{');
    json_.key("columns");
    json_.open('[');
    for (const Column<Row>& column : columns) {
        json_.open('[');
        json_.value(column.name);
        if (!std::holds_alternative<std::string Row::*>(column.cell)) {
            json_.value(column.digits);
            json_.value(column.unit);
        }
        json_.close(']');
    }
    json_.close(']');
    json_.key("rows");
    json_.open('[');
    const size_t begin = out_.size();
    size_t left_out = 0;
    struct Cell {
        PageJson& page;
        int digits;
        void operator()(const std::string& v) { page.text(shortened(v, max_name_bytes)); }
        void operator()(const Real& v) { page.number(v, digits); }
        void operator()(const Count& v) { v ? page.json_.value(*v) : page.json_.null(); }
        void operator()(uint64_t v) { page.json_.value(v); }
    };
    for (const Row& row : rows) {
        if (out_.size() - begin > max_bytes) {
            ++left_out;
            continue;
        }
        json_.open('[');
        for (const Column<Row>& column : columns)
            std::visit([&](auto member) { Cell{*this, column.digits}(row.*member); }, column.cell);
        json_.close(']');
    }
    json_.close(']');
    json_.member("left_out", left_out);
    json_.close('}');
}

// Shares of the longest layers.
void PageJson::add_pairs() {
    std::vector<const LayerRow*> rows;
    for (const LayerRow& row : parts_.layers)
        if (row.est_share_pct && row.meas_share_pct && !row.name.empty()) rows.push_back(&row);
    std::ranges::stable_sort(rows, std::ranges::greater{},
                             [](const LayerRow* row) { return *row->meas_share_pct; });
    rows.resize(std::min(rows.size(), max_pairs));
    json_.key("pairs");
    json_.open('[');
    for (const LayerRow* row : rows) {
        json_.open('[');
        text(shortened(row->name, max_name_bytes));
        number(row->est_share_pct, 2);
        number(row->meas_share_pct, 2);
        json_.close(']');
    }
    json_.close(']');
}

void PageJson::add_timeline(const Timeline& t) {
    json_.key("timeline");
    json_.open('{');
    number("span_us", us(t.end_ns - t.begin_ns), 3);
    json_.key("lanes");
    json_.open('[');
    for (const std::string& lane : t.lanes) text(lane);
    json_.close(']');
    json_.key("ops");
    json_.open('[');
    for (const ShownOp& shown : t.ops) {
        const Op& op = *shown.op;
        json_.open('{');
        json_.member("lane", shown.lane);
        name("name", op.name);
        name("kind", descriptor_.kind(op));
        number("start_us", us(shown.start_ns - std::min(shown.start_ns, t.begin_ns)), 3);
        number("us", us(shown.end_ns - shown.start_ns), 3);
        number("longest_us", us(shown.longest_ns), 3);
        json_.member("ops", op.ops);
        json_.member("bytes", op.read_bytes + op.write_bytes);
        json_.close('}');
    }
    json_.close(']');
    json_.member("ops_left_out", t.ops_left_out);
    json_.member("lanes_left_out", t.lanes_left_out);
    json_.close('}');
}

void PageJson::add_latency() {
    std::vector<double> values(parts_.round_trips_us.begin(), parts_.round_trips_us.end());
    std::ranges::sort(values);
    std::vector<size_t> bins(48);
    const double low = values.front(), span = std::max(values.back() - low, 1e-3);
    const auto size = static_cast<double>(bins.size());
    for (const double v : values)
        ++bins[std::min(static_cast<size_t>((v - low) / span * size), bins.size() - 1)];
    json_.key("latency");
    json_.open('{');
    json_.member("count", values.size());
    number("low", low, 3);
    json_.member("bin_us", span / size);
    json_.list("bins", bins);
    json_.key("ranks");
    json_.open('[');
    const std::pair<const char*, double> shares[] = {
        {"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
    for (const auto& [rank_name, part] : shares) {
        // Nearest rank.
        const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(values.size())));
        json_.open('[');
        json_.value(rank_name);
        number(values[std::max<size_t>(rank, 1) - 1], 3);
        json_.close(']');
    }
    json_.close(']');
    json_.close('}');
}

}  // namespace

Result<void> write_page(const BufferFile& buffer, const Descriptor& descriptor,
                        const PageParts& parts, const std::string& path) {
    const auto timeline = timeline_of(buffer, descriptor);
    if (!timeline) return timeline.error();
    constexpr std::string_view place = "@DATA@";
    const std::string_view page = page_files().front().text;
    const size_t at = page.find(place);
    auto file = PartFile::create(path);
    if (!file) return file.error();
    file->write(page.substr(0, at));
    file->write(PageJson(buffer, descriptor, parts).of(*timeline));
    file->write(page.substr(at + place.size()));
    return file->commit();
}

}  // namespace vartml::profiling
