// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "lib/profiling/html/html_charts.h"
#include "lib/profiling/html/html_text.h"
#include "lib/profiling/text_format.h"

namespace vartml::profiling {
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
