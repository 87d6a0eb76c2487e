// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/tensor_access.h"

#include <cmath>
#include <cstring>

namespace vartml::vision {

namespace {

Error bad_view(const OutputTensor& tensor, const std::string& what) {
    return {ErrorCode::bad_model, "tensor '" + std::string(tensor.name) + "' " + what};
}

std::optional<kernels::StoredType> stored_type(DataType type) {
    switch (type) {
        case DataType::float32:
            return kernels::StoredType::f32;
        case DataType::bf16:
            return kernels::StoredType::bf16;
        case DataType::fp16:
            return kernels::StoredType::f16;
        case DataType::int8:
            return kernels::StoredType::i8;
        case DataType::uint8:
            return kernels::StoredType::u8;
        case DataType::int16:
            return kernels::StoredType::i16;
        case DataType::uint16:
            return kernels::StoredType::u16;
        default:
            return std::nullopt;
    }
}

// Elements between neighbours along each CPU dimension of an unblocked view; empty when the view
// has another rank.
std::vector<size_t> cpu_strides(const TensorView& view, const TensorView& cpu) {
    const size_t rank = cpu.shape.size();
    if (view.shape.size() != rank) return {};
    std::vector<size_t> dense(rank, 1), strides(rank, 0);
    for (size_t i = rank; i-- > 1;) dense[i - 1] = dense[i] * view.shape[i];
    for (size_t i = 0; i < rank; ++i) {
        const size_t dimension = view.order.empty() ? i : view.order[i];
        if (dimension >= rank || view.shape[i] < cpu.shape[dimension]) return {};
        strides[dimension] = view.strides.size() == rank ? view.strides[i] : dense[i];
    }
    return strides;
}

}  // namespace

namespace {

template <typename T>
double read(const void* data, size_t index) {
    T value;
    std::memcpy(&value, static_cast<const uint8_t*>(data) + index * sizeof value, sizeof value);
    return static_cast<double>(value);
}

}  // namespace

double element(const OutputTensor& tensor, size_t index) {
    switch (tensor.view->data_type) {
        case DataType::boolean:
            return read<uint8_t>(tensor.data, index);
        case DataType::int32:
            return read<int32_t>(tensor.data, index);
        case DataType::uint32:
            return read<uint32_t>(tensor.data, index);
        case DataType::int64:
            return read<int64_t>(tensor.data, index);
        case DataType::uint64:
            return read<uint64_t>(tensor.data, index);
        case DataType::float64:
            return read<double>(tensor.data, index);
        default:
            break;
    }
    const auto stored = stored_of(tensor);
    if (!stored) return NAN;
    const auto* first = static_cast<const uint8_t*>(tensor.data);
    return kernels::load(*stored, first + index * kernels::size_bytes(stored->type));
}

std::string shape_text(std::span<const uint32_t> shape) {
    std::string text = "[";
    for (const uint32_t dimension : shape) {
        if (text.size() > 1) text += ',';
        text += std::to_string(dimension);
    }
    return text + "]";
}

Matrix transposed(const Matrix& m) {
    return {m.data, m.stored, m.columns, m.rows, m.column_stride, m.row_stride};
}

kernels::Scores scores_of(const Matrix& m, size_t first_column, size_t classes) {
    return {m.at(0, first_column), m.stored, m.rows, classes, m.row_stride, m.column_stride};
}

Result<kernels::Stored> stored_of(const OutputTensor& tensor) {
    const auto type = stored_type(tensor.view->data_type);
    if (!type) {
        return Error{ErrorCode::unsupported,
                     "tensor '" + std::string(tensor.name) + "' has type " +
                         std::string(to_string(tensor.view->data_type)) +
                         ", decoders read fp32, fp16, bf16 and integers of 8 and 16 bits"};
    }
    kernels::Stored stored{*type};
    if (const auto& quantisation = tensor.view->quantisation) {
        stored.scale = static_cast<float>(quantisation->scale);
        stored.zero_point = quantisation->zero_point;
        if (!(stored.scale > 0) || stored.scale > 1e30f) {
            return bad_view(tensor, "has the scale " + std::to_string(quantisation->scale) +
                                        ", expected a finite number above 0");
        }
    }
    return stored;
}

Result<Matrix> matrix_of(const OutputTensor& tensor) {
    const TensorView& cpu = *tensor.cpu;
    if (cpu.shape.size() != 3 || cpu.shape[0] != 1) {
        return bad_view(
            tensor, "has the shape " + shape_text(cpu.shape) + ", expected 3 dimensions, 1 first");
    }
    return table_matrix(tensor);
}

Result<Matrix> table_matrix(const OutputTensor& tensor) {
    const TensorView& cpu = *tensor.cpu;
    const size_t rank = cpu.shape.size();
    if (rank != 2 && (rank != 3 || cpu.shape[0] != 1)) {
        return bad_view(tensor, "has the shape " + shape_text(cpu.shape) +
                                    ", expected [1,rows,columns] or [rows,columns]");
    }
    auto stored = stored_of(tensor);
    if (!stored) return std::move(stored).error();
    const auto strides = cpu_strides(*tensor.view, cpu);
    if (strides.empty()) {
        return bad_view(tensor, "has a view of shape " + shape_text(tensor.view->shape) +
                                    " that does not fit its shape " + shape_text(cpu.shape));
    }
    const size_t size = kernels::size_bytes(stored->type);
    return Matrix{static_cast<const uint8_t*>(tensor.data),
                  *stored,
                  cpu.shape[rank - 2],
                  cpu.shape[rank - 1],
                  strides[rank - 2] * size,
                  strides[rank - 1] * size};
}

Result<Matrix> vector_of(const OutputTensor& tensor) {
    const auto& shape = tensor.cpu->shape;
    if (!is_class_vector(shape)) {
        return bad_view(tensor,
                        "has the shape " + shape_text(shape) + ", expected [1,C] or [1,C,1,1]");
    }
    auto stored = stored_of(tensor);
    if (!stored) return std::move(stored).error();
    // With one pixel, every layout keeps the channels side by side, blocks of channels included.
    const size_t size = kernels::size_bytes(stored->type);
    return Matrix{
        static_cast<const uint8_t*>(tensor.data), *stored, 1, shape[1], shape[1] * size, size};
}

bool is_integer(DataType type) {
    return type != DataType::float32 && type != DataType::bf16 && type != DataType::fp16 &&
           type != DataType::float64;
}

bool is_class_vector(std::span<const uint32_t> shape) {
    return (shape.size() == 2 || (shape.size() == 4 && shape[2] == 1 && shape[3] == 1)) &&
           shape[0] == 1;
}

}  // namespace vartml::vision
