// SPDX-License-Identifier: Apache-2.0
// What the counters of a raw stats buffer belong to: operators, tensors, groups and edges of a
// compiled model (entry opstatsdesc.bin). Plain structs; lib/model reads and writes the bytes.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace vartml::profiling {

inline constexpr const char* descriptor_entry = "opstatsdesc.bin";

// What an inference leaves behind at which level; a level includes those below.
inline constexpr unsigned level_inference = 40, level_ports = 50, level_operators = 70,
                          level_pmu_per_operator = 100;

struct Pmu {
    std::string recipe;            // "" or one of AxiRd AxiWr AxiRdWr KernelUtil HmxMacs
    std::vector<uint32_t> events;  // raw ids, at most 8; empty with a recipe
    bool empty() const { return recipe.empty() && events.empty(); }
};

struct Tensor {
    std::string name;     // several may have one: a border tensor and its copy inside
    uint16_t dtype = 0;   // DataType
    uint16_t layout = 0;  // MemoryLayout
    std::vector<int64_t> shape;
    uint64_t bytes = 0;  // of a frame, as laid out, padding included
    bool constant = false;
};

// Numbers named kind, memory, partition, dtypes, inputs, outputs are indices into the lists of
// Descriptor. Bytes and counts are of one inference of `batch` frames (constants are read once for
// all of them), from the program's types; 2^64 - 1 is more than 64 bits hold.
struct Op {
    uint32_t id = 0;  // unique in the model
    // Of the graph's node, unique in its partition; "<partition>/in/<tensor>" and
    // "<partition>/out/<tensor>" of layout operators at a border; "" of sync and barrier.
    std::string name;
    uint32_t kind = 0, memory = 0;
    std::vector<uint16_t> dtypes;
    uint32_t partition = 0;
    int32_t layer = -1;  // index in the partition's estimate file, which is of one frame
    uint64_t out_bytes = 0, read_bytes = 0, write_bytes = 0, macs = 0, ops = 0;
    bool data_movement = false;
    std::vector<uint32_t> inputs, outputs;  // tensors
    std::vector<std::string> onnx_nodes;
    std::string attributes;
};

// Operators in execution order. Of each partition: one "sync" (waits for the partition or the port
// before it), then each node followed by one "barrier" (a thread waits for its team at the end of
// that operator); layout operators of the border stand before and behind the nodes, each with a
// barrier too.
struct Group {
    uint32_t engine = 0;
    std::vector<Op> ops;
};

struct Core {
    uint16_t index = 0;
    std::vector<Group> groups;
};

struct Edge {
    uint32_t from = 0, to = 0;  // Op::id
    bool data = true;           // false: order alone
};

inline constexpr const char* sync_kind = "sync";
inline constexpr const char* barrier_kind = "barrier";
inline constexpr const char* layout_kind = "convert_layout";  // at a border
inline constexpr const char* npu_engine = "SNPU";
inline constexpr const char* cpu_engine = "CPU";
inline constexpr const char* system_memory = "DDR";

struct Descriptor {
    uint16_t version_major = 1, version_minor = 0;
    std::string network;
    std::array<uint8_t, 16> model_signature{};
    uint16_t compiled_level = level_inference;
    uint32_t stats_batchsize = 1, batch = 1;
    bool ddr_stats = false;
    Pmu pmu;
    std::string target;             // "softnpu-1"
    uint64_t nominal_clock_hz = 0;  // of the estimate's cycles
    std::vector<std::string> kinds, memories, engines, dtypes, partitions;
    std::vector<Tensor> tensors;
    // Core 0 alone on the software NPU: its cores are alike, and one above those listed has the
    // groups of core 0. Below level_operators the lists of operators are empty.
    std::vector<Core> cores;
    std::vector<Edge> edges;
    std::vector<std::string> estimate_entries;  // one per NPU partition

    const std::string& kind(const Op& op) const { return kinds[op.kind]; }
    bool is_sync(const Op& op) const { return kind(op) == sync_kind; }
    bool is_barrier(const Op& op) const { return kind(op) == barrier_kind; }
};

}  // namespace vartml::profiling
