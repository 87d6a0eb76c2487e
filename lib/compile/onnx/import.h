// SPDX-License-Identifier: Apache-2.0
// From an ONNX file to a graph in canonical form. The only interface of the folder; nothing behind
// it leaves it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <vartml/log.h>
#include <vartml/result.h>

#include "lib/graph/graph.h"

namespace vartml::onnx {

// An output of a model, as ONNX Runtime says.
struct ForeignOutput {
    int32_t elem_type = 0;  // number of TensorProto.DataType; 0: no tensor
    bool has_shape = false;
    std::vector<int64_t> shape;  // the largest that was seen, where the data decide
    bool varies = false;         // with the data
};

// Operators that are none of ours.
struct ForeignOptions {
    bool allowed = false;  // they become operators that ONNX Runtime runs
    // Loads the bytes of an ONNX model in ONNX Runtime and says what its outputs are. Errors:
    // not_found where there is no ONNX Runtime, else its own sentence. May be empty.
    std::function<Result<std::vector<ForeignOutput>>(const std::string& model)> ask = {};
};

struct ImportOptions {
    std::map<std::string, std::vector<int64_t>>
        input_shapes;  // by input name; binds symbolic dimensions
    ForeignOptions foreign = {};
    // Whether the refusal of a model without sizes names one that can be imported, which is found
    // by trying.
    bool find_example = true;
};

// Something the user should know that is no failure.
struct Message {
    LogLevel level = LogLevel::info;
    std::string text;  // begins with the file
};

// What an ONNX node was before it took its canonical form, or became several nodes.
struct Origin {
    std::string op_type, domain;  // "" for ONNX's own domain
};
using Origins = std::map<std::string, Origin>;  // by the name in Node::sources

struct Imported {
    graph::Graph graph;     // constants point into memory that they own
    Origins origins;        // of all nodes that are left
    std::string signature;  // 32 hexadecimal digits over the file and its external data
    std::map<std::string, std::string> metadata;  // metadata_props
    uint32_t operators = 0;  // ONNX nodes that are left after folding, before fusion
    uint32_t folded = 0;  // ONNX nodes that folding and dead code took away, constants not counted
    uint64_t ops = 0;     // counted as `ops` of graph/ops.h
    std::vector<Message> messages;
};

// Reads, checks and imports `path`. Nodes come in execution order, Identity and Dropout are gone,
// what constants alone decide is folded, every type is known. Errors: not_found and io with the
// system's reason; bad_model for a file that is no or a damaged model; unsupported for operators,
// domains, operator sets and types that are refused (one line per node, at most 20, then a count);
// invalid_argument for a shape option that is missing or does not fit.
Result<Imported> import_onnx(const std::string& path, const ImportOptions& options = {});

// Names of the tensors that the nodes of the main graph make; none inside subgraphs and functions.
// Errors: as import_onnx for a file that cannot be read or parsed.
Result<std::set<std::string>> tensor_names(const std::string& path);

// The signature alone. Errors: as import_onnx for a file that cannot be read or parsed.
Result<std::string> model_signature(const std::string& path);

// Outputs of a model that are no tensors: maps of names to numbers.

struct MapOutputs {
    // Output and the tensor of its numbers, in the order of the names that ZipMap lists; a map
    // itself is in the order of its keys.
    std::map<std::string, std::string> numbers;
    std::vector<std::string> inside;  // such tensors that are no outputs themselves
};

// Errors: as import_onnx for a file that cannot be read or parsed.
Result<MapOutputs> map_outputs(const std::string& path);

}  // namespace vartml::onnx
