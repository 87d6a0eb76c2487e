// SPDX-License-Identifier: Apache-2.0
// Where the parts of the package are, fixed when it was built.
#pragma once
#include <string_view>

namespace vartml {

// Path of the program vartml.
std::string_view installed_compiler();
// Path of the program vartml-onnxruntime.
std::string_view installed_onnxruntime_program();

}  // namespace vartml
