// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <utility>

namespace vartml::verify {
namespace {

using Index = std::vector<uint32_t>;

// The next index in row-major order; false after the last.
bool advance(Index& index, const std::vector<uint32_t>& shape) {
    for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

size_t block_of(Layout layout) {
    switch (layout) {
        case Layout::HCWNC4:
            return 4;
        case Layout::HCWNC8:
            return 8;
        case Layout::HCWNC16:
            return 16;
        default:
            return 0;
    }
}

// Where an element lies, in elements; -1 where the two views are not of one tensor.
class Places {
public:
    Places(const TensorView& view, const TensorView& cpu) : view_(view), cpu_(cpu) {
        const size_t rank = cpu.shape.size();
        const bool image = rank == 4 && (cpu.layout == Layout::NCHW || cpu.layout == Layout::NHWC);
        block_ = block_of(view.layout);
        if (block_ != 0) {
            good_ = image && view.shape.size() == 5;
            return;
        }
        if (view.shape.size() != rank) return;
        axes_.resize(rank);
        for (size_t p = 0; p < rank; ++p)
            axes_[p] = view.order.size() == rank ? view.order[p] : static_cast<uint32_t>(p);
        if (image && view.layout == Layout::NHWC && cpu.layout == Layout::NCHW)
            axes_ = {0, 2, 3, 1};
        if (image && view.layout == Layout::NCHW && cpu.layout == Layout::NHWC)
            axes_ = {0, 3, 1, 2};
        good_ = true;
        for (size_t p = 0; p < rank; ++p)
            good_ = good_ && axes_[p] < rank && view.shape[p] >= cpu.shape[axes_[p]];
    }

    bool good() const { return good_; }
    size_t at(const Index& index) const {
        if (block_ != 0) {
            const bool last = cpu_.layout == Layout::NHWC;
            const uint32_t c = index[last ? 3 : 1], h = index[last ? 1 : 2],
                           w = index[last ? 2 : 3];
            const std::vector<uint32_t>& s = view_.shape;  // H, blocks, W, N, block
            return (((size_t{h} * s[1] + c / block_) * s[2] + w) * s[3] + index[0]) * s[4] +
                   c % block_;
        }
        size_t place = 0;
        for (size_t p = 0; p < axes_.size(); ++p) place = place * view_.shape[p] + index[axes_[p]];
        return place;
    }

private:
    const TensorView &view_, &cpu_;
    std::vector<uint32_t> axes_;  // CPU dimension at each position of the view
    size_t block_ = 0;
    bool good_ = false;
};

template <typename T>
void store(double value, std::byte* at) {
    const auto typed = [&] {
        if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
        const double rounded = std::nearbyint(value);
        const auto low = static_cast<double>(std::numeric_limits<T>::min());
        const auto high = static_cast<double>(std::numeric_limits<T>::max());
        if (!(rounded > low)) return std::numeric_limits<T>::min();
        return rounded >= high ? std::numeric_limits<T>::max() : static_cast<T>(rounded);
    }();
    std::memcpy(at, &typed, sizeof typed);
}

uint16_t to_bf16(double value) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// To the nearest of the 11 bits that a half has, by arithmetic instead of bits.
uint16_t to_fp16(double value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double magnitude = std::abs(value);
    if (std::isnan(value)) return 0x7e00;
    if (magnitude >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
    int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), -14) : -14;
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
    return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + steps));
}

void store_as(DataType type, double value, std::byte* at) {
    switch (type) {
        case DataType::float32:
            return store<float>(value, at);
        case DataType::float64:
            return store<double>(value, at);
        case DataType::bf16: {
            const uint16_t bits = to_bf16(value);
            std::memcpy(at, &bits, sizeof bits);
            return;
        }
        case DataType::fp16: {
            const uint16_t bits = to_fp16(value);
            std::memcpy(at, &bits, sizeof bits);
            return;
        }
        case DataType::int8:
            return store<int8_t>(value, at);
        case DataType::int16:
            return store<int16_t>(value, at);
        case DataType::uint16:
            return store<uint16_t>(value, at);
        case DataType::int32:
            return store<int32_t>(value, at);
        case DataType::uint32:
            return store<uint32_t>(value, at);
        case DataType::int64:
            return store<int64_t>(value, at);
        case DataType::uint64:
            return store<uint64_t>(value, at);
        default:
            return store<uint8_t>(value, at);
    }
}

}  // namespace

