// SPDX-License-Identifier: Apache-2.0
#include "gst/source/keeper.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "gst/source/gate.h"
#include "gst/support/error.h"

namespace vartml::gst {
namespace {

GST_DEBUG_CATEGORY_STATIC(source_log);

// A camera that locks an account after wrong passwords is not asked often; nor is one whose
// pictures nothing here can read.
constexpr unsigned first_slow_ms = 1000, most_slow_ms = 30000, first_fast_ms = 100;

// A camera that sends data of which no picture comes is one that cannot be read.
constexpr unsigned timeouts_to_first_frame = 6;

Cause cause_of(const GError& error, bool had_frames) {
    if (g_error_matches(&error, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_AUTHORIZED))
        return Cause::refused;
    if (error.domain == GST_STREAM_ERROR && !had_frames &&
        (error.code == GST_STREAM_ERROR_CODEC_NOT_FOUND ||
         error.code == GST_STREAM_ERROR_TYPE_NOT_FOUND ||
         error.code == GST_STREAM_ERROR_WRONG_TYPE ||
         error.code == GST_STREAM_ERROR_NOT_IMPLEMENTED))
        return Cause::unreadable;
    return Cause::lost;
}

// Whether decodebin found no decoder for sound, and nothing else to decode. It looks for pictures
// alone, and names what it left in a line each.
bool has_only_sound(std::string_view debug) {
    constexpr std::string_view before = "no suitable plugins found:\n";
    const size_t begin = debug.find(before);
    if (begin == debug.npos) return false;
    bool any = false;
    for (std::string_view rest = debug.substr(begin + before.size()); !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (line.empty()) continue;
        if (line.find("(audio/") == line.npos) return false;
        any = true;
    }
    return any;
}

// The message, and the last line of what only developers are shown: it has the reason.
std::string sentence_of(const GError& error, const char* debug) {
    if (debug && has_only_sound(debug)) return "there is no picture in it, only sound";
    std::string text = error.message;
    while (!text.empty() && (text.back() == '.' || text.back() == '\n')) text.pop_back();
    std::string detail = debug ? debug : "";
    while (!detail.empty() && detail.back() == '\n') detail.pop_back();
    const size_t line = detail.rfind('\n');
    if (line == detail.npos) return text;
    detail.erase(0, line + 1);
    while (!detail.empty() && detail.back() == '.') detail.pop_back();
    return detail.empty() ? text : text + " (" + detail + ")";
}

ErrorCode code_of(Cause cause) {
    switch (cause) {
        case Cause::silent:
            return ErrorCode::timeout;
        case Cause::refused:
            return ErrorCode::invalid_argument;
        case Cause::unreadable:
            return ErrorCode::unsupported;
        default:
            return ErrorCode::io;
    }
}

}  // namespace

unsigned retry_delay_ms(Cause cause, unsigned n, unsigned most_ms, double chance) {
    const bool slow = cause == Cause::refused || cause == Cause::unreadable;
    const unsigned first = slow ? first_slow_ms : first_fast_ms;
    const unsigned most = slow ? std::max(most_slow_ms, most_ms) : most_ms;
    const uint64_t delay = std::min<uint64_t>(uint64_t(first) << std::min(n - 1, 20u), most);
    // Cameras that were lost together do not come back together.
    return unsigned(double(delay) * (0.5 + chance / 2));
}

Keeper::Keeper(GstElement* element, GstElement* gate)
    : element_(element), gate_(gate), sink_(gst_element_get_static_pad(gate, "sink")) {
    static gsize once = 0;
    if (g_once_init_enter(&once)) {
        GST_DEBUG_CATEGORY_GET(source_log, "vartmlsrc");
        g_once_init_leave(&once, gsize(1));
    }
}

Keeper::~Keeper() {
    request_stop();
    join();
    gst_object_unref(sink_);
}

void Keeper::start(const SourceSettings& settings, Address address) {
    join();
    settings_ = settings;
    session_settings_ = {std::move(address), settings.latency_ms, settings.timeout_ms};
    {
        const std::lock_guard lock(mutex_);
        target_ = GST_STATE_PAUSED;
        runs_ = true;
        stop_ = finish_ = false;
        status_ = {};
        reason_.clear();
        posted_reason_.clear();
        status_.shown = session_settings_.address.shown;
        outage_us_ = g_get_monotonic_time();
    }
    GateEvents events;
    events.frame = [this](bool first) {
        if (first) frame_came();
    };
    events.end = [this] {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        changed_.notify_all();
    };
    events.refused = [this](GstFlowReturn flow) {
        const std::lock_guard lock(mutex_);
        refused_ = flow;
        changed_.notify_all();
    };
    events.idle = [this] {
        const std::lock_guard lock(mutex_);
        changed_.notify_all();
    };
    gate_start(gate_, session_settings_.address.live(), settings.at_end == AtEnd::repeat,
               settings.latency_ms * GST_MSECOND, std::move(events));
    thread_ = std::thread([this] {
        pthread_setname_np(pthread_self(), "vartml-src");
        run();
    });
}

void Keeper::set_state(GstState state) {
    const std::lock_guard lock(mutex_);
    target_ = state;
    changed_.notify_all();
}

bool Keeper::finish() {
    const std::lock_guard lock(mutex_);
    finish_ = true;
    changed_.notify_all();
    return runs_;
}

bool Keeper::is_finishing() const {
    const std::lock_guard lock(mutex_);
    return finish_;
}

bool Keeper::is_stopping() const {
    const std::lock_guard lock(mutex_);
    return stop_;
}

void Keeper::request_stop() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
}

