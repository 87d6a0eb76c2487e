// SPDX-License-Identifier: Apache-2.0
#include "lib/verify/tensor_folder.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include "lib/common/file.h"

namespace vartml::verify {
namespace {

constexpr size_t max_file_bytes = size_t{8} << 30;

// By the numbers of ONNX's TensorProto.DataType.
constexpr DataType onnx_types[] = {
    DataType::unknown, DataType::float32, DataType::uint8,  DataType::int8,    DataType::uint16,
    DataType::int16,   DataType::int32,   DataType::int64,  DataType::unknown, DataType::boolean,
    DataType::fp16,    DataType::float64, DataType::uint32, DataType::uint64,  DataType::unknown,
    DataType::unknown, DataType::bf16};

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text;
    for (const int64_t d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
    return text.empty() ? "-" : text;
}

Result<void> write(const std::string& path, Bytes bytes) {
    return write_new_file(path, std::span(&bytes, 1));
}

// The tensors that the lines of `list` tell, with the bytes of `stem`<i>.
Result<std::vector<NamedTensor>> read_tensors(const std::string& folder, const std::string& list,
                                              const std::string& stem) {
    auto lines = read_file(folder + '/' + list, max_file_bytes);
    if (!lines) return lines.error();
    std::vector<NamedTensor> tensors;
    size_t index = 0;
    for (std::string_view rest = *lines; !rest.empty(); ++index) {
        const size_t end = rest.find('\n');
        NamedTensor tensor;
        if (parse_tensor_line(rest.substr(0, end), tensor)) {
            auto bytes = read_file(folder + '/' + stem + std::to_string(index), max_file_bytes);
            if (!bytes) return bytes.error();
            tensor.data.bytes.resize(bytes->size());
            if (!bytes->empty())
                std::memcpy(tensor.data.bytes.data(), bytes->data(), bytes->size());
            tensors.push_back(std::move(tensor));
        }
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    return tensors;
}

}  // namespace

bool parse_tensor_line(std::string_view line, NamedTensor& tensor) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (first == line.npos || second == line.npos) return false;
    size_t type = 0;
    std::from_chars(line.data(), line.data() + first, type);
    if (type >= std::size(onnx_types) || onnx_types[type] == DataType::unknown) return false;
    tensor.data.type = onnx_types[type];
    const std::string_view dims = line.substr(first + 1, second - first - 1);
    const char* at = dims.data();
    const char* const end = at + dims.size();
    while (dims != "-" && at < end) {
        int64_t d = 0;
        const auto [next, error] = std::from_chars(at, end, d);
        if (error != std::errc()) return false;
        tensor.data.shape.push_back(d);
        at = next < end ? next + 1 : next;
    }
    tensor.name = line.substr(second + 1);
    return true;
}

Result<void> write_request(const std::string& folder, const std::vector<NamedTensor>& inputs,
                           const std::vector<std::string>& keep) {
    std::string lines;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const auto type = std::ranges::find(onnx_types, inputs[i].data.type);
        lines += std::to_string(type - std::begin(onnx_types)) + ' ' +
                 shape_text(inputs[i].data.shape) + ' ' + inputs[i].name + '\n';
        if (auto done = write(folder + "/input_" + std::to_string(i), inputs[i].data.bytes); !done)
            return done;
    }
    for (const std::string& name : keep) lines += "keep " + name + '\n';
    return write(folder + "/request", as_bytes(lines));
}

Result<std::vector<NamedTensor>> read_request(const std::string& folder) {
    return read_tensors(folder, "request", "input_");
}

Result<std::map<std::string, TensorData>> read_outputs(const std::string& folder) {
    auto tensors = read_tensors(folder, "outputs", "output_");
    if (!tensors) return tensors.error();
    std::map<std::string, TensorData> outputs;
    for (NamedTensor& tensor : *tensors)
        outputs.emplace(std::move(tensor.name), std::move(tensor.data));
    return outputs;
}

void name_numbers_of_maps(const std::map<std::string, std::string>& maps,
                          std::map<std::string, TensorData>& outputs) {
    for (const auto& [output, numbers] : maps)
        if (const auto it = outputs.find(numbers); it != outputs.end())
            outputs.emplace(output, it->second);
}

}  // namespace vartml::verify
