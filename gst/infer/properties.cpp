// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/properties.h"

namespace vartml::gst::infer {
namespace {

enum Property : unsigned {
    prop_0,
    prop_model,
    prop_modelinfo_file,
    prop_device,
    prop_runner_options,
    prop_cache_dir,
    prop_batch_size,
    prop_async_depth,
    prop_inference_interval,
    prop_resize_mode,
    prop_preprocess,
    prop_output_tensor_type,
    prop_copy_policy,
    prop_on_fallback,
    prop_on_late,
    prop_latency,
    prop_stats,
};

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

constexpr int ready = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY;
constexpr int playing = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

void install_strings(GObjectClass* klass) {
    const struct {
        Property id;
        const char *name, *nick, *blurb, *fallback;
    } rows[] = {
        // Since: 1.0
        {prop_model, "model", "Model",
         "Compiled model (directory with vaiml_par_0, .rai or .tar.gz file, or directory with one "
         ".rai), or "
         "an .onnx file, which is "
         "compiled into cache-dir first",
         nullptr},
        {prop_modelinfo_file, "modelinfo-file", "Sidecar",
         "Sidecar (.modelinfo) of the model; unset: the one in the compiled model, else beside it",
         nullptr},
        {prop_device, "device", "Device",
         "Device that runs the model: auto, softnpu, or what the runtime offers", "auto"},
        {prop_cache_dir, "cache-dir", "Cache folder",
         "Where an .onnx is compiled to and a .tar.gz unpacked; unset: vartml in the user's cache "
         "folder",
         nullptr},
        {prop_preprocess, "preprocess", "Pre-processing",
         "Keys of the sidecar's input section without prefix, such as 'channels=bgr mean=0 scale=1 "
         "pad=114,114,114'; what "
         "is absent comes from the sidecar, else from the decoder family",
         nullptr},
    };
    for (const auto& row : rows) {
        g_object_class_install_property(
            klass, row.id,
            g_param_spec_string(row.name, row.nick, row.blurb, row.fallback, GParamFlags(ready)));
    }
    g_object_class_install_property(
        klass, prop_runner_options,
        g_param_spec_boxed(
            "runner-options", "Runner options",
            "Further options of create_runner as a structure, such as options,start_column=(uint)4",
            GST_TYPE_STRUCTURE, GParamFlags(ready)));
}

void install_numbers(GObjectClass* klass) {
    const struct {
        Property id;
        const char *name, *nick, *blurb;
        guint min, max, fallback;
        int flags;
    } rows[] = {
        // Since: 1.0
        {prop_batch_size, "batch-size", "Batch size",
         "Frames per run; 0 = 1, more is not supported yet", 0, 64, 0, ready},
        {prop_async_depth, "async-depth", "Depth", "Most frames between chain and push; 0 = 2", 0,
         64, 0, ready},
        {prop_inference_interval, "inference-interval", "Interval",
         "Infer one frame in N; the others pass", 1, 1000, 1, playing | GST_PARAM_CONTROLLABLE},
    };
    for (const auto& row : rows) {
        g_object_class_install_property(
            klass, row.id,
            g_param_spec_uint(row.name, row.nick, row.blurb, row.min, row.max, row.fallback,
                              GParamFlags(row.flags)));
    }
    g_object_class_install_property(
        klass, prop_latency,
        g_param_spec_uint64(
            "latency", "Latency",
            "Answer to the latency query in nanoseconds; none = 99th percentile of the measured "
            "pre-processing and run",
            0, G_MAXUINT64, GST_CLOCK_TIME_NONE, GParamFlags(ready)));
}

void install_enums(GObjectClass* klass) {
    const struct {
        Property id;
        const char *name, *nick, *blurb;
        GType type;
        int fallback, flags;
    } rows[] = {
        // Since: 1.0
        {prop_resize_mode, "resize-mode", "Resize mode",
         "How the frame is fitted to the model's input", resize_type(),
         int(ResizeChoice::automatic), ready},
        {prop_output_tensor_type, "output-tensor-type", "Tensor view",
         "View of the tensors that are attached; hw is what to set in front of vartmldecode",
         output_view_type(), int(OutputView::cpu), ready},
        {prop_copy_policy, "copy-policy", "Copy policy",
         "What a copy of a frame or tensor leads to", copy_policy_type(), int(CopyPolicy::warn),
         playing},
        {prop_on_fallback, "on-fallback", "On fallback",
         "What nodes of the model that run on the CPU lead to", on_fallback_type(),
         int(OnFallback::warn), ready},
        {prop_on_late, "on-late", "On late frames",
         "What happens to the inference of a frame that is late or meets a full queue; the frame "
         "itself always passes",
         on_late_type(), int(OnLate::automatic), playing},
    };
    for (const auto& row : rows) {
        g_object_class_install_property(klass, row.id,
                                        g_param_spec_enum(row.name, row.nick, row.blurb, row.type,
                                                          row.fallback, GParamFlags(row.flags)));
    }
}

std::string text_of(const GValue* value) {
    const gchar* text = g_value_get_string(value);
    return text ? text : "";
}

void set_text(GValue* value, const std::string& text) {
    g_value_set_string(value, text.empty() ? nullptr : text.c_str());
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
    install_strings(klass);
    install_numbers(klass);
    install_enums(klass);
    g_object_class_install_property(
        klass, prop_stats,
        g_param_spec_boxed("stats", "Statistics",
                           "Counters, gauges and percentiles of times as vartml-infer-stats",
                           GST_TYPE_STRUCTURE,
                           GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
}

unsigned stats_property() {
    return prop_stats;
}

bool set_property(Settings& settings, unsigned id, const GValue* value) {
    switch (id) {
        case prop_model:
            settings.model = text_of(value);
            break;
        case prop_modelinfo_file:
            settings.modelinfo_file = text_of(value);
            break;
        case prop_device:
            settings.device = text_of(value);
            break;
        case prop_runner_options:
            read_options(settings, gst_value_get_structure(value));
            break;
        case prop_cache_dir:
            settings.cache_dir = text_of(value);
            break;
        case prop_batch_size:
            settings.batch_size = g_value_get_uint(value);
            break;
        case prop_async_depth:
            settings.async_depth = g_value_get_uint(value);
            break;
        case prop_inference_interval:
            settings.inference_interval = g_value_get_uint(value);
            break;
        case prop_resize_mode:
            settings.resize = ResizeChoice(g_value_get_enum(value));
            break;
        case prop_preprocess:
            settings.preprocess = text_of(value);
            break;
        case prop_output_tensor_type:
            settings.output_view = OutputView(g_value_get_enum(value));
            break;
        case prop_copy_policy:
            settings.copy_policy = CopyPolicy(g_value_get_enum(value));
            break;
        case prop_on_fallback:
            settings.on_fallback = OnFallback(g_value_get_enum(value));
            break;
        case prop_on_late:
            settings.on_late = OnLate(g_value_get_enum(value));
            break;
        case prop_latency:
            settings.latency = g_value_get_uint64(value);
            break;
        default:
            return false;
    }
    return true;
}

bool get_property(const Settings& settings, unsigned id, GValue* value) {
    switch (id) {
        case prop_model:
            set_text(value, settings.model);
            break;
        case prop_modelinfo_file:
            set_text(value, settings.modelinfo_file);
            break;
        case prop_device:
            set_text(value, settings.device);
            break;
        case prop_runner_options:
            g_value_take_boxed(value, write_options(settings));
            break;
        case prop_cache_dir:
            set_text(value, settings.cache_dir);
            break;
        case prop_batch_size:
            g_value_set_uint(value, settings.batch_size);
            break;
        case prop_async_depth:
            g_value_set_uint(value, settings.async_depth);
            break;
        case prop_inference_interval:
            g_value_set_uint(value, settings.inference_interval);
            break;
        case prop_resize_mode:
            g_value_set_enum(value, int(settings.resize));
            break;
        case prop_preprocess:
            set_text(value, settings.preprocess);
            break;
        case prop_output_tensor_type:
            g_value_set_enum(value, int(settings.output_view));
            break;
        case prop_copy_policy:
            g_value_set_enum(value, int(settings.copy_policy));
            break;
        case prop_on_fallback:
            g_value_set_enum(value, int(settings.on_fallback));
            break;
        case prop_on_late:
            g_value_set_enum(value, int(settings.on_late));
            break;
        case prop_latency:
            g_value_set_uint64(value, settings.latency);
            break;
        default:
            return false;
    }
    return true;
}

}  // namespace vartml::gst::infer
