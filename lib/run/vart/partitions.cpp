// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/partitions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "lib/model/program.h"
#include "lib/run/vart/tensor_info.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

using artifact::CompiledModel;
using device::Program;
using Place = Wiring::Place;

constexpr size_t alignment = 64;

cpu::Shape shape_of(const TensorInfo& tensor) {
    const std::vector<int64_t> sizes(tensor.cpu.shape.begin(), tensor.cpu.shape.end());
    return cpu::Shape(sizes);
}

std::optional<size_t> index_of(const std::vector<TensorInfo>& tensors, const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
    if (found == tensors.end()) return std::nullopt;
    return static_cast<size_t>(found - tensors.begin());
}

class Wirer {
public:
    Wirer(const CompiledModel& model, const std::vector<std::shared_ptr<const Program>>& programs)
        : model_(model), programs_(programs) {}

    Result<Wiring> wire() {
        for (const TensorInfo& t : model_.inputs) add(t, Place::model_input, wiring_.input_shape);
        for (const auto& program : programs_) {
            Wiring::Partition partition;
            for (const TensorInfo& t : program->inputs) {
                const auto source = sources_.find(t.name);
                if (source == sources_.end())
                    return fault(*program, t, "is made by no partition before it");
                if (!same_bytes(device_view(t), *source->second.view))
                    return fault(*program, t, "has another layout than its source");
                partition.inputs.push_back(source->second.tensor);
            }
            for (const TensorInfo& t : program->outputs) {
                auto tensor = place_output(t);
                if (!tensor)
                    return fault(*program, t, "has another layout than the model's output");
                partition.outputs.push_back(*tensor);
                partition.output_shape.push_back(shape_of(t));
                sources_[t.name] = {*tensor, &device_view(t)};
            }
            wiring_.partitions.push_back(std::move(partition));
        }
        for (const TensorInfo& t : model_.outputs) wiring_.output_shape.push_back(shape_of(t));
        return std::move(wiring_);
    }

private:
    struct Source {
        Wiring::Tensor tensor;
        const TensorView* view;
    };

    void add(const TensorInfo& t, Place place, std::vector<cpu::Shape>& shapes) {
        sources_[t.name] = {{place, shapes.size()}, &device_view(t)};
        shapes.push_back(shape_of(t));
    }

    // An output of the model is written in the caller's memory, and read there by others.
    std::optional<Wiring::Tensor> place_output(const TensorInfo& t) {
        if (const auto index = index_of(model_.outputs, t.name)) {
            if (!same_bytes(device_view(t), device_view(model_.outputs[*index])))
                return std::nullopt;
            return Wiring::Tensor{Place::model_output, *index};
        }
        wiring_.buffer_bytes.push_back(device_view(t).size_bytes);
        return Wiring::Tensor{Place::between, wiring_.buffer_bytes.size() - 1};
    }

    Error fault(const Program& program, const TensorInfo& t, const std::string& what) const {
        return {ErrorCode::bad_model, "tensor " + in_quotes(t.name) + " of partition " +
                                          in_quotes(program.name) + ' ' + what +
                                          "; compile the model again"};
    }

    const CompiledModel& model_;
    const std::vector<std::shared_ptr<const Program>>& programs_;
    std::map<std::string, Source> sources_;
    Wiring wiring_;
};

struct Free {
    void operator()(std::byte* p) const { std::free(p); }
};

// The memory of a slot; a run allocates nothing.
struct Lane {
    struct Partition {
        std::vector<const void*> inputs;
        std::vector<void*> outputs;
        device::RealShapes shapes;
    };
    std::vector<std::unique_ptr<std::byte, Free>> buffers;
    std::vector<Partition> partitions;
    std::vector<cpu::Shape> model_inputs, model_outputs, between;  // real shapes
};

class Joined final : public device::Executable {
public:
    Joined(std::vector<LoadedPartition> partitions, Wiring wiring)
        : partitions_(std::move(partitions)), wiring_(std::move(wiring)) {
        for (const LoadedPartition& p : partitions_)
            num_stamped_.push_back(p.executable->stamped().size());
    }

