// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/engine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/run/vart/tensor_info.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::NpuTensorPriv;
using vart::NpuTensorPrivAccess;
using vart::TensorDirection;
using vart::TensorType;

// Sharing a conversion costs some microseconds; below this size one thread is faster.
constexpr size_t shared_conversion_bytes = size_t{256} * 1024;

int index_of(const std::vector<TensorInfo>& tensors, const std::string& name) {
    const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
    return found == tensors.end() ? -1 : static_cast<int>(found - tensors.begin());
}

}  // namespace

void Engine::FreeStaging::operator()(std::byte* p) const {
    std::free(p);
}

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<device::Executable> executable,
                                               const device::Program& program,
                                               const TensorTables& tables,
                                               const EngineOptions& options) {
    std::unique_ptr<Engine> engine(new Engine);
    engine->options_ = options;
    engine->border_conversions_ = executable->border_conversions();
    engine->executable_ = std::move(executable);
    if (auto good = engine->add_ports(program, tables); !good) return good.error();
    for (unsigned i = 0; i < options.slots; ++i)
        if (auto good = engine->add_lane(); !good) return good.error();
    return engine;
}

Result<void> Engine::add_ports(const device::Program& program, const TensorTables& tables) {
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        const bool is_input = direction == TensorDirection::INPUT;
        const auto& border = is_input ? program.inputs : program.outputs;
        size_t matched = 0;
        const auto& tensors = tables.tensors(direction);
        for (size_t i = 0; i < tensors.size(); ++i) {
            const TensorInfo& tensor = tensors[i];
            Port port;
            port.program_index = index_of(border, tensor.name);
            if (port.program_index >= 0) ++matched;
            if (port.program_index < 0 && !is_input)
                return Error{ErrorCode::bad_model, "program " + in_quotes(program.name) +
                                                       " does not make output " +
                                                       in_quotes(tensor.name) + " of the model"};
            if (port.program_index >= 0 &&
                !same_bytes(device_view(border[static_cast<size_t>(port.program_index)]),
                            device_view(tensor)))
                return Error{ErrorCode::bad_model, "program " + in_quotes(program.name) +
                                                       " has tensor " + in_quotes(tensor.name) +
                                                       " in another form than the model"};
            port.cpu_size_bytes = tensor.cpu.size_bytes;
            // Without a HW view the program reads and writes the bytes of the CPU view; the
            // caller's are copied all the same, so that the cost of CPU views does not depend on
            // the model.
            const TensorView& hw = device_view(tensor);
            port.hw_size_bytes = hw.size_bytes;
            if (tables.exchanged(direction)[i].tensor_type == TensorType::CPU) {
                auto conversion = is_input ? Conversion::create(tensor.cpu, hw)
                                           : Conversion::create(hw, tensor.cpu);
                if (!conversion)
                    return Error{conversion.error().code, "tensor " + in_quotes(tensor.name) +
                                                              ": " + conversion.error().message};
                port.conversion = *conversion;
            }
            (is_input ? inputs_ : outputs_).push_back(port);
        }
        if (matched != border.size())
            return Error{ErrorCode::bad_model, "program " + in_quotes(program.name) + " has " +
                                                   std::to_string(border.size()) +
                                                   (is_input ? " inputs, " : " outputs, ") +
                                                   std::to_string(matched) +
                                                   " of them are the model's"};
    }
    return {};
}

Result<void> Engine::add_lane() {
    Lane& lane = lanes_.emplace_back();
    for (unsigned i = 0; i < executable_->frames_at_once(); ++i) {
        auto element = make_element();
        if (!element) return element.error();
        lane.elements.push_back(std::move(*element));
    }
    for (const Element& element : lane.elements)
        lane.frames.push_back({element.input_addresses, element.output_addresses});
    return {};
}

Result<Engine::Element> Engine::make_element() const {
    Element element;
    const auto fill = [&](const std::vector<Port>& ports, std::vector<Staged>& staging) {
        constexpr size_t alignment = 64;
        for (const Port& port : ports) {
            Staged staged;
            if (port.conversion) {
                const size_t size = (port.hw_size_bytes + alignment - 1) / alignment * alignment;
                staged.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
                if (!staged.bytes) return false;
                std::memset(staged.bytes.get(), 0, size);
                const bool shared = port.cpu_size_bytes >= shared_conversion_bytes;
                staged.conversion = std::make_unique<SharedConversion>(
                    *port.conversion, shared ? options_.threads : 1);
            }
            staging.push_back(std::move(staged));
        }
        return true;
    };
    if (!fill(inputs_, element.inputs) || !fill(outputs_, element.outputs))
        return Error{ErrorCode::out_of_memory, "no memory for the staging buffers of CPU views"};
    const auto used = [](const std::vector<Port>& ports) {
        return static_cast<size_t>(
            std::ranges::count_if(ports, [](const Port& p) { return p.program_index >= 0; }));
    };
    element.input_addresses.resize(used(inputs_));
    element.output_addresses.resize(used(outputs_));
    return element;
}

Engine::SharedConversion::SharedConversion(const Conversion& conversion, unsigned parts)
    : conversion_(conversion), parts_(parts), shared_(*this, {parts}, parts) {}

void Engine::SharedConversion::run(const void* src, void* dst) {
    src_ = src;
    dst_ = dst;
    shared_.run();
}

