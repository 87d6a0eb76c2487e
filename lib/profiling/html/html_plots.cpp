// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/profiling/html/html_charts.h"
#include "lib/profiling/html/html_text.h"
#include "lib/profiling/text_format.h"

namespace vartml::profiling {
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

}  // namespace vartml::profiling
