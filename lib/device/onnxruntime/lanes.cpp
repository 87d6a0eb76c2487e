// SPDX-License-Identifier: Apache-2.0
#include "lib/device/onnxruntime/lanes.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>

#include "lib/common/onnxruntime_program.h"

namespace vartml::onnxruntime {
namespace {

using graph::ValueId;

size_t aligned(size_t size) {
    return (size + alignment - 1) / alignment * alignment;
}

// Number of ONNX's TensorProto.DataType.
uint64_t onnx_type(DataType type) {
    constexpr DataType types[] = {DataType::unknown, DataType::float32, DataType::uint8,
                                  DataType::int8,    DataType::uint16,  DataType::int16,
                                  DataType::int32,   DataType::int64,   DataType::unknown,
                                  DataType::boolean, DataType::fp16,    DataType::float64,
                                  DataType::uint32,  DataType::uint64,  DataType::unknown,
                                  DataType::unknown, DataType::bf16};
    return static_cast<uint64_t>(std::ranges::find(types, type) - std::begin(types));
}

Shape to_shape(const graph::Type& type) {
    Shape shape{type.shape.size(), {}};
    std::ranges::copy(type.shape, shape.sizes);
    return shape;
}

// The bytes of the setup, and where the lanes keep what.
class Layout {
public:
    Layout(const device::Program& program, unsigned threads, unsigned lanes) : program_(program) {
        const graph::Graph& graph = program.graph;
        setup.threads = threads;
        setup.num_lanes = lanes;
        setup.num_values = graph.values.size();
        setup.num_inputs = graph.inputs.size();
        setup.num_outputs = graph.outputs.size();
        setup.num_sessions = graph.nodes.size();
        place_tensors();
        place_sessions();
    }

    Setup setup;
    std::vector<Slot> slots;
    size_t size = 0;  // of the setup

    void write(std::byte* to) const {
        std::memcpy(to, &setup, sizeof setup);
        std::memcpy(to + setup.slots_offset, slots.data(), slots.size() * sizeof(Slot));
        std::memcpy(to + setup.sessions_offset, sessions_.data(),
                    sessions_.size() * sizeof(Session));
        for (size_t i = 0; i < sessions_.size(); ++i) {
            const graph::Node& node = program_.graph.nodes[i];
            auto* values = reinterpret_cast<uint64_t*>(to + sessions_[i].values_offset);
            for (const ValueId id : std::span(node.inputs).subspan(1))
                *values++ = static_cast<uint64_t>(id);
            for (const ValueId id : node.outputs) *values++ = static_cast<uint64_t>(id);
            const auto model = model_of(node);
            std::memcpy(to + sessions_[i].model_offset, model.data(), model.size());
        }
    }

private:
    Bytes model_of(const graph::Node& node) const {
        return program_.graph.value(node.inputs[0]).constant->bytes;
    }

    void place_tensors() {
        size_t at = aligned(stamps_offset(setup) + setup.num_sessions * sizeof(Stamp));
        for (const auto* ids : {&program_.graph.inputs, &program_.graph.outputs})
            for (const ValueId id : *ids) {
                const graph::Value& value = program_.graph.value(id);
                slots.push_back({static_cast<uint64_t>(id), onnx_type(value.type.data_type), at,
                                 value.type.size_bytes(), value.data_dependent,
                                 to_shape(value.type)});
                at = aligned(at + value.type.size_bytes());
            }
        setup.lane_bytes = at;
    }

    void place_sessions() {
        size_t at = aligned(sizeof setup);
        setup.slots_offset = at;
        at = aligned(at + slots.size() * sizeof(Slot));
        setup.sessions_offset = at;
        at = aligned(at + setup.num_sessions * sizeof(Session));
        for (const graph::Node& node : program_.graph.nodes) {
            Session& session = sessions_.emplace_back();
            session.num_inputs = node.inputs.size() - 1;
            session.num_outputs = node.outputs.size();
            session.values_offset = at;
            at = aligned(at + (session.num_inputs + session.num_outputs) * sizeof(uint64_t));
            session.model_offset = at;
            session.model_size = model_of(node).size();
            at = aligned(at + session.model_size);
        }
        size = at;
    }

