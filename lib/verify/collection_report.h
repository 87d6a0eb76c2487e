// SPDX-License-Identifier: Apache-2.0
// A collection as a table and as JSON, which is also where rows are kept between calls.
#pragma once
#include <string>
#include <vector>

#include "lib/verify/collection.h"

namespace vartml::verify {

// The heading of a table over models of these names, and a line of it.
std::string table_heading(const std::vector<std::string>& names);
std::string table_line(const ModelRow& row, const std::vector<std::string>& names);
// Counts and percentages over the models that ONNX Runtime runs, and what it refuses apart.
std::string summary_text(const Collection& collection);

std::string json_text(const Collection& collection);
// The rows of a file that json_text made; none of a file of another form. Errors: bad_model for
// what is no JSON.
Result<std::vector<ModelRow>> rows_of_json(const std::string& text);

}  // namespace vartml::verify
