// SPDX-License-Identifier: Apache-2.0
#include "lib/base/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <vartml/convert.h>

#include "kernels/layout/interleave.h"
#include "lib/base/view.h"

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
    for (size_t row = 0; part == 0 && row < tail_rows_; ++row)
        std::memset(d + ((row + 1) * tail_row_ - padding_) * dst_bytes_, 0, padding_ * dst_bytes_);
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

// Chooses how a Conversion runs: which elements correspond, which loop is innermost, which kernel
// does it.
namespace {

using kernels::Cast;
using kernels::CastKind;

constexpr size_t task_elements = 16384;

size_t block_of(Layout layout) {
    switch (layout) {
        case Layout::HCWNC4:
            return 4;
        case Layout::HCWNC8:
            return 8;
        case Layout::HCWNC16:
            return 16;
        default:
            return 0;
    }
}

Error mismatch(ErrorCode code, const TensorView& src, const TensorView& dst,
               const std::string& why) {
    return {code, "cannot convert " + describe(src) + " to " + describe(dst) + ": " + why};
}

// ---- element types -----------------------------------------------------------------------------

bool is_integer(DataType type) {
    return type == DataType::int8 || type == DataType::uint8 || type == DataType::int16 ||
           type == DataType::uint16;
}

std::optional<CastKind> to_float_kind(DataType type) {
    switch (type) {
        case DataType::float32:
            return CastKind::copy4;
        case DataType::bf16:
            return CastKind::bf16_f32;
        case DataType::fp16:
            return CastKind::f16_f32;
        case DataType::int8:
            return CastKind::i8_f32;
        case DataType::uint8:
            return CastKind::u8_f32;
        case DataType::int16:
            return CastKind::i16_f32;
        case DataType::uint16:
            return CastKind::u16_f32;
        default:
            return std::nullopt;
    }
}

std::optional<CastKind> from_float_kind(DataType type) {
    switch (type) {
        case DataType::float32:
            return CastKind::copy4;
        case DataType::bf16:
            return CastKind::f32_bf16;
        case DataType::fp16:
            return CastKind::f32_f16;
        case DataType::int8:
            return CastKind::f32_i8;
        case DataType::uint8:
            return CastKind::f32_u8;
        case DataType::int16:
            return CastKind::f32_i16;
        case DataType::uint16:
            return CastKind::f32_u16;
        default:
            return std::nullopt;
    }
}

std::pair<int32_t, int32_t> limits_of(DataType type) {
    const auto of = [](auto q) {
        using Q = decltype(q);
        return std::pair<int32_t, int32_t>{std::numeric_limits<Q>::min(),
                                           std::numeric_limits<Q>::max()};
    };
    switch (type) {
        case DataType::int8:
            return of(int8_t{});
        case DataType::uint8:
            return of(uint8_t{});
        case DataType::int16:
            return of(int16_t{});
        default:
            return of(uint16_t{});
    }
}

// ---- which elements correspond -----------------------------------------------------------------

// A dimension of the tensor: how many elements, and their distance on both sides.
struct Dim {
    size_t count = 1, src = 0, dst = 0;
};

// Sizes and distances of the picture dimensions of one view.
struct Image {
    size_t n = 1, c = 1, h = 1, w = 1;
    size_t stride_n = 0, stride_c = 0, stride_h = 0, stride_w = 0;
    size_t block = 0, groups = 1, stride_group = 0;
};

std::optional<Image> image_of(const TensorView& v) {
    const std::vector<uint32_t>& s = v.shape;
    Image i;
    if (v.layout == Layout::NCHW && s.size() == 4) {
        i.n = s[0], i.c = s[1], i.h = s[2], i.w = s[3];
        i.stride_w = 1, i.stride_h = i.w, i.stride_c = i.h * i.w, i.stride_n = i.c * i.stride_c;
        return i;
    }
    if (v.layout == Layout::NHWC && s.size() == 4) {
        i.n = s[0], i.h = s[1], i.w = s[2], i.c = s[3];
        i.stride_c = 1, i.stride_w = i.c, i.stride_h = i.w * i.c, i.stride_n = i.h * i.stride_h;
        return i;
    }
    const size_t block = block_of(v.layout);
    if (block != 0 && s.size() == 5 && s[3] == 1 && s[4] == block) {
        i.h = s[0], i.groups = s[1], i.w = s[2], i.block = block;
        i.c = i.groups * block;
        i.stride_c = 1, i.stride_w = block, i.stride_group = i.w * block;
        i.stride_h = i.groups * i.stride_group;
        return i;
    }
    return std::nullopt;
}

// Distance and size of each dimension of the CPU view, found through the order of a GENERIC view.
std::optional<std::vector<Dim>> dims_of(const TensorView& v) {
    const size_t rank = v.shape.size();
    std::vector<Dim> dims(rank);
    std::vector<bool> seen(rank, false);
    size_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
        const size_t d = v.layout == Layout::GENERIC && !v.order.empty() ? v.order[i] : i;
        if (d >= rank || seen[d] || (!v.order.empty() && v.order.size() != rank))
            return std::nullopt;
        seen[d] = true;
        dims[d] = {v.shape[i], stride, stride};
        stride *= v.shape[i];
    }
    return dims;
}

}  // namespace

