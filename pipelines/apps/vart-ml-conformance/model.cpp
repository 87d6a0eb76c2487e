// SPDX-License-Identifier: Apache-2.0
// The model under test: its runners, and tensors that are filled with values which every view can
// hold exactly.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "checks.h"

namespace conformance {

using vart::DataType;
using vart::MemoryLayout;
using vart::MemoryType;
using vart::NpuTensor;
using vart::NpuTensorInfo;
using vart::TensorDirection;
using vart::TensorType;

namespace {

const char* word(TensorType type) {
    return type == TensorType::HW ? "HW" : "CPU";
}

// Position of a dimension in a CPU view, for layouts of pictures.
struct Picture {
    size_t n, c, h, w;
};
std::optional<Picture> picture(MemoryLayout layout) {
    if (layout == MemoryLayout::NCHW) return Picture{0, 1, 2, 3};
    if (layout == MemoryLayout::NHWC) return Picture{0, 3, 1, 2};
    return std::nullopt;
}
size_t group_of(MemoryLayout layout) {
    switch (layout) {
        case MemoryLayout::HCWNC4:
            return 4;
        case MemoryLayout::HCWNC8:
            return 8;
        case MemoryLayout::HCWNC16:
            return 16;
        default:
            return 0;
    }
}

// Goes through all indices of a shape, the last dimension fastest.
template <class Use>
void each_index(const std::vector<uint32_t>& shape, Use use) {
    std::vector<size_t> at(shape.size());
    const size_t count =
        std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
    for (size_t i = 0; i < count; ++i) {
        use(at);
        for (size_t d = shape.size(); d-- > 0;) {
            if (++at[d] < shape[d]) break;
            at[d] = 0;
        }
    }
}

template <class T>
T read_at(const void* bytes, size_t element) {
    T value;
    std::memcpy(&value, static_cast<const char*>(bytes) + element * sizeof(T), sizeof(T));
    return value;
}
template <class T>
void write_at(void* bytes, size_t element, T value) {
    std::memcpy(static_cast<char*>(bytes) + element * sizeof(T), &value, sizeof(T));
}

double half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? std::ldexp(fraction, -24)
                                   : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}
// Of a number that it holds exactly and that is not tiny.
uint16_t to_half(double value) {
    if (value == 0) return 0;
    int exponent;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    return uint16_t((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                    (int(std::ldexp(fraction, 11)) & 1023));
}

// Of a step of the pattern; integers hold the step itself.
void encode(DataType type, void* bytes, size_t element, unsigned step, double unit,
            int zero_point) {
    const float value = float(step * unit);
    const int64_t q = int64_t(step) + zero_point;
    uint32_t bits;
    switch (type) {
        case DataType::BOOLEAN:
            write_at(bytes, element, uint8_t(step & 1));
            break;
        case DataType::INT8:
        case DataType::UINT8:
            write_at(bytes, element, uint8_t(q));
            break;
        case DataType::INT16:
        case DataType::UINT16:
            write_at(bytes, element, uint16_t(q));
            break;
        case DataType::INT32:
        case DataType::UINT32:
            write_at(bytes, element, uint32_t(q));
            break;
        case DataType::INT64:
        case DataType::UINT64:
            write_at(bytes, element, uint64_t(q));
            break;
        case DataType::FLOAT32:
            write_at(bytes, element, value);
            break;
        case DataType::BF16:
            std::memcpy(&bits, &value, sizeof bits);
            write_at(bytes, element, uint16_t(bits >> 16));
            break;
        case DataType::FP16:
            write_at(bytes, element, to_half(value));
            break;
        default:
            break;
    }
}

bool is_float(DataType type) {
    return type == DataType::FLOAT32 || type == DataType::BF16 || type == DataType::FP16;
}

}  // namespace

std::shared_ptr<vart::Runner> Model::open(Options options) const {
    options.emplace("input_tensor_type", std::string("CPU"));
    options.emplace("output_tensor_type", std::string("CPU"));
    auto runner = vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path_, options);
    if (!runner) throw std::runtime_error("create_runner returned nullptr");
    return runner;
}

vart::Runner& Model::runner(TensorType inputs, TensorType outputs) {
    auto& runner = runners_[int(inputs)][int(outputs)];
    if (!runner) {
        runner = open({{"input_tensor_type", std::string(word(inputs))},
                       {"output_tensor_type", std::string(word(outputs))}});
    }
    return *runner;
}

bool Model::has_hw(TensorDirection direction) {
    // Of each tensor: a runtime may list those that have one.
    const auto& cpu = runner().get_tensors_info(direction, TensorType::CPU);
    return runner().get_tensors_info(direction, TensorType::HW).size() == cpu.size();
}

