// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/html_charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

#include "lib/tools/opstats/html_report.h"
#include "lib/tools/opstats/instances.h"
#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

constexpr size_t max_ops = 2000, max_lanes = 64;

bool is_longer(const ShownOp& a, const ShownOp& b) {
    return a.longest_ns > b.longest_ns;
}

class Longest {
public:
    void take(const Instance& instance, size_t lane) {
        ++count_;
        const ShownOp op{instance.op, lane, instance.start, instance.end, instance.longest_ns};
        if (longest_.size() == max_ops) {
            if (!is_longer(op, longest_.top())) return;
            longest_.pop();
        }
        longest_.push(op);
    }
    uint64_t count() const { return count_; }
    // In the order of lanes and time.
    std::vector<ShownOp> sorted() {
        std::vector<ShownOp> ops;
        for (; !longest_.empty(); longest_.pop()) ops.push_back(longest_.top());
        std::ranges::sort(ops, {}, [](const ShownOp& o) {
            return std::tuple(o.lane, o.start_ns, o.end_ns, o.op->id);
        });
        return ops;
    }

private:
    uint64_t count_ = 0;
    std::priority_queue<ShownOp, std::vector<ShownOp>, decltype(&is_longer)> longest_{is_longer};
};

std::string lane_name(const GroupReader& reader, const Descriptor& descriptor) {
    const uint32_t engine = reader.group().engine;
    return "core " + std::to_string(reader.core()) + " " +
           (engine < descriptor.engines.size() ? descriptor.engines[engine] : "");
}

}  // namespace

Result<ShownOps> longest_ops(const BufferFile& buffer, const Descriptor& descriptor) {
    ShownOps shown;
    shown.begin_ns = not_captured;
    for (const auto& thread : buffer.threads()) {
        if (!was_run(thread) || thread.end == not_captured) continue;
        shown.begin_ns = std::min(shown.begin_ns, buffer.to_ns(thread.start));
        shown.end_ns = std::max(shown.end_ns, buffer.to_ns(thread.end));
    }
    shown.begin_ns = std::min(shown.begin_ns, shown.end_ns);
    Longest longest;
    for (GroupReader& reader : group_readers(buffer, descriptor)) {
        if (reader.group().ops.empty()) continue;
        if (shown.lanes.size() == max_lanes) {
            ++shown.lanes_left_out;
            continue;
        }
        Instance instance;
        while (reader.next(instance))
            if (!descriptor.is_sync(*instance.op) && !descriptor.is_barrier(*instance.op))
                longest.take(instance, shown.lanes.size());
        if (auto r = reader.status(); !r) return r.error();
        shown.lanes.push_back(lane_name(reader, descriptor));
    }
    shown.count = longest.count();
    shown.ops = longest.sorted();
    return shown;
}