class ConversionPlanner {
public:
    ConversionPlanner(const TensorView& src, const TensorView& dst) : src_(src), dst_(dst) {}

    Result<Conversion> plan(Rounding rounding) {
        if (Result<void> r = plan_types(rounding); !r) return r.error();
        const bool blocked = block_of(src_.layout) != 0 || block_of(dst_.layout) != 0;
        const bool images = src_.layout != dst_.layout && image_of(src_) && image_of(dst_);
        if (Result<void> r = blocked && src_.layout != dst_.layout ? plan_blocked()
                             : images                              ? plan_images()
                                                                   : plan_dims();
            !r)
            return r.error();
        return std::move(c_);
    }

private:
    using Form = Conversion::Form;

    Error fail(ErrorCode code, const std::string& why) const {
        return mismatch(code, src_, dst_, why);
    }

    Result<void> plan_types(Rounding rounding) {
        const DataType from = src_.data_type, to = dst_.data_type;
        c_.src_bytes_ = size_bytes(from);
        c_.dst_bytes_ = size_bytes(to);
        if (from == to && c_.src_bytes_ != 0) {
            constexpr CastKind copies[] = {CastKind::copy1, CastKind::copy2, CastKind::copy4,
                                           CastKind::copy8};
            c_.first_.kind = copies[std::countr_zero(c_.src_bytes_)];
            return {};
        }
        const auto first = to_float_kind(from), second = from_float_kind(to);
        if (!first || !second || (is_integer(from) && is_integer(to)))
            return fail(ErrorCode::unsupported, "no conversion between these types exists");
        Cast parameters;
        if (is_integer(from) || is_integer(to)) {
            const TensorView& integer = is_integer(from) ? src_ : dst_;
            const Quantisation q = integer.quantisation.value_or(Quantisation{});
            parameters.scale = static_cast<float>(q.scale);
            parameters.zero_point = q.zero_point;
            const auto [low, high] = limits_of(integer.data_type);
            if (!(parameters.scale > 0) || !std::isfinite(parameters.scale))
                return fail(ErrorCode::invalid_argument,
                            "scale " + std::to_string(q.scale) + " is not a positive number");
            if (q.zero_point < low || q.zero_point > high)
                return fail(
                    ErrorCode::invalid_argument,
                    "zero point " + std::to_string(q.zero_point) + " is outside the integer type");
        }
        parameters.truncate = rounding == Rounding::toward_zero;
        c_.first_ = c_.second_ = parameters;
        c_.via_float_ = from != DataType::float32 && to != DataType::float32;
        c_.first_.kind = from == DataType::float32 ? *second : *first;
        c_.second_.kind = *second;
        return {};
    }

    // Between a blocked layout and NCHW or NHWC.
    Result<void> plan_blocked() {
        const auto src = image_of(src_), dst = image_of(dst_);
        if (!src || !dst || (src->block != 0 && dst->block != 0))
            return fail(ErrorCode::unsupported,
                        "a blocked layout is converted from and to NCHW and NHWC only");
        const Image& plain = src->block == 0 ? *src : *dst;
        const Image& blocks = src->block == 0 ? *dst : *src;
        if (plain.n != 1 || src->h != dst->h || src->w != dst->w || plain.c == 0 ||
            (plain.c + blocks.block - 1) / blocks.block != blocks.groups)
            return fail(ErrorCode::invalid_argument, "the shapes are not of one tensor");
        const bool channels_first = src_.layout == Layout::NCHW || dst_.layout == Layout::NCHW;
        c_.channels_ = plain.c;
        c_.group_ = blocks.block;
        const auto group_stride = [&](const Image& i) {
            return i.block != 0 ? i.stride_group : i.stride_c * blocks.block;
        };
        const Dim groups{blocks.groups, group_stride(*src), group_stride(*dst)};
        c_.count_ = src->w;
        if (channels_first) {
            c_.form_ = src->block == 0 ? Form::to_pixels : Form::to_planes;
            c_.src_step_ = src->block == 0 ? src->stride_c : src->stride_w;
            c_.dst_step_ = src->block == 0 ? dst->stride_w : dst->stride_c;
            c_.count_ *= src->h;
            c_.width_ = blocks.groups == 1 ? c_.count_ : src->w;
            c_.row_ = blocks.stride_h;
            set_loops({groups});
            if (plan_pack(blocks.block)) return {};
        } else {
            Dim rows{src->h, src->stride_h, dst->stride_h};
            if (blocks.groups == 1) {  // rows follow each other on both sides
                c_.count_ *= rows.count;
                rows.count = 1;
            }
            set_loops({rows, groups});
            c_.form_ = Form::repack;
            c_.src_step_ = src->stride_w;
            c_.dst_step_ = dst->stride_w;
            c_.padding_ = dst->block != 0 ? 1 : 0;
        }
        set_chunk(blocks.block);
        return {};
    }

