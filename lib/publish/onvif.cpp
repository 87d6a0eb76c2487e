// SPDX-License-Identifier: Apache-2.0
// Records as ONVIF's metadata stream, on their way to a sink of any kind.
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include <vartml/publish.h>

namespace vartml {
namespace {

using nlohmann::json;

// Objects that no tracker named have a number of their own in each frame, above those of tracks.
constexpr uint64_t ids_per_frame = 65536;

// What XML 1.0 does not allow becomes `?`.
// given: XML 1.0, 2.2: U+FFFE and U+FFFF are no characters, nor are most control characters.
void append_escaped(std::string& xml, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const std::string_view three = text.substr(i, 3);
        if (three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf") {
            xml += '?';
            i += 2;
            continue;
        }
        const char c = text[i];
        switch (c) {
            case '&':
                xml += "&amp;";
                break;
            case '<':
                xml += "&lt;";
                break;
            case '>':
                xml += "&gt;";
                break;
            case '"':
                xml += "&quot;";
                break;
            default:
                xml += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        }
    }
}

void append_attribute(std::string& xml, const char* name, std::string_view value) {
    xml += ' ';
    xml += name;
    xml += "=\"";
    append_escaped(xml, value);
    xml += '"';
}

void append_attribute(std::string& xml, const char* name, double value) {
    char text[400];  // the largest double has 309 digits
    const auto end =
        std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed, 6);
    append_attribute(xml, name, std::string_view(text, end.ptr));
}

std::string text_of(const json& object, const char* member) {
    const auto it = object.find(member);
    return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

double number_of(const json& value) {
    return value.is_number() ? value.get<double>() : 0;
}

// ONVIF's own coordinates (given: Analytics Service Specification, 5.1.2.2): -1 to 1 from the left
// to the right and from the bottom to the top of the picture.
struct Picture {
    double w = 1, h = 1;
    double x(double pixel) const { return 2 * pixel / w - 1; }
    double y(double pixel) const { return 1 - 2 * pixel / h; }
};

void append_point(std::string& xml, const char* element, const Picture& picture, double x,
                  double y) {
    xml += std::string("<tt:") + element;
    append_attribute(xml, "x", picture.x(x));
    append_attribute(xml, "y", picture.y(y));
    xml += "/>";
}

// A box, with its corners where it is turned.
void append_shape(std::string& xml, const Picture& picture, const json& object) {
    const auto it = object.find("box");
    if (it == object.end() || !it->is_array() || it->size() != 4) return;
    const double x = number_of((*it)[0]), y = number_of((*it)[1]);
    const double w = number_of((*it)[2]), h = number_of((*it)[3]);
    const double angle = object.contains("angle") ? number_of(object["angle"]) : 0;
    const double c = std::cos(angle), s = std::sin(angle);
    const double cx = x + w / 2, cy = y + h / 2;
    const double half_w = (w * std::abs(c) + h * std::abs(s)) / 2;
    const double half_h = (w * std::abs(s) + h * std::abs(c)) / 2;
    xml += "<tt:Shape><tt:BoundingBox";
    append_attribute(xml, "left", picture.x(cx - half_w));
    append_attribute(xml, "top", picture.y(cy - half_h));
    append_attribute(xml, "right", picture.x(cx + half_w));
    append_attribute(xml, "bottom", picture.y(cy + half_h));
    xml += "/>";
    append_point(xml, "CenterOfGravity", picture, cx, cy);
    if (angle != 0) {
        xml += "<tt:Polygon>";
        for (const auto& [i, k] :
             std::array<std::pair<int, int>, 4>{{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}}) {
            const double px = i * w / 2, py = k * h / 2;
            append_point(xml, "Point", picture, cx + px * c - py * s, cy + px * s + py * c);
        }
        xml += "</tt:Polygon>";
    }
    xml += "</tt:Shape>";
}

void append_type(std::string& xml, const json& of) {
    const std::string label = text_of(of, "label");
    if (label.empty()) return;
    xml += "<tt:Type";
    if (of.contains("score") && of["score"].is_number())
        append_attribute(xml, "Likelihood", of["score"].get<double>());
    xml += '>';
    append_escaped(xml, label);
    xml += "</tt:Type>";
}

uint64_t id_of(const json& object, uint64_t frame) {
    if (object.contains("track") && object["track"].is_number_unsigned())
        return object["track"].get<uint64_t>();
    return (frame + 1) * ids_per_frame + object.value("id", uint64_t{0});
}

void append_object(std::string& xml, const Picture& picture, const json& objects,
                   const json& object, uint64_t frame) {
    xml += "<tt:Object";
    append_attribute(xml, "ObjectId", std::to_string(id_of(object, frame)));
    for (const json& other : objects) {
        if (object.contains("parent") && other.value("id", json()) == object["parent"])
            append_attribute(xml, "Parent", std::to_string(id_of(other, frame)));
    }
    xml += "><tt:Appearance>";
    append_shape(xml, picture, object);
    std::string types;
    append_type(types, object);
    if (object.contains("attributes"))
        for (const json& attribute : object["attributes"]) append_type(types, attribute);
    if (!types.empty()) xml += "<tt:Class>" + types + "</tt:Class>";
    xml += "</tt:Appearance></tt:Object>";
}

void append_frame(std::string& xml, const json& record) {
    xml += "<tt:Frame";
    // Which is required; the calendar's first moment, where nobody knows when it was.
    const std::string utc = text_of(record, "utc");
    append_attribute(xml, "UtcTime", utc.empty() ? "1970-01-01T00:00:00Z" : utc);
    if (record.contains("model")) {
        const std::string model = text_of(record["model"], "name");
        if (!model.empty()) append_attribute(xml, "Source", model);
    }
    xml += '>';
    Picture picture;
    if (record.contains("frame")) {
        const double w = number_of(record["frame"].value("w", json()));
        const double h = number_of(record["frame"].value("h", json()));
        if (w > 0 && h > 0) picture = {w, h};
    }
    const uint64_t frame = record.value("frame_seq", uint64_t{0});
    const json objects = record.value("objects", json::array());
    for (const json& object : objects) append_object(xml, picture, objects, object, frame);
    xml += "</tt:Frame>";
}

}  // namespace

