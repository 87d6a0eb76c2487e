// SPDX-License-Identifier: Apache-2.0
#include "lib/run/onnxruntime/onnxruntime.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <vartml/processors.h>
#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/graph/onnxruntime.h"
#include "lib/graph/walk.h"
#include "lib/run/exec/device.h"
#include "lib/run/exec/executor.h"
#include "lib/run/onnxruntime/protocol.h"

namespace vartml::onnxruntime {

// The child process of a partition, and the memory that it shares with this one.

// A file without a name that is mapped for reading and writing.
class SharedMemory {
public:
    // Errors: out_of_memory.
    static Result<SharedMemory> create(size_t size);
    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&& other) noexcept;
    ~SharedMemory();
    std::byte* data() const { return data_; }
    int fd() const { return fd_.get(); }

private:
    SharedMemory(Fd fd, std::byte* data, size_t size)
        : fd_(std::move(fd)), data_(data), size_(size) {}
    Fd fd_;
    std::byte* data_ = nullptr;
    size_t size_ = 0;
};

// Thread-safety: run() is called by one thread at a time per lane.
class Lanes {
public:
    // Starts the child for a program of OnnxRuntime nodes and waits until it has loaded them.
    // Errors: unsupported where there is no ONNX Runtime, with what to install; device with ONNX
    // Runtime's own sentence, naming the node; out_of_memory, io.
    static Result<std::unique_ptr<Lanes>> create(const device::Program& program, unsigned threads,
                                                 unsigned lanes);

    size_t size() const { return sockets_.size(); }
    const std::vector<Slot>& slots() const { return slots_; }  // inputs, then outputs
    std::byte* tensor(size_t lane, size_t slot) const;
    // Set for each input before a run, read for each output after it.
    Shape& shape(size_t lane, size_t slot) const;
    std::span<const Stamp> stamps(size_t lane) const;  // per node, of the last run
    // Errors: device, naming the node, or how the child ended.
    Result<void> run(size_t lane);
    const std::string& version() const { return version_; }

private:
    Lanes(SharedMemory memory, ServingChild child, Setup setup)
        : memory_(std::move(memory)), child_(std::move(child)), setup_(setup) {}
    Result<void> receive(size_t lane);
    Error ended();

    SharedMemory memory_;
    ServingChild child_;
    Setup setup_;
    std::vector<Slot> slots_;
    std::vector<std::string> nodes_;  // by session
    std::vector<Fd> sockets_;         // by lane
    std::string partition_, version_;
};

}  // namespace vartml::onnxruntime

namespace vartml::device {
namespace {

using onnxruntime::Lanes;
using onnxruntime::Slot;

std::string shape_text(const onnxruntime::Shape& shape) {
    std::string text;
    for (size_t i = 0; i < shape.rank; ++i)
        text += (i ? "," : "[") + std::to_string(shape.sizes[i]);
    return text.empty() ? "[]" : text + ']';
}

bool is_signed_integer(DataType type) {
    return type == DataType::int8 || type == DataType::int16 || type == DataType::int32 ||
           type == DataType::int64;
}

// One tensor between the border, which has the strides of the upper bound, and a lane, where it is
// dense in its real shape.
struct Tensor {
    DataType type;
    cpu::Shape bound;
    bool data_dependent;

    // Whether a shape that the child has written may be believed.
    bool fits(const onnxruntime::Shape& real) const {
        if (real.rank != bound.size()) return false;
        for (size_t axis = 0; axis < bound.size(); ++axis)
            if (real.sizes[axis] < 0 || real.sizes[axis] > bound[axis]) return false;
        return true;
    }
    size_t bytes(const cpu::Shape& shape) const {
        return static_cast<size_t>(shape.elements()) * size_bytes(type);
    }

    // Calls copy(offset in the border, offset in the lane, bytes) per row.
    template <typename Copy>
    void for_each_row(const cpu::Shape& real, const Copy& copy) const {
        if (real == bound) return copy(0, 0, bytes(bound));
        if (real.elements() == 0) return;
        const int64_t row = real.back();
        cpu::Shape outer = real;
        outer[outer.size() - 1] = 1;
        cpu::Walk<1> walk(outer, {cpu::strides_of(bound)});
        const auto size = size_bytes(type);
        for (int64_t i = 0; i < outer.elements(); ++i, walk.next())
            copy(static_cast<size_t>(walk.offset()) * size, static_cast<size_t>(i * row) * size,
                 static_cast<size_t>(row) * size);
    }
};

class OnnxRuntimeExecutable final : public Executable {
public:
    OnnxRuntimeExecutable(std::shared_ptr<const Program> program, std::unique_ptr<Lanes> lanes)
        : program_(std::move(program)), lanes_(std::move(lanes)) {
        const graph::Graph& graph = program_->graph;
        for (const auto* ids : {&graph.inputs, &graph.outputs})
            for (const graph::ValueId id : *ids) {
                const graph::Value& value = graph.value(id);
                tensors_.push_back(
                    {value.type.data_type, cpu::Shape(value.type.shape), value.data_dependent});
            }
    }

