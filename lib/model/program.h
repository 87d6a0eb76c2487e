// SPDX-License-Identifier: Apache-2.0
// The program container: one partition's graph without its weights.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/compiled_model.h"

namespace vartml::artifact {

inline constexpr const char* npu_target = "softnpu-1";
inline constexpr const char* cpu_target = "cpu-1";
// A CPU partition whose operators, all of kind OnnxRuntime, are computed by ONNX Runtime.
inline constexpr const char* onnxruntime_target = "onnxruntime-1";

// Each weight starts at a multiple of this in weights.bin.
inline constexpr size_t weight_alignment = 64;

struct WrittenProgram {
    std::string bytes;  // program.vnp
    std::vector<Bytes>
        weights;  // weights.bin in pieces, padding included; they point into the graph
    uint64_t weights_size = 0;
    uint32_t weights_crc32c = 0;
};
// Errors: internal, naming what of the partition cannot be written.
Result<WrittenProgram> write_program(const CompiledModel& model, const Partition& partition);

struct ProgramSource {
    Bytes program, weights;
    uint32_t weights_crc32c = 0;        // as the manifest records it
    std::shared_ptr<const void> owner;  // keeps `weights`
    std::string where;                  // for sentences
};
// Checks the program by itself, against the manifest's record of the partition and against the
// operators, and fills graph, arena and layers. The constants are spans into `weights`.
// Errors: bad_model; unsupported for another format or target.
Result<void> read_program(const ProgramSource& source, const CompiledModel& model,
                          Partition& partition);

}  // namespace vartml::artifact
