// SPDX-License-Identifier: Apache-2.0
#include "lib/run/onnxruntime/describe.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace vartml::onnxruntime {
namespace {

const OrtApi* ort = nullptr;

[[noreturn]] void fail(const char* text) {
    std::fprintf(stderr, "%s\n", text);
    std::fflush(stderr);
    _exit(1);
}
void check(OrtStatus* status) {
    if (status) fail(ort->GetErrorMessage(status));
}

struct Tensor {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // no tensor
    std::vector<int64_t> shape;                                                // -1: not known
    bool is_fixed() const {
        return std::ranges::none_of(shape, [](int64_t d) { return d < 0; });
    }
};

Tensor read(const OrtTensorTypeAndShapeInfo* info) {
    Tensor tensor;
    size_t rank = 0;
    check(ort->GetTensorElementType(info, &tensor.type));
    check(ort->GetDimensionsCount(info, &rank));
    tensor.shape.resize(rank);
    check(ort->GetDimensions(info, tensor.shape.data(), rank));
    return tensor;
}

Tensor type_of(OrtTypeInfo* info) {
    ONNXType type{};
    check(ort->GetOnnxTypeFromTypeInfo(info, &type));
    if (type != ONNX_TYPE_TENSOR) return {};
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    check(ort->CastTypeInfoToTensorInfo(info, &tensor));
    return read(tensor);
}

// A tensor of the session's border: its declared type and its name.
struct Port {
    std::string name;
    Tensor tensor;
};
std::vector<Port> ports_of(OrtSession* session, bool inputs) {
    OrtAllocator* allocator = nullptr;
    check(ort->GetAllocatorWithDefaultOptions(&allocator));
    size_t count = 0;
    check(inputs ? ort->SessionGetInputCount(session, &count)
                 : ort->SessionGetOutputCount(session, &count));
    std::vector<Port> ports;
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        OrtTypeInfo* info = nullptr;
        check(inputs ? ort->SessionGetInputName(session, i, allocator, &name)
                     : ort->SessionGetOutputName(session, i, allocator, &name));
        check(inputs ? ort->SessionGetInputTypeInfo(session, i, &info)
                     : ort->SessionGetOutputTypeInfo(session, i, &info));
        ports.push_back({name, type_of(info)});
        ort->ReleaseTypeInfo(info);
    }
    return ports;
}

// Numbers of one kind in a tensor: what follows the data differs between the kinds.
enum Data { zeros, ones, ramp, num_data };

template <typename T>
void fill(void* to, size_t count, Data data) {
    auto* at = static_cast<T*>(to);
    for (size_t i = 0; i < count; ++i)
        at[i] = static_cast<T>(data == zeros ? 0 : data == ones ? 1 : i % 7);
}

OrtValue* make_input(const Tensor& t, Data data) {
    OrtAllocator* allocator = nullptr;
    check(ort->GetAllocatorWithDefaultOptions(&allocator));
    std::vector<int64_t> shape = t.shape;
    size_t count = 1;
    for (int64_t& d : shape) {
        if (d < 0) d = 1;
        count *= static_cast<size_t>(d);
    }
    OrtValue* value = nullptr;
    check(ort->CreateTensorAsOrtValue(allocator, shape.data(), shape.size(), t.type, &value));
    void* to = nullptr;
    check(ort->GetTensorMutableData(value, &to));
    switch (t.type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
            fill<float>(to, count, data);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
            fill<double>(to, count, data);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
            fill<int64_t>(to, count, data);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
            fill<int32_t>(to, count, data);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
            fill<int16_t>(to, count, data);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
            // 0, or 1 here and there.
            fill<uint16_t>(to, count, data == ones ? ones : zeros);
            if (data != zeros)
                for (size_t i = 0; i < count; ++i)
                    static_cast<uint16_t*>(to)[i] =
                        data == ramp && i % 2 == 0                        ? 0
                        : t.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 ? 0x3c00
                                                                          : 0x3f80;
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
            fill<bool>(to, count, data);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
            fill<int8_t>(to, count, data);
            break;
        default:
            fail("has an input of a type without data to try it with");
    }
    return value;
}

