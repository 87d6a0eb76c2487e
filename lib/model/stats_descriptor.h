// SPDX-License-Identifier: Apache-2.0
// The bytes of the entry opstatsdesc.bin.
#pragma once
#include <string>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/compiled_model.h"
#include "lib/trace/descriptor.h"

namespace vartml::artifact {

// Same descriptor, same bytes.
std::string write_descriptor(const profiling::Descriptor& descriptor);

// Checks all before it is used: every index, every id, every text. `where` starts each sentence.
// Errors: bad_model, unsupported for another major version.
Result<profiling::Descriptor> read_descriptor(Bytes bytes, const std::string& where);

// The descriptor of a compiled model. Errors: those above; not_found for a model without, naming
// the option that makes one.
Result<profiling::Descriptor> descriptor_of(const CompiledModel& model, const std::string& where);

}  // namespace vartml::artifact
