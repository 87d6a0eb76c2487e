// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmlroi
 * @title: vartmlroi
 * @short_description: makes regions of interest of detections
 *
 * Adds a #GstVideoRegionOfInterestMeta, in pixels of the frame, per #GstAnalyticsODMtd, with the
 * parameters that encoders read from it: how much finer, or coarser, the region is quantised than
 * the rest. Its type is the label, its id the track where there is one. It reads no tensors, so
 * their shapes do not matter.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmlroi ! fakesink
 * ]| Frames without detections pass as they are.
 *
 * Since: 1.0
 */
#include "gst/gstvartmlroi.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "gst/support/error.h"
#include "gst/support/in_place.h"
#include "gst/support/property_table.h"
#include "gst/support/upstream.h"

GST_DEBUG_CATEGORY_STATIC(vartmlroi_debug);
#define GST_CAT_DEFAULT vartmlroi_debug

using namespace vartml::gst;

namespace {

// As the user set them. Thread-safety: none.
struct RoiSettings {
    std::string classes;
    double expand = 0;
    // given: what GStreamer's encoders of Intel's Media SDK and VA-API read
    std::string params = "roi/msdk,delta-qp=(int)-6;roi/vaapi,delta-qp=(int)-6";
};

struct StructureFree {
    void operator()(GstStructure* s) const { gst_structure_free(s); }
};
using Structure = std::unique_ptr<GstStructure, StructureFree>;

struct Counts {
    guint64 frames = 0, regions = 0, copied = 0;
};

struct State {
    // guarded by the object lock
    RoiSettings settings;
    Counts counts;
    // set when properties change, cleared by the streaming thread
    std::atomic<bool> changed{true};

    // streaming thread, between start and stop
    std::vector<Structure> params;
    std::vector<std::string> label_names;
    std::vector<GQuark> classes;
    double expand = 0;
    FrameSize size;
    CopyNotice copy_notice;
    IdleNotice idle;
    LabelCheck label_check;
};

}  // namespace

struct _GstVartmlRoi {
    GstBaseTransform parent;
    State* state;
};

G_DEFINE_TYPE(GstVartmlRoi, gst_vartml_roi, GST_TYPE_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE(vartmlroi, "vartmlroi", GST_RANK_NONE, GST_TYPE_VARTML_ROI)

namespace {

State& state_of(gpointer object) {
    return *GST_VARTML_ROI(object)->state;
}

GstStructure* stats_of(GObject* object) {
    const ObjectLock lock(object);
    const Counts& c = state_of(object).counts;
    return gst_structure_new("vartml-roi-stats", "frames", G_TYPE_UINT64, c.frames, "regions",
                             G_TYPE_UINT64, c.regions, "copied", G_TYPE_UINT64, c.copied, nullptr);
}

struct Properties {
    using Lock = ObjectLock;
    static std::span<const Property<RoiSettings>> rows();
    static RoiSettings& settings(GObject* object) { return state_of(object).settings; }
    static void written(GObject* object) { state_of(object).changed = true; }
};

std::span<const Property<RoiSettings>> Properties::rows() {
    using S = RoiSettings;
    using P = Property<S>;
    // Since: 1.0
    static const P all[] = {
        {"classes", "Classes", "Comma list of labels that become regions; unset: all", any_time,
         P::Text{&S::classes}},
        {"expand", "Expand", "What is added to a region on each side, as part of its size",
         any_time, P::Real{&S::expand, 0, 2}},
        {"params", "Parameters",
         "What encoders read from each region: structures with semicolons between them, each named "
         "roi/ and the encoder; unset: none",
         any_time, P::Text{&S::params}},
        P::stats<stats_of>("Counts since start: frames with regions, regions, copied"),
    };
    return all;
}

// One per structure of the text. Errors: invalid_argument, naming the one that is none.
vartml::Result<std::vector<Structure>> parse_params(const std::string& text) {
    std::vector<Structure> params;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(';', at), text.size());
        const std::string one = text.substr(at, end - at);
        at = end + 1;
        if (one.find_first_not_of(' ') == std::string::npos) continue;
        Structure s(gst_structure_from_string(one.c_str(), nullptr));
        if (!s || !g_str_has_prefix(gst_structure_get_name(s.get()), "roi/")) {
            return vartml::Error{vartml::ErrorCode::invalid_argument,
                                 "property 'params' has '" + one +
                                     "', expected a structure such as roi/msdk,delta-qp=(int)-6"};
        }
        params.push_back(std::move(s));
    }
    return params;
}

// False after posting an error.
bool update_settings(GstVartmlRoi* self) {
    State& state = *self->state;
    if (!state.changed.exchange(false)) return true;
    const RoiSettings settings = copy_settings<Properties>(self);
    auto params = parse_params(settings.params);
    if (!params) {
        return post_error(self, "make regions",
                          {.error = params.error(), .id = "roi-params", .property = "params"});
    }
    state.params = std::move(*params);
    state.expand = settings.expand;
    state.label_names = split_list(settings.classes);
    state.label_check.restart();
    state.classes.clear();
    for (const std::string& label : state.label_names)
        state.classes.push_back(g_quark_from_string(label.c_str()));
    return true;
}

