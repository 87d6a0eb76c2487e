// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/tensor_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/compile/onnx/model_file.h"

namespace vartml::tools {
namespace {

constexpr size_t max_file_bytes = size_t{4} << 30;

// What follows `'key':` in the header's dictionary, without leading blanks.
std::optional<std::string_view> value_of(std::string_view header, std::string_view key) {
    const size_t at = header.find("'" + std::string(key) + "'");
    if (at == std::string_view::npos) return std::nullopt;
    const size_t colon = header.find(':', at);
    if (colon == std::string_view::npos) return std::nullopt;
    const size_t begin = header.find_first_not_of(' ', colon + 1);
    if (begin == std::string_view::npos) return std::nullopt;
    return header.substr(begin);
}

constexpr std::pair<std::string_view, DataType> npy_types[] = {
    {"<f4", DataType::float32}, {"<f2", DataType::fp16},   {"<f8", DataType::float64},
    {"|b1", DataType::boolean}, {"|i1", DataType::int8},   {"|u1", DataType::uint8},
    {"<i2", DataType::int16},   {"<u2", DataType::uint16}, {"<i4", DataType::int32},
    {"<u4", DataType::uint32},  {"<i8", DataType::int64},  {"<u8", DataType::uint64}};

DataType type_of(std::string_view descr) {
    for (const auto& [text, type] : npy_types)
        if (descr == text) return type;
    return DataType::unknown;
}

// "(1, 3, 4)", "(5,)", "()", and "(5L,)" of Python 2.
bool parse_shape(std::string_view text, std::vector<int64_t>& shape) {
    if (!text.starts_with('(')) return false;
    text.remove_prefix(1);
    for (;;) {
        while (text.starts_with(' ') || text.starts_with(',')) text.remove_prefix(1);
        if (text.starts_with(')')) return shape.size() <= 8;
        int64_t d = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
        if (error != std::errc() || d < 0) return false;
        shape.push_back(d);
        text.remove_prefix(static_cast<size_t>(end - text.data()));
        if (text.starts_with('L')) text.remove_prefix(1);
    }
}

}  // namespace

Result<TensorData> parse_npy(const std::string& bytes, const std::string& what) {
    const auto fault = [&](const std::string& text) {
        return Error{ErrorCode::bad_model, what + ": " + text};
    };
    constexpr std::string_view magic = "\x93NUMPY";
    if (!bytes.starts_with(magic) || bytes.size() < 12) return fault("is no .npy file");
    const auto byte = [&](size_t i) { return size_t{static_cast<unsigned char>(bytes[i])}; };
    if (byte(6) < 1 || byte(6) > 3)
        return Error{ErrorCode::unsupported, what + ": is of version " + std::to_string(byte(6)) +
                                                 " of its format, expected 1 to 3"};
    const bool is_long = byte(6) >= 2;  // version 1 has a header length of 2 bytes, later ones 4
    const size_t begin = is_long ? 12 : 10;
    const size_t length =
        byte(8) | byte(9) << 8 | (is_long ? byte(10) << 16 | byte(11) << 24 : size_t{0});
    if (length > bytes.size() - begin) return fault("the header is cut off");
    std::string header = bytes.substr(begin, length);
    std::ranges::replace(header, '"', '\'');  // a dictionary of Python has either

    const auto descr = value_of(header, "descr"), order = value_of(header, "fortran_order"),
               shape = value_of(header, "shape");
    if (!descr || !order || !shape || !descr->starts_with('\''))
        return fault("the header lacks 'descr', 'fortran_order' or 'shape'");
    for (const std::string_view key : {"'descr'", "'fortran_order'", "'shape'"})
        if (header.find(key) != header.rfind(key))
            return fault("the header has " + std::string(key) + " twice");
    TensorData data;
    const std::string_view type = descr->substr(1, descr->find('\'', 1) - 1);
    data.type = type_of(type);
    if (data.type == DataType::unknown)
        return Error{ErrorCode::unsupported, what + ": elements are of type '" +
                                                 printable(type, 40) +
                                                 "', expected a little-endian number or bool"};
    if (!order->starts_with("False"))
        return Error{ErrorCode::unsupported,
                     what + ": is in Fortran order; save numpy.ascontiguousarray of it"};
    if (!parse_shape(*shape, data.shape)) return fault("the shape in the header is damaged");
    size_t size = size_bytes(data.type);
    for (const int64_t d : data.shape)
        if (__builtin_mul_overflow(size, static_cast<size_t>(d), &size))
            return fault("the shape in the header is too large");
    const size_t found = bytes.size() - begin - length;
    if (found != size)
        return fault("holds " + std::to_string(found) + " bytes of elements, the header says " +
                     std::to_string(size));
    data.bytes.resize(size);
    if (size != 0) std::memcpy(data.bytes.data(), bytes.data() + begin + length, size);
    return data;
}

std::string npy_of(const TensorData& data) {
    const bool widens = data.type == DataType::bf16;
    std::string_view descr = "<f4";
    for (const auto& [text, type] : npy_types)
        if (data.type == type) descr = text;
    std::string header =
        "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
    for (const int64_t d : data.shape) header += std::to_string(d) + ",";
    header += "), }";
    // given, the format's document: what precedes the elements is a multiple of 64 bytes and ends
    // in a newline
    constexpr size_t before = 10, multiple = 64;
    header.append(multiple - 1 - (before + header.size()) % multiple, ' ');
    header += '\n';
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size() & 0xff);
    bytes += static_cast<char>(header.size() >> 8);
    bytes += header;
    if (!widens)
        return bytes.append(reinterpret_cast<const char*>(data.bytes.data()), data.bytes.size());
    for (size_t i = 0; i + 1 < data.bytes.size(); i += 2) {
        bytes.append(2, '\0');
        bytes.append(reinterpret_cast<const char*>(data.bytes.data()) + i, 2);
    }
    return bytes;
}