    // One pass that casts and moves. Works on whole vectors of pixels, so that tasks are whole
    // rows.
    bool plan_pack(size_t block) {
        constexpr size_t least_pixels = 16, task_pixels = 4096;
        c_.packs_ =
            !c_.via_float_ && c_.width_ >= least_pixels && kernels::can_pack(c_.first_, block);
        if (c_.packs_)
            c_.chunk_ = c_.width_ == c_.count_
                            ? task_pixels
                            : c_.width_ * std::max<size_t>(1, task_pixels / c_.width_);
        return c_.packs_;
    }

    Result<void> plan_images() {
        const auto src = image_of(src_), dst = image_of(dst_);
        if (src->n != dst->n || src->c != dst->c || src->h != dst->h || src->w != dst->w)
            return fail(ErrorCode::invalid_argument, "the shapes are not of one tensor");
        return plan_strides({{src->n, src->stride_n, dst->stride_n},
                             {src->c, src->stride_c, dst->stride_c},
                             {src->h, src->stride_h, dst->stride_h},
                             {src->w, src->stride_w, dst->stride_w}},
                            0);
    }

    // Layouts whose dimensions correspond one by one, through the order of GENERIC.
    Result<void> plan_dims() {
        const auto ordered = [](Layout l) { return l == Layout::GENERIC; };
        if (src_.layout != dst_.layout && !ordered(src_.layout) && !ordered(dst_.layout))
            return fail(ErrorCode::unsupported, "no conversion between these layouts exists");
        const auto src = dims_of(src_), dst = dims_of(dst_);
        if (!src || !dst || src->size() != dst->size())
            return fail(ErrorCode::invalid_argument,
                        "the ranks differ, or an order is no permutation of the dimensions");
        std::vector<Dim> dims(src->size());
        size_t padding = 0;
        for (size_t i = 0; i < dims.size(); ++i) {
            const size_t a = (*src)[i].count, b = (*dst)[i].count;
            dims[i] = {std::min(a, b), (*src)[i].src, (*dst)[i].dst};
            if (a == b) continue;
            const Layout larger = a > b ? src_.layout : dst_.layout;
            const bool pads = larger == Layout::NHW && i + 1 == dims.size();
            if (!pads || std::max(a, b) != (std::min(a, b) + 7) / 8 * 8)
                return fail(ErrorCode::invalid_argument, "the shapes are not of one tensor");
            padding = b > a ? b - a : 0;
        }
        return plan_strides(std::move(dims), padding);
    }

    // `padding` elements of dst follow each run of the last dimension.
    Result<void> plan_strides(std::vector<Dim> dims, size_t padding) {
        // In the order of dst, without dimensions of one element, joined where both sides go on
        // without a gap.
        const Dim last = dims.empty() ? Dim{} : dims.back();
        std::erase_if(dims, [](const Dim& d) { return d.count == 1; });
        std::ranges::stable_sort(dims, std::ranges::greater(), &Dim::dst);
        if (padding != 0 && last.count == 1) dims.push_back({1, 1, 1});
        std::vector<Dim> joined;
        for (const Dim& d : dims) {
            if (!joined.empty() && joined.back().src == d.src * d.count &&
                joined.back().dst == d.dst * d.count) {
                joined.back() = {joined.back().count * d.count, d.src, d.dst};
                continue;
            }
            joined.push_back(d);
        }
        if (joined.empty()) joined.push_back({1, 1, 1});
        if (joined.size() > c_.loops_.size())
            return fail(ErrorCode::unsupported, "more than 8 dimensions cannot be permuted");
        c_.padding_ = padding;
        const bool are_rows = joined.back().src == 1 && joined.back().dst == 1;
        if (padding != 0 && !are_rows) {
            c_.tail_row_ = last.count + padding;
            c_.tail_rows_ = 1;
            for (size_t d = 0; d + 1 < dst_.shape.size(); ++d) c_.tail_rows_ *= dst_.shape[d];
        }
        if (are_rows) {
            plan_rows(std::move(joined));
        } else if (!plan_transpose(joined)) {
            plan_gather(std::move(joined));
        }
        return {};
    }

