// SPDX-License-Identifier: Apache-2.0
// A model of a few nodes with what its inputs hold: what is drafted, checked, cut and kept.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/compile/onnx/model_file.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/folder_check.h"

namespace vartml::fuzz_graphs {

namespace pb = ::onnx;
using Ints = std::vector<int64_t>;
using verify::NamedTensor;
using verify::TensorData;
using Values = std::map<std::string, TensorData>;  // by the name of the tensor

struct Model {
    pb::ModelProto proto;
    std::vector<NamedTensor> feed;  // in the order of the model's inputs
};

// Numbers of a tensor, and a tensor of numbers; floats become integers by dropping the fraction.
std::vector<double> all_numbers(const TensorData& data);
TensorData tensor_of(DataType type, const Ints& shape, std::span<const double> numbers);
int64_t count_elements(const Ints& shape);
std::string shape_text(const Ints& shape);  // [1,3,8,8]

pb::TensorProto to_proto(const std::string& name, const TensorData& data);
TensorData from_proto(const pb::TensorProto& proto);
// Number of TensorProto.DataType.
int elem_type(DataType type);
// A line for each node: "y = Conv(x [1,3,8,8], w [4,3,3,3]) {pads=1,1,1,1}".
std::string describe(const Model& model);

// `folder`/model.onnx and test_data_set_0/input_<i>.pb, as ONNX keeps its own tests.
void save(const Model& model, const std::string& folder);
Model load(const std::string& folder);

// The part of the model that makes these outputs, from its inputs and from `known` tensors, which
// become inputs. `values` has what all of them hold.
Model part_of(const Model& model, const std::vector<std::string>& outputs,
              const std::vector<std::string>& known, const Values& values);

}  // namespace vartml::fuzz_graphs
