// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/ops/rows.h"
#include "lib/graph/numbers.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/loops.h"
#include "lib/run/softnpu/plan.h"

namespace vartml::softnpu {
namespace {

constexpr int64_t chunk = 512;

bool has_input(const graph::Node& node, size_t input) {
    return input < node.inputs.size() && node.inputs[input] != graph::none;
}

template <typename T>
std::vector<T> numbers_of(const graph::Graph& graph, const graph::Node& node, size_t input) {
    if (!has_input(node, input)) return {};
    return graph::read_numbers<T>(graph.value(node.inputs[input]));
}

void move_elements(const std::byte* src, int64_t src_stride, std::byte* dst, int64_t dst_stride,
                   int64_t count, size_t width) {
    const auto move = [&]<typename T>(T) {
        const auto* from = reinterpret_cast<const T*>(src);
        auto* to = reinterpret_cast<T*>(dst);
        for (int64_t i = 0; i < count; ++i) to[i * dst_stride] = from[i * src_stride];
    };
    if (width == 1) return move(uint8_t{});
    if (width == 2) return move(uint16_t{});
    move(uint32_t{});
}

// Rows of any strides.
void move_rows(const std::byte* src, int64_t src_row, int64_t src_column, std::byte* dst,
               int64_t dst_row, int64_t dst_column, int64_t rows, int64_t columns, size_t width) {
    const auto copy = [&]<typename T>(T) {
        kernels::copy_rows(reinterpret_cast<const T*>(src), src_row, reinterpret_cast<T*>(dst),
                           dst_row, static_cast<size_t>(rows), static_cast<size_t>(columns));
    };
    if (columns == 1 || (src_column == 1 && dst_column == 1)) {
        if (width == 1) return copy(uint8_t{});
        if (width == 2) return copy(uint16_t{});
        return copy(uint32_t{});
    }
    const auto step = static_cast<int64_t>(width);
    for (int64_t r = 0; r < rows; ++r, src += src_row * step, dst += dst_row * step)
        move_elements(src, src_column, dst, dst_column, columns, width);
}

// count elements of the sources and of the destination, all contiguous.
using Row = std::function<void(const Bases& bases, const std::byte* a, const std::byte* b,
                               std::byte* dst, size_t count)>;

// Element-wise work on views of any strides and on types of up to 4 bytes. Short rows, such as the
// channels of a slice, are put together, a chunk at a time.
class RowsStep final : public Step {
public:
    RowsStep(std::string what, View a, View b, View dst, Row row)
        : what_(std::move(what)),
          a_(std::move(a)),
          b_(std::move(b)),
          dst_(std::move(dst)),
          row_(std::move(row)) {
        loops_ = b_.buffer < 0 ? make_loops({&dst_, &a_}) : make_loops({&dst_, &a_, &b_});
        elements_ = iterations(loops_);
        columns_ = take_loop(loops_, loops_.size() - 1);
        if (columns_.size * 2 <= chunk) rows_ = take_loop(loops_, loops_.size() - 1);
        // One long loop becomes several, so that threads can share it.
        Loop& inner = rows_.size > 1 ? rows_ : columns_;
        const int64_t least = rows_.size > 1 ? chunk / columns_.size : chunk;
        for (const int64_t parts : {64, 16, 13, 9, 7, 4, 3, 2}) {
            if (!loops_.empty() || inner.size % parts != 0 || inner.size / parts < least) continue;
            Loop outer = inner;
            inner.size /= parts;
            outer.size = parts;
            for (int64_t& stride : outer.strides) stride *= inner.size;
            loops_.push_back(outer);
        }
    }

    Extent extent() const override { return {iterations(loops_), elements_ / 3}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const std::byte* a = address(bases, a_);
        const std::byte* b = b_.buffer < 0 ? a : address(bases, b_);
        std::byte* dst = address(bases, dst_);
        const auto [first, last] = part(item);
        Odometer at(loops_, first);
        for (int64_t i = first; i < last; ++i, at.next()) {
            const auto& [to, from_a, from_b] = at.offsets();
            block(bases, a + from_a * width(a_), b + from_b * width(b_), dst + to * width(dst_));
        }
    }