size_t bytes_of_element(DataType type) {
    switch (type) {
        case DataType::BOOLEAN:
        case DataType::INT8:
        case DataType::UINT8:
            return 1;
        case DataType::INT16:
        case DataType::UINT16:
        case DataType::BF16:
        case DataType::FP16:
            return 2;
        case DataType::INT32:
        case DataType::UINT32:
        case DataType::FLOAT32:
            return 4;
        case DataType::INT64:
        case DataType::UINT64:
            return 8;
        default:
            return 0;
    }
}

std::optional<double> decode(DataType type, const void* bytes, size_t element,
                             const vart::QuantParameters& quant) {
    // Integers are quantised numbers where there is a scale.
    const auto real = [&](auto q) {
        return quant.scale > 0 ? (double(q) - quant.zero_point) * quant.scale : double(q);
    };
    switch (type) {
        case DataType::BOOLEAN:
            return double(read_at<uint8_t>(bytes, element) != 0);
        case DataType::INT8:
            return real(read_at<int8_t>(bytes, element));
        case DataType::UINT8:
            return real(read_at<uint8_t>(bytes, element));
        case DataType::INT16:
            return real(read_at<int16_t>(bytes, element));
        case DataType::UINT16:
            return real(read_at<uint16_t>(bytes, element));
        case DataType::INT32:
            return real(read_at<int32_t>(bytes, element));
        case DataType::UINT32:
            return real(read_at<uint32_t>(bytes, element));
        case DataType::INT64:
            return real(read_at<int64_t>(bytes, element));
        case DataType::UINT64:
            return real(read_at<uint64_t>(bytes, element));
        case DataType::FLOAT32:
            return double(read_at<float>(bytes, element));
        case DataType::FP16:
            return half(read_at<uint16_t>(bytes, element));
        case DataType::BF16: {
            const uint32_t bits = uint32_t{read_at<uint16_t>(bytes, element)} << 16;
            return double(read_at<float>(&bits, 0));
        }
        default:
            return std::nullopt;
    }
}

// given: VART ML architecture overview, "Supported Layouts and Data Types", and the strides in the
// public examples.
std::optional<std::vector<size_t>> places_in(const NpuTensorInfo& hw, const NpuTensorInfo& cpu) {
    const size_t rank = hw.shape.size();
    if (hw.strides.size() != rank) return std::nullopt;
    const auto from = picture(cpu.memory_layout);
    const auto to = picture(hw.memory_layout);
    const size_t group = group_of(hw.memory_layout);
    const bool in_groups = group && from && rank == 5 && cpu.shape.size() == 4;
    const auto& order = hw.memory_layout_order;
    const bool generic = hw.memory_layout == MemoryLayout::GENERIC;
    if (!in_groups && (group || rank != cpu.shape.size())) return std::nullopt;
    if (generic && (order.size() != rank ||
                    std::any_of(order.begin(), order.end(), [&](auto d) { return d >= rank; })))
        return std::nullopt;
    std::vector<size_t> places;
    each_index(cpu.shape, [&](const std::vector<size_t>& at) {
        std::vector<size_t> there(rank);
        if (in_groups) {
            there = {at[from->h], at[from->c] / group, at[from->w], at[from->n],
                     at[from->c] % group};
        } else if (from && to) {
            there[to->n] = at[from->n];
            there[to->c] = at[from->c];
            there[to->h] = at[from->h];
            there[to->w] = at[from->w];
        } else {
            for (size_t d = 0; d < rank; ++d) there[d] = at[generic ? order[d] : d];
        }
        places.push_back(
            std::inner_product(there.begin(), there.end(), hw.strides.begin(), size_t{0}));
    });
    if (std::any_of(places.begin(), places.end(), [&](size_t p) {
            return (p + 1) * bytes_of_element(hw.data_type) > hw.size_in_bytes;
        }))
        return std::nullopt;
    return places;
}

void fill(const vart::Runner& runner, const NpuTensorInfo& info, void* bytes, unsigned variant) {
    // One unit is a step of the quantised view, so that no view rounds. Integers of the model
    // itself may be indices: small ones.
    const NpuTensorInfo& cpu = runner.get_tensor_info_by_name(info.name, TensorType::CPU);
    vart::QuantParameters quant;
    try {
        quant = runner.get_quant_parameters(info.name);
    } catch (const std::exception&) {
    }
    const bool real = is_float(cpu.data_type);
    const bool quantised = real && !is_float(info.data_type);
    bool steps = false;
    if (real) {
        try {
            steps = !is_float(runner.get_tensor_info_by_name(info.name, TensorType::HW).data_type);
        } catch (const std::exception&) {
        }
    }
    const double unit = steps && quant.scale > 0 ? quant.scale : 0.0625;
    std::memset(bytes, 0, info.size_in_bytes);
    std::optional<std::vector<size_t>> places;
    if (info.tensor_type == TensorType::HW) {
        places = places_in(info, cpu);
        if (!places)
            throw std::runtime_error("the HW view of '" + info.name +
                                     "' has a layout that is not documented");
    }
    const size_t count = cpu.size;
    for (size_t i = 0; i < count; ++i) {
        const unsigned step = unsigned(i * 7 + i / 11 + variant * 3) % (real ? 11 : 2);
        encode(info.data_type, bytes, places ? (*places)[i] : i, step, unit,
               quantised ? quant.zero_point : 0);
    }
}

