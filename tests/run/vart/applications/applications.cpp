// SPDX-License-Identifier: Apache-2.0
// Applications that were written for the interface build and run unchanged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "lib/base/convert.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {
namespace {

// A picture through a convolution; the model takes two of them at once.
artifact::CompiledModel picture_net() {
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %images : i8[1,3,8,8]
const %s : f32[] = {0.0625}
const %z : i8[] = {0}
%d = DequantizeLinear %images, %s, %z : f32[1,3,8,8]
const %w : f32[5,3,1,1] = {1, 2, 3, 4, 5, 6, -1, 2, -3, 4, -5, 6, 0.5, 1, 1}
%c = Conv %d, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,5,8,8]
%y = Sigmoid %c : f32[1,5,8,8]
output %y
)"));
    // The program computes on codes; the model's own view is the real one.
    partition.inputs[0].cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, 8, 8});
    partition.inputs[0].hw = hw_view(partition.inputs[0].cpu, Layout::HCWNC4, DataType::int8);
    partition.inputs[0].hw->quantisation = Quantisation{0.0625, 0};
    partition.outputs[0].hw = hw_view(partition.outputs[0].cpu, Layout::HCWNC8, DataType::float32);
    auto model = connect(make_model({std::move(partition)}));
    model.desired_batch_size = model.actual_batch_size = 2;
    return model;
}

std::string convert(const TensorView& from, const TensorView& to, const std::string& bytes) {
    const auto conversion = Conversion::create(from, to);
    EXPECT_TRUE(conversion) << conversion.error().message;
    std::string out(to.size_bytes, '\0');
    conversion->run(bytes.data(), out.data());
    return out;
}

class Applications : public testing::Test {
protected:
    void SetUp() override {
        setenv("XDG_RUNTIME_DIR", dir.path().c_str(), 1);  // columns of other processes
        ASSERT_TRUE(artifact::write_rai(model, path));
        std::mt19937 random(3);
        for (int i = 0; i < 7; ++i) {
            std::string frame(input.cpu.size_bytes, '\0');
            for (size_t k = 0; k < frame.size(); k += sizeof(float)) {
                const float value = static_cast<float>(random() % 256) / 16 - 8;
                std::memcpy(frame.data() + k, &value, sizeof value);
            }
            frames.push_back(frame);
        }
    }
    // Runs the program with its files; gives what it wrote.
    std::string run(const std::string& program, const std::string& arguments,
                    const std::string& bytes, const std::string& last = "") {
        spill(dir / "in", bytes);
        tell(program + ' ' + path + ' ' + arguments + (dir / "in") + ' ' + (dir / "out") + ' ' +
             last);
        return slurp(dir / "out");
    }
    // What the program prints.
    std::string tell(const std::string& program_and_arguments) {
        const std::string command = std::string(std::getenv("VARTML_TEST_APPLICATIONS")) + '/' +
                                    program_and_arguments + " >" + (dir / "log") + " 2>&1";
        EXPECT_EQ(std::system(command.c_str()), 0) << command << '\n' << slurp(dir / "log");
        return slurp(dir / "log");
    }
    std::string to_hw(const std::string& frame) { return convert(input.cpu, *input.hw, frame); }

    const TempDir dir;
    const std::string path = dir / "net.rai";
    const artifact::CompiledModel model = picture_net();
    const TensorInfo& input = model.inputs[0];
    const TensorInfo& output = model.outputs[0];
    std::vector<std::string> frames;
};

TEST_F(Applications, FollowTheFlowOfBothViews) {
    const std::string cpu = run("sync_sample", "CPU ", frames[0]);
    EXPECT_EQ(cpu.size(), output.cpu.size_bytes);
    const std::string log = slurp(dir / "log");
    EXPECT_NE(log.find("batch 2, inputs 1, outputs 1\n"), std::string::npos) << log;
    EXPECT_NE(log.find("name=images direction=INPUT tensor_type=CPU data_type=FLOAT32 "
                       "memory_layout=NCHW shape=[1,3,8,8] strides=[192,64,8,1] size=192 "
                       "size_in_bytes=768\n"),
              std::string::npos)
        << log;
    EXPECT_NE(log.find("images: scale 0.0625, zero point 0\n"), std::string::npos) << log;

    const std::string hw = run("sync_sample", "HW ", to_hw(frames[0]));
    EXPECT_TRUE(convert(*output.hw, output.cpu, hw) == cpu);
    EXPECT_TRUE(cpu != std::string(cpu.size(), '\0'));
}

TEST_F(Applications, KeepTwoJobsInFlightAndTheirOrder) {
    std::string all, want;
    for (const std::string& frame : frames) {
        all += to_hw(frame);
        want += run("sync_sample", "HW ", to_hw(frame));
    }
    const std::string got = run("async_sample", "", all);
    ASSERT_EQ(got.size(), want.size());
    const size_t size = output.hw->size_bytes;
    for (size_t i = 0; i < frames.size(); ++i)
        EXPECT_TRUE(got.compare(i * size, size, want, i * size, size) == 0) << i;
    // seven frames: the last batch is partial
    EXPECT_NE(slurp(dir / "log").find("7 frames, refused "), std::string::npos);
}

