// SPDX-License-Identifier: Apache-2.0
// An ONNX file, the files with external data that belong to it, and its tensors as type and bytes.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

#include "lib/base/file.h"
#include "lib/graph/graph.h"

namespace vartml::onnx {

namespace pb = ::onnx;  // the generated classes of the format

// The default domain of operators has two names; the schemas know the shorter one.
inline std::string short_domain(const std::string& domain) {
    return domain == "ai.onnx" ? "" : domain;
}

using Mapping = std::shared_ptr<const MappedFile>;

class ModelFile {
public:
    static Result<ModelFile> open(const std::string& path);

    const std::string& path() const { return path_; }
    // Mutable while functions are inlined and nodes are sorted; tensors stay where they are.
    pb::ModelProto& proto() { return *proto_; }
    std::shared_ptr<const pb::ModelProto> owner() const { return proto_; }

    // Bytes that a tensor with data_location EXTERNAL names, and their owner.
    struct Stored {
        std::span<const std::byte> bytes;
        std::shared_ptr<const void> owner;
    };
    Result<Stored> external_bytes(const pb::TensorProto& tensor, size_t size_bytes);

    // SHA-256 over the file and each external file in the order in which the model first names it,
    // 16 bytes in hexadecimal.
    Result<std::string> signature();

private:
    Result<Mapping> external_file(const std::string& location);

    std::string path_;
    Mapping bytes_;
    std::shared_ptr<pb::ModelProto> proto_;
    std::map<std::string, Mapping> external_;  // by location
};

// From TensorProto to type and bytes.

// Element type of a number of TensorProto.DataType; unknown for strings, complex numbers and 8-bit
// floats. The 4-bit integers become int8 and uint8, one element per byte.
DataType data_type(int32_t elem_type);
int32_t elem_type(DataType type);               // the number that data_type() reads
std::string elem_type_name(int32_t elem_type);  // "FLOAT16"
bool is_4_bit(int32_t elem_type);

struct TensorValue {
    graph::Type type;
    graph::Constant constant;
};
// `what` names the tensor in errors: "initialiser 'w'". Errors: bad_model, unsupported, io.
Result<TensorValue> read_tensor(ModelFile& file, const pb::TensorProto& tensor,
                                const std::string& what);

// A file that holds one TensorProto, as ONNX keeps test data in (input_0.pb).

// Errors: not_found, io, bad_model, unsupported (external data, strings).
Result<TensorValue> read_tensor_file(const std::string& path);

}  // namespace vartml::onnx
