// SPDX-License-Identifier: Apache-2.0
// Plain loops for float operators.
#include "tests/support/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

#include "lib/graph/numbers.h"

namespace vartml::test {
namespace {

using graph::Graph;
using graph::Node;
using Dims = std::vector<int64_t>;

int64_t count(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Calls visit(position) for every index of a shape, row-major.
void each(const Dims& dims, const std::function<void(const Dims&)>& visit) {
    Dims at(dims.size(), 0);
    for (int64_t i = 0, n = count(dims); i < n; ++i) {
        visit(at);
        for (size_t d = dims.size(); d-- > 0;) {
            if (++at[d] < dims[d]) break;
            at[d] = 0;
        }
    }
}

size_t flat(const Dims& dims, const Dims& at) {
    int64_t index = 0;
    for (size_t d = 0; d < dims.size(); ++d) index = index * dims[d] + at[d];
    return static_cast<size_t>(index);
}

// The element that numpy broadcasting reads.
float broadcast(const Tensor& t, const Dims& dims, const Dims& at) {
    Dims own(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
        own[d] = dims[d] == 1 ? 0 : at[at.size() - dims.size() + d];
    }
    return t[flat(dims, own)];
}

double unary(const graph::Operation& operation, double x) {
    const std::string& kind = operation.kind;
    const auto get = [&](const char* name, float fallback) {
        return static_cast<double>(operation.get(name, fallback));
    };
    const double sigmoid = 1 / (1 + std::exp(-x));
    if (kind == "Relu") return std::max(x, 0.0);
    if (kind == "LeakyRelu") return x < 0 ? x * get("alpha", 0.01F) : x;
    if (kind == "Sigmoid") return sigmoid;
    if (kind == "SiLU") return x * sigmoid;
    if (kind == "HardSwish") return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    if (kind == "HardSigmoid") {
        return std::clamp(get("alpha", 0.2F) * x + get("beta", 0.5F), 0.0, 1.0);
    }
    if (kind == "Tanh") return std::tanh(x);
    if (kind == "Exp") return std::exp(x);
    if (kind == "Log") return std::log(x);
    if (kind == "Sqrt") return std::sqrt(x);
    if (kind == "Abs") return std::abs(x);
    if (kind == "Neg") return -x;
    if (kind == "Round") return std::nearbyint(x);
    if (kind == "Reciprocal") return 1 / x;
    if (kind == "Softplus") return std::log1p(std::exp(x));
    if (kind == "Mish") return x * std::tanh(std::log1p(std::exp(x)));
    if (kind == "Elu") return x < 0 ? get("alpha", 1) * std::expm1(x) : x;
    if (kind == "Gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    if (kind == "Clip") {
        constexpr float most = std::numeric_limits<float>::max();
        return std::clamp(x, get("min", -most), get("max", most));
    }
    std::fprintf(stderr, "reference: unknown operator %s\n", kind.c_str());
    std::abort();
}

float binary(std::string_view kind, float a, float b) {
    if (kind == "Add" || kind == "Sum") return a + b;
    if (kind == "Sub") return a - b;
    if (kind == "Mul") return a * b;
    if (kind == "Div") return a / b;
    if (kind == "Max") return std::max(a, b);
    if (kind == "Min") return std::min(a, b);
    if (kind == "Pow") return std::pow(a, b);
    return a < 0 ? a * b : a;  // PRelu
}

struct Evaluator {
    const Graph& g;
    std::vector<Tensor> values;

    const Dims& shape(graph::ValueId id) const { return g.value(id).type.shape; }
    const Tensor& in(const Node& n, size_t i) const {
        return values[static_cast<size_t>(n.inputs[i])];
    }
    const Dims& in_shape(const Node& n, size_t i) const { return shape(n.inputs[i]); }
    bool has(const Node& n, size_t i) const { return i < n.inputs.size() && n.inputs[i] >= 0; }

    Tensor conv(const Node& n) const {
        const Dims &x = in_shape(n, 0), &w = in_shape(n, 1), &y = shape(n.outputs[0]);
        const size_t spatial = w.size() - 2;
        const auto strides = n.get("strides", Dims(spatial, 1)),
                   pads = n.get("pads", Dims(2 * spatial, 0));
        const auto dilations = n.get("dilations", Dims(spatial, 1));
        const int64_t out_per_group = w[0] / n.get("group", int64_t{1});
        Tensor result(static_cast<size_t>(count(y)));
        const Dims window(w.begin() + 1, w.end());
        each(y, [&](const Dims& at) {
            double sum = has(n, 2) ? in(n, 2)[static_cast<size_t>(at[1])] : 0;
            each(window, [&](const Dims& k) {
                Dims from{at[0], at[1] / out_per_group * w[1] + k[0]};
                Dims weight{at[1]};
                weight.insert(weight.end(), k.begin(), k.end());
                for (size_t d = 0; d < spatial; ++d) {
                    const int64_t p = at[d + 2] * strides[d] - pads[d] + k[d + 1] * dilations[d];
                    if (p < 0 || p >= x[d + 2]) return;
                    from.push_back(p);
                }
                sum += static_cast<double>(in(n, 0)[flat(x, from)]) * in(n, 1)[flat(w, weight)];
            });
            result[flat(y, at)] = static_cast<float>(sum);
        });
        return result;
    }

    Tensor conv_transpose(const Node& n) const {
        const Dims &x = in_shape(n, 0), &w = in_shape(n, 1), &y = shape(n.outputs[0]);
        const size_t spatial = w.size() - 2;
        const auto strides = n.get("strides", Dims(spatial, 1)),
                   pads = n.get("pads", Dims(2 * spatial, 0));
        const auto dilations = n.get("dilations", Dims(spatial, 1));
        const int64_t in_per_group = w[0] / n.get("group", int64_t{1});
        std::vector<double> sum(static_cast<size_t>(count(y)), 0);
        const Dims window(w.begin() + 1, w.end());
        each(x, [&](const Dims& at) {
            each(window, [&](const Dims& k) {
                Dims to{at[0], at[1] / in_per_group * w[1] + k[0]};
                Dims weight{at[1]};
                weight.insert(weight.end(), k.begin(), k.end());
                for (size_t d = 0; d < spatial; ++d) {
                    const int64_t p = at[d + 2] * strides[d] - pads[d] + k[d + 1] * dilations[d];
                    if (p < 0 || p >= y[d + 2]) return;
                    to.push_back(p);
                }
                sum[flat(y, to)] +=
                    static_cast<double>(in(n, 0)[flat(x, at)]) * in(n, 1)[flat(w, weight)];
            });
        });
        Tensor result(sum.begin(), sum.end());
        if (has(n, 2)) {
            each(y, [&](const Dims& at) {
                result[flat(y, at)] += in(n, 2)[static_cast<size_t>(at[1])];
            });
        }
        return result;
    }

    Tensor product(const Node& n) const {
        const bool gemm = n.kind == "Gemm";
        const bool ta = gemm && n.get("transA", int64_t{0}),
                   tb = gemm && n.get("transB", int64_t{0});
        const float alpha = gemm ? n.get("alpha", 1.0F) : 1, beta = gemm ? n.get("beta", 1.0F) : 1;
        const Dims &a = in_shape(n, 0), &b = in_shape(n, 1), &y = shape(n.outputs[0]);
        const int64_t depth = ta ? a[a.size() - 2] : a.back();
        Tensor result(static_cast<size_t>(count(y)));
        each(y, [&](const Dims& at) {
            double sum = 0;
            Dims pa = at, pb = at;
            for (int64_t k = 0; k < depth; ++k) {
                pa[y.size() - 1] = k;
                if (ta) pa[y.size() - 2] = k, pa[y.size() - 1] = at[y.size() - 2];
                pb[y.size() - 2] = k;
                if (tb) pb[y.size() - 2] = at.back(), pb[y.size() - 1] = k;
                sum += static_cast<double>(broadcast(in(n, 0), a, pa)) * broadcast(in(n, 1), b, pb);
            }
            sum *= alpha;
            if (has(n, 2)) sum += beta * broadcast(in(n, 2), in_shape(n, 2), at);
            result[flat(y, at)] = static_cast<float>(sum);
        });
        return result;
    }

    Tensor pool(const Node& n) const {
        const Dims &x = in_shape(n, 0), &y = shape(n.outputs[0]);
        const size_t spatial = x.size() - 2;
        const bool global = n.kind.starts_with("Global"), max = n.kind.ends_with("MaxPool");
        const Dims extent(x.begin() + 2, x.end());
        const Dims kernel = global ? extent : n.get("kernel_shape", Dims{});
        const Dims strides = n.get("strides", Dims(spatial, 1)),
                   pads = n.get("pads", Dims(2 * spatial, 0));
        const Dims dilations = n.get("dilations", Dims(spatial, 1));
        const bool all = n.get("count_include_pad", int64_t{0}) != 0;
        Tensor result(static_cast<size_t>(count(y)));
        each(y, [&](const Dims& at) {
            double sum = 0, best = -std::numeric_limits<double>::infinity();
            int64_t used = 0;
            each(kernel, [&](const Dims& k) {
                Dims from{at[0], at[1]};
                for (size_t d = 0; d < spatial; ++d) {
                    const int64_t p = at[d + 2] * strides[d] - pads[d] + k[d] * dilations[d];
                    if (p < 0 || p >= x[d + 2]) return;
                    from.push_back(p);
                }
                const double v = in(n, 0)[flat(x, from)];
                sum += v;
                best = std::max(best, v);
                ++used;
            });
            result[flat(y, at)] = static_cast<float>(
                max ? best : sum / static_cast<double>(all ? count(kernel) : used));
        });
        return result;
    }

    Tensor resize(const Node& n) const {
        const Dims &x = in_shape(n, 0), &y = shape(n.outputs[0]);
        const auto scales = n.get("scales", std::vector<float>{});
        const auto mode = n.get("coordinate_transformation_mode", "half_pixel");
        const auto rounding = n.get("nearest_mode", "round_prefer_floor");
        const bool linear = n.get("mode", "nearest") == "linear";
        const auto position = [&](size_t d, int64_t i) {
            if (mode == "asymmetric") return static_cast<double>(i) / scales[d];
            if (mode == "tf_half_pixel_for_nn") return (static_cast<double>(i) + 0.5) / scales[d];
            if (mode == "align_corners") {
                return y[d] == 1 ? 0.0
                                 : static_cast<double>(i * (x[d] - 1)) /
                                       (scales[d] * static_cast<double>(x[d]) - 1);
            }
            if (mode == "pytorch_half_pixel" && y[d] == 1) return 0.0;
            const double half_pixel = (static_cast<double>(i) + 0.5) / scales[d] - 0.5;
            if (mode != "half_pixel_symmetric") return half_pixel;
            const double length = scales[d] * static_cast<double>(x[d]);  // before it was cut
            return static_cast<double>(x[d]) / 2 * (1 - static_cast<double>(y[d]) / length) +
                   half_pixel;
        };
        Tensor result(static_cast<size_t>(count(y)));
        each(y, [&](const Dims& at) {
            double sum = 0;
            each(Dims(x.size(), linear ? 2 : 1), [&](const Dims& corner) {
                Dims from(x.size());
                double weight = 1;
                for (size_t d = 0; d < x.size(); ++d) {
                    const double p = position(d, at[d]);
                    double cell = std::floor(p);
                    if (linear) {
                        weight *= corner[d] ? p - cell : 1 - (p - cell);
                    } else if (rounding == "ceil") {
                        cell = std::ceil(p);
                    } else if (rounding == "round_prefer_floor") {
                        cell = std::ceil(p - 0.5);
                    } else if (rounding == "round_prefer_ceil") {
                        cell = std::floor(p + 0.5);
                    }
                    from[d] = std::clamp<int64_t>(
                        static_cast<int64_t>(cell) + (linear ? corner[d] : 0), 0, x[d] - 1);
                }
                sum += weight * in(n, 0)[flat(x, from)];
            });
            result[flat(y, at)] = static_cast<float>(sum);
        });
        return result;
    }

    Tensor softmax(const Node& n) const {
        const Dims& x = in_shape(n, 0);
        const auto axis = static_cast<size_t>(n.get("axis", int64_t{0}));
        Tensor result(in(n, 0).size());
        each(x, [&](const Dims& at) {
            double most = -std::numeric_limits<double>::infinity(), sum = 0;
            Dims p = at;
            for (p[axis] = 0; p[axis] < x[axis]; ++p[axis])
                most = std::max<double>(most, in(n, 0)[flat(x, p)]);
            for (p[axis] = 0; p[axis] < x[axis]; ++p[axis])
                sum += std::exp(in(n, 0)[flat(x, p)] - most);
            result[flat(x, at)] = static_cast<float>(std::exp(in(n, 0)[flat(x, at)] - most) / sum);
        });
        return result;
    }

    Tensor reduce(const Node& n) const {
        const Dims& x = in_shape(n, 0);
        Dims kept = x;
        double cells = 1;
        for (const int64_t axis : n.get("axes", Dims{})) {
            cells *= static_cast<double>(x[static_cast<size_t>(axis)]);
            kept[static_cast<size_t>(axis)] = 1;
        }
        const auto kind = n.kind;
        const double start = kind == "ReduceMax"   ? -std::numeric_limits<double>::infinity()
                             : kind == "ReduceMin" ? std::numeric_limits<double>::infinity()
                                                   : 0;
        std::vector<double> sums(static_cast<size_t>(count(kept)), start);
        each(x, [&](const Dims& at) {
            Dims p = at;
            for (size_t d = 0; d < p.size(); ++d) p[d] = kept[d] == 1 ? 0 : p[d];
            double& s = sums[flat(kept, p)];
            const double v = in(n, 0)[flat(x, at)];
            s = kind == "ReduceMax" ? std::max(s, v) : kind == "ReduceMin" ? std::min(s, v) : s + v;
        });
        if (kind == "ReduceMean") {
            for (double& s : sums) s /= cells;
        }
        return Tensor(sums.begin(), sums.end());
    }

    // Operators that only move elements: where output element `at` comes from (nullopt: zero).
    Tensor gather(const Node& n, size_t output,
                  const std::function<std::optional<Dims>(const Dims&)>& from) const {
        const Dims &x = in_shape(n, 0), &y = shape(n.outputs[output]);
        // What padding gives; 0 without such an attribute.
        Tensor result(static_cast<size_t>(count(y)), n.get("value", 0.0F));
        each(y, [&](const Dims& at) {
            if (const auto p = from(at)) result[flat(y, at)] = in(n, 0)[flat(x, *p)];
        });
        return result;
    }

    Tensor move(const Node& n) const {
        const auto kind = n.kind;
        const Dims& x = in_shape(n, 0);
        if (kind == "Reshape") return in(n, 0);
        if (kind == "Transpose") {
            const auto perm = n.get("perm", Dims{});
            return gather(n, 0, [&](const Dims& at) -> std::optional<Dims> {
                Dims p(at.size());
                for (size_t d = 0; d < p.size(); ++d) p[static_cast<size_t>(perm[d])] = at[d];
                return p;
            });
        }
        if (kind == "Slice") {
            const auto starts = n.get("starts", Dims{}), axes = n.get("axes", Dims{}),
                       steps = n.get("steps", Dims(axes.size(), 1));
            return gather(n, 0, [&](Dims at) -> std::optional<Dims> {
                for (size_t i = 0; i < axes.size(); ++i) {
                    auto& p = at[static_cast<size_t>(axes[i])];
                    p = starts[i] + p * steps[i];
                }
                return at;
            });
        }
        if (kind == "Pad") {
            const auto pads = n.get("pads", Dims{});
            return gather(n, 0, [&](Dims at) -> std::optional<Dims> {
                for (size_t d = 0; d < at.size(); ++d) {
                    at[d] -= pads[d];
                    if (at[d] < 0 || at[d] >= x[d]) return std::nullopt;
                }
                return at;
            });
        }
        if (kind == "Expand") {
            return gather(n, 0, [&](const Dims& at) -> std::optional<Dims> {
                Dims p(x.size());
                for (size_t d = 0; d < x.size(); ++d)
                    p[d] = x[d] == 1 ? 0 : at[at.size() - x.size() + d];
                return p;
            });
        }
        const int64_t b = n.get("blocksize", int64_t{1});
        if (kind == "SpaceToDepth") {
            return gather(n, 0, [&](const Dims& at) -> std::optional<Dims> {
                const int64_t cell = at[1] / x[1];
                return Dims{at[0], at[1] % x[1], at[2] * b + cell / b, at[3] * b + cell % b};
            });
        }
        const int64_t c = x[1] / (b * b);
        const bool crd = n.get("mode", "DCR") == "CRD";
        return gather(n, 0, [&](const Dims& at) -> std::optional<Dims> {
            const int64_t cell = at[2] % b * b + at[3] % b;
            return Dims{at[0], crd ? at[1] * b * b + cell : cell * c + at[1], at[2] / b, at[3] / b};
        });
    }

    // It may be counted from the last one.
    size_t axis_of(const Node& n) const {
        const int64_t axis = n.get("axis", int64_t{0});
        return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(in_shape(n, 0).size())
                                            : axis);
    }

    Tensor concat(const Node& n) const {
        const Dims& y = shape(n.outputs[0]);
        const size_t axis = axis_of(n);
        Tensor result(static_cast<size_t>(count(y)));
        int64_t start = 0;
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            each(in_shape(n, i), [&](Dims at) {
                const float v = in(n, i)[flat(in_shape(n, i), at)];
                at[axis] += start;
                result[flat(y, at)] = v;
            });
            start += in_shape(n, i)[axis];
        }
        return result;
    }

