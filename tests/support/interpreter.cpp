// SPDX-License-Identifier: Apache-2.0
#include "tests/support/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "lib/graph/evaluate.h"
#include "lib/graph/evaluate_rules.h"
#include "lib/graph/numbers.h"
#include "lib/graph/window.h"

namespace vartml::graph {

namespace {

using Numbers = std::vector<double>;
using Ints = std::vector<int64_t>;

Numbers random_numbers(int64_t count, uint32_t seed, double range) {
    std::mt19937 random(seed);
    Numbers numbers(static_cast<size_t>(count));
    // Not std::uniform_real_distribution: libraries differ.
    for (double& v : numbers) v = (random() / 4294967296.0 * 2 - 1) * range;
    return numbers;
}

// Two spatial axes, as plain as can be.
struct Plane {
    int64_t n, c, h, w;
    explicit Plane(const Type& t) : n(t.shape[0]), c(t.shape[1]), h(t.shape[2]), w(t.shape[3]) {}
    size_t at(int64_t b, int64_t k, int64_t y, int64_t x) const {
        return static_cast<size_t>(((b * c + k) * h + y) * w + x);
    }
    bool has(int64_t y, int64_t x) const { return y >= 0 && y < h && x >= 0 && x < w; }
};

class Interpreter {
public:
    explicit Interpreter(const Graph& graph) : graph_(graph) {}

    Result<std::vector<Numbers>> run(uint32_t seed, double range) {
        for (const ValueId id : graph_.inputs) {
            Value& value = graph_.value(id);
            if (value.constant) continue;
            uint32_t hash = seed;
            for (const char c : value.name) hash = hash * 31 + static_cast<unsigned char>(c);
            set(id, random_numbers(value.type.elements(), hash, range));
        }
        for (const Node& node : graph_.nodes) {
            if (auto ok = run_node(node); !ok) return ok.error();
        }
        std::vector<Numbers> results;
        for (const ValueId id : graph_.outputs) results.push_back(get(id));
        return results;
    }

private:
    Numbers get(ValueId id) const { return read_numbers<double>(graph_.value(id)); }
    void set(ValueId id, const Numbers& numbers) {
        graph_.value(id).constant = write_numbers<double>(graph_.value(id).type.data_type, numbers);
    }
    const Type& type(ValueId id) const { return graph_.value(id).type; }

    Result<void> run_node(const Node& node) {
        const auto parts = node.parts();
        if (parts.size() == 1) return run_base(node);
        // Each part as a node of its own, on the same output value.
        Node base = node;
        base.kind = std::string(parts[0]);
        const bool slot = base.kind == "Conv" || base.kind == "ConvTranspose" ||
                          base.kind == "Gemm" || base.kind == "MatMul";
        size_t operand = slot ? 3 : 1;
        base.inputs.resize(operand);
        while (base.inputs.back() == none) base.inputs.pop_back();
        if (auto ok = run_base(base); !ok) return ok;
        for (size_t i = 1; i < parts.size(); ++i) {
            Node part{};
            part.kind = std::string(parts[i]);
            part.name = node.name;
            part.inputs = part.outputs = node.outputs;
            if (part.kind == "Add" || part.kind == "Mul")
                part.inputs.push_back(node.inputs[operand++]);
            const std::string prefix = part.kind + '.';
            for (const auto& [key, value] : node.attributes) {
                if (key.starts_with(prefix)) part.attributes[key.substr(prefix.size())] = value;
            }
            if (auto ok = run_base(part); !ok) return ok;
        }
        return {};
    }

    Result<void> run_base(const Node& node) {
        const std::string& kind = node.kind;
        const bool window = kind == "Conv" || kind == "ConvTranspose" || kind.ends_with("Pool");
        if (window && type(node.inputs[0]).shape.size() != 4) {
            return Error{ErrorCode::unsupported, "the interpreter knows windows of two axes only"};
        }
        if (kind == "Conv") return conv(node), Result<void>();
        if (kind == "ConvTranspose") return conv_transpose(node), Result<void>();
        if (kind == "Gemm") return gemm(node), Result<void>();
        if (kind == "MaxPool" || kind == "AveragePool") return pool(node), Result<void>();
        if (kind == "GlobalAveragePool" || kind == "GlobalMaxPool")
            return global_pool(node), Result<void>();
        if (kind == "BatchNormalization") return batch_norm(node), Result<void>();
        if (kind == "Resize" && type(node.inputs[0]) == type(node.outputs[0])) {
            return set(node.outputs[0], get(node.inputs[0])), Result<void>();
        }
        auto constants = evaluate(graph_, node);
        if (!constants) return constants.error();
        for (size_t i = 0; i < node.outputs.size(); ++i)
            graph_.value(node.outputs[i]).constant = (*constants)[i];
        return {};
    }

