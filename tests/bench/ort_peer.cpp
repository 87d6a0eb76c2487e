// SPDX-License-Identifier: Apache-2.0
// A peer of the benchmarks: runs an ONNX model in ONNX Runtime, in a process of its own. Obeys
// lines on standard input:
//   run N      N inferences; answers with the wall time of each in nanoseconds, on one line
//   load 1     one inference; answers with the nanoseconds that making the session took, and with
//              the most memory that was resident so far, in bytes
// usage: ort_peer LIBRARY (cpu|dnnl) THREADS MODEL.onnx [NAME=D0,D1,…]…   (values for symbolic
// dimensions)
#include <dlfcn.h>
#include <onnxruntime/onnxruntime_c_api.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/resident.h"

namespace {

const OrtApi* api = nullptr;

void check(OrtStatus* status, const char* what) {
    if (!status) return;
    std::fprintf(stderr, "ort_peer: %s: %s\n", what, api->GetErrorMessage(status));
    std::exit(1);
}

size_t element_bytes(ONNXTensorElementDataType type) {
    switch (type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
            return 8;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
            return 4;
        default:
            return 1;
    }
}

struct Input {
    std::string name;
    ONNXTensorElementDataType type;
    std::vector<int64_t> shape;
    std::vector<char> bytes;
    OrtValue* value = nullptr;
};

void fill(Input& input, std::mt19937& random) {
    size_t elements = 1;
    for (const int64_t d : input.shape) elements *= static_cast<size_t>(d);
    input.bytes.resize(elements * element_bytes(input.type));
    if (input.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        std::uniform_real_distribution<float> uniform(0, 1);
        auto* p = reinterpret_cast<float*>(input.bytes.data());
        for (size_t i = 0; i < elements; ++i) p[i] = uniform(random);
    }
}

OrtSession* open_session(OrtEnv* env, const char* provider, int threads, const char* model) {
    OrtSessionOptions* options = nullptr;
    check(api->CreateSessionOptions(&options), "options");
    check(api->SetIntraOpNumThreads(options, threads), "threads");
    check(api->SetInterOpNumThreads(options, 1), "threads");
    check(api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL), "optimisations");
    if (std::strcmp(provider, "dnnl") == 0) {
        OrtDnnlProviderOptions* dnnl = nullptr;
        check(api->CreateDnnlProviderOptions(&dnnl), "oneDNN provider");
        check(api->SessionOptionsAppendExecutionProvider_Dnnl(options, dnnl), "oneDNN provider");
    }
    OrtSession* session = nullptr;
    check(api->CreateSession(env, model, options, &session), "session");
    return session;
}

std::vector<Input> make_inputs(OrtSession* session, OrtAllocator* allocator,
                               const std::map<std::string, std::vector<int64_t>>& shapes) {
    size_t count = 0;
    check(api->SessionGetInputCount(session, &count), "inputs");
    std::vector<Input> inputs(count);
    std::mt19937 random(7);
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        check(api->SessionGetInputName(session, i, allocator, &name), "input name");
        OrtTypeInfo* info = nullptr;
        check(api->SessionGetInputTypeInfo(session, i, &info), "input type");
        const OrtTensorTypeAndShapeInfo* tensor = nullptr;
        check(api->CastTypeInfoToTensorInfo(info, &tensor), "input type");
        size_t rank = 0;
        check(api->GetTensorElementType(tensor, &inputs[i].type), "input type");
        check(api->GetDimensionsCount(tensor, &rank), "input rank");
        inputs[i].name = name;
        inputs[i].shape.resize(rank);
        check(api->GetDimensions(tensor, inputs[i].shape.data(), rank), "input shape");
        const auto given = shapes.find(inputs[i].name);
        if (given != shapes.end()) inputs[i].shape = given->second;
        for (int64_t& d : inputs[i].shape) d = d < 1 ? 1 : d;
        fill(inputs[i], random);
        OrtMemoryInfo* memory = nullptr;
        check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory), "memory");
        check(api->CreateTensorWithDataAsOrtValue(memory, inputs[i].bytes.data(),
                                                  inputs[i].bytes.size(), inputs[i].shape.data(),
                                                  rank, inputs[i].type, &inputs[i].value),
              "input");
    }
    return inputs;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    void* library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "ort_peer: %s\n", dlerror());
        return 1;
    }
    const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    api = base()->GetApi(21);
    std::map<std::string, std::vector<int64_t>> shapes;
    for (int i = 5; i < argc; ++i) {
        const std::string text = argv[i];
        const size_t equals = text.find('=');
        auto& dims = shapes[text.substr(0, equals)];
        for (const char* p = argv[i] + equals; *p;)
            dims.push_back(std::strtol(p + 1, const_cast<char**>(&p), 10));
    }
    OrtEnv* env = nullptr;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "peer", &env), "environment");
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    OrtSession* session = open_session(env, argv[2], std::atoi(argv[3]), argv[4]);
    const std::chrono::nanoseconds load_time = clock::now() - begin;
    OrtAllocator* allocator = nullptr;
    check(api->GetAllocatorWithDefaultOptions(&allocator), "allocator");
    std::vector<Input> inputs = make_inputs(session, allocator, shapes);
    size_t count = 0;
    check(api->SessionGetOutputCount(session, &count), "outputs");
    std::vector<const char*> input_names, output_names(count);
    std::vector<const OrtValue*> values;
    for (const Input& input : inputs) {
        input_names.push_back(input.name.c_str());
        values.push_back(input.value);
    }
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        check(api->SessionGetOutputName(session, i, allocator, &name), "output name");
        output_names[i] = name;
    }
    std::puts("ready");
    std::fflush(stdout);
    std::string word;
    long runs = 0;
    while (std::cin >> word >> runs) {
        std::string line;
        for (long r = 0; r < runs; ++r) {
            std::vector<OrtValue*> outputs(count, nullptr);
            const auto start = clock::now();
            check(api->Run(session, nullptr, input_names.data(), values.data(), values.size(),
                           output_names.data(), count, outputs.data()),
                  "run");
            const auto ns = std::chrono::nanoseconds(clock::now() - start).count();
            for (OrtValue* output : outputs) api->ReleaseValue(output);
            line += std::to_string(ns) + " ";
        }
        if (word == "load")
            line = std::to_string(load_time.count()) + " " + std::to_string(most_resident());
        std::puts(line.c_str());
        std::fflush(stdout);
    }
    std::fflush(stdout);
    _exit(0);
}
