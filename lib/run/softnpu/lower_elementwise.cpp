// SPDX-License-Identifier: Apache-2.0
// Element-wise operators: one operand through oneDNN, two with broadcasting through our own rows.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/ops/elementwise.h"
#include "kernels/ops/rows.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/loops.h"
#include "lib/run/softnpu/operators.h"
#include "lib/run/softnpu/plan.h"
#include "lib/run/softnpu/post_ops.h"

namespace vartml::softnpu {
namespace {

using kernels::Binary;

// dst = op(a, b) with any strides and float types; operands of stride 0 are broadcast.
class BinaryStep final : public Step {
public:
    BinaryStep(Binary op, View a, View b, View dst)
        : op_(op), a_(std::move(a)), b_(std::move(b)), dst_(std::move(dst)) {
        loops_ = make_loops({&dst_, &a_, &b_});
        elements_ = iterations(loops_);
        columns_ = take_loop(loops_, loops_.size() - 1);
        if (!loops_.empty()) rows_ = take_loop(loops_, loops_.size() - 1);
        const auto contiguous = [](int64_t stride) { return stride == 0 || stride == 1; };
        const auto direct = [](const View& view) {
            return view.type == DataType::float32 || view.type == DataType::bf16;
        };
        in_place_ = direct(dst_) && direct(a_) && direct(b_) && contiguous(columns_.strides[1]) &&
                    contiguous(columns_.strides[2]) &&
                    (columns_.strides[0] == 1 || columns_.size == 1);
    }

    Extent extent() const override {
        const int64_t each_ns = op_ == Binary::pow ? 20 : 1;
        const int64_t rows = iterations(loops_) * rows_.size;
        return {rows, std::max(elements_, rows * least_row_elements) * each_ns / 2};
    }

    void run(const Bases& bases, size_t item) noexcept override {
        const std::byte* a = address(bases, a_);
        const std::byte* b = address(bases, b_);
        std::byte* dst = address(bases, dst_);
        const auto [first, last] = part(item);
        Odometer at(loops_, first / rows_.size);
        int64_t row = first % rows_.size;
        for (int64_t i = first; i < last;) {
            Offsets o = at.offsets();
            for (size_t k = 0; k < o.size(); ++k) o[k] += row * rows_.strides[k];
            const int64_t count = std::min(rows_.size - row, last - i);
            if (in_place_) {
                rows_in_place(a, b, dst, o, count);
            } else {
                rows_through_floats(a, b, dst, o, count);
            }
            i += count;
            row += count;
            if (row == rows_.size) {
                row = 0;
                at.next();
            }
        }
    }

    std::string describe() const override {
        static constexpr const char* names[] = {"add", "sub", "mul", "div",
                                                "max", "min", "pow", "prelu"};
        return std::string(names[static_cast<size_t>(op_)]) + " " + text(a_) + " " + text(b_) +
               " -> " + text(dst_);
    }

private:
    // Floats of an operand on the way; small enough that three stay in the first-level cache.
    static constexpr int64_t chunk = 1024;

    // A tile of an operand as floats: where it lies, else in `space`.
    static kernels::OperandRows load(const std::byte* base, const View& view, int64_t offset,
                                     int64_t row, int64_t column, int64_t rows, int64_t columns,
                                     float* space) {
        if (row == 0) rows = 1;  // the same for all
        if (column == 0) columns = 1;
        const auto r = static_cast<size_t>(rows), c = static_cast<size_t>(columns);
        const size_t stride = column != 0;
        const ptrdiff_t next = row == 0 ? 0 : columns;
        const bool in_rows = column == 0 || column == 1;
        if (view.type == DataType::float32 && in_rows)
            return {reinterpret_cast<const float*>(base) + offset, row, stride};
        with_float(view.type, [&]<typename T>(T) {
            const auto* p = reinterpret_cast<const T*>(base) + offset;
            if (in_rows)
                kernels::copy_rows(p, row, space, columns, r, c);
            else
                kernels::copy_tile(p, row, column, space, columns, r, c);
        });
        return {space, next, stride};
    }

    template <typename T>
    static void store(const float* from, T* dst, int64_t row, int64_t column, int64_t rows,
                      int64_t columns) {
        const auto r = static_cast<size_t>(rows), c = static_cast<size_t>(columns);
        if (column == 1 || columns == 1) return kernels::copy_rows(from, columns, dst, row, r, c);
        for (int64_t k = 0; k < rows; ++k)
            kernels::copy_rows(from + k * columns, 1, dst + k * row, column, c, 1);
    }

    // Everything fp32 or bf16 and contiguous, or one value for a whole row.
    void rows_in_place(const std::byte* a, const std::byte* b, std::byte* dst, const Offsets& o,
                       int64_t rows) const {
        const auto offset = [&](const View& view, size_t k) {
            return o[k] * static_cast<int64_t>(kernels::size_of(element_of(view)));
        };
        const auto operand = [&](const std::byte* base, const View& view, size_t k) {
            return kernels::OperandRows{base + offset(view, k), rows_.strides[k],
                                        static_cast<size_t>(columns_.strides[k]), element_of(view)};
        };
        kernels::binary_rows(op_, operand(a, a_, 1), operand(b, b_, 2),
                             {dst + offset(dst_, 0), rows_.strides[0], element_of(dst_)},
                             static_cast<size_t>(rows), static_cast<size_t>(columns_.size));
    }