    void plan_rows(std::vector<Dim> dims) {
        c_.form_ = Form::rows;
        c_.count_ = dims.back().count;
        dims.pop_back();
        c_.is_copy_ = dims.empty() && c_.padding_ == 0 && src_.data_type == dst_.data_type;
        if (dims.empty()) dims.push_back({});
        set_loops(dims);
        if (c_.count_ >= task_elements)
            c_.chunk_ = task_elements;
        else
            c_.chunk_ = std::max<size_t>(c_.count_, 1),
            c_.chunk_rows_ = std::max<size_t>(1, task_elements / c_.chunk_);
    }

    // The innermost dimension of dst is `a`, that of src is `b`, and one of them is dense around
    // the other.
    bool plan_transpose(const std::vector<Dim>& dims) {
        const size_t ia = dims.size() - 1;
        const auto found = std::ranges::find(dims, size_t{1}, &Dim::src);
        if (found == dims.end() || dims[ia].dst != 1) return false;
        const auto ib = static_cast<size_t>(found - dims.begin());
        const Dim a = dims[ia], b = dims[ib];
        const bool planes_fit = a.src == b.count, pixels_fit = b.dst == a.count;
        const size_t widest = std::max(c_.src_bytes_, c_.dst_bytes_);
        const bool to_planes = planes_fit && (b.count <= a.count || !pixels_fit);
        if (!to_planes && !pixels_fit) return false;
        const Dim block = to_planes ? b : a, pixels = to_planes ? a : b;
        if (block.count * widest * 8 > Conversion::scratch_bytes) return false;
        std::vector<Dim> loops;
        for (size_t i = 0; i < dims.size(); ++i)
            if (i != ia && i != ib) loops.push_back(dims[i]);
        loops.push_back({});  // one group
        set_loops(loops);
        c_.form_ = to_planes ? Form::to_planes : Form::to_pixels;
        c_.channels_ = c_.group_ = block.count;
        c_.count_ = c_.width_ = pixels.count;
        c_.src_step_ = to_planes ? block.count : block.src;
        c_.dst_step_ = to_planes ? block.dst : block.count;
        set_chunk(block.count);
        return true;
    }

    void plan_gather(std::vector<Dim> dims) {
        c_.form_ = Form::gather;
        c_.count_ = dims.back().count;
        c_.src_step_ = dims.back().src;
        dims.pop_back();
        set_loops(dims);
        c_.chunk_ = Conversion::scratch_bytes / c_.src_bytes_;
    }

    void set_loops(const std::vector<Dim>& dims) {
        const size_t skip = c_.loops_.size() - dims.size();
        for (size_t i = 0; i < dims.size(); ++i)
            c_.loops_[skip + i] = {dims[i].count, dims[i].src, dims[i].dst};
    }

    void set_chunk(size_t channels) {
        const size_t bytes = channels * std::max(c_.src_bytes_, c_.dst_bytes_);
        c_.chunk_ = Conversion::scratch_bytes / (bytes <= 64 ? 2 : 1) / bytes;
        if (c_.chunk_ > 16) c_.chunk_ -= c_.chunk_ % 16;  // whole vectors
    }

    const TensorView& src_;
    const TensorView& dst_;
    Conversion c_;
};

Result<Conversion> Conversion::create(const TensorView& src, const TensorView& dst,
                                      Rounding rounding) {
    return ConversionPlanner(src, dst).plan(rounding);
}

// The public face of Conversion.

struct TensorConversion::State {
    Conversion conversion;
};

TensorConversion::TensorConversion(std::unique_ptr<const State> state) : state_(std::move(state)) {}
TensorConversion::TensorConversion(TensorConversion&&) noexcept = default;
TensorConversion& TensorConversion::operator=(TensorConversion&&) noexcept = default;
TensorConversion::~TensorConversion() = default;

Result<TensorConversion> TensorConversion::create(const TensorView& src, const TensorView& dst) {
    auto conversion = Conversion::create(src, dst);
    if (!conversion) return std::move(conversion).error();
    return TensorConversion(std::make_unique<const State>(State{*std::move(conversion)}));
}

void TensorConversion::run(const void* src, void* dst) const {
    state_->conversion.run(src, dst);
}

}  // namespace vartml
