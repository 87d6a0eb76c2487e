// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/model_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include "lib/base/foreign_file.h"
#include "lib/base/sha256.h"

namespace vartml::onnx {
namespace {

std::vector<std::string> split_path(const std::string& path) {
    std::vector<std::string> parts;
    size_t begin = 0;
    while (true) {
        const size_t end = path.find('/', begin);
        parts.push_back(path.substr(begin, end - begin));
        if (end == std::string::npos) return parts;
        begin = end + 1;
    }
}

// Opens folder/path one part at a time, so that neither ".." nor a link leads out of the folder.
Result<Mapping> map_below(const std::string& folder, const std::string& path,
                          const std::string& what) {
    std::vector<std::string> parts = split_path(path);
    // Some exporters write "./weights.bin".
    parts.erase(std::remove(parts.begin(), parts.end() - 1, "."), parts.end() - 1);
    for (const std::string& part : parts)
        if (part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos)
            return Error{
                ErrorCode::bad_model,
                what + " is no path below the folder of the model; store the data beside it"};
    Fd at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = 0; at && i < parts.size(); ++i) {
        const int type = i + 1 < parts.size() ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK;
        Fd next(::openat(at.get(), parts[i].c_str(), type | O_NOFOLLOW | O_CLOEXEC));
        if (!next && errno == ELOOP)
            return Error{ErrorCode::bad_model, what + " is a link; replace it by the file itself"};
        at = std::move(next);
    }
    return MappedFile::map(at, what);
}

bool read_varint(std::span<const std::byte>& bytes, uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
        const auto b = static_cast<uint8_t>(bytes.front());
        bytes = bytes.subspan(1);
        value |= uint64_t{b & 0x7fu} << shift;
        if ((b & 0x80) == 0) return true;
    }
    return false;
}

// Field numbers of ModelProto.
constexpr uint64_t model_fields[] = {1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26};

// Whether the bytes are a list of ModelProto's fields of which the last one is cut off. Why: the
// parser only says no.
bool is_truncated(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        uint64_t tag = 0, size = 0;
        if (!read_varint(bytes, tag)) return true;
        const uint64_t field = tag >> 3;
        if (std::ranges::find(model_fields, field) == std::end(model_fields)) return false;
        switch (tag & 7) {
            case 0:
                if (!read_varint(bytes, size)) return true;
                size = 0;
                break;
            case 2:
                if (!read_varint(bytes, size)) return true;
                break;
            default:
                return false;  // ModelProto has no other wire types
        }
        if (size > bytes.size()) return true;
        bytes = bytes.subspan(size);
    }
    return false;
}

Error parse_error(const std::string& path, std::span<const std::byte> bytes) {
    constexpr std::string_view archive = "VRA1";
    if (bytes.size() >= 12 && as_text(bytes.subspan(8, 4)) == archive)
        return {ErrorCode::bad_model, path + ": is a compiled model already; run it as it is"};
    if (const auto foreign = describe_foreign(path, bytes))
        return {ErrorCode::bad_model, path + ": " + *foreign};
    if (is_truncated(bytes))
        return {ErrorCode::bad_model,
                path + ": ends after " + std::to_string(bytes.size()) +
                    " bytes in the middle of the model; copy or export it again"};
    return {ErrorCode::bad_model,
            path + ": is not an ONNX model, or a damaged one; export it again"};
}

std::optional<uint64_t> parse_number(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string location_of(const pb::TensorProto& tensor) {
    for (const auto& entry : tensor.external_data())
        if (entry.key() == "location") return entry.value();
    return {};
}

// Calls `f` for each tensor of the graph, of Constant nodes and of subgraphs, in the order of the
// file.
template <typename F>
Result<void> for_each_tensor(const pb::GraphProto& graph, const F& f) {
    for (const auto& tensor : graph.initializer())
        if (auto done = f(tensor); !done) return done;
    for (const auto& node : graph.node())
        for (const auto& attribute : node.attribute()) {
            if (attribute.has_t())
                if (auto done = f(attribute.t()); !done) return done;
            if (attribute.has_g())
                if (auto done = for_each_tensor(attribute.g(), f); !done) return done;
        }
    return {};
}

}  // namespace