    void split(const Node& n) {
        const size_t axis = axis_of(n);
        const Dims sizes = n.get("split", Dims());
        int64_t start = 0;
        for (size_t i = 0; i < n.outputs.size(); start += sizes[i++]) {
            if (n.outputs[i] == graph::none) continue;
            values[static_cast<size_t>(n.outputs[i])] =
                gather(n, i, [&](Dims at) -> std::optional<Dims> {
                    at[axis] += start;
                    return at;
                });
        }
    }

    Tensor elementwise(const Node& n) const {
        static constexpr std::string_view binaries[] = {"Add", "Sub", "Mul", "Div",  "Max",
                                                        "Min", "Pow", "Sum", "PRelu"};
        const Dims& y = shape(n.outputs[0]);
        Tensor result(static_cast<size_t>(count(y)));
        const bool two = std::ranges::find(binaries, n.kind) != std::end(binaries);
        each(y, [&](const Dims& at) {
            float v = broadcast(in(n, 0), in_shape(n, 0), at);
            if (!two) v = static_cast<float>(unary(n, v));
            for (size_t i = 1; two && i < n.inputs.size(); ++i) {
                v = binary(n.kind, v, broadcast(in(n, i), in_shape(n, i), at));
            }
            result[flat(y, at)] = v;
        });
        return result;
    }

