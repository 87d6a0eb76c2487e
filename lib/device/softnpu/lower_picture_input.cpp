// SPDX-License-Identifier: Apache-2.0
// The embedded pre-process: bytes of a picture to channels-last numbers, by a table of 256 per
// channel.
#include <algorithm>
#include <array>

#include "kernels/ops/rows.h"
#include "lib/cpu/picture_input.h"
#include "lib/device/softnpu/copy_step.h"
#include "lib/device/softnpu/operators.h"

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

}  // namespace vartml::softnpu
