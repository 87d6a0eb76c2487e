// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:tracer-vartmlmetrics
 * @title: vartmlmetrics
 * @short_description: statistics of all elements for Prometheus
 *
 * Answers GET /metrics over HTTP with the property `stats` of each element of ours that lives in
 * the process, in Prometheus's text format and under the names that `stats` has. Nothing is
 * recorded and nothing changed: pipelines behave as without the tracer, and the statistics are read
 * when somebody asks.
 *
 * ## Example launch line
 * |[
 * GST_TRACERS="vartmlmetrics(port=9464)" gst-launch-1.0 videotestsrc ! vartmloverlay ! fakesink
 * ]|
 *
 * Since: 1.0
 */
#include "gst/gstvartmlmetrics.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gst/metrics/exposition.h"
#include "gst/metrics/server.h"
#include "gst/support/property_table.h"
#include "gst/support/tracer_parameters.h"
#include "gst/support/upstream.h"

using namespace vartml;
using namespace vartml::gst;

namespace {

// The parameters, given once when the tracer is made.
struct MetricsSettings {
    std::string address = "127.0.0.1";
    unsigned port = 9464;
};

class WeakElement {
public:
    explicit WeakElement(GstElement* element) { g_weak_ref_init(&ref_, element); }
    ~WeakElement() { g_weak_ref_clear(&ref_); }
    WeakElement(const WeakElement&) = delete;
    WeakElement& operator=(const WeakElement&) = delete;
    ElementRef get() { return ElementRef(static_cast<GstElement*>(g_weak_ref_get(&ref_))); }

private:
    GWeakRef ref_;
};

struct State {
    MetricsSettings settings;
    std::once_flag started;
    std::mutex mutex;  // guards elements
    std::vector<std::unique_ptr<WeakElement>> elements;
    std::unique_ptr<MetricsServer> server;  // ends first
};

}  // namespace

struct _GstVartmlMetrics {
    GstTracer parent;
    State* state;
};

G_DEFINE_FINAL_TYPE(GstVartmlMetrics, gst_vartml_metrics, GST_TYPE_TRACER)

namespace {

struct Parameters {
    using Lock = ObjectLock;
    static std::span<const Property<MetricsSettings>> rows();
    static MetricsSettings& settings(GObject* tracer) {
        return GST_VARTML_METRICS(tracer)->state->settings;
    }
    static void written(GObject*) {}
};

std::span<const Property<MetricsSettings>> Parameters::rows() {
    using S = MetricsSettings;
    using P = Property<S>;
    constexpr int once = G_PARAM_CONSTRUCT_ONLY;
    static const P all[] = {
        {"address", "Address",
         "Where it listens, in numbers: 0.0.0.0 is every address of the machine", once,
         P::Text{&S::address}},
        {"port", "Port", "Where it listens", once, P::Uint{&S::port, 1, 65535}},
    };
    return all;
}

std::string name_of(GstObject* object) {
    gchar* const name = gst_object_get_name(object);
    const std::string text = name;
    g_free(name);
    return text;
}

// Of an element: its pipeline's name, "" without one, and its own, behind those of the bins between
// them, in which others may have the same.
std::pair<std::string, std::string> place_of(GstElement* element) {
    GstObject* top = GST_OBJECT(gst_object_ref(element));
    std::string pipeline, path = name_of(top);
    for (bool first = true; GstObject* parent = gst_object_get_parent(top); first = false) {
        if (!first) path = pipeline + '/' + path;
        pipeline = name_of(parent);
        gst_object_unref(top);
        top = parent;
    }
    gst_object_unref(top);
    return {pipeline, path};
}

// Of the elements that live.
std::string metrics_text(State& state) {
    std::vector<ElementRef> living;
    {
        const std::lock_guard lock(state.mutex);
        std::erase_if(state.elements, [&](const auto& element) {
            ElementRef ref = element->get();
            if (!ref) return true;
            living.push_back(std::move(ref));
            return false;
        });
    }
    Exposition exposition;
    for (const ElementRef& element : living) {
        GstStructure* stats = nullptr;
        g_object_get(element.get(), "stats", &stats, nullptr);
        if (!stats) continue;
        const auto [pipeline, path] = place_of(element.get());
        exposition.add(pipeline, path, stats);
        gst_structure_free(stats);
    }
    return exposition.text();
}

// Listens with the first element, not with the tracer: gst-inspect-1.0 makes a tracer too.
void element_new(GObject* tracer, GstClockTime, GstElement* element) {
    State& state = *GST_VARTML_METRICS(tracer)->state;
    GParamSpec* const spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), "stats");
    if (!g_str_has_prefix(G_OBJECT_TYPE_NAME(element), "GstVartml") || !spec ||
        spec->value_type != GST_TYPE_STRUCTURE)
        return;
    {
        const std::lock_guard lock(state.mutex);
        state.elements.push_back(std::make_unique<WeakElement>(element));
    }
    std::call_once(state.started, [&state] {
        auto server = MetricsServer::start(state.settings.address, state.settings.port,
                                           [&state] { return metrics_text(state); });
        if (server) {
            state.server = std::move(*server);
        } else {
            g_warning("vartmlmetrics is not active: %s", server.error().message.c_str());
        }
    });
}

void constructed(GObject* object) {
    G_OBJECT_CLASS(gst_vartml_metrics_parent_class)->constructed(object);
    const auto taken = read_parameters<Parameters>(object, "vartmlmetrics",
                                                   GST_VARTML_METRICS(object)->state->settings);
    if (!taken) {
        g_warning("vartmlmetrics is not active: %s", taken.error().message.c_str());
        return;
    }
    gst_tracing_register_hook(GST_TRACER(object), "element-new", G_CALLBACK(element_new));
}

void finalize(GObject* object) {
    delete GST_VARTML_METRICS(object)->state;
    G_OBJECT_CLASS(gst_vartml_metrics_parent_class)->finalize(object);
}

}  // namespace

static void gst_vartml_metrics_init(GstVartmlMetrics* self) {
    self->state = new State;
}

static void gst_vartml_metrics_class_init(GstVartmlMetricsClass* klass) {
    auto* object = G_OBJECT_CLASS(klass);
    object->constructed = constructed;
    object->finalize = finalize;
    install_properties<Parameters>(object);
}
