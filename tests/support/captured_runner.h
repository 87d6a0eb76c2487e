// SPDX-License-Identifier: Apache-2.0
// Small models on a runner with a capture sink.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/model/models.h"
#include "tests/support/captures.h"
#include "tests/support/fake_runner.h"

namespace vartml::test {

// `nodes` activations one after another.
inline std::string chain(const std::string& in, const std::string& out, size_t nodes,
                         const std::string& shape) {
    std::string text = "graph g\ninput %" + in + " : f32" + shape + "\n", from = in;
    for (size_t i = 0; i < nodes; ++i) {
        const std::string to = i + 1 == nodes ? out : out + std::to_string(i);
        text +=
            "%" + to + " = " + (i % 2 ? "Sigmoid" : "Tanh") + " %" + from + " : f32" + shape + "\n";
        from = to;
    }
    return text + "output %" + out + "\n";
}

inline artifact::CompiledModel npu_model(size_t nodes, const std::string& shape = "[1,3,8,8]",
                                         unsigned level = 100) {
    auto model = connect(
        make_model({make_partition("vaiml_par_0", parse_graph(chain("x", "y", nodes, shape)))}));
    model.stats_level = static_cast<uint16_t>(level);
    return model;
}

struct Profiled {
    Profiled(artifact::CompiledModel model, std::shared_ptr<KeepingSink> to,
             runtime::Options options = cpu_views(), bool with_descriptor = true)
        : sink(std::move(to)) {
        if (with_descriptor) add_descriptor(model, descriptor_of(model, model.stats_level));
        options.capture_sink = sink;
        const size_t batch = model.actual_batch_size;
        runner = make_runner(std::move(model), options);
        if (!runner) return;
        for (size_t b = 0; b < batch; ++b) {
            in.push_back(allocate(*runner, vart::TensorDirection::INPUT)[0]);
            out.push_back(allocate(*runner, vart::TensorDirection::OUTPUT)[0]);
        }
    }
    Profiled(artifact::CompiledModel model, unsigned level, runtime::Options options = cpu_views())
        : Profiled(std::move(model), std::make_shared<KeepingSink>(level), std::move(options)) {}
    profiling::Capture execute() {
        EXPECT_EQ(runner->execute(in, out), vart::StatusCode::SUCCESS);
        return sink->captures().back();
    }

    std::shared_ptr<KeepingSink> sink;
    std::shared_ptr<runtime::VaimlRunner> runner;
    runtime::Tensors in, out;
};

inline runtime::Options one_thread() {
    runtime::Options options = cpu_views();
    options.threads = 1;
    return options;
}

}  // namespace vartml::test
