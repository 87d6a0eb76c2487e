// SPDX-License-Identifier: Apache-2.0
// Two sidecars as one.
#include <algorithm>

#include <vartml/postprocess.h>

namespace vartml {

namespace {

// Takes over a field of `from` that `to` leaves open: an empty text, list or optional.
template <typename T>
void take(T& to, const T& from) {
    if (to == T{}) to = from;
}

void join(ModelInfo::Input& to, const ModelInfo::Input& from) {
    take(to.resize, from.resize);
    take(to.interpolation, from.interpolation);
    take(to.channels, from.channels);
    take(to.mean, from.mean);
    take(to.scale, from.scale);
    take(to.pad, from.pad);
    take(to.crop_fraction, from.crop_fraction);
    take(to.feed, from.feed);
    take(to.picture, from.picture);
}

void join(ModelInfo::Output& to, const ModelInfo::Output& from) {
    take(to.id, from.id);
    take(to.role, from.role);
    take(to.stride, from.stride);
    take(to.quant_scale, from.quant_scale);
    take(to.zero_point, from.zero_point);
    take(to.ends_in, from.ends_in);
}

template <typename T>
void join(std::vector<T>& to, const std::vector<T>& from) {
    for (const T& one : from) {
        const auto same = std::ranges::find(to, one.name, &T::name);
        if (same == to.end()) {
            to.push_back(one);
        } else {
            join(*same, one);
        }
    }
}

}  // namespace

ModelInfo join_modelinfo(ModelInfo first, const ModelInfo& second) {
    take(first.file, second.file);
    take(first.group_id, second.group_id);
    take(first.decoder, second.decoder);
    if (first.labels.empty()) {
        first.labels = second.labels;
        first.labels_file = second.labels_file;
    }
    take(first.num_classes, second.num_classes);
    take(first.class_offset, second.class_offset);
    take(first.score_threshold, second.score_threshold);
    take(first.iou_threshold, second.iou_threshold);
    take(first.max_detections, second.max_detections);
    take(first.strides, second.strides);
    take(first.anchors, second.anchors);
    take(first.activation, second.activation);
    take(first.columns, second.columns);
    take(first.box_order, second.box_order);
    take(first.box_form, second.box_form);
    take(first.peak, second.peak);
    take(first.blank, second.blank);
    take(first.skeleton, second.skeleton);
    join(first.inputs, second.inputs);
    join(first.outputs, second.outputs);
    return first;
}

}  // namespace vartml
