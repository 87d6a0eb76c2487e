// SPDX-License-Identifier: Apache-2.0
// YOLO v3, v4, v5, v7 with the boxes decoded in the model: [1,N,5+C] of centre and size in model
// pixels, objectness, classes; score objectness * class. Also raw maps. YOLOv6, and YOLOX that is
// decoded in the model, have one such row per cell; YOLOX leaves the same shape undecoded, so that
// this is read only where somebody names the decoder.
#include <algorithm>
#include <cmath>

#include "lib/vision/dense_detector.h"
#include "lib/vision/head.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

// YOLO v3, v4, v5, v7 without the last layer: a map per stride of [1,A,h,w,5+C] or [1,A(5+C),h,w]
// (also [1,h,w,A(5+C)]), of numbers before their sigmoid.

// Whether it is read from maps: it has some, and no table beside them that is their boxes.
bool is_read_from_maps(const HeadRequest& request);
bool fits_yolo_v5_raw(const HeadRequest& request);
// Errors: dec-role, dec-positions (strides, anchors), dec-classes.
Result<std::unique_ptr<Head>> create_yolo_v5_raw(const HeadRequest& request);

namespace {

struct YoloV5 {
    static constexpr DenseForm form{.attributes_first = false, .box_attributes = 5, .per_cell = 3};
    static constexpr float reach = 2;
    static Candidate box(const DenseFrame& frame, uint32_t position, float score,
                         int32_t class_id) {
        return final_box(frame, position, score, class_id);
    }
};

// One row per cell.
struct YoloV6 : YoloV5 {
    static constexpr DenseForm form{.attributes_first = false, .box_attributes = 5, .per_cell = 1};
};

}  // namespace

bool fits_yolo_v5(const HeadRequest& request) {
    // A box, five points and one class, which somebody counts, are of yolo-face.
    constexpr size_t columns_of_face = 16;
    HeadRequest silent = request;
    silent.fault = nullptr;
    const auto head = locate_dense_head(silent, YoloV5::form);
    if (head && head->attributes == columns_of_face && tensor_classes(request.info) == 1u)
        return false;
    return fits_dense_form(request, YoloV5::form) || fits_yolo_v5_raw(request);
}

// Rows of one per cell are those of YOLO v6 and of YOLOX with its boxes decoded, which take
// different pixels.
bool knows_pixels_of_yolo_v5(const HeadRequest& request) {
    HeadRequest silent = request;
    silent.fault = nullptr;
    return is_read_from_maps(request) || !locate_dense_head(silent, YoloV6::form);
}

Result<std::unique_ptr<Head>> create_yolo_v5(const HeadRequest& request) {
    if (is_read_from_maps(request)) return create_yolo_v5_raw(request);
    HeadRequest silent = request;
    silent.fault = nullptr;
    if (auto made = DenseDetector<YoloV6>::create(silent)) return made;
    return DenseDetector<YoloV5>::create(request);
}