    // Codes are numbers here.
    Tensor quantise(const Node& n) const {
        const Dims& y = shape(n.outputs[0]);
        const bool back = n.kind == "DequantizeLinear";
        const bool is_signed = g.value(n.outputs[0]).type.data_type == DataType::int8;
        const double low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
        const auto axis = static_cast<size_t>(n.get("axis", int64_t{1}));
        Tensor result(static_cast<size_t>(count(y)));
        each(y, [&](const Dims& at) {
            const size_t p = in(n, 1).size() == 1 ? 0 : static_cast<size_t>(at[axis]);
            const float scale = in(n, 1)[p], zero = has(n, 2) ? in(n, 2)[p] : 0;
            const float x = in(n, 0)[flat(y, at)];
            result[flat(y, at)] =
                back ? (x - zero) * scale
                     : static_cast<float>(std::clamp<double>(
                           std::nearbyint(x / scale) + static_cast<double>(zero), low, high));
        });
        return result;
    }

    Tensor base(const Node& n) const {
        using Rule = Tensor (Evaluator::*)(const Node&) const;
        static const std::map<std::string_view, Rule> rules = {
            {"Conv", &Evaluator::conv},
            {"ConvTranspose", &Evaluator::conv_transpose},
            {"Gemm", &Evaluator::product},
            {"MatMul", &Evaluator::product},
            {"MaxPool", &Evaluator::pool},
            {"AveragePool", &Evaluator::pool},
            {"GlobalAveragePool", &Evaluator::pool},
            {"GlobalMaxPool", &Evaluator::pool},
            {"Resize", &Evaluator::resize},
            {"Softmax", &Evaluator::softmax},
            {"ReduceMean", &Evaluator::reduce},
            {"ReduceSum", &Evaluator::reduce},
            {"ReduceMax", &Evaluator::reduce},
            {"ReduceMin", &Evaluator::reduce},
            {"Reshape", &Evaluator::move},
            {"Transpose", &Evaluator::move},
            {"Slice", &Evaluator::move},
            {"Pad", &Evaluator::move},
            {"Expand", &Evaluator::move},
            {"DepthToSpace", &Evaluator::move},
            {"SpaceToDepth", &Evaluator::move},
            {"Concat", &Evaluator::concat},
            {"QuantizeLinear", &Evaluator::quantise},
            {"DequantizeLinear", &Evaluator::quantise},
        };
        const auto rule = rules.find(n.kind);
        return rule == rules.end() ? elementwise(n) : (this->*rule->second)(n);
    }

