// SPDX-License-Identifier: Apache-2.0
// What the metadata of a frame says, as a record.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <vartml/publish.h>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"

namespace vartml::gst {

// Numbers of labels in their models.

// Labels are looked up once per model. Thread-safety: none.
class LabelNumbers {
public:
    // The number of the class in the model's list; of a model without list the number that the
    // label is.
    std::optional<int32_t> find(const std::shared_ptr<const InferenceRecord>& model, GQuark label);
    void clear() { models_.clear(); }

private:
    struct Model {
        std::shared_ptr<const InferenceRecord> record;
        std::unordered_map<GQuark, int32_t> numbers;
    };
    std::vector<Model> models_;
};

// Reads frames on one thread and keeps its memory. Thread-safety: none.
class SnapshotReader {
public:
    // Fills in what the metadata says; `include` of Include. `stream` and `frame_seq` are those of
    // the first inference, where there is one.
    void read(GstBuffer* buffer, unsigned include, vartml::FrameRecord& record);
    void clear() { numbers_.clear(); }

private:
    struct Source {
        guint id;  // Mtd
        const Inference* inference;
    };
    void read_inferences(GstBuffer* buffer);
    void read_object(const GstAnalyticsMtd& od);
    void read_details(const GstAnalyticsMtd& od, vartml::RecordObject& object);
    void read_related(const GstAnalyticsMtd& related, vartml::RecordObject& object);
    void read_picture_details();
    void read_visit(const ZoneVisit& visit, bool of_object);
    bool is_class_map(const GstAnalyticsMtd& segmentation);
    void read_map(const GstAnalyticsMtd& segmentation);
    std::optional<vartml::RecordMask> read_mask(const GstAnalyticsMtd& mtd, bool regions);
    std::string_view model_of(guint id) const;
    template <typename Function>
    void for_related(guint id, Function&& function);
    template <typename Function>
    void for_all(GstAnalyticsMtdType type, Function&& function);

    LabelNumbers numbers_;
    // of the frame that is read
    GstAnalyticsRelationMeta* meta_ = nullptr;
    vartml::FrameRecord* record_ = nullptr;
    unsigned include_ = 0;
    std::vector<Source> sources_;
    std::vector<bool> owned_;  // by Mtd: it belongs to an object
};

}  // namespace vartml::gst
