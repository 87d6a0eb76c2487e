// SPDX-License-Identifier: Apache-2.0
// Queries, checks, views, counters and properties of a runner.
#include "lib/run/vart/runner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::Error;
using vartml::ErrorCode;
using vartml::Layout;
using vartml::make_view;
using vartml::Result;
using vartml::runtime::Tensors;

class FakeRunner : public testing::Test {
protected:
    void open(vartml::runtime::Options options = {},
              vartml::artifact::CompiledModel model = picture_model()) {
        runner = make_runner(std::move(model), std::move(options));
        ASSERT_TRUE(runner);
        inputs = allocate(*runner, TensorDirection::INPUT);
        outputs = allocate(*runner, TensorDirection::OUTPUT);
    }
    template <typename T>
    T get(const char* key) {
        return std::any_cast<T>(runner->get_property(key));
    }
    FakeDevice device;
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    Tensors inputs, outputs;
};

TEST_F(FakeRunner, ShowsBothViewsWhateverTheOptionsSay) {
    open(cpu_views());
    const auto& cpu = runner->get_tensors_info(TensorDirection::INPUT, TensorType::CPU);
    ASSERT_EQ(cpu.size(), 1u);
    EXPECT_EQ(cpu[0].name, "x");
    EXPECT_EQ(cpu[0].memory_layout, MemoryLayout::NCHW);
    EXPECT_EQ(cpu[0].data_type, DataType::FLOAT32);
    EXPECT_EQ(cpu[0].size_in_bytes, 240u);
    const auto& hw = runner->get_tensor_info_by_name("x", TensorType::HW);
    EXPECT_EQ(hw.memory_layout, MemoryLayout::HCWNC4);
    EXPECT_EQ(hw.shape, (std::vector<uint32_t>{4, 1, 5, 1, 4}));
    EXPECT_EQ(hw.strides, (std::vector<uint32_t>{20, 20, 4, 4, 1}));
    EXPECT_EQ(hw.size_in_bytes, 160u);
    EXPECT_EQ(&runner->get_tensors_info(TensorDirection::INPUT, TensorType::CPU), &cpu);
    EXPECT_EQ(runner->get_num_input_tensors(), 1u);
    EXPECT_EQ(runner->get_batch_size(), 1u);
    EXPECT_EQ(runner->get_batch_size(TensorDirection::OUTPUT), 1u);
    const QuantParameters& quant = runner->get_quant_parameters("y");
    EXPECT_EQ(quant.scale, 1.0);
    EXPECT_EQ(quant.rounding_mode, RoundingMode::UNKNOWN);
    for (const auto call : {0, 1}) {
        try {
            if (call)
                (void)runner->get_quant_parameters("z");
            else
                (void)runner->get_tensor_info_by_name("z", TensorType::CPU);
            ADD_FAILURE();
        } catch (const std::runtime_error& e) {
            EXPECT_NE(std::string(e.what()).find("no tensor 'z'; it has 'x', 'y'"),
                      std::string::npos)
                << e.what();
        }
    }
}

TEST_F(FakeRunner, GivesTheQuantisationOfIntegerViews) {
    auto info = tensor("x", make_view(vartml::DataType::float32, Layout::NCHW, {1, 3, 4, 5}),
                       Layout::HCWNC4, vartml::DataType::int8);
    info.hw->quantisation = vartml::Quantisation{0.03125, -3};
    auto out = info;
    out.name = "y";
    open({}, fake_model({info}, {out}));
    const QuantParameters& quant = runner->get_quant_parameters("x");
    EXPECT_EQ(quant.scale, 0.03125);
    EXPECT_EQ(quant.zero_point, -3);
    EXPECT_EQ(quant.rounding_mode, RoundingMode::ROUND_TO_NEAREST_EVEN);
}

