// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN.
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/ops.h"
#include "lib/graph/products.h"

namespace vartml::graph {
namespace {

// What the three operators share: steps * batch rows of gates, one block of `hidden` per gate.
struct RecurrentSizes {
    int64_t steps, batch, inputs, hidden, gates, directions;
    bool batch_first;
    int64_t width = bounded_product(gates, hidden);
};

// Of shapes of rank 3.
RecurrentSizes recurrent_sizes(const Node& node, std::span<const int64_t> x,
                               std::span<const int64_t> r) {
    const bool batch_first = node.get("layout", int64_t{0}) != 0;
    const int64_t gates = node.kind == "LSTM" ? 4 : node.kind == "GRU" ? 3 : 1;
    return {x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], x[2], r[2], gates, r[0], batch_first};
}

// x [sequence, batch, input], w [directions, gates * hidden, input], r [directions, gates * hidden,
// hidden]; layout 1 has the batch first.
Result<Types> infer_recurrent(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &r = input_type(graph, node, 2);
    if (x.shape.size() != 3 || r.shape.size() != 3) {
        return bad_node(
            node, "has inputs " + to_string(x) + " and " + to_string(r) + ", expected rank 3");
    }
    const auto [sequence, batch, inputs, hidden, gates, directions, batch_first, width] =
        recurrent_sizes(node, x.shape, r.shape);
    const int64_t expected = node.get("direction", "forward") == "bidirectional" ? 2 : 1;
    const std::vector<int64_t> state = batch_first
                                           ? std::vector<int64_t>{batch, directions, hidden}
                                           : std::vector<int64_t>{directions, batch, hidden};
    // w, r, bias, lengths, states, peepholes.
    const std::vector<int64_t> shapes[] = {{directions, width, inputs},
                                           {directions, width, hidden},
                                           {directions, 2 * width},
                                           {batch},
                                           state,
                                           state,
                                           {directions, 3 * hidden}};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (!has_input(node, i)) continue;
        const Type& found = input_type(graph, node, i);
        if (directions == expected && found.shape == shapes[i - 1]) continue;
        return bad_node(node, "has the input " + to_string(found) + ", expected the shape " +
                                  to_string(shapes[i - 1]) + " in " + std::to_string(expected) +
                                  (expected == 1 ? " direction" : " directions"));
    }
    Type y{x.data_type, {sequence, directions, batch, hidden}};
    Type last{x.data_type, {directions, batch, hidden}};
    if (batch_first) {
        y.shape = {batch, sequence, directions, hidden};
        last.shape = {batch, directions, hidden};
    }
    return Types{y, last, last};
}

// 1 per gate element, per step.
uint64_t count_recurrent(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &r = input_type(graph, node, 2);
    return saturating_product(static_cast<uint64_t>(x.shape[0] * x.shape[1]),
                              static_cast<uint64_t>(r.shape[0] * r.shape[1]));
}

