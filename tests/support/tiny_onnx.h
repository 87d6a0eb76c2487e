// SPDX-License-Identifier: Apache-2.0
// Builds small ONNX files for tests, right ones and wrong ones.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/compile/onnx/model_file.h"

namespace vartml::test {

// TinyOnnx m(17);
// m.input("x", {1, 3, 8, 8}).weights("w", {4, 3, 3, 3}).node("Conv", {"x", "w"}, {"y"}, {{"pads",
// Ints{1, 1, 1, 1}}}); m.output("y").save(path);
class TinyOnnx {
public:
    using Ints = std::vector<int64_t>;
    using Floats = std::vector<float>;
    using Strings = std::vector<std::string>;
    using Dim =
        std::variant<int, std::string>;  // a number, or a symbol ("" = unknown without a name)
    using Attribute = std::variant<int64_t, float, std::string, Ints, Floats, Strings,
                                   ::onnx::GraphProto, ::onnx::TensorProto>;
    static constexpr int float32 = 1, uint8 = 2, int8 = 3, int32 = 6, int64 = 7, string = 8,
                         boolean = 9, fp16 = 10, float64 = 11;

    explicit TinyOnnx(int opset = 17, int ir_version = 8);

    TinyOnnx& opset(const std::string& domain, int version);
    TinyOnnx& input(const std::string& name, const std::vector<Dim>& shape, int type = float32);
    // A shape without a type is of floats; without both they are left to the node.
    TinyOnnx& output(const std::string& name, const std::vector<Dim>& shape = {}, int type = 0);
    TinyOnnx& floats(const std::string& name, const Ints& shape, const Floats& values);
    TinyOnnx& ints(const std::string& name, const Ints& shape, const Ints& values);  // int64
    // Small numbers of both signs that depend on the name and position alone.
    TinyOnnx& weights(const std::string& name, const Ints& shape);
    TinyOnnx& initialiser(const ::onnx::TensorProto& tensor);
    // A node named after its first output.
    TinyOnnx& node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs,
                   const std::vector<std::pair<std::string, Attribute>>& attributes = {},
                   const std::string& domain = {});
    TinyOnnx& metadata(const std::string& key, const std::string& value);

    ::onnx::ModelProto& proto() { return proto_; }
    const ::onnx::GraphProto& graph() const { return proto_.graph(); }
    std::string bytes() const;
    void save(const std::string& path) const;

private:
    ::onnx::ModelProto proto_;
};

::onnx::TensorProto float_tensor(const std::string& name, const TinyOnnx::Ints& shape,
                                 const TinyOnnx::Floats& values);
::onnx::TensorProto int_tensor(const std::string& name, const TinyOnnx::Ints& shape,
                               const TinyOnnx::Ints& values);

}  // namespace vartml::test
