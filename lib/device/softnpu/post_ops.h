// SPDX-License-Identifier: Apache-2.0
// The parts of a fused operator behind the first, as post-operations of a oneDNN primitive.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// An element-wise operator as oneDNN's algorithm with its two parameters.
struct Eltwise {
    dnnl::algorithm algorithm;
    float alpha = 0, beta = 0;
};
// nullopt where oneDNN has no such algorithm. `prefix` is put before attribute names ("Clip." for a
// fused part, else "").
std::optional<Eltwise> find_eltwise(const graph::Node& node, std::string_view kind,
                                    std::string_view prefix);

struct PostOps {
    dnnl::post_ops ops;
    struct Operand {
        int argument;  // DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1
        View view;
    };
    std::vector<Operand> operands;
};
// `order` and `type` are those of the destination, which operands must share. Errors: unsupported,
// naming node and part.
Result<PostOps> make_post_ops(Lowering& lowering, const graph::Node& node, const Order& order);

}  // namespace vartml::softnpu
