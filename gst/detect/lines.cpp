// SPDX-License-Identifier: Apache-2.0
#include "gst/detect/lines.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

namespace vartml::gst::detect {

std::string plain(std::string_view text) {
    std::string copy(text);
    for (char& c : copy)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
    return copy;
}

namespace {

using Record = vartml::FrameRecord;

// ours: numbers of a vector that a line shows, names that a summary shows
constexpr size_t most_numbers = 4, most_names = 8;
// ours: a class behind the first that would read 0.00 is not shown
constexpr float least_score = 0.005f;

[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

template <typename T>
std::span<const T> part(const std::vector<T>& list, vartml::RecordRange range) {
    return std::span(list).subspan(range.first, range.count);
}

// Columns of a terminal that the text takes, as far as a character is one.
size_t columns(std::string_view text) {
    return static_cast<size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(std::string_view name) {
    constexpr size_t width = 16;
    std::string text = plain(name);
    text.append(width - std::min(width, columns(text)), ' ');
    return text;
}

std::string place(const std::array<int, 4>& box) {
    return print("at %d,%d  size %dx%d", box[0], box[1], box[2], box[3]);
}

std::string counted(uint64_t count, const char* what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string quoted(const Record& record, const vartml::RecordText& text) {
    const auto chars = std::string_view(record.chars).substr(text.chars.first, text.chars.count);
    return '"' + plain(chars) + '"';
}

// Of pixels of the mask; its runs are outside and inside by turns.
double filled(const Record& record, const vartml::RecordMask& mask) {
    uint64_t inside = 0, all = 0;
    bool is_inside = false;
    for (const uint32_t length : part(record.runs, mask.runs)) {
        inside += is_inside ? length : 0;
        all += length;
        is_inside = !is_inside;
    }
    return all ? 100. * static_cast<double>(inside) / static_cast<double>(all) : 0;
}

std::string object_line(const Record& record, const vartml::RecordObject& object) {
    std::string line = padded(object.label) + print("  %.2f  ", static_cast<double>(object.score)) +
                       place(object.box);
    if (object.angle != 0)
        line +=
            print(", turned by %.0f°", static_cast<double>(object.angle) * 180 / std::numbers::pi);
    if (object.mask) line += print(", mask in %.0f %% of it", filled(record, *object.mask));
    if (object.keypoints.count) line += ", " + counted(object.keypoints.count, "point");
    if (object.embedding.count) line += ", " + counted(object.embedding.count, "number");
    if (object.text) line += ", text " + quoted(record, *object.text);
    for (const vartml::RecordClass& also : part(record.labels, object.attributes))
        line += ", " + plain(also.label) + print(" %.2f", static_cast<double>(also.score));
    return line;
}

// Of the whole picture: the rectangle around the points.
std::string points_line(std::span<const vartml::RecordPoint> points) {
    const auto [left, right] = std::ranges::minmax_element(points, {}, &vartml::RecordPoint::x);
    const auto [top, bottom] = std::ranges::minmax_element(points, {}, &vartml::RecordPoint::y);
    double score = 0;
    for (const vartml::RecordPoint& p : points) score += static_cast<double>(p.score);
    const auto whole = [](float x) { return static_cast<int>(std::lround(x)); };
    return padded("keypoints") + print("  %.2f  ", score / static_cast<double>(points.size())) +
           place({whole(left->x), whole(top->y), whole(right->x - left->x),
                  whole(bottom->y - top->y)}) +
           ", " + counted(points.size(), "point");
}

std::string embedding_line(std::span<const float> numbers) {
    std::string line = padded("embedding") + "  " + counted(numbers.size(), "number") + ":";
    for (const float n : numbers.first(std::min(numbers.size(), most_numbers)))
        line += print(" %.3f", static_cast<double>(n));
    return line + (numbers.size() > most_numbers ? " …" : "");
}

// Name and share of each region of a map of the whole picture, the largest first.
std::vector<std::pair<std::string, double>> areas_of(const Record& record,
                                                     const vartml::RecordMask& mask) {
    const auto labels = part(record.labels, mask.labels);
    const auto regions = part(record.runs, mask.regions), runs = part(record.runs, mask.runs);
    std::map<uint32_t, uint64_t> pixels;
    uint64_t all = 0;
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
        pixels[runs[i]] += runs[i + 1];
        all += runs[i + 1];
    }
    std::vector<std::pair<std::string, double>> areas;
    for (size_t i = 0; i < regions.size() && all; ++i)
        areas.emplace_back(
            i < labels.size() ? plain(labels[i].label) : std::to_string(regions[i]),
            100. * static_cast<double>(pixels[regions[i]]) / static_cast<double>(all));
    std::ranges::stable_sort(areas, std::ranges::greater(),
                             &std::pair<std::string, double>::second);
    return areas;
}

}  // namespace

std::string lines_of(const Record& record, std::string_view prefix) {
    std::string lines;
    const auto add = [&](const std::string& line) { (lines += prefix) += line + '\n'; };
    for (const vartml::RecordObject& object : record.objects) add(object_line(record, object));
    for (const vartml::RecordClass& one : record.classes)
        if (&one == record.classes.data() || one.score >= least_score)
            add(padded(one.label) + print("  %.2f", static_cast<double>(one.score)));
    for (const vartml::RecordMask& mask : record.masks)
        for (const auto& [name, share] : areas_of(record, mask))
            add(padded(name) + print("  %.1f %% of the picture", share));
    for (const vartml::RecordRange points : record.keypoints)
        if (points.count) add(points_line(part(record.points, points)));
    for (const vartml::RecordText& text : record.texts)
        add(padded("text") + print("  %.2f  ", static_cast<double>(text.score)) +
            quoted(record, text));
    for (const vartml::RecordRange numbers : record.embeddings)
        add(embedding_line(part(record.numbers, numbers)));
    return lines;
}

void Tally::Kind::add(std::string_view name) {
    ++total;
    const auto found = names.find(name);
    if (found == names.end())
        names.emplace(name, 1);
    else
        ++found->second;
}

void Tally::add(const Record& record) {
    for (const vartml::RecordObject& object : record.objects) objects_.add(object.label);
    if (!record.classes.empty()) classes_.add(record.classes[0].label);  // the others are guesses
    for (const vartml::RecordMask& mask : record.masks)
        for (const auto& area : areas_of(record, mask)) areas_.add(area.first);
    points_ += static_cast<uint64_t>(std::ranges::count_if(
        record.keypoints, [](const vartml::RecordRange& r) { return r.count > 0; }));
    texts_ += record.texts.size();
    embeddings_ += record.embeddings.size();
}

std::string Tally::text() const {
    std::string text;
    const auto add = [&](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
    const auto kind = [&](const Kind& k, const char* one, const char* many) {
        if (k.total == 0) return;
        std::vector<std::pair<std::string, uint64_t>> names(k.names.begin(), k.names.end());
        std::ranges::stable_sort(names, std::ranges::greater(),
                                 &std::pair<std::string, uint64_t>::second);
        std::string words = std::to_string(k.total) + ' ' + (k.total == 1 ? one : many);
        for (size_t i = 0; i < std::min(names.size(), most_names); ++i)
            words +=
                (i ? ", " : ": ") + plain(names[i].first) + ' ' + std::to_string(names[i].second);
        if (names.size() > most_names) words += ", …";
        add(words);
    };
    kind(objects_, "object", "objects");
    kind(classes_, "class", "classes");
    kind(areas_, "area", "areas");
    if (points_) add(counted(points_, "set") + " of keypoints");
    if (texts_) add(counted(texts_, "text"));
    if (embeddings_) add(counted(embeddings_, "vector"));
    return text.empty() ? "nothing found" : text;
}

}  // namespace vartml::gst::detect
