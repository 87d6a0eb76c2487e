// SPDX-License-Identifier: Apache-2.0
// Post-operations.
#include "lib/run/softnpu/post_ops.h"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/ops/rows.h"
#include "lib/run/softnpu/copy_step.h"

namespace vartml::softnpu {

namespace {

using dnnl::algorithm;

// Operators without parameters, or with fixed ones.
struct Row {
    std::string_view kind;
    algorithm alg;
    float alpha = 0, beta = 0;
};
constexpr Row fixed[] = {
    {"Relu", algorithm::eltwise_relu},
    {"Sigmoid", algorithm::eltwise_logistic},
    {"SiLU", algorithm::eltwise_swish, 1},
    {"HardSwish", algorithm::eltwise_hardswish, 1.0F / 6, 0.5F},
    {"Tanh", algorithm::eltwise_tanh},
    {"Mish", algorithm::eltwise_mish},
    {"Exp", algorithm::eltwise_exp},
    {"Log", algorithm::eltwise_log},
    {"Sqrt", algorithm::eltwise_sqrt},
    {"Abs", algorithm::eltwise_abs},
    {"Round", algorithm::eltwise_round},
    {"Softplus", algorithm::eltwise_soft_relu, 1},
    {"Neg", algorithm::eltwise_linear, -1, 0},
    {"Reciprocal", algorithm::eltwise_pow, 1, -1},
};

}  // namespace

std::optional<Eltwise> find_eltwise(const graph::Operation& operation) {
    const std::string_view kind = operation.kind;
    for (const Row& row : fixed) {
        if (row.kind == kind) return Eltwise{row.alg, row.alpha, row.beta};
    }
    const auto get = [&](std::string_view name, float fallback) {
        return operation.get(name, fallback);
    };
    if (kind == "LeakyRelu") return Eltwise{algorithm::eltwise_relu, get("alpha", 0.01F)};
    if (kind == "Elu") return Eltwise{algorithm::eltwise_elu, get("alpha", 1.0F)};
    if (kind == "QuickGelu") return Eltwise{algorithm::eltwise_swish, get("alpha", 1.702F)};
    if (kind == "HardSigmoid") {
        return Eltwise{algorithm::eltwise_hardsigmoid, get("alpha", 0.2F), get("beta", 0.5F)};
    }
    if (kind == "Clip") {
        constexpr float most = std::numeric_limits<float>::max();
        const float low = get("min", -most), high = get("max", most);
        if (low == 0 && high == most) return Eltwise{algorithm::eltwise_relu};
        return Eltwise{algorithm::eltwise_clip, low, high};
    }
    if (kind == "Gelu") {
        const bool tanh = operation.get("approximate", "none") == "tanh";
        return Eltwise{tanh ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf};
    }
    return std::nullopt;
}

Result<std::vector<PostOp>> make_post_ops(Lowering& lowering, const graph::Node& node,
                                          const Order& order) {
    std::vector<PostOp> result;
    size_t operand = 3;  // a fused operator has exactly three leading inputs
    for (const graph::Operation& part : node.fused) {
        if (part.kind == "Add" || part.kind == "Mul") {
            const auto alg = part.kind == "Add" ? algorithm::binary_add : algorithm::binary_mul;
            result.push_back({{alg},
                              lowering.dense(node.inputs[operand++], order,
                                             lowering.stored_type(node.outputs[0]))});
            continue;
        }
        const auto eltwise = find_eltwise(part);
        if (!eltwise) {
            return Error{ErrorCode::unsupported, "node '" + node.name +
                                                     "': the software NPU cannot apply " +
                                                     part.kind + " inside " + node.type()};
        }
        result.push_back({*eltwise, {}});
    }
    return result;
}

dnnl::primitive_attr attributes(const std::vector<PostOp>& post) {
    dnnl::post_ops ops;
    for (const PostOp& p : post) {
        if (p.operand.buffer < 0) {
            ops.append_eltwise(p.op.algorithm, p.op.alpha, p.op.beta);
        } else {
            ops.append_binary(p.op.algorithm, descriptor(p.operand));
        }
    }
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attr.set_post_ops(ops);
    return attr;
}

void add_operands(const std::vector<PostOp>& post, OnednnCall& call) {
    for (size_t i = 0; i < post.size(); ++i) {
        const View& operand = post[i].operand;
        if (operand.buffer < 0) continue;
        const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
        call.arguments.push_back({id, operand, descriptor(operand)});
    }
}

namespace {

using kernels::Activation;
using kernels::Epilogue;

struct ActivationRow {
    std::string_view kind;
    Activation activation;
};
constexpr ActivationRow activations[] = {
    {"Relu", Activation::relu},
    {"LeakyRelu", Activation::leaky},
    {"Clip", Activation::clip},
    {"Sigmoid", Activation::sigmoid},
    {"SiLU", Activation::silu},
    {"HardSigmoid", Activation::hard_sigmoid},
    {"HardSwish", Activation::hard_swish},
    {"Tanh", Activation::tanh},
    {"Exp", Activation::exp},
};

class ActivationStep final : public Step {
public:
    ActivationStep(const Epilogue& epilogue, View src, View dst)
        : epilogue_(epilogue), src_(std::move(src)), dst_(std::move(dst)) {}

