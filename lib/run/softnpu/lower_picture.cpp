// SPDX-License-Identifier: Apache-2.0
// The embedded pre-process: bytes of a picture to channels-last numbers, by a table of 256 per
// channel.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/ops/elementwise.h"
#include "kernels/ops/rows.h"
#include "lib/graph/ops_picture.h"
#include "lib/graph/resize_position.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {

namespace {

using kernels::bf16;

// The picture as the program reads it, and its numbers; both with rows of whole pixels.
struct Rows {
    View src, dst;  // logical [1, H, W, B] and [1, H, W, C]
};

template <typename T>
class PictureInputStep final : public Step {
public:
    PictureInputStep(Rows rows, std::vector<T> table)
        : rows_(std::move(rows)), table_(std::move(table)) {}

    Extent extent() const override { return {rows_.dst.dims[1], rows_.dst.elements()}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const auto width = static_cast<size_t>(rows_.dst.dims[2]);
        const auto channels = static_cast<size_t>(rows_.dst.dims[3]);
        const auto bytes = static_cast<size_t>(rows_.src.strides[2]);
        const auto* src = reinterpret_cast<const uint8_t*>(address(bases, rows_.src));
        auto* dst = reinterpret_cast<T*>(address(bases, rows_.dst));
        for (int64_t y = first; y < last; ++y) {
            const uint8_t* in = src + y * rows_.src.strides[1];
            T* out = dst + y * rows_.dst.strides[1];
            for (size_t x = 0; x < width; ++x, in += bytes, out += channels)
                for (size_t c = 0; c < channels; ++c) out[c] = table_[c * 256 + in[c]];
        }
    }

    std::string describe() const override {
        return "PictureInput table " + text(rows_.src) + " -> " + text(rows_.dst);
    }

private:
    const Rows rows_;
    const std::vector<T> table_;
};

std::vector<bf16> rounded(const std::vector<float>& table) {
    std::vector<bf16> result(table.size());
    kernels::convert_row(table.data(), result.data(), table.size());
    return result;
}

}  // namespace

Result<void> lower_picture_input(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const bool last = node.get("layout", "NCHW") == "NHWC";
    const View src = lowering.dense(node.inputs[0], row_major(4), DataType::uint8);
    const View dst = lowering.destination(out, last ? row_major(4) : channels_last(4), false);
    const Rows rows{src, last ? dst : transpose(dst, {0, 2, 3, 1})};
    const std::vector<float> table = cpu::picture_table(node);
    if (dst.type == DataType::bf16)
        lowering.emit(std::make_unique<PictureInputStep<bf16>>(rows, rounded(table)), node.name,
                      {&src, &dst});
    else if (dst.type == DataType::float32)
        lowering.emit(std::make_unique<PictureInputStep<float>>(rows, table), node.name,
                      {&src, &dst});
    else
        return lower_general(lowering, node);
    lowering.finish(out, dst);
    return {};
}

// Resize of pictures: nearest and linear, channels-last.
namespace {

// For each output position of one axis: two source positions and the weight of the second.
struct AxisTable {
    std::vector<int64_t> first, second;
    std::vector<float> weight;
};

AxisTable make_table(const graph::Node& node, float rounded, int64_t in, int64_t out, bool linear) {
    const graph::ResizeAxis axis = graph::resize_axis(in, out, &rounded);
    const auto mode = node.get("coordinate_transformation_mode", "half_pixel");
    const auto rounding = node.get("nearest_mode", "round_prefer_floor");
    AxisTable table;
    for (int64_t i = 0; i < out; ++i) {
        // An axis that stays as it is is not looked at, as on the CPU.
        const double x = in == out && axis.scale == 1
                             ? static_cast<double>(i)
                             : graph::resize_position(mode, axis, i, !linear);
        const auto at =
            static_cast<int64_t>(linear ? std::floor(x) : graph::nearest_position(rounding, x));
        table.first.push_back(std::clamp<int64_t>(at, 0, in - 1));
        table.second.push_back(std::clamp<int64_t>(at + 1, 0, in - 1));
        table.weight.push_back(linear ? static_cast<float>(x - std::floor(x)) : 0);
    }
    return table;
}

// Both views [N, C, H, W] with channels contiguous.
class NearestStep final : public Step {
public:
    NearestStep(View src, View dst, AxisTable rows, AxisTable columns)
        : src_(std::move(src)),
          dst_(std::move(dst)),
          rows_(std::move(rows)),
          columns_(std::move(columns)) {}

    Extent extent() const override { return {dst_.dims[0] * dst_.dims[2], dst_.elements() / 2}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto width = static_cast<int64_t>(size_bytes(src_.type));
        const std::byte* src = address(bases, src_);
        std::byte* dst = address(bases, dst_);
        const int64_t height = dst_.dims[2];
        const auto pixel = static_cast<size_t>(dst_.dims[1] * width);
        const auto [first, last] = part(item);
        for (int64_t i = first; i < last; ++i) {
            const int64_t n = i / height, y = i % height;
            const std::byte* from =
                src + (n * src_.strides[0] + rows_.first[y] * src_.strides[2]) * width;
            std::byte* to = dst + (n * dst_.strides[0] + y * dst_.strides[2]) * width;
            for (int64_t x = 0; x < dst_.dims[3]; ++x, to += dst_.strides[3] * width) {
                std::memcpy(to, from + columns_.first[x] * src_.strides[3] * width, pixel);
            }
        }
    }

