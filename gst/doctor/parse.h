// SPDX-License-Identifier: Apache-2.0
// A line of gst-launch as elements, in state NULL.
#pragma once
#include <gst/gst.h>

#include <string>

namespace vartml::gst::doctor {

// A bin, whatever the number of elements; nullptr after writing the faults.
GstElement* parse_line(const std::string& line);

}  // namespace vartml::gst::doctor