    Numbers bias_of(const Node& node, int64_t count) const {
        if (node.inputs.size() > 2 && node.inputs[2] != none) return get(node.inputs[2]);
        return Numbers(static_cast<size_t>(count), 0);
    }

    void conv(const Node& node) {
        const Plane x(type(node.inputs[0])), w(type(node.inputs[1])), y(type(node.outputs[0]));
        const Window window = *window_of(graph_, node);
        const Numbers in = get(node.inputs[0]), weight = get(node.inputs[1]),
                      bias = bias_of(node, y.c);
        Numbers out(static_cast<size_t>(type(node.outputs[0]).elements()));
        const int64_t filters = y.c / window.group;
        for (int64_t b = 0; b < y.n; ++b)
            for (int64_t o = 0; o < y.c; ++o)
                for (int64_t r = 0; r < y.h; ++r)
                    for (int64_t s = 0; s < y.w; ++s) {
                        double sum = bias[static_cast<size_t>(o)];
                        for (int64_t c = 0; c < w.c; ++c)
                            for (int64_t i = 0; i < w.h; ++i)
                                for (int64_t j = 0; j < w.w; ++j) {
                                    const int64_t row = r * window.strides[0] +
                                                        i * window.dilations[0] -
                                                        window.pads_begin[0];
                                    const int64_t column = s * window.strides[1] +
                                                           j * window.dilations[1] -
                                                           window.pads_begin[1];
                                    if (x.has(row, column))
                                        sum += in[x.at(b, o / filters * w.c + c, row, column)] *
                                               weight[w.at(o, c, i, j)];
                                }
                        out[y.at(b, o, r, s)] = sum;
                    }
        set(node.outputs[0], out);
    }

    void conv_transpose(const Node& node) {
        const Plane x(type(node.inputs[0])), w(type(node.inputs[1])), y(type(node.outputs[0]));
        const Window window = *window_of(graph_, node);
        const Numbers in = get(node.inputs[0]), weight = get(node.inputs[1]),
                      bias = bias_of(node, y.c);
        Numbers out(static_cast<size_t>(type(node.outputs[0]).elements()));
        for (size_t i = 0; i < out.size(); ++i)
            out[i] = bias[i / static_cast<size_t>(y.h * y.w) % bias.size()];
        const int64_t inputs = x.c / window.group;
        for (int64_t b = 0; b < x.n; ++b)
            for (int64_t c = 0; c < x.c; ++c)
                for (int64_t r = 0; r < x.h; ++r)
                    for (int64_t s = 0; s < x.w; ++s) {
                        for (int64_t o = 0; o < w.c; ++o)
                            for (int64_t i = 0; i < w.h; ++i)
                                for (int64_t j = 0; j < w.w; ++j) {
                                    const int64_t row = r * window.strides[0] +
                                                        i * window.dilations[0] -
                                                        window.pads_begin[0];
                                    const int64_t column = s * window.strides[1] +
                                                           j * window.dilations[1] -
                                                           window.pads_begin[1];
                                    if (y.has(row, column))
                                        out[y.at(b, c / inputs * w.c + o, row, column)] +=
                                            in[x.at(b, c, r, s)] * weight[w.at(c, o, i, j)];
                                }
                    }
        set(node.outputs[0], out);
    }

