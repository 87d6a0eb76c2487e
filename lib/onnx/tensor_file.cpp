// SPDX-License-Identifier: Apache-2.0
#include "lib/onnx/tensor_file.h"

#include <limits>
#include <memory>

namespace vartml::onnx {

Result<TensorValue> read_tensor_file(const std::string& path) {
    auto mapping = MappedFile::open(path);
    if (!mapping) return mapping.error();
    const std::span<const std::byte> bytes = (*mapping)->bytes();
    const auto proto = std::make_shared<pb::TensorProto>();
    if (bytes.size() > size_t{std::numeric_limits<int>::max()} ||
        !proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return Error{ErrorCode::bad_model, path + ": holds no TensorProto"};
    if (proto->data_location() == pb::TensorProto::EXTERNAL)
        return Error{ErrorCode::unsupported,
                     path + ": refers to external data, expected the elements in the file"};
    ModelFile no_model;
    auto value = read_tensor(no_model, *proto, path);
    if (value && !value->constant.owner) value->constant.owner = proto;
    return value;
}

}  // namespace vartml::onnx