TEST_F(FakeRunner, ShowsARankZeroTensorAsOneElement) {
    const auto scalar = make_view(vartml::DataType::float32, Layout::GENERIC, {});
    open({}, fake_model({tensor("x", scalar, Layout::GENERIC, vartml::DataType::float32)},
                        {tensor("y", scalar, Layout::GENERIC, vartml::DataType::float32)}));
    const auto& info = runner->get_tensor_info_by_name("x", TensorType::HW);
    EXPECT_EQ(info.shape, std::vector<uint32_t>{1});
    EXPECT_EQ(info.size_in_bytes, 4u);
    EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
}

// Every HW row of the zero-copy matrix: the device sees the caller's own bytes.
TEST_F(FakeRunner, RunsHwViewsInPlace) {
    open();
    const auto in_info = runner->get_tensor_info_by_name("x", TensorType::HW);
    const auto out_info = runner->get_tensor_info_by_name("y", TensorType::HW);
    alignas(64) static uint16_t in[80], out[80];
    const int fd_in = memfd_create("in", MFD_CLOEXEC), fd_out = memfd_create("out", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd_in, 4096) + ftruncate(fd_out, 4096), 0);
    const uint16_t value = 0x3f80;
    ASSERT_EQ(pwrite(fd_in, &value, 2, 0), 2);
    in[0] = value;
    int n_in = fd_in, n_out = fd_out;
    elements<uint16_t>(inputs[0][0])[0] = value;
    struct Row {
        NpuTensor input, output;
        const void *in_address, *out_address;  // null: mapped elsewhere
    };
    Row rows[] = {
        {inputs[0][0], outputs[0][0], inputs[0][0].get_virtual_address(),
         outputs[0][0].get_virtual_address()},
        {NpuTensor(in_info, static_cast<void*>(in), MemoryType::USER_POINTER_CMA),
         NpuTensor(out_info, static_cast<void*>(out), MemoryType::USER_POINTER_CMA), in, out},
        {NpuTensor(in_info, static_cast<void*>(&n_in), MemoryType::DMA_FD),
         NpuTensor(out_info, static_cast<void*>(&n_out), MemoryType::DMA_FD), nullptr, nullptr},
        {NpuTensor(in_info, static_cast<const void*>(in), MemoryType::USER_POINTER_CMA),
         NpuTensor(out_info, static_cast<void*>(out), MemoryType::USER_POINTER_CMA), in, out},
    };
    for (Row& row : rows) {
        device.set_run([&](unsigned, auto i, auto o) -> Result<void> {
            if (row.in_address) {
                EXPECT_EQ(i[0], row.in_address);
            }
            if (row.out_address) {
                EXPECT_EQ(o[0], row.out_address);
            }
            std::memcpy(o[0], i[0], 160);
            return {};
        });
        Tensors ins{{row.input}}, outs{{row.output}};
        EXPECT_EQ(runner->execute(ins, outs), StatusCode::SUCCESS)
            << get<std::string>("last_error");
    }
    uint16_t back = 0;
    EXPECT_EQ(pread(fd_out, &back, 2, 0), 2);
    EXPECT_EQ(back, value);
    EXPECT_EQ(out[0], value);
    EXPECT_EQ(get<uint64_t>("bytes_copied_in") + get<uint64_t>("bytes_copied_out"), 0u);
    EXPECT_EQ(get<uint64_t>("conversions"), 0u);
    close(fd_in);
    close(fd_out);
}

