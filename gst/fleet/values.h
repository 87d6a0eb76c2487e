// SPDX-License-Identifier: Apache-2.0
// Values of the buckets: JSON, as long as nobody else writes there.
#pragma once
#include <cstddef>
#include <string>

namespace vartml::fleet {

/// A member of the object that the text is; "" where it is none, or the member no text.
std::string text_of(const std::string& value, const char* member);

/// The same of a count; 0 where it is none.
size_t count_of(const std::string& value, const char* member);

/// Whether a member is `true`.
bool flag_of(const std::string& value, const char* member);

}  // namespace vartml::fleet
