// SPDX-License-Identifier: Apache-2.0
// The program vartml-onnxruntime: runs an ONNX model once in ONNX Runtime, in a process of its own,
// because ONNX Runtime and libonnx both register the operators' schemas. ONNX Runtime is loaded
// when it runs, so that the package does not depend on it.
//
// usage: vartml-onnxruntime version            one line on descriptor 3: its version
//        vartml-onnxruntime inputs MODEL       a line "TYPE D0,D1,… NAME" per input on descriptor
//                                              3, -1 for a dimension without a number
//        vartml-onnxruntime run MODEL FOLDER [LEVEL OUT]
//                                              FOLDER/request: such a line per input, whose bytes
//                                              are in FOLDER/input_<i>, and a line "keep NAME" per
//                                              further tensor to give; results are OUT/outputs and
//                                              OUT/output_<i> in the same form, OUT is FOLDER where
//                                              it is left out
//        vartml-onnxruntime time MODEL FOLDER SECONDS THREADS
//                                              runs it on that request for so long, with all that
//                                              it does for speed; a line "RUNS NS" on descriptor 3:
//                                              how many, and the median length of one
//        vartml-onnxruntime describe MODEL     what its outputs are
//                                              (lib/run/onnxruntime/describe.h)
//        vartml-onnxruntime serve              what partitions of ONNX Runtime run in
//                                              (lib/run/onnxruntime/protocol.h)
// TYPE is the number of ONNX's TensorProto.DataType; LEVEL is what ONNX Runtime does to the graph:
// disabled, basic, extended or all. Exit status: 0, 1 for a fault that one line on standard error
// tells, 3 where there is no ONNX Runtime.
#include <dlfcn.h>
#include <glob.h>
#include <onnxruntime/onnxruntime_c_api.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "lib/run/onnxruntime/describe.h"
#include "lib/run/onnxruntime/serve.h"

namespace {

constexpr int exit_fault = 1, exit_absent = 3;
constexpr unsigned oldest_api = 12;  // of ONNX Runtime 1.12; all that is called here is older

const OrtApi* api = nullptr;

[[noreturn]] void fail(const std::string& text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::fflush(stderr);
    _exit(exit_fault);
}

void check(OrtStatus* status) {
    if (status) fail(api->GetErrorMessage(status));
}

// Files of that pattern, those of the newest version first as far as their names tell.
void add_files(std::vector<std::string>& names, const std::string& pattern) {
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
        for (size_t i = found.gl_pathc; i-- > 0;) names.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
}

// Where it may be, best first: as VARTML_ONNXRUNTIME names it; in Python's package and in Node's;
// where the loader finds it, which may be a distribution's build with fewer operators (Debian's has
// no ConvInteger of int8).
std::vector<std::string> places() {
    if (const char* given = std::getenv("VARTML_ONNXRUNTIME"); given && *given) return {given};
    std::vector<std::string> names;
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value ? value : "");
    };
    std::vector<std::string> python, node;
    if (const std::string env = variable("VIRTUAL_ENV"); !env.empty()) python.push_back(env);
    if (const std::string env = variable("CONDA_PREFIX"); !env.empty()) python.push_back(env);
    if (const std::string env = variable("NODE_PATH"); !env.empty()) node.push_back(env);
    if (const std::string home = variable("HOME"); !home.empty()) {
        python.push_back(home + "/.local");
        node.push_back(home + "/node_modules");
    }
    for (const std::string prefix : {"/usr/local", "/usr"}) {
        python.push_back(prefix);
        node.push_back(prefix + "/lib/node_modules");
    }
    for (const std::string& prefix : python)
        for (const char* packages : {"site-packages", "dist-packages"})
            add_files(names, prefix + "/lib/python3*/" + packages +
                                 "/onnxruntime/capi/libonnxruntime.so*");
#if defined(__aarch64__)
    const std::string machine = "arm64";
#else
    const std::string machine = "x64";