    bool add_lane() {
        auto lane = std::make_unique<Lane>();
        for (const size_t bytes : wiring_.buffer_bytes) {
            const size_t size =
                (std::max<size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
            auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
            if (!memory) return false;
            std::memset(memory, 0, size);
            lane->buffers.emplace_back(memory);
        }
        for (const Wiring::Partition& p : wiring_.partitions) {
            Lane::Partition& own = lane->partitions.emplace_back();
            own.inputs.resize(p.inputs.size());
            own.outputs.resize(p.outputs.size());
            own.shapes.inputs.resize(p.inputs.size());
            own.shapes.outputs = p.output_shape;  // a static one stays
        }
        lane->model_inputs = wiring_.input_shape;
        lane->model_outputs = wiring_.output_shape;
        lane->between.resize(wiring_.buffer_bytes.size());
        lanes_.push_back(std::move(lane));
        return true;
    }

    Result<void> run(const device::Run& run) noexcept override {
        Lane& lane = *lanes_[run.slot];
        const device::Frame& frame = run.frames[0];
        auto recorders = run.recorders;
        for (size_t p = 0; p < partitions_.size(); ++p) {
            const Wiring::Partition& wiring = wiring_.partitions[p];
            Lane::Partition& own = lane.partitions[p];
            for (size_t i = 0; i < wiring.inputs.size(); ++i) {
                own.inputs[i] = address(lane, wiring.inputs[i], frame);
                own.shapes.inputs[i] = shape(lane, wiring.inputs[i]);
            }
            for (size_t i = 0; i < wiring.outputs.size(); ++i)
                own.outputs[i] = const_cast<void*>(address(lane, wiring.outputs[i], frame));
            const device::Frame own_frame{own.inputs, own.outputs};
            const size_t stamped = recorders.empty() ? 0 : num_stamped_[p];
            auto done = partitions_[p].executable->run(
                {{&own_frame, 1}, run.slot, &own.shapes, recorders.first(stamped)});
            if (!done) return done;
            recorders = recorders.subspan(stamped);
            for (size_t i = 0; i < wiring.outputs.size(); ++i)
                shape(lane, wiring.outputs[i]) = own.shapes.outputs[i];
        }
        return {};
    }

    std::vector<device::StampedProgram> stamped() const override {
        std::vector<device::StampedProgram> all;
        for (const LoadedPartition& p : partitions_)
            for (auto& program : p.executable->stamped()) all.push_back(std::move(program));
        return all;
    }
    std::string compute_type() const override {
        for (const LoadedPartition& p : partitions_)
            if (p.program->target != artifact::cpu_target &&
                p.program->target != artifact::onnxruntime_target)
                return p.executable->compute_type();
        return partitions_[0].executable->compute_type();
    }
    unsigned border_conversions() const override {
        unsigned sum = 0;
        for (const LoadedPartition& p : partitions_) sum += p.executable->border_conversions();
        return sum;
    }
    size_t private_weight_bytes() const override {
        size_t sum = 0;
        for (const LoadedPartition& p : partitions_) sum += p.executable->private_weight_bytes();
        return sum;
    }
    std::string describe() const override {
        std::string text;
        for (const LoadedPartition& p : partitions_) text += p.executable->describe();
        return text;
    }
    std::vector<double> time_steps(unsigned runs, unsigned slot) override {
        std::vector<double> times;
        for (const LoadedPartition& p : partitions_) {
            const auto own = p.executable->time_steps(runs, slot);
            times.insert(times.end(), own.begin(), own.end());
        }
        return times;
    }

private:
    static const void* address(Lane& lane, const Wiring::Tensor& tensor,
                               const device::Frame& frame) {
        switch (tensor.place) {
            case Place::model_input:
                return frame.inputs[tensor.index];
            case Place::model_output:
                return frame.outputs[tensor.index];
            case Place::between:
                break;
        }
        return lane.buffers[tensor.index].get();
    }
    static cpu::Shape& shape(Lane& lane, const Wiring::Tensor& tensor) {
        switch (tensor.place) {
            case Place::model_input:
                return lane.model_inputs[tensor.index];
            case Place::model_output:
                return lane.model_outputs[tensor.index];
            case Place::between:
                break;
        }
        return lane.between[tensor.index];
    }

    std::vector<LoadedPartition> partitions_;
    std::vector<size_t> num_stamped_;  // programs of each partition that leave stamps
    Wiring wiring_;
    std::vector<std::unique_ptr<Lane>> lanes_;  // by slot
};

}  // namespace

Result<Wiring> wire(const CompiledModel& model,
                    const std::vector<std::shared_ptr<const Program>>& programs) {
    return Wirer(model, programs).wire();
}

Result<std::unique_ptr<device::Executable>> join_partitions(std::vector<LoadedPartition> partitions,
                                                            Wiring wiring,
                                                            unsigned concurrent_runs) {
    auto joined = std::make_unique<Joined>(std::move(partitions), std::move(wiring));
    for (unsigned i = 0; i < std::max(concurrent_runs, 1U); ++i)
        if (!joined->add_lane())
            return Error{ErrorCode::out_of_memory, "no memory for tensors between partitions"};
    return std::unique_ptr<device::Executable>(std::move(joined));
}

}  // namespace vartml::runtime
