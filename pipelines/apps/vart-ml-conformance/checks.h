// SPDX-License-Identifier: Apache-2.0
// A check of the runtime at hand, and what the checks share: how an outcome is written, the model
// that the board's owner named, the tensors of one run.
#pragma once

#include <any>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vart/vart_runner_factory.hpp>

namespace conformance {

enum class Verdict {
    same,       // does what is expected
    differs,    // does something else
    refused,    // says that it does not do it, or does not declare it
    crashed,    // ended the process, or gave no answer
    not_shown,  // the model or the machine has nothing to show it with
};
std::string name_of(Verdict verdict);

struct Seen {
    Verdict verdict = Verdict::same;
    std::string text;
};
inline Seen same(std::string text = "as expected") {
    return {Verdict::same, std::move(text)};
}
inline Seen differs(std::string text) {
    return {Verdict::differs, std::move(text)};
}
inline Seen refused(std::string text) {
    return {Verdict::refused, std::move(text)};
}
inline Seen not_shown(std::string text) {
    return {Verdict::not_shown, std::move(text)};
}
inline Seen same_if(bool as_expected, std::string text) {
    return {as_expected ? Verdict::same : Verdict::differs, std::move(text)};
}

using Options = std::unordered_map<std::string, std::any>;
using Tensors = std::vector<std::vector<vart::NpuTensor>>;

// The model under test. Runners are made when a check asks for them.
class Model {
public:
    explicit Model(std::string path) : path_(std::move(path)) {}

    const std::string& path() const { return path_; }
    // A new runner, in CPU views where the options say nothing.
    std::shared_ptr<vart::Runner> open(Options options = {}) const;
    // One that the checks share.
    vart::Runner& runner(vart::TensorType inputs = vart::TensorType::CPU,
                         vart::TensorType outputs = vart::TensorType::CPU);
    bool has_hw(vart::TensorDirection direction);
    bool has_hw() {
        return has_hw(vart::TensorDirection::INPUT) && has_hw(vart::TensorDirection::OUTPUT);
    }

private:
    std::string path_;
    std::shared_ptr<vart::Runner> runners_[2][2];
};

// Tensors of a run and, where they are plain memory, the bytes that they wrap.
struct Frame {
    std::vector<std::vector<std::byte>> memory;
    Tensors inputs, outputs;
};
// Inputs are filled with one pattern, the same values in each view. `variant` shifts it.
Frame plain_frame(const vart::Runner& runner, size_t batch = 1, unsigned variant = 0);
Frame device_frame(const vart::Runner& runner, vart::TensorType inputs, vart::TensorType outputs,
                   unsigned variant = 0);
std::vector<vart::NpuTensor> plain_tensors(const vart::Runner& runner,
                                           vart::TensorDirection direction, Frame& owner);
// Fills a buffer of the info's view.
void fill(const vart::Runner& runner, const vart::NpuTensorInfo& info, void* bytes,
          unsigned variant);
std::string bytes_of(const vart::NpuTensor& tensor);
std::string bytes_of(const std::vector<vart::NpuTensor>& tensors);

// Element of the HW view at which each element of the CPU view is; nothing for a layout that is not
// one of the documented.
std::optional<std::vector<size_t>> places_in(const vart::NpuTensorInfo& hw,
                                             const vart::NpuTensorInfo& cpu);
size_t bytes_of_element(vart::DataType type);
std::optional<double> decode(vart::DataType type, const void* bytes, size_t element,
                             const vart::QuantParameters& quant);

std::string kind_of(const std::exception& error);
std::string name_of(vart::StatusCode status);
// As it should be, or what came instead.
Seen expect_status(vart::StatusCode seen, vart::StatusCode expected);

// Whether a call throws as it should.
template <class Error, class Call>
Seen expect_throw(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return same(kind_of(error));
    } catch (const std::exception& error) {
        return differs(kind_of(error));
    }
    return differs("no exception");
}
template <class Call>
Seen expect_throw_of_either(Call call) {
    try {
        call();
    } catch (const std::runtime_error& error) {
        return same(kind_of(error));
    } catch (const std::invalid_argument& error) {
        return same(kind_of(error));
    }
    return differs("no exception");
}

constexpr std::chrono::milliseconds long_wait{30000};

struct Check {
    std::string name, expected;
    // Stated in AMD's public documents or headers; else libvartml's reading where they are silent.
    bool documented;
    std::function<Seen(Model&)> run;
    // It may leave the memory of the process damaged: what comes next begins in another.
    bool damages = false;
};
std::vector<Check> header_checks();
std::vector<Check> creation_checks();
std::vector<Check> tensor_info_checks();
std::vector<Check> memory_checks();
std::vector<Check> execute_checks();
std::vector<Check> async_checks();
std::vector<Check> all_checks();

}  // namespace conformance
