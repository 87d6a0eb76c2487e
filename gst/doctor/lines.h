// SPDX-License-Identifier: Apache-2.0
// What the program vartml-pipeline found out, a JSON object per line on descriptor 3.
#pragma once
#include <string>
#include <vector>

#include <gst/gst.h>

namespace vartml::gst::doctor {

// The line could not be parsed as it is. `names` are the element, property and value that the
// sentence speaks of; `known` are the names that would have been right.
void write_fault(const char* kind, const std::string& text, const std::vector<std::string>& names,
                 const std::vector<std::string>& known);
// An element with the properties that are not at their default, and what it feeds.
void write_element(GstElement* element);
// An ERROR or WARNING of the bus.
void write_message(GstMessage* message);
// The last line: "done", "none" where there was nothing to try, "timeout".
void write_end(const char* trial);

// Name of the factory; "" for an element without one.
std::string factory_name(GstElement* element);
// Classification of the factory, such as "Filter/Video".
std::string classification(GstElement* element);
// The element that a linked pad leads to, a new reference; nullptr where there is none, or where it
// is in another bin.
GstElement* peer_element(GstPad* pad);

// A line of gst-launch as elements, in state NULL.

// A bin, whatever the number of elements; nullptr after writing the faults.
GstElement* parse_line(const std::string& line);

}  // namespace vartml::gst::doctor
