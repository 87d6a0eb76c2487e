// SPDX-License-Identifier: Apache-2.0
// Batches on the software NPU, whole and in part, and the shapes that arguments may have.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vart/vart_runner_factory.hpp>

#include "lib/model/compiled_model.h"
#include "tests/model/models.h"
#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

using vart::NpuTensor;
using vart::StatusCode;
using vart::TensorDirection;
using Tensors = std::vector<std::vector<NpuTensor>>;

constexpr uint32_t batch_size = 5;

// Steps of several kinds: own convolution, oneDNN's pooling, an operator of lib/graph.
artifact::CompiledModel model() {
    artifact::Partition p = test::make_partition("vaiml_par_0", test::parse_graph(R"(graph g
input %images : f32[1,3,32,32]
const %w : f32[2,3,1,1] = {1, 2, 3, 4, 5, 6}
const %b : f32[2] = {0.5, -0.5}
%c = Conv %images, %w, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,32,32]
%m = MaxPool %c {ceil_mode=0, dilations=[1,1], kernel_shape=[2,2], pads=[0,0,0,0], storage_order=0, strides=[2,2]} : f32[1,2,16,16]
%y = Erf %m : f32[1,2,16,16]
output %y
)"));
    p.inputs[0].hw = hw_view(p.inputs[0].cpu, Layout::HCWNC4, DataType::float32);
    p.outputs[0].hw = hw_view(p.outputs[0].cpu, Layout::HCWNC4, DataType::float32);
    auto model = test::connect(test::make_model({std::move(p)}));
    model.desired_batch_size = model.actual_batch_size = batch_size;
    return model;
}

// The views of both sides, and how many threads share a run.
struct Case {
    const char* view;
    uint32_t threads;
};
class Batch : public testing::TestWithParam<Case> {
protected:
    test::TempDir dir;
    std::shared_ptr<vart::Runner> runner;

    void SetUp() override {
        ASSERT_TRUE(artifact::write_rai(model(), dir / "m.rai"));
        runner = vart::RunnerFactory::create_runner(
            vart::RunnerType::VAIML, dir / "m.rai",
            {{"input_tensor_type", std::string(GetParam().view)},
             {"output_tensor_type", std::string(GetParam().view)},
             {"vartml_threads", GetParam().threads},
             {"log_level", std::string("ERROR")}});
        ASSERT_EQ(runner->get_batch_size(), batch_size);
    }
    const vart::NpuTensorInfo& info(TensorDirection direction) const {
        const bool hw = std::string(GetParam().view) == "HW";
        return runner->get_tensors_info(direction,
                                        hw ? vart::TensorType::HW : vart::TensorType::CPU)[0];
    }
    // Neighbours in one memory, as the public samples make them.
    Tensors neighbours(TensorDirection direction, size_t count) const {
        vart::NpuTensorInfo whole = info(direction);
        whole.size_in_bytes *= count;
        const NpuTensor parent = runner->allocate_npu_tensor(whole);
        Tensors tensors;
        for (size_t b = 0; b < count; ++b)
            tensors.push_back({runner->allocate_sub_tensor(parent, info(direction),
                                                           b * info(direction).size_in_bytes)});
        return tensors;
    }
    Tensors apart(TensorDirection direction, size_t count) const {
        Tensors tensors;
        for (size_t b = 0; b < count; ++b)
            tensors.push_back({runner->allocate_npu_tensor(info(direction))});
        return tensors;
    }
    static void fill(const NpuTensor& tensor, unsigned seed) {
        NpuTensor own = tensor;
        std::mt19937 random(seed);
        auto* x = static_cast<float*>(own.get_virtual_address());
        for (size_t i = 0; i < own.get_info().size; ++i)
            x[i] = static_cast<float>(random() % 2000) / 1000 - 1;
    }
    static std::string bytes(const NpuTensor& tensor) {
        return {static_cast<const char*>(tensor.get_virtual_address()),
                tensor.get_info().size_in_bytes};
    }
    // What frame `seed` gives alone.
    std::string alone(unsigned seed) const {
        const Tensors in = apart(TensorDirection::INPUT, 1);
        Tensors out = apart(TensorDirection::OUTPUT, 1);
        fill(in[0][0], seed);
        EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        return bytes(out[0][0]);
    }
};