std::string onvif_line(std::string_view record) {
    std::string xml =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><tt:MetadataStream "
        "xmlns:tt=\"http://www.onvif.org/ver10/schema\"><tt:VideoAnalytics>";
    const json parsed = json::parse(record, nullptr, false);
    if (text_of(parsed, "schema") == "vartml.frame/1") append_frame(xml, parsed);
    xml += "</tt:VideoAnalytics></tt:MetadataStream>\n";
    return xml;
}

namespace {

class OnvifSink final : public PublishSink {
public:
    explicit OnvifSink(std::unique_ptr<PublishSink> sink) : sink_(std::move(sink)) {
        backoff = sink_->backoff;
    }
    Result<void> connect() override { return sink_->connect(); }
    bool connected() const override { return sink_->connected(); }
    Result<bool> send(const PublishLine& line) override {
        PublishLine converted = line;
        converted.text = onvif_line(line.text);
        return sink_->send(converted);
    }
    Result<void> work() override { return sink_->work(); }
    Wait wait() const override { return sink_->wait(); }
    size_t take_delivered() override { return sink_->take_delivered(); }
    std::vector<size_t> take_lost() override { return sink_->take_lost(); }
    void disconnect() override { sink_->disconnect(); }
    bool reconnects() const override { return sink_->reconnects(); }
    bool disk_full() const override { return sink_->disk_full(); }

private:
    std::unique_ptr<PublishSink> sink_;
};

}  // namespace

std::unique_ptr<PublishSink> make_onvif_sink(std::unique_ptr<PublishSink> sink) {
    return std::make_unique<OnvifSink>(std::move(sink));
}

}  // namespace vartml
