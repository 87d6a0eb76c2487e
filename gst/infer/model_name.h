// SPDX-License-Identifier: Apache-2.0
// What a model is called in records, traces and on the screen.
#pragma once
#include <string>

namespace vartml::gst::infer {

// The name that is compiled in, unless it says nothing (model, best, end2end …): then that of the
// file, or of the nearest folder that says something. `path` is what the user gave.
std::string model_name(const std::string& compiled_in, const std::string& path);

}  // namespace vartml::gst::infer
