// SPDX-License-Identifier: Apache-2.0
// A small model from the compiler through a file to a runner.
#pragma once
#include <gtest/gtest.h>

#include <any>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/compile/compile.h"
#include "lib/model/compiled_model.h"
#include "lib/run/vart/runner.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::test {

// A model from the compiler through a file to a runner, on its CPU views in float32.
class Running {
public:
    Running(TinyOnnx& onnx, const compiler::CompileRequest& options = {}) {
        compiler::CompileRequest request = options;
        request.model = dir_ / "m.onnx";
        request.threshold_gops_percent = 0;
        onnx.save(request.model);
        auto model = compiler::compile_in_memory(request, nullptr, nullptr);
        if (!model) {
            ADD_FAILURE() << model.error().message;
            return;
        }
        for (const auto& p : model->partitions) partitions_.push_back(p.name);
        const auto written = artifact::write_rai(*model, dir_ / "m.rai");
        EXPECT_TRUE(written) << written.error().message;
        auto read = artifact::read(dir_ / "m.rai");
        if (!read) {
            ADD_FAILURE() << read.error().message;
            return;
        }
        runtime::Options runner_options;
        runner_options.input_tensor_type = runner_options.output_tensor_type =
            vart::TensorType::CPU;
        runner_options.numerics = "f32";
        runner_options.log_level = LogLevel::error;
        auto state = runtime::prepare("m.rai", std::move(*read), std::move(runner_options));
        if (!state) {
            ADD_FAILURE() << state.error().message;
            return;
        }
        runner_ = std::make_unique<runtime::VaimlRunner>(std::move(*state));
        for (const auto direction : {vart::TensorDirection::INPUT, vart::TensorDirection::OUTPUT}) {
            auto& tensors = direction == vart::TensorDirection::INPUT ? in_ : out_;
            tensors.resize(1);
            for (const auto& info : runner_->get_tensors_info(direction, vart::TensorType::CPU))
                tensors[0].push_back(runner_->allocate_npu_tensor(info));
        }
    }

    const std::vector<std::string>& partitions() const { return partitions_; }
    template <typename T>
    std::span<T> input(size_t i = 0) {
        return elements<T>(in_[0][i]);
    }
    template <typename T>
    std::span<T> output(size_t i = 0) {
        return elements<T>(out_[0][i]);
    }
    std::vector<uint32_t> shape(size_t i = 0) { return out_[0][i].get_info().shape; }
    vart::StatusCode run() { return runner_->execute(in_, out_); }
    std::string last_error() {
        return std::any_cast<std::string>(runner_->get_property("last_error"));
    }

private:
    template <typename T>
    static std::span<T> elements(vart::NpuTensor& tensor) {
        return {static_cast<T*>(tensor.get_virtual_address()),
                tensor.get_info().size_in_bytes / sizeof(T)};
    }

    TempDir dir_;
    std::vector<std::string> partitions_;
    std::unique_ptr<runtime::VaimlRunner> runner_;
    runtime::Tensors in_, out_;
};

}  // namespace vartml::test
