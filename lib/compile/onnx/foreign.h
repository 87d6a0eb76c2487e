// SPDX-License-Identifier: Apache-2.0
// Nodes that are no operators of the IR: each becomes a small ONNX model that ONNX Runtime runs.
//
// A tensor that the IR cannot hold (a sequence, strings, an optional value) is no value of the
// graph: whoever reads it has the nodes that make it in its own model.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <vartml/result.h>

#include "lib/compile/onnx/builder.h"
#include "lib/compile/onnx/check.h"
#include "lib/compile/onnx/import.h"
#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {

class ForeignNodes {
public:
    ForeignNodes(Builder& builder, const ForeignOptions& options)
        : builder_(builder), options_(options) {}

    bool allowed() const { return options_.allowed; }
    // The model's file, which stays, before the first node.
    void begin(ModelFile& file, const Opsets& opsets);

    // Whether a tensor of that name is there that the IR cannot hold.
    bool holds(const std::string& tensor) const { return made_.contains(tensor); }
    void add_names(std::set<std::string>& names) const {
        for (const auto& [name, item] : made_) names.insert(name);
    }
    bool reads_any(const pb::NodeProto& node) const;
    // A constant that the IR cannot hold.
    void keep(const pb::TensorProto& constant);
    // Appends the node, which stays valid, and binds those of its outputs that are read. `why` says
    // why it is none of ours, to be read behind "which". Errors: unsupported where nothing says how
    // large its outputs are, or where ONNX Runtime refuses it; the sentence names the node.
    Result<void> add(const pb::NodeProto& node, const std::string& why);

private:
    // A node or a constant, and where what it reads comes from.
    struct Item {
        const pb::NodeProto* node = nullptr;
        const pb::TensorProto* constant = nullptr;
        std::map<std::string, ValueId> values;
        std::map<std::string, std::shared_ptr<const Item>> items;
    };
    // What a node makes.
    struct Output {
        std::string name;
        std::optional<graph::Type> type;  // of data type unknown: nothing that the IR holds
        bool only_declared = false;       // by the model: the type may be an upper bound
    };
    struct Outputs {
        std::vector<Output> list;  // those that are there
        bool data_dependent = false;
        bool unread = false;    // nobody reads any of them, so that they need no size
        bool complete() const;  // all types are known
    };
    // The values that a model reads, in its order, by the names they have in it.
    using Inputs = std::vector<std::pair<std::string, ValueId>>;

    Result<std::shared_ptr<const Item>> item_of(const pb::NodeProto& node) const;
    Result<void> collect(const std::shared_ptr<const Item>& item, std::set<const Item*>& seen,
                         pb::GraphProto& graph, Inputs& inputs) const;
    void add_values(pb::GraphProto& graph, const Inputs& inputs, bool upper_bounds) const;
    pb::ModelProto make_model(const pb::GraphProto& graph) const;
    Outputs infer(const pb::GraphProto& nodes, const Inputs& inputs,
                  const std::vector<std::string>& names) const;
    Result<void> ask(const pb::NodeProto& node, const std::string& model, Outputs& outputs);
    Result<void> settle(const pb::NodeProto& node, const ForeignOutput& answer, Output& output,
                        Outputs& outputs);
    Error refused(const pb::NodeProto& node, const std::string& problem,
                  const std::string& way_out) const;

    Builder& builder_;
    const ForeignOptions& options_;
    ModelFile* file_ = nullptr;
    pb::ModelProto head_;  // versions alone
    Opsets opsets_;
    std::unordered_set<std::string_view> read_;                // for what the graph gives
    std::map<std::string, std::shared_ptr<const Item>> made_;  // by tensor
};

// Execution order of a foreign graph.

// Tensors that a node reads from the graph it stands in; for one with subgraphs also what those
// take from outside.
std::set<std::string> reads(const pb::NodeProto& node);

// Node indices such that each tensor is made before it is read, subgraphs' reads included; the
// order of the file where that leaves a choice. `known` are tensors that exist before the first
// node. Errors: bad_model for a tensor that nobody makes, one made twice, and a cycle; the sentence
// names node and tensor.
Result<std::vector<int>> sort_nodes(const std::string& file, const pb::GraphProto& graph,
                                    const std::set<std::string>& known);

}  // namespace vartml::onnx