Result<TensorData> reference_values(const TensorView& view, const TensorView& cpu,
                                    const Buffer& bytes) {
    const Places places(view, cpu);
    if (!places.good() || bytes.size() != view.size_bytes)
        return Error{ErrorCode::unsupported, "verify has no reference for a tensor of layout " +
                                                 std::string(to_string(view.layout)) +
                                                 " of one of layout " +
                                                 std::string(to_string(cpu.layout))};
    const size_t from = size_bytes(view.data_type), to = size_bytes(cpu.data_type);
    const bool same_type = view.data_type == cpu.data_type && !view.quantisation;
    TensorData data{cpu.data_type, {cpu.shape.begin(), cpu.shape.end()}, Buffer(cpu.size_bytes)};
    const Quantisation q = view.quantisation.value_or(Quantisation{});
    const bool is_code = !is_float(view.data_type) && is_float(cpu.data_type);
    if (cpu.size == 0) return data;
    const std::vector<double> numbers =
        same_type ? std::vector<double>() : numbers_of({view.data_type, {}, bytes});
    Index index(cpu.shape.size());
    size_t i = 0;
    do {
        const size_t place = places.at(index);
        if (same_type) {
            std::memcpy(&data.bytes[i * to], &bytes[place * from], to);
        } else {
            const double value = numbers.empty() ? 0 : numbers[place];
            store_as(cpu.data_type, is_code ? (value - q.zero_point) * q.scale : value,
                     &data.bytes[i * to]);
        }
        ++i;
    } while (advance(index, cpu.shape));
    return data;
}

TensorData tensor_of(DataType type, const std::vector<uint32_t>& shape,
                     const std::vector<double>& numbers) {
    const size_t size = size_bytes(type);
    TensorData data{type, {shape.begin(), shape.end()}, Buffer(numbers.size() * size)};
    for (size_t i = 0; i < numbers.size(); ++i) store_as(type, numbers[i], &data.bytes[i * size]);
    return data;
}

namespace {

TensorData in_bound(const TensorData& data, const std::vector<uint32_t>& bound) {
    const size_t rank = bound.size(), size = size_bytes(data.type);
    if (data.shape.size() != rank) return data;
    bool equal = true;
    for (size_t d = 0; d < rank; ++d) {
        if (data.shape[d] > bound[d]) return data;
        equal = equal && data.shape[d] == bound[d];
    }
    if (equal) return data;
    size_t elements = 1;
    for (const uint32_t d : bound) elements *= d;
    const bool is_signed = data.type == DataType::int8 || data.type == DataType::int16 ||
                           data.type == DataType::int32 || data.type == DataType::int64;
    TensorData result{data.type,
                      {bound.begin(), bound.end()},
                      Buffer(elements * size, static_cast<std::byte>(is_signed ? 0xff : 0))};
    if (data.bytes.empty()) return result;
    const std::vector<uint32_t> shape(data.shape.begin(), data.shape.end());
    Index index(rank);
    size_t i = 0;
    do {
        size_t place = 0;
        for (size_t d = 0; d < rank; ++d) place = place * bound[d] + index[d];
        std::memcpy(&result.bytes[place * size], &data.bytes[i++ * size], size);
    } while (advance(index, shape));
    return result;
}

}  // namespace

TensorData as_output(const TensorData& data, const TensorInfo& output) {
    const bool widened = output.cpu.data_type == DataType::bf16 && data.type == DataType::float32;
    const std::vector<uint32_t> shape(data.shape.begin(), data.shape.end());
    const TensorData& typed = widened ? tensor_of(DataType::bf16, shape, numbers_of(data)) : data;
    return output.data_dependent ? in_bound(typed, output.cpu.shape) : typed;
}

