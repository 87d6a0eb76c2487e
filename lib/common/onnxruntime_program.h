// SPDX-License-Identifier: Apache-2.0
// The program vartml-onnxruntime, behind which ONNX Runtime is.
#pragma once
#include <string>
#include <string_view>

namespace vartml {

// Its path: the environment variable VARTML_ONNXRUNTIME_CHILD, beside the running program or in the
// libexec beside its folder, where it was installed; "" where it is nowhere.
std::string find_onnxruntime_program();

// What to do about an absent ONNX Runtime, behind a semicolon.
inline constexpr std::string_view how_to_get_onnxruntime =
    "install it (Debian: libonnxruntime1.21; pip: onnxruntime; npm: onnxruntime-node), or name the "
    "library in the environment variable VARTML_ONNXRUNTIME";

}  // namespace vartml