TEST_F(FakeRunner, ConvertsCpuViewsOfAnyMemory) {
    open(cpu_views());
    const auto in_info = runner->get_tensor_info_by_name("x", TensorType::CPU);
    const auto out_info = runner->get_tensor_info_by_name("y", TensorType::CPU);
    std::vector<float> in(60), out(60);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) - 30.0f;  // exact in bf16
    device.set_run([&](unsigned, auto i, auto o) -> Result<void> {
        const auto* hw = static_cast<const uint16_t*>(i[0]);
        // c2 h1 w3 of NCHW [1,3,4,5] is element 48; in HCWNC4 ((1*1+0)*5+3)*4+2 = 34.
        EXPECT_EQ(std::bit_cast<float>(uint32_t{hw[34]} << 16), in[48]);
        EXPECT_EQ(hw[35], 0);  // padding channel
        std::memcpy(o[0], i[0], 160);
        return {};
    });
    Tensors ins{{NpuTensor(in_info, static_cast<const void*>(in.data()),
                           MemoryType::USER_POINTER_NON_CMA)}};
    Tensors outs{
        {NpuTensor(out_info, static_cast<void*>(out.data()), MemoryType::USER_POINTER_NON_CMA)}};
    EXPECT_EQ(runner->execute(ins, outs), StatusCode::SUCCESS);
    EXPECT_EQ(in, out);
    EXPECT_EQ(get<uint64_t>("bytes_copied_in"), 240u);
    EXPECT_EQ(get<uint64_t>("bytes_copied_out"), 240u);
    EXPECT_EQ(get<uint64_t>("conversions"), 2u);
}

TEST_F(FakeRunner, NamesWhatDoesNotFitAndTouchesNothing) {
    open();
    auto& log = *new LogLines;
    const std::unique_ptr<LogLines> owner(&log);
    const auto info = runner->get_tensor_info_by_name("x", TensorType::HW);
    const auto out_info = runner->get_tensor_info_by_name("y", TensorType::HW);
    const auto with = [&](NpuTensorInfo base, auto change) {
        change(base);
        return Tensors{{runner->allocate_npu_tensor(base)}};
    };
    alignas(64) static uint16_t memory[160];
    const NpuTensor overlapped(info, static_cast<void*>(memory), MemoryType::USER_POINTER_CMA);
    const NpuTensor overlapping(out_info, static_cast<void*>(memory + 79),
                                MemoryType::USER_POINTER_CMA);
    struct Row {
        Tensors in, out;
        StatusCode status;
        const char* text;
    };
    const auto bad_in = StatusCode::INVALID_INPUT, bad_out = StatusCode::INVALID_OUTPUT;
    Row rows[] = {
        {{}, {}, bad_in, "inputs hold 0 batch elements, expected 1 to 1"},
        {{inputs[0], inputs[0]}, outputs, bad_in, "inputs hold 2 batch elements"},
        {{{}}, outputs, bad_in, "batch element 0 has 0 input tensors, the model has 1"},
        {inputs, {}, bad_out, "outputs hold 0 batch elements, the inputs 1"},
        {inputs,
         {outputs[0], outputs[0]},
         bad_out,
         "outputs hold 2 batch elements, expected 1 to 1"},
        {inputs, {{}}, bad_out, "batch element 0 has 0 output tensors"},
        {{{NpuTensor()}}, outputs, bad_in, "input 'x' of batch element 0: the NpuTensor is empty"},
        {inputs, {{NpuTensor()}}, bad_out, "output 'y' of batch element 0: the NpuTensor is empty"},
        {outputs, outputs, bad_in, "direction is OUTPUT, expected INPUT"},
        {with(info, [](auto& i) { i.name = "z"; }), outputs, bad_in, "name is 'z', expected 'x'"},
        {with(info, [](auto& i) { i.tensor_type = TensorType::CPU; }), outputs, bad_in,
         "tensor_type is CPU, expected HW"},
        {with(info, [](auto& i) { i.data_type = DataType::FP16; }), outputs, bad_in,
         "data_type is FP16, expected BF16"},
        {with(info, [](auto& i) { i.memory_layout = MemoryLayout::NHWC; }), outputs, bad_in,
         "memory_layout is NHWC, expected HCWNC4"},
        {with(info, [](auto& i) { i.shape = {4, 1, 5, 4, 1}; }), outputs, bad_in,
         "shape is [4,1,5,4,1], expected [4,1,5,1,4]"},
        {with(info, [](auto& i) { i.strides[0] = 24; }), outputs, bad_in,
         "strides is [24,20,4,4,1], expected [20,20,4,4,1]"},
        {{{overlapped}},
         {{overlapping}},
         bad_out,
         "output 'y' of batch element 0 shares memory with input 'x' of batch element 0"},
    };
    for (Row& row : rows) {
        EXPECT_EQ(runner->execute(row.in, row.out), row.status) << row.text;
        const std::string text = get<std::string>("last_error");
        EXPECT_NE(text.find(row.text), std::string::npos) << text << "\nexpected: " << row.text;
        EXPECT_EQ(text.substr(0, 9), "execute: ");
        const auto lines = log.take();
        ASSERT_EQ(lines.size(), 1u) << row.text;  // exactly one line per failed call
        EXPECT_EQ(lines[0].second, text);
        const JobHandle handle = runner->execute_async(row.in, row.out, [](const JobHandle&) {
            ADD_FAILURE() << "a refused job has no callback";
        });
        EXPECT_EQ(handle.status, row.status);
        EXPECT_EQ(handle.job_id, 0u);
        log.take();
    }
    EXPECT_EQ(device.started(), 0u);
    // A larger size_in_bytes is fine, as in the public samples.
    Tensors larger = with(info, [](auto& i) { i.size_in_bytes *= 4; });
    EXPECT_EQ(runner->execute(larger, outputs), StatusCode::SUCCESS);
}

