// SPDX-License-Identifier: Apache-2.0
// For streams whose frames leave at their time: how long an inference takes, and the newest result,
// which frames without one of their own carry.
#pragma once
#include <gst/gst.h>

#include <array>
#include <cstdint>

#include "gst/infer/request.h"
#include "gst/support/inference.h"

namespace vartml::gst::infer {

// The time from submission to result: the median of the last ones. Plain arithmetic without
// threads.
class InferenceTime {
public:
    void begin(uint64_t expected_us);  // as it was measured when the model was loaded
    void add(uint64_t took_us);
    uint64_t us() const { return median_us_; }
    // Whether results come within `most_us`. Once they do not, they must take a quarter less to do
    // so again.
    bool within(uint64_t most_us);
    bool is_within() const { return within_; }  // the last time

private:
    static constexpr size_t window = 9;
    std::array<uint64_t, window> last_{};
    size_t next_ = 0;
    uint64_t median_us_ = 0;
    bool within_ = true;
};

// The newest result of a stream. Thread-safety: none.
class KnownResult {
public:
    KnownResult() = default;
    KnownResult(const KnownResult&) = delete;
    KnownResult& operator=(const KnownResult&) = delete;
    ~KnownResult() { forget(); }

    // `pts` and `entered` of the frame that was inferred. Takes references of the tensors.
    void set(const Inference& result, GstClockTime pts, Clock::time_point entered);
    void forget();
    // The result, where it is of this model, stream and size of frames; else nullptr.
    const Inference* of(const InferenceRecord* record, const std::string& stream_id, unsigned width,
                        unsigned height) const;
    // How much older it is than a frame: by their times, else by when they came.
    guint64 age_ns(GstClockTime pts, Clock::time_point entered) const;

private:
    Inference result_;
    GstClockTime pts_ = GST_CLOCK_TIME_NONE;
    Clock::time_point entered_;
};

}  // namespace vartml::gst::infer