#endif
    for (const std::string& folder : node)
        add_files(names, folder + "/onnxruntime-node/bin/napi-v*/linux/" + machine +
                             "/libonnxruntime.so*");
    names.insert(names.end(), {"libonnxruntime.so.1", "libonnxruntime.so"});
    for (int minor = 40; minor >= 12; --minor)  // Debian's name has the minor version in it
        names.push_back("libonnxruntime.so.1." + std::to_string(minor));
    return names;
}

const OrtApiBase* load(bool serves) {
    std::string reason;
    for (const std::string& name : places()) {
        void* library = dlopen(name.c_str(), RTLD_NOW);
        if (!library) {
            if (reason.empty()) reason = dlerror();
            continue;
        }
        const auto base =
            reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
        if (base) return base();
        reason = name + " has no OrtGetApiBase";
    }
    if (serves) vartml::onnxruntime::tell_absent(reason.c_str());
    std::fprintf(stderr, "%s\n", reason.c_str());
    std::fflush(stderr);
    _exit(exit_absent);
}

struct Tensor {
    int type = 0;
    std::vector<int64_t> shape;
    std::string name;
    std::string bytes;
    OrtValue* value = nullptr;
};

struct Request {
    std::vector<Tensor> inputs;
    std::vector<std::string> keep;
};

std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail(path + ": cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<int64_t> parse_shape(const std::string& text) {
    std::vector<int64_t> shape;
    std::istringstream stream(text == "-" ? "" : text);
    for (std::string d; std::getline(stream, d, ',');) shape.push_back(std::stoll(d));
    return shape;
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text;
    for (const int64_t d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
    return text.empty() ? "-" : text;
}

Request read_request(const std::string& folder) {
    Request request;
    std::istringstream lines(content(folder + "/request"));
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("keep ")) {
            request.keep.push_back(line.substr(5));
            continue;
        }
        std::istringstream words(line);
        Tensor& t = request.inputs.emplace_back();
        std::string shape;
        words >> t.type >> shape;
        words.get();
        std::getline(words, t.name);
        t.shape = parse_shape(shape);
        t.bytes = content(folder + "/input_" + std::to_string(request.inputs.size() - 1));
    }
    return request;
}

// ---- further outputs

void put_varint(std::string& to, size_t value) {
    for (; value >= 128; value >>= 7) to += static_cast<char>(value | 128);
    to += static_cast<char>(value);
}

void put_field(std::string& to, unsigned number, const std::string& value) {
    put_varint(to, number << 3 | 2);
    put_varint(to, value.size());
    to += value;
}

// A serialised message followed by another is their union, lists joined: this is ModelProto{graph
// {output{name}…}} behind the model.
std::string more_outputs(const std::vector<std::string>& names) {
    std::string graph, model;
    for (const std::string& name : names) {
        std::string output;
        put_field(output, 1, name);    // ValueInfoProto.name
        put_field(graph, 12, output);  // GraphProto.output
    }
    put_field(model, 7, graph);  // ModelProto.graph
    return model;
}

// ---- running

GraphOptimizationLevel level_of(const std::string& name) {
    if (name == "basic") return ORT_ENABLE_BASIC;
    if (name == "extended") return ORT_ENABLE_EXTENDED;
    if (name == "all") return ORT_ENABLE_ALL;
    return ORT_DISABLE_ALL;
}

OrtSession* open_session(const std::string& path, const std::vector<std::string>& keep,
                         const std::string& level) {
    OrtEnv* env = nullptr;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "verify", &env));
    OrtSessionOptions* options = nullptr;
    check(api->CreateSessionOptions(&options));
    // As long as nobody asks for another level the model as it is written: no fusion that rounds
    // differently, and sums of 8-bit products that do not saturate on processors whose instructions
    // would.
    check(api->SetSessionGraphOptimizationLevel(options, level_of(level)));
    check(api->AddSessionConfigEntry(options, "session.x64quantprecision", "1"));
    OrtSession* session = nullptr;
    if (keep.empty()) {
        check(api->CreateSession(env, path.c_str(), options, &session));
        return session;
    }
    const std::string model = content(path) + more_outputs(keep);
    // External data are looked for here.
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos && ::chdir(path.substr(0, slash + 1).c_str()) != 0)
        fail(path + ": cannot go to its folder");
    check(api->CreateSessionFromArray(env, model.data(), model.size(), options, &session));
    return session;
}

