// SPDX-License-Identifier: Apache-2.0
// One connection to a camera, or one reading of a file: a source and its decoder in a bin.
#pragma once
#include <gst/gst.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include <vartml/result.h>

#include "gst/support/address.h"

namespace vartml::gst {

struct SessionSettings {
    Address address;
    unsigned latency_ms = 200;
    unsigned timeout_ms = 5000;
};

/// Made, used and closed by one thread. Its elements' messages go to the bin that it is in.
class Session {
public:
    /// `refused` is called, from a streaming thread, where what is linked to `sink` takes no format
    /// of the decoder's. The state stays READY.
    static Result<std::unique_ptr<Session>> open(GstBin* owner, GstPad* sink,
                                                 const SessionSettings& settings, bool tcp,
                                                 std::function<void()> refused);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    /// Returns when no thread of it is left.
    ~Session();

    /// PAUSED or PLAYING. What fails is an ERROR message.
    void set_state(GstState state, GstClockTime base_time);
    /// Monotonic time of the last data, 0: none yet.
    gint64 last_data_us() const { return last_data_us_; }
    /// The server has said what it has (RTSP).
    bool was_described() const { return described_; }
    /// It has no length: its end is the end of who sends it.
    bool is_endless() const;

private:
    Session(GstBin* owner, GstPad* sink, AddressKind kind, std::function<void()> refused);
    void link_source(GstPad* pad);
    void expose(GstPad* pad);

    GstBin* const owner_;
    GstPad* const sink_;
    const std::function<void()> refused_;
    GstElement* bin_ = nullptr;  // of the owner
    GstElement *source_ = nullptr, *decoder_ = nullptr;
    const AddressKind kind_;
    std::atomic<gint64> last_data_us_{0};
    std::atomic<bool> described_{false}, exposed_{false};
};

}  // namespace vartml::gst