namespace {

Result<TensorData> read_any(const std::string& path) {
    if (path.ends_with(".npy")) {
        auto bytes = read_file(path, max_file_bytes);
        if (!bytes) return bytes.error();
        return parse_npy(*bytes, path);
    }
    if (path.ends_with(".pb")) {
        auto value = onnx::read_tensor_file(path);
        if (!value) return value.error();
        const auto bytes = value->constant.bytes;
        return TensorData{value->type.data_type, value->type.shape, {bytes.begin(), bytes.end()}};
    }
    return Error{ErrorCode::invalid_argument,
                 path + ": is no tensor file, expected a name that ends in .npy or .pb"};
}

}  // namespace

Result<TensorData> read_tensor(const std::string& path) {
    auto data = read_any(path);
    if (data) return data;
    Error error = data.error();
    if (error.code == ErrorCode::bad_model || error.code == ErrorCode::unsupported)
        error.code = ErrorCode::invalid_argument;
    return error;
}

std::optional<std::string> find_tensor_file(const std::string& folder, const std::string& stem,
                                            size_t index) {
    for (const char* ending : {".npy", ".pb"}) {
        std::string path = folder + "/" + stem + "_" + std::to_string(index) + ending;
        std::error_code error;
        if (std::filesystem::exists(path, error)) return path;
    }
    return std::nullopt;
}

std::vector<std::byte> random_bytes(DataType type, size_t size_bytes, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::vector<std::byte> bytes(size_bytes);
    const auto fill = [&]<typename T>(T, auto next) {
        for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
            const T value = static_cast<T>(next());
            std::memcpy(bytes.data() + i, &value, sizeof value);
        }
    };
    const auto unit = [&] { return static_cast<float>(engine() >> 40) * 0x1p-24f; };
    const auto bit = [&] { return engine() & 1; };
    switch (type) {
        case DataType::float32:
            fill(float{}, unit);
            break;
        case DataType::bf16:
            fill(uint16_t{}, [&] {
                const float f = unit();
                uint32_t bits;
                std::memcpy(&bits, &f, sizeof bits);
                return bits >> 16;
            });
            break;
        case DataType::fp16:
            fill(uint16_t{}, [&] { return 0x3800 | (engine() & 0x3ff); });
            break;
        case DataType::int8:
        case DataType::uint8:
            fill(uint8_t{}, [&] { return engine(); });
            break;
        case DataType::int16:
        case DataType::uint16:
            fill(uint16_t{}, bit);
            break;
        case DataType::int32:
        case DataType::uint32:
            fill(uint32_t{}, bit);
            break;
        case DataType::int64:
        case DataType::uint64:
            fill(uint64_t{}, bit);
            break;
        default:
            fill(uint8_t{}, bit);
    }
    return bytes;
}

}  // namespace vartml::tools