TEST_F(FakeRunner, MapsFailuresOfTheDeviceAndStaysUsable) {
    open();
    const LogLines log;
    const std::pair<ErrorCode, StatusCode> rows[] = {
        {ErrorCode::out_of_memory, StatusCode::OUT_OF_MEMORY},
        {ErrorCode::device, StatusCode::RUNTIME_ERROR},
        {ErrorCode::internal, StatusCode::RUNTIME_ERROR},
        {ErrorCode::io, StatusCode::RUNTIME_ERROR},
        {ErrorCode::unsupported, StatusCode::UNSUPPORTED},
        {ErrorCode::invalid_argument, StatusCode::FAILURE},
    };
    for (const auto& [code, status] : rows) {
        device.set_run([code](unsigned, auto, auto) -> Result<void> {
            return Error{code, "node 'gather_1': index 9 is out of range"};
        });
        EXPECT_EQ(runner->execute(inputs, outputs), status);
        EXPECT_EQ(get<std::string>("last_error"),
                  "execute: node 'gather_1': index 9 is out of range");
        const JobHandle job = runner->execute_async(inputs, outputs);
        EXPECT_EQ(job.status, StatusCode::SUCCESS);
        EXPECT_EQ(runner->wait(job, std::chrono::hours(1)), status);
        EXPECT_NE(get<std::string>("last_error").find("job "), std::string::npos);
        device.set_run({});
        EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
        // A success leaves it.
        EXPECT_NE(get<std::string>("last_error").find("job "), std::string::npos);
    }
    EXPECT_EQ(get<uint64_t>("jobs_failed"), 6u);
}

TEST_F(FakeRunner, RemembersTheLastErrorPerThread) {
    open();
    const LogLines log;
    Tensors none;
    EXPECT_EQ(get<std::string>("last_error"), "");
    EXPECT_EQ(runner->execute(none, outputs), StatusCode::INVALID_INPUT);
    EXPECT_NE(get<std::string>("last_error"), "");
    std::thread([&] { EXPECT_EQ(get<std::string>("last_error"), ""); }).join();
    const auto other = make_runner(picture_model());
    EXPECT_EQ(std::any_cast<std::string>(other->get_property("last_error")), "");
}

