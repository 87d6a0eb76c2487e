// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vartml/model.h>

#include "lib/model/compiled_model.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

TEST(OpenModel, DescribesAnOffloadedModel) {
    const test::TempDir dir;
    const auto model = test::conv_model();
    ASSERT_TRUE(artifact::write_rai(model, dir / "m.rai"));
    const auto d = open_model(dir / "m.rai");
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->path, dir / "m.rai");
    EXPECT_EQ(d->format, "rai");
    EXPECT_EQ(d->name, "tiny");
    EXPECT_EQ(d->signature, "00112233445566778899aabbccddeeff");
    EXPECT_EQ(d->device, "softnpu");
    EXPECT_EQ(d->target, "softnpu-1");
    EXPECT_EQ(d->tool_version, "1.0.0");
    EXPECT_FALSE(d->cpu_partitioned);
    EXPECT_EQ(d->npu_operators, 2u);
    EXPECT_EQ(d->cpu_operators, 0u);
    EXPECT_EQ(d->first_cpu_operator, "");
    EXPECT_EQ(d->inputs, model.inputs);
    EXPECT_EQ(d->outputs, model.outputs);
    EXPECT_EQ(d->modelinfo, "[modelinfo]\nversion=1.0\n");
}

TEST(OpenModel, NamesTheFirstOperatorOnTheCpu) {
    const test::TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::mixed_model(), dir / "m"));
    const auto d = open_model(dir / "m");
    ASSERT_TRUE(d);
    EXPECT_EQ(d->format, "directory");
    EXPECT_TRUE(d->cpu_partitioned);
    EXPECT_EQ(d->npu_operators, 2u);
    EXPECT_EQ(d->cpu_operators, 4u);
    EXPECT_EQ(d->first_cpu_operator, "Clip node 'c' (unsupported-operator)");
}

TEST(OpenModel, RefusesWhatIsNoModel) {
    const test::TempDir dir;
    EXPECT_EQ(open_model(dir / "no").error().code, ErrorCode::not_found);
    test::spill(dir / "net.onnx", "x");
    EXPECT_EQ(open_model(dir / "net.onnx").error().code, ErrorCode::bad_model);
}

}  // namespace
}  // namespace vartml
