// SPDX-License-Identifier: Apache-2.0
#include "lib/tensor/convert.h"

#include <algorithm>
#include <cstring>

#include "kernels/layout/interleave.h"

namespace vartml {

// Where a task begins, and how much it does.
struct Conversion::Task {
    size_t src = 0, dst = 0;      // elements
    size_t group = 0;             // index of the innermost loop
    size_t rows = 1;              // of the innermost loop
    size_t first = 0, count = 0;  // of the innermost run
    bool ends_run = true;
};

// Calls work(pixels done, pixels, offset of the pixel side in elements) for each row of the pixel
// side that the task touches.
template <class Work>
void Conversion::each_row(const Task& t, size_t step, const Work& work) const {
    for (size_t done = 0; done < t.count;) {
        const size_t row = (t.first + done) / width_, x = (t.first + done) % width_;
        const size_t pixels = std::min(width_ - x, t.count - done);
        work(done, pixels, row * row_ + x * step);
        done += pixels;
    }
}

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

// A task that packs is whole rows, or a part of the only one.
kernels::BlockRows Conversion::block_rows(const Task& t, size_t step, size_t element) const {
    const size_t pixels = std::min(width_, t.count);
    return {t.count / pixels, pixels, row_ * element, step};
}

void Conversion::run_task(const std::byte* src, std::byte* dst, const Task& t) const {
    const Loop& inner = loops_.back();
    const size_t channels = std::min(group_, channels_ - t.group * group_);
    const bool copies = src_bytes_ == dst_bytes_ && first_.kind <= kernels::CastKind::copy8;
    alignas(64) std::byte scratch[scratch_bytes];
    switch (form_) {
        case Form::rows:
            return convert_rows(src, inner.src * src_bytes_, dst, inner.dst * dst_bytes_, t.rows,
                                t.count, t.ends_run ? padding_ : 0);
        case Form::to_pixels: {
            size_t stride = src_step_ * src_bytes_;
            if (packs_)
                return kernels::pack_planes(first_, src, stride, channels,
                                            dst + t.first / width_ * row_ * dst_bytes_ +
                                                t.first % width_ * dst_step_ * dst_bytes_,
                                            block_rows(t, dst_step_, dst_bytes_));
            if (!copies) {
                convert_rows(src, stride, scratch, t.count * dst_bytes_, channels, t.count, 0);
                src = scratch;
                stride = t.count * dst_bytes_;
            }
            return each_row(t, dst_step_, [&](size_t done, size_t pixels, size_t at) {
                kernels::planes_to_pixels(dst_bytes_, src + done * dst_bytes_, stride, channels,
                                          pixels, dst + at * dst_bytes_, dst_step_);
            });
        }
        case Form::to_planes: {
            if (packs_)
                return kernels::unpack_planes(first_,
                                              src + t.first / width_ * row_ * src_bytes_ +
                                                  t.first % width_ * src_step_ * src_bytes_,
                                              block_rows(t, src_step_, src_bytes_), channels, dst,
                                              dst_step_ * dst_bytes_);
            std::byte* const to = copies ? dst : scratch;
            const size_t stride = copies ? dst_step_ * dst_bytes_ : t.count * src_bytes_;
            each_row(t, src_step_, [&](size_t done, size_t pixels, size_t at) {
                kernels::pixels_to_planes(src_bytes_, src + at * src_bytes_, src_step_, channels,
                                          pixels, to + done * src_bytes_, stride);
            });
            if (!copies)
                convert_rows(scratch, stride, dst, dst_step_ * dst_bytes_, channels, t.count, 0);
            return;
        }
        case Form::repack: {
            // Only a blocked dst has words to fill beyond the last channel.
            const size_t fill = padding_ != 0 ? group_ : channels;
            if (copies)
                return kernels::pixels_to_pixels(dst_bytes_, src, src_step_, dst, dst_step_,
                                                 channels, fill, t.count);
            // Casts run over dense pixels: half of the scratch memory for those of src, half for
            // those of dst.
            std::byte* const dense = scratch + scratch_bytes / 2;
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
    std::array<size_t, most_loops> counts;
    size_t tasks = runs;
    for (size_t i = 0; i < counts.size(); ++i) {
        counts[i] = i + 1 < counts.size() ? loops_[i].count
                                          : (loops_[i].count + chunk_rows_ - 1) / chunk_rows_;
        tasks *= counts[i];
    }
    if (tasks == 0) return;
    const size_t first = tasks * part / num_parts, last = tasks * (part + 1) / num_parts;
    std::array<size_t, most_loops> index;
    size_t rest = first / runs, run = first % runs;
    for (size_t i = counts.size(); i-- > 0; rest /= counts[i]) index[i] = rest % counts[i];
    // What the first element of a task adds to the addresses; each_row() does it for the side with
    // pixels.
    const size_t src_step = form_ == Form::to_planes                         ? 0
                            : form_ == Form::repack || form_ == Form::gather ? src_step_
                                                                             : 1;
    const size_t dst_step = form_ == Form::to_pixels ? 0 : form_ == Form::repack ? dst_step_ : 1;
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
        t.first = run * chunk_;
        t.count = std::min(chunk_, count_ - t.first);
        t.ends_run = run + 1 == runs;
        t.src += t.first * src_step;
        t.dst += t.first * dst_step;
        run_task(s + t.src * src_bytes_, d + t.dst * dst_bytes_, t);
        if (++run < runs) continue;
        run = 0;
        for (size_t i = counts.size(); i-- > 0 && ++index[i] == counts[i];) index[i] = 0;
    }
}

}  // namespace vartml
