// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/stats.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace vartml::gst::infer {
namespace {

constexpr InferenceStatus skips[] = {
    InferenceStatus::skipped_interval, InferenceStatus::skipped_late,
    InferenceStatus::skipped_busy,     InferenceStatus::skipped_slo,
    InferenceStatus::skipped_flag,     InferenceStatus::skipped_region,
    InferenceStatus::skipped_still,    InferenceStatus::skipped_track,
};

void set(GstStructure* s, const std::string& field, uint64_t value) {
    gst_structure_set(s, field.c_str(), G_TYPE_UINT64, guint64(value), nullptr);
}

}  // namespace

uint32_t percentile(std::span<uint32_t> values, double percent) {
    if (values.empty()) return 0;
    const auto rank = size_t(std::ceil(percent / 100 * double(values.size())));
    const auto at = values.begin() + std::ptrdiff_t(std::clamp<size_t>(rank, 1, values.size()) - 1);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

const CopyReasonText& copy_reason(CopyReason reason) {
    static constexpr CopyReasonText texts[num_copy_reasons] = {
        {"not-device-memory", "the frame lies in plain memory, which the device does not read",
         "use a source that fills dma-bufs, or the pool that this element offers"},
        {"import-refused", "the device did not take the dma-buf of the frame",
         "let the source take its buffers from the pool that this element offers"},
        {"strided", "the rows of the frame are padded",
         "let the source fill dense rows, or the pool that this element offers"},
        {"unaligned", "the frame does not begin at byte 0 of its dma-buf",
         "use a source that puts one frame into one dma-buf"},
        {"split-memory", "the frame is spread over several memories",
         "use a source that puts one frame into one dma-buf"},
        {"input-cpu-view", "the model has no HW view of an input",
         "use a model whose first operators run on the NPU"},
        {"output-cpu-view", "the model has no HW view of an output",
         "use a model whose last operators run on the NPU"},
        {"make-writable",
         "the memory of the frame cannot be shared and another element holds the frame",
         "avoid a tee before this element or use another source"},
    };
    return texts[size_t(reason)];
}

void Stats::Series::add(uint64_t us) {
    const auto value = uint32_t(std::min<uint64_t>(us, UINT32_MAX));
    last[count++ % window] = value;
    max = std::max(max, value);
}

void Stats::add_result(InferenceStatus status, unsigned inferences) {
    ++by_status_[size_t(status)];
    if (status == InferenceStatus::inferred) inferences_ += inferences;
}

void Stats::frame(InferenceStatus status, unsigned inferences) {
    const std::lock_guard lock(mutex_);
    ++frames_;
    add_result(status, inferences);
}

void Stats::frame_before_result() {
    const std::lock_guard lock(mutex_);
    ++frames_;
}

void Stats::result(InferenceStatus status, unsigned inferences) {
    const std::lock_guard lock(mutex_);
    add_result(status, inferences);
}

void Stats::track_carried() {
    const std::lock_guard lock(mutex_);
    ++tracks_carried_;
}

void Stats::carried(uint64_t age_us) {
    const std::lock_guard lock(mutex_);
    ++carried_;
    age_.add(age_us);
}

void Stats::run(unsigned batch_fill, bool leads_batch) {
    const std::lock_guard lock(mutex_);
    batch_fill_ = batch_fill;
    batches_ += leads_batch;
}

void Stats::import() {
    const std::lock_guard lock(mutex_);
    ++imports_;
}

void Stats::model_swap() {
    const std::lock_guard lock(mutex_);
    ++swaps_;
    pre_ = wait_ = run_ = total_ = result_ = age_ = {};
}

void Stats::times(uint64_t pre_us, uint64_t wait_us, uint64_t run_us) {
    const std::lock_guard lock(mutex_);
    pre_.add(pre_us);
    wait_.add(wait_us);
    run_.add(run_us);
}

void Stats::total(uint64_t total_us) {
    const std::lock_guard lock(mutex_);
    total_.add(total_us);
}

void Stats::waited(uint64_t result_us) {
    const std::lock_guard lock(mutex_);
    result_.add(result_us);
}

void Stats::conversion() {
    const std::lock_guard lock(mutex_);
    ++conversions_;
}

void Stats::copied(CopyReason reason, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    copied_bytes_[size_t(reason)] += bytes;
    ++copies_[size_t(reason)];
}

void Stats::in_flight(unsigned count) {
    const std::lock_guard lock(mutex_);
    in_flight_max_ = std::max(in_flight_max_, count);
}

void Stats::reset() {
    const std::lock_guard lock(mutex_);
    by_status_ = {};
    frames_ = carried_ = tracks_carried_ = inferences_ = conversions_ = imports_ = batches_ =
        swaps_ = 0;
    batch_fill_ = 0;
    copies_ = copied_bytes_ = {};
    in_flight_max_ = 0;
    pre_ = wait_ = run_ = total_ = result_ = age_ = {};
}

uint64_t Stats::inferences() const {
    const std::lock_guard lock(mutex_);
    return inferences_;
}

uint64_t Stats::skipped() const {
    const std::lock_guard lock(mutex_);
    uint64_t sum = 0;
    for (InferenceStatus status : skips) sum += by_status_[size_t(status)];
    return sum;
}

GstStructure* Stats::structure(const Gauges& gauges) const {
    GstStructure* s = gst_structure_new_empty("vartml-infer-stats");
    const std::lock_guard lock(mutex_);
    set(s, "frames", frames_);
    set(s, "inferences", inferences_);
    set(s, "batches", batches_);
    set(s, "conversions", conversions_);
    set(s, "imports", imports_);
    set(s, "failed", by_status_[size_t(InferenceStatus::failed)]);
    for (InferenceStatus status : skips) set(s, status_nick(status), by_status_[size_t(status)]);
    set(s, "carried", carried_);
    set(s, "tracks-carried", tracks_carried_);
    set(s, "model-swaps", swaps_);
    uint64_t copies = 0, bytes = 0;
    for (size_t i = 0; i < num_copy_reasons; ++i) {
        const std::string field = std::string("copy-") + copy_reason(CopyReason(i)).nick;
        set(s, field + "-count", copies_[i]);
        set(s, field + "-bytes", copied_bytes_[i]);
        copies += copies_[i];
        bytes += copied_bytes_[i];
    }
    set(s, "copies", copies);
    set(s, "copied-bytes", bytes);
    gst_structure_set(s, "in-flight", G_TYPE_UINT, gauges.in_flight, "in-flight-max", G_TYPE_UINT,
                      in_flight_max_, "queue-depth", G_TYPE_UINT, gauges.queue_depth, "batch-fill",
                      G_TYPE_UINT, batch_fill_, "output-buffers", G_TYPE_UINT,
                      gauges.output_buffers, "interval", G_TYPE_UINT, gauges.interval, nullptr);
    const std::pair<const char*, const Series*> series[] = {
        {"pre", &pre_},     {"wait", &wait_},     {"run", &run_},
        {"total", &total_}, {"result", &result_}, {"age", &age_}};
    for (const auto& [name, one] : series) {
        std::vector<uint32_t> values(
            one->last.begin(), one->last.begin() + std::ptrdiff_t(std::min(one->count, window)));
        for (int percent : {50, 95, 99}) {
            set(s, std::string(name) + "-p" + std::to_string(percent) + "-us",
                percentile(values, percent));
        }
        set(s, std::string(name) + "-max-us", one->max);
    }
    return s;
}

}  // namespace vartml::gst::infer