TEST_F(FakeRunner, HasEveryPropertyWithItsType) {
    auto options = cpu_views();
    options.max_concurrent_runs = 7;
    open(options);
    EXPECT_EQ(get<std::string>("model_name"), "fake");
    EXPECT_EQ(get<size_t>("batch_size_per_core") * get<size_t>("nb_cores_per_system") *
                  get<size_t>("nb_systems"),
              runner->get_batch_size());
    EXPECT_EQ(get<uint8_t>("nb_ddrs"), 16);
    EXPECT_EQ(get<std::vector<size_t>>("ddr_free_bytes").size(), 16u);
    EXPECT_EQ(get<std::string>("library_version"), "1.0.0");
    EXPECT_EQ(get<std::string>("backend"), "fake");
    EXPECT_EQ(get<std::string>("memory_provider"), "host");
    EXPECT_EQ(get<std::string>("device_name"), "softnpu");
    EXPECT_EQ(get<std::string>("target"), "fake-1");
    EXPECT_EQ(get<std::string>("compute_type"), "fp32");
    EXPECT_EQ(get<std::string>("model_path"), "fake.rai");
    EXPECT_EQ(get<std::string>("model_format"), "rai");
    EXPECT_EQ(get<std::string>("model_signature").size(), 32u);
    EXPECT_EQ(get<std::string>("compilation"), "standard");
    EXPECT_EQ(get<std::vector<std::string>>("partitions"), std::vector<std::string>{"vaiml_par_0"});
    EXPECT_EQ(get<uint32_t>("num_npu_partitions"), 1u);
    EXPECT_EQ(get<uint32_t>("num_cpu_partitions"), 0u);
    EXPECT_EQ(get<uint32_t>("num_columns"), 4u);
    EXPECT_EQ(get<uint32_t>("start_column"), 0u);
    EXPECT_EQ(get<uint32_t>("desired_batch_size"), 1u);
    EXPECT_EQ(get<uint32_t>("actual_batch_size"), 1u);
    EXPECT_EQ(get<uint32_t>("stats_level"), 40u);
    EXPECT_EQ(get<TensorType>("input_tensor_type"), TensorType::CPU);
    EXPECT_EQ(get<TensorType>("output_tensor_type"), TensorType::CPU);
    EXPECT_EQ(get<uint32_t>("max_concurrent_runs"), 7u);
    EXPECT_EQ(get<uint32_t>("jobs_in_flight"), 0u);
    EXPECT_EQ(get<uint64_t>("bytes_weights_private"), 0u);
    const auto kind = get<std::string>("export_kind");
    EXPECT_TRUE(kind == "dma-buf" || kind == "memfd");
    const auto keys = get<std::vector<std::string>>("supported_keys");
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    for (const auto& key : keys) EXPECT_TRUE(runner->get_property(key).has_value()) << key;
    try {
        runner->get_property("colour");
        ADD_FAILURE();
    } catch (const std::invalid_argument& e) {
        EXPECT_NE(std::string(e.what()).find("'colour'"), std::string::npos);
    }
}

TEST_F(FakeRunner, RunsABatchElementByElement) {
    auto model = picture_model();
    model.desired_batch_size = model.actual_batch_size = 4;
    open({}, model);
    EXPECT_EQ(runner->get_batch_size(), 4u);
    Tensors in, out;
    for (uint16_t b = 0; b < 3; ++b) {  // a partial batch
        in.push_back(allocate(*runner, TensorDirection::INPUT)[0]);
        out.push_back(allocate(*runner, TensorDirection::OUTPUT)[0]);
        elements<uint16_t>(in[b][0])[5] = static_cast<uint16_t>(b + 100);
    }
    EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    EXPECT_EQ(device.started(), 3u);
    for (uint16_t b = 0; b < 3; ++b) EXPECT_EQ(elements<uint16_t>(out[b][0])[5], b + 100);
    out[2][0] = out[0][0];
    const LogLines log;
    EXPECT_EQ(runner->execute(in, out), StatusCode::INVALID_OUTPUT);  // shared between elements
}

