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

GType nms_enum() {
    static GType type = 0;
    if (g_once_init_enter(&type)) {
        static const GEnumValue values[] = {
            {static_cast<int>(vartml::Nms::automatic), "per class, off for end-to-end families",
             "auto"},
            {static_cast<int>(vartml::Nms::per_class), "boxes of a class", "per-class"},
            {static_cast<int>(vartml::Nms::class_agnostic), "all boxes", "class-agnostic"},
            {static_cast<int>(vartml::Nms::off), "keep all boxes", "off"},
            {0, nullptr, nullptr}};
        const GType made = g_enum_register_static("GstVartmlNms", values);
        gst_type_mark_as_plugin_api(made, static_cast<GstPluginAPIFlags>(0));
        g_once_init_leave(&type, made);
    }
    return type;
}

std::string string_of(const GValue* value) {
    const char* text = g_value_get_string(value);
    return text ? text : "";
}

void set_string(GValue* value, const std::string& text) {
    g_value_set_string(value, text.empty() ? nullptr : text.c_str());
}

}  // namespace

bool DecodeProperties::set(guint id, const GValue* value) {
    switch (id) {
        case prop_decoder:
            decoder = g_value_get_enum(value);
            break;
        case prop_modelinfo_file:
            modelinfo_file = string_of(value);
            break;
        case prop_label_file:
            label_file = string_of(value);
            break;
        case prop_score_threshold:
            score_threshold = g_value_get_double(value);
            break;
        case prop_iou_threshold:
            iou_threshold = g_value_get_double(value);
            break;
        case prop_max_detections:
            max_detections = g_value_get_uint(value);
            max_detections_set = true;
            break;
        case prop_top_k:
            top_k = g_value_get_uint(value);
            break;
        case prop_nms:
            nms = static_cast<vartml::Nms>(g_value_get_enum(value));
            break;
        case prop_classes:
            classes = string_of(value);
            break;
        case prop_min_size:
            min_size = g_value_get_uint(value);
            break;
        case prop_mask_threshold:
            mask_threshold = g_value_get_double(value);
            break;
        case prop_keypoint_threshold:
            keypoint_threshold = g_value_get_double(value);
            break;
        case prop_keep_tensors:
            keep_tensors = g_value_get_boolean(value);
            break;
        default:
            return false;
    }
    return true;
}

bool DecodeProperties::get(guint id, GValue* value) const {
    switch (id) {
        case prop_decoder:
            g_value_set_enum(value, decoder);
            break;
        case prop_modelinfo_file:
            set_string(value, modelinfo_file);
            break;
        case prop_label_file:
            set_string(value, label_file);
            break;
        case prop_score_threshold:
            g_value_set_double(value, score_threshold);
            break;
        case prop_iou_threshold:
            g_value_set_double(value, iou_threshold);
            break;
        case prop_max_detections:
            g_value_set_uint(value, max_detections);
            break;
        case prop_top_k:
            g_value_set_uint(value, top_k);
            break;
        case prop_nms:
            g_value_set_enum(value, static_cast<int>(nms));
            break;
        case prop_classes:
            set_string(value, classes);
            break;
        case prop_min_size:
            g_value_set_uint(value, min_size);
            break;
        case prop_mask_threshold:
            g_value_set_double(value, mask_threshold);
            break;
        case prop_keypoint_threshold:
            g_value_set_double(value, keypoint_threshold);
            break;
        case prop_keep_tensors:
            g_value_set_boolean(value, keep_tensors);
            break;
        default:
            return false;
    }
    return true;
}

