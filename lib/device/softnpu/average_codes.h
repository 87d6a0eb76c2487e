// SPDX-License-Identifier: Apache-2.0
// Averages of codes over windows of pictures.
#pragma once
#include <array>

#include "lib/device/softnpu/codes.h"

namespace vartml::softnpu {

// A window of two axes; `pads` in front.
struct Window {
    std::array<int64_t, 2> size, strides, dilations, pads;
    bool counts_padding = false;
};

// Pictures [N, C, H, W] with the channels contiguous.
void emit_average(Lowering& lowering, const View& src, const Coding& from, const View& dst,
                  const Coding& to, const Window& window, std::string_view name);

}  // namespace vartml::softnpu
