// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime as the reference, behind a child process (ort.cpp).
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/base/process.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/folder_check.h"

namespace vartml::verify {

// Of a child process; 0 = none.
struct Limits {
    std::chrono::milliseconds time{0};
    uint64_t memory = 0;  // bytes of address space
};

// Why a child did not do what it should, as the end of a sentence: "crashes (signal 11)", or the
// last line that it printed.
std::string why_it_ended(const ChildResult& ended, const Limits& limits);

// The text, and where it says that there is too little memory, what the limit is and its option.
std::string with_limits(std::string text, const Limits& limits);

class OnnxRuntime {
public:
    // Errors: not_found with what to install, where the child or the library is not there.
    static Result<OnnxRuntime> find();

    const std::string& version() const { return version_; }
    void set_limits(const Limits& limits) { limits_ = limits; }
    void set_cancel(const std::atomic<bool>* cancel) { cancel_ = cancel; }

    using Named = NamedTensor;
    // Name, type and shape of the inputs, -1 for a dimension without a number. Errors: device with
    // ONNX Runtime's sentence.
    Result<std::vector<Named>> inputs(const std::string& model) const;
    // All outputs of the model by name (of a map its numbers), and the tensors `keep` of its graph;
    // `level` as below.
    // Errors: device with ONNX Runtime's sentence; io.
    Result<std::map<std::string, TensorData>> run(const std::string& model,
                                                  const std::vector<Named>& inputs,
                                                  const std::vector<std::string>& keep = {},
                                                  const std::string& level = "disabled") const;
    // From the request in `folder` to the outputs in `out`, which exists; `level` is what is done
    // to the graph: "disabled", "basic", "extended", "all". Products of 8 bits are exact on every
    // processor. Errors: device with ONNX Runtime's sentence.
    Result<void> run_folder(const std::string& model, const std::string& folder,
                            const std::string& level, const std::string& out) const;

    struct Timed {
        uint64_t runs = 0, median_ns = 0;
    };
    // Runs the model on the request in `folder` for so long, with every optimisation and `threads`
    // threads, after a warm-up. Errors: device with ONNX Runtime's sentence.
    Result<Timed> time(const std::string& model, const std::string& folder, double seconds,
                       unsigned threads) const;

private:
    // `file` is run, `model` named.
    Result<void> run_program(const std::string& model, const std::string& file, Child& child) const;

    std::string program_, version_;
    Limits limits_;
    const std::atomic<bool>* cancel_ = nullptr;
};

}  // namespace vartml::verify