namespace {

// Of the roofline's drawing; letters stay readable on a phone.
constexpr double left = 46, right = 378, top = 10, bottom = 250;

// A logarithmic axis between two powers of ten.
struct Axis {
    double low = 0, high = 1;  // exponents
    double from = 0, to = 1;   // in the drawing
    double at(double value) const {
        return from + (std::log10(value) - low) / (high - low) * (to - from);
    }
};

Axis axis_of(double least, double most, double from, double to) {
    Axis axis{std::floor(std::log10(least)), std::ceil(std::log10(most)), from, to};
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    return axis;
}

struct Point {
    const ShownOp* op;
    double intensity, rate;  // operations per byte and per second
};

std::vector<Point> points_of(const ShownOps& shown) {
    std::vector<Point> points;
    for (const ShownOp& op : shown.ops) {
        const uint64_t bytes = op.op->read_bytes + op.op->write_bytes;
        if (op.op->ops == 0 || bytes == 0 || op.longest_ns == 0) continue;
        const auto ops = static_cast<double>(op.op->ops);
        points.push_back({&op, ops / static_cast<double>(bytes),
                          ops * 1e9 / static_cast<double>(op.longest_ns)});
    }
    return points;
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
    return std::string("<line class=\"") + kind + "\" x1=\"" + html_number(x1) + "\" y1=\"" +
           html_number(y1) + "\" x2=\"" + html_number(x2) + "\" y2=\"" + html_number(y2) + "\"/>\n";
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
    return "<text x=\"" + html_number(x) + "\" y=\"" + html_number(y) + "\" text-anchor=\"" +
           anchor + "\">" + text + "</text>\n";
}

// 10^exponent with a prefix, as "100 M".
std::string power_text(double exponent, double unit) {
    const double value = std::pow(10.0, exponent) / unit;
    return value >= 1 ? format_text("%.0f", value) : format_text("%g", value);
}

std::string grid(const Axis& x, const Axis& y) {
    std::string out;
    for (double e = x.low; e <= x.high; ++e) {
        const double at = x.at(std::pow(10.0, e));
        out +=
            line("grid", at, top, at, bottom) + label(at, bottom + 14, "middle", power_text(e, 1));
    }
    for (double e = y.low; e <= y.high; ++e) {
        const double at = y.at(std::pow(10.0, e));
        out +=
            line("grid", left, at, right, at) + label(left - 5, at + 4, "end", power_text(e, 1e9));
    }
    return out + label((left + right) / 2, bottom + 30, "middle", "operations per byte") +
           "<text transform=\"translate(10 130) rotate(-90)\" "
           "text-anchor=\"middle\">Gop/s</text>\n";
}

std::string roof(const Axis& x, const Axis& y, double peak_ops, double peak_bytes) {
    const double ridge = peak_ops / peak_bytes;
    const double first = std::pow(10.0, x.low), last = std::pow(10.0, x.high);
    // From where the line of the bandwidth enters the drawing.
    const double entry = std::max(first, std::pow(10.0, y.low) / peak_bytes);
    std::string out;
    if (entry < ridge)
        out += line("roof", x.at(entry), y.at(entry * peak_bytes), x.at(ridge), y.at(peak_ops));
    if (ridge < last)
        out += line("roof", x.at(std::max(ridge, first)), y.at(peak_ops), right, y.at(peak_ops));
    return out;
}

}  // namespace

std::string roofline_html(const ShownOps& shown, const Descriptor& descriptor,
                          const format::Header& header) {
    const auto points = points_of(shown);
    if (header.peak_ops_per_s == 0 || header.peak_bytes_per_s == 0)
        return "<p class=\"note\">The machine’s peaks are not in this buffer: run "
               "<code>vartml doctor --calibrate</code> before the capture.</p>\n";
    if (points.empty())
        return "<p class=\"note\">No operator with operations and bytes was captured.</p>\n";
    const auto peak_ops = static_cast<double>(header.peak_ops_per_s);
    const auto peak_bytes = static_cast<double>(header.peak_bytes_per_s);
    const auto [x0, x1] = std::ranges::minmax(points, {}, &Point::intensity);
    const auto [y0, y1] = std::ranges::minmax(points, {}, &Point::rate);
    const double ridge = peak_ops / peak_bytes;
    const Axis x =
        axis_of(std::min(x0.intensity, ridge / 2), std::max(x1.intensity, ridge * 2), left, right);
    const Axis y =
        axis_of(std::min(y0.rate, peak_ops / 2), std::max(y1.rate, peak_ops), bottom, top);
    std::string out =
        "<svg class=\"plot\" viewBox=\"0 0 400 290\" role=\"img\" aria-label=\"roofline\">\n" +
        grid(x, y) + roof(x, y, peak_ops, peak_bytes);
    size_t memory = 0;
    for (const Point& p : points) {
        const bool is_memory = p.intensity < ridge;
        memory += is_memory;
        out += std::string("<circle class=\"") + (is_memory ? "memory" : "compute") + "\" cx=\"" +
               html_number(x.at(p.intensity)) + "\" cy=\"" + html_number(y.at(p.rate)) +
               "\" r=\"3.5\"><title>" + html_name(p.op->op->name) + " · " +
               html_name(descriptor.kind(*p.op->op)) +
               format_text(" · %.2f Gop/s, %.2f op/byte, %.3f µs", p.rate / 1e9, p.intensity,
                           static_cast<double>(p.op->longest_ns) / 1000) +
               "</title></circle>\n";
    }
    out += "</svg>\n<p class=\"note\">" +
           format_text("Roof: %.2f Gop/s and %.2f GB/s, measured on this machine. ", peak_ops / 1e9,
                       peak_bytes / 1e9) +
           std::to_string(memory) + " operators under the <i class=\"memory\"></i> memory side, " +
           std::to_string(points.size() - memory) +
           " under the <i class=\"compute\"></i> compute side.</p>\n";
    return out;
}

