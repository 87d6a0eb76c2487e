// SPDX-License-Identifier: Apache-2.0
// Activations that our own kernels compute.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "kernels/ops/activation.h"
#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// nullopt where the kernels have no such activation. `prefix` is put before attribute names
// ("Clip." for a fused part, else "").
std::optional<kernels::Epilogue> find_activation(const graph::Node& node, std::string_view kind,
                                                 const std::string& prefix);

// dst = activation of src, both fp32 and dense in one order; dst may be src.
void lower_activation(Lowering& lowering, const kernels::Epilogue& epilogue, const View& src,
                      const View& dst, std::string_view name);

}  // namespace vartml::softnpu