    void run(const Node& n) {
        if (n.kind == "Split") return split(n);
        const auto has_operand = [](const graph::Operation& part) {
            return part.kind == "Add" || part.kind == "Mul";
        };
        // Operands of the parts stand behind the node's own.
        size_t operand =
            n.inputs.size() - static_cast<size_t>(std::ranges::count_if(n.fused, has_operand));
        Node alone = n;
        alone.inputs.resize(operand);
        Tensor result = base(alone);
        const Dims& dims = shape(n.outputs[0]);
        for (const graph::Operation& part : n.fused) {
            const bool two = has_operand(part);
            Dims at(dims.size());
            for (size_t k = 0; k < result.size(); ++k) {
                for (size_t d = dims.size(), rest = k; d-- > 0; rest /= size_t(dims[d]))
                    at[d] = static_cast<int64_t>(rest % size_t(dims[d]));
                result[k] = two ? binary(part.kind, result[k],
                                         broadcast(in(n, operand), in_shape(n, operand), at))
                                : static_cast<float>(unary(part, result[k]));
            }
            operand += two;
        }
        values[static_cast<size_t>(n.outputs[0])] = std::move(result);
    }
};

}  // namespace

std::vector<Tensor> run_reference(const Graph& graph, const std::vector<Tensor>& inputs) {
    Evaluator e{graph, std::vector<Tensor>(graph.values.size())};
    for (size_t i = 0; i < graph.values.size(); ++i) {
        const auto& v = graph.values[i];
        if (v.constant) e.values[i] = graph::read_numbers<float>(v);
    }
    for (size_t i = 0; i < inputs.size(); ++i)
        e.values[static_cast<size_t>(graph.inputs[i])] = inputs[i];
    for (const Node& node : graph.nodes) e.run(node);
    std::vector<Tensor> outputs;
    for (const graph::ValueId id : graph.outputs)
        outputs.push_back(e.values[static_cast<size_t>(id)]);
    return outputs;
}

}  // namespace vartml::test