std::string histogram_html(std::vector<double> values, const std::string& name) {
    std::erase_if(values, [](double v) { return !std::isfinite(v); });
    if (values.empty()) return {};
    std::ranges::sort(values);
    constexpr size_t bins = 48;
    const double low = values.front(), span = std::max(values.back() - low, 1e-3);
    std::vector<size_t> counts(bins);
    for (const double v : values)
        ++counts[std::min(static_cast<size_t>((v - low) / span * bins), bins - 1)];
    const auto most = static_cast<double>(std::ranges::max(counts));
    std::string out =
        "<div class=\"lane\"><svg class=\"bars\" viewBox=\"0 0 480 100\" "
        "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"histogram\">\n";
    for (size_t i = 0; i < bins; ++i) {
        if (counts[i] == 0) continue;
        const double height = std::max(static_cast<double>(counts[i]) / most * 100, 1.0);
        const double from = low + span * static_cast<double>(i) / bins;
        out += "<rect class=\"k0\" x=\"" + std::to_string(i * 10) + "\" y=\"" +
               html_number(100 - height) + "\" width=\"9\" height=\"" + html_number(height) +
               "\"><title>" +
               format_text("%zu from %.3f to %.3f µs", counts[i], from, from + span / bins) +
               "</title></rect>\n";
    }
    out += "</svg></div><div class=\"axis\">" +
           format_text("<span>%.1f</span><span>%.1f µs</span>", values.front(), values.back()) +
           "</div>\n<dl class=\"figures\">";
    const struct {
        const char* name;
        double part;
    } shares[] = {{"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};
    for (const auto& [share_name, part] : shares) {
        // Nearest rank.
        const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(values.size())));
        out += format_text("<div><dt>%s</dt><dd>%.3f µs</dd></div>", share_name,
                           values[std::max<size_t>(rank, 1) - 1]);
    }
    return out + "</dl>\n<p class=\"note\">" + std::to_string(values.size()) + " × " +
           html_text(name) + "</p>\n";
}

namespace {

// Of the drawing; it is stretched to the width of the page.
constexpr double width = 10000, least_width = 6;
constexpr size_t num_colours = 8;  // of the style; the last is for all other kinds

double us(uint64_t ns) {
    return static_cast<double>(ns) / 1000;
}

// Kinds by total time: the colours of the longest are told apart.
std::vector<uint32_t> kinds_by_time(const ShownOps& shown) {
    std::map<uint32_t, uint64_t> time;
    for (const ShownOp& op : shown.ops) time[op.op->kind] += op.longest_ns;
    std::vector<uint32_t> kinds;
    for (const auto& [kind, ns] : time) kinds.push_back(kind);
    std::ranges::stable_sort(kinds, [&](uint32_t a, uint32_t b) { return time[a] > time[b]; });
    return kinds;
}

std::string legend(const std::vector<uint32_t>& kinds, const Descriptor& descriptor) {
    std::string out = "<ul class=\"legend\">";
    for (size_t i = 0; i < std::min(kinds.size(), num_colours); ++i) {
        const bool is_rest = i + 1 == num_colours && kinds.size() > num_colours;
        out += "<li><i class=\"k" + std::to_string(i) + "\"></i>" +
               (is_rest ? "others" : html_name(descriptor.kinds[kinds[i]])) + "</li>";
    }
    return out + "</ul>\n";
}

class Lanes {
public:
    Lanes(const ShownOps& shown, const Descriptor& descriptor)
        : shown_(shown), descriptor_(descriptor), kinds_(kinds_by_time(shown)) {}

