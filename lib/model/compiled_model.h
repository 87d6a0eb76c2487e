// SPDX-License-Identifier: Apache-2.0
// A compiled model in memory, and its way to and from the containers on disk.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/graph/graph.h"

namespace vartml::artifact {

enum class Compilation : uint8_t { standard, cpu_partition };
enum class PartitionKind : uint8_t { npu, cpu };

// Static schedule entry: cycles of the compiler's estimate.
struct Layer {
    std::string name;
    uint64_t start_cycle = 0, end_cycle = 0, ops = 0, bytes_read = 0, bytes_written = 0;
};

struct Partition {
    std::string name;  // "vaiml_par_0", "vaiml_cpu_subgraph_0"
    PartitionKind kind = PartitionKind::npu;
    std::string target;                       // "softnpu-1", "cpu-1", "onnxruntime-1"
    graph::Graph graph;                       // the program
    std::vector<TensorInfo> inputs, outputs;  // in the graph's order
    uint32_t operators = 0;                   // ONNX nodes it came from
    uint64_t ops = 0;
    uint32_t columns = 4;
    std::vector<uint64_t> arena_offsets;  // per graph value; only values in the arena count
    uint64_t arena_size_bytes = 0;
    std::vector<Layer> layers;
    std::vector<int32_t> node_layers;  // per node, index into layers or -1
    std::string checksums;             // of program and weights, and which file; set by read
};

// Border: source or destination -1.
struct Edge {
    int32_t source = -1, destination = -1;
    std::string temp_buffer_name, tensor_name;
    std::vector<uint32_t> shape;
    DataType data_type = DataType::unknown;
    bool data_dependent = false;
};

struct Count {
    uint32_t operators = 0;
    uint64_t ops = 0;
    uint32_t subgraphs = 0;
};

// Why a node is not on the NPU; codes as a report has them.
struct Fallback {
    std::string node, op_type, code, text;
    int32_t partition = -1;  // where it runs instead; -1: nowhere
    // For the report alone; not in the manifest.
    std::string domain = {};
    int32_t candidate = -1;  // the rejected subgraph that it was in
};

struct Summary {
    std::string os, commit, model, model_data_type, device_data_type;
    Count total, supported, offloaded;
    uint32_t compile_errors = 0, below_threshold = 0, above_max = 0, max_subgraphs = 7, folded = 0;
    double threshold_percent = 20;
    std::vector<Fallback> fallbacks;
};

// Text and JSON entries beside the programs, by path in the directory form.
struct File {
    std::string name;
    std::string bytes;
};

struct CompiledModel {
    std::string tool_version, device, target;
    Compilation compilation = Compilation::standard;
    std::string model_name, model_signature;
    std::array<uint8_t, 32> config_sha256{};
    uint32_t desired_batch_size = 1, actual_batch_size = 1;
    uint16_t stats_level = 40;
    bool exact_floats = false;  // float work stays f32 wherever the model runs
    std::vector<TensorInfo> inputs, outputs;
    std::vector<Partition> partitions;
    std::vector<uint32_t> execution_order;
    std::vector<Edge> edges;
    Summary summary;
    std::vector<File> files;
    std::string format;                 // "directory", "rai", "tar"; set by read
    std::shared_ptr<const void> owner;  // the mappings that graphs point into; set by read
    const std::string* find_file(std::string_view name) const;
};

// The model's name with characters that file names do not have replaced by '_', at most 128 bytes.
std::string file_stem(std::string_view model_name);

// Where a .tar.gz is unpacked. The folder is made with mode 0700.
struct Extraction {
    std::string path;   // "" = a private temporary folder, which is gone when read returns
    bool keep = false;  // true: stays, and is used again when its manifest is that of the archive;
                        // false: is removed with the model, `path` gets a number if it exists
};

struct ReadOptions {
    bool programs = true;  // false: manifest and files only, graphs stay empty
    Extraction extraction = {};
};

// Opens a compiled model by content: a directory with vaiml_par_0, a directory with exactly one
// .rai, a .rai or a .tar.gz. Weights are used in place from read-only mappings. Every check is made
// before a byte is trusted. Errors: not_found, io,
// bad_model, unsupported; the sentence names file, part, found and expected; invalid_argument for
// an extraction path where something else lies.
Result<CompiledModel> read(const std::string& path, const ReadOptions& options = {});

struct DirectoryOptions {
    bool rai = false;  // also NAME.rai in the directory
    bool tar = false;  // also NAME.tar.gz
    std::vector<File> extras =
        {};  // files that are no entries: compile.log, debug/…, vaiml_par_0/0/debug/…
};

// Writes the directory form to `path`, a single .rai or a single .tar.gz, atomically: a temporary
// beside it, synced, renamed into place. The directory replaces one that vartml made; another
// existing directory is refused (invalid_argument). Same model, same bytes. Entries found in
// model.files are written as they are, those that follow from the model (partition-info.json,
// flexmlrt-hsi.json, buffer_info.json, NAME_mla_stats.yaml, fail_safe_summary.json,
// connectivity_metadata.json) are added. Errors: io, not_found; internal for a model that the
// format cannot hold, naming what is wrong in it; unsupported for one that is too large for a
// .tar.gz.
Result<void> write_directory(const CompiledModel& model, const std::string& path,
                             const DirectoryOptions& options = {});
Result<void> write_rai(const CompiledModel& model, const std::string& path);
Result<void> write_tar(const CompiledModel& model, const std::string& path);

}  // namespace vartml::artifact
