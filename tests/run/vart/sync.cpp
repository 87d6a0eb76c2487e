// SPDX-License-Identifier: Apache-2.0
// Sync of HW buffers: with noncoherent memory a missing one is wrong data.
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Options;
using vartml::runtime::Tensors;

class NoncoherentMemory : public testing::Test {
protected:
    void open(bool skip_in, bool skip_out) {
        Options options;
        options.noncoherent = true;
        options.skip_in_bo_sync = skip_in;
        options.skip_out_bo_sync = skip_out;
        runner = make_runner(picture_model(), options);
        ASSERT_TRUE(runner);
        inputs = allocate(*runner, TensorDirection::INPUT);
        outputs = allocate(*runner, TensorDirection::OUTPUT);
    }
    // The fake device copies the input: what arrives of `value`?
    uint16_t run(uint16_t value, bool sync_in, bool sync_out) {
        std::ranges::fill(elements<uint16_t>(inputs[0][0]), value);
        if (sync_in) inputs[0][0].sync_buffer();
        EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
        if (sync_out) outputs[0][0].sync_buffer();
        return elements<uint16_t>(outputs[0][0])[79];
    }
    uint64_t count(const char* key) { return std::any_cast<uint64_t>(runner->get_property(key)); }

    FakeDevice device;
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    Tensors inputs, outputs;
};

TEST_F(NoncoherentMemory, IsSyncedAroundARunByDefault) {
    open(false, false);
    EXPECT_EQ(run(7, false, false), 7);
    EXPECT_EQ(run(8, false, false), 8);
    // A sync is no copy.
    EXPECT_EQ(count("bytes_copied_in") + count("bytes_copied_out") + count("conversions"), 0u);
}

TEST_F(NoncoherentMemory, ShowsAMissingSyncOfAnInput) {
    open(true, false);
    EXPECT_EQ(run(7, false, false), 0);
    EXPECT_EQ(run(8, true, false), 8);
    EXPECT_EQ(run(9, false, false), 8);
}

TEST_F(NoncoherentMemory, ShowsAMissingSyncOfAnOutput) {
    open(false, true);
    EXPECT_EQ(run(7, false, false), 0);
    EXPECT_EQ(run(8, false, true), 8);
    EXPECT_EQ(run(9, false, false), 8);
}

// A sub-tensor syncs its own range.
TEST_F(NoncoherentMemory, IsSyncedByASubTensorInItsOwnRangeAlone) {
    open(true, false);
    const NpuTensorInfo info = inputs[0][0].get_info();
    NpuTensorInfo both = info;
    both.size_in_bytes *= 2;
    NpuTensor parent = runner->allocate_npu_tensor(both);
    NpuTensor first = runner->allocate_sub_tensor(parent, info, 0);
    NpuTensor second = runner->allocate_sub_tensor(parent, info, info.size_in_bytes);
    std::ranges::fill(elements<uint16_t>(parent), uint16_t{5});
    second.sync_buffer();
    const auto arrives = [&](const NpuTensor& input) {
        Tensors one{{input}};
        EXPECT_EQ(runner->execute(one, outputs), StatusCode::SUCCESS);
        return elements<uint16_t>(outputs[0][0])[79];
    };
    EXPECT_EQ(arrives(first), 0);
    EXPECT_EQ(arrives(second), 5);
    parent.sync_buffer();
    EXPECT_EQ(arrives(first), 5);
}

// CPU views are always synced by the runner, whatever the options say.
TEST_F(NoncoherentMemory, IsNoMatterForCpuViews) {
    Options options = cpu_views();
    options.noncoherent = options.skip_in_bo_sync = options.skip_out_bo_sync = true;
    runner = make_runner(picture_model(), options);
    inputs = allocate(*runner, TensorDirection::INPUT);
    outputs = allocate(*runner, TensorDirection::OUTPUT);
    std::ranges::fill(elements<float>(inputs[0][0]), 7.0f);
    EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
    EXPECT_EQ(elements<float>(outputs[0][0])[59], 7.0f);
}

// Memory of the application is as coherent as it is: nobody would see its own syncs.
TEST_F(NoncoherentMemory, IsThatOfTheRunnerOnly) {
    open(true, true);
    alignas(64) static uint16_t in[80], out[80];
    std::ranges::fill(in, uint16_t{3});
    inputs[0][0] =
        NpuTensor(inputs[0][0].get_info(), static_cast<void*>(in), MemoryType::USER_POINTER_CMA);
    outputs[0][0] =
        NpuTensor(outputs[0][0].get_info(), static_cast<void*>(out), MemoryType::USER_POINTER_CMA);
    EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
    EXPECT_EQ(out[79], 3);
}

TEST_F(NoncoherentMemory, StaysWhatItIsWhereItsObjectIsWrappedAgain) {
    open(true, false);
    std::ranges::fill(elements<uint16_t>(inputs[0][0]), uint16_t{4});
    Tensors wrapped{
        {NpuTensor(inputs[0][0].get_info(), inputs[0][0].get_buffer(), MemoryType::XRT_BO)}};
    EXPECT_EQ(runner->execute(wrapped, outputs), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(outputs[0][0])[0], 0);
    inputs[0][0].sync_buffer();
    EXPECT_EQ(runner->execute(wrapped, outputs), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(outputs[0][0])[0], 4);
}

}  // namespace
