// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/readers.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

// A decoder that reads one output, its role, and what names of such outputs have in them.
struct Reader {
    std::string_view nick, role;
    std::array<std::string_view, 3> hints;
};
constexpr Reader readers[] = {
    {"ctc-text", "scores", {"", "", ""}},
    {"heatmap", "heatmap", {"heatmap", "", ""}},
    {"segment", "mask", {"mask", "segment", ""}},
    {"classify", "scores", {"class", "prob", "logit"}},
    {"landmarks", "landmarks", {"landmark", "keypoint", "coord"}},
    {"embedding", "embedding", {"embed", "feature", ""}},
};

constexpr std::string_view boxes = "boxes";  // the role of a table of them

// Decoders whose outputs tell whose they are, and which list boxes.
std::vector<Reader> readers_of_boxes() {
    std::vector<Reader> list;
    for (const Family& family : families())
        if (family.shapes_tell && !family.of_picture)
            list.push_back({family.row.nick, boxes, {"", "", ""}});
    return list;
}

// Probabilities that sum up to 1 are those of classes and of nothing else.
bool may_read(const Reader& reader, std::string_view end) {
    const bool classes = end == "softmax" || end == "log-softmax";
    return !classes ||
           (reader.nick != "landmarks" && reader.nick != "embedding" && reader.nick != "heatmap");
}

bool reads(const Reader& reader, const HeadRequest& request, const TensorInfo& output) {
    ModelInfo info = request.info;
    const auto said = std::ranges::find(info.outputs, output.name, &ModelInfo::Output::name);
    ModelInfo::Output& named = said == info.outputs.end() ? info.outputs.emplace_back() : *said;
    named.name = output.name;
    if (!named.role.empty() && named.role != reader.role) return false;
    named.role = reader.role;
    const Family* family = find_family(reader.nick);
    // Alone it may fit and only want its labels.
    const bool alone = family->fits({info, {&output, 1}, request.width, request.height, nullptr});
    const auto made = [&] {
        return family->create({info, request.outputs, request.width, request.height, nullptr});
    };
    return reader.role == boxes ? alone && made() : alone || made();
}

// Whether maps that nothing is called after are no maps of points or classes: beside a table of
// many values for each of many rows they are prototypes of masks or what it was made of, and
// several maps of each of several sizes are the levels of a detector. Maps of points have one size.
bool are_parts(const Reader& reader, const HeadRequest& request) {
    constexpr uint32_t least_columns = 6, least_rows = 50;  // ours: of a table
    std::vector<std::pair<uint32_t, uint32_t>> sizes;
    size_t maps = 0;
    for (const TensorInfo& output : request.outputs) {
        const auto& s = output.cpu.shape;
        if (s.size() == 3 && std::min(s[1], s[2]) >= least_columns &&
            std::max(s[1], s[2]) >= least_rows && !map_form(request, output))
            return true;
        const auto form = s.size() == 4 ? map_form(request, output) : std::nullopt;
        if (!form) continue;
        ++maps;
        const std::pair size{form->height, form->width};
        if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
    }
    return sizes.size() > 1 && (reader.nick == "heatmap" || maps >= 2 * sizes.size());
}

// Positions of a table of boxes [1,N,4], [1,4,N] or, with scores behind them, [1,N,5]; else 0.
uint32_t positions_of_boxes(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    if (shape.size() != 3 || shape[0] != 1) return 0;
    if (shape[2] == 4 || shape[2] == 5) return shape[1];
    return shape[1] == 4 ? shape[2] : 0;
}

// Whether an output says something of as many positions as another one has boxes for: its numbers
// mean nothing without these.
bool is_of_boxes(const HeadRequest& request, const TensorInfo& output) {
    return std::ranges::any_of(request.outputs, [&](const TensorInfo& table) {
        const uint32_t rows = positions_of_boxes(table);
        const auto& shape = output.cpu.shape;
        return &table != &output && rows > 1 && shape.size() >= 2 && shape.size() <= 3 &&
               (shape[1] == rows || shape.back() == rows);
    });
}

// Outputs that a decoder reads: those that are called like it, else all.
std::vector<std::string_view> outputs_of(const Reader& reader, const HeadRequest& request) {
    std::vector<std::string_view> called, all;
    for (const TensorInfo& output : request.outputs) {
        const bool number = output.cpu.size == 1;  // the presence of something, not a list
        if (number || is_of_boxes(request, output) || !may_read(reader, ends_in(request, output)) ||
            !reads(reader, request, output))
            continue;
        all.push_back(output.name);
        if (std::ranges::any_of(reader.hints, [&](std::string_view hint) {
                return !hint.empty() && output.name.find(hint) != output.name.npos;
            }))
            called.push_back(output.name);
    }
    if (!called.empty()) return called;
    const bool maps = reader.nick == "heatmap" || reader.nick == "segment";
    return maps && are_parts(reader, request) ? called : all;
}