    // Through memory of floats, tile by tile.
    void rows_through_floats(const std::byte* a, const std::byte* b, std::byte* dst,
                             const Offsets& o, int64_t rows) const {
        std::array<float, chunk> a_space, b_space, dst_space;
        const auto [dst_row, a_row, b_row] = rows_.strides;
        const auto [dst_column, a_column, b_column] = columns_.strides;
        const bool direct = dst_.type == DataType::float32 && dst_column == 1;
        const int64_t wide = std::min(chunk, columns_.size), high = chunk / wide;
        for (int64_t r = 0; r < rows; r += high) {
            const int64_t m = std::min(high, rows - r);
            for (int64_t c = 0; c < columns_.size; c += wide) {
                const int64_t n = std::min(wide, columns_.size - c);
                const auto x = load(a, a_, o[1] + r * a_row + c * a_column, a_row, a_column, m, n,
                                    a_space.data());
                const auto y = load(b, b_, o[2] + r * b_row + c * b_column, b_row, b_column, m, n,
                                    b_space.data());
                const int64_t at = o[0] + r * dst_row + c * dst_column;
                float* const out = direct ? reinterpret_cast<float*>(dst) + at : dst_space.data();
                kernels::binary_rows(op_, x, y, {out, direct ? dst_row : n}, static_cast<size_t>(m),
                                     static_cast<size_t>(n));
                if (direct) continue;
                with_float(dst_.type, [&]<typename T>(T) {
                    store(out, reinterpret_cast<T*>(dst) + at, dst_row, dst_column, m, n);
                });
            }
        }
    }

    Binary op_;
    View a_, b_, dst_;
    std::vector<Loop> loops_;
    Loop rows_, columns_;
    int64_t elements_ = 1;
    bool in_place_ = false;
};

struct Row {
    std::string_view kind;
    Binary op;
};
constexpr Row binaries[] = {
    {"Add", Binary::add}, {"Sub", Binary::sub},     {"Mul", Binary::mul},
    {"Div", Binary::div}, {"Max", Binary::max},     {"Min", Binary::min},
    {"Pow", Binary::pow}, {"PRelu", Binary::prelu}, {"Sum", Binary::add},
};

// Where constants are involved the step reads them in f32.
View operand(Lowering& lowering, graph::ValueId id) {
    if (!lowering.value(id).constant) return lowering.view(id);
    return lowering.dense(id, row_major(lowering.value(id).type.shape.size()), DataType::float32);
}

}  // namespace

Result<void> lower_eltwise(Lowering& lowering, const graph::Node& node) {
    const auto eltwise = find_eltwise(node);
    const Order order = order_of(lowering.view(node.inputs[0]));
    const DataType type = lowering.stored_type(node.outputs[0]);
    const View src = lowering.dense(node.inputs[0], order, type);
    const View dst = lowering.destination(node.outputs[0], order, false);
    const bool is_own = type == DataType::float32 || type == DataType::bf16;
    if (const auto own = find_activation(node); own && is_own) {
        lower_activation(lowering, *own, src, dst, node.name);
        lowering.finish(node.outputs[0], dst);
        return {};
    }
    const auto flat = [](View view) {
        view.dims = {view.elements()};
        view.strides = {1};
        return view;
    };
    const uint32_t items = items_for({src.elements(), src.elements()}, lowering.threads());
    std::vector<OnednnCall> calls;
    for (const Range& range : ranges(src.elements(), items)) {
        const View from = cut(flat(src), 0, range), to = cut(flat(dst), 0, range);
        const dnnl::eltwise_forward::primitive_desc desc(
            cpu_engine(), dnnl::prop_kind::forward_inference, eltwise->algorithm, descriptor(from),
            descriptor(to), eltwise->alpha, eltwise->beta, attributes({}));
        calls.push_back(onednn_call<dnnl::eltwise_forward>(desc, from, to));
    }
    emit_onednn(lowering, node, std::move(calls));
    lowering.finish(node.outputs[0], dst);
    return {};
}

// Between float types nothing moves: the software NPU stores a float in what it computes in,
// whatever type the model gives it.
Result<void> lower_cast(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId out = node.outputs[0];
    const View& src = lowering.view(node.inputs[0]);
    if (is_float(src.type)) {
        lowering.finish(out, src);
        return {};
    }
    const Order order = order_of(src);
    View dst = lowering.destination(out, order, true);
    if (dst.type != DataType::float32)
        dst = lowering.new_buffer(DataType::float32, src.dims, order);
    emit_floats_of_integers(lowering, src, dst, node.name);
    lowering.finish(out, dst);
    return {};
}

bool takes_cast(const graph::Graph& graph, const graph::Node& node) {
    const DataType from = graph.value(node.inputs[0]).type.data_type;
    return is_float(graph.value(node.outputs[0]).type.data_type) &&
           (is_float(from) || from == DataType::int32);
}

Result<void> lower_binary(Lowering& lowering, const graph::Node& node) {
    const Binary op = std::ranges::find(binaries, node.kind, &Row::kind)->op;
    const graph::ValueId out = node.outputs[0];
    const Dims& shape = lowering.value(out).type.shape;
    const View dst = lowering.destination(out, lowering.order(out), true);
    View a = broadcast(operand(lowering, node.inputs[0]), shape);
    if (node.inputs.size() == 1) lowering.copy(a, dst, node.name);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        const View b = broadcast(operand(lowering, node.inputs[i]), shape);
        lowering.emit(std::make_unique<BinaryStep>(op, a, b, dst), node.name, {&a, &b, &dst});
        a = dst;
    }
    lowering.finish(out, dst);
    return {};
}

}  // namespace vartml::softnpu
