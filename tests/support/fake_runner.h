// SPDX-License-Identifier: Apache-2.0
// Runners of models that are in memory, as create_runner makes them from a file.
#pragma once
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_device.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {

inline std::shared_ptr<runtime::VaimlRunner> make_runner(artifact::CompiledModel model,
                                                         runtime::Options options = {}) {
    options.log_level = LogLevel::warning;
    // The tests of memory run with that of each provider.
    if (const char* memory = std::getenv("VARTML_TEST_MEMORY")) options.memory = memory;
    auto state = runtime::prepare("fake.rai", std::move(model), std::move(options));
    if (!state) {
        ADD_FAILURE() << state.error().message;
        return nullptr;
    }
    return std::make_shared<runtime::VaimlRunner>(std::move(*state));
}

inline runtime::Options cpu_views() {
    runtime::Options options;
    options.input_tensor_type = options.output_tensor_type = vart::TensorType::CPU;
    return options;
}

// Allocated tensors of a runner, in the views that its options ask for.
inline runtime::Tensors allocate(vart::Runner& runner, vart::TensorDirection direction) {
    const char* const key =
        direction == vart::TensorDirection::INPUT ? "input_tensor_type" : "output_tensor_type";
    const auto type = std::any_cast<vart::TensorType>(runner.get_property(key));
    runtime::Tensors batch(1);
    for (const auto& info : runner.get_tensors_info(direction, type))
        batch[0].push_back(runner.allocate_npu_tensor(info));
    return batch;
}

template <typename T>
std::span<T> elements(vart::NpuTensor& tensor) {
    return {static_cast<T*>(tensor.get_virtual_address()),
            tensor.get_info().size_in_bytes / sizeof(T)};
}

// Columns that other tests hold at the same time are not seen, and do not see those of this one.
class OwnRuntimeFolder {
public:
    OwnRuntimeFolder() { ::setenv("XDG_RUNTIME_DIR", dir_.path().c_str(), 1); }
    explicit OwnRuntimeFolder(const char* path) { ::setenv("XDG_RUNTIME_DIR", path, 1); }
    ~OwnRuntimeFolder() {
        if (before_)
            ::setenv("XDG_RUNTIME_DIR", before_->c_str(), 1);
        else
            ::unsetenv("XDG_RUNTIME_DIR");
    }

private:
    static std::optional<std::string> now() {
        const char* const value = std::getenv("XDG_RUNTIME_DIR");
        return value ? std::optional<std::string>(value) : std::nullopt;
    }
    const std::optional<std::string> before_ = now();
    TempDir dir_;
};

// Collects log lines while it lives.
class LogLines {
public:
    LogLines() {
        set_log_function(
            [](LogLevel level, std::string_view, std::string_view text, void* user) {
                auto* self = static_cast<LogLines*>(user);
                const std::lock_guard lock(self->mutex_);
                self->lines_.push_back({level, std::string(text)});
            },
            this);
    }
    ~LogLines() { set_log_function(nullptr, nullptr); }
    std::vector<std::pair<LogLevel, std::string>> take() {
        const std::lock_guard lock(mutex_);
        return std::exchange(lines_, {});
    }

private:
    std::mutex mutex_;
    std::vector<std::pair<LogLevel, std::string>> lines_;
};

}  // namespace vartml::test
