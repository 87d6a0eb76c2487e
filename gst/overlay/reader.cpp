// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/reader.h"

#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "gst/metadata/inference.h"
#include "gst/support/in_place.h"

namespace vartml::gst::overlay {
namespace {

// ours: what belongs to an object is related or contained
constexpr auto belongs = static_cast<GstAnalyticsRelTypes>(GST_ANALYTICS_REL_TYPE_RELATE_TO |
                                                           GST_ANALYTICS_REL_TYPE_CONTAIN);
// ours: places beyond this are of no frame, and leave room for sums
constexpr int far_away = 1 << 24;

bool is_near(int at) {
    return at >= -far_away && at <= far_away;
}
constexpr Rgba region_ground = {255, 255, 255, 160};

bool is(const GstAnalyticsMtd& mtd, GstAnalyticsMtdType type) {
    return gst_analytics_mtd_get_mtd_type(&mtd) == type;
}

// Two places. What is beyond 0 to 1 is no score, and is shown as what it is.
void append_score(std::string& text, float score) {
    constexpr float beyond = 1e6f;
    if (score > -0.005f && score < 0) score = 0;  // no "-0.00"
    if (std::isfinite(score)) score = std::clamp(score, -beyond, beyond);
    char digits[32];
    const auto [end, error] =
        std::to_chars(digits, digits + sizeof digits, score, std::chars_format::fixed, 2);
    text.append(digits, end);
}

// The class of the highest level.
struct Best {
    GQuark label = 0;
    float score = 0;
};
Best best_class(const GstAnalyticsClsMtd& classes) {
    Best best;
    const gsize n = gst_analytics_cls_mtd_get_length(&classes);
    for (gsize i = 0; i < n; ++i) {
        const float level = gst_analytics_cls_mtd_get_level(&classes, i);
        if (i == 0 || level > best.score) {
            best = {gst_analytics_cls_mtd_get_quark(&classes, i), level};
        }
    }
    return best;
}

// As one line, whatever characters the dictionary has.
void append_line(std::string& chars, const TextLine& line) {
    for (const char c : line.text) chars += c == '\n' || c == '\r' ? ' ' : c;
}

// What is behind everything has no color: "background", "__background__", "_BG_".
bool is_background(GQuark label) {
    std::string_view name = label ? g_quark_to_string(label) : "";
    while (name.starts_with('_')) name.remove_prefix(1);
    while (name.ends_with('_')) name.remove_suffix(1);
    const auto is = [name](std::string_view other) {
        return name.size() == other.size() &&
               !g_ascii_strncasecmp(name.data(), other.data(), name.size());
    };
    return is("background") || is("bg");
}

struct Centre {
    float x, y;
};
Centre centre_of(const Rect& r) {
    return {static_cast<float>(r.x) + static_cast<float>(r.w) / 2,
            static_cast<float>(r.y) + static_cast<float>(r.h) / 2};
}

}  // namespace

struct Reader::Object {
    guint id = 0;  // of the detection
    Rect box;      // before it is turned
    float angle = 0, score = 0;
    GQuark label = 0;
    std::optional<guint64> track;
    Rgba color;