namespace {

using Colour = std::array<double, 3>;

// `length` source pixels from `first` become `scaled` model pixels from `offset`.
struct Side {
    double first = 0, length = 0;
    uint32_t offset = 0, scaled = 0;
    double step() const { return length / scaled; }
};

struct Sides {
    Side x, y;
};

Sides place(const PictureData& picture, const PictureShape& model,
            const PreprocessOptions& options) {
    const double width = picture.width, height = picture.height;
    Sides sides{{0, width, 0, model.width}, {0, height, 0, model.height}};
    const double by_width = model.width / width, by_height = model.height / height;
    if (options.resize == ResizeMode::letterbox ||
        options.resize == ResizeMode::letterbox_top_left) {
        const double gain = std::min(by_width, by_height);
        const auto scaled = [gain](double size, uint32_t most) {
            const auto rounded = static_cast<uint32_t>(std::lround(size * gain));
            return std::clamp(rounded, 1u, most);
        };
        sides.x.scaled = scaled(width, model.width);
        sides.y.scaled = scaled(height, model.height);
        if (options.resize == ResizeMode::letterbox) {
            sides.x.offset = (model.width - sides.x.scaled) / 2;
            sides.y.offset = (model.height - sides.y.scaled) / 2;
        }
    }
    if (options.resize == ResizeMode::crop) {
        const double gain = std::max(by_width, by_height) / options.crop_fraction;
        sides.x.length = model.width / gain;
        sides.y.length = model.height / gain;
        sides.x.first = (width - sides.x.length) / 2;
        sides.y.first = (height - sides.y.length) / 2;
    }
    return sides;
}

// Source pixels of one side and their weights, which sum to 1.
struct Weighted {
    std::vector<size_t> pixels;
    std::vector<double> weights;
};

Weighted sample(const Side& side, uint32_t i, uint32_t size, Interpolation interpolation) {
    // Pixels that the region touches; it ends on a pixel's edge where it nearly does.
    const double low = std::clamp(std::floor(side.first + 1e-6), 0.0, size - 1.0);
    const double high = std::clamp(std::ceil(side.first + side.length - 1e-6) - 1, low, size - 1.0);
    const auto pixel = [&](double at) { return static_cast<size_t>(std::clamp(at, low, high)); };
    const double begin = side.first + i * side.step(), end = side.first + (i + 1) * side.step();
    if (interpolation == Interpolation::nearest)
        return {{pixel(std::floor(side.first + (i + 0.5) * side.step()))}, {1}};
    if (interpolation == Interpolation::bilinear) {
        const double at = std::clamp((begin + end) / 2 - 0.5, low, high), whole = std::floor(at);
        return {{pixel(whole), pixel(whole + 1)}, {1 - (at - whole), at - whole}};
    }
    Weighted result;
    double sum = 0;
    for (double p = std::clamp(std::floor(begin), low, high); p <= high && p < end; ++p) {
        const double covered = std::min(p + 1, end) - std::max(p, begin);
        if (covered <= 1e-9) continue;
        result.pixels.push_back(pixel(p));
        result.weights.push_back(covered);
        sum += covered;
    }
    if (result.pixels.empty()) return {{pixel(begin)}, {1}};
    for (double& weight : result.weights) weight /= sum;
    return result;
}

Colour ordered(const Colour& rgb, ChannelOrder order, uint32_t channels) {
    if (order == ChannelOrder::gray || channels == 1) {
        const double luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        return {luma, luma, luma};
    }
    return order == ChannelOrder::bgr ? Colour{rgb[2], rgb[1], rgb[0]} : rgb;
}

Colour blend(const PictureData& picture, const Weighted& column, const Weighted& row) {
    Colour sum{};
    for (size_t r = 0; r < row.pixels.size(); ++r)
        for (size_t c = 0; c < column.pixels.size(); ++c) {
            const size_t at = 3 * (row.pixels[r] * picture.width + column.pixels[c]);
            for (size_t k = 0; k < 3; ++k)
                sum[k] += row.weights[r] * column.weights[c] * picture.rgb[at + k];
        }
    return sum;
}

}  // namespace

