// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/decode_path.h"

#include <algorithm>

#include "lib/tools/verify/reference.h"

namespace vartml::verify {

using vision::Candidate;
using vision::Candidates;

Result<DecodePath> DecodePath::create(const ModelInfo& info, const std::vector<TensorInfo>& outputs,
                                      uint32_t width, uint32_t height, const std::string& decoder) {
    DecodePath path;
    path.info_ = std::make_unique<ModelInfo>(info);
    path.outputs_ =
        std::make_unique<std::vector<TensorInfo>>(vision::with_quantisation(outputs, info));
    path.coded_ = std::make_unique<vision::CodedOutputs>(*path.outputs_);
    path.width_ = width;
    path.height_ = height;
    auto made = Decoder::create(*path.info_, *path.outputs_, width, height, {.decoder = decoder});
    if (!made) return made.error();
    path.decoder_ = std::make_unique<Decoder>(std::move(*made));
    path.family_ = vision::find_family(path.decoder_->family());
    // As Decoder::create does it.
    if (auto batched = vision::with_batch_axis(*path.outputs_);
        batched && !path.family_->create(path.request())) {
        *path.outputs_ = std::move(*batched);
        path.batch_axis_.emplace(*path.outputs_);
    }
    for (auto* head : {&path.head_, &path.float_head_}) {
        auto own = path.family_->create(path.request());
        if (!own) return own.error();
        *head = std::move(*own);
    }
    const DecoderFamily& row = path.family_->row;
    path.threshold_ = static_cast<float>(info.score_threshold.value_or(row.score_threshold));
    path.iou_ = vision::iou_threshold_of(*path.family_, info);
    return path;
}

namespace {

vision::RunContext context_of(float threshold, const Frame& frame) {
    return {threshold, static_cast<float>(frame.width), static_cast<float>(frame.height)};
}

}  // namespace

Result<Candidates> DecodePath::candidates(std::span<const OutputTensor> tensors,
                                          const Frame& frame) {
    Candidates found;
    auto seen = coded_->with_codes(tensors);
    if (batch_axis_) seen = batch_axis_->see(seen);
    if (auto done = head_->run(seen, context_of(threshold_, frame), found); !done)
        return done.error();
    return found;
}

Result<Decoded> DecodePath::decode(std::span<const OutputTensor> tensors, const Frame& frame) {
    Decoded decoded;
    if (auto done = decoder_->decode(tensors, frame.to_frame, frame.width, frame.height, decoded);
        !done)
        return done.error();
    return decoded;
}

Result<Candidates> DecodePath::reference_candidates(const std::vector<TensorData>& values,
                                                    const Frame& frame) {
    if (auto found = plain_candidates(family(), request(), values, threshold_)) return *found;
    Candidates found;
    const auto tensors = cpu_tensors(*outputs_, values);
    if (auto done =
            float_head_->run(coded_->with_codes(tensors), context_of(threshold_, frame), found);
        !done)
        return done.error();
    return found;
}

Decoded DecodePath::reference_select(Candidates found, const Frame& frame, double iou_shift) const {
    const auto keep_known = [&](auto& items) {
        std::erase_if(items,
                      [&](auto& item) { return (item.class_id += info_->class_offset) < 0; });
    };
    keep_known(found.boxes);
    keep_known(found.classes);
    Decoded decoded;
    decoded.not_finite = found.not_finite;
    std::ranges::sort(found.boxes, [](const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score > b.score : a.position < b.position;
    });
    if (family_->weighted_nms) {
        const size_t before = found.boxes.size();
        found.boxes = plain_means(found.boxes, iou_ + iou_shift);
        decoded.suppressed = static_cast<unsigned>(before - found.boxes.size());
    }
    const bool needs_nms = float_head_->needs_nms(family_->has_nms) && !family_->weighted_nms;
    std::vector<Candidate> kept;
    for (const Candidate& c : found.boxes) {
        if (decoded.detections.size() == info_->max_detections.value_or(100)) break;
        if (!(c.x0 < c.x1) || !(c.y0 < c.y1)) continue;
        const auto covers = [&](const Candidate& k) {
            return k.class_id == c.class_id && plain_iou(k, c) > iou_ + iou_shift;
        };
        if (needs_nms && std::ranges::any_of(kept, covers)) {
            ++decoded.suppressed;
            continue;
        }
        kept.push_back(c);
        if (const auto box = plain_map(c, frame)) decoded.detections.push_back(*box);
    }
    std::ranges::stable_sort(found.classes, std::ranges::greater(), &Classification::score);
    if (!found.classes.empty()) decoded.classes.assign(1, found.classes.front());
    return decoded;
}

bool DecodePath::lists_boxes() const {
    return family() == "detr" || family() == "ssd" || family() == "yolo-end2end";
}

std::vector<OutputTensor> cpu_tensors(const std::vector<TensorInfo>& infos,
                                      const std::vector<TensorData>& values) {
    std::vector<OutputTensor> tensors;
    for (size_t i = 0; i < infos.size() && i < values.size(); ++i)
        tensors.push_back({values[i].bytes.data(), infos[i].name, &infos[i].cpu, &infos[i].cpu});
    return tensors;
}

}  // namespace vartml::verify