    // The corners, clockwise from the one that was top left.
    std::array<Trail::Point, 4> corners() const {
        const auto [cx, cy] = centre_of(box);
        const float w = static_cast<float>(box.w) / 2, h = static_cast<float>(box.h) / 2;
        const float c = std::cos(angle), s = std::sin(angle);
        std::array<Trail::Point, 4> corners{{{-w, -h}, {w, -h}, {w, h}, {-w, h}}};
        for (auto& p : corners) p = {cx + p.x * c - p.y * s, cy + p.x * s + p.y * c};
        return corners;
    }
    // The upright rectangle around it.
    Rect around() const {
        if (angle == 0) return box;
        const auto p = corners();
        const auto [left, right] = std::ranges::minmax(p, {}, &Trail::Point::x);
        const auto [top, bottom] = std::ranges::minmax(p, {}, &Trail::Point::y);
        const int x = static_cast<int>(std::floor(left.x)), y = static_cast<int>(std::floor(top.y));
        return {x, y, static_cast<int>(std::ceil(right.x)) - x,
                static_cast<int>(std::ceil(bottom.y)) - y};
    }
};

Look make_look(const OverlaySettings& settings, int width, int height) {
    Look look;
    look.width = width;
    look.height = height;
    look.draw = settings.draw;
    look.line = settings.line_width ? static_cast<int>(settings.line_width)
                                    : std::max(2, (height + 180) / 360);
    const double size = height * (settings.font_scale > 0 ? settings.font_scale : 2.5) / 100;
    const double least = settings.font_scale > 0 ? 4 : 10;
    look.text_size = static_cast<int>(std::lround(std::clamp(size, least, 500.)));
    look.color_mode = settings.color_mode;
    look.color = from_argb(settings.color);
    look.show_score = settings.show_score;
    look.tracked_only = settings.tracked_only;
    look.mask_opacity = settings.mask_opacity;
    look.keypoint_threshold = settings.keypoint_threshold;
    if (settings.skeleton != "auto") look.skeleton = parse_skeleton(settings.skeleton);
    for (const std::string& label : split_list(settings.classes)) {
        look.classes.push_back(g_quark_from_string(label.c_str()));
    }
    for (const std::string& label : split_list(settings.blur_classes)) {
        look.blur_classes.push_back(g_quark_from_string(label.c_str()));
    }
    return look;
}

FrameResults results_on(GstBuffer* buffer) {
    FrameResults results;
    unsigned index = 0;
    while (const Inference* inference = get_inference(buffer, index++)) {
        results.record = true;
        if (inference->has_result()) results.inferred = true;
        results.lacking |= !inference->has_result() &&
                           inference->status != InferenceStatus::skipped_region &&
                           inference->status != InferenceStatus::skipped_track;
    }
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (meta &&
           gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        if (is(mtd, gst_analytics_od_mtd_get_mtd_type()) ||
            is(mtd, gst_analytics_cls_mtd_get_mtd_type()) ||
            is(mtd, gst_analytics_segmentation_mtd_get_mtd_type()) || get_keypoints(mtd) ||
            get_text_line(mtd)) {
            results.drawable = true;
            break;
        }
    }
    return results;
}

namespace {
GQuark infer_id_of(const Inference& inference) {
    return inference.record ? g_quark_try_string(inference.record->infer_id.c_str()) : 0;
}
}  // namespace

bool has_result_of(GstBuffer* buffer, GQuark infer_id) {
    for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i)
        if (one->has_result() && infer_id_of(*one) == infer_id) return true;
    return false;
}