void Keeper::join() {
    if (thread_.joinable()) thread_.join();
    const std::lock_guard lock(mutex_);
    runs_ = false;
}

SourceStatus Keeper::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

bool Keeper::handle(GstMessage* message) {
    switch (GST_MESSAGE_TYPE(message)) {
        case GST_MESSAGE_ERROR: {
            GError* error = nullptr;
            gchar* debug = nullptr;
            gst_message_parse_error(message, &error, &debug);
            const std::string reason = session_settings_.address.scrub(sentence_of(*error, debug));
            GST_CAT_INFO_OBJECT(source_log, element_, "error: %s", reason.c_str());
            {
                const std::lock_guard lock(mutex_);
                if (cause_ == Cause::none) {
                    cause_ = cause_of(*error, playing_);
                    reason_ = reason;
                }
                changed_.notify_all();
            }
            g_clear_error(&error);
            g_free(debug);
            return true;
        }
        case GST_MESSAGE_LATENCY:
        case GST_MESSAGE_QOS:
        case GST_MESSAGE_NEED_CONTEXT:
        case GST_MESSAGE_HAVE_CONTEXT:
            return false;
        case GST_MESSAGE_ELEMENT:
            return !gst_message_has_name(message, "missing-plugin");
        default:
            // What would make the pipeline wait for a camera, or end with one connection, or fill
            // the bus of an application that does not read it.
            return true;
    }
}

void Keeper::frame_came() {
    const std::lock_guard lock(mutex_);
    playing_ = true;
    const gint64 now = g_get_monotonic_time();
    ++status_.connections;
    status_.first_frame_ns = uint64_t(now - attempt_us_) * 1000;
    status_.last_outage_ns = uint64_t(now - outage_us_) * 1000;
    changed_.notify_all();
}

void Keeper::note(const char* state, unsigned delay_ms) {
    GstStructure* message = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const bool playing = g_str_equal(state, "playing");
        status_.state = state;
        // What ends the connection may have come with its first frame.
        if (playing && cause_ == Cause::none) reason_.clear();
        status_.reason = playing ? "" : reason_;
        GST_CAT_INFO_OBJECT(source_log, element_, "%s %s (attempt %u) %s", state,
                            status_.shown.c_str(), status_.attempt, status_.reason.c_str());
        // Of many attempts that fail for one reason the bus gets one message.
        const bool again = status_.attempt > 1 && status_.reason == posted_reason_;
        if ((g_str_equal(state, "connecting") && status_.attempt > 1) ||
            (g_str_equal(state, "waiting") && again))
            return;
        posted_reason_ = status_.reason;
        message = gst_structure_new(
            "vartml-src-state", "state", G_TYPE_STRING, state, "uri", G_TYPE_STRING,
            status_.shown.c_str(), "reason", G_TYPE_STRING, status_.reason.c_str(), "transport",
            G_TYPE_STRING, status_.transport, "attempt", G_TYPE_UINT, status_.attempt, "delay",
            G_TYPE_UINT64, guint64(delay_ms) * GST_MSECOND, "outage", G_TYPE_UINT64,
            guint64(playing ? status_.last_outage_ns : 0), nullptr);
    }
    post_structure(element_, message);
}