    std::string describe() const override {
        return "resize nearest " + text(src_) + " -> " + text(dst_);
    }

private:
    View src_, dst_;
    AxisTable rows_, columns_;
};

// Both views [N, C, H, W], dense, channels last, fp32. The vertical blend is made once per output
// row.
class LinearStep final : public Step {
public:
    LinearStep(View src, View dst, AxisTable rows, AxisTable columns)
        : src_(std::move(src)),
          dst_(std::move(dst)),
          rows_(std::move(rows)),
          columns_(std::move(columns)),
          row_size_(src_.dims[1] * src_.dims[3]) {}

    void share_among(unsigned threads) override {
        Step::share_among(threads);
        blended_.resize(static_cast<size_t>(row_size_) * items());
    }
    Extent extent() const override { return {dst_.dims[0] * dst_.dims[2], dst_.elements() * 2}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* src = reinterpret_cast<const float*>(address(bases, src_));
        auto* dst = reinterpret_cast<float*>(address(bases, dst_));
        const int64_t height = dst_.dims[2];
        const auto [first, last] = part(item);
        float* const row = blended_.data() + static_cast<int64_t>(item) * row_size_;
        for (int64_t i = first; i < last; ++i) {
            const int64_t y = i % height;
            const float* picture = src + i / height * src_.strides[0];
            const float w = rows_.weight[y];
            kernels::blend_row(picture + rows_.first[y] * row_size_, 1 - w,
                               picture + rows_.second[y] * row_size_, w, row,
                               static_cast<size_t>(row_size_));
            kernels::blend_pixels(row, columns_.first.data(), columns_.second.data(),
                                  columns_.weight.data(), static_cast<size_t>(dst_.dims[1]),
                                  dst + i * dst_.dims[1] * dst_.dims[3],
                                  static_cast<size_t>(dst_.dims[3]));
        }
    }

    std::shared_ptr<Step> for_another_run(RunState&) const override {
        return std::make_shared<LinearStep>(*this);
    }

    std::string describe() const override {
        return "resize linear " + text(src_) + " -> " + text(dst_);
    }

private:
    View src_, dst_;
    AxisTable rows_, columns_;
    int64_t row_size_;
    std::vector<float> blended_;
};

Error not_here(const graph::Node& node, const std::string& what) {
    return {ErrorCode::unsupported,
            "node '" + node.name + "': the software NPU does not run Resize " + what};
}

}  // namespace

Result<void> lower_resize(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const auto mode = node.get("mode", "nearest");
    const Dims from = lowering.value(node.inputs[0]).type.shape;
    const Dims& to = lowering.value(out).type.shape;
    const auto scales = node.get("scales", std::vector<float>{});
    const auto coordinates = node.get("coordinate_transformation_mode", "half_pixel");
    if (mode == "cubic") return not_here(node, "in cubic mode");
    if (coordinates == "tf_crop_and_resize") return not_here(node, "with tf_crop_and_resize");
    if (node.get("antialias", int64_t{0}) != 0) return not_here(node, "with antialias");
    if (from.size() != 4 || from[0] != to[0] || from[1] != to[1]) {
        return not_here(node, "other than along height and width of [N, C, H, W]");
    }
    const bool linear = mode == "linear";
    AxisTable rows = make_table(node, scales[2], from[2], to[2], linear);
    AxisTable columns = make_table(node, scales[3], from[3], to[3], linear);
    const Order order = channels_last(4);
    if (!linear) {
        View src = lowering.view(node.inputs[0]);
        const DataType type = lowering.stored_type(out);
        const bool contiguous = src.strides[1] == 1 || src.dims[1] == 1;
        if (!contiguous || src.type != type) src = lowering.dense(node.inputs[0], order, type);
        View dst = lowering.destination(out, order, true);
        const bool direct = dst.type == type && (dst.strides[1] == 1 || dst.dims[1] == 1);
        if (!direct) dst = lowering.new_buffer(type, to, order);
        lowering.emit(std::make_unique<NearestStep>(src, dst, std::move(rows), std::move(columns)),
                      node.name, {&src, &dst});
        lowering.finish(out, dst);
        return {};
    }
    const View src = lowering.dense(node.inputs[0], order, DataType::float32);
    const View dst = lowering.new_buffer(DataType::float32, to, order);
    lowering.emit(std::make_unique<LinearStep>(src, dst, std::move(rows), std::move(columns)),
                  node.name, {&src, &dst});
    lowering.finish(out, dst);
    return {};
}

}  // namespace vartml::softnpu
