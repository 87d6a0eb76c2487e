// SPDX-License-Identifier: Apache-2.0
// Models that list their boxes by score: rows of the same score have no order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lib/compiler/compile.h"
#include "lib/verify/stages.h"
#include "lib/verify/verify.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::verify {
namespace {

using test::TinyOnnx;

// Four rows, the last below the threshold of the family. Added to all is the mean of the input,
// which is nothing.
void save_list(const std::string& path) {
    TinyOnnx m;
    m.input("images", {1, 3, 64, 64})
        .floats("b", {1, 4, 4},
                {.1f, .1f, .2f, .2f, .5f, .5f, .7f, .7f, .3f, .1f, .4f, .2f, 0, 0, 1, 1})
        .floats("s", {1, 4}, {.9f, .6f, .6f, .1f})
        .floats("l", {1, 4}, {3, 1, 2, 5})
        .ints("two", {2}, {1, 1})
        .node("ReduceMean", {"images"}, {"mean"})
        .node("Reshape", {"mean", "two"}, {"zero"})
        .node("Add", {"b", "zero"}, {"boxes"})
        .node("Add", {"s", "zero"}, {"scores"})
        .node("Add", {"l", "zero"}, {"l_sum"})
        .node("Cast", {"l_sum"}, {"labels"}, {{"to", int64_t{TinyOnnx::int64}}})
        .output("labels", {1, 4}, TinyOnnx::int64)
        .output("boxes")
        .output("scores")
        .save(path);
}

// Exchanges two rows of all outputs.
void exchange(Stages& stages, size_t a, size_t b) {
    stages.run = [good = stages.run, a, b](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = good(session, inputs);
        for (size_t i = 0; outputs && i < outputs->size(); ++i) {
            Buffer& bytes = (*outputs)[i];
            const size_t row = bytes.size() / 4;
            std::swap_ranges(&bytes[a * row], &bytes[a * row] + row, &bytes[b * row]);
        }
        return outputs;
    };
}

TEST(Lists, AreJudgedByTheRowsThatCount) {
    if (!std::getenv("VARTML_ONNXRUNTIME_CHILD"))
        GTEST_SKIP() << "built without ONNX Runtime's headers";
    const test::TempDir folder;
    save_list(folder / "net.onnx");
    compiler::CompileRequest compile;
    compile.model = folder / "net.onnx";
    compile.output = folder / "net.rai";
    const auto compiled = compiler::compile(compile);
    ASSERT_TRUE(compiled) << compiled.error().message;

    Request r;
    r.model = folder / "net.onnx";
    r.compiled = folder / "net.rai";
    r.info.decoder = "detr";
    r.num_samples = 1;
    r.sample = [](size_t) {
        return Result<Sample>(
            Sample{"zeros",
                   {},
                   {{DataType::float32, {1, 3, 64, 64}, Buffer(size_t{4} * 3 * 64 * 64)}},
                   {}});
    };
    struct Row {
        size_t a, b;
        bool is_good;
    };
    const Row rows[] = {
        {0, 0, true},
        {1, 2, true},   // of the same score
        {0, 1, false},  // the scores are no longer in order
    };
    for (const Row& row : rows) {
        Stages stages = product_stages();
        exchange(stages, row.a, row.b);
        const auto report = verify(r, stages);
        ASSERT_TRUE(report) << report.error().message;
        EXPECT_EQ(report->is_good(), row.is_good) << row.a << row.b << console_text(*report);
        ASSERT_TRUE(report->effect);
        EXPECT_EQ(report->effect->found, 3u) << console_text(*report);
    }
    // A label that changes is a fault, whatever the order.
    Stages stages = product_stages();
    stages.run = [good = stages.run](Session& session, const std::vector<Buffer>& inputs) {
        auto outputs = good(session, inputs);
        if (outputs) (*outputs)[0][0] = std::byte{4};
        return outputs;
    };
    const auto report = verify(r, stages);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_NE(report->first_fault(), nullptr);
    EXPECT_EQ(report->first_fault()->subject, "output 'labels'");
}

}  // namespace
}  // namespace vartml::verify
