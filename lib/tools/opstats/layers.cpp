// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/layers.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "lib/base/text.h"
#include "lib/tools/opstats/instances.h"
#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

constexpr uint64_t last_cycle = uint64_t{1} << 62;
constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(blanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = fault == std::errc() && stop == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
}

// A scalar without its quotes and its comment; nullopt where it is none.
std::optional<std::string> scalar(std::string_view text) {
    const size_t quote = text.empty() ? 0 : text.size() - 1;
    if (text.starts_with('"') || text.starts_with('\'')) {
        size_t end = 1;
        for (; end < text.size() && text[end] != text[0]; ++end)
            if (text[0] == '"' && text[end] == '\\') ++end;
        if (end > quote) return std::nullopt;
        const std::string_view rest = trimmed(text.substr(end + 1));
        if (!rest.empty() && !rest.starts_with('#')) return std::nullopt;
        if (text[0] == '\'') return std::string(text.substr(1, end - 1));
        const auto json = nlohmann::json::parse(text.substr(0, end + 1), nullptr, false);
        return json.is_string() ? std::optional(json.get<std::string>()) : std::nullopt;
    }
    const size_t comment = text.find(" #");
    const std::string_view plain = trimmed(text.substr(0, comment));
    constexpr std::string_view structures = "[]{}&*!|>%@`";  // YAML beyond the subset
    if (!plain.empty() && structures.find(plain[0]) != structures.npos) return std::nullopt;
    return std::string(plain);
}

class Reader {
public:
    Reader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    Result<Estimate> read() {
        for (size_t begin = 0; begin < text_.size() && !error_;) {
            const size_t end = std::min(text_.find('\n', begin), text_.size());
            ++line_;
            read_line(trimmed(text_.substr(begin, end - begin)));
            begin = end + 1;
        }
        if (!error_) finish_layer();
        if (error_) return *error_;
        std::ranges::sort(estimate_.layers, {}, &EstimateLayer::index);
        check_order();
        return std::move(estimate_);
    }

private:
    void fail(const std::string& sentence) {
        if (!error_)
            error_ = Error{ErrorCode::bad_model,
                           where_ + ": line " + std::to_string(line_) + ": " + sentence};
    }

    void read_line(std::string_view line) {
        if (line.empty() || line.starts_with('#') || line == "---" || line == "...") return;
        if (line == "{}" && !open_ && estimate_.layers.empty()) return;
        const size_t colon = line.find(':');
        const std::string_view key = trimmed(line.substr(0, colon));
        const auto value =
            colon == line.npos ? std::nullopt : scalar(trimmed(line.substr(colon + 1)));
        if (!value)
            return fail("'" + printable(line, 60) +
                        "' is not 'KEY: VALUE' with a plain or quoted value");
        if (const auto index = number(key)) return begin_layer(*index, *value);
        if (!open_)
            return fail("'" + printable(key, 60) +
                        "' stands outside of a layer; expected a number");
        take(key, *value);
    }

    void begin_layer(uint64_t index, const std::string& value) {
        finish_layer();
        if (!value.empty() && !value.starts_with('#'))
            return fail("layer " + std::to_string(index) +
                        " has a value, expected its keys on the "
                        "next lines");
        if (!indices_.insert(index).second)
            return fail("layer " + std::to_string(index) + " occurs twice");
        open_ = true;
        layer_ = {};
        layer_.index = index;
        found_.clear();
    }

    void take(std::string_view key, const std::string& value) {
        const std::string who = "layer " + std::to_string(layer_.index);
        if (!found_.emplace(key).second)
            return fail(who + " has '" + printable(key, 60) + "' twice");
        if (key == "name") {
            if (value.empty() || !is_plain_text(value))
                return fail(who + " has a name that is empty or no UTF-8 text");
            layer_.name = value;
            return;
        }
        const bool is_start = key == "start_cycle";
        if (!is_start && key != "end_cycle") {
            if (unknown_.emplace(key).second)
                estimate_.warnings.push_back(where_ + ": key '" + printable(key, 60) +
                                             "' is not known and left out");
            return;
        }
        const auto cycle = number(value);
        if (!cycle || *cycle > last_cycle)
            return fail(who + " has " + std::string(key) + " '" + printable(value, 60) +
                        "', expected a number of cycles");
        (is_start ? layer_.start_cycle : layer_.end_cycle) = *cycle;
    }

