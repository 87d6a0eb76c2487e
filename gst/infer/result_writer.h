// SPDX-License-Identifier: Apache-2.0
// What a frame carries when it leaves: tensors, and the record of how they were made.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "gst/infer/context.h"

namespace vartml::gst::infer {

// The newest result of a stream: of one inference, or of all tiles of a frame. Thread-safety: none.
class KnownResult {
public:
    KnownResult() = default;
    KnownResult(const KnownResult&) = delete;
    KnownResult& operator=(const KnownResult&) = delete;
    ~KnownResult() { forget(); }

    // A result begins; `pts` and `entered` of the frame that was inferred. False: a newer one is
    // known.
    bool begin(GstClockTime pts, Clock::time_point entered);
    // Takes references of the tensors.
    void add(const Inference& result);
    void forget();
    // The result, where it is of this model, stream and size of frames; else nothing.
    std::span<const Inference> of(const InferenceRecord* record, const std::string& stream_id,
                                  unsigned width, unsigned height) const;
    // How much older it is than a frame: by their times, else by when they came.
    guint64 age_ns(GstClockTime pts, Clock::time_point entered) const;

private:
    std::vector<Inference> results_;  // keep their memory
    size_t count_ = 0;
    GstClockTime pts_ = GST_CLOCK_TIME_NONE;
    Clock::time_point entered_;
};

// Thread-safety: none; who serves the head of the queue has it.
class ResultWriter {
public:
    explicit ResultWriter(Context& context) : context_(context) {}

    // Takes the buffer, returns one with the metadata; nullptr after posting an error.
    GstBuffer* attach(Entry& entry, GstBuffer* buffer);
    // Keeps the result of a frame that has left.
    void remember(const Entry& entry);
    void forget() { known_.forget(); }
    void stop();

private:
    GstBuffer* make_writable(GstBuffer* buffer);
    void describe(const Entry& entry, const Request* request);
    void log(const Inference& inference) const;
    void attach_one(const Entry& entry, GstBuffer* buffer);
    void attach_known(const Entry& entry, GstBuffer* buffer, const Inference& known);
    void remember_track(const Entry& entry, uint64_t track);
    void attach_known_tracks(const Entry& entry, GstBuffer* buffer);

    Context& context_;
    Inference scratch_;
    std::vector<FrameRegion> tracked_;
    KnownResult known_;
};

}  // namespace vartml::gst::infer
