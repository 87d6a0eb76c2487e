// SPDX-License-Identifier: Apache-2.0
// A compiled model that runs one frame after another, with its tensors as plain bytes.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vartml/model.h>
#include <vartml/result.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/model/compiled_model.h"
#include "lib/tools/verify/compare.h"

namespace vartml::verify {

using Buffer = std::vector<std::byte>;

class Session {
public:
    struct Options {
        std::string numerics = "auto", device = {};
        bool cpu_views = false;  // true: every tensor in its CPU view; false: in the view that a
                                 // pipeline uses: HW where all tensors of a direction have one
    };
    // Errors: those of open_model and artifact::read; bad_model and invalid_argument of the runner.
    static Result<Session> open(const std::string& path, const Options& options);

    const ModelDescription& description() const { return description_; }
    const std::vector<TensorInfo>& inputs() const { return description_.inputs; }
    const std::vector<TensorInfo>& outputs() const { return description_.outputs; }
    // How the bytes of a tensor lie that run() takes or gives.
    const TensorView& input_view(size_t i) const;
    const TensorView& output_view(size_t i) const;
    // By what was computed.
    Tolerance tolerance_of_output(size_t i, std::optional<double> limit) const;
    // For a float model that was made int8, which no other measure fits.
    static Tolerance tolerance_of_quantised(std::optional<double> limit) {
        return {Measure::cosine, limit.value_or(0.99), 1};
    }
    // Of a float output that is dequantised codes.
    std::optional<double> step(size_t i) const;
    std::string compute_type() const;

    // Bytes of an input's CPU view in input_view().
    Result<Buffer> to_input(size_t i, const Buffer& cpu) const;
    // Errors: invalid_argument for bytes that do not fit; device with the runner's sentence.
    Result<std::vector<Buffer>> run(const std::vector<Buffer>& inputs);

private:
    ModelDescription description_;
    std::shared_ptr<vart::Runner> runner_;
    std::vector<std::string> compute_types_;    // per output
    std::vector<std::optional<double>> steps_;  // per output
    std::vector<std::vector<vart::NpuTensor>> in_, out_;
    bool hw_in_ = false, hw_out_ = false;
};

// What an output of a compiled model was computed in: the tolerance of a comparison depends on it.

// Scale of the dequantise that made an output, seen through operators that only move elements;
// nothing where none did.
std::optional<double> step_of(const artifact::CompiledModel& model, const vart::Runner& runner,
                              const std::string& output);

// "bf16" or "fp16" where the machine computes so, or where the program reads or writes a border
// tensor so; else what the runner says.
std::string computed_type(const vart::Runner& runner, const std::string& output);

}  // namespace vartml::verify
