// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/cache.h"

#include <algorithm>

#include "gst/support/decoder_query.h"

namespace vartml::gst {
namespace {

// ours: models that a stream may go through at the same time, old ones of swaps included
constexpr size_t most_entries = 8;

vartml::ModelInfo model_info_of(const TensorSource& source, const DecodeSettings& settings) {
    return info_for_decoder(source.record ? source.record->model_info : vartml::ModelInfo{},
                            settings.model_info, settings.labels, settings.label_file);
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
    const vartml::ModelInfo info = model_info_of(source, settings);
    const auto& outputs = record ? record->outputs : source.outputs;
    // vartmlinfer has checked the sidecar of its model. Of a file for others' tensors none may be
    // meant where no section names any.
    const auto& said = settings.model_info.outputs;
    const bool names_any = std::ranges::any_of(said, [&](const vartml::ModelInfo::Output& section) {
        return std::ranges::find(outputs, section.name, &vartml::TensorInfo::name) != outputs.end();
    });
    if (auto fits = vartml::check_modelinfo(settings.model_info, {}, outputs);
        !record && !names_any && !fits)
        return Failure{.error = fits.error(),
                       .id = "dec-sidecar",
                       .property = "modelinfo-file",
                       .file = settings.model_info.file};
    auto decoder = vartml::Decoder::create(
        info, outputs, record ? record->model_width : source.width,
        record ? record->model_height : source.height, settings.options, &fault);
    if (!decoder) {
        Failure failure{.error = decoder.error(), .id = "dec-classes", .property = "classes"};
        if (!fault.id.empty()) {
            failure.id = g_intern_string(fault.id.c_str());
            failure.property = fault.id == "dec-classes"   ? "label-file"
                               : fault.id == "dec-library" ? "decoder-library"
                                                           : "decoder";
            failure.found = fault.found;
            failure.expected = fault.expected;
            failure.fix = fault.fix;
        }
        return failure;
    }
    if (entries_.size() == most_entries) entries_.erase(entries_.begin());
    std::string model = record ? record->model : "";
    const double own = info.score_threshold.value_or(
        vartml::find_decoder_family(decoder->family())->score_threshold);
    entries_.push_back(std::make_unique<CachedDecoder>(std::move(source), std::move(*decoder),
                                                       std::move(model), own));
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

const vartml::Decoded* ResultCache::find(const ResultKey& key) const {
    for (const Slot& slot : slots_) {
        if (key.result_id != 0 && slot.key == key) return &slot.decoded;
    }
    return nullptr;
}

vartml::Decoded& ResultCache::next() {
    Slot& slot = slots_[next_ % slots_.size()];
    slot.key = {};
    return slot.decoded;
}

void ResultCache::clear() {
    for (Slot& slot : slots_) slot.key = {};
}

}  // namespace vartml::gst
