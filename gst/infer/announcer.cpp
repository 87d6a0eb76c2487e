// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/announcer.h"

#include <algorithm>
#include <utility>

#include "gst/support/tensor_caps.h"

namespace vartml::gst::infer {
namespace {

using Frame = TensorGroup::Frame;

struct Size {
    int width = 0, height = 0;
    bool operator==(const Size&) const = default;
    std::string words() const { return std::to_string(width) + "x" + std::to_string(height); }
};

Size size_of(const GstCaps* caps) {
    Size size;
    const GstStructure* s = gst_caps_get_structure(caps, 0);
    (void)gst_structure_get_int(s, "width", &size.width);
    (void)gst_structure_get_int(s, "height", &size.height);
    return size;
}

Size input_size(const Lane& lane) {
    return {int(lane.record()->model_width), int(lane.record()->model_height)};
}

bool suits(const TensorGroup& group, const Lane& lane, const GstCaps* caps) {
    return group.frame != Frame::same_size || size_of(caps) == input_size(lane);
}

// The caps as far as frames under them can have such tensors; `caps` is consumed.
GstCaps* frames_for(const TensorGroup& group, const Lane& lane, GstCaps* caps) {
    if (group.frame != Frame::same_size) return caps;
    const Size size = input_size(lane);
    GstCaps* limits = gst_caps_new_empty();
    for (const char* media : {"video/x-raw", tensor_media_type}) {
        // Square pixels: who scales for us puts borders where the frame has another aspect.
        GstStructure* s =
            gst_structure_new(media, "width", G_TYPE_INT, size.width, "height", G_TYPE_INT,
                              size.height, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, nullptr);
        gst_caps_append_structure_full(limits, s, gst_caps_features_new_any());
    }
    GstCaps* both = gst_caps_intersect_full(caps, limits, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(caps);
    gst_caps_unref(limits);
    return both;
}

GstCaps* nth(const GstCaps* caps, guint i) {
    GstCaps* one = gst_caps_new_empty();
    gst_caps_append_structure_full(one, gst_structure_copy(gst_caps_get_structure(caps, i)),
                                   gst_caps_features_copy(gst_caps_get_features(caps, i)));
    return one;
}

bool all_want_tensors(const GstCaps* caps) {
    if (gst_caps_is_any(caps) || gst_caps_is_empty(caps)) return false;
    for (guint i = 0; i < gst_caps_get_size(caps); ++i)
        if (group_names(gst_caps_get_structure(caps, i)).empty()) return false;
    return true;
}

// Whether downstream takes such tensors in frames of any caps.
bool is_taken(const GstCaps* wanted, const TensorGroup& group) {
    for (guint i = 0; i < gst_caps_get_size(wanted); ++i)
        if (takes_group(gst_caps_get_structure(wanted, i), group)) return true;
    return false;
}

std::string names_in(const GstCaps* caps) {
    std::string names;
    for (guint i = 0; i < gst_caps_get_size(caps); ++i)
        names += (i ? ", " : "") + group_names(gst_caps_get_structure(caps, i));
    return names;
}

std::string peer_name(GstPad* pad) {
    GstPad* peer = gst_pad_get_peer(pad);
    GstObject* element = peer ? gst_pad_get_parent(peer) : nullptr;
    const std::string name = element ? name_of(element) : "downstream";
    if (element) gst_object_unref(element);
    if (peer) gst_object_unref(peer);
    return name;
}

}  // namespace

void Announcer::stop() {
    gst_clear_caps(&caps_);
    gst_clear_caps(&announced_);
    chosen_.clear();
    stale_ = true;
}

void Announcer::set_caps(GstCaps* caps) {
    stale_ = true;
    gst_caps_replace(&caps_, caps);
    gst_clear_caps(&announced_);  // an event that came leaves, too
}

GstCaps* Announcer::choose(Failure& failure) {
    stale_ = false;
    const std::shared_ptr<Lane> lane = loader_.lane();
    GstCaps* wanted = gst_pad_peer_query_caps(context_.src, nullptr);
    GstCaps* best = nullptr;
    bool taken = false, wants_group = false;
    for (const TensorGroup& group : lane->groups()) {
        if (taken || !suits(group, *lane, caps_)) continue;
        GstCaps* caps = add_group(gst_caps_copy(caps_), group);
        taken = gst_caps_is_subset(caps, wanted);
        const bool better = taken || !best || (!wants_group && is_taken(wanted, group));
        wants_group = wants_group || is_taken(wanted, group);
        if (better) {
            gst_caps_replace(&best, caps);
            chosen_ = group.id;
        }
        gst_caps_unref(caps);
    }
    // Whoever takes such tensors, or none at all, has another reason, and says it.
    if (!taken && !wants_group && all_want_tensors(wanted)) {
        gst_clear_caps(&best);
        stale_ = true;
        failure = not_taken(*lane, wanted);
    }
    gst_caps_unref(wanted);
    return best;
}

Failure Announcer::not_taken(const Lane& lane, const GstCaps* wanted) const {
    const std::string taker = "'" + peer_name(context_.src) + "' takes ";
    const std::string model = lane.record()->model;
    std::string ours;
    bool size = false;
    for (const TensorGroup& group : lane.groups()) {
        ours += (ours.empty() ? "" : ", ") + group.id;
        size = size || is_taken(wanted, group);  // it does not suit, so it is the size
    }
    const std::string found = size ? size_of(caps_).words() : ours;
    const std::string expected = size ? input_size(lane).words() : names_in(wanted);
    const std::string sentence =
        size
            ? taker + "places of objects for pixels of the frame, and those of model '" + model +
                  "' are pixels of its input of " + expected + ", but frames are " + found +
                  "; scale them before vartmlinfer, or decode with vartmldecode"
            : taker + "tensors of the groups " + expected + ", and those of model '" + model +
                  "' are of " + found +
                  "; decode them with vartmldecode, or give the model's outputs ids in the sidecar";
    return {.error = {vartml::ErrorCode::unsupported, sentence},
            .id = "infer-tensors",
            .found = found,
            .expected = expected,
            .fix = "vartmldecode"};
}

bool Announcer::changes(GstCaps* caps) {
    if (announced_ && gst_caps_is_equal(announced_, caps)) return false;
    gst_caps_replace(&announced_, caps);
    return true;
}

const TensorGroup& Announcer::group(const Lane& lane) const {
    const auto it = std::ranges::find(lane.groups(), chosen_, &TensorGroup::id);
    return it == lane.groups().end() ? lane.groups().front() : *it;
}

void Announcer::narrow(GstQuery* query) {
    GstCaps* answer;
    gst_query_parse_caps_result(query, &answer);
    if (gst_caps_is_any(answer) || !have_groups(answer)) return;
    // What downstream's decoder needs of frames depends on the model, and their caps wait for it.
    (void)loader_.wait();
    const std::shared_ptr<Lane> lane = loader_.lane();
    GstCaps* narrow = gst_caps_new_empty();
    for (const TensorGroup& group : lane ? lane->groups() : std::span<const TensorGroup>()) {
        for (guint i = 0; i < gst_caps_get_size(answer); ++i) {
            if (!takes_group(gst_caps_get_structure(answer, i), group)) continue;
            narrow =
                gst_caps_merge(narrow, frames_for(group, *lane, without_groups(nth(answer, i))));
        }
    }
    // Last, what nothing suits: it is refused with a sentence; "not negotiated" would name nothing.
    narrow = gst_caps_merge(narrow, without_groups(gst_caps_copy(answer)));
    gst_query_set_caps_result(query, narrow);
    gst_caps_unref(narrow);
}

bool Announcer::answer(GstQuery* query) const {
    GstCaps* filter;
    gst_query_parse_caps(query, &filter);
    GstCaps* plain = filter ? without_groups(gst_caps_copy(filter)) : nullptr;
    GstCaps* frames = gst_pad_peer_query_caps(context_.sink, plain);
    GstCaps* all = gst_pad_get_pad_template_caps(context_.src);
    GstCaps* caps = gst_caps_intersect_full(frames, all, GST_CAPS_INTERSECT_FIRST);
    if (const std::shared_ptr<Lane> lane = loader_.lane()) {
        GstCaps* named = gst_caps_new_empty();
        for (const TensorGroup& group : lane->groups())
            gst_caps_append(named, add_group(frames_for(group, *lane, gst_caps_copy(caps)), group));
        std::swap(caps, named);
        gst_caps_unref(named);
    }
    if (filter) {
        GstCaps* both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
        std::swap(caps, both);
        gst_caps_unref(both);
    }
    gst_query_set_caps_result(query, caps);
    for (GstCaps* one : {frames, all, caps}) gst_caps_unref(one);
    if (plain) gst_caps_unref(plain);
    return true;
}

}  // namespace vartml::gst::infer