std::string readings(std::span<const Reader> list, const HeadRequest& request) {
    constexpr size_t most = 3;  // ours: outputs that the sentence names
    std::string text, lines;
    for (const Reader& reader : list) {
        const auto outputs = outputs_of(reader, request);
        if (outputs.empty()) continue;
        text += (text.empty() ? "; " : ", ") + std::string(reader.nick) + " reads ";
        for (size_t i = 0; i < std::min(outputs.size(), most); ++i)
            text += (i ? " or '" : "'") + std::string(outputs[i]) + "'";
        if (outputs.size() > most)
            text += " or one of " + std::to_string(outputs.size() - most) + " more";
        if (lines.empty()) {
            lines = ": choose one with the sidecar's lines x-vartml-decoder=" +
                    std::string(reader.nick) + " in section [modelinfo] and dir=output and " +
                    "x-vartml-role=" + std::string(reader.role) + " in section [" +
                    std::string(outputs.front()) + "]";
        }
    }
    return text + lines;
}

// Boxes, and scores of classes of as many positions: the lines with which `ssd` reads them.
std::string boxes_and_scores(const HeadRequest& request) {
    for (const TensorInfo& table : request.outputs) {
        const uint32_t rows = positions_of_boxes(table);
        for (const TensorInfo& scores : request.outputs) {
            const auto& shape = scores.cpu.shape;
            if (&scores == &table || rows < 2 || shape.size() != 3 || shape[0] != 1) continue;
            if (shape[1] != rows && shape[2] != rows) continue;
            const uint32_t columns = shape[1] == rows ? shape[2] : shape[1];
            ModelInfo info = request.info;
            if (!promised_classes(info)) info.num_classes = columns;
            std::erase_if(info.outputs, [&](const auto& said) { return said.name == table.name; });
            info.outputs.push_back({.name = table.name, .id = "", .role = std::string(boxes)});
            const HeadRequest said{info, request.outputs, request.width, request.height, nullptr};
            const Family& ssd = *find_family("ssd");
            const bool alone = bool(ssd.create(said));
            info.background = "last";  // as scores that sum up to 1 have one
            if (!alone && !(columns > 1 && ssd.create(said))) continue;
            const std::string classes = std::to_string(columns);
            const std::string found =
                "; if they are boxes that the model decoded in '" + table.name +
                "' and scores of " + classes + (classes == "1" ? " class" : " classes") + " in '" +
                scores.name +
                (alone ? "', without one of a background" : "', one of which is that of nothing") +
                ", ssd reads them with the sidecar's lines x-vartml-decoder=ssd and " +
                (alone ? "x-vartml-num-classes=" + classes
                       : "x-vartml-background=last (or first)") +
                " in section [modelinfo] and dir=output and x-vartml-role=boxes in section [" +
                table.name + "]";
            if (columns == 1) return found;
            return found +
                   (alone ? "; x-vartml-background=last says that the last class is that of "
                            "nothing, as DETR has it"
                          : "") +
                   "; boxes of the DETR line are x-vartml-box-order=cxcywh";
        }
    }
    return {};
}

// Boxes [1,N,4] among outputs that are lists of scores and classes of them, and more.
std::string lists(const HeadRequest& request) {
    for (const TensorInfo& table : request.outputs) {
        if (table.cpu.shape.size() != 3 || table.cpu.shape[2] != 4) continue;
        ModelInfo info = request.info;
        std::erase_if(info.outputs, [&](const auto& said) { return said.name == table.name; });
        info.outputs.push_back({.name = table.name, .id = "", .role = std::string(boxes)});
        const HeadRequest said{info, request.outputs, request.width, request.height, nullptr};
        const auto is_list = [&](const TensorInfo& output) {
            return output.cpu.shape.size() == 2 && output.cpu.shape[1] == table.cpu.shape[1];
        };
        const auto is_number = [](const TensorInfo& output) { return output.cpu.size == 1; };
        const bool counted = std::ranges::any_of(request.outputs, is_number);
        const std::string nick = counted ? "ssd" : "detr";
        if (std::ranges::none_of(request.outputs, is_list) || !find_family(nick)->create(said))
            continue;
        return "; " + nick + " reads the list of boxes '" + table.name +
               "': choose it with the sidecar's lines x-vartml-decoder=" + nick +
               " in section [modelinfo] and dir=output and x-vartml-role=boxes in section [" +
               table.name + "]";
    }
    return {};
}

}  // namespace

// A table of boxes is what the model is for; maps beside it are what it was made of.
std::string partial_readers(const HeadRequest& request) {
    if (request.outputs.size() < 2) return {};
    std::string text = lists(request);
    if (text.empty()) text = boxes_and_scores(request);
    if (text.empty()) text = readings(readers_of_boxes(), request);
    return text.empty() ? readings(readers, request) : text;
}

std::string readers_in_need(const HeadRequest& request) {
    constexpr size_t usual_anchors = 3;
    HeadRequest silent = request;
    silent.fault = nullptr;
    ModelInfo anchored = request.info;
    if (anchored.anchors.empty())
        anchored.anchors.assign(2 * usual_anchors * request.outputs.size(), 1.f);
    std::string text;
    for (const Family& family : families()) {
        if (family.finds != Finds::objects || family.fits(silent)) continue;
        const auto made = family.create(silent);
        std::string line;
        if (made && (*made)->classes() != 0)
            line = "x-vartml-num-classes=" + std::to_string((*made)->classes());
        else if (!made && request.info.anchors.empty() &&
                 family.create({anchored, request.outputs, request.width, request.height, nullptr}))
            line = "x-vartml-anchors=…";
        if (line.empty()) continue;
        text += (text.empty() ? "; boxes in it are read by " : ", ") +
                std::string(family.row.nick) + " with " + line;
    }
    return text;
}

}  // namespace vartml::vision