    std::string describe() const override {
        return what_ + " " + text(a_) + (b_.buffer < 0 ? "" : " " + text(b_)) + " -> " + text(dst_);
    }

private:
    static int64_t width(const View& view) {
        return view.buffer < 0 ? 0 : static_cast<int64_t>(size_bytes(view.type));
    }

    // All rows, as many at once as have room; those that are not dense by way of a copy.
    void block(const Bases& bases, const std::byte* a, const std::byte* b, std::byte* dst) const {
        const auto is_dense = [this](size_t operand) {
            return (columns_.strides[operand] == 1 || columns_.size == 1) &&
                   (rows_.strides[operand] == columns_.size || rows_.size == 1);
        };
        const bool two = b_.buffer >= 0;
        const bool dense_dst = is_dense(0), dense_a = is_dense(1), dense_b = !two || is_dense(2);
        const bool all = dense_a && dense_b && dense_dst;
        const int64_t columns = all ? columns_.size : std::min(columns_.size, chunk);
        const int64_t rows = all ? rows_.size : std::min(rows_.size, chunk / columns);
        std::array<std::byte, chunk * 4> space_a, space_b, space_dst;
        const auto gather = [&](const std::byte* from, const View& view, size_t operand,
                                std::byte* space, int64_t r, int64_t i, int64_t n, int64_t m) {
            const std::byte* const at =
                from + (r * rows_.strides[operand] + i * columns_.strides[operand]) * width(view);
            if (is_dense(operand)) return at;
            // What is the same in every row is there already.
            if (r == 0 || rows_.strides[operand] != 0 || m != columns_.size)
                move_rows(at, rows_.strides[operand], columns_.strides[operand], space, m, 1, n, m,
                          static_cast<size_t>(width(view)));
            return static_cast<const std::byte*>(space);
        };
        for (int64_t r = 0; r < rows_.size; r += rows) {
            const int64_t n = std::min(rows, rows_.size - r);
            for (int64_t i = 0; i < columns_.size; i += columns) {
                const int64_t m = std::min(columns, columns_.size - i);
                const std::byte* const x = gather(a, a_, 1, space_a.data(), r, i, n, m);
                const std::byte* const y = two ? gather(b, b_, 2, space_b.data(), r, i, n, m) : x;
                std::byte* const z =
                    dst + (r * rows_.strides[0] + i * columns_.strides[0]) * width(dst_);
                row_(bases, x, y, dense_dst ? z : space_dst.data(), static_cast<size_t>(n * m));
                if (!dense_dst)
                    move_rows(space_dst.data(), m, 1, z, rows_.strides[0], columns_.strides[0], n,
                              m, static_cast<size_t>(width(dst_)));
            }
        }
    }

    std::string what_;
    View a_, b_, dst_;
    Row row_;
    std::vector<Loop> loops_;
    Loop rows_, columns_;
    int64_t elements_ = 1;
};

class LookUpStep final : public Step {
public:
    LookUpStep(View src, View dst, const Table& table)
        : src_(std::move(src)),
          dst_(std::move(dst)),
          table_(table),
          loops_(make_copy_loops(dst_, src_)) {}

    Extent extent() const override {
        return {loops_.outer.empty() ? loops_.rows.size : iterations(loops_.outer),
                loops_.elements / 8};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* src = reinterpret_cast<const uint8_t*>(address(bases, src_));
        auto* dst = reinterpret_cast<uint8_t*>(address(bases, dst_));
        const auto [first, last] = part(item);
        if (loops_.outer.empty()) return block(src, dst, first, last);
        Odometer at(loops_.outer, first);
        for (int64_t i = first; i < last; ++i, at.next())
            block(src + at.offsets()[1], dst + at.offsets()[0], 0, loops_.rows.size);
    }

