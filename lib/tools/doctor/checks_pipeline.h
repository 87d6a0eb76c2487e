// SPDX-License-Identifier: Apache-2.0
// What to do about a model that cannot be compiled.
#pragma once
#include <string>

namespace vartml::doctor {

// The line to change or to type after the compiler's sentence about the model: the way out that
// ends the sentence, as a command where it is an option of the compiler. Never the command that has
// just failed.
std::string way_out(const std::string& sentence, const std::string& model);

}  // namespace vartml::doctor