PictureShape picture_shape(const TensorView& cpu) {
    const std::vector<uint32_t>& s = cpu.shape;
    PictureShape shape;
    if (cpu.layout == Layout::NCHW) shape = {s[3], s[2], s[1], false};
    if (cpu.layout == Layout::NHWC) shape = {s[2], s[1], s[3], true};
    if (cpu.layout == Layout::NHW) shape = {s[2], s[1], 1, false};
    const bool good = !s.empty() && s[0] == 1 && (shape.channels == 1 || shape.channels == 3);
    return good ? shape : PictureShape{};
}

ReferenceInput reference_preprocess(const PictureData& picture, const TensorView& cpu,
                                    const PreprocessOptions& options) {
    const PictureShape model = picture_shape(cpu);
    const Sides sides = place(picture, model, options);
    std::vector<Weighted> columns;
    for (uint32_t x = 0; x < sides.x.scaled; ++x)
        columns.push_back(sample(sides.x, x, picture.width, options.interpolation));
    std::vector<double> numbers(cpu.size);
    for (uint32_t y = 0; y < model.height; ++y) {
        const uint32_t v = y - sides.y.offset;
        const bool row_inside = y >= sides.y.offset && v < sides.y.scaled;
        const Weighted row =
            row_inside ? sample(sides.y, v, picture.height, options.interpolation) : Weighted{};
        for (uint32_t x = 0; x < model.width; ++x) {
            const uint32_t u = x - sides.x.offset;
            const bool inside = row_inside && x >= sides.x.offset && u < sides.x.scaled;
            const Colour colour =
                inside ? ordered(blend(picture, columns[u], row), options.channels, model.channels)
                       : Colour{options.pad[0], options.pad[1], options.pad[2]};
            for (uint32_t c = 0; c < model.channels; ++c) {
                const size_t at = model.channels_last
                                      ? (size_t{y} * model.width + x) * model.channels + c
                                      : (size_t{c} * model.height + y) * model.width + x;
                numbers[at] = (colour[c] - options.mean[c]) * options.scale[c];
            }
        }
    }
    const double right = sides.x.step(), down = sides.y.step();
    return {std::move(numbers),
            {.a = right,
             .c = sides.x.first - sides.x.offset * right,
             .e = down,
             .f = sides.y.first - sides.y.offset * down}};
}

