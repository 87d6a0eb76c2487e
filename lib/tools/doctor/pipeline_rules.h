// SPDX-License-Identifier: Apache-2.0
// What can be wrong with a line of gst-launch: one function a mistake, one row each in the table of
// pipeline_rules.cpp.
#pragma once
#include <string>

#include "lib/tools/doctor/checks.h"
#include "lib/tools/doctor/pipeline.h"

namespace vartml::doctor {

// All rules, in the order of the report.
void apply_pipeline_rules(Examination& e, const Pipeline& pipeline);

// What to type instead, for a message of one of our elements.
std::string change_for(const Pipeline& pipeline, const PipelineMessage& message);

// "vartmlinfer ! vartmldecode ! videoscale" from the text of elements.
std::string joined(std::initializer_list<std::string> parts);

}  // namespace vartml::doctor