// What was compiled to stay f32 does, unless the application asks for bf16.
TEST_F(FakeRunner, ComputesInTheTypeThatTheModelWasCompiledFor) {
    using vartml::device::Numerics;
    struct Row {
        bool exact;
        const char* option;
        Numerics want;
    };
    const Row rows[] = {{false, "auto", Numerics::automatic},
                        {true, "auto", Numerics::f32},
                        {true, "bf16", Numerics::bf16},
                        {false, "f32", Numerics::f32}};
    for (const auto& [exact, option, want] : rows) {
        SCOPED_TRACE(option);
        auto options = cpu_views();
        options.numerics = option;
        auto model = picture_model();
        model.exact_floats = exact;
        open(options, std::move(model));
        EXPECT_EQ(device.last_options.numerics, want);
    }
}

// `debug` shows how a model is loaded, at any level; nothing else does.
TEST(Prepare, TellsAboutLoadingWhenAskedTo) {
    FakeDevice device;
    LogLines log;
    for (const bool debug : {false, true}) {
        vartml::runtime::Options options;
        options.debug = debug;
        options.log_level = vartml::LogLevel::error;
        ASSERT_TRUE(vartml::runtime::prepare("m.rai", picture_model(), options));
        const auto lines = log.take();
        EXPECT_EQ(lines.size(), debug ? 3u : 0u);
        for (const auto& [level, text] : lines) EXPECT_EQ(level, vartml::LogLevel::debug) << text;
    }
}

// Models that this release cannot run are refused with the operator that stands in the way.
TEST(Prepare, RefusesWhatItCannotRun) {
    FakeDevice device;
    struct Row {
        std::function<void(vartml::artifact::CompiledModel&, vartml::runtime::Options&)> change;
        const char* text;
    };
    const Row rows[] = {
        {[](auto& m, auto&) {
             m.summary.total.operators = 120;
             m.summary.fallbacks.push_back(
                 {"up_1", "Resize", "unsupported-attribute", "cubic mode", -1});
         },
         "create_runner: model 'm.rai': standard compilation left 1 of 120 operators outside the "
         "NPU, first Resize node 'up_1' (unsupported-attribute: cubic mode); compile with the CPU "
         "partition passes"},
        {[](auto& m, auto&) {
             m.compilation = vartml::artifact::Compilation::cpu_partition;
             auto second = m.partitions[0];
             second.name = "vaiml_par_1";
             second.inputs[0].name = "z";
             m.partitions.push_back(second);
             m.execution_order.push_back(1);
         },
         "tensor 'z' of partition 'vaiml_par_1' is made by no partition before it"},
        {[](auto& m, auto&) { m.partitions.push_back(m.partitions[0]); },
         "standard compilation made 2 NPU partitions, and only one can be run"},
        {[](auto& m, auto&) { m.partitions[0].target = "quantum-9"; },
         "no device runs programs of target 'quantum-9'"},
        {[](auto&, auto& o) { o.device = "gpu"; }, "device 'gpu' is not in this build"},
        {[](auto&, auto& o) { o.device = "xrt"; }, "XRT is memory only: set vartml_memory"},
        {[](auto& m, auto&) { m.outputs[0].hw.reset(); },
         "create_runner: set output_tensor_type to \"CPU\": model 'm.rai' has no HW view for "
         "output "
         "'y'"},
        {[](auto& m, auto&) {
             m.inputs[0].hw.reset();
             m.outputs[0].hw.reset();
         },
         "create_runner: set input_tensor_type and output_tensor_type to \"CPU\": model 'm.rai' "
         "has "
         "no HW view for input 'x'"},
        {[](auto& m, auto&) {
             m.compilation = vartml::artifact::Compilation::cpu_partition;
             auto cpu = m.partitions[0];
             cpu.name = "vaiml_cpu_subgraph_1";
             cpu.kind = vartml::artifact::PartitionKind::cpu;
             m.partitions.push_back(cpu);
             m.outputs[0].hw.reset();
         },
         "create_runner: set output_tensor_type to \"CPU\": model 'm.rai' has no HW view for "
         "output "
         "'y' (produced by CPU partition vaiml_cpu_subgraph_1)"},
        {[](auto& m, auto&) { m.outputs[0].name = "other"; }, "does not make output 'other'"},
        {[](auto& m, auto&) {
             auto& output = m.partitions[0].outputs[0];
             output.hw = vartml::hw_view(output.cpu, output.hw->layout, vartml::DataType::int8);
         },
         "has tensor 'y' in another form than the model"},
        {[](auto&, auto& o) { o.start_column = 33; }, "columns 33-36 do not exist"},
        {[](auto&, auto& o) { o.config_json = "/nowhere.json"; },
         "option 'config_json': /nowhere.json: "},
    };
    for (const Row& row : rows) {
        auto model = picture_model();
        vartml::runtime::Options options;
        options.log_level = vartml::LogLevel::error;
        row.change(model, options);
        const auto state = vartml::runtime::prepare("m.rai", std::move(model), std::move(options));
        ASSERT_FALSE(state) << row.text;
        EXPECT_NE(state.error().message.find(row.text), std::string::npos)
            << state.error().message << "\nexpected: " << row.text;
        EXPECT_EQ(state.error().message.substr(0, 15), "create_runner: ");
    }
    device.load_error = {ErrorCode::unsupported, "node 'a' (FFT) is not supported"};
    const auto state = vartml::runtime::prepare("m.rai", picture_model(), {});
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().message,
              "create_runner: model 'm.rai': node 'a' (FFT) is not supported");
    EXPECT_EQ(device.alive, 0u);
}

