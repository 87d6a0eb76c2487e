// SPDX-License-Identifier: Apache-2.0
#include "lib/device/onnxruntime/onnxruntime.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>

#include "lib/common/processors.h"
#include "lib/cpu/walk.h"
#include "lib/device/executor.h"
#include "lib/device/onnxruntime/lanes.h"
#include "lib/graph/onnxruntime.h"

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
        free_.reserve(lanes_->size());
        for (size_t i = 0; i < lanes_->size(); ++i) free_.push_back(i);
    }

    Result<void> run(std::span<const void* const> inputs,
                     std::span<void* const> outputs) noexcept override {
        return run_in(Taken(*this), inputs, outputs, nullptr, nullptr);
    }
    Result<void> run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     RealShapes& shapes) noexcept override {
        return run_in(Taken(*this), inputs, outputs, &shapes, nullptr);
    }
    std::vector<StampedProgram> stamped() const override {
        StampedProgram stamped{program_->name, {}};
        for (const graph::Node& node : program_->graph.nodes) stamped.steps.push_back(node.name);
        return {std::move(stamped)};
    }
    Result<void> run_recorded(std::span<const Frame> frames, RealShapes* shapes,
                              std::span<StepRecorder* const> recorders) noexcept override {
        return run_in(Taken(*this), frames[0].inputs, frames[0].outputs, shapes, recorders[0]);
    }
    std::string compute_type() const override { return "fp32"; }
    unsigned border_conversions() const override { return 0; }
    size_t private_weight_bytes() const override {
        size_t sum = 0;
        for (const graph::Node& node : program_->graph.nodes)
            sum += program_->graph.value(node.inputs[0]).constant->bytes.size();
        return sum;
    }
    std::string describe() const override {
        std::string text;
        for (const graph::Node& node : program_->graph.nodes)
            text += node.name + ": ONNX Runtime " + lanes_->version() + '\n';
        return text;
    }

private:
    // A lane that nobody else runs on, as long as this lives.
    class Taken {
    public:
        explicit Taken(OnnxRuntimeExecutable& owner) : owner_(owner) {
            std::unique_lock lock(owner.mutex_);
            if (owner.free_.empty()) {
                const Executor::Waiting waiting;
                owner.returned_.wait(lock, [&owner] { return !owner.free_.empty(); });
            }
            lane = owner.free_.back();
            owner.free_.pop_back();
        }
        ~Taken() {
            {
                const std::lock_guard lock(owner_.mutex_);
                owner_.free_.push_back(lane);
            }
            owner_.returned_.notify_one();
        }
        Taken(const Taken&) = delete;
        Taken& operator=(const Taken&) = delete;
        size_t lane = 0;

    private:
        OnnxRuntimeExecutable& owner_;
    };

    Result<void> run_in(const Taken& taken, std::span<const void* const> inputs,
                        std::span<void* const> outputs, RealShapes* shapes,
                        StepRecorder* recorder) noexcept {
        if (recorder) recorder->begin();
        auto done = compute(taken.lane, inputs, outputs, shapes);
        if (recorder) {
            if (done && recorder->has_steps()) stamp(taken.lane, recorder->task_row());
            recorder->end();
        }
        return done;
    }

    Result<void> compute(size_t lane, std::span<const void* const> inputs,
                         std::span<void* const> outputs, RealShapes* shapes) noexcept {
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
            std::memcpy(to + at_lane, static_cast<const std::byte*>(from) + at_border, bytes);
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
    const std::unique_ptr<Lanes> lanes_;
    std::vector<Tensor> tensors_;  // inputs, then outputs
    std::mutex mutex_;             // guards free_; a leaf lock
    std::condition_variable returned_;
    std::vector<size_t> free_;  // room for all
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
        const unsigned runs = std::clamp(options.concurrent_runs, 1U, num_cores());
        auto lanes = Lanes::create(*program, threads, runs);
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
