// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/settings.h"

#include <span>

namespace vartml::gst::infer {
namespace {

GType register_enum(const char* name, const GEnumValue* values) {
    const GType type = g_enum_register_static(name, values);
    gst_type_mark_as_plugin_api(type, GstPluginAPIFlags(0));
    return type;
}

GType resize_type() {
    static const GEnumValue values[] = {
        {int(ResizeChoice::automatic), "Sidecar, else decoder family, else stretch", "auto"},
        {int(ResizeChoice::stretch), "Fill the model's input, aspect may change", "stretch"},
        {int(ResizeChoice::letterbox), "Keep the aspect, centred, borders in the pad colour",
         "letterbox"},
        {int(ResizeChoice::letterbox_top_left), "Keep the aspect, at the top left",
         "letterbox-top-left"},
        {int(ResizeChoice::crop), "Centred part of the frame with the model's aspect", "crop"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferResizeMode", values);
    return type;
}

GType output_view_type() {
    static const GEnumValue values[] = {
        {int(OutputView::cpu), "As the ONNX model declares, dequantised", "cpu"},
        {int(OutputView::hw), "As the device wrote it, without conversion", "hw"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferTensorType", values);
    return type;
}

GType copy_policy_type() {
    static const GEnumValue values[] = {
        {int(CopyPolicy::allow), "Count copies", "allow"},
        {int(CopyPolicy::warn), "Count them and post one warning per reason", "warn"},
        {int(CopyPolicy::forbid), "The first copy is an error", "forbid"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferCopyPolicy", values);
    return type;
}

GType on_fallback_type() {
    static const GEnumValue values[] = {
        {int(OnFallback::allow), "Run them on the CPU", "allow"},
        {int(OnFallback::warn), "Run them on the CPU and post one warning", "warn"},
        {int(OnFallback::error), "Refuse the model", "error"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferOnFallback", values);
    return type;
}

GType on_late_type() {
    static const GEnumValue values[] = {
        {int(OnLate::automatic), "Skip when upstream is live, else block", "auto"},
        {int(OnLate::block), "Wait and infer every frame", "block"},
        {int(OnLate::skip), "Pass the frame without inference", "skip"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferOnLate", values);
    return type;
}

GType keep_rate_type() {
    static const GEnumValue values[] = {
        {int(KeepRate::automatic), "Yes when upstream is live, else no", "auto"},
        {int(KeepRate::no), "A frame that is inferred waits for its result, later ones behind it",
         "no"},
        {int(KeepRate::yes), "Frames leave at their time, with the newest result there is", "yes"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferKeepRate", values);
    return type;
}

GType inference_region_type() {
    static const GEnumValue values[] = {
        {int(InferenceRegion::full_frame), "The whole frame", "full-frame"},
        {int(InferenceRegion::roi), "Each region that an element before attached", "roi"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferRegion", values);
    return type;
}

GType roi_source_type() {
    static const GEnumValue values[] = {
        {int(RoiSource::automatic), "Regions of interest where there are any, else detections",
         "auto"},
        {int(RoiSource::detections), "Detections of the analytics metadata", "detections"},
        {int(RoiSource::roi_meta), "GstVideoRegionOfInterestMeta", "roi-meta"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferRoiSource", values);
    return type;
}

GType input_is_tensor_type() {
    static const GEnumValue values[] = {
        {int(InputIsTensor::automatic),
         "Where the model takes pictures as bytes and the frame is such a picture", "auto"},
        {int(InputIsTensor::no), "Frames are always converted", "no"},
        {int(InputIsTensor::yes), "Frames are the input tensor; other caps are refused", "yes"},
        {0, nullptr, nullptr},
    };
    static const GType type = register_enum("GstVartmlInferInputIsTensor", values);
    return type;
}

constexpr int ready = GST_PARAM_MUTABLE_READY;
constexpr int playing = GST_PARAM_MUTABLE_PLAYING;
constexpr int controlled = playing | GST_PARAM_CONTROLLABLE;

// One property: its text, its range and the setting behind it. The id of a property is its place in
// the table, from 1.
struct Text {
    std::string Settings::* field;
    const char* fallback;
};
struct Uint {
    unsigned Settings::* field;
    guint min, max, fallback;
};
struct Int {
    int Settings::* field;
    gint min, max, fallback;
};
struct Real {
    double Settings::* field;
    gdouble min, max, fallback;
};
struct Time {
    guint64 Settings::* field;
    guint64 fallback;
};
// An enumeration, by what reads and writes it.
struct Enum {
    GType (*type)();
    int fallback;
    int (*get)(const Settings&);
    void (*set)(Settings&, int);
};
struct Options {};
using Kind = std::variant<Text, Uint, Int, Real, Time, Enum, Options>;
struct Property {
    const char *name, *nick, *blurb;
    int flags;
    Kind kind;
};

template <auto Field>
Enum choice(GType (*type)(), int fallback = 0) {
    using T = std::remove_reference_t<decltype(std::declval<Settings&>().*Field)>;
    return {type, fallback, [](const Settings& s) { return int(s.*Field); },
            [](Settings& s, int value) { s.*Field = T(value); }};
}

std::span<const Property> properties() {
    // Since: 1.0
    static const Property all[] = {
        {"model", "Model",
         "Compiled model (directory with vaiml_par_0, .rai or .tar.gz file, or directory with one "
         ".rai), or an .onnx file, which is compiled into cache-dir first; written while running, "
         "it is loaded beside the one in use and takes its place between two frames; required",
         playing, Text{&Settings::model, nullptr}},
        {"modelinfo-file", "Sidecar",
         "Sidecar (.modelinfo) of the model; unset: the one in the compiled model, else beside it; "
         "written while running, it is that of the model that is written next",
         playing, Text{&Settings::modelinfo_file, nullptr}},
        {"device", "Device",
         "Device that runs the model: auto, softnpu, or what the runtime offers", ready,
         Text{&Settings::device, "auto"}},
        {"runner-options", "Runner options",
         "Further options of create_runner as a structure, such as options,start_column=(uint)4; "
         "unset: none",
         ready, Options{}},
        {"cache-dir", "Cache folder",
         "Where an .onnx is compiled to and a .tar.gz unpacked; unset: vartml in the user's cache "
         "folder",
         ready, Text{&Settings::cache_dir, nullptr}},
        {"model-instance-id", "Model instance",
         "Elements of the process with the same id share one model, its weights and its batches; "
         "unset: not shared",
         ready, Text{&Settings::model_instance_id, nullptr}},
        {"batch-size", "Batch size",
         "Frames per run, at most what the model was compiled for; 0 = that", ready,
         Uint{&Settings::batch_size, 0, 64, 0}},
        {"batch-timeout", "Batch timeout",
         "Longest wait in milliseconds of the oldest frame for a full batch; -1 = one frame "
         "duration, 0 = never wait",
         playing, Int{&Settings::batch_timeout_ms, -1, 60'000, -1}},
        {"async-depth", "Depth",
         "Most frames between chain and push; 0 = twice the batch size, at least 2", ready,
         Uint{&Settings::async_depth, 0, 64, 0}},
        {"run-timeout", "Run timeout",
         "Milliseconds after which a run that the device does not end has failed", ready,
         Uint{&Settings::run_timeout_ms, 1, 3'600'000, 10'000}},
        {"inference-interval", "Interval", "Infer one frame in N; the others pass", controlled,
         Uint{&Settings::inference_interval, 1, 1000, 1}},
        {"inference-region", "Region", "What part of a frame is inferred", ready,
         choice<&Settings::region>(inference_region_type)},
        {"roi-source", "Source of regions", "Where regions come from", ready,
         choice<&Settings::roi_source>(roi_source_type)},
        {"roi-classes", "Classes of regions",
         "Comma-separated labels of detections, or types of regions of interest, that are "
         "inferred; unset: all",
         playing, Text{&Settings::roi_classes, nullptr}},
        {"roi-min-size", "Smallest region", "Regions with a side of fewer pixels are not inferred",
         playing, Uint{&Settings::roi_min_size, 0, 65'535, 16}},
        {"roi-max", "Most regions", "Most regions that are inferred per frame, best score first",
         ready, Uint{&Settings::roi_max, 1, 256, 16}},
        {"roi-expand", "Enlargement", "What is added to a region on each side, as part of its size",
         playing, Real{&Settings::roi_expand, 0, 2, 0}},
        {"resize-mode", "Resize mode", "How the frame is fitted to the model's input", ready,
         choice<&Settings::resize>(resize_type)},
        {"preprocess", "Pre-processing",
         "Keys of the sidecar's input section without prefix, such as 'channels=bgr mean=0 scale=1 "
         "pad=114,114,114'; what is absent, or all if unset, comes from the sidecar, else from the "
         "decoder "
         "family",
         ready, Text{&Settings::preprocess, nullptr}},
        {"input-is-tensor", "Input is tensor",
         "Whether the bytes of a frame are the model's input, without conversion", ready,
         choice<&Settings::input_is_tensor>(input_is_tensor_type)},
        {"output-tensor-type", "Tensor view",
         "View of the tensors that are attached; hw is what to set in front of vartmldecode", ready,
         choice<&Settings::output_view>(output_view_type)},
        {"copy-policy", "Copy policy", "What a copy of a frame or tensor leads to", playing,
         choice<&Settings::copy_policy>(copy_policy_type, int(CopyPolicy::warn))},
        {"on-fallback", "On fallback", "What nodes of the model that run on the CPU lead to", ready,
         choice<&Settings::on_fallback>(on_fallback_type, int(OnFallback::warn))},
        {"on-late", "On late frames",
         "What happens to the inference of a frame that is late or meets a full queue; the frame "
         "itself always passes",
         playing, choice<&Settings::on_late>(on_late_type)},
        {"keep-rate", "Keep the rate",
         "Whether every frame leaves at its time, with its own result where that comes within one "
         "frame duration (latency, where that is set), else with the newest one and its age",
         playing, choice<&Settings::keep_rate>(keep_rate_type)},
        {"latency", "Latency",
         "Answer to the latency query in nanoseconds; none = 99th percentile of the measured "
         "pre-processing and run, and the batch timeout, as far as frames wait for them",
         ready, Time{&Settings::latency, GST_CLOCK_TIME_NONE}},
        {"latency-target", "Latency target",
         "Milliseconds within which 95 of 100 inferences shall be; the interval is adapted to hold "
         "it; 0 = off",
         playing, Uint{&Settings::latency_target_ms, 0, 60'000, 0}},
    };
    return all;
}

const Property* find(unsigned id) {
    return id >= 1 && id <= properties().size() ? &properties()[id - 1] : nullptr;
}

template <typename... Functions>
struct Overloaded : Functions... {
    using Functions::operator()...;
};

GParamSpec* spec_of(const Property& p) {
    const auto flags = GParamFlags(p.flags | G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
    return std::visit(
        Overloaded{
            [&](const Text& k) {
                return g_param_spec_string(p.name, p.nick, p.blurb, k.fallback, flags);
            },
            [&](const Uint& k) {
                return g_param_spec_uint(p.name, p.nick, p.blurb, k.min, k.max, k.fallback, flags);
            },
            [&](const Int& k) {
                return g_param_spec_int(p.name, p.nick, p.blurb, k.min, k.max, k.fallback, flags);
            },
            [&](const Real& k) {
                return g_param_spec_double(p.name, p.nick, p.blurb, k.min, k.max, k.fallback,
                                           flags);
            },
            [&](const Time& k) {
                return g_param_spec_uint64(p.name, p.nick, p.blurb, 0, G_MAXUINT64, k.fallback,
                                           flags);
            },
            [&](const Enum& k) {
                return g_param_spec_enum(p.name, p.nick, p.blurb, k.type(), k.fallback, flags);
            },
            [&](const Options&) {
                return g_param_spec_boxed(p.name, p.nick, p.blurb, GST_TYPE_STRUCTURE, flags);
            },
        },
        p.kind);
}

std::string text_of(const GValue* value) {
    const gchar* text = g_value_get_string(value);
    return text ? text : "";
}

// Fields of the structure as payloads of the runner's options.
void read_options(Settings& settings, const GstStructure* s) {
    settings.runner_options.clear();
    settings.runner_options_error.clear();
    if (!s) return;
    for (int i = 0; i < gst_structure_n_fields(s); ++i) {
        const gchar* name = gst_structure_nth_field_name(s, guint(i));
        const GValue* v = gst_structure_get_value(s, name);
        if (G_VALUE_HOLDS_STRING(v)) {
            settings.runner_options[name] = text_of(v);
        } else if (G_VALUE_HOLDS_BOOLEAN(v)) {
            settings.runner_options[name] = bool(g_value_get_boolean(v));
        } else if (G_VALUE_HOLDS_INT(v)) {
            settings.runner_options[name] = g_value_get_int(v);
        } else if (G_VALUE_HOLDS_UINT(v)) {
            settings.runner_options[name] = g_value_get_uint(v);
        } else {
            settings.runner_options_error = std::string("property 'runner-options': field '") +
                                            name + "' is a " + G_VALUE_TYPE_NAME(v) +
                                            ", expected string, boolean, int or uint";
        }
    }
}

GstStructure* write_options(const Settings& settings) {
    if (settings.runner_options.empty()) return nullptr;
    GstStructure* s = gst_structure_new_empty("options");
    for (const auto& [key, value] : settings.runner_options) {
        const char* name = key.c_str();
        if (const auto* text = std::get_if<std::string>(&value))
            gst_structure_set(s, name, G_TYPE_STRING, text->c_str(), nullptr);
        if (const auto* flag = std::get_if<bool>(&value))
            gst_structure_set(s, name, G_TYPE_BOOLEAN, gboolean(*flag), nullptr);
        if (const auto* number = std::get_if<int>(&value))
            gst_structure_set(s, name, G_TYPE_INT, *number, nullptr);
        if (const auto* number = std::get_if<unsigned>(&value))
            gst_structure_set(s, name, G_TYPE_UINT, *number, nullptr);
    }
    return s;
}

}  // namespace

void install_properties(GObjectClass* klass) {
    unsigned id = 0;
    for (const Property& p : properties()) g_object_class_install_property(klass, ++id, spec_of(p));
    g_object_class_install_property(
        klass, stats_property(),
        g_param_spec_boxed("stats", "Statistics",
                           "Counters, gauges and percentiles of times as vartml-infer-stats",
                           GST_TYPE_STRUCTURE,
                           GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

unsigned stats_property() {
    return unsigned(properties().size()) + 1;
}

unsigned model_property() {
    return 1;
}

unsigned sidecar_property() {
    return 2;
}

std::string runner_options_text(const Settings& settings) {
    GstStructure* s = write_options(settings);
    if (!s) return "";
    gchar* text = gst_structure_to_string(s);
    std::string copy = text;
    g_free(text);
    gst_structure_free(s);
    return copy;
}

bool set_property(Settings& settings, unsigned id, const GValue* value) {
    const Property* p = find(id);
    if (!p) return false;
    std::visit(Overloaded{
                   [&](const Text& k) { settings.*k.field = text_of(value); },
                   [&](const Uint& k) { settings.*k.field = g_value_get_uint(value); },
                   [&](const Int& k) { settings.*k.field = g_value_get_int(value); },
                   [&](const Real& k) { settings.*k.field = g_value_get_double(value); },
                   [&](const Time& k) { settings.*k.field = g_value_get_uint64(value); },
                   [&](const Enum& k) { k.set(settings, g_value_get_enum(value)); },
                   [&](const Options&) { read_options(settings, gst_value_get_structure(value)); },
               },
               p->kind);
    return true;
}

bool get_property(const Settings& settings, unsigned id, GValue* value) {
    const Property* p = find(id);
    if (!p) return false;
    std::visit(Overloaded{
                   [&](const Text& k) {
                       const std::string& text = settings.*k.field;
                       g_value_set_string(value, text.empty() ? nullptr : text.c_str());
                   },
                   [&](const Uint& k) { g_value_set_uint(value, settings.*k.field); },
                   [&](const Int& k) { g_value_set_int(value, settings.*k.field); },
                   [&](const Real& k) { g_value_set_double(value, settings.*k.field); },
                   [&](const Time& k) { g_value_set_uint64(value, settings.*k.field); },
                   [&](const Enum& k) { g_value_set_enum(value, k.get(settings)); },
                   [&](const Options&) { g_value_take_boxed(value, write_options(settings)); },
               },
               p->kind);
    return true;
}

}  // namespace vartml::gst::infer