Result<ModelFile> ModelFile::open(const std::string& path) {
    google::protobuf::SetLogHandler(
        nullptr);  // it would write to standard error what the sentences below say
    ModelFile file;
    file.path_ = path;
    auto bytes = MappedFile::open(path);
    if (!bytes) return bytes.error();
    file.bytes_ = std::move(*bytes);
    const Bytes all = file.bytes_->bytes();
    if (all.empty())
        return Error{ErrorCode::bad_model, path + ": is empty, expected an ONNX model"};
    if (all.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
        return Error{
            ErrorCode::bad_model,
            path + ": has " + std::to_string(all.size()) +
                " bytes, an ONNX file holds at most 2147483647; save it with external data"};

    file.proto_ = std::make_shared<pb::ModelProto>();
    const int size = static_cast<int>(all.size());
    google::protobuf::io::ArrayInputStream array(all.data(), size);
    google::protobuf::io::CodedInputStream stream(&array);
    stream.SetTotalBytesLimit(size);
    if (!file.proto_->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage() ||
        !file.proto_->has_graph())
        return parse_error(path, all);
    return file;
}

Result<Mapping> ModelFile::external_file(const std::string& location) {
    if (const auto found = external_.find(location); found != external_.end()) return found->second;
    auto mapping =
        map_below(parent_of(path_), location, path_ + ": external data '" + location + "'");
    if (mapping) external_.emplace(location, *mapping);
    return mapping;
}

Result<ModelFile::Stored> ModelFile::external_bytes(const pb::TensorProto& tensor,
                                                    size_t size_bytes) {
    const std::string location = location_of(tensor);
    const std::string what =
        path_ + ": external data '" + location + "' of tensor '" + tensor.name() + "'";
    uint64_t offset = 0;
    uint64_t length = size_bytes;
    for (const auto& entry : tensor.external_data()) {
        if (entry.key() != "offset" && entry.key() != "length") continue;
        const auto number = parse_number(entry.value());
        if (!number)
            return Error{ErrorCode::bad_model,
                         what + " has the " + entry.key() + " '" + entry.value() + "'"};
        (entry.key() == "offset" ? offset : length) = *number;
    }
    if (length != size_bytes)
        return Error{ErrorCode::bad_model, what + " holds " + std::to_string(length) +
                                               " bytes, its shape and type need " +
                                               std::to_string(size_bytes)};
    auto mapping = external_file(location);
    if (!mapping) return mapping.error();
    const auto bytes = (*mapping)->bytes();
    if (offset > bytes.size() || bytes.size() - offset < length)
        return Error{ErrorCode::bad_model,
                     what + " lies at " + std::to_string(offset) + " and has " +
                         std::to_string(length) + " bytes, the file ends at " +
                         std::to_string(bytes.size()) + "; copy or export it again"};
    return Stored{bytes.subspan(offset, length), *mapping};
}

Result<std::string> ModelFile::signature() {
    Sha256 hash;
    hash.update(bytes_->bytes());
    std::vector<std::string> seen;
    auto done =
        for_each_tensor(proto_->graph(), [&](const pb::TensorProto& tensor) -> Result<void> {
            if (tensor.data_location() != pb::TensorProto::EXTERNAL) return {};
            const std::string location = location_of(tensor);
            if (std::ranges::find(seen, location) != seen.end()) return {};
            seen.push_back(location);
            auto mapping = external_file(location);
            if (!mapping) return mapping.error();
            hash.update((*mapping)->bytes());
            return {};
        });
    if (!done) return done.error();
    const Sha256::Digest digest = hash.finish();
    return to_hex(std::span(digest).first(16));
}

bool is_4_bit(int32_t elem_type) {
    return elem_type == pb::TensorProto::INT4 || elem_type == pb::TensorProto::UINT4;
}

namespace {

using graph::Constant;

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

// The first number of a field of wider ones that is none of the tensor's type.
std::optional<int64_t> out_of_range(const pb::TensorProto& t) {
    const auto first_beyond = [](const auto& field, int64_t least,
                                 int64_t most) -> std::optional<int64_t> {
        for (const auto v : field)
            if (std::cmp_less(v, least) || std::cmp_greater(v, most))
                return static_cast<int64_t>(v);
        return {};
    };
    switch (t.data_type()) {
        case pb::TensorProto::UINT32:
            return first_beyond(t.uint64_data(), 0, std::numeric_limits<uint32_t>::max());
        case pb::TensorProto::INT16:
            return first_beyond(t.int32_data(), std::numeric_limits<int16_t>::min(),
                                std::numeric_limits<int16_t>::max());
        case pb::TensorProto::UINT16:
        case pb::TensorProto::FLOAT16:
        case pb::TensorProto::BFLOAT16:
            return first_beyond(t.int32_data(), 0, std::numeric_limits<uint16_t>::max());
        case pb::TensorProto::INT8:
            return first_beyond(t.int32_data(), -128, 127);
        case pb::TensorProto::UINT8:
        case pb::TensorProto::UINT4:  // two in a byte
        case pb::TensorProto::INT4:
            return first_beyond(t.int32_data(), 0, 255);
        default:
            return {};
    }
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
            return narrow<bool>(t.int32_data());
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
    if (const auto number = out_of_range(t))
        return Error{ErrorCode::bad_model, what + " holds the number " + std::to_string(*number) +
                                               ", which is none of its type " +
                                               elem_type_name(t.data_type()) +
                                               "; the file is damaged, export it again"};
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

int32_t elem_type(DataType type) {
    constexpr int32_t last = pb::TensorProto::BFLOAT16;
    for (int32_t number = 1; number <= last; ++number)
        if (data_type(number) == type) return number;
    return pb::TensorProto::UNDEFINED;
}

std::string elem_type_name(int32_t elem_type) {
    // Those that came after operator set 22, which the ONNX at hand may not know.
    constexpr std::array<std::string_view, 4> newer{"FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2"};
    constexpr int32_t first = 23;
    if (elem_type >= first && elem_type < first + static_cast<int32_t>(newer.size()))
        return std::string(newer[static_cast<size_t>(elem_type - first)]);
    if (!pb::TensorProto::DataType_IsValid(elem_type)) return "number " + std::to_string(elem_type);
    return pb::TensorProto::DataType_Name(static_cast<pb::TensorProto::DataType>(elem_type));
}

Result<TensorValue> read_tensor(ModelFile& file, const pb::TensorProto& tensor,
                                const std::string& what) {
    TensorValue value;
    if (tensor.data_type() == pb::TensorProto::UNDEFINED)
        return Error{ErrorCode::bad_model,
                     what + " has no element type; the file is damaged, export it again"};
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
    // The tensors of a sequence have the field of a segment.
    if (proto->has_segment())
        return Error{ErrorCode::unsupported,
                     path + ": holds a sequence, or a tensor in segments; expected one tensor"};
    ModelFile no_model;
    auto value = read_tensor(no_model, *proto, path);
    if (value && !value->constant.owner) value->constant.owner = proto;
    return value;
}

}  // namespace vartml::onnx
