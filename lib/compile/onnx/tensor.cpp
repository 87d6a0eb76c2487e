// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/tensor.h"

#include <cstring>
#include <limits>
#include <memory>

namespace vartml::onnx {
namespace {

using graph::Constant;

bool is_4_bit(int32_t elem_type) {
    return elem_type == pb::TensorProto::INT4 || elem_type == pb::TensorProto::UINT4;
}

// Two elements per byte, the first in the low half.
Constant unpack_4_bit(std::span<const std::byte> packed, size_t elements, bool is_signed) {
    std::vector<std::byte> bytes(elements);
    for (size_t i = 0; i < elements; ++i) {
        const auto pair = static_cast<uint8_t>(packed[i / 2]);
        uint8_t v = i % 2 == 0 ? pair & 0x0f : pair >> 4;
        if (is_signed && (v & 8)) v |= 0xf0;
        bytes[i] = static_cast<std::byte>(v);
    }
    return graph::make_constant(std::move(bytes));
}

template <typename To, typename Field>
std::vector<std::byte> narrow(const Field& field) {
    std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(To));
    size_t at = 0;
    for (const auto v : field) {
        const To to = static_cast<To>(v);
        std::memcpy(bytes.data() + at, &to, sizeof to);
        at += sizeof to;
    }
    return bytes;
}

// The typed field that holds the elements where there is no raw_data.
std::vector<std::byte> field_bytes(const pb::TensorProto& t) {
    switch (t.data_type()) {
        case pb::TensorProto::FLOAT:
            return narrow<float>(t.float_data());
        case pb::TensorProto::DOUBLE:
            return narrow<double>(t.double_data());
        case pb::TensorProto::INT64:
            return narrow<int64_t>(t.int64_data());
        case pb::TensorProto::UINT64:
            return narrow<uint64_t>(t.uint64_data());
        case pb::TensorProto::UINT32:
            return narrow<uint32_t>(t.uint64_data());
        case pb::TensorProto::INT32:
            return narrow<int32_t>(t.int32_data());
        case pb::TensorProto::INT16:
            return narrow<int16_t>(t.int32_data());
        case pb::TensorProto::UINT16:
        case pb::TensorProto::FLOAT16:
        case pb::TensorProto::BFLOAT16:
            return narrow<uint16_t>(t.int32_data());
        case pb::TensorProto::BOOL:
        case pb::TensorProto::UINT8:
        case pb::TensorProto::INT8:
        case pb::TensorProto::UINT4:
        case pb::TensorProto::INT4:
            return narrow<uint8_t>(t.int32_data());
        default:
            return {};
    }
}

// Product of the dimensions, or an error for a negative one and for more than 2^40 bytes.
Result<size_t> element_count(const pb::TensorProto& t, size_t element_bytes,
                             const std::string& what) {
    size_t n = 1;
    constexpr size_t limit = size_t{1} << 40;
    for (const int64_t d : t.dims()) {
        if (d < 0)
            return Error{ErrorCode::bad_model, what + " has the dimension " + std::to_string(d)};
        const auto size = static_cast<size_t>(d);
        if (size != 0 && n > limit / element_bytes / size)
            return Error{ErrorCode::bad_model, what + " has a shape of more than 2^40 bytes"};
        n *= size;
    }
    return n;
}

Error size_error(const std::string& what, size_t found, size_t expected) {
    return {ErrorCode::bad_model,
            what + " holds " + std::to_string(found) + " bytes, its shape and type need " +
                std::to_string(expected) + "; the file is damaged, export it again"};
}

// Bytes as the file has them: embedded, external, or from a typed field.
Result<Constant> stored_bytes(ModelFile& file, const pb::TensorProto& t, size_t size_bytes,
                              const std::string& what) {
    if (t.data_location() == pb::TensorProto::EXTERNAL) {
        auto external = file.external_bytes(t, size_bytes);
        if (!external) return external.error();
        return Constant{external->bytes, std::move(external->owner)};
    }
    if (t.has_raw_data()) {
        const std::string& raw = t.raw_data();
        if (raw.size() != size_bytes) return size_error(what, raw.size(), size_bytes);
        return Constant{std::as_bytes(std::span(raw)), file.owner()};
    }
    std::vector<std::byte> bytes = field_bytes(t);
    if (bytes.size() != size_bytes) return size_error(what, bytes.size(), size_bytes);
    return graph::make_constant(std::move(bytes));
}

}  // namespace

DataType data_type(int32_t elem_type) {
    switch (elem_type) {
        case pb::TensorProto::FLOAT:
            return DataType::float32;
        case pb::TensorProto::UINT8:
        case pb::TensorProto::UINT4:
            return DataType::uint8;
        case pb::TensorProto::INT8:
        case pb::TensorProto::INT4:
            return DataType::int8;
        case pb::TensorProto::UINT16:
            return DataType::uint16;
        case pb::TensorProto::INT16:
            return DataType::int16;
        case pb::TensorProto::INT32:
            return DataType::int32;
        case pb::TensorProto::INT64:
            return DataType::int64;
        case pb::TensorProto::BOOL:
            return DataType::boolean;
        case pb::TensorProto::FLOAT16:
            return DataType::fp16;
        case pb::TensorProto::DOUBLE:
            return DataType::float64;
        case pb::TensorProto::UINT32:
            return DataType::uint32;
        case pb::TensorProto::UINT64:
            return DataType::uint64;
        case pb::TensorProto::BFLOAT16:
            return DataType::bf16;
        default:
            return DataType::unknown;
    }
}

std::string elem_type_name(int32_t elem_type) {
    if (!pb::TensorProto::DataType_IsValid(elem_type)) return "number " + std::to_string(elem_type);
    return pb::TensorProto::DataType_Name(static_cast<pb::TensorProto::DataType>(elem_type));
}

Result<TensorValue> read_tensor(ModelFile& file, const pb::TensorProto& tensor,
                                const std::string& what) {
    TensorValue value;
    value.type.data_type = data_type(tensor.data_type());
    if (value.type.data_type == DataType::unknown)
        return Error{ErrorCode::unsupported,
                     what + " has the element type " + elem_type_name(tensor.data_type()) +
                         ", which cannot be compiled; convert it to a float or an integer type"};
    if (tensor.has_segment())
        return Error{ErrorCode::unsupported,
                     what + " is stored in segments; export the model again"};
    const size_t element_bytes = size_bytes(value.type.data_type);
    const auto elements = element_count(tensor, element_bytes, what);
    if (!elements) return elements.error();
    value.type.shape.assign(tensor.dims().begin(), tensor.dims().end());

    const bool packed = is_4_bit(tensor.data_type());
    const size_t stored = packed ? (*elements + 1) / 2 : *elements * element_bytes;
    auto bytes = stored_bytes(file, tensor, stored, what);
    if (!bytes) return bytes.error();
    if (packed) {
        value.constant =
            unpack_4_bit(bytes->bytes, *elements, tensor.data_type() == pb::TensorProto::INT4);
    } else if (reinterpret_cast<uintptr_t>(bytes->bytes.data()) % element_bytes != 0) {
        value.constant =
            graph::make_constant(std::vector<std::byte>(bytes->bytes.begin(), bytes->bytes.end()));
    } else {
        value.constant = std::move(*bytes);
    }
    return value;
}

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
