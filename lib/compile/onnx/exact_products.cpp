// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/exact_products.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {
namespace {

// Operators that multiply codes, and where their weights, the zero points of those and the zero
// point of what they multiply are; -1: that is uint8 always.
struct Row {
    std::string_view kind;
    int weights, zero_points, source_zero_point;
};
constexpr Row products[] = {
    {"ConvInteger", 1, 3, 2},   {"DynamicQuantizeMatMul", 1, 3, -1},
    {"MatMulInteger", 1, 3, 2}, {"MatMulIntegerToFloat", 1, 5, 4},
    {"QGemm", 3, 5, 2},         {"QLinearConv", 3, 5, 2},
    {"QLinearMatMul", 3, 5, 2},
};

class Twin {
public:
    explicit Twin(ModelFile& file) : file_(file), graph_(*file.proto().mutable_graph()) {
        for (const pb::TensorProto& tensor : graph_.initializer())
            constants_[tensor.name()] = &tensor;
        for (const pb::NodeProto& node : graph_.node()) {
            if (node.op_type() == "DynamicQuantizeLinear") made_.insert(node.output(0));
            for (const pb::AttributeProto& attribute : node.attribute())
                if (node.op_type() == "Constant" && attribute.name() == "value")
                    constants_[node.output(0)] = &attribute.t();
        }
    }

    Result<bool> run() {
        bool changed = false;
        for (pb::NodeProto& node : *graph_.mutable_node()) {
            const auto row = std::ranges::find(products, node.op_type(), &Row::kind);
            if (row == std::end(products) || node.input_size() <= row->weights) continue;
            auto done = run(node, *row);
            if (!done) return done.error();
            changed = changed || *done;
        }
        for (pb::TensorProto& tensor : added_) *graph_.add_initializer() = std::move(tensor);
        return changed;
    }

private:
    // The input of a node; "" where it has none.
    static std::string input(const pb::NodeProto& node, int index) {
        return index < node.input_size() ? node.input(index) : "";
    }

    const pb::TensorProto* constant(const std::string& name, pb::TensorProto::DataType type) const {
        const auto at = constants_.find(name);
        return at != constants_.end() && at->second->data_type() == type ? at->second : nullptr;
    }

    // Signed codes are multiplied by other instructions, and only with signed weights.
    bool multiplies_uint8(const pb::NodeProto& node, const Row& row) const {
        return row.source_zero_point < 0 || made_.contains(node.input(0)) ||
               constant(input(node, row.source_zero_point), pb::TensorProto::UINT8);
    }

    Result<bool> run(pb::NodeProto& node, const Row& row) {
        const std::string name = input(node, row.weights), zero = input(node, row.zero_points);
        const pb::TensorProto* weights = constant(name, pb::TensorProto::INT8);
        const pb::TensorProto* zeros = constant(zero, pb::TensorProto::INT8);
        if (!multiplies_uint8(node, row) || !weights || (!zero.empty() && !zeros)) return false;
        pb::TensorProto none;  // stands for the zero point 0
        none.set_name("zero");
        none.set_data_type(pb::TensorProto::INT8);
        none.set_raw_data(std::string(1, '\0'));
        while (node.input_size() <= row.zero_points) node.add_input("");
        for (const auto& [index, from] :
             {std::pair{row.weights, weights}, {row.zero_points, zeros ? zeros : &none}}) {
            const std::string unsigned_name =
                (from == &none ? std::string("zero") : node.input(index)) + suffix;
            if (auto ok = add(*from, unsigned_name); !ok) return ok.error();
            node.set_input(index, unsigned_name);
        }
        return true;
    }

    // The numbers of `from` with 128 added, once.
    Result<void> add(const pb::TensorProto& from, const std::string& name) {
        if (std::ranges::find(added_, name, &pb::TensorProto::name) != added_.end()) return {};
        auto value = read_tensor(file_, from, "initialiser '" + printable(from.name()) + "'");
        if (!value) return value.error();
        pb::TensorProto tensor;
        tensor.set_name(name);
        tensor.set_data_type(pb::TensorProto::UINT8);
        *tensor.mutable_dims() = from.dims();
        std::string& bytes = *tensor.mutable_raw_data();
        for (const std::byte b : value->constant.bytes)
            bytes.push_back(static_cast<char>(std::to_integer<uint8_t>(b) ^ 0x80));
        added_.push_back(std::move(tensor));
        return {};
    }

    static constexpr const char* suffix = ".vartml_uint8";

    ModelFile& file_;
    pb::GraphProto& graph_;
    std::map<std::string, const pb::TensorProto*> constants_;
    std::set<std::string> made_;  // tensors of uint8 without a zero point that says so
    std::vector<pb::TensorProto> added_;
};

}  // namespace

Result<bool> write_exact_products(const std::string& path, const std::string& out) {
    auto file = ModelFile::open(path);
    if (!file) return file.error();
    for (const pb::TensorProto& tensor : file->proto().graph().initializer())
        if (tensor.data_location() == pb::TensorProto::EXTERNAL)
            return Error{ErrorCode::unsupported,
                         path + ": has external data, which its exact twin cannot have"};
    const auto changed = Twin(*file).run();
    if (!changed || !*changed) return changed;
    const std::string bytes = file->proto().SerializeAsString();
    if (bytes.empty())
        return Error{ErrorCode::unsupported, path + ": its exact twin has more than 2 GB"};
    const Bytes piece = as_bytes(bytes);
    if (auto ok = write_new_file(out, std::span(&piece, 1)); !ok) return ok.error();
    return true;
}

}  // namespace vartml::onnx