    Extent extent() const override { return {src_.elements(), src_.elements() / 2}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const auto size = static_cast<int64_t>(size_bytes(dst_.type));
        const std::byte* const src = address(bases, src_);
        std::byte* const dst = address(bases, dst_) + first * size;
        const auto count = static_cast<size_t>(last - first);
        const auto finish = kernels::find_finish(
            epilogue_.activation, false, kernels::Element::f32,
            dst_.type == DataType::bf16 ? kernels::Element::bf16 : kernels::Element::f32);
        if (src_.type == DataType::float32) {
            const auto* floats = reinterpret_cast<const float*>(src) + first;
            return finish(epilogue_, {floats, 0, nullptr, 0, dst, 0, 1, count});
        }
        constexpr size_t chunk = 1024;
        float floats[chunk];
        const auto* halves = reinterpret_cast<const kernels::bf16*>(src) + first;
        for (size_t i = 0; i < count; i += chunk) {
            const size_t now = std::min(chunk, count - i);
            kernels::convert_row(halves + i, floats, now);
            finish(epilogue_,
                   {floats, 0, nullptr, 0, dst + i * static_cast<size_t>(size), 0, 1, now});
        }
    }

    std::string describe() const override {
        const auto row =
            std::ranges::find(activations, epilogue_.activation, &ActivationRow::activation);
        return std::string(row == std::end(activations) ? "none" : row->kind) + " " + text(src_) +
               " -> " + text(dst_);
    }

private:
    Epilogue epilogue_;
    View src_, dst_;
};

}  // namespace

std::optional<Epilogue> find_activation(const graph::Operation& operation) {
    const auto row = std::ranges::find(activations, operation.kind, &ActivationRow::kind);
    if (row == std::end(activations)) return std::nullopt;
    constexpr float most = std::numeric_limits<float>::max();
    Epilogue e;
    e.activation = row->activation;
    if (e.activation == Activation::leaky) e.alpha = operation.get("alpha", 0.01F);
    if (e.activation == Activation::clip) {
        e.alpha = operation.get("min", -most);
        e.beta = operation.get("max", most);
    }
    if (e.activation == Activation::hard_sigmoid) {
        e.alpha = operation.get("alpha", 0.2F);
        e.beta = operation.get("beta", 0.5F);
    }
    return e;
}

void lower_activation(Lowering& lowering, const Epilogue& epilogue, const View& src,
                      const View& dst, std::string_view name) {
    lowering.emit(std::make_unique<ActivationStep>(epilogue, src, dst), name, {&src, &dst});
}

}  // namespace vartml::softnpu
