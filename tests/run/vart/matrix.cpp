// SPDX-License-Identifier: Apache-2.0
// The zero-copy matrix on the software NPU, every row as input and as output, by execute and by
// execute_async: what the counters say, where the bytes lie, and that both views agree bit for bit.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "lib/run/vart/runner.h"
#include "tests/model/models.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::Layout;
using vartml::Quantisation;
using vartml::artifact::CompiledModel;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
using vartml::runtime::VaimlRunner;
using Bytes = std::vector<std::byte>;
using D = vartml::DataType;

// ---- models, one per HW layout ----------------------------------------------------------------

struct View {
    Layout layout;
    vartml::DataType type;
    std::optional<Quantisation> quantisation{};
};

CompiledModel model_of(const char* graph, const View& in, const View& out) {
    auto partition = make_partition("vaiml_par_0", parse_graph(graph));
    const auto set = [](vartml::TensorInfo& tensor, const View& view) {
        if (tensor.cpu.shape.size() == 3)
            tensor.cpu = vartml::make_view(tensor.cpu.data_type, Layout::NHW, tensor.cpu.shape);
        // The program computes on codes; the model's own view is the real one.
        if (view.quantisation)
            tensor.cpu = vartml::make_view(D::float32, tensor.cpu.layout, tensor.cpu.shape);
        tensor.hw = vartml::hw_view(tensor.cpu, view.layout, view.type);
        tensor.hw->quantisation = view.quantisation;
    };
    set(partition.inputs[0], in);
    set(partition.outputs[0], out);
    return connect(make_model({std::move(partition)}));
}

struct Model {
    const char* name;
    const char* graph;
    View in, out;
    unsigned border;  // layout operators that the kernels cannot do without
};

const Model models[] = {
    {"Hcwnc4ToHcwnc16",
     R"(graph g
input %x : i8[1,3,8,8]
const %s : f32[] = {0.03125}
const %z : i8[] = {3}
%d = DequantizeLinear %x, %s, %z : f32[1,3,8,8]
const %w : f32[20,3,1,1] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}
%y = Conv %d, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,20,8,8]
output %y
)",
     {Layout::HCWNC4, D::int8, Quantisation{0.03125, 3}},
     {Layout::HCWNC16, D::bf16},
     1},
    {"Hcwnc8",
     R"(graph g
input %x : f32[1,20,5,6]
%y = Sigmoid %x : f32[1,20,5,6]
output %y
)",
     {Layout::HCWNC8, D::bf16},
     {Layout::HCWNC8, D::float32},
     2},
    {"Hcwnc4",
     R"(graph g
input %x : f32[1,3,5,6]
%y = Sigmoid %x : f32[1,3,5,6]
output %y
)",
     {Layout::HCWNC4, D::bf16},
     {Layout::HCWNC4, D::float32},
     0},
    {"PaddedRows",
     R"(graph g
input %x : f32[1,7,13]
%y = Sigmoid %x : f32[1,7,13]
output %y
)",
     {Layout::NHW, D::bf16},
     {Layout::NHW, D::float32},
     0},
    {"Generic",
     R"(graph g
input %x : f32[2,30]
%y = Sigmoid %x : f32[2,30]
output %y
)",
     {Layout::GENERIC, D::bf16},
     {Layout::GENERIC, D::float32},
     0},
    {"NhwcUint8",
     R"(graph g
input %x : u8[1,3,6,7]
%y = Cast %x {to="f32"} : f32[1,3,6,7]
output %y
)",
     {Layout::NHWC, D::uint8},
     {Layout::NHWC, D::float32},
     0},
    {"Nchw",
     R"(graph g
input %x : f32[1,3,6,7]
%y = Sigmoid %x : f32[1,3,6,7]
output %y
)",
     {Layout::NCHW, D::float32},
     {Layout::NCHW, D::float32},
     0},
};

// ---- 5.1 to 5.5 once more, one element at a time ----------------------------------------------

// Place of CPU element `i` (NCHW, NHW or GENERIC in identity order) in the HW view.
size_t place(const NpuTensorInfo& cpu, const NpuTensorInfo& hw, size_t i) {
    const auto& shape = cpu.shape;
    if (hw.memory_layout == MemoryLayout::NHW)
        return i / shape[2] * hw.shape[2] + i % shape[2];  // innermost padded to 8
    if (shape.size() != 4 || hw.memory_layout == MemoryLayout::NCHW) return i;
    const size_t width = shape[3], height = shape[2], channels = shape[1];
    const size_t w = i % width, h = i / width % height, c = i / width / height % channels;
    if (hw.memory_layout == MemoryLayout::NHWC) return (h * width + w) * channels + c;
    const size_t block = hw.shape[4], groups = (channels + block - 1) / block;
    return ((h * groups + c / block) * width + w) * block + c % block;
}