std::vector<NpuTensor> plain_tensors(const vart::Runner& runner, TensorDirection direction,
                                     Frame& owner) {
    std::vector<NpuTensor> tensors;
    for (const NpuTensorInfo& info : runner.get_tensors_info(direction, TensorType::CPU)) {
        owner.memory.emplace_back(info.size_in_bytes);
        tensors.emplace_back(info, static_cast<void*>(owner.memory.back().data()),
                             MemoryType::USER_POINTER_NON_CMA);
    }
    return tensors;
}

Frame plain_frame(const vart::Runner& runner, size_t batch, unsigned variant) {
    Frame frame;
    for (size_t i = 0; i < batch; ++i) {
        frame.inputs.push_back(plain_tensors(runner, TensorDirection::INPUT, frame));
        frame.outputs.push_back(plain_tensors(runner, TensorDirection::OUTPUT, frame));
        for (NpuTensor& tensor : frame.inputs.back())
            fill(runner, tensor.get_info(), tensor.get_virtual_address(), variant + unsigned(i));
    }
    return frame;
}

Frame device_frame(const vart::Runner& runner, TensorType inputs, TensorType outputs,
                   unsigned variant) {
    Frame frame;
    frame.inputs.emplace_back();
    frame.outputs.emplace_back();
    for (const NpuTensorInfo& info : runner.get_tensors_info(TensorDirection::INPUT, inputs)) {
        frame.inputs[0].push_back(runner.allocate_npu_tensor(info));
        void* bytes = frame.inputs[0].back().get_virtual_address();
        if (!bytes)
            throw std::runtime_error("get_virtual_address of an allocated tensor is nullptr");
        fill(runner, info, bytes, variant);
    }
    for (const NpuTensorInfo& info : runner.get_tensors_info(TensorDirection::OUTPUT, outputs))
        frame.outputs[0].push_back(runner.allocate_npu_tensor(info));
    return frame;
}

std::string bytes_of(const NpuTensor& tensor) {
    const auto* bytes = static_cast<const char*>(tensor.get_virtual_address());
    return bytes ? std::string(bytes, tensor.get_info().size_in_bytes) : std::string();
}
std::string bytes_of(const std::vector<NpuTensor>& tensors) {
    std::string all;
    for (const NpuTensor& tensor : tensors) all += bytes_of(tensor);
    return all;
}

std::string kind_of(const std::exception& error) {
    const char* kind = dynamic_cast<const std::invalid_argument*>(&error) ? "std::invalid_argument"
                       : dynamic_cast<const std::runtime_error*>(&error)  ? "std::runtime_error"
                       : dynamic_cast<const std::bad_alloc*>(&error)      ? "std::bad_alloc"
                                                                          : "std::exception";
    return std::string(kind) + ": " + error.what();
}

std::string name_of(vart::StatusCode status) {
    constexpr const char* names[] = {
        "SUCCESS",       "FAILURE",     "INVALID_INPUT",  "INVALID_OUTPUT",       "OUT_OF_MEMORY",
        "RUNTIME_ERROR", "JOB_PENDING", "INVALID_JOB_ID", "RESOURCE_UNAVAILABLE", "UNSUPPORTED"};
    const auto i = static_cast<size_t>(status);
    return i < std::size(names) ? names[i] : "status " + std::to_string(i);
}

Seen expect_status(vart::StatusCode seen, vart::StatusCode expected) {
    if (seen == expected) return same(name_of(seen));
    return {seen == vart::StatusCode::UNSUPPORTED ? Verdict::refused : Verdict::differs,
            name_of(seen)};
}

std::string name_of(Verdict verdict) {
    constexpr const char* names[] = {"same", "differs", "refused", "crashed", "not shown"};
    return names[int(verdict)];
}

std::vector<Check> all_checks() {
    std::vector<Check> checks;
    for (auto part : {header_checks, creation_checks, tensor_info_checks, memory_checks,
                      execute_checks, async_checks}) {
        for (Check& check : part()) checks.push_back(std::move(check));
    }
    return checks;
}

}  // namespace conformance