gboolean start(GstBaseTransform* base) {
    auto* self = GST_VARTML_ROI(base);
    State& state = *self->state;
    GST_INFO_OBJECT(self, "settings: %s", settings_text(self).c_str());
    state.changed = true;
    if (!update_settings(self)) return FALSE;
    state.size = {};
    state.copy_notice.restart();
    state.idle.restart();
    const ObjectLock lock(self);
    state.counts = {};
    return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* in, GstCaps*) {
    state_of(base).size = video_size(in);
    return TRUE;
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* base, GstBuffer* in, GstBuffer** out) {
    State& state = state_of(base);
    bool copied = false;
    const GstFlowReturn flow = prepare_writable(in, out, copied);
    if (!copied) return flow;
    state.copy_notice.copied(base, cannot_share);
    const ObjectLock lock(base);
    ++state.counts.copied;
    return flow;
}

// ---- a frame ----

struct Region {
    GQuark label = 0;
    gint id = -1;
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

gint id_of(GstAnalyticsRelationMeta* meta, const GstAnalyticsODMtd& od) {
    const auto id = track_of(meta, od.id);
    return id && *id <= G_MAXINT ? static_cast<gint>(*id) : -1;
}

// The upright rectangle around a detection, made larger, as far as it is in the frame.
bool find_region(const State& state, GstAnalyticsRelationMeta* meta, const GstAnalyticsODMtd& od,
                 Region& region) {
    gint x, y, w, h;
    gfloat angle, score;
    if (!gst_analytics_od_mtd_get_oriented_location(&od, &x, &y, &w, &h, &angle, &score) ||
        !std::isfinite(angle))
        return false;
    region.label = gst_analytics_od_mtd_get_obj_type(&od);
    if (!state.classes.empty() &&
        std::ranges::find(state.classes, region.label) == state.classes.end())
        return false;
    region.id = id_of(meta, od);
    const double c = std::abs(std::cos(angle)), s = std::abs(std::sin(angle));
    const double grow = 0.5 + state.expand;
    const double half_w = (w * c + h * s) * grow, half_h = (w * s + h * c) * grow;
    const double centre_x = x + w / 2., centre_y = y + h / 2.;
    const double most = 1 << 24;  // ours: of a frame whose size is not known
    const double right = state.size.width ? state.size.width : most;
    const double bottom = state.size.height ? state.size.height : most;
    region.x0 = std::clamp(std::floor(centre_x - half_w), 0., right);
    region.y0 = std::clamp(std::floor(centre_y - half_h), 0., bottom);
    region.x1 = std::clamp(std::ceil(centre_x + half_w), 0., right);
    region.y1 = std::clamp(std::ceil(centre_y + half_h), 0., bottom);
    return region.x1 > region.x0 && region.y1 > region.y0;
}

void add_region(const State& state, GstBuffer* buffer, const Region& region) {
    GstVideoRegionOfInterestMeta* roi = gst_buffer_add_video_region_of_interest_meta_id(
        buffer, region.label, static_cast<guint>(region.x0), static_cast<guint>(region.y0),
        static_cast<guint>(region.x1 - region.x0), static_cast<guint>(region.y1 - region.y0));
    roi->id = region.id;
    for (const Structure& s : state.params)
        gst_video_region_of_interest_meta_add_param(roi, gst_structure_copy(s.get()));
}

GstFlowReturn transform_ip(GstBaseTransform* base, GstBuffer* buffer) {
    auto* self = GST_VARTML_ROI(base);
    State& state = *self->state;
    sync_properties(base, buffer);
    if (!update_settings(self)) return GST_FLOW_ERROR;
    guint64 detections = 0, regions = 0;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer iterator = nullptr;
    GstAnalyticsODMtd od;
    while (meta && gst_analytics_relation_meta_iterate(meta, &iterator,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        ++detections;
        Region region;
        if (!find_region(state, meta, od, region)) continue;
        add_region(state, buffer, region);
        ++regions;
    }
    const bool record = get_inference(buffer, 0) != nullptr;
    state.idle.frame(
        GST_ELEMENT(self),
        {.id = "roi-idle", .doing = "make regions", .lacks = "detections", .needs_decoder = true},
        detections > 0, record);
    if (record) state.label_check.frame(GST_ELEMENT(self), "classes", state.label_names);
    GST_LOG_OBJECT(self, "%" GST_TIME_FORMAT ": %" G_GUINT64_FORMAT " regions",
                   GST_TIME_ARGS(GST_BUFFER_PTS(buffer)), regions);
    const ObjectLock lock(self);
    state.counts.frames += regions > 0;
    state.counts.regions += regions;
    return GST_FLOW_OK;
}

}  // namespace

static void gst_vartml_roi_init(GstVartmlRoi* self) {
    self->state = new State;
    set_up_in_place(GST_BASE_TRANSFORM(self));
}

static void gst_vartml_roi_class_init(GstVartmlRoiClass* klass) {
    GST_DEBUG_CATEGORY_INIT(vartmlroi_debug, "vartmlroi", 0, "regions of interest for encoders");
    auto* gobject = G_OBJECT_CLASS(klass);
    auto* base = GST_BASE_TRANSFORM_CLASS(klass);
    gobject->finalize = free_state<GstVartmlRoi>;
    install_properties<Properties>(gobject);

    set_up_in_place(base, "VART-ML regions of interest", "Filter/Analyzer/Video",
                    "Makes regions of interest of detections, for encoders");

    base->start = start;
    base->set_caps = set_caps;
    base->prepare_output_buffer = prepare_output_buffer;
    base->transform_ip = transform_ip;
}
