// SPDX-License-Identifier: Apache-2.0
// The Mtd type `vartml-inference` inside GstAnalyticsRelationMeta: how an inference on a frame was
// made, and its tensors.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <vartml/tensor.h>

namespace vartml::gst {

// What became of a frame; nicks in status_nick().
enum class InferenceStatus : uint8_t {
    inferred,
    skipped_interval,
    skipped_late,
    skipped_busy,
    skipped_slo,
    skipped_flag,
    skipped_region,
    skipped_still,  // it shows what the last inferred one showed
    skipped_track,  // all its regions are tracked objects whose results are known
    failed,
    carried,  // it left at its time with the result of an earlier frame
    pending   // it left at its time, before there was any result; its own comes on later frames
};
inline constexpr size_t num_statuses = 12;
const char* status_nick(InferenceStatus status);

// What is the same for all frames of a model: shared by reference, immutable.
struct InferenceRecord {
    std::string infer_id;    // element name
    std::string model;       // model name
    std::string model_hash;  // signature
    unsigned model_epoch = 0;
    vartml::TensorInfo input;  // the picture
    std::vector<vartml::TensorInfo> outputs;
    std::vector<vartml::TensorView>
        views;  // of the attached data, one per output: the CPU or the HW view
    std::vector<std::string> tensor_ids;  // one per output
    bool hw = false;                      // views are HW views
    vartml::ModelInfo model_info;
    unsigned model_width = 0, model_height = 0;
    bool operator==(const InferenceRecord&) const = default;
};

// One inference on one frame.
struct Inference {
    InferenceStatus status = InferenceStatus::inferred;
    // What became of the frame itself; of a carried result that is not the status.
    InferenceStatus fate = InferenceStatus::inferred;
    guint64 result_id = 0;   // of the result, equal on all frames that carry it; 0: none
    guint64 result_seq = 0;  // frame_seq of the frame that it was made from
    guint64 age_ns = 0;      // how much older that frame is than this one
    std::string stream_id;
    guint64 frame_seq = 0;
    // Of the frame that was inferred, as the region; later scaling changes to_frame only.
    unsigned frame_width = 0, frame_height = 0;
    int region_x = 0, region_y = 0, region_width = 0, region_height = 0;
    int region_od = -1;
    unsigned tile = 0, tiles = 0;  // which of how many tiles of the frame; 0 of 0: it is none
    vartml::ResizeMode resize = vartml::ResizeMode::stretch;
    vartml::Affine to_frame;
    bool geometry_valid = true;
    bool decoded = false;  // by a decoder that left the tensors
    guint64 pre_us = 0, wait_us = 0, run_us = 0, total_us = 0;
    unsigned batch_fill = 0;
    std::shared_ptr<const InferenceRecord> record;
    std::vector<GstBuffer*>
        data;  // one per output, a reference each while inside the meta; empty without result

    bool has_result() const {
        return status == InferenceStatus::inferred || status == InferenceStatus::carried;
    }
};

GstAnalyticsMtdType inference_mtd_type();

// Adds `inference` to the buffer's relation meta (made if absent, sized for `expected_boxes`);
// takes its own references of record and data. The buffer must be writable. Returns false when the
// meta cannot be added.
bool add_inference(GstBuffer* buffer, const Inference& inference, unsigned expected_boxes);

// The index-th inference on the buffer, or nullptr beyond the last. Valid while the buffer is and
// until something is added to its relation meta. `mtd` (optional) receives the handle for
// relations.
const Inference* get_inference(GstBuffer* buffer, unsigned index, GstAnalyticsMtd* mtd = nullptr);

// Lets go of the tensor buffers of all inferences on the buffer (status and times stay).
void drop_inference_tensors(GstBuffer* buffer);

// Notes of all inferences on the buffer that they were decoded. The buffer must be writable.
void mark_decoded(GstBuffer* buffer);

}  // namespace vartml::gst
