// SPDX-License-Identifier: Apache-2.0
// Elements that are not there: the package to install, or what to type instead.
#pragma once
#include <string>
#include <string_view>

namespace vartml::doctor {

// Debian 13's package that has the element; "" where it is not known.
std::string_view package_of(std::string_view element);
// What does here the work of an element of another vendor's plugins; "" where there is none.
std::string_view replacement_of(std::string_view element);

}  // namespace vartml::doctor
