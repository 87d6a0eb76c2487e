// SPDX-License-Identifier: Apache-2.0
// A random model while it grows, node by node, with what each tensor holds: so that a node is only
// taken where its result is a number of moderate size.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/graph/ops.h"
#include "tests/fuzz_graphs/model.h"
#include "tests/fuzz_graphs/random.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::fuzz_graphs {

using Types = std::vector<DataType>;
inline const Types f32 = {DataType::float32};
inline const Types floats = {DataType::float32, DataType::fp16, DataType::bf16};
inline const Types codes = {DataType::int8, DataType::uint8};
inline const Types any_type = {
    DataType::float32, DataType::fp16,  DataType::int8,   DataType::uint8, DataType::int16,
    DataType::uint16,  DataType::int32, DataType::uint32, DataType::int64, DataType::boolean};

struct Tensor {
    std::string name;
    TensorData data;
    bool is_constant = false;
    bool is_end = false;  // nothing reads it: its shape follows from the data
    DataType type() const { return data.type; }
    const Ints& shape() const { return data.shape; }
    int64_t rank() const { return static_cast<int64_t>(data.shape.size()); }
    int64_t size(int64_t axis) const { return data.shape[static_cast<size_t>(axis)]; }
    bool is_empty() const { return count_elements(data.shape) == 0; }
};

// What a recipe asks for.
struct Request {
    std::string kind;
    std::vector<std::string> inputs;  // "": none
    std::vector<std::pair<std::string, test::TinyOnnx::Attribute>> attributes = {};
    // Of the table's attributes that are inputs in some operator sets: in the form of the draft's.
    std::vector<std::pair<std::string, std::vector<double>>> parameters = {};
    size_t outputs = 1;
    std::string domain = {};
    bool is_end = false;
};

class Draft {
public:
    // `scratch` is a file that may be written.
    Draft(uint64_t seed, std::string scratch);

    Random random;
    int opset = 17;
    bool coded = false;  // behind most float results stand QuantizeLinear and DequantizeLinear

    // ---- operands: tensors of the draft where they fit, else new inputs of the model

    const Tensor& operand(const Types& types, int64_t least_rank, int64_t most_rank);
    const Tensor& picture(const Types& types);  // N, C and one to three axes, none empty
    // Another operand of elements that go together with those of `shape`.
    const Tensor& partner(DataType type, const Ints& shape);
    const Tensor* find(DataType type, const Ints& shape);  // exactly so; nullptr
    const Tensor& input(DataType type, const Ints& shape);
    const Tensor& input(DataType type, const Ints& shape, double low, double high);
    const Tensor& constant(DataType type, const Ints& shape);
    const Tensor& constant(DataType type, const Ints& shape, double low, double high);
    const Tensor& numbers(DataType type, const Ints& shape, const std::vector<double>& values);
    // Small numbers of both signs; of a coded draft codes with a scale per channel, dequantised.
    const Tensor& weights(DataType type, const Ints& shape, double range = 0.5);
    // A constant, or now and then an input.
    const Tensor& second(DataType type, const Ints& shape, double low, double high);

    Ints shape(int64_t least_rank, int64_t most_rank);
    Ints broadcast_to(const Ints& shape);  // a shape that broadcasts to it

    // ---- nodes

    // The outputs, or nothing where the node makes no result of moderate size, or is refused.
    std::vector<const Tensor*> add(const Request& request);
    // The only output, or nullptr. Codes follow in a coded draft.
    const Tensor* one(const Request& request);
    // Whether the draft's operator set has it, and where.
    bool has(const std::string& kind) const;
    // QuantizeLinear and DequantizeLinear behind it.
    const Tensor* requantise(const Tensor& tensor);

    const Tensor& at(const std::string& name) const { return tensors_.at(name); }
    size_t node_count() const { return static_cast<size_t>(model_.proto.graph().node_size()); }
    // Sentences that refuse a node that ONNX's checks take.
    const std::vector<std::string>& refusals() const { return refusals_; }
    // The model; tensors that nobody reads are its outputs, and some others.
    std::optional<Model> finish();
    // Sets the operator set; before anything else.
    void set_opset(int version);

private:
    std::string new_name(const char* stem);
    const Tensor& keep(Tensor tensor);
    void write_parameters(const Request& request, pb::NodeProto& node);
    void note_refusal(const pb::NodeProto& node, const std::string& sentence);

    std::string scratch_;
    Model model_;
    std::map<std::string, Tensor> tensors_;
    std::vector<std::string> order_;  // inputs and results
    std::vector<std::string> refusals_;
    int names_ = 0;
};

// A model of that seed.
std::optional<Model> draft_model(uint64_t seed, const std::string& scratch,
                                 std::vector<std::string>& refusals);

// The operators of the table that a model can have as a node, and those of them that the recipes
// make.
std::vector<std::string> drafted_operators();
// Adds one; false where the draft has nothing for it.
bool add_operator(Draft& draft, const std::string& kind);
// Adds several nodes of the kind that passes rewrite.
void add_pattern(Draft& draft);

// An operator that the general recipe does not make, with how.
struct Recipe {
    std::string_view kind;
    bool (*add)(Draft& draft, const std::string& kind);
};
std::span<const Recipe> picture_recipes();
std::span<const Recipe> shape_recipes();
std::span<const Recipe> number_recipes();
std::span<const Recipe> code_recipes();

}  // namespace vartml::fuzz_graphs
