// SPDX-License-Identifier: Apache-2.0
// Where the parts of the package are, fixed when it was built.
#pragma once
#include <string>
#include <string_view>

namespace vartml {

// Path of the program vartml, which libraries start as a child: the environment variable
// VARTML_COMPILER, else where it was installed.
std::string vartml_program();
std::string_view installed_vartml_program();
// Path of the module behind which XRT is: the environment variable VARTML_XRT_MODULE, else where it
// was installed; "" where this build has none.
std::string xrt_module();
std::string_view installed_xrt_module();
// Path of the program vartml-onnxruntime.
std::string_view installed_onnxruntime_program();

// Where things are kept that can be made again.

// `vartml` in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), which need not exist; ""
// where neither variable holds an absolute path.
std::string user_cache_folder();

// The program vartml-onnxruntime, behind which ONNX Runtime is.

// Its path: the environment variable VARTML_ONNXRUNTIME_CHILD, beside the running program or in the
// libexec beside its folder, where it was installed; "" where it is nowhere.
std::string find_onnxruntime_program();

// What to do about an absent ONNX Runtime, behind a semicolon.
inline constexpr std::string_view how_to_get_onnxruntime =
    "install it (Debian: libonnxruntime1.21; pip: onnxruntime; npm: onnxruntime-node), or name the "
    "library in the environment variable VARTML_ONNXRUNTIME";

// What ONNX Runtime says of a model that it does not run, as the end of a sentence: with the way
// out where the build at hand lacks an operator, a version of the operators or of the file.
std::string with_way_out(std::string onnxruntime_says);

}  // namespace vartml