namespace {

using vision::Candidate;
using vision::Candidates;
using vision::DenseForm;
using vision::DenseHead;
using vision::HeadRequest;

// A head as rows of positions and columns of attributes.
struct Table {
    std::vector<double> numbers;
    size_t positions = 0, attributes = 0;
    bool attributes_first = false;
    double at(size_t position, size_t attribute) const {
        return attributes_first ? numbers[attribute * positions + position]
                                : numbers[position * attributes + attribute];
    }
    // Column of the greatest of those from `first` on, counted from there; the first of equals.
    int best(size_t position, size_t first) const {
        size_t best = first;
        for (size_t c = first; c < attributes; ++c)
            if (at(position, c) > at(position, best)) best = c;
        return static_cast<int>(best - first);
    }
};

double activated(double value, std::string_view activation) {
    return activation == "sigmoid" ? 1 / (1 + std::exp(-value)) : value;
}

Candidate centred(double cx, double cy, double w, double h, double score, int class_id,
                  size_t position) {
    return {static_cast<float>(cx - w / 2), static_cast<float>(cy - h / 2),
            static_cast<float>(cx + w / 2), static_cast<float>(cy + h / 2),
            static_cast<float>(score),      class_id,
            static_cast<uint32_t>(position)};
}

// YOLOX: centre (xy + cell) * stride, size exp(wh) * stride.
Candidate yolox_box(const Table& t, const vision::Grid& grid, size_t position, double score,
                    int class_id) {
    const vision::Level* level = &grid.levels.front();
    for (const vision::Level& l : grid.levels)
        if (position >= l.first) level = &l;
    const size_t cell = position - level->first;
    const double x = static_cast<double>(cell % level->width),
                 y = static_cast<double>(cell / level->width), stride = level->stride;
    return centred((t.at(position, 0) + x) * stride, (t.at(position, 1) + y) * stride,
                   std::exp(t.at(position, 2)) * stride, std::exp(t.at(position, 3)) * stride,
                   score, class_id, position);
}

std::optional<Candidates> yolo(std::string_view family, const HeadRequest& request,
                               const std::vector<TensorData>& values, float threshold) {
    const bool objectness = family != "yolo-v8";
    const DenseForm form{.attributes_first = family == "yolo-v8",
                         .box_attributes = objectness ? 5u : 4u,
                         .per_cell = family == "yolo-v5" ? 3u : 1u};
    const auto head = vision::find_dense_head(request, form);
    if (!head) return std::nullopt;
    const Table t{numbers_of(values[head->output]), head->grid.positions, head->attributes,
                  head->attributes_first};
    if (t.numbers.size() != t.positions * t.attributes) return std::nullopt;
    const std::string_view activation =
        vision::activation_of_table(request, request.outputs[head->output]);
    // In units of the picture where the last cell of each level has its box in the first corner.
    bool units = true;
    for (size_t i = 0; i < head->grid.levels.size(); ++i) {
        const auto& levels = head->grid.levels;
        const size_t last = (i + 1 < levels.size() ? levels[i + 1].first : t.positions) - 1;
        units &= std::abs(t.at(last, 0)) <= 2 && std::abs(t.at(last, 1)) <= 2 &&
                 t.at(last, 2) > 0 && t.at(last, 2) <= 2 && t.at(last, 3) > 0 && t.at(last, 3) <= 2;
    }
    const double x = units ? request.width : 1, y = units ? request.height : 1;
    Candidates found;
    for (size_t p = 0; p < t.positions; ++p) {
        const int best = t.best(p, form.box_attributes);
        const double object = objectness ? activated(t.at(p, 4), activation) : 1;
        const double score =
            object *
            activated(t.at(p, form.box_attributes + static_cast<size_t>(best)), activation);
        if (!(score >= threshold)) continue;
        found.add(family == "yolox" ? yolox_box(t, head->grid, p, score, best)
                                    : centred(t.at(p, 0) * x, t.at(p, 1) * y, t.at(p, 2) * x,
                                              t.at(p, 3) * y, score, best, p));
    }
    return found;
}

// Scores [1,N,2] of background and face, corners [1,N,4] in 0 to 1.
std::optional<Candidates> ultraface(const HeadRequest& request,
                                    const std::vector<TensorData>& values, float threshold) {
    std::optional<Table> scores, corners;
    // Boxes relative to priors have no formula here: a role says so, or a product that makes them.
    // Nor have others than the published ones.
    const ModelInfo& info = request.info;
    if (vision::output_with_role(request, "offsets") || !info.box_order.empty() ||
        !info.box_unit.empty())
        return std::nullopt;
    for (size_t i = 0; i < request.outputs.size(); ++i) {
        const auto& shape = request.outputs[i].cpu.shape;
        if (shape.size() != 3) return std::nullopt;
        Table table{numbers_of(values[i]), shape[1], shape[2], false};
        if (shape[2] == 2)
            scores = std::move(table);
        else if (shape[2] == 4 && vision::ends_in(request, request.outputs[i]) != "product")
            corners = std::move(table);
    }
    if (!scores || !corners || scores->positions != corners->positions) return std::nullopt;
    Candidates found;
    for (size_t p = 0; p < scores->positions; ++p) {
        if (!(scores->at(p, 1) >= threshold)) continue;
        found.add({static_cast<float>(corners->at(p, 0) * request.width),
                   static_cast<float>(corners->at(p, 1) * request.height),
                   static_cast<float>(corners->at(p, 2) * request.width),
                   static_cast<float>(corners->at(p, 3) * request.height),
                   static_cast<float>(scores->at(p, 1)), 0, static_cast<uint32_t>(p)});
    }
    return found;
}

template <typename Box>
double iou_of(const Box& a, const Box& b) {
    const double w = std::min<double>(a.x1, b.x1) - std::max<double>(a.x0, b.x0);
    const double h = std::min<double>(a.y1, b.y1) - std::max<double>(a.y0, b.y0);
    if (!(w > 0) || !(h > 0)) return 0;
    const auto area = [](const Box& box) {
        return (double{box.x1} - box.x0) * (double{box.y1} - box.y0);
    };
    return w * h / (area(a) + area(b) - w * h);
}

// Turned boxes: corners in order, and what two of them share.
using Polygon = std::vector<std::pair<double, double>>;

template <typename Box>
Polygon polygon_of(const Box& box) {
    const double x = (double{box.x0} + box.x1) / 2, y = (double{box.y0} + box.y1) / 2;
    const double w = (double{box.x1} - box.x0) / 2, h = (double{box.y1} - box.y0) / 2;
    const double c = std::cos(double{box.angle}), s = std::sin(double{box.angle});
    Polygon corners;
    for (const auto& [dx, dy] : {std::pair{-w, -h}, {w, -h}, {w, h}, {-w, h}})
        corners.emplace_back(x + dx * c - dy * s, y + dx * s + dy * c);
    return corners;
}

double area_of(const Polygon& p) {
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) {
        const auto& [x0, y0] = p[i];
        const auto& [x1, y1] = p[(i + 1) % p.size()];
        sum += x0 * y1 - x1 * y0;
    }
    return std::abs(sum) / 2;
}