    Result<void> run(const Run& run) noexcept override {
        StepRecorder* const recorder = run.recorders.empty() ? nullptr : run.recorders[0];
        if (recorder) recorder->begin();
        auto done = compute(run.slot, run.frames[0], run.shapes);
        if (recorder) {
            if (done && recorder->has_steps()) stamp(run.slot, recorder->task_row());
            recorder->end();
            recorder->task_row().cpu_ns = profiling::not_captured;  // the child computes
        }
        return done;
    }
    std::vector<StampedProgram> stamped() const override {
        StampedProgram stamped{program_->name, {}};
        for (const graph::Node& node : program_->graph.nodes) stamped.steps.push_back(node.name);
        return {std::move(stamped)};
    }
    std::string compute_type() const override { return "fp32"; }
    unsigned border_conversions() const override { return 0; }
    size_t private_weight_bytes() const override {
        size_t sum = 0;
        for (const graph::Node& node : program_->graph.nodes)
            sum += program_->graph.value(node.inputs[0]).constant->bytes.size();
        return sum;
    }
    std::vector<double> time_steps(unsigned, unsigned) override {
        return std::vector<double>(program_->graph.nodes.size(),
                                   std::numeric_limits<double>::quiet_NaN());
    }
    std::string describe() const override {
        std::string text;
        for (const graph::Node& node : program_->graph.nodes)
            text += node.name + ": ONNX Runtime " + lanes_->version() + '\n';
        return text;
    }

private:
    Result<void> compute(size_t lane, const Frame& frame, RealShapes* shapes) noexcept {
        const auto& [inputs, outputs] = frame;
        try {
            for (size_t i = 0; i < inputs.size(); ++i)
                put(lane, i, inputs[i], shapes ? &shapes->inputs[i] : nullptr);
            {
                const Executor::Waiting waiting;  // other threads, in the child, use the processors
                if (auto done = lanes_->run(lane); !done) return done;
            }
            for (size_t i = 0; i < outputs.size(); ++i)
                if (auto done = get(lane, inputs.size() + i, outputs[i],
                                    shapes ? &shapes->outputs[i] : nullptr);
                    !done)
                    return done;
            return {};
        } catch (const std::bad_alloc&) {
            return Error{ErrorCode::out_of_memory, {}};  // no memory for a sentence either
        }
    }

    void put(size_t lane, size_t slot, const void* from, const cpu::Shape* real_shape) {
        const Tensor& t = tensors_[slot];
        const cpu::Shape real = t.data_dependent && real_shape ? *real_shape : t.bound;
        onnxruntime::Shape& shape = lanes_->shape(lane, slot);
        shape.rank = real.size();
        std::ranges::copy(real, shape.sizes);
        std::byte* const to = lanes_->tensor(lane, slot);
        t.for_each_row(real, [&](size_t at_border, size_t at_lane, size_t bytes) {
            const std::byte* const row = static_cast<const std::byte*>(from) + at_border;
            if (t.type == DataType::boolean)  // there anything but 0 and 1 is of no meaning
                std::transform(row, row + bytes, to + at_lane,
                               [](std::byte b) { return std::byte{b != std::byte{0}}; });
            else
                std::memcpy(to + at_lane, row, bytes);
        });
    }

    Result<void> get(size_t lane, size_t slot, void* to, cpu::Shape* real_shape) {
        const Tensor& t = tensors_[slot];
        const onnxruntime::Shape shape = lanes_->shape(lane, slot);
        if (!t.fits(shape)) {
            const graph::Value& value =
                program_->graph.value(static_cast<graph::ValueId>(lanes_->slots()[slot].value));
            return Error{ErrorCode::bad_model,
                         "tensor '" + value.name + "' is " + shape_text(shape) +
                             " in this run, the model allows for at most " + to_string(value.type) +
                             "; export it with the largest shape it can have"};
        }
        const cpu::Shape real(std::span<const int64_t>(shape.sizes, shape.rank));
        if (!(real == t.bound))
            std::memset(to, is_signed_integer(t.type) ? 0xFF : 0, t.bytes(t.bound));
        const std::byte* const from = lanes_->tensor(lane, slot);
        t.for_each_row(real, [&](size_t at_border, size_t at_lane, size_t bytes) {
            std::memcpy(static_cast<std::byte*>(to) + at_border, from + at_lane, bytes);
        });
        if (real_shape) *real_shape = real;
        return {};
    }

    void stamp(size_t lane, StepRecorder::Row& row) const {
        const auto stamps = lanes_->stamps(lane);
        for (size_t i = 0; i < std::min(stamps.size(), row.steps.size()); ++i) {
            row.steps[i].start = stamps[i].start;
            row.steps[i].end = stamps[i].end;
            ++row.records;
        }
    }

    const std::shared_ptr<const Program> program_;
    const std::unique_ptr<Lanes> lanes_;  // by slot
    std::vector<Tensor> tensors_;         // inputs, then outputs
};

class OnnxRuntime final : public Device {
public:
    std::string name() const override { return "onnxruntime"; }
    bool supports_target(const std::string& t) const override { return t == "onnxruntime-1"; }
    unsigned num_cores() const override {
        return std::min(usable_processors(), onnxruntime::max_lanes);
    }
    Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Program> program,
                                             const LoadOptions& options) override {
        const unsigned threads = options.threads ? options.threads : usable_processors();
        auto lanes = Lanes::create(*program, threads, std::max(options.concurrent_runs, 1U));
        if (!lanes) return lanes.error();
        return std::unique_ptr<Executable>(
            std::make_unique<OnnxRuntimeExecutable>(std::move(program), std::move(*lanes)));
    }
};

}  // namespace

Device& onnxruntime_device() {
    static OnnxRuntime device;
    return device;
}

}  // namespace vartml::device

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
    return Error{ErrorCode::device, node + "ONNX Runtime: " + with_way_out(reply.text)};
}

Result<void> Lanes::run(size_t lane) {
    const char command = 'r';
    ssize_t n = 0;
    do n = ::send(sockets_[lane].get(), &command, 1, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1 ? receive(lane) : ended();
}

}  // namespace vartml::onnxruntime