    std::string describe() const override { return "look up " + text(src_) + " -> " + text(dst_); }

private:
    void block(const uint8_t* src, uint8_t* dst, int64_t first, int64_t last) const {
        const auto& [to_row, from_row, unused] = loops_.rows.strides;
        const auto& [to, from, unused2] = loops_.columns.strides;
        const auto columns = static_cast<size_t>(loops_.columns.size);
        src += first * from_row;
        dst += first * to_row;
        if ((from == 1 && to == 1) || columns == 1) {
            kernels::look_up(table_.data(), src, from_row, dst, to_row,
                             static_cast<size_t>(last - first), columns);
            return;
        }
        for (int64_t r = first; r < last; ++r, src += from_row, dst += to_row)
            for (int64_t i = 0; i < loops_.columns.size; ++i) dst[i * to] = table_[src[i * from]];
    }

    View src_, dst_;
    Table table_;
    CopyLoops loops_;
};

class RequantiseStep final : public Step {
public:
    RequantiseStep(View src, View dst, int64_t channels, std::vector<float> scales,
                   std::vector<float> bias, std::optional<Activated> activated, const Coding& to)
        : src_(std::move(src)),
          dst_(std::move(dst)),
          channels_(channels),
          scales_(std::move(scales)),
          bias_(std::move(bias)),
          activated_(std::move(activated)),
          to_(to) {
        const auto count = static_cast<size_t>(channels);
        scales_.resize(count, scales_[0]);
        bias_.resize(count, 0);
        if (activated_) activated_->factors.resize(count, activated_->factors[0]);
    }

    Extent extent() const override { return {dst_.elements() / channels_, dst_.elements() / 3}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto* src = reinterpret_cast<const float*>(address(bases, src_));
        auto* dst = reinterpret_cast<uint8_t*>(address(bases, dst_));
        const auto [first, last] = part(item);
        for (int64_t i = first * channels_; i < last * channels_; i += channels_) {
            if (activated_) {
                activate(src + i, dst + i);
                continue;
            }
            kernels::requantise_row(src + i, scales_.data(), bias_.data(), to_, dst + i,
                                    static_cast<size_t>(channels_));
        }
    }

    std::string describe() const override {
        return "requantise " + text(src_) + " -> " + text(dst_);
    }

private:
    // A row of channels, piece by piece.
    void activate(const float* src, uint8_t* dst) const {
        static constexpr std::array<float, chunk> nothing{};
        std::array<float, chunk> space;
        const auto channels = static_cast<size_t>(channels_);
        for (size_t at = 0; at < channels; at += space.size()) {
            const size_t n = std::min(space.size(), channels - at);
            for (size_t i = 0; i < n; ++i) space[i] = src[at + i] * scales_[at + i] + bias_[at + i];
            kernels::activate_row(activated_->activation, space.data(), nullptr, space.data(), n);
            kernels::requantise_row(space.data(), activated_->factors.data() + at, nothing.data(),
                                    to_, dst + at, n);
        }
    }

