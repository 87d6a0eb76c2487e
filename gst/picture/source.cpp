// SPDX-License-Identifier: Apache-2.0
#include "gst/picture/source.h"

#include <algorithm>
#include <utility>

#include "gst/support/tensor_meta.h"

namespace vartml::gst {
namespace {

// Whether they are of a vartmlinfer.
bool are_ours(GstBuffer* buffer, const GstTensorMeta* meta) {
    for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i)
        for (gsize t = 0; t < meta->num_tensors; ++t)
            if (std::ranges::find(one->data, meta->tensors[t]->data) != one->data.end())
                return true;
    return false;
}

bool refuse(Failure& failure, const char* id, const std::string& sentence, const std::string& fix,
            ErrorCode code = ErrorCode::unsupported) {
    failure = {.error = {code, sentence + "; " + fix}, .id = id, .fix = fix};
    return false;
}

}  // namespace

// Tensors of other elements on a frame.
struct PictureSource::Others {
    bool any = false, wanted = false;
};

void PictureSource::want(std::string output) {
    output_ = std::move(output);
    if (output_.empty() || !result_) return;
    const bool has = result_->record
                         ? has_wanted(result_->record.get())
                         : std::ranges::find(result_->outputs, output_, &TensorInfo::name) !=
                               result_->outputs.end();
    if (!has) forget();
}

void PictureSource::scale(const Growth& growth) {
    if (!result_) return;
    Affine& map = result_->to_frame;
    map.a *= growth.x, map.b *= growth.x, map.c *= growth.x;
    map.d *= growth.y, map.e *= growth.y, map.f *= growth.y;
}

// Whether a model has the output that is named.
bool PictureSource::has_wanted(const InferenceRecord* record) const {
    return record && !output_.empty() &&
           (std::ranges::find(record->outputs, output_, &TensorInfo::name) !=
                record->outputs.end() ||
            std::ranges::find(record->tensor_ids, output_) != record->tensor_ids.end());
}

// The vartmlinfer whose pictures these are, while it leaves its records on the frames; "": none.
std::string_view PictureSource::known_source(GstBuffer* buffer) const {
    if (!result_ || !result_->record) return {};
    const std::string_view known = result_->record->infer_id;
    for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i)
        if (one->record && one->record->infer_id == known) return known;
    return {};
}

PictureSource::Others PictureSource::others_on(GstBuffer* buffer) const {
    Others others;
    for_each_tensor_meta(buffer, [&](const GstTensorMeta* meta) {
        if (are_ours(buffer, meta)) return true;
        for (gsize i = 0; i < meta->num_tensors; ++i) {
            others.any = true;
            const char* const id = g_quark_to_string(meta->tensors[i]->id);
            others.wanted |= id && output_ == id;
        }
        return true;
    });
    return others;
}

// `take_others`: the tensors of other elements are to be taken instead.
bool PictureSource::take_inference(GstBuffer* buffer, Taken& taken, bool& take_others,
                                   Failure& failure) {
    const Inference* newest = nullptr;
    bool parts = false, gone = false, waits = false, wanted = false;
    for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i) {
        taken.has_record = true;
        wanted |= has_wanted(one->record.get());
    }
    const std::string_view source = known_source(buffer);
    for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i) {
        if (wanted && !has_wanted(one->record.get())) continue;
        if (!wanted && !source.empty() && (!one->record || one->record->infer_id != source))
            continue;
        if (one->status == InferenceStatus::skipped_region) continue;
        if (!one->has_result() || !one->record) {
            newest = nullptr, waits = true;
            continue;
        }
        const bool part = one->tiles || one->region_od >= 0;
        parts |= part;
        gone |= !part && one->data.empty();
        if (!part && !one->data.empty()) newest = one;
    }
    const bool had_others = result_ && !result_->record;
    const Others others = others_on(buffer);
    take_others = !wanted && (others.wanted ||
                              (others.any && !newest && source.empty() && (had_others || !waits)));
    if (take_others || (!newest && waits)) return true;
    if (!newest && gone)
        return refuse(failure, "pic-taken",
                      "the tensors were taken off the frame before this element",
                      "set keep-tensors=true on the vartmldecode between it and vartmlinfer, or "
                      "put it before that");
    if (!newest && parts)
        return refuse(failure, "pic-regions",
                      "the model saw regions or tiles of the frame, whose pictures are none of it",
                      "set inference-region=full-frame on vartmlinfer");
    if (!newest) return true;
    if (!newest->geometry_valid)
        return refuse(failure, "pic-geometry",
                      "the frame was scaled after inference to another display aspect, which may "
                      "have added borders",
                      "place vartmlpicture directly after vartmlinfer", ErrorCode::bad_model);
    auto result = std::make_unique<PictureResult>();
    result->record = newest->record;
    result->id = newest->result_id;
    result->to_frame = newest->to_frame;
    for (GstBuffer* data : newest->data) result->data.push_back(gst_buffer_ref(data));
    result_ = std::move(result);
    return true;
}

// The same of upstream's inference elements.
bool PictureSource::take_tensors(GstBuffer* buffer, Failure& failure) {
    auto result = std::make_unique<PictureResult>();
    Result<void> done;
    for_each_tensor_meta(buffer, [&](GstTensorMeta* meta) {
        if (are_ours(buffer, meta)) return true;
        for (gsize i = 0; i < meta->num_tensors && done; ++i) {
            auto info = tensor_info(*meta->tensors[i]);
            if (!info) {
                done = info.error();
                break;
            }
            result->outputs.push_back(std::move(*info));
            result->data.push_back(gst_buffer_ref(meta->tensors[i]->data));
        }
        return done.has_value();
    });
    if (!done) return fail(failure, "pic-output", done.error(), nullptr);
    if (!result->data.empty()) result_ = std::move(result);
    return true;
}

std::optional<PictureSource::Taken> PictureSource::take(GstBuffer* buffer, Failure& failure) {
    const PictureResult* const before = result_.get();
    const guint64 id_before = before ? before->id : 0;
    Taken taken;
    bool take_others = false;
    if (!take_inference(buffer, taken, take_others, failure)) return std::nullopt;
    if (take_others && !take_tensors(buffer, failure)) return std::nullopt;
    taken.has_result = result_.get() != before;
    taken.fresh = taken.has_result && (!result_->id || result_->id != id_before);
    return taken;
}

}  // namespace vartml::gst