namespace {

constexpr unsigned box_attributes = 5;
constexpr uint32_t usual_anchors = 3;  // per cell

// One output; strides in elements.
struct RawMap {
    size_t output = 0;
    int stride = 0;
    uint32_t anchors = 0, attributes = 0, height = 0, width = 0;
    size_t anchor_stride = 0, attribute_stride = 0, cell_stride = 0;
    std::vector<float> sides;  // width, height of each anchor in pixels
    size_t cells() const { return size_t{height} * width; }
};

// Anchors of a cell in an output of rank 4, which does not say: the sidecar's, shared out.
uint32_t anchors_of(const ModelInfo& info, size_t maps) {
    if (info.anchors.empty()) return usual_anchors;
    return std::max<uint32_t>(1, static_cast<uint32_t>(info.anchors.size() / 2 / maps));
}

std::optional<RawMap> raw_map(const HeadRequest& request, const TensorInfo& output) {
    const auto& s = output.cpu.shape;
    RawMap map;
    map.output = static_cast<size_t>(&output - request.outputs.data());
    if (s.size() == 5 && s[0] == 1) {
        map.anchors = s[1], map.height = s[2], map.width = s[3], map.attributes = s[4];
        map.anchor_stride = size_t{s[2]} * s[3] * s[4];
        map.attribute_stride = 1, map.cell_stride = s[4];
    } else if (const auto form = s.size() == 4 ? map_form(request, output) : std::nullopt) {
        map.anchors = anchors_of(request.info, request.outputs.size());
        if (form->channels % map.anchors) return std::nullopt;
        map.attributes = form->channels / map.anchors;
        map.height = form->height, map.width = form->width;
        map.anchor_stride = map.attributes * form->channel_stride;
        map.attribute_stride = form->channel_stride, map.cell_stride = form->column_stride;
    } else {
        return std::nullopt;
    }
    if (!map.width || !map.height || map.attributes <= box_attributes) return std::nullopt;
    const uint32_t stride = (request.width + map.width / 2) / map.width;
    const auto cells = [&](uint32_t pixels) { return (pixels + stride - 1) / stride; };
    if (!stride || cells(request.width) != map.width || cells(request.height) != map.height) {
        return std::nullopt;
    }
    map.stride = static_cast<int>(stride);
    return map;
}

// The maps by ascending strides, or in the sidecar's order; empty when an output is none.
std::vector<RawMap> raw_maps(const HeadRequest& request) {
    std::vector<RawMap> maps;
    for (const TensorInfo& output : request.outputs) {
        auto map = raw_map(request, output);
        if (!map) return {};
        maps.push_back(std::move(*map));
    }
    const auto& order = request.info.strides;
    std::ranges::sort(maps, {}, [&](const RawMap& map) {
        const auto listed = std::ranges::find(order, map.stride);
        return std::pair(listed - order.begin(), map.stride);
    });
    return maps;
}

Error anchors_error(const HeadRequest& request, const std::vector<RawMap>& maps) {
    size_t wanted = 0;
    for (const RawMap& map : maps) wanted += map.anchors;
    const std::string found = std::to_string(request.info.anchors.size() / 2),
                      expected = std::to_string(wanted);
    const std::string first = request.outputs[maps.front().output].name;
    // The head of YOLO v8 without its last operators has channels like these, and no anchors.
    const size_t channels = maps.front().anchors * maps.front().attributes;
    const bool may_be_v8 = request.info.anchors.empty() && channels > 64;
    return head_error(request, "dec-positions",
                      "tensor '" + first + "' and its like hold " + expected +
                          " anchors in all, but " + source_of(request.info) + " names " + found +
                          "; list width and height of each in pixels, smallest stride first, in "
                          "x-vartml-anchors" +
                          (may_be_v8 ? ", or choose yolo-v8, which reads maps of 64 channels and " +
                                           std::to_string(channels - 64) + " classes"
                                     : ""),
                      found, expected, "x-vartml-anchors=10,13,16,30,…");
}

Error strides_error(const HeadRequest& request, const TensorInfo& output,
                    const std::vector<int>& strides) {
    std::string found, expected;
    for (const int stride : strides) found += (found.empty() ? "" : ",") + std::to_string(stride);
    for (const int stride : request.info.strides) {
        expected += (expected.empty() ? "" : ",") + std::to_string(stride);
    }
    return head_error(request, "dec-positions",
                      "tensor '" + output.name + "' and its like have the strides " + found +
                          ", but " + source_of(request.info) + " says x-vartml-strides=" +
                          expected + "; correct that line, or choose another decoder",
                      found, expected, "x-vartml-strides=" + found);
}

class YoloV5Raw final : public Head {
public:
    // `activation`: what the numbers of the maps still need, all of them.
    YoloV5Raw(std::vector<RawMap> maps, std::string_view activation, bool v3)
        : maps_(std::move(maps)), sigmoid_(activation), v3_(v3), views_(maps_.size()) {
        for (const RawMap& map : maps_) found_.resize(std::max(found_.size(), map.cells()));
    }

    unsigned classes() const override { return maps_.front().attributes - box_attributes; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        uint32_t first = 0;
        for (size_t i = 0; i < maps_.size(); ++i) {
            const RawMap& map = maps_[i];
            auto values = views_[i].read(tensors[map.output]);
            if (!values) return std::move(values).error();
            for (uint32_t a = 0; a < map.anchors; ++a) {
                run_anchor(map, a, *values + a * map.anchor_stride, first, context.threshold, out);
                first += static_cast<uint32_t>(map.cells());
            }
        }
        return {};
    }

private:
    void run_anchor(const RawMap& map, uint32_t anchor, const float* values, uint32_t first,
                    float threshold, Candidates& out) {
        const kernels::Scores objects{
            values + 4 * map.attribute_stride, {},           map.cells(), 1,
            map.cell_stride * sizeof(float),   sizeof(float)};
        const kernels::Scores scores{values + box_attributes * map.attribute_stride,
                                     {},
                                     map.cells(),
                                     classes(),
                                     map.cell_stride * sizeof(float),
                                     map.attribute_stride * sizeof(float)};
        const size_t count =
            kernels::positions_above(objects, sigmoid_.stored_threshold(threshold), found_.data());
        for (size_t i = 0; i < count; ++i) {
            const uint32_t cell = found_[i];
            const float* v = values + cell * map.cell_stride;
            const kernels::BestClass best = best_class(scores, cell);
            const float stored = v[4 * map.attribute_stride], object = sigmoid_(stored);
            const float score = object * sigmoid_(best.score);
            if (!std::isfinite(stored) || !best.finite) {
                ++out.not_finite;
            } else if (object >= threshold && score >= threshold) {
                Candidate box = box_of(map, anchor, v, cell);
                box.score = score, box.class_id = best.class_id, box.position = first + cell;
                out.add(box);
            }
        }
    }

