// SPDX-License-Identifier: Apache-2.0
// What a frame carries when it leaves: tensors, and the record of how they were made.
#pragma once
#include <string>

#include "gst/infer/context.h"

namespace vartml::gst::infer {

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
    void attach_one(const Entry& entry, GstBuffer* buffer, const Request* request);
    void attach_known(const Entry& entry, GstBuffer* buffer, const Inference& known);

    Context& context_;
    Inference scratch_;
    KnownResult known_;
};

}  // namespace vartml::gst::infer
