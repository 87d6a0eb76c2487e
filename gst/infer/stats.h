// SPDX-License-Identifier: Apache-2.0
// Counters and times of an element, read as the property `stats`.
#pragma once
#include <gst/gst.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "gst/metadata/inference.h"

namespace vartml::gst::infer {

// The value below which `percent` of the values lie (nearest rank); sorts `values` partly. 0 for
// none.
uint32_t percentile(std::span<uint32_t> values, double percent);

enum class CopyReason : uint8_t {
    not_device_memory,
    import_refused,
    strided,
    unaligned,
    split_memory,
    input_cpu_view,
    output_cpu_view,
    make_writable
};
inline constexpr size_t num_copy_reasons = 8;
struct CopyReasonText {
    const char* nick;
    const char* why;  // "... because <why>"
    const char* fix;
};
const CopyReasonText& copy_reason(CopyReason reason);

// Thread-safety: all members may be called concurrently; the lock is held for a few instructions,
// while reading for some 10 us.
class Stats {
public:
    struct Gauges {
        unsigned in_flight = 0, queue_depth = 0, output_buffers = 0, interval = 1;
    };

    // A frame leaves. With regions it may carry several inferences, or be skipped for having none.
    void frame(InferenceStatus status, unsigned inferences = 1);
    // A frame leaves before its own result is there; result() tells its fate.
    void frame_before_result();
    void result(InferenceStatus status, unsigned inferences);
    void carried(uint64_t age_us);  // a frame leaves with the result of an earlier one
    void track_carried();           // a frame carries the result of a tracked object
    void run(unsigned batch_fill, bool leads_batch);                 // of an inference
    void times(uint64_t pre_us, uint64_t wait_us, uint64_t run_us);  // of an inference
    void total(uint64_t total_us);                                   // of any frame, until it left
    void waited(uint64_t result_us);  // of a frame, from its arrival until its own result
    void conversion();
    void import();      // of a memory that was not seen before
    void model_swap();  // percentiles begin anew
    void copied(CopyReason reason, uint64_t bytes);
    void in_flight(unsigned count);
    void reset();

    uint64_t inferences() const;
    uint64_t skipped() const;
    GstStructure* structure(
        const Gauges& gauges) const;  // `vartml-infer-stats`; the caller owns it

private:
    static constexpr size_t window = 1024;
    struct Series {
        std::array<uint32_t, window> last{};
        uint32_t max = 0;
        size_t count = 0;
        void add(uint64_t us);
    };

    mutable std::mutex mutex_;  // guards all below; no other lock is taken under it
    void add_result(InferenceStatus status, unsigned inferences);  // with the mutex
    std::array<uint64_t, num_statuses> by_status_{};
    uint64_t frames_ = 0, carried_ = 0, tracks_carried_ = 0, inferences_ = 0, conversions_ = 0,
             imports_ = 0, batches_ = 0, swaps_ = 0;
    unsigned batch_fill_ = 0;  // of the last run
    std::array<uint64_t, num_copy_reasons> copies_{}, copied_bytes_{};
    unsigned in_flight_max_ = 0;
    Series pre_, wait_, run_, total_, result_, age_;
};

}  // namespace vartml::gst::infer
