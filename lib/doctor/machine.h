// SPDX-License-Identifier: Apache-2.0
// Which machine this is.
#pragma once
#include <cstdint>
#include <string>

namespace vartml::doctor {

// "Intel(R) Xeon(R) Processor @ 2.80GHz"; where the system gives no name, its architecture.
std::string processor_model();

// Path of the running program.
std::string own_program();

// That programs can still take; 0 where the system does not say.
uint64_t available_memory_bytes();

}  // namespace vartml::doctor
