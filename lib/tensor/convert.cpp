// SPDX-License-Identifier: Apache-2.0
#include "lib/tensor/convert.h"

#include <algorithm>
#include <cstring>

#include "kernels/layout/interleave.h"

namespace vartml {

// Where a task begins, and how much it does.
struct Conversion::Task {
    size_t src = 0, dst = 0;  // elements
    size_t group = 0;         // index of the innermost loop
    size_t rows = 1;          // of the innermost loop
    size_t count = 0;
    bool ends_run = true;
};

void Conversion::convert_rows(const std::byte* src, size_t src_stride, std::byte* dst,
                              size_t dst_stride, size_t rows, size_t count, size_t padding) const {
    if (!via_float_)
        return kernels::cast_rows(first_, src, src_stride, dst, dst_stride, rows, count, padding);
    constexpr size_t most = 1024;
    alignas(64) float floats[most];
    for (size_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
        for (size_t i = 0; i == 0 || i < count; i += most) {
            const size_t n = std::min(most, count - i);
            const bool last = i + n == count;
            kernels::cast_rows(first_, src + i * src_bytes_, 0, floats, 0, 1, n, 0);
            kernels::cast_rows(second_, floats, 0, dst + i * dst_bytes_, 0, 1, n,
                               last ? padding : 0);
        }
    }
}

void Conversion::run_task(const std::byte* src, std::byte* dst, const Task& t) const {
    const Loop& inner = loops_.back();
    const size_t channels = std::min(group_, channels_ - t.group * group_);
    const bool copies = src_bytes_ == dst_bytes_ && first_.kind <= kernels::CastKind::copy8;
    alignas(64) std::byte scratch[scratch_bytes_];
    switch (form_) {
        case Form::rows:
            return convert_rows(src, inner.src * src_bytes_, dst, inner.dst * dst_bytes_, t.rows,
                                t.count, t.ends_run ? padding_ : 0);
        case Form::to_pixels:
            if (copies)
                return kernels::planes_to_pixels(dst_bytes_, src, src_step_ * src_bytes_, channels,
                                                 t.count, dst, dst_step_);
            convert_rows(src, src_step_ * src_bytes_, scratch, t.count * dst_bytes_, channels,
                         t.count, 0);
            return kernels::planes_to_pixels(dst_bytes_, scratch, t.count * dst_bytes_, channels,
                                             t.count, dst, dst_step_);
        case Form::to_planes:
            if (copies)
                return kernels::pixels_to_planes(src_bytes_, src, src_step_, channels, t.count, dst,
                                                 dst_step_ * dst_bytes_);
            kernels::pixels_to_planes(src_bytes_, src, src_step_, channels, t.count, scratch,
                                      t.count * src_bytes_);
            return convert_rows(scratch, t.count * src_bytes_, dst, dst_step_ * dst_bytes_,
                                channels, t.count, 0);
        case Form::repack: {
            // Only a blocked dst has words to fill beyond the last channel.
            const size_t fill = padding_ != 0 ? group_ : channels;
            if (copies)
                return kernels::pixels_to_pixels(dst_bytes_, src, src_step_, dst, dst_step_,
                                                 channels, fill, t.count);
            // Casts run over dense pixels: half of the scratch memory for those of src, half for
            // those of dst.
            std::byte* const dense = scratch + scratch_bytes_ / 2;
            if (src_step_ != channels) {
                kernels::pixels_to_pixels(src_bytes_, src, src_step_, scratch, channels, channels,
                                          channels, t.count);
                src = scratch;
            }
            const bool dst_dense = dst_step_ == channels;
            convert_rows(src, 0, dst_dense ? dst : dense, 0, 1, t.count * channels, 0);
            if (!dst_dense)
                kernels::pixels_to_pixels(dst_bytes_, dense, channels, dst, dst_step_, channels,
                                          fill, t.count);
            return;
        }
        case Form::gather:
            kernels::pixels_to_pixels(src_bytes_, src, src_step_, scratch, 1, 1, 1, t.count);
            return convert_rows(scratch, 0, dst, 0, 1, t.count, 0);
    }
}

void Conversion::run_part(const void* src, void* dst, unsigned part, unsigned num_parts) const {
    const auto* s = static_cast<const std::byte*>(src);
    auto* d = static_cast<std::byte*>(dst);
    if (is_copy_) {
        const size_t first = count_ * part / num_parts, last = count_ * (part + 1) / num_parts;
        std::memcpy(d + first * dst_bytes_, s + first * src_bytes_, (last - first) * dst_bytes_);
        return;
    }
    const size_t runs = (count_ + chunk_ - 1) / chunk_;
    std::array<size_t, most_loops_> counts;
    size_t tasks = runs;
    for (size_t i = 0; i < counts.size(); ++i) {
        counts[i] = i + 1 < counts.size() ? loops_[i].count
                                          : (loops_[i].count + chunk_rows_ - 1) / chunk_rows_;
        tasks *= counts[i];
    }
    if (tasks == 0) return;
    const size_t first = tasks * part / num_parts, last = tasks * (part + 1) / num_parts;
    std::array<size_t, most_loops_> index;
    size_t rest = first / runs, run = first % runs;
    for (size_t i = counts.size(); i-- > 0; rest /= counts[i]) index[i] = rest % counts[i];
    const bool src_steps =
        form_ == Form::to_planes || form_ == Form::repack || form_ == Form::gather;
    const bool dst_steps = form_ == Form::to_pixels || form_ == Form::repack;
    for (size_t task = first; task < last; ++task) {
        Task t;
        for (size_t i = 0; i + 1 < counts.size(); ++i) {
            t.src += index[i] * loops_[i].src;
            t.dst += index[i] * loops_[i].dst;
        }
        t.group = index.back() * chunk_rows_;
        t.rows = std::min(chunk_rows_, loops_.back().count - t.group);
        t.src += t.group * loops_.back().src;
        t.dst += t.group * loops_.back().dst;
        const size_t at = run * chunk_;
        t.count = std::min(chunk_, count_ - at);
        t.ends_run = run + 1 == runs;
        t.src += at * (src_steps ? src_step_ : 1);
        t.dst += at * (dst_steps ? dst_step_ : 1);
        run_task(s + t.src * src_bytes_, d + t.dst * dst_bytes_, t);
        if (++run < runs) continue;
        run = 0;
        for (size_t i = counts.size(); i-- > 0 && ++index[i] == counts[i];) index[i] = 0;
    }
}

}  // namespace vartml