void make_value(const OrtMemoryInfo* memory, Tensor& t) {
    check(api->CreateTensorWithDataAsOrtValue(
        memory, t.bytes.data(), t.bytes.size(), t.shape.data(), t.shape.size(),
        static_cast<ONNXTensorElementDataType>(t.type), &t.value));
}

std::vector<std::string> output_names(OrtSession* session) {
    OrtAllocator* allocator = nullptr;
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    size_t count = 0;
    check(api->SessionGetOutputCount(session, &count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        check(api->SessionGetOutputName(session, i, allocator, &name));
        names.emplace_back(name);
    }
    return names;
}

size_t element_bytes(ONNXTensorElementDataType type) {
    switch (type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
            return 8;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
            return 4;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
            return 2;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
            return 0;
        default:
            return 1;
    }
}

// Writes the bytes; the line of FOLDER/outputs, "" for what is no dense tensor of numbers.
std::string store(OrtValue* value, const std::string& name, const std::string& path) {
    int is_tensor = 0;
    if (!value) return {};
    check(api->IsTensor(value, &is_tensor));
    if (!is_tensor) return {};
    OrtTensorTypeAndShapeInfo* info = nullptr;
    check(api->GetTensorTypeAndShape(value, &info));
    ONNXTensorElementDataType type{};
    size_t rank = 0, elements = 0;
    check(api->GetTensorElementType(info, &type));
    check(api->GetDimensionsCount(info, &rank));
    check(api->GetTensorShapeElementCount(info, &elements));
    std::vector<int64_t> shape(rank);
    check(api->GetDimensions(info, shape.data(), rank));
    if (element_bytes(type) == 0) return {};
    void* data = nullptr;
    check(api->GetTensorMutableData(value, &data));
    std::ofstream file(path, std::ios::binary);
    if (elements != 0)
        file.write(static_cast<const char*>(data),
                   static_cast<std::streamsize>(elements * element_bytes(type)));
    if (!file.flush()) fail(path + ": cannot be written");
    return std::to_string(type) + ' ' + shape_text(shape) + ' ' + name + '\n';
}

void print_inputs(const std::string& model) {
    OrtSession* session = open_session(model, {}, "disabled");
    OrtAllocator* allocator = nullptr;
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    size_t count = 0;
    check(api->SessionGetInputCount(session, &count));
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        OrtTypeInfo* type = nullptr;
        const OrtTensorTypeAndShapeInfo* info = nullptr;
        check(api->SessionGetInputName(session, i, allocator, &name));
        check(api->SessionGetInputTypeInfo(session, i, &type));
        check(api->CastTypeInfoToTensorInfo(type, &info));
        if (!info) fail("input '" + std::string(name) + "' is no tensor");
        ONNXTensorElementDataType element{};
        size_t rank = 0;
        check(api->GetTensorElementType(info, &element));
        check(api->GetDimensionsCount(info, &rank));
        std::vector<int64_t> shape(rank);
        check(api->GetDimensions(info, shape.data(), rank));
        ::dprintf(3, "%d %s %s\n", element, shape_text(shape).c_str(), name);
    }
}

void run(const std::string& model, const std::string& folder, const std::string& level,
         const std::string& out) {
    Request request = read_request(folder);
    OrtSession* session = open_session(model, request.keep, level);
    OrtMemoryInfo* memory = nullptr;
    check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    std::vector<const char*> inputs, wanted;
    std::vector<const OrtValue*> values;
    for (Tensor& t : request.inputs) {
        make_value(memory, t);
        inputs.push_back(t.name.c_str());
        values.push_back(t.value);
    }
    const std::vector<std::string> names = output_names(session);
    for (const std::string& name : names) wanted.push_back(name.c_str());
    std::vector<OrtValue*> outputs(names.size(), nullptr);
    check(api->Run(session, nullptr, inputs.data(), values.data(), values.size(), wanted.data(),
                   wanted.size(), outputs.data()));
    std::string lines;
    size_t stored = 0;
    for (size_t i = 0; i < names.size(); ++i) {
        const std::string path = out + "/output_" + std::to_string(stored);
        const std::string line = store(outputs[i], names[i], path);
        if (line.empty()) continue;
        lines += line;
        ++stored;
    }
    std::ofstream file(out + "/outputs", std::ios::binary);
    file << lines;
    if (!file.flush()) fail(out + "/outputs: cannot be written");
}