    Candidate box_of(const RawMap& map, uint32_t anchor, const float* v, uint32_t cell) const {
        const auto stride = static_cast<float>(map.stride);
        const auto gx = static_cast<float>(cell % map.width),
                   gy = static_cast<float>(cell / map.width);
        const float aw = map.sides[2 * size_t{anchor}], ah = map.sides[2 * size_t{anchor} + 1];
        const float x = v[0], y = v[map.attribute_stride];
        const float w = v[2 * map.attribute_stride], h = v[3 * map.attribute_stride];
        float cx, cy, width, height;
        if (v3_) {
            cx = (sigmoid_(x) + gx) * stride, cy = (sigmoid_(y) + gy) * stride;
            const auto side = [this](float v) {  // of a sigmoid that was put behind it
                return sigmoid_.is_sigmoid() ? std::exp(v) : v / (1 - v);
            };
            width = side(w) * aw, height = side(h) * ah;
        } else {
            cx = (2 * sigmoid_(x) - 0.5f + gx) * stride;
            cy = (2 * sigmoid_(y) - 0.5f + gy) * stride;
            const float sw = 2 * sigmoid_(w), sh = 2 * sigmoid_(h);
            width = sw * sw * aw, height = sh * sh * ah;
        }
        if (std::isnan(x + y + w + h) || std::isinf(x + y + w + h)) cx = NAN;
        return {cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2, 0, 0, 0};
    }

    std::vector<RawMap> maps_;
    Activation sigmoid_;
    bool v3_;
    std::vector<FloatView> views_;
    std::vector<uint32_t> found_;
};

}  // namespace

bool is_read_from_maps(const HeadRequest& request) {
    const bool has_maps = std::ranges::any_of(request.outputs, [](const TensorInfo& output) {
        return output.cpu.shape.size() == 4 || output.cpu.shape.size() == 5;
    });
    HeadRequest silent = request;
    silent.fault = nullptr;
    return has_maps && !locate_dense_head(silent, YoloV5::form);
}

// One map of rank 4 could be anything: there must be several.
bool fits_yolo_v5_raw(const HeadRequest& request) {
    const auto maps = raw_maps(request);
    if (maps.empty()) return false;
    for (size_t i = 1; i < maps.size(); ++i) {
        if (maps[i].stride == maps[i - 1].stride || maps[i].attributes != maps[0].attributes) {
            return false;
        }
    }
    return maps.size() > 1 || request.outputs[0].cpu.shape.size() == 5;
}

Result<std::unique_ptr<Head>> create_yolo_v5_raw(const HeadRequest& request) {
    auto maps = raw_maps(request);
    const std::string found = outputs_text(request.outputs);
    if (maps.empty()) {
        return head_error(request, "dec-positions",
                          "the outputs (" + found +
                              ") are not maps [1,A,h,w,5+C] or [1,A(5+C),h,w] "
                              "of whole strides of an input of " +
                              std::to_string(request.width) + "x" + std::to_string(request.height) +
                              "; check x-vartml-anchors, or choose another decoder",
                          found, "[1,A,h,w,5+C]", "x-vartml-anchors=…");
    }
    std::vector<int> strides;
    for (const RawMap& map : maps) strides.push_back(map.stride);
    if (!request.info.strides.empty() && strides != request.info.strides) {
        return strides_error(request, request.outputs[maps.front().output], strides);
    }
    size_t anchors = 0, next = 0;
    for (const RawMap& map : maps) anchors += map.anchors;
    if (request.info.anchors.size() != 2 * anchors) return anchors_error(request, maps);
    for (RawMap& map : maps) {
        const auto begin = request.info.anchors.begin() + static_cast<std::ptrdiff_t>(next);
        map.sides.assign(begin, begin + 2 * static_cast<std::ptrdiff_t>(map.anchors));
        next += 2 * size_t{map.anchors};
        auto checked = check_classes(request, request.outputs[map.output].name,
                                     map.attributes - box_attributes);
        if (!checked) return checked.error();
        if (map.attributes != maps.front().attributes) {
            return head_error(request, "dec-classes",
                              "the outputs (" + found +
                                  ") have different numbers of classes; "
                                  "choose another decoder",
                              found, std::to_string(maps.front().attributes - box_attributes),
                              "decoder=…");
        }
    }
    const TensorInfo& first = request.outputs[maps.front().output];
    // Places have their sigmoid whatever makes scores of the classes.
    const std::string_view end = activation_for(request, first, "sigmoid", "sigmoid");
    return std::unique_ptr<Head>(std::make_unique<YoloV5Raw>(
        std::move(maps), end == "none" ? end : "sigmoid", request.info.box_form == "v3"));
}

}  // namespace vartml::vision