uint16_t to_bf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // no NaN in here
}

template <typename T>
T at(const Bytes& bytes, size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
}
template <typename T>
void put(Bytes& bytes, size_t i, T value) {
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

Bytes to_hw(const NpuTensorInfo& cpu, const NpuTensorInfo& hw, const Quantisation& quant,
            const Bytes& from) {
    Bytes to(hw.size_in_bytes);
    for (size_t i = 0; i < cpu.size; ++i) {
        const size_t p = place(cpu, hw, i);
        switch (hw.data_type) {
            case DataType::UINT8:
                put(to, p, at<uint8_t>(from, i));
                break;
            case DataType::FLOAT32:
                put(to, p, at<float>(from, i));
                break;
            case DataType::BF16:
                put(to, p, to_bf16(at<float>(from, i)));
                break;
            default: {  // INT8
                const float q =
                    std::nearbyint(at<float>(from, i) / static_cast<float>(quant.scale));
                put(to, p,
                    static_cast<int8_t>(
                        std::clamp(q + static_cast<float>(quant.zero_point), -128.0f, 127.0f)));
            }
        }
    }
    return to;
}

Bytes to_cpu(const NpuTensorInfo& cpu, const NpuTensorInfo& hw, const Bytes& from) {
    Bytes to(cpu.size_in_bytes);
    for (size_t i = 0; i < cpu.size; ++i) {
        const size_t p = place(cpu, hw, i);
        put(to, i,
            hw.data_type == DataType::BF16
                ? std::bit_cast<float>(uint32_t{at<uint16_t>(from, p)} << 16)
                : at<float>(from, p));
    }
    return to;
}

// ---- buffers of every memory type -------------------------------------------------------------

enum class Memory { object, wrapped_object, sub_tensor, descriptor, cma, const_cma, non_cma };

struct Row {
    Memory memory;
    MemoryType type;
    const char* name;
};
const Row rows[] = {
    {Memory::object, MemoryType::XRT_BO, "XRT_BO"},
    {Memory::wrapped_object, MemoryType::XRT_BO, "XRT_BO, wrapped"},
    {Memory::sub_tensor, MemoryType::XRT_BO, "XRT_BO, sub-tensor"},
    {Memory::descriptor, MemoryType::DMA_FD, "DMA_FD"},
    {Memory::cma, MemoryType::USER_POINTER_CMA, "USER_POINTER_CMA"},
    {Memory::const_cma, MemoryType::USER_POINTER_CMA, "USER_POINTER_CMA, const"},
    {Memory::non_cma, MemoryType::USER_POINTER_NON_CMA, "USER_POINTER_NON_CMA"},
};

// A tensor in memory of the kind of `row`, and the caller's own way to its bytes.
class Buffer {
public:
    Buffer(const Runner& runner, const NpuTensorInfo& info, const Row& row)
        : size_(info.size_in_bytes) {
        switch (row.memory) {
            case Memory::object:
            case Memory::wrapped_object:
                parent_ = runner.allocate_npu_tensor(info);
                tensor = row.memory == Memory::object
                             ? parent_
                             : NpuTensor(info, parent_.get_buffer(), MemoryType::XRT_BO);
                data_ = static_cast<std::byte*>(parent_.get_virtual_address());
                break;
            case Memory::sub_tensor: {
                NpuTensorInfo both = info;
                both.size_in_bytes *= 3;
                parent_ = runner.allocate_npu_tensor(both);
                tensor = runner.allocate_sub_tensor(parent_, info, size_);
                data_ = static_cast<std::byte*>(parent_.get_virtual_address()) + size_;
                break;
            }
            case Memory::descriptor:
                fd_ = memfd_create("matrix", MFD_CLOEXEC);
                EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size_)), 0);
                tensor = NpuTensor(info, static_cast<void*>(&fd_), row.type);
                break;
            case Memory::const_cma:
            case Memory::cma:
            case Memory::non_cma:
                own_.resize(size_ + 64);
                data_ = own_.data() + 64 - reinterpret_cast<uintptr_t>(own_.data()) % 64;
                tensor = row.memory == Memory::const_cma
                             ? NpuTensor(info, static_cast<const void*>(data_), row.type)
                             : NpuTensor(info, static_cast<void*>(data_), row.type);
        }
    }
    Buffer(const Buffer&) = delete;
    ~Buffer() {
        if (fd_ >= 0) close(fd_);
    }
    void write(const Bytes& bytes) {
        if (data_)
            std::memcpy(data_, bytes.data(), size_);
        else
            EXPECT_EQ(pwrite(fd_, bytes.data(), size_, 0), static_cast<ssize_t>(size_));
    }
    Bytes read() const {
        Bytes bytes(size_);
        if (data_)
            std::memcpy(bytes.data(), data_, size_);
        else
            EXPECT_EQ(pread(fd_, bytes.data(), size_, 0), static_cast<ssize_t>(size_));
        return bytes;
    }
    NpuTensor tensor;