TEST(Prepare, GivesColumnsByTheSharingRule) {
    const OwnRuntimeFolder folder;
    FakeDevice device;
    const auto make = [](bool shared, std::optional<uint64_t> start = {}) {
        vartml::runtime::Options options;
        options.log_level = vartml::LogLevel::error;
        options.aie_columns_sharing = shared;
        options.start_column = start;
        return vartml::runtime::prepare("m.rai", picture_model(), options);
    };
    const auto start_of = [](const auto& state) { return (*state)->columns->start(); };
    auto a = make(true);
    EXPECT_EQ(start_of(a), 0u);
    auto b = make(true);  // free ranges first
    EXPECT_EQ(start_of(b), 4u);
    auto c = make(true, 0);  // shared with the first
    EXPECT_EQ(start_of(c), 0u);
    auto d = make(false, 0);
    ASSERT_FALSE(d);
    EXPECT_NE(d.error().message.find("columns 0-3 are not free"), std::string::npos)
        << d.error().message;
    EXPECT_NE(d.error().message.find("0-3 shared by 'VAIML-Runner'"), std::string::npos);
    EXPECT_FALSE(make(true, 2));  // overlaps, other start
    std::vector<Result<std::unique_ptr<vartml::runtime::RunnerState>>> more;
    for (int i = 0; i < 7; ++i) more.push_back(make(false));
    EXPECT_EQ(start_of(more.back()), 32u);
    EXPECT_FALSE(make(false));            // nothing is free
    EXPECT_EQ(start_of(make(true)), 0u);  // but a shared runner still fits
    more.pop_back();
    EXPECT_EQ(start_of(make(false)), 32u);  // released
}

using vartml::runtime::ColumnReservation;

// A process that holds columns 0 to 3 until it is killed.
class Holder {
public:
    explicit Holder(bool shared) {
        int ready[2];
        if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) {
            const auto held = ColumnReservation::acquire(
                {.device = "softnpu", .user = "child", .count = 4, .shared = shared, .start = 0});
            const char good = held ? 1 : 0;
            (void)!::write(ready[1], &good, 1);
            for (;;) ::pause();
        }
        char good = 0;
        EXPECT_EQ(::read(ready[0], &good, 1), 1);
        EXPECT_EQ(good, 1);
        ::close(ready[0]);
        ::close(ready[1]);
    }
    ~Holder() { kill(); }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    std::string pid() const { return std::to_string(pid_); }

private:
    pid_t pid_ = -1;
};