TEST_P(Batch, GivesEachElementWhatItGivesAlone) {
    for (const bool is_contiguous : {true, false}) {
        for (size_t count = 1; count <= batch_size; ++count) {  // partial batches and the full one
            SCOPED_TRACE(count);
            const auto make = [&](TensorDirection direction) {
                return is_contiguous ? neighbours(direction, count) : apart(direction, count);
            };
            const Tensors in = make(TensorDirection::INPUT);
            Tensors out = make(TensorDirection::OUTPUT);
            for (unsigned b = 0; b < count; ++b) fill(in[b][0], 100 + b);
            ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
            for (unsigned b = 0; b < count; ++b)
                EXPECT_EQ(bytes(out[b][0]), alone(100 + b)) << "element " << b;
        }
    }
}

// Public applications give fewer inputs at the end of their data, and the outputs they have.
TEST_P(Batch, LeavesOutputsWithoutInputsAsTheyAre) {
    const Tensors in = apart(TensorDirection::INPUT, 2);
    Tensors out = apart(TensorDirection::OUTPUT, batch_size);
    for (unsigned b = 0; b < 2; ++b) fill(in[b][0], 100 + b);
    for (auto& element : out) fill(element[0], 7);
    const std::string before = bytes(out[2][0]);
    for (const bool later : {false, true}) {
        if (later) {
            const auto job = runner->execute_async(in, out);
            ASSERT_EQ(job.status, StatusCode::SUCCESS);
            ASSERT_EQ(runner->wait(job, std::chrono::seconds(60)), StatusCode::SUCCESS);
        } else {
            ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
        }
        for (unsigned b = 0; b < batch_size; ++b)
            EXPECT_EQ(bytes(out[b][0]), b < 2 ? alone(100 + b) : before) << "element " << b;
    }
}

TEST_P(Batch, OfAJobBesideOthersGivesTheSame) {
    constexpr size_t jobs = 2;
    Tensors in[jobs], out[jobs];
    for (unsigned round = 0; round < 50; ++round) {
        vart::JobHandle handles[jobs];
        for (size_t j = 0; j < jobs; ++j) {
            in[j] = neighbours(TensorDirection::INPUT, batch_size - j);
            out[j] = neighbours(TensorDirection::OUTPUT, batch_size - j);
            for (unsigned b = 0; b < in[j].size(); ++b) fill(in[j][b][0], b);
            handles[j] = runner->execute_async(in[j], out[j]);
            ASSERT_EQ(handles[j].status, StatusCode::SUCCESS);
        }
        for (size_t j = 0; j < jobs; ++j)
            ASSERT_EQ(runner->wait(handles[j], std::chrono::seconds(60)), StatusCode::SUCCESS);
        for (size_t j = 0; j < jobs; ++j)
            for (unsigned b = 0; b < in[j].size(); ++b)
                ASSERT_EQ(bytes(out[j][b][0]), alone(b)) << "job " << j << " element " << b;
    }
}

// Counters count per element, whether they run together or not.
TEST_P(Batch, CountsCopiesOfEachElement) {
    const auto copied = [&] {
        return std::any_cast<uint64_t>(runner->get_property("bytes_copied_in"));
    };
    const Tensors in = neighbours(TensorDirection::INPUT, batch_size);
    Tensors out = neighbours(TensorDirection::OUTPUT, batch_size);
    const uint64_t before = copied();
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    const bool is_hw = std::string(GetParam().view) == "HW";
    EXPECT_EQ(copied() - before,
              is_hw ? 0 : batch_size * info(TensorDirection::INPUT).size_in_bytes);
}

INSTANTIATE_TEST_SUITE_P(OnTheSoftwareNpu, Batch,
                         testing::Values(Case{"HW", 1}, Case{"HW", 2}, Case{"CPU", 2},
                                         Case{"HW", 8}),
                         [](const auto& p) {
                             return std::string(p.param.view) + "With" +
                                    std::to_string(p.param.threads) + "Threads";
                         });

}  // namespace
}  // namespace vartml
