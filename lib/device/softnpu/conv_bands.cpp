// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/conv_bands.h"

#include <algorithm>

namespace vartml::softnpu {
namespace {

// `p` for a band of the output: the rows of the input that it needs, and the padding that is left.
// `first`…`last` are the input rows that the band reaches for, outside the picture too.
Convolution band_of(const Convolution& p, const Band& band, int64_t first, int64_t last) {
    Convolution part = p;
    part.dst = cut(p.dst, band);
    part.src = cut(p.src, 0, band.images);
    const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, p.src.dims[2] - 1);
    part.src = slice(part.src, 2, from, to - from + 1, 1);
    for (PostOp& op : part.post) {
        if (op.operand.buffer >= 0) op.operand = cut(op.operand, band);
    }
    return part;
}

}  // namespace

Dims grouped(const Dims& dims, int64_t groups) {
    Dims result{groups, dims[0] / groups};
    result.insert(result.end(), dims.begin() + 1, dims.end());
    return result;
}

int64_t cost_ns(const Convolution& p, int64_t positions) {
    const int64_t groups = p.weights.dims.size() > p.dst.dims.size() ? p.weights.dims[0] : 1;
    return p.weights.elements() * positions / groups / 40 + p.dst.elements() / 4;
}

// Convolution: output row y reads input rows y·stride - pad + [0, reach).
Convolution forward_band(const Convolution& p, const Band& band) {
    const int64_t stride = p.strides[0],
                  kernel = p.weights.dims[p.weights.dims.size() - p.strides.size()];
    const int64_t reach = (kernel - 1) * (p.dilations[0] + 1) + 1;
    const int64_t first = band.rows.first * stride - p.pads_begin[0];
    const int64_t last =
        (band.rows.first + band.rows.size - 1) * stride - p.pads_begin[0] + reach - 1;
    Convolution part = band_of(p, band, first, last);
    part.pads_begin[0] = std::max<int64_t>(-first, 0);
    part.pads_end[0] = std::max<int64_t>(last - (p.src.dims[2] - 1), 0);
    return part;
}

// Transposed convolution: input row i reaches output rows i·stride - pad + [0, reach); what falls
// outside the band is cropped as padding is.
Convolution transposed_band(const Convolution& p, const Band& band) {
    const int64_t stride = p.strides[0],
                  kernel = p.weights.dims[p.weights.dims.size() - p.strides.size()];
    const int64_t reach = (kernel - 1) * (p.dilations[0] + 1) + 1;
    const int64_t low = band.rows.first + p.pads_begin[0] - (reach - 1);
    const int64_t first = low <= 0 ? 0 : (low + stride - 1) / stride;
    const int64_t last = (band.rows.first + band.rows.size - 1 + p.pads_begin[0]) / stride;
    Convolution part = band_of(p, band, first, last);
    part.pads_begin[0] = p.pads_begin[0] + band.rows.first - first * stride;
    part.pads_end[0] =
        (part.src.dims[2] - 1) * stride + reach - part.dst.dims[2] - part.pads_begin[0];
    return part;
}

bool reads_rows(const std::vector<Convolution>& parts) {
    return std::ranges::all_of(parts, [](const Convolution& p) { return p.src.dims[2] > 0; });
}

}  // namespace vartml::softnpu
