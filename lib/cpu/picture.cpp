// SPDX-License-Identifier: Apache-2.0
// Col2Im: blocks of columns added up where they overlap in the picture.
#include <algorithm>
#include <cstdint>

#include "lib/cpu/kernel.h"
#include "lib/cpu/moves.h"

namespace vartml::cpu {

namespace {

using Ints = std::vector<int64_t>;

// The picture and the blocks that are laid on it.
struct Blocks {
    Shape image, block, count;  // sizes per axis; count: positions of the block
    Ints strides, dilations, pads;
};

// Numbers so large that their products could leave 64 bits are no picture.
bool all_within(const Ints& numbers, int64_t low) {
    for (const int64_t n : numbers) {
        if (n < low || n > INT32_MAX) return false;
    }
    return true;
}

Result<Blocks> read_blocks(const Call& call) {
    const Array& x = call.inputs[0];
    const Ints image = read_numbers<int64_t>(call.inputs[1]);
    const Ints block = read_numbers<int64_t>(call.inputs[2]);
    const size_t rank = image.size();
    Blocks blocks{Shape(image),
                  Shape(block),
                  Shape(image),
                  call.node.get("strides", Ints(rank, 1)),
                  call.node.get("dilations", Ints(rank, 1)),
                  call.node.get("pads", Ints(2 * rank, 0))};
    bool fits = rank <= max_rank - 2 && block.size() == rank && blocks.strides.size() == rank &&
                blocks.dilations.size() == rank && blocks.pads.size() == 2 * rank &&
                all_within(image, 0) && all_within(block, 1) && all_within(blocks.strides, 1) &&
                all_within(blocks.dilations, 1) && all_within(blocks.pads, 0) &&
                x.shape.size() == 3;
    int64_t positions = 1;
    for (size_t i = 0; i < rank && fits; ++i) {
        const int64_t room = image[i] + blocks.pads[i] + blocks.pads[rank + i] -
                             blocks.dilations[i] * (block[i] - 1) - 1;
        blocks.count[i] = room < 0 ? 0 : room / blocks.strides[i] + 1;
        fits = !__builtin_mul_overflow(positions, blocks.count[i], &positions);
    }
    if (!fits || positions != x.shape[2])
        return bad_data(call, "has columns that do not fit its picture and blocks");
    return blocks;
}

// Adds one row of columns, one element of the block at all its positions, to the picture.
template <typename T, typename Sum>
void add_row(const T* src, const Blocks& blocks, const Strides& strides, const Walk<1>& in_block,
             Sum* image) {
    Walk<1> position(blocks.count, {});
    const int64_t positions = blocks.count.elements();
    for (int64_t i = 0; i < positions; ++i, position.next()) {
        int64_t at = 0;
        for (size_t axis = 0; axis < blocks.image.size() && at >= 0; ++axis) {
            const int64_t index = position.index(axis) * blocks.strides[axis] +
                                  in_block.index(axis) * blocks.dilations[axis] - blocks.pads[axis];
            const bool inside = index >= 0 && index < blocks.image[axis];
            at = inside ? at + index * strides[axis] : -1;
        }
        if (at >= 0) image[at] += static_cast<Sum>(number(src[i]));
    }
}

template <typename T>
void add_blocks(const Call& call, const Blocks& blocks) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    // Integers wrap; floats are rounded once.
    using Sum = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, graph::Bool>,
                                   uint64_t, double>;
    const int64_t planes = y.shape[0] * y.shape[1], pixels = blocks.image.elements();
    const int64_t rows = blocks.block.elements(), columns = x.shape[2];
    const Strides strides = strides_of(blocks.image);
    std::vector<Sum> image(static_cast<size_t>(pixels));
    const T* src = x.as<T>();
    T* dst = y.as<T>();
    for (int64_t plane = 0; plane < planes; ++plane) {
        std::ranges::fill(image, Sum(0));
        Walk<1> in_block(blocks.block, {});
        for (int64_t row = 0; row < rows; ++row, src += columns, in_block.next())
            add_row(src, blocks, strides, in_block, image.data());
        for (const Sum sum : image) *dst++ = graph::convert<T>(sum);
    }
}

Result<void> col2im(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto blocks = read_blocks(call);
    if (!blocks) return blocks.error();
    if (y.elements() == 0) return {};
    if (x.elements() != y.shape[0] * y.shape[1] * blocks->block.elements() * x.shape[2])
        return bad_data(call, "has columns that do not fill its blocks");
    const bool known =
        graph::with_type(x.type, [&]<typename T>(T) { add_blocks<T>(call, *blocks); });
    return known ? Result<void>() : no_type(call, x.type);
}

constexpr KernelRow rows[] = {{"Col2Im", col2im}};

}  // namespace

std::span<const KernelRow> picture_kernels() {
    return rows;
}

}  // namespace vartml::cpu