    std::string html() const {
        std::string out = legend(kinds_, descriptor_) + "<div class=\"lanes\">\n";
        size_t at = 0;
        for (size_t lane = 0; lane < shown_.lanes.size(); ++lane) {
            out += "<div class=\"lane\"><b>" + html_text(shown_.lanes[lane]) +
                   "</b><svg viewBox=\"0 0 10000 20\" preserveAspectRatio=\"none\" role=\"img\" "
                   "aria-label=\"operators of " +
                   html_text(shown_.lanes[lane]) + "\">\n";
            for (; at < shown_.ops.size() && shown_.ops[at].lane == lane; ++at)
                out += rectangle(shown_.ops[at]);
            out += "</svg></div>\n";
        }
        return out + axis() + "</div>\n";
    }

private:
    double place(uint64_t ns) const {
        const double span =
            static_cast<double>(std::max<uint64_t>(shown_.end_ns - shown_.begin_ns, 1));
        const uint64_t from = ns > shown_.begin_ns ? ns - shown_.begin_ns : 0;
        return std::min(static_cast<double>(from) / span, 1.0) * width;
    }

    std::string rectangle(const ShownOp& op) const {
        const double x = place(op.start_ns), w = std::max(place(op.end_ns) - x, least_width);
        const auto rank =
            static_cast<size_t>(std::ranges::find(kinds_, op.op->kind) - kinds_.begin());
        return "<rect class=\"k" + std::to_string(std::min(rank, num_colours - 1)) + "\" x=\"" +
               html_number(x) + "\" width=\"" + html_number(w) + "\" height=\"20\"><title>" +
               html_name(op.op->name) + " · " + html_name(descriptor_.kind(*op.op)) +
               format_text(" · %.3f µs, from %.3f µs", us(op.end_ns - op.start_ns),
                           us(op.start_ns - std::min(op.start_ns, shown_.begin_ns))) +
               "</title></rect>\n";
    }

    std::string axis() const {
        std::string out = "<div class=\"axis\">";
        const uint64_t span = shown_.end_ns - shown_.begin_ns;
        for (uint64_t quarter = 0; quarter <= 4; ++quarter)
            out += format_text("<span>%.1f%s</span>", us(span * quarter / 4),
                               quarter == 4 ? " µs" : "");
        return out + "</div>\n";
    }

    const ShownOps& shown_;
    const Descriptor& descriptor_;
    const std::vector<uint32_t> kinds_;
};

}  // namespace

std::string timeline_html(const ShownOps& shown, const Descriptor& descriptor) {
    if (shown.ops.empty()) return "<p class=\"note\">No operators were captured.</p>\n";
    std::string out = Lanes(shown, descriptor).html();

    const uint64_t left_out = shown.count - shown.ops.size();
    if (left_out > 0)
        out += "<p class=\"note\">The " + std::to_string(shown.ops.size()) +
               " longest operators; " + std::to_string(left_out) +
               " shorter ones are not drawn.</p>\n";
    if (shown.lanes_left_out > 0)
        out += "<p class=\"note\">" + std::to_string(shown.lanes_left_out) +
               " further thread groups are not drawn.</p>\n";
    return out;
}

}  // namespace vartml::profiling