// As an application would set it up that wants to be fast.
OrtSession* open_fast_session(const std::string& path, int threads) {
    OrtEnv* env = nullptr;
    OrtSessionOptions* options = nullptr;
    OrtSession* session = nullptr;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "time", &env));
    check(api->CreateSessionOptions(&options));
    check(api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL));
    check(api->SetIntraOpNumThreads(options, threads));
    check(api->CreateSession(env, path.c_str(), options, &session));
    return session;
}

void time_runs(const std::string& model, const std::string& folder, double seconds, int threads) {
    using Clock = std::chrono::steady_clock;
    constexpr size_t warm_up = 3, least = 3;
    Request request = read_request(folder);
    OrtSession* session = open_fast_session(model, threads);
    OrtMemoryInfo* memory = nullptr;
    check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    std::vector<const char*> inputs, wanted;
    std::vector<const OrtValue*> values;
    for (Tensor& t : request.inputs) {
        make_value(memory, t);
        inputs.push_back(t.name.c_str());
        values.push_back(t.value);
    }
    const std::vector<std::string> names = output_names(session);
    for (const std::string& name : names) wanted.push_back(name.c_str());
    std::vector<int64_t> ns;
    Clock::time_point end;
    for (size_t i = 0; i < warm_up + least || Clock::now() < end; ++i) {
        if (i == warm_up)
            end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(seconds));
        std::vector<OrtValue*> outputs(names.size(), nullptr);
        const auto begin = Clock::now();
        check(api->Run(session, nullptr, inputs.data(), values.data(), values.size(), wanted.data(),
                       wanted.size(), outputs.data()));
        const auto took = Clock::now() - begin;
        for (OrtValue* output : outputs)
            if (output) api->ReleaseValue(output);
        if (i >= warm_up)
            ns.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    }
    std::ranges::sort(ns);
    ::dprintf(3, "%zu %lld\n", ns.size(), static_cast<long long>(ns[ns.size() / 2]));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string word = argc > 1 ? argv[1] : "";
    const bool serves = word == "serve" && argc == 2;
    const bool describes = word == "describe" && argc == 3;
    if (!serves && !describes && (word != "version" || argc != 2) &&
        (word != "inputs" || argc != 3) && (word != "run" || (argc != 4 && argc != 6)) &&
        (word != "time" || argc != 6)) {
        std::fputs(
            "usage: vartml-onnxruntime version | serve | describe MODEL | inputs MODEL | "
            "run MODEL FOLDER [LEVEL OUT] | time MODEL FOLDER SECONDS THREADS\n",
            stderr);
        return 2;
    }
    // Whoever asks waits on the thread that started this; a server ends with its descriptors.
    if (!serves) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const OrtApiBase* base = load(serves);
    api = base->GetApi(oldest_api);
    if (!api && serves) vartml::onnxruntime::tell_absent("it is too old");
    if (!api) fail(std::string("ONNX Runtime ") + base->GetVersionString() + " is too old");
    if (describes) vartml::onnxruntime::describe(api, argv[2]);
    if (serves) vartml::onnxruntime::serve(api, base->GetVersionString());
    if (word == "version") {
        ::dprintf(3, "%s\n", base->GetVersionString());
        _exit(0);
    }
    if (word == "inputs")
        print_inputs(argv[2]);
    else if (word == "time")
        time_runs(argv[2], argv[3], std::atof(argv[4]), std::atoi(argv[5]));
    else
        run(argv[2], argv[3], argc > 4 ? argv[4] : "disabled", argc > 4 ? argv[5] : argv[3]);
    _exit(0);  // its threads and static objects need no farewell
}
