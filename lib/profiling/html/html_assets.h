// SPDX-License-Identifier: Apache-2.0
// Style and script of a page.
#pragma once

namespace vartml::profiling {

extern const char* const html_style;
extern const char* const html_script;

}  // namespace vartml::profiling
