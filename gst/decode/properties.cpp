// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/properties.h"

#include <algorithm>
#include <cmath>

#include "gst/support/in_place.h"

namespace vartml::gst {
namespace {

// Also by the names that the library knows besides nicks, which are all that GObject knows. As a
// function of GStreamer's it serves launch lines and gst_util_set_object_arg() alike.
gboolean decoder_from_text(GValue* value, const gchar* text) {
    if (const vartml::DecoderFamily* family = vartml::find_decoder_family(text)) {
        const auto index = family - vartml::decoder_families().data();
        g_value_set_enum(value, static_cast<gint>(index + 1));
        return TRUE;
    }
    auto* const known = static_cast<GEnumClass*>(g_type_class_ref(G_VALUE_TYPE(value)));
    const GEnumValue* found = g_enum_get_value_by_nick(known, text);
    gchar* end = nullptr;
    const gint64 number = g_ascii_strtoll(text, &end, 0);
    if (!found && end != text && !*end) found = g_enum_get_value(known, static_cast<gint>(number));
    if (found) g_value_set_enum(value, found->value);
    g_type_class_unref(known);
    return found != nullptr;
}

// Value 0 is auto, value n the n-th family of the library.
GType decoder_enum() {
    static GType type = 0;
    if (g_once_init_enter(&type)) {
        const auto families = vartml::decoder_families();
        GEnumValue* values = g_new0(GEnumValue, families.size() + 2);
        values[0] = {0, "sidecar, tensor ids, or shapes if exactly one fits", "auto"};
        for (size_t i = 0; i < families.size(); ++i) {
            values[i + 1] = {static_cast<int>(i + 1),
                             g_intern_string(std::string(families[i].summary).c_str()),
                             g_intern_string(std::string(families[i].nick).c_str())};
        }
        const GType made = g_enum_register_static("GstVartmlDecoder", values);
        gst_type_mark_as_plugin_api(made, static_cast<GstPluginAPIFlags>(0));
        static GstValueTable from_text{};  // GStreamer keeps its address
        from_text.type = made;
        from_text.deserialize = decoder_from_text;
        gst_value_register(&from_text);
        g_once_init_leave(&type, made);
    }
    return type;
}

constexpr GEnumValue nms_values[] = {
    {static_cast<int>(vartml::Nms::automatic), "per class, off for end-to-end families", "auto"},
    {static_cast<int>(vartml::Nms::per_class), "boxes of a class", "per-class"},
    {static_cast<int>(vartml::Nms::class_agnostic), "all boxes", "class-agnostic"},
    {static_cast<int>(vartml::Nms::off), "keep all boxes", "off"},
    {0, nullptr, nullptr},
};

GParamSpec* decoder_spec(const Property<DecodeProperties>& p, GParamFlags flags) {
    return g_param_spec_enum(p.name, p.nick, p.blurb, decoder_enum(), 0, flags);
}

GParamSpec* labels_spec(const Property<DecodeProperties>& p, GParamFlags flags) {
    return gst_param_spec_array(
        p.name, p.nick, p.blurb,
        g_param_spec_string("label", "Label", "Name of a class", nullptr, flags), flags);
}

}  // namespace

std::span<const Property<DecodeProperties>> decode_properties() {
    using S = DecodeProperties;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        // auto: what the sidecar says, else the family whose registered tensor ids are found, else
        // the only family that the shapes fit; several or none is an error that lists them.
        {"decoder", "Decoder", "Decoder family of the model's outputs", until_ready,
         P::Custom{decoder_spec,
                   [](const S& s, GValue* value) { g_value_set_enum(value, s.decoder); },
                   [](S& s, const GValue* value) { s.decoder = g_value_get_enum(value); }}},
        {"decoder-library", "Decoder library",
         "Shared object with a decoder of one's own (C interface vartml/decoder.h), which takes "
         "the "
         "place of the families; unset: none",
         until_ready, P::Text{&S::library}},
        {"modelinfo-file", "Sidecar",
         "Sidecar (.modelinfo) for what the model's own leaves open; unset: none", until_ready,
         P::Text{&S::modelinfo_file}},
        {"label-file", "Label file",
         "Text file with one label per line; unset: the sidecar's labels", any_time,
         P::Text{&S::label_file}, [](S& s) { s.label_file_written = true; }},
        {"score-threshold", "Score threshold",
         "Least score of a box or class (-1 = sidecar, else decoder)", controlled,
         P::Real{&S::score_threshold, -1, 1}},
        {"iou-threshold", "IoU threshold",
         "Overlap above which a box is suppressed (-1 = sidecar, else decoder)", controlled,
         P::Real{&S::iou_threshold, -1, 1}},
        // The best ones. Unless written, the sidecar's number wins.
        {"max-detections", "Most detections", "Boxes kept per inference", any_time,
         P::Uint{&S::max_detections, 1, 10000}, [](S& s) { s.max_detections_set = true; }},
        {"top-k", "Top k", "Classes kept by classification", any_time, P::Uint{&S::top_k, 1, 1000}},
        {"nms", "NMS", "Which boxes suppress each other", any_time,
         P::choice<&S::nms>("GstVartmlNms", nms_values)},
        {"classes", "Classes", "Comma list of labels or class numbers to keep; unset: all",
         any_time, P::Text{&S::classes}},
        {"min-size", "Least size", "Boxes with a smaller side in pixels are dropped", any_time,
         P::Uint{&S::min_size, 0, G_MAXINT}},
        // Of the mask of a box, or of the class of a map of one channel; below it is background.
        {"mask-threshold", "Mask threshold", "Probability from which a pixel belongs to a mask",
         controlled, P::Real{&S::mask_threshold, 0, 1}},
        // Others keep their places.
        {"keypoint-threshold", "Keypoint threshold", "Score from which a keypoint is visible",
         controlled, P::Real{&S::keypoint_threshold, 0, 1}},
        // Removed once decoded, device memory returns at once.
        {"keep-tensors", "Keep tensors", "Leave decoded tensors on the frame", any_time,
         P::Flag{&S::keep_tensors}},
        {"labels", "Labels", "Names of the classes of the models that were decoded so far", 0,
         P::Computed{labels_spec, list_decoded_labels}},
        P::stats<decode_stats>("Since start: frames, decoded, passed (had no tensors), reused "
                               "(carry a result that was decoded), boxes, suppressed, not-finite; "
                               "microseconds of a result: decode-p50-us, -p95-us, -p99-us"),
    };
    return all;
}

