// SPDX-License-Identifier: Apache-2.0
// Records as JSON lines and back.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include <vartml/publish.h>

#include "lib/base/json.h"

namespace vartml {
namespace {

template <typename T>
std::span<const T> part(const std::vector<T>& list, RecordRange range) {
    return std::span(list).subspan(range.first, range.count);
}

// RFC 3339 in UTC with nanoseconds; the calendar of Gregory, days since 1970 to year, month, day
// (given: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days).
std::string rfc3339(int64_t ns) {
    constexpr int64_t second = 1000000000;
    const int64_t seconds = ns / second - (ns % second < 0);
    const int64_t days = seconds / 86400 - (seconds % 86400 < 0);
    const int64_t in_day = seconds - days * 86400;
    const int64_t z = days + 719468;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t doe = z - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const int64_t mp = (5 * doy + 2) / 153;
    const int64_t day = doy - (153 * mp + 2) / 5 + 1;
    const int64_t month = mp < 10 ? mp + 3 : mp - 9;
    const int64_t year = yoe + era * 400 + (month <= 2);
    char text[64];
    std::snprintf(text, sizeof text, "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%09lldZ",
                  static_cast<long long>(year), static_cast<long long>(month),
                  static_cast<long long>(day), static_cast<long long>(in_day / 3600),
                  static_cast<long long>(in_day / 60 % 60), static_cast<long long>(in_day % 60),
                  static_cast<long long>(ns - seconds * second));
    return text;
}

void write_points(JsonText& json, const FrameRecord& record, RecordRange range) {
    json.open('[');
    for (const RecordPoint& point : part(record.points, range)) {
        json.open('[');
        json.value(point.x);
        json.value(point.y);
        json.value(point.score);
        json.close(']');
    }
    json.close(']');
}

void write_classes(JsonText& json, std::string_view name, std::span<const RecordClass> classes) {
    if (classes.empty()) return;
    json.key(name);
    json.open('[');
    for (const RecordClass& c : classes) {
        json.open('{');
        json.member("label", c.label);
        json.member("score", c.score);
        if (!c.model.empty()) json.member("model", c.model);
        json.close('}');
    }
    json.close(']');
}

void write_mask(JsonText& json, const FrameRecord& record, const RecordMask& mask) {
    json.open('{');
    json.list("box", mask.box);
    json.member("w", mask.width);
    json.member("h", mask.height);
    if (mask.regions.count) {
        json.key("regions");
        json.open('[');
        for (uint32_t i = 0; i < mask.regions.count; ++i) {
            json.open('{');
            json.member("id", record.runs[mask.regions.first + i]);
            if (i < mask.labels.count)
                json.member("label", record.labels[mask.labels.first + i].label);
            json.close('}');
        }
        json.close(']');
    }
    json.list("rle", part(record.runs, mask.runs));
    json.close('}');
}

void write_text(JsonText& json, const FrameRecord& record, const RecordText& text) {
    json.open('{');
    json.member("text", std::string_view(record.chars).substr(text.chars.first, text.chars.count));
    json.member("score", text.score);
    json.close('}');
}

void write_object(JsonText& json, const FrameRecord& record, const RecordObject& object) {
    json.open('{');
    json.member("id", object.id);
    if (!object.label.empty()) json.member("label", object.label);
    if (object.class_id) json.member("class_id", *object.class_id);
    if (!object.model.empty()) json.member("model", object.model);
    json.member("score", object.score);
    json.list("box", object.box);
    if (object.angle != 0) json.member("angle", object.angle);
    if (object.track) json.member("track", *object.track);
    if (object.parent) json.member("parent", *object.parent);
    write_classes(json, "attributes", part(record.labels, object.attributes));
    if (object.keypoints.count) {
        json.key("keypoints");
        write_points(json, record, object.keypoints);
    }
    if (object.mask) {
        json.key("mask");
        write_mask(json, record, *object.mask);
    }
    if (object.embedding.count) json.list("embedding", part(record.numbers, object.embedding));
    if (object.text) {
        json.key("text");
        write_text(json, record, *object.text);
    }
    if (object.visits.count) {
        json.key("zones");
        json.open('[');
        for (const RecordVisit& visit : part(record.visits, object.visits)) {
            json.open('{');
            json.member("zone", visit.zone);
            json.member("dwell_ms", visit.dwell_ns / 1'000'000);
            json.close('}');
        }
        json.close(']');
    }
    json.close('}');
}

void write_model(JsonText& json, const RecordInference& inference) {
    if (inference.model.empty()) return;
    json.key("model");
    json.open('{');
    json.member("name", inference.model);
    json.member("hash", inference.hash);
    json.member("epoch", inference.epoch);
    json.close('}');
}

// Of a result that is not the frame's own.
void write_result(JsonText& json, const RecordInference& inference) {
    if (!inference.result_seq) return;
    json.key("result");
    json.open('{');
    json.member("frame_seq", *inference.result_seq);
    json.member("age_us", inference.age_us);
    json.close('}');
}

void write_timings(JsonText& json, const RecordInference& inference) {
    json.key("timings");
    json.open('{');
    json.member("pre_us", inference.pre_us);
    json.member("wait_us", inference.wait_us);
    json.member("run_us", inference.run_us);
    json.member("total_us", inference.total_us);
    json.member("batch_fill", inference.batch_fill);
    json.close('}');
}

// Those of a frame with several.
void write_inferences(JsonText& json, const FrameRecord& record) {
    json.key("inferences");
    json.open('[');
    for (const RecordInference& inference :
         part(record.inferences, RecordRange{0, static_cast<uint32_t>(record.num_inferences)})) {
        json.open('{');
        json.member("infer", inference.infer);
        write_model(json, inference);
        json.member("status", inference.status);
        write_result(json, inference);
        json.list("region", inference.region);
        if (record.timings) write_timings(json, inference);
        json.close('}');
    }
    json.close(']');
}

void write_zones(JsonText& json, const FrameRecord& record) {
    if (!record.zones.empty()) {
        json.key("zones");
        json.open('[');
        for (const RecordZone& zone : record.zones) {
            json.open('{');
            json.member("zone", zone.name);
            json.member("kind", std::string_view(zone.line ? "line" : "zone"));
            if (!zone.line) json.member("inside", zone.inside);
            json.member("in", zone.in);
            json.member("out", zone.out);
            if (!zone.line) json.member("longest_ms", zone.longest_ns / 1'000'000);
            json.close('}');
        }
        json.close(']');
    }
    if (record.happened.empty()) return;
    json.key("zone_events");
    json.open('[');
    for (const RecordVisit& visit : record.happened) {
        json.open('{');
        json.member("event", visit.event);
        json.member("zone", visit.zone);
        json.member("track", visit.track);
        if (!visit.label.empty()) json.member("label", visit.label);
        if (visit.event == "leave") json.member("dwell_ms", visit.dwell_ns / 1'000'000);
        json.close('}');
    }
    json.close(']');
}

void write_found(JsonText& json, const FrameRecord& record) {
    if (!record.objects.empty()) {
        json.key("objects");
        json.open('[');
        for (const RecordObject& object : record.objects) write_object(json, record, object);
        json.close(']');
    }
    write_classes(json, "classes", record.classes);
    if (!record.keypoints.empty()) {
        json.key("keypoint_sets");
        json.open('[');
        for (const RecordRange range : record.keypoints) write_points(json, record, range);
        json.close(']');
    }
    if (!record.masks.empty()) {
        json.key("masks");
        json.open('[');
        for (const RecordMask& mask : record.masks) write_mask(json, record, mask);
        json.close(']');
    }
    if (!record.embeddings.empty()) {
        json.key("embeddings");
        json.open('[');
        for (const RecordRange range : record.embeddings) {
            json.open('[');
            for (const float number : part(record.numbers, range)) json.value(number);
            json.close(']');
        }
        json.close(']');
    }
    if (!record.texts.empty()) {
        json.key("texts");
        json.open('[');
        for (const RecordText& text : record.texts) write_text(json, record, text);
        json.close(']');
    }
    write_zones(json, record);
}

}  // namespace

void FrameRecord::clear() {
    seq = epoch = frame_seq = 0;
    stream.clear();
    pts_ns.reset(), running_ns.reset(), utc_ns.reset();
    width = height = 0;
    num_inferences = 0;
    objects.clear(), classes.clear(), masks.clear(), keypoints.clear(), embeddings.clear();
    texts.clear(), chars.clear();
    zones.clear(), happened.clear(), visits.clear();
    labels.clear(), points.clear(), runs.clear(), numbers.clear();
}

bool FrameRecord::empty() const {
    return objects.empty() && classes.empty() && masks.empty() && keypoints.empty() &&
           embeddings.empty() && texts.empty() && happened.empty();
}

void format_frame(const FrameRecord& record, std::string_view run, PublishLine& line) {
    line.text.clear();
    line.stream = record.stream;
    line.model = record.num_inferences ? record.inferences[0].model : std::string();
    line.run = run;
    line.first = line.last = record.seq;
    line.count = 1;
    line.epoch = record.epoch;
    line.gap = false;
    JsonText json(line.text);
    json.open('{');
    json.member("schema", "vartml.frame/1");
    json.member("run", run);
    json.member("seq", record.seq);
    if (record.epoch) json.member("epoch", record.epoch);
    json.member("stream", std::string_view(record.stream));
    json.member("frame_seq", record.frame_seq);
    if (record.pts_ns) json.member("pts_ns", *record.pts_ns);
    if (record.running_ns) json.member("running_ns", *record.running_ns);
    json.key("utc");
    record.utc_ns ? json.value(std::string_view(rfc3339(*record.utc_ns))) : json.null();
    if (record.width && record.height) {
        json.key("frame");
        json.open('{');
        json.member("w", record.width);
        json.member("h", record.height);
        json.close('}');
    }
    if (record.num_inferences) {
        write_model(json, record.inferences[0]);
        json.member("status", record.inferences[0].status);
        write_result(json, record.inferences[0]);
    }
    write_found(json, record);
    if (record.num_inferences && record.timings) write_timings(json, record.inferences[0]);
    if (record.num_inferences > 1) write_inferences(json, record);
    json.close('}');
    line.text += '\n';
}

void format_gap(PublishLine& line) {
    line.gap = true;
    line.text.clear();
    JsonText json(line.text);
    json.open('{');
    json.member("schema", "vartml.gap/1");
    json.member("run", std::string_view(line.run));
    if (line.epoch) json.member("epoch", line.epoch);
    json.member("stream", std::string_view(line.stream));
    if (!line.model.empty()) {
        json.key("model");
        json.open('{');
        json.member("name", std::string_view(line.model));
        json.close('}');
    }
    json.member("first", line.first);
    json.member("last", line.last);
    json.member("count", line.count);
    json.close('}');
    line.text += '\n';
}

std::optional<PublishLine> parse_line(std::string_view text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto number = [&](const char* name) -> uint64_t {
        const auto it = json.find(name);
        return it != json.end() && it->is_number_unsigned() ? it->get<uint64_t>() : 0;
    };
    const auto string = [](const nlohmann::json& object, const char* name) -> std::string {
        const auto it = object.find(name);
        return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    const std::string schema = string(json, "schema");
    PublishLine line;
    line.gap = schema == "vartml.gap/1";
    if (!line.gap && schema != "vartml.frame/1") return std::nullopt;
    line.text = text;
    line.run = string(json, "run");
    line.stream = string(json, "stream");
    if (const auto model = json.find("model"); model != json.end() && model->is_object())
        line.model = string(*model, "name");
    line.first = number(line.gap ? "first" : "seq");
    line.last = number(line.gap ? "last" : "seq");
    line.count = line.gap ? number("count") : 1;
    line.epoch = number("epoch");
    return line;
}

}  // namespace vartml
