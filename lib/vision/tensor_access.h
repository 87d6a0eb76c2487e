// SPDX-License-Identifier: Apache-2.0
// Output tensors as rows and columns of stored values, whatever view they come in.
#pragma once
#include <vartml/postprocess.h>

#include "kernels/postprocess/scores.h"

namespace vartml::vision {

// A tensor of CPU shape [1, rows, columns] where its bytes lie. Strides in bytes.
struct Matrix {
    const uint8_t* data = nullptr;
    kernels::Stored stored;
    size_t rows = 0, columns = 0;
    size_t row_stride = 0, column_stride = 0;

    const uint8_t* at(size_t row, size_t column) const {
        return data + row * row_stride + column * column_stride;
    }
    float value(size_t row, size_t column) const { return kernels::load(stored, at(row, column)); }
};

// Rows are positions, columns attributes: the matrix, or its transpose.
Matrix transposed(const Matrix& matrix);

// Scores of `classes` columns from `first_column` on; positions are the rows.
kernels::Scores scores_of(const Matrix& matrix, size_t first_column, size_t classes);

// How a view stores its values. Errors: unsupported (a type that heads do not have), bad_model
// (scale).
Result<kernels::Stored> stored_of(const OutputTensor& tensor);

// A tensor with the CPU shape [1, rows, columns]. Errors: those of stored_of; bad_model for another
// rank, or a view that does not fit its CPU view.
Result<Matrix> matrix_of(const OutputTensor& tensor);

// The same, also for a tensor without batch: [rows, columns].
Result<Matrix> table_matrix(const OutputTensor& tensor);

// A tensor of one value per class: CPU shape [1, C] or [1, C, 1, 1]; a matrix of one row.
Result<Matrix> vector_of(const OutputTensor& tensor);

// The first elements of a dense tensor, of any type, in order; what is no number of 64 bits gives
// NaN.
double element(const OutputTensor& tensor, size_t index);

// Whether numbers of a type are whole ones (booleans too).
bool is_integer(DataType type);

// Whether the values of an output are whole numbers, and no codes of reals.
inline bool is_whole(const TensorInfo& output) {
    return is_integer(output.cpu.data_type) && !output.cpu.quantisation;
}

// Whether a CPU shape is one of vector_of.
bool is_class_vector(std::span<const uint32_t> shape);

// "[1,84,8400]"
std::string shape_text(std::span<const uint32_t> shape);

}  // namespace vartml::vision