std::string DecodeProperties::family() const {
    if (!decoder) return {};
    return std::string(vartml::decoder_families()[static_cast<size_t>(decoder - 1)].nick);
}

vartml::DecodeOptions DecodeProperties::options() const {
    vartml::DecodeOptions options;
    options.decoder = family();
    // A file of this folder has no '/', and the system would look for it elsewhere.
    if (!library.empty())
        options.decoder = (library.find('/') == library.npos ? "./" : "") + library;
    options.score_threshold = score_threshold;
    options.iou_threshold = iou_threshold;
    options.max_detections = max_detections_set ? max_detections : 0;
    options.top_k = top_k;
    options.nms = nms;
    options.classes = split_list(classes);
    options.min_size = min_size;
    options.mask_threshold = mask_threshold;
    options.keypoint_threshold = keypoint_threshold;
    return options;
}

void DecodeStats::add(const DecodedFrame& frame) {
    ++frames_;
    boxes_ += frame.boxes;
    suppressed_ += frame.suppressed;
    not_finite_ += frame.not_finite;
    reused_ += frame.reused;
    decoded_ += frame.decoded;
    if (frame.decoded && !frame.reused) times_us_[timed_++ % times_us_.size()] = frame.time_us;
}

GstStructure* DecodeStats::structure() const {
    std::array<guint32, 1024> sorted = times_us_;
    const auto count = static_cast<size_t>(std::min<guint64>(timed_, sorted.size()));
    std::sort(sorted.begin(), sorted.begin() + static_cast<long>(count));
    // The time below which `share` of the frames stayed.
    const auto percentile = [&](double share) -> guint64 {
        return count ? sorted[static_cast<size_t>(
                           std::lround(share * static_cast<double>(count - 1)))]
                     : 0;
    };
    return gst_structure_new(
        "vartml-decode-stats", "frames", G_TYPE_UINT64, frames_, "decoded", G_TYPE_UINT64, decoded_,
        "passed", G_TYPE_UINT64, frames_ - decoded_, "boxes", G_TYPE_UINT64, boxes_, "suppressed",
        G_TYPE_UINT64, suppressed_, "reused", G_TYPE_UINT64, reused_, "not-finite", G_TYPE_UINT64,
        not_finite_, "decode-p50-us", G_TYPE_UINT64, percentile(0.5), "decode-p95-us",
        G_TYPE_UINT64, percentile(0.95), "decode-p99-us", G_TYPE_UINT64, percentile(0.99), nullptr);
}

}  // namespace vartml::gst