bool Keeper::sleep(unsigned ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stop_ || finish_; });
    return !stop_;
}

// The server was there, and no packet came: a firewall, or a server without this transport.
bool Keeper::may_fall_back(bool described) const {
    return described && settings_.transport == Transport::automatic;
}

bool Keeper::is_silent(const Session& session, gint64& until) {
    const GateCounts counts = gate_counts(gate_);
    const gint64 timeout_us = gint64(settings_.timeout_ms) * 1000, now = g_get_monotonic_time();
    gint64 last = std::max(attempt_us_, session.last_data_us());
    if (playing_) last = std::max(last, counts.last_us);
    if (counts.busy) last = held_us_ = now;  // as while the model behind it is compiled
    until = last + timeout_us;
    if (!playing_)
        until =
            std::min(until, std::max(attempt_us_, held_us_) + timeouts_to_first_frame * timeout_us);
    return now >= until;
}

Keeper::Outcome Keeper::watch(Session& session) {
    const bool watches_time = session_settings_.address.kind != AddressKind::file;
    GstState state = GST_STATE_READY;
    bool announced = false;
    std::unique_lock lock(mutex_);
    for (;;) {
        if (stop_) return Outcome::stopped;
        if (finish_) return Outcome::finished;
        if (refused_ != GST_FLOW_OK) return Outcome::refused;
        if (playing_ && !std::exchange(announced, true)) {
            lock.unlock();
            note("playing");
            lock.lock();
            status_.attempt = 0;
            continue;
        }
        if (cause_ != Cause::none) return Outcome::failed;
        if (ended_) return Outcome::ended;
        if (state != target_) {
            state = target_;
            lock.unlock();
            session.set_state(state, gst_element_get_base_time(element_));
            lock.lock();
            // Nothing comes while it is paused.
            if (state == GST_STATE_PLAYING) attempt_us_ = g_get_monotonic_time();
            continue;
        }
        if (!watches_time || state != GST_STATE_PLAYING) {
            changed_.wait(lock);
            continue;
        }
        gint64 until = 0;
        if (is_silent(session, until)) {
            const bool data = session.last_data_us() > 0 && !playing_;
            cause_ = data ? Cause::unreadable : Cause::silent;
            reason_ = data ? "data came, and no picture of it"
                           : "nothing came for " + std::to_string(settings_.timeout_ms) + " ms";
            return Outcome::failed;
        }
        changed_.wait_for(lock, std::chrono::microseconds(until - g_get_monotonic_time() + 1000));
    }
}

// A connection is closed under the lock of its state, for which a change of the pipeline's state
// waits that had found it before it left its element. Whoever then waits for a frame that a paused
// sink holds keeps the pipeline from every state that would let the frame go. Who is told to stop
// does not wait: the sinks have let go, or will.
void Keeper::wait_until_idle() {
    gate_close(gate_);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || !gate_counts(gate_).busy; });
}

Keeper::Outcome Keeper::attempt(bool after_outage, bool tcp, bool& described, bool& endless) {
    gate_begin(gate_, after_outage);
    {
        const std::lock_guard lock(mutex_);
        ended_ = playing_ = false;
        cause_ = Cause::none;
        refused_ = GST_FLOW_OK;
        attempt_us_ = g_get_monotonic_time();
        status_.transport = session_settings_.address.kind != AddressKind::rtsp ? ""
                            : tcp                                               ? "tcp"
                                                                                : "udp";
        ++status_.attempt;
    }
    note("connecting");
    auto session = Session::open(GST_BIN(element_), sink_, session_settings_, tcp, [this] {
        const std::lock_guard lock(mutex_);
        refused_ = GST_FLOW_NOT_NEGOTIATED;
        changed_.notify_all();
    });
    if (!session) {  // no element takes the address, which no camera was asked for
        const std::lock_guard lock(mutex_);
        cause_ = Cause::unreadable;
        reason_ = session.error().message;
        return Outcome::impossible;
    }
    const Outcome outcome = watch(**session);
    wait_until_idle();
    described = (*session)->was_described();
    endless = (*session)->is_endless();
    return outcome;
}