void Engine::SharedConversion::run_item(size_t, size_t item) noexcept {
    conversion_.run_part(src_, dst_, static_cast<unsigned>(item), parts_);
}

// Addresses of an element; its CPU views are converted, the others handed to the device.
Result<void> Engine::begin(Element& element, const vart::NpuTensor* inputs,
                           const vart::NpuTensor* outputs, uint64_t& total) {
    uint64_t copied = 0, conversions = 0;
    Result<void> moved;
    const auto note = [&moved](Result<void> now) {
        if (!now && moved) moved = std::move(now);
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
        const Port& port = inputs_[i];
        NpuTensorPriv& tensor = *NpuTensorPrivAccess::get(inputs[i]);
        const std::byte* data = nullptr;
        if (port.conversion) {
            tensor.begin_cpu_access(false);
            // Mapped when the call was checked.
            element.inputs[i].conversion->run(*tensor.map(), element.inputs[i].bytes.get());
            tensor.end_cpu_access(false);
            data = element.inputs[i].bytes.get();
            copied += port.cpu_size_bytes;
            ++conversions;
        } else {
            data = tensor.device_bytes();
            if (!options_.skip_input_sync)
                note(tensor.begin_device_access(false, port.hw_size_bytes));
        }
        if (port.program_index >= 0)
            element.input_addresses[static_cast<size_t>(port.program_index)] = data;
    }
    counters_.bytes_copied_in.fetch_add(copied, std::memory_order_relaxed);
    for (size_t i = 0; i < outputs_.size(); ++i) {
        const Port& port = outputs_[i];
        NpuTensorPriv& tensor = *NpuTensorPrivAccess::get(outputs[i]);
        if (!port.conversion && !options_.skip_output_sync)
            note(tensor.begin_device_access(true, port.hw_size_bytes));
        element.output_addresses[static_cast<size_t>(port.program_index)] =
            port.conversion ? element.outputs[i].bytes.get() : tensor.device_bytes();
    }
    counters_.conversions.fetch_add(conversions, std::memory_order_relaxed);
    total += copied;
    return moved;
}

// The results of an element, and its memory back to the CPU.
Result<void> Engine::end(Element& element, const vart::NpuTensor* inputs,
                         const vart::NpuTensor* outputs, bool is_good, uint64_t& total) {
    uint64_t copied = 0, conversions = 0;
    Result<void> moved;
    const auto note = [&moved](Result<void> now) {
        if (!now && moved) moved = std::move(now);
    };
    for (size_t i = 0; i < outputs_.size(); ++i) {
        const Port& port = outputs_[i];
        NpuTensorPriv& tensor = *NpuTensorPrivAccess::get(outputs[i]);
        if (!port.conversion) {
            if (!options_.skip_output_sync)
                note(tensor.end_device_access(true, port.hw_size_bytes));
            continue;
        }
        if (!is_good) continue;
        tensor.begin_cpu_access(true);
        element.outputs[i].conversion->run(element.outputs[i].bytes.get(), *tensor.map());
        tensor.end_cpu_access(true);
        copied += port.cpu_size_bytes;
        ++conversions;
    }
    for (size_t i = 0; i < inputs_.size(); ++i)
        if (!inputs_[i].conversion && !options_.skip_input_sync)
            note(NpuTensorPrivAccess::get(inputs[i])->end_device_access(false,
                                                                        inputs_[i].hw_size_bytes));
    counters_.bytes_copied_out.fetch_add(copied, std::memory_order_relaxed);
    counters_.conversions.fetch_add(conversions, std::memory_order_relaxed);
    total += copied;
    return moved;
}

Result<void> Engine::run_group(device::Run run, Recording* recording) noexcept {
    if (!recording) return executable_->run(run);
    if (recording->turns++ == 0) {
        recording->stamp(Recording::inputs_converted);
        recording->stamp(Recording::doorbell);
    }
    run.recorders = recording->recorders();
    auto result = executable_->run(run);
    recording->stamp(Recording::completed);
    return result;
}

Result<void> Engine::run(const vart::NpuTensor* inputs, const vart::NpuTensor* outputs,
                         size_t batch, unsigned slot, Recording* recording) noexcept {
    Lane& lane = lanes_[slot];
    uint64_t copied = 0;
    for (size_t done = 0; done < batch;) {
        const size_t count = std::min(batch - done, lane.elements.size());
        const auto at = [&](size_t i) {
            return std::pair{inputs + (done + i) * inputs_.size(),
                             outputs + (done + i) * outputs_.size()};
        };
        Result<void> result;
        const auto note = [&result](Result<void> now) {
            if (!now && result) result = std::move(now);
        };
        for (size_t i = 0; i < count; ++i)
            note(begin(lane.elements[i], at(i).first, at(i).second, copied));
        if (result) result = run_group({std::span(lane.frames).first(count), slot}, recording);
        const bool is_good = bool(result);
        for (size_t i = 0; i < count; ++i)
            note(end(lane.elements[i], at(i).first, at(i).second, is_good, copied));
        counters_.conversions.fetch_add(count * border_conversions_, std::memory_order_relaxed);
        if (!result) return result;
        done += count;
    }
    if (recording) {
        recording->stamp(Recording::outputs_converted);
        recording->bytes_copied = copied;
    }
    return {};
}

}  // namespace vartml::runtime