    void finish_layer() {
        if (!open_) return;
        open_ = false;
        for (const char* key : {"name", "start_cycle", "end_cycle"})
            if (!found_.contains(key))
                return fail("layer " + std::to_string(layer_.index) + " has no " + key);
        if (layer_.end_cycle < layer_.start_cycle)
            return fail("layer " + std::to_string(layer_.index) + " ends at cycle " +
                        std::to_string(layer_.end_cycle) + ", before its start at " +
                        std::to_string(layer_.start_cycle));
        estimate_.layers.push_back(layer_);
    }

    void check_order() {
        for (size_t i = 1; i < estimate_.layers.size(); ++i) {
            const EstimateLayer &a = estimate_.layers[i - 1], &b = estimate_.layers[i];
            if (b.start_cycle == a.end_cycle + 1) continue;
            const bool gap = b.start_cycle > a.end_cycle;
            estimate_.warnings.push_back(
                where_ + ": layer " + std::to_string(b.index) + " starts at cycle " +
                std::to_string(b.start_cycle) + ", layer " + std::to_string(a.index) + " ends at " +
                std::to_string(a.end_cycle) + (gap ? ": a gap" : ": an overlap"));
        }
    }

    const std::string_view text_;
    const std::string& where_;
    size_t line_ = 0;
    Estimate estimate_;
    std::optional<Error> error_;
    std::set<uint64_t> indices_;
    std::set<std::string, std::less<>> unknown_;
    bool open_ = false;  // inside a layer
    EstimateLayer layer_;
    std::set<std::string, std::less<>> found_;  // keys of the layer
};

}  // namespace

Result<Estimate> read_estimate(std::string_view text, const std::string& where) {
    return Reader(text, where).read();
}

namespace {

constexpr Column<LayerRow> columns[] = {
    {"index", &LayerRow::index},
    {"name", &LayerRow::name},
    {"partition", &LayerRow::partition},
    {"engine", &LayerRow::engine},
    {"est_cycles", &LayerRow::est_cycles},
    {"est_us", &LayerRow::est_us, 3},
    {"meas_us", &LayerRow::meas_us, 3},
    {"meas_cycles", &LayerRow::meas_cycles},
    {"error_pct", &LayerRow::error_pct, 2},
    {"est_share_pct", &LayerRow::est_share_pct, 2},
    {"meas_share_pct", &LayerRow::meas_share_pct, 2},
    {"scaled_error_pct", &LayerRow::scaled_error_pct, 2},
    {"macs", &LayerRow::macs},
    {"gops_per_s", &LayerRow::gops_per_s, 3},
    {"computed_read_kb", &LayerRow::read_kb, 2},
    {"computed_write_kb", &LayerRow::write_kb, 2},
    {"gb_per_s", &LayerRow::gb_per_s, 3},
    {"bound", &LayerRow::bound},
};
constexpr size_t max_worst = 5;

struct Row {
    std::optional<uint64_t> index, est_cycles, meas_ns;
    std::string name;
    uint32_t partition = 0, engine = 0;
    bool is_npu = true;
    uint64_t macs = 0, ops = 0, read_bytes = 0, write_bytes = 0;