// The part of `p` inside of a convex polygon, side by side of it.
Polygon cut(Polygon p, const Polygon& convex) {
    for (size_t i = 0; i < convex.size(); ++i) {
        const auto& [ax, ay] = convex[i];
        const auto& [bx, by] = convex[(i + 1) % convex.size()];
        const auto inside = [&](const auto& q) {
            return (bx - ax) * (q.second - ay) - (by - ay) * (q.first - ax);
        };
        Polygon left;
        for (size_t k = 0; k < p.size(); ++k) {
            const auto &from = p[k], &to = p[(k + 1) % p.size()];
            const double d0 = inside(from), d1 = inside(to);
            if (d0 >= 0) left.push_back(from);
            if ((d0 >= 0) != (d1 >= 0)) {
                const double t = d0 / (d0 - d1);
                left.emplace_back(from.first + t * (to.first - from.first),
                                  from.second + t * (to.second - from.second));
            }
        }
        p = std::move(left);
    }
    return p;
}

template <typename Box>
double overlap_of(const Box& a, const Box& b) {
    if (a.angle == 0 && b.angle == 0) return iou_of(a, b);
    const Polygon first = polygon_of(a), second = polygon_of(b);
    const double both = area_of(cut(first, second));
    const double all = area_of(first) + area_of(second) - both;
    return all > 0 ? both / all : 0;
}

// Of points seen along a direction: from the first to the last.
double extent(const Polygon& points, double dx, double dy) {
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (const auto& [x, y] : points) {
        least = std::min(least, x * dx + y * dy);
        most = std::max(most, x * dx + y * dy);
    }
    return most - least;
}

