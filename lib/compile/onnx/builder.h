// SPDX-License-Identifier: Apache-2.0
// The graph while an importer fills it: names of tensors, and nodes that are folded as they come.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <vartml/result.h>

#include "lib/graph/graph.h"

namespace vartml::onnx {

using graph::Attributes;
using graph::ValueId;
using ValueIds = std::vector<ValueId>;

// The first failure sticks: later calls do nothing and return ids of no meaning, so that a lowering
// reads as the formula it is; the caller asks error() once per ONNX node.
class Builder {
public:
    explicit Builder(std::string file) : file_(std::move(file)) {}

    graph::Graph graph;

    // The ONNX node that the next calls belong to.
    void begin_node(const std::string& name);
    void fail(ErrorCode code, std::string_view text);  // `model.onnx: node 'x' <text>`
    void fail(const Error& error);                     // whose sentence names the node already
    const std::optional<Error>& error() const { return error_; }
    void warn(std::string_view text);  // as fail(), for a message

    // Appends a node with one output of a name of its own, or with `names.size()` outputs named
    // like ONNX tensors
    // ("" = absent). What constants decide becomes constants.
    ValueId emit(std::string kind, ValueIds inputs, Attributes attributes = {},
                 std::string domain = {});
    ValueIds emit_named(std::string kind, ValueIds inputs, Attributes attributes,
                        std::string domain, const std::vector<std::string>& names);
    // Appends what ONNX Runtime computes: the bytes of a model whose inputs are `inputs`, and whose
    // outputs, tensors with these names and types, are bound. `why` says why it is none of ours.
    void emit_foreign(const std::string& model, const ValueIds& inputs,
                      const std::vector<std::string>& names, const std::vector<graph::Type>& types,
                      bool data_dependent, const std::string& why);
    ValueId constant(std::string name, graph::Type type, graph::Constant constant);
    ValueId floats(std::vector<int64_t> shape, const std::vector<float>& values);
    ValueId ints(const std::vector<int64_t>& values);  // 1-D int64

    const graph::Type& type(ValueId id) const;
    // Values of a constant of type int64 or int32, flattened; nothing for any other value.
    std::optional<std::vector<int64_t>> int_values(ValueId id) const;
    std::optional<std::vector<float>> float_values(ValueId id) const;

    // Tensor names of the scope. A value that emit() named itself takes the first name it is bound
    // to.
    void bind(const std::string& tensor, ValueId id);
    ValueId find(const std::string& tensor) const;  // graph::none if there is none
    std::unordered_map<std::string, ValueId> scope;
    std::unordered_set<ValueId> four_bits;  // constants of 4 bits in the file, of 8 here
    // What the file says of tensors with all their dimensions: bounds for what the inputs leave
    // open.
    std::unordered_map<std::string, graph::Type> declared;
    std::vector<graph::Type> declared_outputs;  // of the model, those that are in `declared`
    std::vector<std::string> warnings;          // each begins with the file

    std::string unique_value_name(std::string_view stem) { return unique(value_names_, stem); }
    std::string unique_node_name(std::string_view stem) { return unique(node_names_, stem); }
    const std::string& node() const { return node_; }
    const std::string& file() const { return file_; }

    // What was appended since mark() can be taken back, errors included.
    struct Mark {
        size_t values, nodes;
        bool node_name_used;
        std::string node;
        std::unordered_map<std::string, ValueId> scope;  // of If, whose branches have names
    };
    Mark mark(bool with_scope) const {
        return {graph.values.size(), graph.nodes.size(), node_name_used_, node_,
                with_scope ? scope : std::unordered_map<std::string, ValueId>{}};
    }
    void go_back(Mark mark);

private:
    ValueId without_elements(ValueId id);
    std::string unique(std::unordered_set<std::string>& taken, std::string_view stem);

    std::string file_;
    std::string node_;             // unique name of the ONNX node
    bool node_name_used_ = false;  // its first node bears its name
    std::optional<Error> error_;
    std::unordered_set<std::string> value_names_, node_names_;
    std::unordered_set<ValueId> unnamed_;  // values that emit() named
};

// A name that reports and files may carry: valid UTF-8 without control characters.
bool is_clean_name(std::string_view name);

// Whether the operator has as many parts as outputs, so that those without a name count: Split.
bool counts_outputs(std::string_view kind);

}  // namespace vartml::onnx