// The types of the outputs of a run; empty where it fails on these data.
std::vector<Tensor> run(OrtSession* session, const std::vector<Port>& inputs,
                        const std::vector<Port>& outputs, Data data) {
    std::vector<const char*> input_names, output_names;
    std::vector<const OrtValue*> values;
    for (const Port& port : inputs) {
        input_names.push_back(port.name.c_str());
        values.push_back(make_input(port.tensor, data));
    }
    for (const Port& port : outputs) output_names.push_back(port.name.c_str());
    std::vector<OrtValue*> made(outputs.size(), nullptr);
    if (OrtStatus* const status =
            ort->Run(session, nullptr, input_names.data(), values.data(), values.size(),
                     output_names.data(), output_names.size(), made.data())) {
        ort->ReleaseStatus(status);
        return {};
    }
    std::vector<Tensor> tensors;
    for (const OrtValue* value : made) {
        int is_tensor = 0;
        if (value) check(ort->IsTensor(value, &is_tensor));
        Tensor& tensor = tensors.emplace_back();
        if (!is_tensor) continue;
        OrtTensorTypeAndShapeInfo* info = nullptr;
        check(ort->GetTensorTypeAndShape(value, &info));
        tensor = read(info);
        ort->ReleaseTensorTypeAndShapeInfo(info);
    }
    return tensors;
}

std::string line(const Tensor& tensor, const char* how) {
    std::string sizes;
    for (const int64_t d : tensor.shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(d);
    return std::to_string(tensor.type) + ' ' + how + ' ' + (sizes.empty() ? "-" : sizes) + '\n';
}

// From what `enough` or more runs gave, else from what the model declares.
std::string describe_output(const Tensor& declared, const std::vector<std::vector<Tensor>>& runs,
                            size_t enough, size_t index) {
    if (declared.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return "0\n";
    if (runs.size() < enough) {
        if (declared.is_fixed() && !declared.shape.empty()) return line(declared, "fixed");
        return std::to_string(declared.type) + " open\n";
    }
    Tensor largest = runs[0][index];
    bool varies = false;
    for (const auto& run : runs) {
        const Tensor& t = run[index];
        if (t.shape.size() != largest.shape.size())
            return std::to_string(declared.type) + " open\n";
        varies = varies || t.shape != largest.shape;
        for (size_t axis = 0; axis < t.shape.size(); ++axis)
            largest.shape[axis] = std::max(largest.shape[axis], t.shape[axis]);
    }
    return line(largest, varies ? "varies" : "fixed");
}

}  // namespace

void describe(const OrtApi* api, const char* path) {
    ort = api;
    OrtEnv* env = nullptr;
    check(ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "vartml", &env));
    OrtSessionOptions* options = nullptr;
    check(ort->CreateSessionOptions(&options));
    check(ort->SetIntraOpNumThreads(options, 1));
    OrtSession* session = nullptr;
    check(ort->CreateSession(env, path, options, &session));
    const std::vector<Port> inputs = ports_of(session, true), outputs = ports_of(session, false);
    const bool all_fixed = std::ranges::all_of(outputs, [](const Port& port) {
        return port.tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ||
               (port.tensor.is_fixed() && !port.tensor.shape.empty());
    });
    std::vector<std::vector<Tensor>> runs;
    for (int data = zeros; data < num_data && !all_fixed; ++data)
        if (auto made = run(session, inputs, outputs, static_cast<Data>(data)); !made.empty())
            runs.push_back(std::move(made));
    std::string text;
    for (size_t i = 0; i < outputs.size(); ++i)
        text += describe_output(outputs[i].tensor, runs, inputs.empty() ? 1 : 2, i);
    for (size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(3, text.data() + at, text.size() - at);
        if (n <= 0) _exit(1);
        at += static_cast<size_t>(n);
    }
    _exit(0);
}

}  // namespace vartml::onnxruntime