// Both matrices, per step.
uint64_t macs_recurrent(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &w = input_type(graph, node, 1),
               &r = input_type(graph, node, 2);
    return saturating_product(static_cast<uint64_t>(x.shape[0] * x.shape[1]),
                              static_cast<uint64_t>(w.elements() + r.elements()));
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// LSTM, GRU and RNN.

// ---- activations

struct Activation {
    std::string_view name;
    double (*of)(double x, double alpha, double beta);
    int parameters;  // how many of alpha and beta it takes
    double alpha = 0, beta = 0;
};

constexpr Activation activations[] = {
    {"Affine", [](double x, double a, double b) { return a * x + b; }, 2, 1, 0},
    {"Elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, 1, 1},
    {"HardSigmoid",
     [](double x, double a, double b) { return std::min(std::max(a * x + b, 0.0), 1.0); }, 2, 0.2,
     0.5},
    {"LeakyRelu", [](double x, double a, double) { return x < 0 ? a * x : x; }, 1, 0.01},
    {"Relu", [](double x, double, double) { return x < 0 ? 0 : x; }, 0},
    {"ScaledTanh", [](double x, double a, double b) { return a * std::tanh(b * x); }, 2, 1, 1},
    {"Sigmoid", [](double x, double, double) { return 1 / (1 + std::exp(-x)); }, 0},
    {"Softplus",
     [](double x, double, double) {
         return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
     },
     0},
    {"Softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); }, 0},
    {"Tanh", [](double x, double, double) { return std::tanh(x); }, 0},
    {"ThresholdedRelu", [](double x, double a, double) { return x > a ? x : 0; }, 1, 1},
};

// The activations of all directions; alphas and betas go in order to those that take them.
Result<std::vector<Activation>> activations_of(const Call& call,
                                               std::initializer_list<const char*> defaults,
                                               size_t directions) {
    std::vector<std::string> names;
    if (const auto given = call.node.attributes.find("activations");
        given != call.node.attributes.end()) {
        if (const auto* list = std::get_if<graph::Strings>(&given->second)) names = *list;
    }
    const size_t expected = defaults.size() * directions;
    const bool is_default = names.empty();
    while (is_default && names.size() < expected)
        names.insert(names.end(), defaults.begin(), defaults.end());
    if (names.size() != expected)
        return bad_data(call, "has " + std::to_string(names.size()) + " activations, expected " +
                                  std::to_string(expected));
    const auto alphas = call.node.get("activation_alpha", std::vector<float>());
    const auto betas = call.node.get("activation_beta", std::vector<float>());
    size_t alpha = 0, beta = 0;
    std::vector<Activation> found;
    for (const std::string& name : names) {
        const auto* row = std::ranges::find(activations, name, &Activation::name);
        if (row == std::end(activations)) {
            return Error{ErrorCode::unsupported, "node '" + call.node.name + "' (" +
                                                     call.node.kind + ") has the activation '" +
                                                     name + "', which ONNX does not define"};
        }
        found.push_back(*row);
        if (row->parameters > 0 && alpha < alphas.size()) found.back().alpha = alphas[alpha++];
        if (row->parameters > 1 && beta < betas.size()) found.back().beta = betas[beta++];
    }
    return found;
}

// ---- one direction

using Sizes = graph::RecurrentSizes;

// One direction at work. T is float or double.
template <typename T>
struct Pass {
    const Call& call;
    Sizes sizes;
    std::span<const Activation> act;
    double clip = 0;                // 0: none
    std::vector<T> recurrent = {};  // [hidden, gates * hidden]
    const T* bias = nullptr;        // of the inputs, then of the recurrence; [2, gates * hidden]
    const T* peepholes = nullptr;
    std::vector<T> from_x = {};                 // [steps, batch, gates * hidden], with its bias
    std::vector<T> from_h = {};                 // [batch, gates * hidden], of one step
    std::vector<T> h = {}, c = {};              // [batch, hidden]
    std::vector<T> scratch = {}, product = {};  // [hidden]

    // Activation number `i` of a sum of gate inputs.
    double activate(size_t i, double x) const {
        const Activation& a = act[i];
        return a.of(clip > 0 ? std::min(std::max(x, -clip), clip) : x, a.alpha, a.beta);
    }
    T recurrent_bias(int64_t gate, int64_t unit) const {
        return bias ? bias[sizes.width + gate * sizes.hidden + unit] : T();
    }
    // from_h = h * recurrent + its bias.
    void recur() {
        for (int64_t b = 0; b < sizes.batch; ++b)
            for (int64_t i = 0; i < sizes.width; ++i)
                from_h[static_cast<size_t>(b * sizes.width + i)] = recurrent_bias(0, i);
        add_product(sizes.batch, sizes.width, sizes.hidden, h.data(), sizes.hidden,
                    recurrent.data(), sizes.width, from_h.data(), sizes.width);
    }
};

// One step of one sequence: `x` and `r` are its gate inputs from the input and from the state.
template <typename T>
void rnn_step(Pass<T>& pass, const T* x, const T* r, T* h, T*) {
    for (int64_t u = 0; u < pass.sizes.hidden; ++u)
        h[u] = static_cast<T>(pass.activate(0, static_cast<double>(x[u] + r[u])));
}

// Gates z r h.
template <typename T>
void gru_step(Pass<T>& pass, const T* x, const T* r, T* h, T*) {
    const int64_t n = pass.sizes.hidden;
    const bool reset_behind = pass.call.node.get("linear_before_reset", int64_t{0}) != 0;
    const auto gate = [&](int64_t g, int64_t u) {
        return pass.activate(0, static_cast<double>(x[g * n + u] + r[g * n + u]));
    };
    T* from_h = pass.product.data();
    if (reset_behind) {
        for (int64_t u = 0; u < n; ++u)
            from_h[u] = static_cast<T>(gate(1, u) * static_cast<double>(r[2 * n + u]));
    } else {
        for (int64_t u = 0; u < n; ++u) {
            pass.scratch[static_cast<size_t>(u)] =
                static_cast<T>(gate(1, u) * static_cast<double>(h[u]));
            from_h[u] = pass.recurrent_bias(2, u);
        }
        add_product(1, n, n, pass.scratch.data(), n, pass.recurrent.data() + 2 * n,
                    pass.sizes.width, from_h, n);
    }
    for (int64_t u = 0; u < n; ++u) {
        const double z = gate(0, u);
        const double next = pass.activate(1, static_cast<double>(x[2 * n + u] + from_h[u]));
        h[u] = static_cast<T>((1 - z) * next + z * static_cast<double>(h[u]));
    }
}

// Gates i o f c, peepholes i o f.
template <typename T>
void lstm_step(Pass<T>& pass, const T* x, const T* r, T* h, T* c) {
    const int64_t n = pass.sizes.hidden;
    const bool coupled = pass.call.node.get("input_forget", int64_t{0}) != 0;
    for (int64_t u = 0; u < n; ++u) {
        const auto gate = [&](size_t activation, int64_t g, T cell) {
            T sum = x[g * n + u] + r[g * n + u];
            if (pass.peepholes && g < 3) sum += pass.peepholes[g * n + u] * cell;
            return pass.activate(activation, static_cast<double>(sum));
        };
        const double in = gate(0, 0, c[u]);
        const double forget = coupled ? 1 - in : gate(0, 2, c[u]);
        c[u] = static_cast<T>(forget * static_cast<double>(c[u]) + in * gate(1, 3, c[u]));
        const double out = gate(0, 1, c[u]);
        h[u] = static_cast<T>(out * pass.activate(2, static_cast<double>(c[u])));
    }
}

template <typename T>
using Step = void (*)(Pass<T>& pass, const T* x, const T* r, T* h, T* c);

// ---- all directions
// ------------------------------------------------------------------------------------------------

// The operands as T, and where the results go.
template <typename T>
struct Operands {
    explicit Operands(const Call& call)
        : x(call.inputs[0]),
          w(call.inputs[1]),
          r(call.inputs[2]),
          bias(input(call, 3)),
          h(input(call, 5)),
          c(input(call, 6)),
          peepholes(input(call, 7)),
          y(output(call, 0)),
          last_h(output(call, 1)),
          last_c(output(call, 2)) {}
    static Array input(const Call& call, size_t i) {
        return call.has_input(i) ? call.inputs[i] : Array();
    }
    static const Array& output(const Call& call, size_t i) {
        static const Array absent;
        return call.has_output(i) ? call.outputs[i] : absent;
    }
    Numbers<T> x, w, r, bias, h, c, peepholes;
    Sums<T> y, last_h, last_c;
};

// Row of state [directions, batch, hidden], or [batch, directions, hidden].
int64_t state_row(const Sizes& s, int64_t direction, int64_t b) {
    return s.batch_first ? b * s.directions + direction : direction * s.batch + b;
}

template <typename T>
void load_state(const Sizes& s, int64_t direction, const T* from, std::vector<T>& state) {
    state.assign(static_cast<size_t>(s.batch * s.hidden), T());
    for (int64_t b = 0; from && b < s.batch; ++b)
        std::copy_n(from + state_row(s, direction, b) * s.hidden, s.hidden,
                    state.data() + b * s.hidden);
}

template <typename T>
void store_state(const Sizes& s, int64_t direction, const std::vector<T>& state, T* to) {
    for (int64_t b = 0; b < s.batch; ++b)
        std::copy_n(state.data() + b * s.hidden, s.hidden,
                    to + state_row(s, direction, b) * s.hidden);
}

template <typename T>
void prepare(Pass<T>& pass, const Operands<T>& operands, int64_t direction) {
    const Sizes& s = pass.sizes;
    const int64_t width = s.width, rows = s.steps * s.batch;
    std::vector<T> weights(static_cast<size_t>(s.inputs * width));
    transpose(width, s.inputs, operands.w.data() + direction * width * s.inputs, weights.data());
    pass.recurrent.resize(static_cast<size_t>(s.hidden * width));
    transpose(width, s.hidden, operands.r.data() + direction * width * s.hidden,
              pass.recurrent.data());
    pass.bias = operands.bias.data() ? operands.bias.data() + direction * 2 * width : nullptr;
    pass.peepholes =
        operands.peepholes.data() ? operands.peepholes.data() + direction * 3 * s.hidden : nullptr;
    pass.from_x.assign(static_cast<size_t>(rows * width), T());
    for (int64_t i = 0; pass.bias && i < rows; ++i)
        std::copy_n(pass.bias, width, pass.from_x.data() + i * width);
    add_product(rows, width, s.inputs, operands.x.data(), s.inputs, weights.data(), width,
                pass.from_x.data(), width);
    pass.from_h.resize(static_cast<size_t>(s.batch * width));
    pass.scratch.resize(static_cast<size_t>(s.hidden));
    pass.product.resize(static_cast<size_t>(s.hidden));
    load_state(s, direction, operands.h.data(), pass.h);
    load_state(s, direction, operands.c.data(), pass.c);
}

// Steps behind the end of a sequence leave its state and give 0.
template <typename T>
void run_direction(const Call& call, Pass<T>& pass, Operands<T>& operands, int64_t direction,
                   bool reverse, std::span<const int64_t> lengths, Step<T> step) {
    const Sizes& s = pass.sizes;
    prepare(pass, operands, direction);
    for (int64_t t = 0; t < s.steps; ++t) {
        pass.recur();
        for (int64_t b = 0; b < s.batch; ++b) {
            const int64_t length = lengths[static_cast<size_t>(b)];
            if (t >= length) continue;
            const int64_t time = reverse ? length - 1 - t : t;
            const int64_t row = s.batch_first ? b * s.steps + time : time * s.batch + b;
            T* h = pass.h.data() + b * s.hidden;
            step(pass, pass.from_x.data() + row * s.width, pass.from_h.data() + b * s.width, h,
                 pass.c.data() + b * s.hidden);
            if (!call.has_output(0)) continue;
            const int64_t y_row = s.batch_first ? (b * s.steps + time) * s.directions + direction
                                                : (time * s.directions + direction) * s.batch + b;
            std::copy_n(h, s.hidden, operands.y.data() + y_row * s.hidden);
        }
    }
    if (call.has_output(1)) store_state(s, direction, pass.h, operands.last_h.data());
    if (call.has_output(2)) store_state(s, direction, pass.c, operands.last_c.data());
}

// The length of each sequence.
Result<std::vector<int64_t>> lengths_of(const Call& call, const Sizes& sizes) {
    std::vector<int64_t> lengths(static_cast<size_t>(sizes.batch), sizes.steps);
    if (!call.has_input(4)) return lengths;
    const Numbers<int64_t> given(call.inputs[4]);
    for (size_t b = 0; b < lengths.size(); ++b) {
        lengths[b] = given[static_cast<int64_t>(b)];
        if (lengths[b] < 0 || lengths[b] > sizes.steps)
            return bad_data(call, "has a sequence of " + std::to_string(lengths[b]) +
                                      " steps, expected 0 to " + std::to_string(sizes.steps));
    }
    return lengths;
}

template <typename T>
Result<void> recur_as(const Call& call, const Sizes& sizes, std::span<const Activation> act,
                      Step<T> step) {
    const auto lengths = lengths_of(call, sizes);
    if (!lengths) return lengths.error();
    Operands<T> operands(call);
    if (call.has_output(0)) operands.y.fill(T());
    const bool reverse = call.node.get("direction", "forward") == "reverse";
    const size_t each = act.size() / static_cast<size_t>(sizes.directions);
    for (int64_t d = 0; d < sizes.directions; ++d) {
        Pass<T> pass{.call = call,
                     .sizes = sizes,
                     .act = act.subspan(static_cast<size_t>(d) * each, each),
                     .clip = static_cast<double>(call.node.get("clip", 0.0F))};
        run_direction(call, pass, operands, d, reverse || d == 1, *lengths, step);
    }
    operands.y.store();
    operands.last_h.store();
    operands.last_c.store();
    return {};
}

Result<void> recur(const Call& call, std::initializer_list<const char*> defaults,
                   Step<float> narrow, Step<double> wide) {
    const DataType type = call.inputs[0].type;
    const Sizes sizes =
        graph::recurrent_sizes(call.node, call.inputs[0].shape, call.inputs[2].shape);
    const auto act = activations_of(call, defaults, static_cast<size_t>(sizes.directions));
    if (!act) return act.error();
    if (type == DataType::float64) return recur_as<double>(call, sizes, *act, wide);
    if (!with_float(type, [](auto) {})) return no_type(call, type);
    return recur_as<float>(call, sizes, *act, narrow);
}

Result<void> rnn(const Call& call) {
    return recur(call, {"Tanh"}, rnn_step<float>, rnn_step<double>);
}
Result<void> gru(const Call& call) {
    return recur(call, {"Sigmoid", "Tanh"}, gru_step<float>, gru_step<double>);
}
Result<void> lstm(const Call& call) {
    return recur(call, {"Sigmoid", "Tanh", "Tanh"}, lstm_step<float>, lstm_step<double>);
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"LSTM",
     3,
     8,
     1,
     3,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f "
     "direction:s|forward|reverse|bidirectional hidden_size:i input_forget:i layout:i",
     infer_recurrent,
     count_recurrent,
     cpu::lstm,
     {},
     macs_recurrent},
    {"GRU",
     3,
     6,
     1,
     2,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f "
     "direction:s|forward|reverse|bidirectional hidden_size:i layout:i linear_before_reset:i",
     infer_recurrent,
     count_recurrent,
     cpu::gru,
     {},
     macs_recurrent},
    {"RNN",
     3,
     6,
     1,
     2,
     "activation_alpha:fs activation_beta:fs activations:ss clip:f "
     "direction:s|forward|reverse|bidirectional hidden_size:i layout:i",
     infer_recurrent,
     count_recurrent,
     cpu::rnn,
     {},
     macs_recurrent},
};

}  // namespace

std::span<const OpInfo> recurrent_ops() {
    return rows;
}

}  // namespace vartml::graph
