// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/cells.h"

namespace vartml::vision {

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
