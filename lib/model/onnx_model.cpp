// SPDX-License-Identifier: Apache-2.0
#include "lib/model/onnx_model.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

namespace vartml::artifact {
namespace {

// Messages of ONNX's format that lead to tensors.
enum Message : uint8_t { model, graph, node, attribute, tensor, sparse, function, training };

// Fields that hold a message; every other one is skipped by its wire type.
struct Field {
    Message of;
    uint64_t number;
    Message is;
};
constexpr Field fields[] = {
    {model, 7, graph},       {model, 20, training},     {model, 25, function},
    {graph, 1, node},        {graph, 5, tensor},        {graph, 15, sparse},
    {node, 5, attribute},    {attribute, 5, tensor},    {attribute, 6, graph},
    {attribute, 10, tensor}, {attribute, 11, graph},    {attribute, 22, sparse},
    {attribute, 23, sparse}, {sparse, 1, tensor},       {sparse, 2, tensor},
    {function, 7, node},     {function, 11, attribute}, {training, 1, graph},
    {training, 2, graph},
};
// Of TensorProto: external_data and data_location.
constexpr uint64_t external_data = 13, data_location = 14;
constexpr unsigned max_depth = 100;  // of messages, as protobuf's own limit

class Walk {
public:
    std::optional<std::string> run(Bytes bytes) {
        visit(bytes, model, 0);
        return std::move(fault_);
    }

private:
    bool fail(const char* what) {
        if (!fault_) fault_ = what;
        return false;
    }

    bool varint(Bytes& bytes, uint64_t& value) {
        value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (bytes.empty()) return fail("is cut off");
            const auto b = static_cast<uint8_t>(bytes.front());
            bytes = bytes.subspan(1);
            value |= uint64_t{b & 0x7fU} << shift;
            if ((b & 0x80) == 0) return true;
        }
        return fail("is damaged");
    }

    bool visit(Bytes bytes, Message message, unsigned depth) {
        if (depth > max_depth) return fail("nests too deeply");
        while (!bytes.empty())
            if (!visit_field(bytes, message, depth)) return false;
        return true;
    }

    // Takes one field from the front.
    bool visit_field(Bytes& bytes, Message message, unsigned depth) {
        uint64_t tag = 0, size = 0;
        if (!varint(bytes, tag)) return false;
        const uint64_t number = tag >> 3;
        // Protobuf takes 32 bits of a tag, and would see another field than is seen here.
        if (tag > std::numeric_limits<uint32_t>::max() || number == 0) return fail("is damaged");
        if (message == tensor && (number == external_data || number == data_location)) {
            if (number == external_data || (tag & 7) != 0)
                return fail("takes a tensor from another file");
            if (!varint(bytes, size)) return false;
            return size == 0 || fail("takes a tensor from another file");
        }
        switch (tag & 7) {
            case 0:
                return varint(bytes, size);
            case 1:
                size = 8;
                break;
            case 5:
                size = 4;
                break;
            case 2:
                if (!varint(bytes, size)) return false;
                break;
            default:
                return fail("is damaged");  // groups are no part of the format
        }
        if (size > bytes.size()) return fail("is cut off");
        const Bytes content = bytes.first(size);
        bytes = bytes.subspan(size);
        const auto field = std::ranges::find_if(
            fields, [&](const Field& f) { return f.of == message && f.number == number; });
        if (field == std::end(fields) || (tag & 7) != 2) return true;
        return visit(content, field->is, depth + 1);
    }

    std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> fault_of_onnx_model(Bytes model) {
    if (model.empty()) return "is empty";
    if (model.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
        return "has more than 2147483647 bytes";
    return Walk().run(model);
}

}  // namespace vartml::artifact
