// SPDX-License-Identifier: Apache-2.0
// The manifest of a compiled model: everything but the bytes of its entries.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/checks.h"
#include "lib/model/compiled_model.h"
#include "lib/model/vartml_archive_generated.h"

namespace vartml::artifact {

// One entry as the manifest records it. `offset` counts only in a .rai.
struct Blob {
    std::string name;
    rai::BlobKind kind = rai::BlobKind::File;
    uint64_t offset = 0, size = 0;
    uint32_t alignment = 64, crc32c = 0;
};

struct Manifest {
    CompiledModel model;  // graphs and files are empty
    std::vector<Blob> blobs;
    struct Program {
        uint32_t program = 0;
        int32_t weights = -1;  // indices into blobs
    };
    std::vector<Program> programs;  // per partition
    uint64_t file_size = 0;         // of the .rai; 0 in model.vmf
};

// The size-prefixed FlatBuffer. The same model and blobs give the same bytes, and the length does
// not depend on offsets and file size as long as they are all zero or all not.
std::string write_manifest(const CompiledModel& model, const std::vector<Blob>& blobs,
                           uint64_t file_size);

// Reads and checks all that can be checked without the entries. `where` starts each sentence.
// Errors: bad_model, unsupported for another format.
Result<Manifest> read_manifest(Bytes bytes, const std::string& where, bool in_rai);

// The rules for the tensors and edges of a model; read_manifest calls it, tests may.
bool check_model(Checks& checks, const CompiledModel& model);

// Path of the entries of a partition in the directory form, with trailing slash: "vaiml_par_0/0/".
std::string entry_folder(const Partition& partition);

}  // namespace vartml::artifact
