// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/cells.h"

namespace vartml::vision {

namespace {

bool is_dense(const TensorView& view, const TensorView& cpu) {
    return view.data_type == DataType::float32 && view.shape == cpu.shape &&
           view.order == cpu.order && view.size_bytes == cpu.size_bytes;
}

}  // namespace

Result<Matrix> Cells::read(const OutputTensor& tensor) {
    const TensorView& cpu = *tensor.cpu;
    const size_t rank = cpu.shape.size();
    if (rank != 4 && rank != 5) return table_matrix(tensor);
    const void* data = tensor.data;
    if (!is_dense(*tensor.view, cpu)) {
        if (auto stored = stored_of(tensor); !stored) return std::move(stored).error();
        const TensorView to = make_view(DataType::float32, cpu.layout, cpu.shape, cpu.order);
        auto conversion = Conversion::create(*tensor.view, to);
        if (!conversion) return std::move(conversion).error();
        copy_.resize(cpu.size);
        conversion->run(tensor.data, copy_.data());
        data = copy_.data();
    }
    const size_t cells = size_t{cpu.shape[2]} * cpu.shape[3];
    Matrix matrix{static_cast<const uint8_t*>(data), {}, 0, 0, 0, 0};
    if (rank == 4) {
        matrix.rows = cells;
        matrix.columns = cpu.shape[1];
        matrix.row_stride = sizeof(float);
        matrix.column_stride = cells * sizeof(float);
    } else {
        matrix.rows = size_t{cpu.shape[1]} * cpu.shape[2] * cpu.shape[3];
        matrix.columns = cpu.shape[4];
        matrix.row_stride = matrix.columns * sizeof(float);
        matrix.column_stride = sizeof(float);
    }
    return matrix;
}

}  // namespace vartml::vision