    void add(const Instance& instance) {
        const Op& op = *instance.op;
        meas_ns = meas_ns.value_or(0) + instance.longest_ns;
        engine = instance.engine;
        macs += op.macs;
        ops += op.ops;
        read_bytes += op.read_bytes;
        write_bytes += op.write_bytes;
    }
    bool is_matched() const { return est_cycles && meas_ns; }
};

std::string quoted(const std::string& name) {
    if (name.find_first_of(",\"\r\n") == name.npos) return name;
    std::string text = "\"";
    for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return text + "\"";
}

std::string cell(const LayerRow& row, const Column<LayerRow>& column) {
    if (const auto* text = std::get_if<std::string LayerRow::*>(&column.cell))
        return quoted(row.**text);
    if (const auto* count = std::get_if<Count LayerRow::*>(&column.cell))
        return row.**count ? std::to_string(*(row.**count)) : "";
    const Real& value = row.*std::get<Real LayerRow::*>(column.cell);
    return value ? format_text("%.*f", column.digits, *value) : "";
}

std::optional<double> quotient(double part, double whole) {
    if (whole <= 0) return std::nullopt;
    return part / whole;
}

std::optional<double> percent(std::optional<double> value) {
    return value ? std::optional(100 * *value) : std::nullopt;
}

class Layers {
public:
    Layers(const BufferFile& file, const Descriptor& descriptor, const LayerEstimates& estimates)
        : file_(file), descriptor_(descriptor), estimates_(estimates) {}

    Result<LayersReport> run() {
        if (auto r = add_estimates(); !r) return r.error();
        if (auto r = add_operators(); !r) return r.error();
        add_sums();
        // Rows that the NPU has no part in stand last.
        for (const bool is_npu : {true, false})
            for (const Row* row : sorted_)
                if (row->is_npu == is_npu) report_.rows.push_back(row_of(*row));
        add_last_rows();
        add_worst();
        return std::move(report_);
    }

private:
    // Layers of a partition by index, behind them operators without a layer by id.
    using Key = std::tuple<uint32_t, bool, uint64_t>;

    Result<void> add_estimates();
    Result<void> add_operators();
    void add_sums();
    LayerRow row_of(const Row& row) const;
    std::string bound_of(const Row& row) const;
    void add_last_rows();
    void add_worst();

    // Of the whole batch; the cycles are of one frame.
    std::optional<double> est_us(double cycles) const {
        if (estimates_.clock_hz == 0) return std::nullopt;
        return cycles * descriptor_.batch * 1e6 / static_cast<double>(estimates_.clock_hz);
    }
    // Estimate against measurement, both in us or both scaled to the same sum.
    std::optional<double> error(const Row& row) const {
        if (!row.is_matched() || *row.meas_ns == 0) return std::nullopt;
        const auto us = est_us(static_cast<double>(*row.est_cycles));
        const double meas = static_cast<double>(*row.meas_ns) / 1000;
        return us ? std::optional(100 * (*us - meas) / meas) : std::nullopt;
    }
    std::optional<double> scaled_error(const Row& row) const {
        if (!row.is_matched() || *row.meas_ns == 0 || matched_cycles_ <= 0) return std::nullopt;
        const double meas = static_cast<double>(*row.meas_ns);
        const double est = static_cast<double>(*row.est_cycles) * (matched_ns_ / matched_cycles_);
        return 100 * (est - meas) / meas;
    }