    View src_, dst_;
    int64_t channels_;
    std::vector<float> scales_, bias_;
    std::optional<Activated> activated_;
    Coding to_;
};

const uint8_t* codes(const std::byte* p) {
    return reinterpret_cast<const uint8_t*>(p);
}

// Floats of a narrower type, piece by piece through floats.
template <typename Narrow>
void quantise_narrow(const std::byte* src, const Coding& to, uint8_t* dst, size_t count) {
    std::array<float, chunk> space;
    const auto* from = reinterpret_cast<const Narrow*>(src);
    for (size_t i = 0; i < count; i += chunk) {
        const size_t n = std::min<size_t>(chunk, count - i);
        kernels::convert_row(from + i, space.data(), n);
        kernels::quantise_row(space.data(), to, dst + i, n);
    }
}
template <typename Narrow>
void dequantise_narrow(const uint8_t* src, const Coding& from, std::byte* dst, size_t count) {
    std::array<float, chunk> space;
    auto* to = reinterpret_cast<Narrow*>(dst);
    for (size_t i = 0; i < count; i += chunk) {
        const size_t n = std::min<size_t>(chunk, count - i);
        kernels::dequantise_row(src + i, from, space.data(), n);
        kernels::convert_row(space.data(), to + i, n);
    }
}

// `more` are views that the row reads by itself, perhaps absent.
void emit_rows(Lowering& lowering, const char* what, const View& a, const View& b, const View& dst,
               Row row, std::string_view name, std::initializer_list<const View*> more = {}) {
    auto step = std::make_unique<RowsStep>(what, a, b, dst, std::move(row));
    for (const View* view : more)
        if (view->buffer >= 0) step->buffers.push_back(view->buffer);
    lowering.emit(std::move(step), name, {&a, b.buffer < 0 ? nullptr : &b, &dst});
}

}  // namespace

bool is_code(DataType type) {
    return type == DataType::int8 || type == DataType::uint8;
}

std::vector<float> floats_of(const graph::Graph& graph, const graph::Node& node, size_t input) {
    return numbers_of<float>(graph, node, input);
}
std::vector<int64_t> integers_of(const graph::Graph& graph, const graph::Node& node, size_t input) {
    return numbers_of<int64_t>(graph, node, input);
}

std::optional<Coding> coding_of(const graph::Graph& graph, const graph::Node& node, DataType type,
                                size_t scale, size_t zero) {
    const auto scales = floats_of(graph, node, scale);
    const auto zeros = integers_of(graph, node, zero);
    if (!is_code(type) || scales.size() != 1 || !(scales[0] > 0) || !std::isfinite(scales[0]) ||
        zeros.size() > 1 || (has_input(node, zero) && zeros.empty()))
        return std::nullopt;
    return Coding{scales[0], zeros.empty() ? 0 : static_cast<int32_t>(zeros[0]),
                  type == DataType::int8};
}

std::optional<Coding> coding_of(const graph::Graph& graph, const graph::Node& node, size_t data) {
    return coding_of(graph, node, graph.value(node.inputs[data]).type.data_type, data + 1,
                     data + 2);
}

bool has_weights_of_codes(const graph::Graph& graph, const graph::Node& node, size_t weights,
                          size_t zero, size_t axis) {
    const graph::Value& value = graph.value(node.inputs[weights]);
    if (!value.constant || value.constant->bytes.empty() || !is_code(value.type.data_type))
        return false;
    const auto zeros = static_cast<int64_t>(integers_of(graph, node, zero).size());
    return zeros == 1 || zeros == value.type.shape[axis] || (zeros == 0 && !has_input(node, zero));
}

std::vector<int16_t> centred_weights(const graph::Graph& graph, const graph::Node& node,
                                     size_t weights, size_t zero, size_t axis) {
    const graph::Value& value = graph.value(node.inputs[weights]);
    const bool is_signed = value.type.data_type == DataType::int8;
    const std::span<const std::byte> codes = value.constant->bytes;
    std::vector<int64_t> zeros = integers_of(graph, node, zero);
    if (zeros.empty()) zeros.push_back(0);
    size_t inner = 1;
    for (size_t i = axis + 1; i < value.type.shape.size(); ++i)
        inner *= static_cast<size_t>(value.type.shape[i]);
    const auto size = static_cast<size_t>(value.type.shape[axis]);
    std::vector<int16_t> result(codes.size());
    for (size_t row = 0; row < codes.size() / inner; ++row) {
        const auto less = static_cast<int16_t>(zeros[zeros.size() == 1 ? 0 : row % size]);
        for (size_t i = row * inner; i < (row + 1) * inner; ++i) {
            const auto code = std::to_integer<uint8_t>(codes[i]);
            const int16_t number = is_signed ? static_cast<int8_t>(code) : code;
            result[i] = static_cast<int16_t>(number - less);
        }
    }
    return result;
}

std::vector<std::vector<int8_t>> int8_terms(const std::vector<int16_t>& weights) {
    const auto fits = [](int16_t w) { return w >= -128 && w <= 127; };
    if (std::ranges::all_of(weights, fits))
        return {std::vector<int8_t>(weights.begin(), weights.end())};
    std::vector<std::vector<int8_t>> terms(2);
    for (const int16_t w : weights) {
        const auto first = std::clamp<int16_t>(w, -128, 127);
        const int rest = w - first;
        if (rest < -128 || rest > 127) return {};
        terms[0].push_back(static_cast<int8_t>(first));
        terms[1].push_back(static_cast<int8_t>(rest));
    }
    return terms;
}

namespace {

void quantise(DataType type, const std::byte* src, const Coding& to, std::byte* dst, size_t count) {
    auto* out = reinterpret_cast<uint8_t*>(dst);
    with_float(type, [&]<typename T>(T) {
        if constexpr (std::is_same_v<T, float>)
            kernels::quantise_row(reinterpret_cast<const float*>(src), to, out, count);
        else
            quantise_narrow<T>(src, to, out, count);
    });
}
void dequantise(DataType type, const std::byte* src, const Coding& from, std::byte* dst,
                size_t count) {
    with_float(type, [&]<typename T>(T) {
        if constexpr (std::is_same_v<T, float>)
            kernels::dequantise_row(codes(src), from, reinterpret_cast<float*>(dst), count);
        else
            dequantise_narrow<T>(codes(src), from, dst, count);
    });
}

int32_t read_code(const std::byte* at, bool is_signed) {
    const auto code = std::to_integer<uint8_t>(*at);
    return is_signed ? static_cast<int8_t>(code) : code;
}
// As it is in this run.
Coding read_coding(const Bases& bases, const ComputedCoding& coding) {
    Coding now{1, 0, coding.is_signed};
    if (coding.scale.buffer >= 0)
        now.scale = *reinterpret_cast<const float*>(address(bases, coding.scale));
    if (coding.zero.buffer >= 0)
        now.zero = read_code(address(bases, coding.zero), coding.is_signed);
    return now;
}

}  // namespace

void emit_quantise(Lowering& lowering, const View& src, const View& dst, const Coding& to,
                   std::string_view name) {
    const Row row = [to, type = src.type](const Bases&, const std::byte* x, const std::byte*,
                                          std::byte* y, size_t n) { quantise(type, x, to, y, n); };
    emit_rows(lowering, "quantise", src, {}, dst, row, name);
}

void emit_dequantise(Lowering& lowering, const View& src, const View& dst, const Coding& from,
                     std::string_view name) {
    const Row row = [from, type = dst.type](const Bases&, const std::byte* x, const std::byte*,
                                            std::byte* y,
                                            size_t n) { dequantise(type, x, from, y, n); };
    emit_rows(lowering, "dequantise", src, {}, dst, row, name);
}

ComputedCoding computed_coding(Lowering& lowering, const graph::Node& node, DataType type,
                               size_t scale, size_t zero) {
    ComputedCoding coding{{}, {}, type == DataType::int8};
    const auto one = [&](size_t input, DataType of) {
        const graph::ValueId id = node.inputs[input];
        return lowering.dense(id, row_major(lowering.value(id).type.shape.size()), of);
    };
    if (has_input(node, scale)) coding.scale = one(scale, DataType::float32);
    if (has_input(node, zero)) coding.zero = one(zero, type);
    return coding;
}

void emit_quantise(Lowering& lowering, const View& src, const View& dst, const ComputedCoding& to,
                   std::string_view name) {
    const Row row = [to, type = src.type](const Bases& bases, const std::byte* x, const std::byte*,
                                          std::byte* y, size_t n) {
        quantise(type, x, read_coding(bases, to), y, n);
    };
    emit_rows(lowering, "quantise by a computed scale", src, {}, dst, row, name,
              {&to.scale, &to.zero});
}

void emit_dequantise(Lowering& lowering, const View& src, const View& dst,
                     const ComputedCoding& from, std::string_view name) {
    const Row row = [from, type = dst.type](const Bases& bases, const std::byte* x,
                                            const std::byte*, std::byte* y, size_t n) {
        dequantise(type, x, read_coding(bases, from), y, n);
    };
    emit_rows(lowering, "dequantise by a computed scale", src, {}, dst, row, name,
              {&from.scale, &from.zero});
}

View emit_widened(Lowering& lowering, const View& code, std::string_view name) {
    const View wide = lowering.new_buffer(DataType::int32, {1}, row_major(1));
    const Row row = [is_signed = code.type == DataType::int8](
                        const Bases&, const std::byte* x, const std::byte*, std::byte* y, size_t) {
        *reinterpret_cast<int32_t*>(y) = read_code(x, is_signed);
    };
    emit_rows(lowering, "widen", *reshape(code, {1}), {}, wide, row, name);
    return wide;
}

void emit_floats_of_integers(Lowering& lowering, const View& src, const View& dst,
                             std::string_view name) {
    const Row row = [](const Bases&, const std::byte* x, const std::byte*, std::byte* y, size_t n) {
        const auto* from = reinterpret_cast<const int32_t*>(x);
        auto* to = reinterpret_cast<float*>(y);
        for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
    };
    emit_rows(lowering, "floats of integers", src, {}, dst, row, name);
}

void emit_requantise(Lowering& lowering, const View& src, const View& dst, int64_t channels,
                     std::vector<float> scales, std::vector<float> bias, const Coding& to,
                     std::string_view name) {
    lowering.emit(std::make_unique<RequantiseStep>(src, dst, channels, std::move(scales),
                                                   std::move(bias), std::nullopt, to),
                  name, {&src, &dst});
}

void emit_requantise(Lowering& lowering, const View& src, const View& dst, int64_t channels,
                     std::vector<float> scales, std::vector<float> bias, Activated activated,
                     const Coding& to, std::string_view name) {
    lowering.emit(std::make_unique<RequantiseStep>(src, dst, channels, std::move(scales),
                                                   std::move(bias), std::move(activated), to),
                  name, {&src, &dst});
}

void emit_round(Lowering& lowering, const View& src, const View& dst, std::string_view name) {
    const Row row = [](const Bases&, const std::byte* x, const std::byte*, std::byte* y, size_t n) {
        const auto* from = reinterpret_cast<const float*>(x);
        auto* to = reinterpret_cast<int32_t*>(y);
        for (size_t i = 0; i < n; ++i) to[i] = static_cast<int32_t>(std::lrintf(from[i]));
    };
    emit_rows(lowering, "round", src, {}, dst, row, name);
}

void emit_binary(Lowering& lowering, kernels::CodeBinary op, const View& a, const Coding& a_coding,
                 const View& b, const Coding& b_coding, const View& dst, const Coding& to,
                 std::string_view name) {
    const Row row = [=](const Bases&, const std::byte* x, const std::byte* y, std::byte* z,
                        size_t n) {
        kernels::binary_codes(op, {codes(x), a_coding}, {codes(y), b_coding},
                              reinterpret_cast<uint8_t*>(z), to, n);
    };
    const char* what = op == kernels::CodeBinary::add ? "add codes" : "multiply codes";
    emit_rows(lowering, what, a, b, dst, row, name);
}

void emit_look_up(Lowering& lowering, const View& src, const View& dst, const Table& table,
                  std::string_view name) {
    lowering.emit(std::make_unique<LookUpStep>(src, dst, table), name, {&src, &dst});
}

}  // namespace vartml::softnpu
