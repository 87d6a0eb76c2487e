// SPDX-License-Identifier: Apache-2.0
// An ONNX file and the files with external data that belong to it.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/compile/onnx/proto.h"

namespace vartml::onnx {

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

}  // namespace vartml::onnx