private:
    const size_t size_;
    NpuTensor parent_;
    std::byte* data_ = nullptr;
    int fd_ = -1;
    Bytes own_;
};

// ---- the test ---------------------------------------------------------------------------------

class ZeroCopyMatrix : public testing::TestWithParam<Model> {
protected:
    struct Counts {
        uint64_t in, out, conversions;
        bool operator==(const Counts&) const = default;
    };
    static Counts counts(const Runner& runner) {
        const auto get = [&](const char* key) {
            return std::any_cast<uint64_t>(runner.get_property(key));
        };
        return {get("bytes_copied_in"), get("bytes_copied_out"), get("conversions")};
    }
    static std::shared_ptr<VaimlRunner> open(TensorType in, TensorType out) {
        Options options;
        options.input_tensor_type = in;
        options.output_tensor_type = out;
        return make_runner(model_of(GetParam().graph, GetParam().in, GetParam().out), options);
    }
    static StatusCode run(Runner& runner, bool is_async, Tensors& in, Tensors& out) {
        if (!is_async) return runner.execute(in, out);
        return runner.wait(runner.execute_async(in, out), std::chrono::milliseconds::max());
    }
    static Bytes picture(const NpuTensorInfo& cpu) {
        std::mt19937 random(11);
        Bytes bytes(cpu.size_in_bytes);
        for (size_t i = 0; i < cpu.size; ++i) {
            if (cpu.data_type == DataType::UINT8)
                put(bytes, i, static_cast<uint8_t>(random()));
            else
                put(bytes, i, static_cast<float>(random() % 2000) / 300.0f - 3.3f);
        }
        return bytes;
    }
};

TEST_P(ZeroCopyMatrix, SaysWhatIsCopied) {
    const Model& model = GetParam();
    Bytes want[2];  // output bytes in the CPU and the HW view
    for (const TensorType in_type : {TensorType::HW, TensorType::CPU})
        for (const TensorType out_type : {TensorType::HW, TensorType::CPU}) {
            const auto runner = open(in_type, out_type);
            ASSERT_TRUE(runner);
            const auto& cpu_in =
                runner->get_tensors_info(TensorDirection::INPUT, TensorType::CPU)[0];
            const auto& hw_in = runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW)[0];
            const auto& cpu_out =
                runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::CPU)[0];
            const auto& hw_out =
                runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW)[0];
            const bool copies_in = in_type == TensorType::CPU,
                       copies_out = out_type == TensorType::CPU;
            const Bytes frame =
                copies_in ? picture(cpu_in)
                          : to_hw(cpu_in, hw_in, model.in.quantisation.value_or(Quantisation{}),
                                  picture(cpu_in));
            const Counts cost{copies_in ? cpu_in.size_in_bytes : 0,
                              copies_out ? cpu_out.size_in_bytes : 0,
                              uint64_t{model.border} + copies_in + copies_out};
            Counts sum{0, 0, 0};
            for (const Row& in_row : rows)
                for (const Row& out_row : rows)
                    for (const bool is_async : {false, true}) {
                        if (out_row.memory == Memory::const_cma) continue;  // cannot be made
                        if (in_row.memory == Memory::non_cma && !copies_in) continue;
                        if (out_row.memory == Memory::non_cma && !copies_out) continue;
                        SCOPED_TRACE(std::string(to_string(in_type)) + " " + in_row.name + " -> " +
                                     std::string(to_string(out_type)) + " " + out_row.name +
                                     (is_async ? ", async" : ""));
                        Buffer in(*runner, copies_in ? cpu_in : hw_in, in_row);
                        Buffer out(*runner, copies_out ? cpu_out : hw_out, out_row);
                        in.write(frame);
                        // What is not written stays visible, padding too.
                        out.write(
                            Bytes((copies_out ? cpu_out : hw_out).size_in_bytes, std::byte{0xa5}));
                        Tensors ins{{in.tensor}}, outs{{out.tensor}};
                        ASSERT_EQ(run(*runner, is_async, ins, outs), StatusCode::SUCCESS);
                        sum = {sum.in + cost.in, sum.out + cost.out,
                               sum.conversions + cost.conversions};
                        const Counts now = counts(*runner);
                        ASSERT_EQ(now.in, sum.in);
                        ASSERT_EQ(now.out, sum.out);
                        ASSERT_EQ(now.conversions, sum.conversions);
                        if (want[1].empty()) {  // the first: HW to HW
                            want[1] = out.read();
                            want[0] = to_cpu(cpu_out, hw_out, want[1]);
                            // Padding is zero, everything else is an element.
                            std::vector<bool> is_element(hw_out.size);
                            for (size_t i = 0; i < cpu_out.size; ++i)
                                is_element[place(cpu_out, hw_out, i)] = true;
                            const size_t width = hw_out.size_in_bytes / hw_out.size;
                            for (size_t p = 0; p < hw_out.size; ++p)
                                for (size_t b = 0; b < width && !is_element[p]; ++b)
                                    ASSERT_EQ(want[1][p * width + b], std::byte{0}) << p;
                        }
                        ASSERT_EQ(out.read(), want[copies_out ? 0 : 1]);
                        ASSERT_EQ(in.read(), frame);
                    }
        }
}

