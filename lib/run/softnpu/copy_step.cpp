// SPDX-License-Identifier: Apache-2.0
// Copies between views.
#include "lib/run/softnpu/copy_step.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "kernels/ops/rows.h"
#include "lib/run/softnpu/plan.h"

namespace vartml::softnpu {
namespace {

// Operand 0 is the destination, 1 the source.
template <typename Src, typename Dst>
void copy_block(const CopyLoops& loops, const Src* src, Dst* dst, int64_t first, int64_t last) {
    const auto [dst_row, src_row, unused] = loops.rows.strides;
    const auto [dst_column, src_column, unused2] = loops.columns.strides;
    const auto rows = static_cast<size_t>(last - first);
    const auto columns = static_cast<size_t>(loops.columns.size);
    src += first * src_row;
    dst += first * dst_row;
    if (columns == 1 || (src_column == 1 && dst_column == 1)) {
        kernels::copy_rows(src, src_row, dst, dst_row, rows, columns);
    } else if (dst_column == 1) {
        kernels::copy_tile(src, src_row, src_column, dst, dst_row, rows, columns);
    } else {
        for (size_t r = 0; r < rows; ++r, src += src_row, dst += dst_row) {
            kernels::copy_rows(src, src_column, dst, dst_column, columns, 1);
        }
    }
}

// Units of a copy: passes of the outer loops, rows where there are none.
using Part = std::pair<int64_t, int64_t>;
int64_t units(const CopyLoops& loops) {
    return loops.outer.empty() ? loops.rows.size : iterations(loops.outer);
}

Extent extent_of(const CopyLoops& loops) {
    const int64_t rows = loops.elements / std::max<int64_t>(loops.columns.size, 1);
    return {units(loops), std::max(loops.elements, rows * least_row_elements) / 2};
}

template <typename Src, typename Dst>
void copy_all(const CopyLoops& loops, const void* src_base, void* dst_base, const Part& part) {
    const auto* src = static_cast<const Src*>(src_base);
    auto* dst = static_cast<Dst*>(dst_base);
    if (loops.outer.empty()) {
        copy_block(loops, src, dst, part.first, part.second);
        return;
    }
    Odometer at(loops.outer, part.first);
    for (int64_t i = part.first; i < part.second; ++i, at.next()) {
        copy_block(loops, src + at.offsets()[1], dst + at.offsets()[0], 0, loops.rows.size);
    }
}

void copy_typed(const CopyLoops& loops, DataType from, const void* src, DataType to, void* dst,
                const Part& part) {
    if (from != to) {
        with_float(from, [&]<typename Src>(Src) {
            with_float(to, [&]<typename Dst>(Dst) {
                if constexpr (!std::is_same_v<Src, Dst>) copy_all<Src, Dst>(loops, src, dst, part);
            });
        });
        return;
    }
    switch (size_bytes(from)) {
        case 1:
            return copy_all<uint8_t, uint8_t>(loops, src, dst, part);
        case 2:
            return copy_all<uint16_t, uint16_t>(loops, src, dst, part);
        case 4:
            return copy_all<uint32_t, uint32_t>(loops, src, dst, part);
        default:
            return copy_all<uint64_t, uint64_t>(loops, src, dst, part);
    }
}

}  // namespace

bool can_copy(DataType from, DataType to) {
    return from == to || (is_float(from) && is_float(to));
}

std::string text(const View& view) {
    std::string s = std::string(to_string(view.type)) + "[";
    for (size_t i = 0; i < view.dims.size(); ++i) {
        s += (i ? "," : "") + std::to_string(view.dims[i]);
    }
    return s + "]";
}

namespace {

// One long row becomes several, so that threads can share it.
void split_columns(CopyLoops& loops) {
    constexpr int64_t least = 1024;
    const auto [dst, src, unused] = loops.columns.strides;
    for (const int64_t rows : {64, 32, 16, 8, 4, 2}) {
        if (loops.columns.size % rows != 0 || loops.columns.size / rows < least) continue;
        loops.columns.size /= rows;
        loops.rows = {rows, {dst * loops.columns.size, src * loops.columns.size}};
        return;
    }
    loops.rows = {};
}

}  // namespace

CopyLoops make_copy_loops(const View& dst, const View& src) {
    CopyLoops result;
    std::vector<Loop> loops = make_loops({&dst, &src});
    result.elements = iterations(loops);
    result.columns = take_loop(loops, loops.size() - 1);
    if (loops.empty()) {
        split_columns(result);
        return result;
    }
    size_t rows = loops.size() - 1;
    if (result.columns.strides[1] != 1) {
        // Columns jump in the source: rows that are contiguous in it use what a cache line brings.
        for (size_t i = 0; i < loops.size(); ++i) {
            if (loops[i].strides[1] == 1) rows = i;
        }
    }
    result.rows = take_loop(loops, rows);
    result.outer = std::move(loops);
    return result;
}

CopyStep::CopyStep(View src, View dst)
    : src_(std::move(src)), dst_(std::move(dst)), loops_(make_copy_loops(dst_, src_)) {
    assert(can_copy(src_.type, dst_.type));
}

Extent CopyStep::extent() const {
    return extent_of(loops_);
}

void CopyStep::run(const Bases& bases, size_t item) noexcept {
    copy_typed(loops_, src_.type, address(bases, src_), dst_.type, address(bases, dst_),
               part(item));
}

std::string CopyStep::describe() const {
    return "copy " + text(src_) + " -> " + text(dst_);
}

ZeroStep::ZeroStep(View dst, uint8_t byte)
    : dst_(std::move(dst)), element_(0x0101010101010101U * byte) {
    View src = dst_;
    std::ranges::fill(src.strides, 0);
    loops_ = make_copy_loops(dst_, src);
}

Extent ZeroStep::extent() const {
    return extent_of(loops_);
}

void ZeroStep::run(const Bases& bases, size_t item) noexcept {
    copy_typed(loops_, dst_.type, &element_, dst_.type, address(bases, dst_), part(item));
}

std::string ZeroStep::describe() const {
    return (element_ ? "fill " : "zero ") + text(dst_);
}

void copy_now(const View& src, const std::byte* src_base, const View& dst, std::byte* dst_base) {
    assert(can_copy(src.type, dst.type));
    const CopyLoops loops = make_copy_loops(dst, src);
    copy_typed(loops, src.type, src_base + src.offset * static_cast<int64_t>(size_bytes(src.type)),
               dst.type, dst_base + dst.offset * static_cast<int64_t>(size_bytes(dst.type)),
               {0, units(loops)});
}

}  // namespace vartml::softnpu
