// SPDX-License-Identifier: Apache-2.0
#include "gst/trace/objects.h"

#include <cstdio>
#include <cstring>
#include <optional>

namespace vartml::gst::trace {
namespace {

// Where somebody holds the lock, the name is taken the next time.
std::optional<std::string> name_of(GstObject* object) {
    if (!g_mutex_trylock(GST_OBJECT_GET_LOCK(object))) return std::nullopt;
    std::string name = GST_OBJECT_NAME(object) ? GST_OBJECT_NAME(object) : "";
    g_mutex_unlock(GST_OBJECT_GET_LOCK(object));
    if (name.empty()) return std::nullopt;
    return name;
}

}  // namespace

Objects::Objects(const std::vector<std::string>& names) {
    for (const std::string& glob : names) names_.push_back(g_pattern_spec_new(glob.c_str()));
}

Objects::~Objects() {
    for (GPatternSpec* spec : names_) g_pattern_spec_free(spec);
}

ElementEntry* Objects::entry(GstElement* element) {
    ElementEntry* const entry = elements_.add(element);
    if (entry->stats.load(std::memory_order_acquire)) return entry;
    const std::lock_guard lock(mutex_);
    if (!entry->stats.load(std::memory_order_relaxed)) {
        stats_.push_back(std::make_unique<ElementStats>());
        entry->stats.store(stats_.back().get(), std::memory_order_release);
    }
    return entry;
}

void Objects::name(ElementStats& stats, const std::string& text) {
    bool is_selected = names_.empty();
    for (GPatternSpec* spec : names_)
        is_selected = is_selected || g_pattern_spec_match_string(spec, text.c_str());
    stats.name.store(TraceText::intern(text), std::memory_order_release);
    stats.is_selected.store(is_selected, std::memory_order_release);
}

// Bins and pipelines have no buffers of their own.
void Objects::add_element(GstElement* element) {
    if (!GST_IS_BIN(element)) refresh(element);
}

void Objects::refresh(GstElement* element) {
    if (GST_IS_BIN(element)) return;
    const auto text = name_of(GST_OBJECT_CAST(element));
    if (text) name(*entry(element)->stats.load(std::memory_order_acquire), *text);
}

void Objects::add_pad(GstElement* element, GstPad* pad) {
    if (GST_IS_PROXY_PAD(pad) || GST_IS_BIN(element)) return;
    const auto text = name_of(GST_OBJECT_CAST(pad));
    ElementEntry* const owner = entry(element);
    PadEntry* const known = pads_.add(pad);
    const bool is_src = GST_PAD_DIRECTION(pad) == GST_PAD_SRC;
    (is_src ? owner->srcs : owner->sinks).fetch_add(1, std::memory_order_relaxed);
    known->is_src.store(is_src, std::memory_order_relaxed);
    if (text) known->name.store(TraceText::intern(*text), std::memory_order_relaxed);
    known->element.store(owner, std::memory_order_release);
    refresh(element);
}

void Objects::remove_pad(GstPad* pad) {
    PadEntry* const known = pads_.find(pad);
    if (!known) return;
    if (ElementEntry* const owner = known->element.load(std::memory_order_acquire)) {
        const bool is_src = known->is_src.load(std::memory_order_relaxed);
        (is_src ? owner->srcs : owner->sinks).fetch_sub(1, std::memory_order_relaxed);
    }
    forget(pad);
}

void Objects::forget(gpointer object) {
    if (const PadEntry* const known = pads_.find(object)) {
        const std::lock_guard lock(mutex_);
        std::erase_if(origins_, [&](const auto& origin) { return origin.second == known; });
        handles_.erase(known);
    }
    pads_.remove(object);
    elements_.remove(object);
}

void Objects::event(GstPad* pad, GstEvent* event) {
    if (!event || GST_EVENT_TYPE(event) != GST_EVENT_STREAM_START) return;
    PadEntry* const known = pads_.find(pad);
    if (!known || !known->is_src.load(std::memory_order_relaxed)) return;
    const gchar* id = nullptr;
    gst_event_parse_stream_start(event, &id);
    if (id) start_stream(*known, id);
}

void Objects::start_stream(PadEntry& pad, const gchar* stream_id) {
    ElementEntry* const owner = pad.element.load(std::memory_order_acquire);
    if (!owner) return;
    TraceStream handle(stream_id);
    const std::lock_guard lock(mutex_);
    const auto known =
        std::ranges::find(streams_, std::string_view(stream_id),
                          [](const auto& stats) -> std::string_view { return stats->id; });
    StreamStats* stream = known == streams_.end() ? nullptr : known->get();
    if (!stream) {
        stream = streams_.emplace_back(std::make_unique<StreamStats>()).get();
        stream->id = stream_id;
    }
    stream->index.store(handle.index(), std::memory_order_relaxed);
    handles_[&pad] = std::move(handle);
    // The first that speaks of a stream is where it comes from; a file that is played again has
    // the same streams from another source.
    const PadEntry*& origin = origins_[stream];
    if (!origin || owner->is_source()) origin = &pad;
    pad.is_origin.store(origin == &pad, std::memory_order_release);
    pad.stream.store(stream, std::memory_order_release);
    owner->out_stream.store(stream, std::memory_order_release);
}

std::vector<const ElementStats*> Objects::elements() const {
    const std::lock_guard lock(mutex_);
    std::vector<const ElementStats*> all;
    for (const auto& stats : stats_) all.push_back(stats.get());
    return all;
}

std::vector<const StreamStats*> Objects::streams() const {
    const std::lock_guard lock(mutex_);
    std::vector<const StreamStats*> all;
    for (const auto& stats : streams_) all.push_back(stats.get());
    return all;
}

// ---- summary ----

namespace {

template <typename... Values>
void line(std::string& out, const char* format, Values... values) {
    char text[512];
    std::snprintf(text, sizeof text, format, values...);
    out += text;
}

// p50, p95, p99 in microseconds; N/A where nothing was measured.
void percentiles(std::string& out, const Histogram& h) {
    for (const double share : {0.50, 0.95, 0.99}) {
        if (!h.count()) {
            line(out, " %10s", "N/A");
            continue;
        }
        // Not %f: applications set locales whose decimals begin with a comma.
        const unsigned long long tenths = (h.percentile(share) + 50) / 100;
        line(out, " %8llu.%llu", tenths / 10, tenths % 10);
    }
}

}  // namespace

std::string summary_text(const Objects& objects, const HostTraceTotals& totals) {
    std::string out = "vartmltrace 1, times in us, percentiles within 3 %\n\n";
    line(out, "%-32s %9s %10s %10s %10s %10s %10s %10s\n", "element", "spans", "self p50", "p95",
         "p99", "wait p50", "p95", "p99");
    for (const ElementStats* stats : objects.elements()) {
        if (!stats->self.count() && !stats->wait.count()) continue;
        line(out, "%-32s %9llu", stats->name.load().c_str(),
             static_cast<unsigned long long>(stats->self.count()));
        percentiles(out, stats->self);
        percentiles(out, stats->wait);
        out += '\n';
    }
    line(out, "\n%-6s %9s %10s %10s %10s  %s\n", "stream", "at sinks", "time p50", "p95", "p99",
         "id");
    for (const StreamStats* stats : objects.streams()) {
        line(out, "%-6u %9llu", stats->index.load(std::memory_order_relaxed),
             static_cast<unsigned long long>(stats->frame_time.count()));
        percentiles(out, stats->frame_time);
        out += "  " + stats->id + "\n";
    }
    line(out, "\nevents: %llu written, %llu lost%s\n",
         static_cast<unsigned long long>(totals.written),
         static_cast<unsigned long long>(totals.lost),
         totals.is_full ? ", recording stopped early" : "");
    return out;
}

Result<void> write_summary(const std::string& path, const std::string& text) {
    GError* error = nullptr;
    if (g_file_set_contents_full(path.c_str(), text.data(), gssize(text.size()),
                                 G_FILE_SET_CONTENTS_CONSISTENT, 0666, &error))
        return {};
    const Error failed{ErrorCode::io, path + ": cannot write the summary: " + error->message};
    g_error_free(error);
    return failed;
}

}  // namespace vartml::gst::trace
