// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/cache.h"

#include <algorithm>

#include "gst/support/decoder_query.h"

namespace vartml::gst {
namespace {

// ours: models that a stream may go through at the same time, old ones of swaps included
constexpr size_t most_entries = 8;

const std::vector<vartml::TensorInfo>& outputs_of(const TensorSource& source) {
    return source.record ? source.record->outputs : source.outputs;
}

bool has_output(const TensorSource& source, const std::string& name) {
    const auto& outputs = outputs_of(source);
    return std::ranges::find(outputs, name, &vartml::TensorInfo::name) != outputs.end();
}

// Upstream's elements call a tensor by the id that the file gives it, where it gives one.
vartml::ModelInfo with_names_of(const TensorSource& source, vartml::ModelInfo info) {
    if (source.record) return info;
    for (vartml::ModelInfo::Output& section : info.outputs)
        if (!has_output(source, section.name) && has_output(source, section.id))
            section.name = section.id;
    return info;
}

}  // namespace

bool names_tensor_of(const vartml::ModelInfo& info, const TensorSource& source) {
    return std::ranges::any_of(info.outputs, [&](const vartml::ModelInfo::Output& section) {
        return has_output(source, section.name) ||
               (!source.record && has_output(source, section.id));
    });
}

CachedDecoder* DecoderCache::find(const TensorSource& source) {
    const auto it =
        std::ranges::find_if(entries_, [&](const auto& entry) { return entry->source == source; });
    if (it == entries_.end()) return nullptr;
    std::rotate(it, it + 1, entries_.end());
    return entries_.back().get();
}

std::variant<CachedDecoder*, Failure> DecoderCache::make(TensorSource source,
                                                         const DecodeSettings& settings,
                                                         bool meant) {
    const InferenceRecord* record = source.record.get();
    vartml::DecodeFault fault;
    const vartml::ModelInfo said = with_names_of(source, settings.model_info);
    const vartml::ModelInfo info =
        info_for_decoder(record ? record->model_info : vartml::ModelInfo{}, said, settings.labels,
                         settings.label_file);
    const auto& outputs = outputs_of(source);
    // vartmlinfer has checked the sidecar of its model.
    if (!record && !meant) {
        if (auto fits = vartml::check_modelinfo(said, {}, outputs); !fits)
            return Failure{.error = fits.error(),
                           .id = "dec-sidecar",
                           .property = "modelinfo-file",
                           .file = settings.model_info.file};
    }
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