// On both sides a tensor of a CPU partition, which has no HW view, stands before one of the NPU.
artifact::CompiledModel mixed_net() {
    auto npu = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %images : f32[1,3,8,8]
%t = Relu %images : f32[1,3,8,8]
%u = Neg %images : f32[1,3,8,8]
output %t
output %u
)"));
    for (TensorInfo* t : {&npu.inputs[0], &npu.outputs[1]})
        t->hw = hw_view(t->cpu, Layout::HCWNC4, DataType::float32);
    npu.outputs[0].hw = npu.outputs[0].cpu;  // what the CPU reads
    auto cpu = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %t : f32[1,3,8,8]
input %bias : f32[1,3,8,8]
%y = Add %t, %bias : f32[1,3,8,8]
output %y
)"));
    auto model = connect(make_model({std::move(npu), std::move(cpu)}));
    std::ranges::reverse(model.inputs);
    std::ranges::reverse(model.outputs);
    model.desired_batch_size = model.actual_batch_size = 2;
    return model;
}

struct Mix {
    const char* arguments;  // of views_sample
    const char* own;        // views of single tensors
    bool hw_in, hw_out;     // of the tensors that have a HW view
};

TEST_F(Applications, ChooseTheViewOfEachTensor) {
    const artifact::CompiledModel mixed = mixed_net();
    ASSERT_TRUE(artifact::write_rai(mixed, path));
    const TensorInfo &images = mixed.inputs[1], &u = mixed.outputs[1];
    const std::string &bias = frames[0], &picture = frames[1];
    std::string want_y(bias.size(), '\0'), want_u = want_y;
    for (size_t k = 0; k < bias.size(); k += sizeof(float)) {
        float x, b;
        std::memcpy(&x, picture.data() + k, sizeof x);
        std::memcpy(&b, bias.data() + k, sizeof b);
        const float y = std::max(x, 0.0f) + b;
        const float negative = -x;
        std::memcpy(want_y.data() + k, &y, sizeof y);
        std::memcpy(want_u.data() + k, &negative, sizeof negative);
    }
    const Mix mixes[] = {
        {"CPU CPU ", "", false, false},
        // in the model's order
        {"CPU CPU ", "in.images=HW out.u=HW", true, true},
        // those of the HW view first
        {"HW HW ", "in.bias=CPU out.y=CPU", true, true},
        {"HW CPU ", "in.bias=CPU", true, false},
        {"HW HW ", "in.bias=CPU in.images=CPU out.y=CPU out.u=CPU", false, false},
    };
    for (const Mix& mix : mixes) {
        SCOPED_TRACE(std::string(mix.arguments) + mix.own);
        const std::string in = mix.hw_in ? convert(images.cpu, *images.hw, picture) : picture;
        const std::string got = run("views_sample", mix.arguments, bias + in, mix.own);
        const TensorView& view = mix.hw_out ? *u.hw : u.cpu;
        const size_t y_size = want_y.size(), element = y_size + view.size_bytes;
        ASSERT_EQ(got.size(), 2 * element);
        EXPECT_TRUE(got.substr(0, y_size) == want_y);
        EXPECT_TRUE(convert(view, u.cpu, got.substr(y_size, view.size_bytes)) == want_u);
        // one frame: the second element of the outputs stays as it was
        EXPECT_TRUE(got.substr(element) == std::string(element, '\0'));
    }
    EXPECT_NE(slurp(dir / "log")
                  .find("images CPU fp32 NCHW, 192 elements, 768 bytes, scale 1.000000, "
                        "zero point 0, UNKNOWN\n"),
              std::string::npos)
        << slurp(dir / "log");
}

TEST_F(Applications, ShareColumnsAndMemory) {
    const std::string other = dir / "other.rai";
    auto negation = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,4,8,8]
%y = Neg %x : f32[1,4,8,8]
output %y
)"));
    for (auto* list : {&negation.inputs, &negation.outputs})
        (*list)[0].hw = hw_view((*list)[0].cpu, Layout::HCWNC4, DataType::float32);
    ASSERT_TRUE(artifact::write_rai(connect(make_model({std::move(negation)})), other));
    for (const char* view : {"HW ", "CPU "}) {
        SCOPED_TRACE(view);
        // as a line of each model alone
        std::string want;
        for (const std::string& tenant :
             {path + " 0 shared", other + " 0 shared", path + " 4 alone"})
            want += tell("tenants_sample 5 " + (view + tenant));
        const std::string got = tell("tenants_sample 5 " + std::string(view) + path + " 0 shared " +
                                     other + " 0 shared " + path + " 4 alone");
        EXPECT_EQ(got, want);
        EXPECT_EQ(std::ranges::count(got, '\n'), 3);
        EXPECT_EQ(got.find("SUCCESS "), 0u) << got;
    }
}

}  // namespace
}  // namespace vartml::test