    const device::Program& program_;
    std::vector<Session> sessions_;
};

}  // namespace

// ---- shared memory

Result<SharedMemory> SharedMemory::create(size_t size) {
    const Error none{ErrorCode::out_of_memory,
                     "no memory of " + std::to_string(size) + " bytes to share with ONNX Runtime"};
    Fd fd(::memfd_create("vartml-onnxruntime", MFD_CLOEXEC));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return none;
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) return none;
    return SharedMemory(std::move(fd), static_cast<std::byte*>(at), size);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

SharedMemory::~SharedMemory() {
    if (data_) ::munmap(data_, size_);
}

// ---- lanes

Result<std::unique_ptr<Lanes>> Lanes::create(const device::Program& program, unsigned threads,
                                             unsigned lanes) {
    const std::string child_program = find_onnxruntime_program();
    if (child_program.empty())
        return Error{
            ErrorCode::unsupported,
            "partition '" + program.name +
                "' needs ONNX Runtime, and the program vartml-onnxruntime, which loads it, "
                "is not installed; it is built where ONNX Runtime's headers are (Debian: "
                "libonnxruntime-dev)"};
    const Layout layout(program, threads, lanes);
    auto setup = SharedMemory::create(layout.size);
    if (!setup) return setup.error();
    layout.write(setup->data());
    auto memory = SharedMemory::create(layout.setup.lane_bytes * lanes);
    if (!memory) return memory.error();

    std::vector<Fd> ours, theirs;
    std::vector<int> descriptors = {setup->fd(), memory->fd()};
    for (unsigned i = 0; i < lanes; ++i) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            return system_error(child_program, "make a socket for", errno);
        ours.emplace_back(ends[0]);
        theirs.emplace_back(ends[1]);
        descriptors.push_back(ends[1]);
    }
    auto child = ServingChild::start({child_program, "serve"}, descriptors);
    if (!child) return child.error();
    std::unique_ptr<Lanes> self(new Lanes(std::move(*memory), std::move(*child), layout.setup));
    self->slots_ = layout.slots;
    for (const graph::Node& node : program.graph.nodes) self->nodes_.push_back(node.name);
    self->sockets_ = std::move(ours);
    self->partition_ = program.name;
    theirs.clear();  // else the end of the child would not be seen
    if (auto loaded = self->receive(0); !loaded) return loaded.error();
    return self;
}

std::byte* Lanes::tensor(size_t lane, size_t slot) const {
    return memory_.data() + lane * setup_.lane_bytes + slots_[slot].offset;
}

Shape& Lanes::shape(size_t lane, size_t slot) const {
    return reinterpret_cast<Shape*>(memory_.data() + lane * setup_.lane_bytes)[slot];
}

std::span<const Stamp> Lanes::stamps(size_t lane) const {
    const std::byte* const base = memory_.data() + lane * setup_.lane_bytes;
    return {reinterpret_cast<const Stamp*>(base + stamps_offset(setup_)), setup_.num_sessions};
}

Error Lanes::ended() {
    return {ErrorCode::device, "partition '" + partition_ + "': the process of ONNX Runtime " +
                                   child_.end_text() + "; load the model again"};
}

Result<void> Lanes::receive(size_t lane) {
    Reply reply;
    ssize_t n = 0;
    do n = ::recv(sockets_[lane].get(), &reply, sizeof reply, 0);
    while (n < 0 && errno == EINTR);
    if (n != sizeof reply) return ended();
    reply.text[sizeof reply.text - 1] = '\0';
    switch (reply.status) {
        case Status::good:
            if (version_.empty()) version_ = reply.text;
            return {};
        case Status::absent:
            return Error{ErrorCode::unsupported,
                         "partition '" + partition_ + "' needs ONNX Runtime, which is not here (" +
                             std::string(reply.text) + "); " + std::string(how_to_get_onnxruntime)};
        case Status::fault:
            break;
    }
    const std::string node =
        reply.session < nodes_.size() ? "node '" + nodes_[reply.session] + "': " : std::string();
    return Error{ErrorCode::device, node + "ONNX Runtime: " + reply.text};
}

Result<void> Lanes::run(size_t lane) {
    const char command = 'r';
    ssize_t n = 0;
    do n = ::send(sockets_[lane].get(), &command, 1, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1 ? receive(lane) : ended();
}

}  // namespace vartml::onnxruntime