// The rows that cannot be constructed: they never reach a runner.
TEST_P(ZeroCopyMatrix, HasPairsThatDoNotExist) {
    const auto runner = open(TensorType::HW, TensorType::HW);
    alignas(64) static char memory[32768];
    for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
        const auto& hw = runner->get_tensors_info(direction, TensorType::HW)[0];
        const auto& cpu = runner->get_tensors_info(direction, TensorType::CPU)[0];
        const auto make = [](const NpuTensorInfo& info, MemoryType type) {
            return NpuTensor(info, static_cast<void*>(memory), type);
        };
        EXPECT_THROW(make(hw, MemoryType::USER_POINTER_NON_CMA), std::runtime_error);
        EXPECT_THROW(make(hw, MemoryType::UNKNOWN), std::runtime_error);
        EXPECT_THROW(make(cpu, MemoryType::UNKNOWN), std::runtime_error);
        EXPECT_NO_THROW(make(cpu, MemoryType::USER_POINTER_NON_CMA));
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ZeroCopyMatrix, testing::ValuesIn(models),
                         [](const auto& info) { return std::string(info.param.name); });

// A device converts between float types at a border; codes of a program without them are garbage.
TEST(Borders, OfAnotherKindThanTheProgramAreRefused) {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[2,30]
%y = Sigmoid %x : f32[2,30]
output %y
)"));
    partition.inputs[0].hw = vartml::hw_view(partition.inputs[0].cpu, Layout::GENERIC, D::int8);
    partition.inputs[0].hw->quantisation = Quantisation{0.5, 0};
    partition.outputs[0].hw = partition.outputs[0].cpu;
    const auto state =
        vartml::runtime::prepare("m.rai", connect(make_model({std::move(partition)})), Options());
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().message,
              "create_runner: model 'm.rai': partition 'vaiml_par_0': input 'x' is int8 in its HW "
              "view and fp32 in the program, expected the same type or two float types; compile "
              "the model again");
}

// CPU views are copied where a tensor has no HW view, too.
TEST(CpuViewsWithoutHwView, AreCopiedAllTheSame) {
    auto cpu = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %x : f32[2,30]
%y = Neg %x : f32[2,30]
output %y
)"));
    Options options = cpu_views();
    options.skip_in_bo_sync = options.skip_out_bo_sync = options.noncoherent = true;
    const auto runner = make_runner(connect(make_model({std::move(cpu)})), options);
    ASSERT_TRUE(runner);
    EXPECT_TRUE(runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW).empty());
    EXPECT_TRUE(runner->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW).empty());
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    elements<float>(in[0][0])[59] = 2.5f;
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    EXPECT_EQ(elements<float>(out[0][0])[59], -2.5f);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_in")), 240u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("bytes_copied_out")), 240u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("conversions")), 2u);
}

// given: the types of the interface; a program moves what it does not compute with.
template <typename T>
void expect_moved(const std::string& type, vartml::DataType element) {
    const std::string graph = "graph g\ninput %x : " + type +
                              "[1,3,4,5]\n%y = Concat %x, %x "
                              "{axis=1} : " +
                              type + "[1,6,4,5]\noutput %y\n";
    const auto runner = make_runner(
        model_of(graph.c_str(), {Layout::HCWNC4, element}, {Layout::HCWNC8, element}), cpu_views());
    ASSERT_TRUE(runner);
    const auto& hw = runner->get_tensor_info_by_name("x", TensorType::HW);
    EXPECT_EQ(hw.memory_layout, MemoryLayout::HCWNC4);
    EXPECT_EQ(hw.size_in_bytes, 80 * sizeof(T));
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    const auto x = elements<T>(in[0][0]);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(~T{0} - i * 977);
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    const auto y = elements<T>(out[0][0]);
    ASSERT_EQ(y.size(), 2 * x.size());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x[i % x.size()]) << type << ' ' << i;
}

TEST(HwViews, HoldEveryUnsignedType) {
    expect_moved<uint16_t>("u16", D::uint16);
    expect_moved<uint32_t>("u32", D::uint32);
    expect_moved<uint64_t>("u64", D::uint64);
}

}  // namespace