// What a child of this process's inherits is not its own, and does not keep them when this one lets
// them go.
TEST(Columns, AreNotInheritedByAFork) {
    const OwnRuntimeFolder folder;
    const auto acquire = [] {
        return ColumnReservation::acquire(
            {.device = "softnpu", .user = "me", .count = 4, .shared = false, .start = 0});
    };
    int to_child[2], to_parent[2];
    ASSERT_EQ(::pipe2(to_child, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(to_parent, O_CLOEXEC), 0);
    auto held = acquire();
    ASSERT_TRUE(held);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        const auto refused = acquire();
        char said = !refused &&
                    refused.error().message.find("exclusive by process " +
                                                 std::to_string(::getppid())) != std::string::npos;
        (void)!::write(to_parent[1], &said, 1);
        (void)!::read(to_child[0], &said, 1);
        {
            const ColumnReservation inherited = std::move(*held);
        }
        ::_exit(0);
    }
    char said = 0;
    EXPECT_EQ(::read(to_parent[0], &said, 1), 1);
    EXPECT_EQ(said, 1);
    {
        const ColumnReservation ended = std::move(*held);
    }
    EXPECT_TRUE(acquire());
    (void)!::write(to_child[1], &said, 1);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(end);
}

TEST(Columns, OfAnotherProcessAreSeenUntilItDies) {
    const OwnRuntimeFolder folder;
    const auto acquire = [](bool shared, std::optional<uint64_t> start = {}) {
        return ColumnReservation::acquire(
            {.device = "softnpu", .user = "me", .count = 4, .shared = shared, .start = start});
    };
    Holder alone(false);
    for (const bool shared : {false, true}) {
        const auto refused = acquire(shared, 0);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::busy);
        EXPECT_NE(refused.error().message.find("columns 0-3 are not free"), std::string::npos);
        EXPECT_NE(refused.error().message.find(" 0-3 exclusive by process " + alone.pid()),
                  std::string::npos)
            << refused.error().message;
        const auto beside = acquire(shared);
        ASSERT_TRUE(beside);
        EXPECT_EQ(beside->start(), 4u);
        EXPECT_EQ(beside->fault(), "");
    }
    alone.kill();
    EXPECT_TRUE(acquire(false, 0));

    Holder sharing(true);
    EXPECT_TRUE(acquire(true, 0));
    const auto refused = acquire(false, 2);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(" 0-3 shared"), std::string::npos)
        << refused.error().message;
}

TEST(Columns, WithoutAFileForThemAreThoseOfTheProcess) {
    const OwnRuntimeFolder folder("/nowhere");
    const auto held = ColumnReservation::acquire(
        {.device = "softnpu", .user = "me", .count = 4, .shared = false, .start = {}});
    ASSERT_TRUE(held);
    EXPECT_NE(held->fault().find("'/nowhere/vartml-columns-softnpu'"), std::string::npos)
        << held->fault();
}

TEST(Columns, ThatTheDeviceDoesNotHaveAreNotToBeHad) {
    const OwnRuntimeFolder folder;
    const struct {
        uint32_t count;
        std::optional<uint64_t> start;
        ErrorCode code;
        const char* way_out;
    } rows[] = {
        {4000, {}, ErrorCode::bad_model, "compile for a device with more columns"},
        {4000, 0, ErrorCode::bad_model, "compile for a device with more columns"},
        {4, 4000, ErrorCode::invalid_argument, "leave out start_column"},
    };
    for (const auto& row : rows) {
        const auto refused = ColumnReservation::acquire({.device = "softnpu",
                                                         .user = "me",
                                                         .count = row.count,
                                                         .shared = false,
                                                         .start = row.start});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, row.code);
        EXPECT_NE(refused.error().message.find(row.way_out), std::string::npos)
            << refused.error().message;
    }
}

TEST(Columns, NameNoFileOutsideOfTheFolder) {
    const OwnRuntimeFolder folder("/run/x");
    EXPECT_EQ(vartml::runtime::columns_file("../../etc/a b"),
              "/run/x/vartml-columns-______etc_a_b");
}

}  // namespace
