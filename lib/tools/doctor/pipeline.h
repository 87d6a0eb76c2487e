// SPDX-License-Identifier: Apache-2.0
// What the program vartml-pipeline says of a line of gst-launch: why it cannot be parsed, or its
// elements and what they said when the part that infers ran on a few test pictures.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/doctor/checks.h"

namespace vartml::doctor {

struct PipelineFault {
    std::string kind;  // "no-element", "no-property", "value", "link", "syntax"
    std::string text;  // GStreamer's sentence
    // no-element: its name; no-property: property, element; value: property, element, value.
    std::vector<std::string> names;
    std::vector<std::string> known = {};  // names that would have been right
};

struct PipelineElement {
    std::string name, factory, classification;
    std::map<std::string, std::string> properties = {};  // that are not at their default
    std::vector<std::string> feeds = {};                 // names of the elements behind it
};

struct PipelineMessage {
    bool is_error = true;
    std::string element, factory, text;
    std::string debug = {};
    // Of our elements; "" elsewhere.
    std::string id = {}, property = {}, file = {}, found = {}, expected = {}, fix = {};
};

struct Pipeline {
    std::string line = {};
    std::vector<PipelineFault> faults = {};
    std::vector<PipelineElement> elements = {};
    std::vector<PipelineMessage> messages = {};
    std::string trial = {};  // "done", "none", "timeout"; "": the child did not get that far

    const PipelineElement* find(std::string_view name) const;
    // The elements that feed into `name`, itself not among them, nearest first.
    std::vector<const PipelineElement*> before(std::string_view name) const;
    std::vector<const PipelineElement*> behind(std::string_view name) const;
    // The elements between two, in the order of the frames.
    std::vector<const PipelineElement*> between(std::string_view first,
                                                std::string_view last) const;
    // The element as the line has it, with other values of some properties: "vartmlinfer
    // model=m.rai device=auto".
    std::string launch_text(const PipelineElement& element,
                            const std::map<std::string, std::string>& instead = {}) const;
};

// Runs the child. Without the words "gst-launch-1.0", options and line ends that people copy along.
// Errors: not_found when it is not there, device when it ended by a signal, io.
Result<Pipeline> read_pipeline(const std::string& program, const std::string& line);

// Elements that are not there: the package to install, or what to type instead.

// Debian 13's package that has the element.
struct Package {
    std::string_view name;  // "" where it is not known
    bool is_sure = false;   // false: it has elements whose names begin so
};
Package package_of(std::string_view element);
// What does here the work of an element of another vendor's plugins; "" where there is none.
std::string_view replacement_of(std::string_view element);

// What can be wrong with a line of gst-launch: one function a mistake, one row each in the table of
// pipeline_rules.cpp.

// All rules, in the order of the report.
void apply_pipeline_rules(Examination& e, const Pipeline& pipeline);

// What to type instead, for a message of one of our elements.
std::string change_for(const Pipeline& pipeline, const PipelineMessage& message);

// "vartmlinfer ! vartmldecode ! videoscale" from the text of elements.
std::string joined(std::initializer_list<std::string> parts);

}  // namespace vartml::doctor
