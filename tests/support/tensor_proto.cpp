// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tensor_proto.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace vartml::test {

namespace {

// The wire format of protobuf: a message is a list of (field number, value).
class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    bool done() const { return bytes_.empty() || failed_; }
    bool failed() const { return failed_; }

    uint64_t varint() {
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (bytes_.empty()) break;
            const auto byte = static_cast<uint8_t>(bytes_.front());
            bytes_.remove_prefix(1);
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return value;
        }
        failed_ = true;
        return 0;
    }
    std::string_view take(size_t size) {
        if (size > bytes_.size()) {
            failed_ = true;
            return {};
        }
        const std::string_view part = bytes_.substr(0, size);
        bytes_.remove_prefix(size);
        return part;
    }
    void fail() { failed_ = true; }

private:
    std::string_view bytes_;
    bool failed_ = false;
};

void append(std::vector<uint8_t>& raw, std::string_view bytes) {
    raw.insert(raw.end(), bytes.begin(), bytes.end());
}

// A packed or single value of dims; elsewhere it is skipped.
void read_dims(Reader& reader, unsigned wire, std::vector<int64_t>& dims) {
    if (wire == 0) {
        dims.push_back(static_cast<int64_t>(reader.varint()));
        return;
    }
    Reader packed(reader.take(reader.varint()));
    while (!packed.done()) dims.push_back(static_cast<int64_t>(packed.varint()));
}

void read_field(Reader& reader, unsigned field, unsigned wire, ProtoTensor& tensor) {
    if (field == 1 && (wire == 0 || wire == 2)) {
        read_dims(reader, wire, tensor.dims);
    } else if (wire == 0) {
        const uint64_t value = reader.varint();
        if (field == 2) tensor.data_type = static_cast<int>(value);
    } else if (wire == 2) {
        const std::string_view bytes = reader.take(reader.varint());
        if (field == 4 || field == 9) append(tensor.raw, bytes);  // float_data, raw_data
        if (field == 8) tensor.name = bytes;
    } else if (wire == 5) {
        const std::string_view bytes = reader.take(4);
        if (field == 4) append(tensor.raw, bytes);
    } else if (wire == 1) {
        reader.take(8);
    } else {
        reader.fail();
    }
}

}  // namespace

std::vector<float> ProtoTensor::floats() const {
    if (data_type != 1) return {};
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
    return values;
}

std::optional<ProtoTensor> read_tensor_proto(const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return std::nullopt;
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    Reader reader(bytes);
    ProtoTensor tensor;
    while (!reader.done()) {
        const uint64_t key = reader.varint();
        read_field(reader, static_cast<unsigned>(key >> 3), key & 7, tensor);
    }
    if (reader.failed()) return std::nullopt;
    return tensor;
}

std::string shared_folder() {
    const char* folder = std::getenv("VARTML_SHARED");
    std::error_code error;
    if (!folder || !std::filesystem::is_directory(folder, error)) return "";
    return folder;
}

}  // namespace vartml::test
