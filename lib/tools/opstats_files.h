// SPDX-License-Identifier: Apache-2.0
// The raw stats buffers of a folder, in the order in which they are shown.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/buffer/buffer_name.h"

namespace vartml::tools {

struct OpstatsFile {
    std::string path;
    profiling::BufferName name;
    std::string base;   // the network's name without "_slice<NN>"
    std::string slice;  // "slice00"; "" for an inference of one device
};

// Sorted by program, activation, inference and name. Errors: not_found with the naming scheme and
// how many files there are; io.
Result<std::vector<OpstatsFile>> find_opstats_files(const std::string& folder);

// "NAME_slice<NN>": a part of an inference on several devices.
void set_slice(OpstatsFile& file);

}  // namespace vartml::tools