// A turned box in the frame, not cut: a part of it would be no rectangle. Of the two rectangles
// around what it became that keep the direction of a side, the smaller one.
std::optional<Detection> map_turned(const Candidate& box, const Frame& frame) {
    const Affine& m = frame.to_frame;
    Polygon corners = polygon_of(box);
    for (auto& [x, y] : corners) {
        const double u = x, v = y;
        x = m.a * u + m.b * v + m.c, y = m.d * u + m.e * v + m.f;
    }
    struct Around {
        double width, height, angle;
    };
    std::optional<Around> best;
    for (const bool by_width : {true, false}) {
        const auto &from = corners[by_width ? 0 : 1], &to = corners[by_width ? 1 : 2];
        double dx = to.first - from.first, dy = to.second - from.second;
        const double side = std::hypot(dx, dy);
        if (!(side > 0)) return std::nullopt;
        dx /= side, dy /= side;
        if (!by_width) {  // from the direction of the height to that of the width
            std::swap(dx, dy);
            dy = -dy;
            const double forward = (corners[1].first - corners[0].first) * dx +
                                   (corners[1].second - corners[0].second) * dy;
            if (forward < 0) dx = -dx, dy = -dy;
        }
        const Around a{extent(corners, dx, dy), extent(corners, -dy, dx), std::atan2(dy, dx)};
        if (!best || a.width * a.height < best->width * best->height) best = a;
    }
    const double x = (corners[0].first + corners[2].first) / 2,
                 y = (corners[0].second + corners[2].second) / 2;
    Detection d{static_cast<float>(x - best->width / 2),
                static_cast<float>(y - best->height / 2),
                static_cast<float>(x + best->width / 2),
                static_cast<float>(y + best->height / 2),
                box.score,
                box.class_id};
    d.angle = static_cast<float>(best->angle);
    const double w = frame.width, h = frame.height;
    if (!(area_of(cut(polygon_of(d), {{0, 0}, {w, 0}, {w, h}, {0, h}})) > 0)) return std::nullopt;
    return d;
}

}  // namespace

std::optional<Candidates> plain_candidates(std::string_view family, const HeadRequest& request,
                                           const std::vector<TensorData>& values, float threshold) {
    if (values.size() != request.outputs.size()) return std::nullopt;
    if (family == "yolox" || family == "yolo-v5" || family == "yolo-v8")
        return yolo(family, request, values, threshold);
    if (family == "ultraface") return ultraface(request, values, threshold);
    return std::nullopt;
}

double plain_iou(const Candidate& a, const Candidate& b) {
    return overlap_of(a, b);
}
double plain_iou(const Detection& a, const Detection& b) {
    return overlap_of(a, b);
}

std::vector<Candidate> plain_means(std::vector<Candidate> boxes, double iou) {
    std::vector<Candidate> means;
    while (!boxes.empty()) {
        const Candidate best = boxes.front();
        double sum[4] = {0, 0, 0, 0}, weights = 0;
        std::vector<Candidate> rest;
        for (size_t i = 0; i < boxes.size(); ++i) {
            const Candidate& box = boxes[i];
            if (i > 0 && (box.class_id != best.class_id || plain_iou(best, box) <= iou)) {
                rest.push_back(box);
                continue;
            }
            const double corners[] = {box.x0, box.y0, box.x1, box.y1};
            for (size_t k = 0; k < 4; ++k) sum[k] += corners[k] * box.score;
            weights += box.score;
        }
        Candidate mean = best;
        if (weights > 0) {
            mean.x0 = static_cast<float>(sum[0] / weights);
            mean.y0 = static_cast<float>(sum[1] / weights);
            mean.x1 = static_cast<float>(sum[2] / weights);
            mean.y1 = static_cast<float>(sum[3] / weights);
        }
        means.push_back(mean);
        boxes = std::move(rest);
    }
    return means;
}

std::optional<Detection> plain_map(const Candidate& box, const Frame& frame) {
    if (box.angle != 0) return map_turned(box, frame);
    const Affine& m = frame.to_frame;
    double x0 = HUGE_VAL, y0 = HUGE_VAL, x1 = -HUGE_VAL, y1 = -HUGE_VAL;
    for (const double u : {box.x0, box.x1})
        for (const double v : {box.y0, box.y1}) {
            const double x = m.a * u + m.b * v + m.c, y = m.d * u + m.e * v + m.f;
            x0 = std::min(x0, x), x1 = std::max(x1, x);
            y0 = std::min(y0, y), y1 = std::max(y1, y);
        }
    const auto cut = [](double value, uint32_t most) {
        return static_cast<float>(std::min(std::max(value, 0.0), static_cast<double>(most)));
    };
    const Detection d{cut(x0, frame.width),
                      cut(y0, frame.height),
                      cut(x1, frame.width),
                      cut(y1, frame.height),
                      box.score,
                      box.class_id};
    if (!(d.x0 < d.x1) || !(d.y0 < d.y1)) return std::nullopt;
    return d;
}

}  // namespace vartml::verify
