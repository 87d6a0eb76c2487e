// SPDX-License-Identifier: Apache-2.0
// Which libvartml this is.
#pragma once
#include <string_view>

namespace vartml {

/// "1.0.0": major changes with incompatible interfaces, minor with additions, patch with
/// corrections.
std::string_view version();
/// Commit of the sources, 40 hexadecimal digits; 40 zeros where it is not known.
std::string_view source_commit();

}  // namespace vartml
