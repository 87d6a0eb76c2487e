// SPDX-License-Identifier: Apache-2.0
#include "gst/join/joint.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "gst/support/in_place.h"
#include "gst/support/tensor_caps.h"

namespace vartml::gst {
namespace {

// ours: of pictures that tell no rate
constexpr GstClockTime unknown_tolerance = GST_SECOND / 60;

double display_aspect(int width, int height, int par_n, int par_d) {
    return double(width) * par_n / (double(height) * par_d);
}

}  // namespace

GstClockTime running_time(const JoinBranch& branch, GstClockTime pts, GstClockTime duration) {
    if (!GST_CLOCK_TIME_IS_VALID(pts) || branch.segment.format != GST_FORMAT_TIME)
        return GST_CLOCK_TIME_NONE;
    if (!GST_CLOCK_TIME_IS_VALID(duration)) duration = branch.frame_duration;
    guint64 begin = pts;
    if (GST_CLOCK_TIME_IS_VALID(duration))
        gst_segment_clip(&branch.segment, GST_FORMAT_TIME, pts, pts + duration, &begin, nullptr);
    return gst_segment_to_running_time(&branch.segment, GST_FORMAT_TIME, begin);
}

GstClockTime tolerance_of(const Joint& joint) {
    if (GST_CLOCK_TIME_IS_VALID(joint.settings.tolerance)) return joint.settings.tolerance;
    const GstClockTime half = GST_CLOCK_TIME_IS_VALID(joint.main.frame_duration)
                                  ? joint.main.frame_duration / 2
                                  : unknown_tolerance;
    // It is compared with running times, in which a frame that is played faster is shorter.
    return GstClockTime(double(half) / std::abs(joint.main.segment.rate));
}

bool has_metadata(const Joint& joint, GstClockTime time) {
    return joint.meta.at_end() ||
           (GST_CLOCK_TIME_IS_VALID(joint.meta.position) && joint.meta.position >= time);
}

bool may_run_ahead(const Joint& joint) {
    return !joint.matcher.full() || is_wanted(joint) || joint.live || !joint.settings.sync ||
           joint.main.at_end() || joint.main.ended || joint.main.untimed || joint.main.flushing;
}

bool is_wanted(const Joint& joint) {
    return GST_CLOCK_TIME_IS_VALID(joint.wanted) && !has_metadata(joint, joint.wanted);
}

std::optional<Placement> geometry_of(const Joint& joint, const Matcher::Kept& kept) {
    Placement g{kept.width, kept.height, joint.main.width, joint.main.height};
    g.width = g.main_width, g.height = g.main_height;
    if (joint.region ? joint.region->width == 0 : joint.meta.tensors) return g;
    if (joint.region) {
        g.x = joint.region->x, g.y = joint.region->y;
        g.width = joint.region->width, g.height = joint.region->height;
        return g;
    }
    const double main =
        display_aspect(g.main_width, g.main_height, joint.main.par_n, joint.main.par_d);
    const double meta = display_aspect(kept.width, kept.height, kept.par_n, kept.par_d);
    if (std::abs(main / meta - 1) > 0.01) return std::nullopt;
    return g;
}

std::optional<Matcher::Kept> find_metadata(Joint& joint, GstClockTime time, bool& warn,
                                           GstClockTime& distance, GstClockTime& tolerance) {
    const std::lock_guard lock(joint.mutex);
    ++joint.counts.frames;
    tolerance = tolerance_of(joint);
    std::optional<Matcher::Kept> kept;
    distance = GST_CLOCK_TIME_NONE;
    if (GST_CLOCK_TIME_IS_VALID(time)) {
        kept = joint.matcher.match(time, tolerance, distance);
        joint.matcher.prune(time, tolerance);
        joint.main.position = time;
    }
    joint.main.untimed = !GST_CLOCK_TIME_IS_VALID(time);
    joint.changed.notify_all();
    ++(kept ? joint.counts.matched : joint.counts.unmatched);
    joint.unmatched_in_a_row = kept ? 0 : joint.unmatched_in_a_row + 1;
    warn = joint.seen_metadata && !joint.unmatched_warned &&
           joint.unmatched_in_a_row >= unmatched_to_warn;
    joint.unmatched_warned = !kept && (joint.unmatched_warned || warn);
    return kept;
}

bool read_caps(JoinBranch& branch, GstCaps* caps) {
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    const std::string_view type = gst_structure_get_name(s);
    if ((!type.starts_with("video/") && type != tensor_media_type) ||
        !gst_structure_get_int(s, "width", &branch.width) ||
        !gst_structure_get_int(s, "height", &branch.height)) {
        return false;
    }
    const auto tensor = tensor_frame(caps);
    branch.tensors = tensor && *tensor;
    branch.par_n = branch.par_d = 1;
    gst_structure_get_fraction(s, "pixel-aspect-ratio", &branch.par_n, &branch.par_d);
    gint n = 0, d = 0;
    const bool rate = gst_structure_get_fraction(s, "framerate", &n, &d) && n > 0 && d > 0;
    branch.frame_duration =
        rate ? gst_util_uint64_scale_int(GST_SECOND, d, n) : GST_CLOCK_TIME_NONE;
    return true;
}

bool parse_region(const std::string& text, std::optional<Placement>& region) {
    region.reset();
    if (text.empty()) return true;
    if (text == "whole") {
        region.emplace();
        return true;
    }
    double numbers[4];
    const auto parts = split_list(text);
    if (parts.size() != 4) return false;
    for (size_t i = 0; i < 4; ++i) {
        gchar* end = nullptr;
        numbers[i] = g_ascii_strtod(parts[i].c_str(), &end);
        if (*end || !std::isfinite(numbers[i])) return false;
    }
    if (numbers[2] <= 0 || numbers[3] <= 0) return false;
    region.emplace();
    region->x = numbers[0], region->y = numbers[1];
    region->width = numbers[2], region->height = numbers[3];
    return true;
}

void follow(Joint& joint, JoinBranch& branch, GstEvent* event) {
    switch (GST_EVENT_TYPE(event)) {
        case GST_EVENT_STREAM_START:
            branch.restart();
            break;
        case GST_EVENT_SEGMENT: {
            gst_event_copy_segment(event, &branch.segment);
            branch.ended = branch.segment_done = false;
            const guint32 seek = gst_event_get_seqnum(event);
            if (seek != branch.seek) ++branch.seeks;
            branch.seek = seek;
            // What the other has done was of the seek before: it gets a segment of this one, too.
            // Where each is sought on its own, the other may be as far already.
            JoinBranch& other = &branch == &joint.main ? joint.meta : joint.main;
            if (other.seek == seek)
                branch.seeks = other.seeks;
            else if (other.seeks < branch.seeks)
                other.segment_done = false;
            break;
        }
        case GST_EVENT_SEGMENT_DONE:
            branch.segment_done = true;
            break;
        case GST_EVENT_EOS:
            branch.eos = true;
            break;
        case GST_EVENT_FLUSH_START:
            branch.flushing = true;
            break;
        case GST_EVENT_FLUSH_STOP:
            branch.flushing = false;
            branch.restart();
            gst_segment_init(&branch.segment, GST_FORMAT_TIME);
            if (&branch == &joint.meta) joint.matcher.clear();
            break;
        case GST_EVENT_GAP: {
            GstClockTime time, duration;
            gst_event_parse_gap(event, &time, &duration);
            const bool lasts = GST_CLOCK_TIME_IS_VALID(duration) && duration > 0;
            guint64 first = time, end = lasts ? time + duration : time;
            if (branch.segment.format != GST_FORMAT_TIME ||
                (lasts &&
                 !gst_segment_clip(&branch.segment, GST_FORMAT_TIME, first, end, &first, &end)))
                break;
            // The frame that begins where a gap ends is not in it. Backwards its end comes first.
            const guint64 last = end > first ? end - 1 : end;
            const GstClockTime running = gst_segment_to_running_time(
                &branch.segment, GST_FORMAT_TIME, branch.segment.rate < 0 ? first : last);
            if (!GST_CLOCK_TIME_IS_VALID(running)) break;
            branch.position = running;
            // No picture comes there that could have what is older.
            if (&branch == &joint.main) joint.matcher.prune(running, tolerance_of(joint));
            break;
        }
        default:
            break;
    }
    joint.changed.notify_all();
}

namespace {

GstClockTime apart(GstClockTime a, GstClockTime b) {
    return a > b ? a - b : b - a;
}

}  // namespace

void Matcher::add(Kept kept) {
    if (full()) kept_.pop_front();
    kept_.push_back(std::move(kept));
}

std::optional<Matcher::Kept> Matcher::match(GstClockTime time, GstClockTime tolerance,
                                            GstClockTime& distance) const {
    const Kept* best = nullptr;
    distance = GST_CLOCK_TIME_NONE;
    for (const Kept& kept : kept_) {
        const GstClockTime d = apart(kept.time, time);
        if (best && (d > distance || (d == distance && kept.time >= best->time))) continue;
        best = &kept;
        distance = d;
    }
    if (!best || distance > tolerance) return std::nullopt;
    return *best;
}

void Matcher::prune(GstClockTime time, GstClockTime tolerance) {
    if (time < tolerance) return;
    std::erase_if(kept_, [&](const Kept& kept) { return kept.time < time - tolerance; });
}

}  // namespace vartml::gst