void Keeper::end_stream() {
    {
        const std::lock_guard lock(mutex_);
        reason_.clear();
    }
    note("ended");
    gate_end(gate_);
}

void Keeper::post_refused() {
    GstFlowReturn flow;
    {
        const std::lock_guard lock(mutex_);
        flow = refused_;
        reason_ = gst_flow_get_name(flow);
    }
    if (flow == GST_FLOW_EOS) return end_stream();
    note("failed");
    // Whoever returns an error has posted it.
    if (flow != GST_FLOW_ERROR)
        post_error(element_, "give pictures on",
                   {.error = {ErrorCode::unsupported,
                              "what follows vartmlsrc takes no format that " +
                                  session_settings_.address.shown + " has (" +
                                  gst_flow_get_name(flow) + "); put videoconvert after vartmlsrc"},
                    .id = "src-refused"});
    gate_end(gate_);
}

void Keeper::give_up() {
    note("failed");
    std::string reason;
    Cause cause;
    {
        const std::lock_guard lock(mutex_);
        reason = reason_;
        cause = cause_;
    }
    const Address& address = session_settings_.address;
    const bool file = address.kind == AddressKind::file;
    post_error(element_, file ? "read the file" : "reach the camera",
               {.error = {code_of(cause), address.shown + ": " + reason},
                .id = "src-failed",
                .property = "uri",
                .file = file ? address.path : ""});
    gate_end(gate_);
}

void Keeper::run() {
    const Address& address = session_settings_.address;
    // A file that is not there is a mistake; a camera that is not there comes back.
    const int retries = address.kind == AddressKind::file ? 0 : settings_.retries;
    bool tcp = settings_.transport == Transport::tcp, after_outage = false;
    bool tcp_works = false;
    unsigned failures = 0;
    for (;;) {
        if (is_finishing()) return end_stream();
        bool described = false, endless = false;
        const Outcome outcome = attempt(after_outage, tcp, described, endless);
        if (outcome == Outcome::stopped || is_stopping()) return;
        if (outcome == Outcome::finished) return end_stream();
        if (outcome == Outcome::refused) return post_refused();
        if (outcome == Outcome::impossible) return give_up();
        bool had_frames;
        Cause cause;
        {
            const std::lock_guard lock(mutex_);
            had_frames = playing_;
            // What has no length of its own ends because its sender does.
            const bool lost = settings_.at_end == AtEnd::automatic && endless;
            if (outcome == Outcome::ended && (lost || !had_frames)) {
                cause_ = Cause::lost;
                reason_ =
                    had_frames ? "the other side ended the stream" : "there is no picture in it";
            }
            cause = cause_;
        }
        if (had_frames) {
            failures = 0;
            tcp_works = tcp;
        }
        if (cause == Cause::none) {  // a file, or a response, that came to its end
            if (settings_.at_end != AtEnd::repeat) return end_stream();
            after_outage = address.live();
            continue;
        }
        if (!had_frames && !tcp_works && may_fall_back(described)) {
            tcp = !tcp;
            if (tcp) continue;  // at once; both have failed after that
        }
        {
            const std::lock_guard lock(mutex_);
            ++status_.failures;
            if (had_frames) outage_us_ = g_get_monotonic_time();
        }
        after_outage = true;
        if (retries >= 0 && failures >= unsigned(retries)) return give_up();
        const unsigned delay =
            retry_delay_ms(cause, ++failures, settings_.retry_delay_ms, g_random_double());
        if (failures == 1) {  // once for an outage, not for each attempt
            const SourceStatus now = status();
            std::string reason;
            {
                const std::lock_guard lock(mutex_);
                reason = reason_;
            }
            post_warning(element_, had_frames ? "go on with the camera" : "reach the camera",
                         {.error = {code_of(cause), now.shown + ": " + reason + "; trying again"},
                          .id = "src-lost",
                          .property = "uri"});
        }
        note("waiting", delay);
        if (!sleep(delay)) return;
    }
}

}  // namespace vartml::gst