vartml::DecodeOptions DecodeProperties::options() const {
    vartml::DecodeOptions options;
    if (decoder) {
        options.decoder = vartml::decoder_families()[static_cast<size_t>(decoder - 1)].nick;
    }
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

void install_decode_properties(GObjectClass* gobject) {
    constexpr auto ready = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                                    GST_PARAM_MUTABLE_READY);
    constexpr auto playing = static_cast<GParamFlags>(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                                      GST_PARAM_MUTABLE_PLAYING);
    constexpr auto controllable =
        static_cast<GParamFlags>(playing | static_cast<GParamFlags>(GST_PARAM_CONTROLLABLE));

    /**
     * GstVartmlDecode:decoder:
     *
     * Decoder family. auto: what the sidecar says, else the family whose registered tensor ids are
     * found, else the only family that the shapes fit; several or none is an error that lists the
     * candidates.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_decoder,
        g_param_spec_enum("decoder", "Decoder", "Decoder family of the model's outputs",
                          decoder_enum(), 0, ready));
    /**
     * GstVartmlDecode:modelinfo-file:
     *
     * Sidecar for what the model's own leaves open, and for tensors that bring none.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_modelinfo_file,
        g_param_spec_string(
            "modelinfo-file", "Sidecar",
            "Sidecar (.modelinfo) for what the model's own leaves open; unset: none", nullptr,
            ready));
    /**
     * GstVartmlDecode:label-file:
     *
     * Text file with one label per line, UTF-8. Wins over the sidecar's labels.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_label_file,
        g_param_spec_string("label-file", "Label file",
                            "Text file with one label per line; unset: the sidecar's labels",
                            nullptr, playing));
    /**
     * GstVartmlDecode:score-threshold:
     *
     * Least score of a box or class; -1: the sidecar's, else the decoder's.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_score_threshold,
        g_param_spec_double("score-threshold", "Score threshold",
                            "Least score of a box or class (-1 = sidecar, else decoder)", -1, 1, -1,
                            controllable));
    /**
     * GstVartmlDecode:iou-threshold:
     *
     * Boxes that overlap a better one with more than this intersection over union are suppressed;
     * -1: the sidecar's, else the decoder's.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_iou_threshold,
        g_param_spec_double("iou-threshold", "IoU threshold",
                            "Overlap above which a box is suppressed (-1 = sidecar, else decoder)",
                            -1, 1, -1, controllable));
    /**
     * GstVartmlDecode:max-detections:
     *
     * Boxes kept per inference, the best ones. Unless set, the sidecar's number wins.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_max_detections,
        g_param_spec_uint("max-detections", "Most detections", "Boxes kept per inference", 1, 10000,
                          100, playing));
    /**
     * GstVartmlDecode:top-k:
     *
     * Classes kept by classification.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_top_k,
        g_param_spec_uint("top-k", "Top k", "Classes kept by classification", 1, 1000, 1, playing));
    /**
     * GstVartmlDecode:nms:
     *
     * Which boxes suppress each other. auto: those of a class, none for end-to-end families.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_nms,
        g_param_spec_enum("nms", "NMS", "Which boxes suppress each other", nms_enum(), 0, playing));
    /**
     * GstVartmlDecode:classes:
     *
     * Comma list of labels or class numbers that are kept; NULL keeps all.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_classes,
        g_param_spec_string("classes", "Classes",
                            "Comma list of labels or class numbers to keep; unset: all", nullptr,
                            playing));
    /**
     * GstVartmlDecode:min-size:
     *
     * Boxes whose smaller side has fewer pixels of the frame are dropped.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_min_size,
        g_param_spec_uint("min-size", "Least size",
                          "Boxes with a smaller side in pixels are dropped", 0, G_MAXINT, 0,
                          playing));
    /**
     * GstVartmlDecode:mask-threshold:
     *
     * Probability from which a pixel belongs to the mask of a box, or to the class of a map of one
     * channel; below it is background.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_mask_threshold,
        g_param_spec_double("mask-threshold", "Mask threshold",
                            "Probability from which a pixel belongs to a mask", 0, 1, 0.5,
                            controllable));
    /**
     * GstVartmlDecode:keypoint-threshold:
     *
     * Keypoints with a lower score are marked as not visible. They keep their places.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_keypoint_threshold,
        g_param_spec_double("keypoint-threshold", "Keypoint threshold",
                            "Score from which a keypoint is visible", 0, 1, 0, controllable));
    /**
     * GstVartmlDecode:keep-tensors:
     *
     * Leave the tensors on the frame. By default they are removed once decoded, so that device
     * memory returns at once.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_keep_tensors,
        g_param_spec_boolean("keep-tensors", "Keep tensors", "Leave decoded tensors on the frame",
                             FALSE, playing));
    /**
     * GstVartmlDecode:labels:
     *
     * Names of all classes of the models that were decoded so far; empty before the first frame.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_labels,
        gst_param_spec_array(
            "labels", "Labels", "Names of the classes of the models that were decoded so far",
            g_param_spec_string(
                "label", "Label", "Name of a class", nullptr,
                static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)),
            static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
    /**
     * GstVartmlDecode:stats:
     *
     * Structure vartml-decode-stats: frames, decoded, passed, boxes, suppressed, not-finite, and
     * decode-p50-us, decode-p95-us, decode-p99-us over the last 1024 decoded frames.
     *
     * Since: 1.0
     */
    g_object_class_install_property(
        gobject, prop_stats,
        g_param_spec_boxed("stats", "Statistics", "Counts and times since start",
                           GST_TYPE_STRUCTURE,
                           static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
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
