// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/maps.h"

#include <algorithm>
#include <cstdlib>

namespace vartml::vision {
namespace {

bool is_over(const HeadRequest& request, uint32_t height, uint32_t width) {
    if (height < 2 || width < 2 || height > request.height || width > request.width) return false;
    const int64_t difference = int64_t{height} * request.width - int64_t{width} * request.height;
    return std::abs(difference) <= std::max(request.width, request.height);
}

bool is_dense(const TensorView& view, const TensorView& cpu) {
    const bool in_order = view.order.empty() || std::ranges::is_sorted(view.order);
    return in_order && view.shape == cpu.shape && view.size == cpu.size;
}

}  // namespace

std::optional<MapForm> map_form(const HeadRequest& request, const TensorInfo& output) {
    const auto& s = output.cpu.shape;
    const auto index = static_cast<size_t>(&output - request.outputs.data());
    const auto channels_first = [&](uint32_t c, uint32_t h, uint32_t w) {
        return MapForm{index, c, h, w, size_t{h} * w, w, 1};
    };
    if (s.size() == 2 && is_over(request, s[0], s[1])) return channels_first(1, s[0], s[1]);
    if (s.size() < 3 || s.size() > 4 || s[0] != 1) return std::nullopt;
    if (s.size() == 3) {
        if (is_over(request, s[1], s[2])) return channels_first(1, s[1], s[2]);
        return std::nullopt;
    }
    if (is_over(request, s[2], s[3])) return channels_first(s[1], s[2], s[3]);
    if (!is_over(request, s[1], s[2])) return std::nullopt;
    return MapForm{index, s[3], s[1], s[2], 1, size_t{s[2]} * s[3], s[3]};
}

Result<const float*> FloatView::read(const OutputTensor& tensor) {
    const TensorView &view = *tensor.view, &cpu = *tensor.cpu;
    const bool aligned = reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) == 0;
    if (view.data_type == DataType::float32 && is_dense(view, cpu) && aligned) {
        return static_cast<const float*>(tensor.data);
    }
    values_.resize(cpu.size);
    const bool in_order = is_dense(view, cpu);
    const bool as_floats = stored_of(tensor).has_value();
    if (as_floats || !in_order) {
        if (!conversion_ || from_ != view) {
            const TensorView to = make_view(as_floats ? DataType::float32 : view.data_type,
                                            cpu.layout, cpu.shape, cpu.order);
            auto made = Conversion::create(view, to);
            if (!made) return std::move(made).error();
            conversion_.emplace(std::move(*made));
            from_ = view;
        }
        if (as_floats) {
            conversion_->run(tensor.data, values_.data());
            return values_.data();
        }
        in_order_.resize(cpu.size * size_bytes(view.data_type));
        conversion_->run(tensor.data, in_order_.data());
    }
    // Integers of 32 and 64 bits.
    OutputTensor ordered = tensor;
    if (!in_order) ordered.data = in_order_.data();
    const Quantisation codes = view.quantisation.value_or(Quantisation{});
    for (size_t i = 0; i < values_.size(); ++i)
        values_[i] = static_cast<float>((element(ordered, i) - codes.zero_point) * codes.scale);
    return values_.data();
}

Result<Matrix> Cells::read(const OutputTensor& tensor) {
    const auto& shape = tensor.cpu->shape;
    if (shape.size() != 4 && shape.size() != 5) return table_matrix(tensor);
    auto floats = floats_.read(tensor);
    if (!floats) return std::move(floats).error();
    Matrix matrix;
    matrix.data = reinterpret_cast<const uint8_t*>(*floats);
    if (shape.size() == 4) {
        const size_t cells = size_t{shape[2]} * shape[3];
        matrix.rows = cells;
        matrix.columns = shape[1];
        matrix.row_stride = sizeof(float);
        matrix.column_stride = cells * sizeof(float);
    } else {
        matrix.rows = size_t{shape[1]} * shape[2] * shape[3];
        matrix.columns = shape[4];
        matrix.row_stride = matrix.columns * sizeof(float);
        matrix.column_stride = sizeof(float);
    }
    return matrix;
}

}  // namespace vartml::vision
