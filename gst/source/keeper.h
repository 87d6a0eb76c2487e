// SPDX-License-Identifier: Apache-2.0
// The thread that keeps a source connected: it opens, watches, closes and waits.
#pragma once
#include <gst/gst.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "gst/source/session.h"

namespace vartml::gst {

enum class Transport { automatic, udp, tcp };
enum class AtEnd { automatic, stop, repeat };
/// Why there is no picture.
enum class Cause { none, lost, silent, refused, unreadable };

struct SourceSettings {
    std::string uri, login_file;
    Transport transport = Transport::automatic;
    unsigned latency_ms = 200, timeout_ms = 5000, retry_delay_ms = 700;
    int retries = -1;
    AtEnd at_end = AtEnd::automatic;
};

/// How it is with the source. Times are nanoseconds.
struct SourceStatus {
    const char* state = "stopped";  // connecting, playing, waiting, ended, failed
    std::string shown, reason;
    const char* transport = "";
    uint64_t connections = 0;  // that gave a frame
    uint64_t failures = 0;     // attempts that gave none, and connections that were lost
    unsigned attempt = 0;      // since the last frame
    uint64_t first_frame_ns = 0, last_outage_ns = 0;
};

/// Milliseconds until attempt `n` (from 1) after a failure. `chance` is of 0 to 1.
unsigned retry_delay_ms(Cause cause, unsigned n, unsigned most_ms, double chance);

/// All functions are thread-safe.
class Keeper {
public:
    Keeper(GstElement* element, GstElement* gate);
    ~Keeper();
    /// Begins to connect. `address` has the login.
    void start(const SourceSettings& settings, Address address);
    /// PAUSED or PLAYING.
    void set_state(GstState state);
    /// Ends the stream, whatever the camera does: the application's EOS. False where none runs.
    bool finish();
    /// No connection is opened any more; does not wait.
    void request_stop();
    void join();

    /// Takes a message of a connection's elements; false: it may go on to the application.
    bool handle(GstMessage* message);
    SourceStatus status() const;

private:
    enum class Outcome { stopped, finished, failed, ended, refused, impossible };
    void run();
    Outcome attempt(bool after_outage, bool tcp, bool& described, bool& endless);
    Outcome watch(Session& session);
    void wait_until_idle();
    void frame_came();
    void note(const char* state, unsigned delay_ms = 0);
    bool sleep(unsigned ms);
    bool is_finishing() const;
    bool is_stopping() const;
    void give_up();
    void end_stream();
    void post_refused();
    bool is_silent(const Session& session, gint64& until);
    bool may_fall_back(bool described) const;

    GstElement* const element_;  // owns this
    GstElement* const gate_;
    GstPad* const sink_;
    SourceSettings settings_;  // while the thread runs
    SessionSettings session_settings_;
    std::thread thread_;

    // Held alone: GStreamer is not called under it.
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    // guarded by mutex_
    GstState target_ = GST_STATE_PAUSED;
    bool runs_ = false;  // from start() to join()
    bool stop_ = false, finish_ = false, ended_ = false, playing_ = false;
    Cause cause_ = Cause::none;
    GstFlowReturn refused_ = GST_FLOW_OK;
    std::string reason_, posted_reason_;
    SourceStatus status_;
    gint64 attempt_us_ = 0;  // when the attempt began, or went on after a pause
    gint64 held_us_ = 0;     // when what follows was last seen to hold a frame or an event
    gint64 outage_us_ = 0;   // since when there is no picture
};

}  // namespace vartml::gst