void Reader::read(GstBuffer* buffer, const Look& look, Text& text, int top, Scene& scene) {
    look_ = &look, text_ = &text, scene_ = &scene, top_ = top, buffer_ = buffer;
    if (look.draw & draw_regions) add_regions(buffer);
    meta_ = gst_buffer_get_analytics_relation_meta(buffer);
    if (meta_) {
        owned_.assign(gst_analytics_relation_get_length(meta_), false);
        gpointer state = nullptr;
        GstAnalyticsMtd mtd;
        const GstAnalyticsMtdType od = gst_analytics_od_mtd_get_mtd_type();
        while (gst_analytics_relation_meta_iterate(meta_, &state, od, &mtd)) read_object(mtd);
        state = nullptr;
        const GstAnalyticsMtdType mask = gst_analytics_segmentation_mtd_get_mtd_type();
        while (gst_analytics_relation_meta_iterate(meta_, &state, mask, &mtd)) classes_of(mtd);
        state = nullptr;
        while (
            gst_analytics_relation_meta_iterate(meta_, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
            if (mtd.id < owned_.size() && !owned_[mtd.id]) add_loose(mtd);
        }
    }
    trails_.end_frame();
}

bool Reader::wanted(GQuark label) const {
    return look_->classes.empty() ||
           std::ranges::find(look_->classes, label) != look_->classes.end();
}

bool Reader::is_blurred(GQuark label) const {
    return std::ranges::find(look_->blur_classes, label) != look_->blur_classes.end();
}

Rgba Reader::color_of(const Object& object) const {
    if (look_->color_mode == ColorMode::fixed) return look_->color;
    if (look_->color_mode == ColorMode::by_track && object.track) {
        return palette_color(uint64_t{*object.track});
    }
    return palette_color(object.label ? g_quark_to_string(object.label) : "");
}

// Collects what belongs to an object; of a class without label its best class is the label.
void Reader::find_details(const GstAnalyticsMtd& mtd, Object& object) {
    details_.clear();
    gpointer state = nullptr;
    GstAnalyticsMtd detail;
    while (gst_analytics_relation_meta_get_direct_related(
        meta_, mtd.id, belongs, GST_ANALYTICS_MTD_TYPE_ANY, &state, &detail)) {
        if (detail.id < owned_.size()) owned_[detail.id] = true;
        details_.push_back(detail);
        if (is(detail, gst_analytics_tracking_mtd_get_mtd_type()) && !object.track) {
            guint64 id;
            GstClockTime first, last;
            gboolean lost;
            if (gst_analytics_tracking_mtd_get_info(&detail, &id, &first, &last, &lost)) {
                object.track = id;
            }
        } else if (is(detail, gst_analytics_cls_mtd_get_mtd_type()) && !object.label) {
            object.label = best_class(detail).label;
        }
    }
}

void Reader::read_object(const GstAnalyticsODMtd& od) {
    Object object;
    owned_[od.id] = true;
    object.id = od.id;
    object.label = gst_analytics_od_mtd_get_obj_type(&od);
    Rect& box = object.box;
    const bool found = gst_analytics_od_mtd_get_oriented_location(
        &od, &box.x, &box.y, &box.w, &box.h, &object.angle, &object.score);
    find_details(od, object);
    for (const GstAnalyticsMtd& detail : details_)
        if (is_class_map(detail)) add_blur(detail);
    if (!found || box.empty() || !is_near(box.x) || !is_near(box.y) || box.w > far_away ||
        box.h > far_away || !std::isfinite(object.angle)) {
        return;
    }
    const bool named_so = std::ranges::any_of(details_, [&](const GstAnalyticsMtd& detail) {
        return is(detail, gst_analytics_cls_mtd_get_mtd_type()) &&
               is_blurred(best_class(detail).label);
    });
    if (is_blurred(object.label) || named_so) add_blur(object);
    if (!wanted(object.label) || (look_->tracked_only && !object.track)) return;
    object.color = color_of(object);
    const unsigned draw = look_->draw;
    for (const GstAnalyticsMtd& detail : details_) {
        if (is(detail, gst_analytics_segmentation_mtd_get_mtd_type())) {
            if (!(draw & draw_masks)) continue;
            add_mask(detail, is_class_map(detail) ? std::nullopt : std::optional(object.color));
        } else if (const auto keypoints = get_keypoints(detail)) {
            if (draw & draw_keypoints) add_keypoints(*keypoints, object.color);
        }
    }
    if (draw & draw_tracks) add_trail(object);
    if (draw & draw_boxes) add_box(object);
    if (draw & (draw_labels | draw_tracks)) add_object_label(object);
}

// The infer_id of whose result it is; 0: nobody says.
GQuark Reader::source_of(guint id) const {
    GstAnalyticsMtd mtd;
    for (unsigned i = 0; const Inference* one = get_inference(buffer_, i, &mtd); ++i) {
        if (one->record && gst_analytics_relation_meta_get_relation(meta_, id, mtd.id) !=
                               GST_ANALYTICS_REL_TYPE_NONE)
            return g_quark_from_string(one->record->infer_id.c_str());
    }
    return 0;
}

// By its masks, else all of the upright rectangle around it.
void Reader::add_blur(const Object& object) {
    const size_t before = scene_->blurred.size();
    for (const GstAnalyticsMtd& detail : details_) {
        if (is(detail, gst_analytics_segmentation_mtd_get_mtd_type()) && !is_class_map(detail)) {
            add_mask(detail, scene_->blurred,
                     [](const GstAnalyticsMtd*, gsize, guint) { return Rgba{}; });
        }
    }
    if (scene_->blurred.size() == before) scene_->blurred.push_back({.rect = object.around()});
    const GQuark source = source_of(object.id);
    for (size_t i = before; i < scene_->blurred.size(); ++i) {
        scene_->blurred[i].is_there = true;
        scene_->blurred[i].source = source;
    }
}

// What a model found of classes in a region, which says nothing of where the object is.
bool Reader::is_class_map(const GstAnalyticsMtd& mtd) {
    return is(mtd, gst_analytics_segmentation_mtd_get_mtd_type()) && classes_of(mtd);
}

// Where it has a class that is blurred.
void Reader::add_blur(const GstAnalyticsSegmentationMtd& class_map) {
    const auto classes = classes_of(class_map);
    if (look_->blur_classes.empty() || !classes) return;
    const size_t before = scene_->blurred.size();
    add_mask(class_map, scene_->blurred, [&](const GstAnalyticsMtd*, gsize i, guint) {
        const bool blurred = i < gst_analytics_cls_mtd_get_length(&*classes) &&
                             is_blurred(gst_analytics_cls_mtd_get_quark(&*classes, i));
        return Rgba{0, 0, 0, static_cast<uint8_t>(blurred ? 255 : 0)};
    });
    if (scene_->blurred.size() > before) scene_->blurred.back().source = source_of(class_map.id);
}

void Reader::add_box(const Object& object) {
    const int out = look_->line / 2;
    if (object.angle == 0) {
        const Rect& box = object.box;
        const Rect outer = {box.x - out, box.y - out, box.w + 2 * out, box.h + 2 * out};
        scene_->outlines.push_back({outer, look_->line, object.color});
        return;
    }
    const auto p = object.corners();
    for (size_t i = 0; i < 4; ++i) {
        const auto &a = p[i], &b = p[(i + 1) % 4];
        scene_->strokes.push_back(
            {a.x, a.y, b.x, b.y, static_cast<float>(look_->line) / 2, object.color});
    }
}

void Reader::add_trail(const Object& object) {
    if (!object.track) return;
    const auto [x, y] = centre_of(object.box);
    const Trail& trail =
        trails_.add(look_->tracks_keep_label ? object.label : 0, *object.track, {x, y});
    for (unsigned i = 0; i + 1 < trail.size(); ++i) {
        const auto &a = trail[i], &b = trail[i + 1];
        if (a == b) continue;
        const double age = 1 - static_cast<double>(i + 1) / trail.size();
        scene_->strokes.push_back({a.x, a.y, b.x, b.y,
                                   std::max(static_cast<float>(look_->line) / 2, 0.75f),
                                   with_opacity(object.color, 1 - 0.8 * age)});
    }
}

// Whether a label lies here already. Of very many labels the last ones are looked at.
bool Reader::taken(const Rect& plate) const {
    constexpr size_t most = 64;
    const auto& labels = scene_->labels;
    const auto recent = std::span(labels).last(std::min(labels.size(), most));
    return std::ranges::any_of(
        recent, [&](const LabelItem& label) { return !intersection(label.plate, plate).empty(); });
}

// A label whose text is what was added to the scene's characters since `first_char`, at the first
// of the heights that is inside of the frame and free, else at the first inside.
void Reader::add_label(size_t first_char, int x, std::span<const int> heights, Rgba color) {
    const std::string_view line = std::string_view(scene_->chars).substr(first_char);
    if (line.empty()) return;
    const Rect size = label_size(line);
    Rect plate = {std::clamp(x, 0, std::max(look_->width - size.w, 0)), 0, size.w, size.h};
    const int lowest = std::max(look_->height - size.h, 0);
    std::optional<int> inside;
    bool found = false;
    for (const int y : heights) {
        if (y < 0 || y > lowest) continue;
        if (!inside) inside = y;
        plate.y = y;
        found = !taken(plate);
        if (found) break;
    }
    if (!found) plate.y = inside.value_or(std::clamp(heights[0], 0, lowest));
    scene_->labels.push_back({plate, color, first_char, line.size()});
}

Rect Reader::label_size(std::string_view line) {
    const int padding = label_padding(text_->line_height());
    return {0, 0, text_->width(line) + 2 * padding, text_->line_height() + padding / 2};
}

void Reader::add_object_label(const Object& object) {
    const Rect around = object.around();
    if (intersection(around, {0, 0, look_->width, look_->height}).empty()) return;
    std::string& chars = scene_->chars;
    const size_t first = chars.size();
    const auto space = [&] {
        if (chars.size() > first) chars += ' ';
    };
    if ((look_->draw & draw_tracks) && object.track) {
        char id[24];
        g_snprintf(id, sizeof id, "#%" G_GUINT64_FORMAT, *object.track);
        chars += id;
    }
    if (look_->draw & draw_labels) {
        if (object.label) space(), chars += g_quark_to_string(object.label);
        if (look_->show_score) space(), append_score(chars, object.score);
        for (const GstAnalyticsMtd& detail : details_) {
            if (const auto visit = get_zone_visit(detail);
                visit && (look_->draw & draw_zones) && visit->dwell_ns >= GST_SECOND) {
                char seconds[32];
                g_snprintf(seconds, sizeof seconds, "%" G_GUINT64_FORMAT " s",
                           visit->dwell_ns / GST_SECOND);
                space(), chars += seconds;
            }
            if (const auto line = get_text_line(detail)) {
                space(), append_line(chars, *line);
                if (look_->show_score) space(), append_score(chars, line->score);
            }
            if (!is(detail, gst_analytics_cls_mtd_get_mtd_type())) continue;
            const Best best = best_class(detail);
            if (!best.label || best.label == object.label) continue;
            space(), chars += g_quark_to_string(best.label);
            if (look_->show_score) space(), append_score(chars, best.score);
        }
    }
    const int out = look_->line / 2, height = label_size({}).h;
    const int heights[] = {around.y - out - height, around.y + look_->line - out,
                           around.bottom() + out, around.y - out - 2 * height};
    add_label(first, around.x - out, heights, object.color);
}

// What the regions of a mask are; it belongs to the mask.
std::optional<GstAnalyticsMtd> Reader::classes_of(const GstAnalyticsSegmentationMtd& mask) {
    GstAnalyticsMtd classes;
    if (!gst_analytics_relation_meta_get_direct_related(
            meta_, mask.id, belongs, gst_analytics_cls_mtd_get_mtd_type(), nullptr, &classes)) {
        return std::nullopt;
    }
    if (classes.id < owned_.size()) owned_[classes.id] = true;
    return classes;
}

Rgba Reader::region_color(const GstAnalyticsMtd* classes, gsize index, guint region) const {
    GQuark label = 0;
    if (classes && index < gst_analytics_cls_mtd_get_length(classes)) {
        label = gst_analytics_cls_mtd_get_quark(classes, index);
    }
    const bool drawn = look_->classes.empty() ? !is_background(label) : wanted(label);
    if (!drawn) return {0, 0, 0, 0};
    if (look_->color_mode == ColorMode::fixed) return look_->color;
    return label ? palette_color(g_quark_to_string(label)) : palette_color(uint64_t{region});
}

template <typename ColorOf>
void Reader::add_mask(const GstAnalyticsSegmentationMtd& mask, std::vector<MaskItem>& to,
                      ColorOf&& color_of_region) {
    gint x, y;
    guint w, h;
    GstBuffer* pixels = gst_analytics_segmentation_mtd_get_mask(&mask, &x, &y, &w, &h);
    if (!pixels) return;
    const std::optional<GstAnalyticsMtd> classes = classes_of(mask);
    const bool is_far = w > far_away || h > far_away || !is_near(x) || !is_near(y);
    const Rect rect = is_far ? Rect{} : Rect{x, y, static_cast<int>(w), static_cast<int>(h)};
    // Empty where a small one was scaled down, too: it says nothing of any pixel.
    if (intersection(rect, {0, 0, look_->width, look_->height}).empty()) {
        gst_buffer_unref(pixels);
        return;
    }
    MaskItem item{pixels, rect, scene_->colors.size()};
    const gsize count = gst_analytics_segmentation_mtd_get_region_count(&mask);
    for (gsize i = 0; i < count; ++i) {
        const guint region = gst_analytics_segmentation_mtd_get_region_id(&mask, i);
        if (region > G_MAXUINT16) continue;
        if (region >= item.num_colors) {
            item.num_colors = region + 1;
            scene_->colors.resize(item.first_color + item.num_colors, {0, 0, 0, 0});
        }
        scene_->colors[item.first_color + region] =
            color_of_region(classes ? &*classes : nullptr, i, region);
    }
    to.push_back(item);
}

// In `color`, or in those of its regions' classes.
void Reader::add_mask(const GstAnalyticsSegmentationMtd& mask, std::optional<Rgba> color) {
    add_mask(mask, scene_->masks, [&](const GstAnalyticsMtd* classes, gsize i, guint region) {
        return with_opacity(color ? *color : region_color(classes, i, region), look_->mask_opacity);
    });
}

std::span<const Bone> Reader::bones_of(const Keypoints& keypoints) {
    if (look_->skeleton) return *look_->skeleton;
    if (!keypoints.skeleton) {
        for (const Skeleton& skeleton : skeletons()) {
            if (skeleton.points == keypoints.points.size()) return skeleton.bones;
        }
        return {};
    }
    const auto [entry, is_new] = skeletons_.try_emplace(keypoints.skeleton);
    if (is_new) {
        entry->second =
            parse_skeleton(g_quark_to_string(keypoints.skeleton)).value_or(std::vector<Bone>{});
    }
    return entry->second;
}

void Reader::add_keypoints(const Keypoints& keypoints, Rgba color) {
    const auto points = keypoints.points;
    const auto seen = [&](const vartml::Keypoint& p) {
        return p.visible && p.score >= look_->keypoint_threshold && std::isfinite(p.x) &&
               std::isfinite(p.y);
    };
    const float line = static_cast<float>(look_->line);
    for (const auto& [from, to] : bones_of(keypoints)) {
        if (from >= points.size() || to >= points.size()) continue;
        const vartml::Keypoint &a = points[from], &b = points[to];
        if (!seen(a) || !seen(b)) continue;
        scene_->strokes.push_back({a.x, a.y, b.x, b.y, std::max(line * 0.6f, 1.f), color});
    }
    for (const vartml::Keypoint& p : points) {
        if (!seen(p)) continue;
        const float radius = std::max(line * 1.3f, 2.f);
        scene_->strokes.push_back({p.x, p.y, p.x, p.y, radius, color});
        scene_->strokes.push_back({p.x, p.y, p.x, p.y, radius * 0.5f, {255, 255, 255}});
    }
}

// Of the whole picture: a line each, from the top left.
void Reader::add_classes(const GstAnalyticsClsMtd& classes) {
    constexpr gsize most = 5;
    const gsize n = std::min(gst_analytics_cls_mtd_get_length(&classes), most);
    for (gsize i = 0; i < n; ++i) {
        const GQuark label = gst_analytics_cls_mtd_get_quark(&classes, i);
        const char* const name = label ? g_quark_to_string(label) : "";
        if (!*name || !wanted(label)) continue;
        const size_t first = scene_->chars.size();
        scene_->chars += name;
        if (look_->show_score) {
            scene_->chars += ' ';
            append_score(scene_->chars, gst_analytics_cls_mtd_get_level(&classes, i));
        }
        const Rgba color =
            look_->color_mode == ColorMode::fixed ? look_->color : palette_color(name);
        add_label(first, 0, {&top_, 1}, color);
        top_ = scene_->labels.back().plate.bottom();
    }
}

// Of the whole picture: a line at the top left.
void Reader::add_text_line(const TextLine& line) {
    if (line.text.empty()) return;
    const size_t first = scene_->chars.size();
    append_line(scene_->chars, line);
    if (look_->show_score) {
        scene_->chars += ' ';
        append_score(scene_->chars, line.score);
    }
    const Rgba color = look_->color_mode == ColorMode::fixed ? look_->color : palette_color("text");
    add_label(first, 0, {&top_, 1}, color);
    top_ = scene_->labels.back().plate.bottom();
}

// Its border, with its name and counts at its highest point.
void Reader::add_zone(const Zone& zone) {
    const auto points = zone.points;
    const auto is_far = [](const vartml::ZonePoint& p) {
        return !(std::abs(p.x) < far_away) || !(std::abs(p.y) < far_away);
    };
    if (points.empty() || std::ranges::any_of(points, is_far)) return;
    const char* const name = g_quark_to_string(zone.name);
    const Rgba color = look_->color_mode == ColorMode::fixed ? look_->color : palette_color(name);
    const float radius = std::max(static_cast<float>(look_->line) / 2, 1.f);
    for (size_t i = zone.line; i < points.size(); ++i) {
        const auto &a = points[i ? i - 1 : points.size() - 1], &b = points[i];
        scene_->strokes.push_back({a.x, a.y, b.x, b.y, radius, color});
    }
    // Which end a line begins at tells which way is in.
    if (zone.line) {
        const auto& p = points.front();
        scene_->strokes.push_back({p.x, p.y, p.x, p.y, 3 * radius, color});
    }
    const auto& highest = *std::ranges::min_element(points, {}, &vartml::ZonePoint::y);
    const size_t first = scene_->chars.size();
    char counts[96];
    if (zone.line) {
        g_snprintf(counts, sizeof counts, " in %" G_GUINT64_FORMAT " out %" G_GUINT64_FORMAT,
                   guint64(zone.counts.in), guint64(zone.counts.out));
    } else {
        g_snprintf(counts, sizeof counts, " %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT,
                   guint64(zone.counts.inside), guint64(zone.counts.in));
    }
    scene_->chars += name;
    scene_->chars += counts;
    const int y = static_cast<int>(std::lround(highest.y)), height = label_size({}).h;
    const int below = y + look_->line;
    const int heights[] = {y - height - look_->line, below, below + height, below + 2 * height};
    add_label(first, static_cast<int>(std::lround(highest.x)), heights, color);
}

// What belongs to no object.
void Reader::add_loose(const GstAnalyticsMtd& mtd) {
    if (is(mtd, gst_analytics_segmentation_mtd_get_mtd_type())) {
        add_blur(mtd);
        if (look_->draw & draw_masks) add_mask(mtd, std::nullopt);
    } else if (is(mtd, gst_analytics_cls_mtd_get_mtd_type())) {
        if (look_->draw & draw_labels) add_classes(mtd);
    } else if (const auto line = get_text_line(mtd)) {
        if (look_->draw & draw_labels) add_text_line(*line);
    } else if (const auto zone = get_zone(mtd)) {
        if (look_->draw & draw_zones) add_zone(*zone);
    } else if (const auto keypoints = get_keypoints(mtd)) {
        if (look_->draw & draw_keypoints) {
            add_keypoints(*keypoints, look_->color_mode == ColorMode::fixed
                                          ? look_->color
                                          : palette_color("keypoints"));
        }
    }
}

void Reader::add_region(const Rect& rect, const char* label) {
    if (rect.empty()) return;
    scene_->outlines.push_back({rect, std::max(1, look_->line / 2), region_ground});
    const size_t first = scene_->chars.size();
    scene_->chars += label;
    add_label(first, rect.x, {&rect.y, 1}, region_ground);
}

void Reader::add_regions(GstBuffer* buffer) {
    gpointer state = nullptr;
    while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
               buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
        const auto* roi = reinterpret_cast<const GstVideoRegionOfInterestMeta*>(meta);
        if (roi->x > far_away || roi->y > far_away || roi->w > far_away || roi->h > far_away) {
            continue;
        }
        add_region({static_cast<int>(roi->x), static_cast<int>(roi->y), static_cast<int>(roi->w),
                    static_cast<int>(roi->h)},
                   roi->roi_type ? g_quark_to_string(roi->roi_type) : "");
    }
    unsigned index = 0;
    while (const Inference* i = get_inference(buffer, index++)) {
        const Rect region = {i->region_x, i->region_y, i->region_width, i->region_height};
        const Rect whole = {0, 0, static_cast<int>(i->frame_width),
                            static_cast<int>(i->frame_height)};
        if (i->status != InferenceStatus::inferred || whole.empty() || region == whole) continue;
        // In pixels of the frame as it was then.
        const auto x = [&](int at) { return at * look_->width / whole.w; };
        const auto y = [&](int at) { return at * look_->height / whole.h; };
        add_region({x(region.x), y(region.y), x(region.w), y(region.h)}, "");
    }
}

}  // namespace vartml::gst::overlay