    const BufferFile& file_;
    const Descriptor& descriptor_;
    const LayerEstimates& estimates_;
    std::map<Key, Row> rows_;
    std::vector<const Row*> sorted_;
    double all_cycles_ = 0, all_ns_ = 0, matched_cycles_ = 0, matched_ns_ = 0;
    LayersReport report_;
};

Result<void> Layers::add_estimates() {
    const std::vector<uint32_t> partitions = npu_partitions(descriptor_);
    if (partitions.size() != estimates_.of_partitions.size())
        return Error{ErrorCode::invalid_argument,
                     "--estimate: " + std::to_string(estimates_.of_partitions.size()) +
                         " files, the model has " + std::to_string(partitions.size()) +
                         " NPU partitions; give one for each, in order"};
    const auto at = std::ranges::find(descriptor_.engines, npu_engine);
    const auto npu = static_cast<uint32_t>(at - descriptor_.engines.begin());
    for (size_t i = 0; i < partitions.size(); ++i)
        for (const EstimateLayer& layer : estimates_.of_partitions[i].layers) {
            Row& row = rows_[{partitions[i], false, layer.index}];
            row.index = layer.index;
            row.name = layer.name;
            row.partition = partitions[i];
            row.est_cycles = layer.cycles();
            row.engine = npu;
        }
    return {};
}

Result<void> Layers::add_operators() {
    std::vector<GroupReader> readers = group_readers(file_, descriptor_);
    for (GroupReader& reader : readers) {
        const bool is_npu = descriptor_.engines[reader.group().engine] == npu_engine;
        Instance instance;
        while (reader.next(instance)) {
            const Op& op = *instance.op;
            if (descriptor_.is_sync(op) || descriptor_.is_barrier(op)) continue;
            auto at = rows_.end();
            if (op.layer >= 0)
                at = rows_.find({op.partition, false, static_cast<uint64_t>(op.layer)});
            if (at == rows_.end()) {
                at = rows_.try_emplace({op.partition, true, op.id}).first;
                at->second.name = op.name.empty() ? descriptor_.kind(op) : op.name;
                at->second.partition = op.partition;
                at->second.is_npu = is_npu;
            }
            at->second.add(instance);
        }
        if (auto r = reader.status(); !r) return r;
    }
    return {};
}

void Layers::add_sums() {
    for (const auto& [key, row] : rows_) {
        sorted_.push_back(&row);
        const auto cycles = static_cast<double>(row.est_cycles.value_or(0));
        const auto ns = static_cast<double>(row.meas_ns.value_or(0));
        all_cycles_ += cycles;
        all_ns_ += ns;
        if (!row.is_matched()) continue;
        matched_cycles_ += cycles;
        matched_ns_ += ns;
    }
}

std::string Layers::bound_of(const Row& row) const {
    if (row.is_npu && !row.is_matched()) return "unmatched";
    const format::Header& h = file_.header();
    if (h.peak_bytes_per_s == 0 || h.peak_ops_per_s == 0) return "";
    const double bytes = static_cast<double>(row.read_bytes) + static_cast<double>(row.write_bytes);
    return bytes / static_cast<double>(h.peak_bytes_per_s) >=
                   static_cast<double>(row.ops) / static_cast<double>(h.peak_ops_per_s)
               ? "memory"
               : "compute";
}

LayerRow Layers::row_of(const Row& row) const {
    LayerRow out;
    out.index = row.index;
    out.name = row.name;
    out.partition = descriptor_.partitions[row.partition];
    out.engine = descriptor_.engines[row.engine];
    out.bound = bound_of(row);
    if (row.est_cycles) {
        out.est_cycles = static_cast<double>(*row.est_cycles);
        out.est_us = est_us(*out.est_cycles);
        out.est_share_pct = percent(quotient(*out.est_cycles, all_cycles_));
    }
    if (!row.meas_ns) return out;
    const double ns = static_cast<double>(*row.meas_ns);
    out.meas_us = ns / 1000;
    if (estimates_.clock_hz != 0)
        out.meas_cycles = ns * static_cast<double>(estimates_.clock_hz) / 1e9;
    out.error_pct = error(row);
    out.meas_share_pct = percent(quotient(ns, all_ns_));
    out.scaled_error_pct = scaled_error(row);
    out.macs = row.macs;
    out.gops_per_s = quotient(static_cast<double>(row.ops), ns);
    out.read_kb = static_cast<double>(row.read_bytes) / 1024;
    out.write_kb = static_cast<double>(row.write_bytes) / 1024;
    const double bytes = static_cast<double>(row.read_bytes) + static_cast<double>(row.write_bytes);
    out.gb_per_s = quotient(bytes, ns);
    return out;
}

void Layers::add_last_rows() {
    const std::optional<double> us = est_us(all_cycles_);
    LayerRow total;
    total.name = "total";
    total.est_cycles = all_cycles_;
    total.est_us = us;
    total.meas_us = all_ns_ / 1000;
    if (estimates_.clock_hz != 0) {
        if (*total.meas_us > 0) total.error_pct = 100 * (*us - *total.meas_us) / *total.meas_us;
        total.meas_cycles = all_ns_ * static_cast<double>(estimates_.clock_hz) / 1e9;
    }
    report_.rows.push_back(std::move(total));
    double sum = 0, scaled_sum = 0;
    size_t count = 0, scaled_count = 0;
    for (const Row* row : sorted_) {
        if (const auto e = error(*row)) sum += std::abs(*e), ++count;
        if (const auto e = scaled_error(*row)) scaled_sum += std::abs(*e), ++scaled_count;
    }
    const auto mean = quotient(sum, static_cast<double>(count));
    const auto scaled_mean = quotient(scaled_sum, static_cast<double>(scaled_count));
    LayerRow errors;
    errors.name = "mean_abs_error";
    errors.error_pct = mean;
    errors.scaled_error_pct = scaled_mean;
    report_.rows.push_back(std::move(errors));

    if (us)
        report_.lines.push_back(
            format_text("layers: estimated %.3f us, measured %.3f us", *us, all_ns_ / 1000));
    else
        report_.lines.push_back(
            format_text("layers: estimated %.0f cycles of an unknown clock, measured %.3f us; only "
                        "shares and scaled errors compare",
                        all_cycles_, all_ns_ / 1000));
    const auto or_none = [](const std::optional<double>& value) {
        return value ? format_text("%.2f %%", *value) : std::string("N/A");
    };
    report_.lines.push_back("mean absolute error of a layer: " + or_none(mean) + ", scaled " +
                            or_none(scaled_mean));
}

void Layers::add_worst() {
    const bool is_scaled = estimates_.clock_hz == 0;
    std::vector<std::pair<double, const Row*>> errors;
    for (const Row* row : sorted_)
        if (const auto e = is_scaled ? scaled_error(*row) : error(*row))
            errors.push_back({*e, row});
    std::ranges::stable_sort(errors, std::ranges::greater{},
                             [](const auto& e) { return std::abs(e.first); });
    for (size_t i = 0; i < std::min(errors.size(), max_worst); ++i)
        report_.lines.push_back(
            "worst layer: " + descriptor_.partitions[errors[i].second->partition] + "/" +
            errors[i].second->name +
            format_text(" %+.2f %%%s", errors[i].first, is_scaled ? " scaled" : ""));
}

}  // namespace

