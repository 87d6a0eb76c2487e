// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/decoder_cache.h"

#include <algorithm>

namespace vartml::gst {
namespace {

// ours: models that a stream may go through at the same time, old ones of swaps included
constexpr size_t most_entries = 8;

bool is_empty(const vartml::ModelInfo& info) {
    return info.decoder.empty() && info.labels.empty() && !info.num_classes &&
           info.outputs.empty() && info.strides.empty() && info.anchors.empty() &&
           info.activation.empty() && info.skeleton.empty() && !info.score_threshold &&
           !info.iou_threshold;
}

vartml::ModelInfo model_info_of(const TensorSource& source, const DecodeSettings& settings) {
    const bool brings_one = source.record && !is_empty(source.record->model_info);
    vartml::ModelInfo info = brings_one ? source.record->model_info : settings.model_info;
    if (!settings.labels.empty()) {
        info.labels = settings.labels;
        info.labels_file = settings.label_file;
    }
    return info;
}

}  // namespace

CachedDecoder* DecoderCache::find(const TensorSource& source) {
    const auto it =
        std::ranges::find_if(entries_, [&](const auto& entry) { return entry->source == source; });
    if (it == entries_.end()) return nullptr;
    std::rotate(it, it + 1, entries_.end());
    return entries_.back().get();
}

std::variant<CachedDecoder*, Failure> DecoderCache::make(TensorSource source,
                                                         const DecodeSettings& settings) {
    const InferenceRecord* record = source.record.get();
    vartml::DecodeFault fault;
    auto decoder = vartml::Decoder::create(
        model_info_of(source, settings), record ? record->outputs : source.outputs,
        record ? record->model_width : source.width, record ? record->model_height : source.height,
        settings.options, &fault);
    if (!decoder) {
        Failure failure{.error = decoder.error(), .id = "dec-classes", .property = "classes"};
        if (!fault.id.empty()) {
            failure.id = g_intern_string(fault.id.c_str());
            failure.property = fault.id == "dec-classes" ? "label-file" : "decoder";
            failure.found = fault.found;
            failure.expected = fault.expected;
            failure.fix = fault.fix;
        }
        return failure;
    }
    if (entries_.size() == most_entries) entries_.erase(entries_.begin());
    std::string model = record ? record->model : "";
    entries_.push_back(
        std::make_unique<CachedDecoder>(std::move(source), std::move(*decoder), std::move(model)));
    return entries_.back().get();
}

vartml::Result<void> DecoderCache::apply(const vartml::DecodeOptions& options) {
    for (const auto& entry : entries_) {
        entry->decoder.set_thresholds(options.score_threshold, options.iou_threshold);
        entry->decoder.set_limits(options.max_detections, options.top_k, options.min_size,
                                  options.nms);
        entry->decoder.set_detail_thresholds(options.mask_threshold, options.keypoint_threshold);
        if (auto done = entry->decoder.set_classes(options.classes); !done) return done;
    }
    return {};
}

}  // namespace vartml::gst
