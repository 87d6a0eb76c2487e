// SPDX-License-Identifier: Apache-2.0
// One model in its three containers, run on the software NPU: the same bits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <vart/vart_runner_factory.hpp>

#include "lib/model/compiled_model.h"
#include "tests/model/models.h"
#include "tests/model/tar_archives.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using Options = std::unordered_map<std::string, std::any>;

// Convolution and activation with f32 views on both sides.
artifact::CompiledModel model() {
    artifact::Partition p = test::make_partition("vaiml_par_0", test::parse_graph(R"(graph g
input %images : f32[1,3,8,8]
const %w : f32[2,3,1,1] = {1, 2, 3, 4, 5, 6}
const %b : f32[2] = {0.5, -0.5}
%c = Conv %images, %w, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,8,8]
%y = Sigmoid %c : f32[1,2,8,8]
output %y
)"));
    p.inputs[0].hw = hw_view(p.inputs[0].cpu, Layout::HCWNC4, DataType::float32);
    p.outputs[0].hw = hw_view(p.outputs[0].cpu, Layout::HCWNC16, DataType::float32);
    return test::connect(test::make_model({std::move(p)}));
}

class Containers : public testing::Test {
protected:
    test::TempDir dir;

    void SetUp() override {
        ASSERT_TRUE(artifact::write_directory(model(), dir / "m"));
        ASSERT_TRUE(artifact::write_rai(model(), dir / "m.rai"));
        ASSERT_TRUE(artifact::write_tar(model(), dir / "net.tar.gz"));
        // The default folder of an unpacked model is made in the current one.
        before_ = fs::current_path();
        fs::create_directory(dir / "here");
        fs::current_path(dir / "here");
    }
    void TearDown() override { fs::current_path(before_); }

    static std::shared_ptr<vart::Runner> open(const std::string& path, Options options = {}) {
        options["input_tensor_type"] = options["output_tensor_type"] = std::string("CPU");
        options["log_level"] = std::string("WARNING");
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path, options);
    }
    static std::string run(vart::Runner& runner) {
        const auto make = [&](vart::TensorDirection direction) {
            std::vector<std::vector<vart::NpuTensor>> batch(1);
            for (const auto& info : runner.get_tensors_info(direction, vart::TensorType::CPU))
                batch[0].push_back(runner.allocate_npu_tensor(info));
            return batch;
        };
        auto inputs = make(vart::TensorDirection::INPUT);
        auto outputs = make(vart::TensorDirection::OUTPUT);
        auto* x = static_cast<float*>(inputs[0][0].get_virtual_address());
        for (int i = 0; i < 3 * 8 * 8; ++i) x[i] = static_cast<float>(i % 17) / 8 - 1;
        EXPECT_EQ(runner.execute(inputs, outputs), vart::StatusCode::SUCCESS);
        const auto& info = outputs[0][0].get_info();
        return {static_cast<const char*>(outputs[0][0].get_virtual_address()), info.size_in_bytes};
    }
    std::vector<std::string> here() const {
        std::vector<std::string> names;
        for (const auto& e : fs::directory_iterator(dir / "here"))
            names.push_back(e.path().filename().string());
        return names;
    }

private:
    fs::path before_;
};

TEST_F(Containers, GiveTheSameBits) {
    const std::string want = run(*open(dir / "m"));
    EXPECT_EQ(want.size(), 2u * 8 * 8 * 4);
    EXPECT_NE(want, std::string(want.size(), '\0'));
    EXPECT_EQ(run(*open(dir / "m.rai")), want);
    EXPECT_EQ(run(*open(dir / "net.tar.gz")), want);
    EXPECT_EQ(run(*open(dir / "net.tar.gz", {{"cache_path", dir / "cache"}})), want);
}

TEST_F(Containers, UnpackATarUnderTheDefaultNameAsLongAsTheRunnerLives) {
    auto runner = open(dir / "net.tar.gz");
    EXPECT_EQ(std::any_cast<std::string>(runner->get_property("model_format")), "tar");
    const std::string name =
        "vaiml_cache_net_" + std::to_string(::getpid()) + '_' + std::to_string(::gettid());
    EXPECT_EQ(here(), std::vector<std::string>{name});
    EXPECT_EQ(fs::status(dir / "here/" + name).permissions(), fs::perms::owner_all);
    auto second = open(dir / "net.tar.gz");
    EXPECT_EQ(here().size(), 2u);
    EXPECT_EQ(run(*runner), run(*second));
    runner.reset();
    second.reset();
    EXPECT_TRUE(here().empty());
}

TEST_F(Containers, KeepAnUnpackedTarInCachePath) {
    open(dir / "net.tar.gz", {{"cache_path", dir / "deep/cache"}});
    EXPECT_TRUE(fs::exists(dir / "deep/cache/vaiml_par_0/0/weights.bin"));
    EXPECT_TRUE(here().empty());
    open(dir / "net.tar.gz", {{"cache_path", dir / "deep/cache"}});
    EXPECT_EQ(run(*open(dir / "deep/cache")), run(*open(dir / "m")));
}

TEST_F(Containers, LeaveNothingOfATarThatIsRefused) {
    std::string damaged = test::slurp(dir / "net.tar.gz");
    damaged.resize(damaged.size() - 20);
    test::spill(dir / "damaged.tar.gz", damaged);
    test::spill(dir / "other.tar.gz", test::gzip(test::make_tar({{"x_mpk.json", "{}"}})));
    for (const char* name : {"damaged.tar.gz", "other.tar.gz"}) {
        EXPECT_THROW(open(dir / name), std::runtime_error) << name;
        EXPECT_TRUE(here().empty()) << name;
    }
    try {
        open(dir / "other.tar.gz");
    } catch (const std::runtime_error& e) {
        EXPECT_EQ(std::string(e.what()),
                  "create_runner: " + dir / "other.tar.gz" +
                      ": is not a vartml archive; models of other compilers hold code for other "
                      "hardware, compile the ONNX model with 'vartml compile'");
    }
}

// The maker of a tensor knows its shape, its reader does not: the reader gets that shape.
TEST_F(Containers, HandAStaticTensorToAReaderThatTakesAnyShape) {
    auto first = test::make_partition("vaiml_cpu_subgraph_0", test::parse_graph(R"(graph g
input %x : f32[3,8,8]
%t = Neg %x : f32[3,8,8]
output %t
)"));
    auto second = test::make_partition("vaiml_cpu_subgraph_1", test::parse_graph(R"(graph g
input %t : f32[3,8,8]?
%y = Abs %t : f32[3,8,8]?
output %y
)"));
    ASSERT_TRUE(artifact::write_rai(
        test::connect(test::make_model({std::move(first), std::move(second)})), dir / "two.rai"));
    const std::string bytes = run(*open(dir / "two.rai"));
    std::vector<float> y(bytes.size() / sizeof(float));
    std::memcpy(y.data(), bytes.data(), bytes.size());
    ASSERT_EQ(y.size(), 3u * 8 * 8);
    for (size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(y[i], std::abs(static_cast<float>(i % 17) / 8 - 1)) << i;
}

}  // namespace
}  // namespace vartml