std::span<const Column<LayerRow>> layer_columns() {
    return columns;
}

std::string csv_of(const LayersReport& report) {
    std::string csv;
    for (const auto& column : columns) csv += (csv.empty() ? "" : ",") + std::string(column.name);
    csv += '\n';
    for (const LayerRow& row : report.rows) {
        for (const auto& column : columns)
            csv += (&column == columns ? "" : ",") + cell(row, column);
        csv += '\n';
    }
    return csv;
}

std::vector<uint32_t> npu_partitions(const Descriptor& descriptor) {
    std::set<uint32_t> found;
    for (const Core& core : descriptor.cores)
        for (const Group& group : core.groups)
            if (descriptor.engines[group.engine] == npu_engine)
                for (const Op& op : group.ops) found.insert(op.partition);
    return {found.begin(), found.end()};
}

Result<LayersReport> build_layers(const BufferFile& file, const Descriptor& descriptor,
                                  const LayerEstimates& estimates) {
    const auto lacking = file.lacks(field::later_frames);
    if (!lacking) return lacking.error();
    if (*lacking)
        return Error{ErrorCode::invalid_argument,
                     file.path() +
                         ": the batch goes through the program in groups of frames, and operators "
                         "are those of the first; compile the model with --batch-size 1"};
    return Layers(file, descriptor, estimates).run();
}

}  // namespace vartml::profiling
