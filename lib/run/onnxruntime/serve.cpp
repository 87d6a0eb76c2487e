// SPDX-License-Identifier: Apache-2.0
#include "lib/run/onnxruntime/serve.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/run/onnxruntime/protocol.h"

namespace vartml::onnxruntime {
namespace {

const OrtApi* ort = nullptr;

void send_reply(int socket, Status status, size_t session, const std::string& text) {
    Reply reply;
    reply.status = status;
    reply.session = static_cast<uint32_t>(session);
    std::strncpy(reply.text, text.c_str(), sizeof reply.text - 1);
    while (::send(socket, &reply, sizeof reply, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

// ONNX Runtime's sentence; "" for no fault.
std::string take_text(OrtStatus* status) {
    if (!status) return {};
    std::string text = ort->GetErrorMessage(status);
    ort->ReleaseStatus(status);
    return text.empty() ? "a fault without a sentence" : text;
}

// While everything is loaded the first fault ends the process.
void check(OrtStatus* status, size_t session = 0) {
    if (const std::string text = take_text(status); !text.empty()) {
        send_reply(first_socket_fd, Status::fault, session, text);
        _exit(1);
    }
}

struct ReleaseValue {
    void operator()(OrtValue* value) const { ort->ReleaseValue(value); }
};
using Value = std::unique_ptr<OrtValue, ReleaseValue>;

std::byte* map(int fd, size_t& size, int protection) {
    struct stat info{};
    if (::fstat(fd, &info) != 0) _exit(1);
    size = static_cast<size_t>(info.st_size);
    void* const at = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) _exit(1);
    return static_cast<std::byte*>(at);
}

uint64_t now() {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

struct LoadedSession {
    OrtSession* session = nullptr;
    std::vector<std::string> input_names, output_names;
    std::vector<const char*> inputs, outputs;         // the same
    std::vector<size_t> input_values, output_values;  // numbers of values
};

// What all lanes share.
struct Loaded {
    Setup setup;
    std::vector<Slot> slots;
    std::vector<LoadedSession> sessions;
    OrtMemoryInfo* memory = nullptr;
    std::byte* lanes = nullptr;

    std::byte* lane(size_t i) const { return lanes + i * setup.lane_bytes; }
};

std::vector<std::string> names_of(OrtSession* session, bool inputs, size_t number) {
    OrtAllocator* allocator = nullptr;
    check(ort->GetAllocatorWithDefaultOptions(&allocator), number);
    size_t count = 0;
    check(inputs ? ort->SessionGetInputCount(session, &count)
                 : ort->SessionGetOutputCount(session, &count),
          number);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        check(inputs ? ort->SessionGetInputName(session, i, allocator, &name)
                     : ort->SessionGetOutputName(session, i, allocator, &name),
              number);
        names.emplace_back(name);
        check(ort->AllocatorFree(allocator, name), number);
    }
    return names;
}

// One pool of threads for all sessions and lanes; they sleep between the runs, because others work
// on the same processors.
OrtEnv* make_environment(size_t threads) {
    OrtThreadingOptions* options = nullptr;
    check(ort->CreateThreadingOptions(&options));
    check(ort->SetGlobalIntraOpNumThreads(options, static_cast<int>(threads)));
    check(ort->SetGlobalInterOpNumThreads(options, 1));
    check(ort->SetGlobalSpinControl(options, 0));
    OrtEnv* env = nullptr;
    check(ort->CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_FATAL, "vartml", options, &env));
    ort->ReleaseThreadingOptions(options);
    return env;
}

LoadedSession load_session(OrtEnv* env, const std::byte* setup, const Session& entry,
                           size_t number) {
    OrtSessionOptions* options = nullptr;
    check(ort->CreateSessionOptions(&options), number);
    check(ort->DisablePerSessionThreads(options), number);
    // Sums of 8-bit products that do not saturate on processors whose instructions would.
    check(ort->AddSessionConfigEntry(options, "session.x64quantprecision", "1"), number);
    LoadedSession loaded;
    check(ort->CreateSessionFromArray(env, setup + entry.model_offset, entry.model_size, options,
                                      &loaded.session),
          number);
    ort->ReleaseSessionOptions(options);
    loaded.input_names = names_of(loaded.session, true, number);
    loaded.output_names = names_of(loaded.session, false, number);
    if (loaded.input_names.size() != entry.num_inputs ||
        loaded.output_names.size() != entry.num_outputs) {
        send_reply(first_socket_fd, Status::fault, number,
                   "the model has other inputs or outputs than its node");
        _exit(1);
    }
    for (const std::string& name : loaded.input_names) loaded.inputs.push_back(name.c_str());
    for (const std::string& name : loaded.output_names) loaded.outputs.push_back(name.c_str());
    const auto* values = reinterpret_cast<const uint64_t*>(setup + entry.values_offset);
    loaded.input_values.assign(values, values + entry.num_inputs);
    loaded.output_values.assign(values + entry.num_inputs,
                                values + entry.num_inputs + entry.num_outputs);
    return loaded;
}

// Runs on one lane, one after the other.
class Lane {
public:
    Lane(const Loaded& loaded, size_t number)
        : loaded_(loaded),
          base_(loaded.lane(number)),
          socket_(first_socket_fd + static_cast<int>(number)),
          values_(loaded.setup.num_values) {}

    void serve() {
        for (char command = 0;;) {
            const ssize_t n = ::recv(socket_, &command, 1, 0);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) _exit(0);  // the parent is gone
            size_t session = 0;
            const std::string fault = run(session);
            send_reply(socket_, fault.empty() ? Status::good : Status::fault, session, fault);
        }
    }

private:
    Shape& shape(size_t slot) const { return reinterpret_cast<Shape*>(base_)[slot]; }
    bool is_output(size_t slot) const { return slot >= loaded_.setup.num_inputs; }

    // A tensor in the lane's memory.
    std::string bind(size_t slot) {
        const Slot& s = loaded_.slots[slot];
        const Shape& real = is_output(slot) ? s.shape : shape(slot);
        OrtValue* value = nullptr;
        const std::string fault = take_text(ort->CreateTensorWithDataAsOrtValue(
            loaded_.memory, base_ + s.offset, s.capacity, real.sizes, real.rank,
            static_cast<ONNXTensorElementDataType>(s.type), &value));
        values_[s.value].reset(value);
        return fault;
    }

    std::string run(size_t& session) {
        for (Value& value : values_) value.reset();
        for (size_t i = 0; i < loaded_.slots.size(); ++i) {
            if (is_output(i) && loaded_.slots[i].data_dependent) continue;
            if (auto fault = bind(i); !fault.empty()) return fault;
        }
        auto* const stamps = reinterpret_cast<Stamp*>(base_ + stamps_offset(loaded_.setup));
        for (session = 0; session < loaded_.sessions.size(); ++session) {
            stamps[session].start = now();
            if (auto fault = run_session(loaded_.sessions[session]); !fault.empty()) return fault;
            stamps[session].end = now();
        }
        session = 0;
        for (size_t i = loaded_.setup.num_inputs; i < loaded_.slots.size(); ++i)
            if (auto fault = finish(i); !fault.empty()) return fault;
        return {};
    }

    std::string run_session(const LoadedSession& s) {
        std::vector<const OrtValue*> inputs;
        std::vector<OrtValue*> outputs;
        for (const size_t v : s.input_values) inputs.push_back(values_[v].get());
        for (const size_t v : s.output_values) outputs.push_back(values_[v].get());
        const std::vector<OrtValue*> bound = outputs;
        auto fault =
            take_text(ort->Run(s.session, nullptr, s.inputs.data(), inputs.data(), inputs.size(),
                               s.outputs.data(), s.outputs.size(), outputs.data()));
        for (size_t i = 0; i < outputs.size(); ++i)
            if (outputs[i] != bound[i]) values_[s.output_values[i]].reset(outputs[i]);
        return fault;
    }

    // The real shape of an output, and its bytes where ONNX Runtime chose the place.
    std::string finish(size_t slot) {
        const Slot& s = loaded_.slots[slot];
        shape(slot) = s.shape;
        if (!s.data_dependent) return {};
        OrtValue* const value = values_[s.value].get();
        OrtTensorTypeAndShapeInfo* info = nullptr;
        if (auto fault = take_text(ort->GetTensorTypeAndShape(value, &info)); !fault.empty())
            return fault;
        size_t elements = 0;
        Shape real;
        ONNXTensorElementDataType type{};
        auto fault = take_text(ort->GetDimensionsCount(info, &real.rank));
        if (fault.empty()) fault = take_text(ort->GetTensorElementType(info, &type));
        if (fault.empty()) fault = take_text(ort->GetTensorShapeElementCount(info, &elements));
        if (fault.empty() && (real.rank != s.shape.rank || static_cast<uint64_t>(type) != s.type))
            fault = "an output has another type or number of dimensions than at compile time";
        if (fault.empty()) fault = take_text(ort->GetDimensions(info, real.sizes, real.rank));
        ort->ReleaseTensorTypeAndShapeInfo(info);
        if (!fault.empty()) return fault;
        for (size_t axis = 0; axis < real.rank; ++axis)
            if (real.sizes[axis] > s.shape.sizes[axis]) {
                shape(slot) = real;  // too large: the parent says so
                return {};
            }
        void* data = nullptr;
        fault = take_text(ort->GetTensorMutableData(value, &data));
        if (!fault.empty()) return fault;
        uint64_t most = 1;
        for (size_t axis = 0; axis < s.shape.rank; ++axis)
            most *= static_cast<uint64_t>(s.shape.sizes[axis]);
        if (elements != 0) std::memcpy(base_ + s.offset, data, elements * (s.capacity / most));
        shape(slot) = real;
        return {};
    }

    const Loaded& loaded_;
    std::byte* const base_;
    const int socket_;
    std::vector<Value> values_;
};

}  // namespace

void tell_absent(const char* reason) {
    send_reply(first_socket_fd, Status::absent, 0, reason);
}

void serve(const OrtApi* api, const char* version) {
    ort = api;
    size_t setup_size = 0, lanes_size = 0;
    const std::byte* const setup = map(setup_fd, setup_size, PROT_READ);
    auto* const loaded = new Loaded;  // for as long as the process
    std::memcpy(&loaded->setup, setup, sizeof loaded->setup);
    const Setup& s = loaded->setup;
    loaded->lanes = map(lanes_fd, lanes_size, PROT_READ | PROT_WRITE);
    loaded->slots.resize(s.num_inputs + s.num_outputs);
    std::memcpy(loaded->slots.data(), setup + s.slots_offset, loaded->slots.size() * sizeof(Slot));
    check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &loaded->memory));
    OrtEnv* const env = make_environment(s.threads);
    for (size_t i = 0; i < s.num_sessions; ++i) {
        Session entry;
        std::memcpy(&entry, setup + s.sessions_offset + i * sizeof entry, sizeof entry);
        loaded->sessions.push_back(load_session(env, setup, entry, i));
    }
    ::munmap(const_cast<std::byte*>(setup), setup_size);
    ::close(setup_fd);
    ::close(lanes_fd);
    for (size_t i = 1; i < s.num_lanes; ++i)
        std::thread([loaded, i] { Lane(*loaded, i).serve(); }).detach();
    send_reply(first_socket_fd, Status::good, 0, version);
    Lane(*loaded, 0).serve();
    _exit(0);
}

}  // namespace vartml::onnxruntime