    void gemm(const Node& node) {
        const Type &a = type(node.inputs[0]), &b = type(node.inputs[1]), &y = type(node.outputs[0]);
        const bool ta = node.get("transA", int64_t{0}), tb = node.get("transB", int64_t{0});
        const int64_t rows = y.shape[0], columns = y.shape[1], depth = a.shape[ta ? 0 : 1];
        const Numbers left = get(node.inputs[0]), right = get(node.inputs[1]);
        const bool biased = node.inputs.size() > 2 && node.inputs[2] != none;
        Numbers c(static_cast<size_t>(y.elements()), 0);
        if (biased) {
            const auto strides = broadcast_strides(type(node.inputs[2]).shape, y.shape);
            const Numbers some = get(node.inputs[2]);
            for (size_t i = 0; i < c.size(); ++i) {
                const auto r = static_cast<int64_t>(i) / columns,
                           s = static_cast<int64_t>(i) % columns;
                c[i] = some[static_cast<size_t>(r * strides[0] + s * strides[1])];
            }
        }
        const double alpha = node.get("alpha", 1.0F), beta = node.get("beta", 1.0F);
        Numbers out;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t s = 0; s < columns; ++s) {
                double sum = 0;
                for (int64_t k = 0; k < depth; ++k) {
                    sum += left[static_cast<size_t>(ta ? k * rows + r : r * depth + k)] *
                           right[static_cast<size_t>(tb ? s * b.shape[1] + k : k * columns + s)];
                }
                out.push_back(alpha * sum + beta * c[out.size()]);
            }
        set(node.outputs[0], out);
    }

    void pool(const Node& node) {
        const Plane x(type(node.inputs[0])), y(type(node.outputs[0]));
        const Window window = *window_of(graph_, node);
        const bool maximum = node.kind == "MaxPool",
                   pads_count = node.get("count_include_pad", int64_t{0}) != 0;
        const Numbers in = get(node.inputs[0]);
        Numbers out(static_cast<size_t>(type(node.outputs[0]).elements()));
        for (int64_t b = 0; b < y.n; ++b)
            for (int64_t c = 0; c < y.c; ++c)
                for (int64_t r = 0; r < y.h; ++r)
                    for (int64_t s = 0; s < y.w; ++s) {
                        double sum = 0, most = -std::numeric_limits<double>::infinity(), count = 0;
                        for (int64_t i = 0; i < window.kernel[0]; ++i)
                            for (int64_t j = 0; j < window.kernel[1]; ++j) {
                                const int64_t row = r * window.strides[0] +
                                                    i * window.dilations[0] - window.pads_begin[0];
                                const int64_t column = s * window.strides[1] +
                                                       j * window.dilations[1] -
                                                       window.pads_begin[1];
                                const bool inside = x.has(row, column);
                                if (inside) {
                                    sum += in[x.at(b, c, row, column)];
                                    most = std::max(most, in[x.at(b, c, row, column)]);
                                }
                                count += inside || pads_count;
                            }
                        out[y.at(b, c, r, s)] = maximum ? most : sum / count;
                    }
        set(node.outputs[0], out);
    }

    void global_pool(const Node& node) {
        const Plane x(type(node.inputs[0]));
        const Numbers in = get(node.inputs[0]);
        const auto area = static_cast<size_t>(x.h * x.w);
        Numbers out;
        for (size_t at = 0; at < in.size(); at += area) {
            const auto plane = std::span(in).subspan(at, area);
            double sum = 0;
            for (const double v : plane) sum += v;
            out.push_back(node.kind == "GlobalMaxPool" ? std::ranges::max(plane)
                                                       : sum / static_cast<double>(area));
        }
        set(node.outputs[0], out);
    }

    void batch_norm(const Node& node) {
        Numbers numbers = get(node.inputs[0]), parameters[4];
        for (size_t i = 0; i < 4; ++i) parameters[i] = get(node.inputs[i + 1]);
        const auto& shape = type(node.inputs[0]).shape;
        size_t inner = 1;
        for (size_t i = 2; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
        for (size_t i = 0; i < numbers.size(); ++i) {
            const size_t c = i / inner % static_cast<size_t>(shape[1]);
            numbers[i] = (numbers[i] - parameters[2][c]) /
                             std::sqrt(parameters[3][c] + node.get("epsilon", 1e-5F)) *
                             parameters[0][c] +
                         parameters[1][c];
        }
        set(node.outputs[0], numbers);
    }

    Graph graph_;  // known values are its constants
};

}  // namespace

Result<std::vector<std::vector<double>>> interpret(const Graph& graph, uint32_t seed,
                                                   double range) {
    return Interpreter(graph).run(seed, range);
}

void randomise_constants(Graph& graph, uint32_t seed) {
    for (Value& value : graph.values) {
        if (!value.constant || !is_float(value.type.data_type) || uniform_number(value) != 0.0)
            continue;
        value.constant = write_numbers<double>(value.type.data_type,
                                               random_numbers(value.type.elements(), ++seed, 0.5));
    }
}

}  // namespace vartml::graph
