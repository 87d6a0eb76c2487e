// SPDX-License-Identifier: Apache-2.0
// How far something is that may take over a second: a line on a terminal, nothing elsewhere.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace vartml::tools {

// "compiling model.onnx  [########            ] 40 % partition". Thread-safety: none.
class Progress {
public:
    // `what` is what is done. Writes nothing yet.
    explicit Progress(std::string what);
    // Wipes the line.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Wipes the line before another one is written.
    void clear();
    void show(int percent, std::string_view stage);
    // The same of `done` things out of `all`.
    void show(size_t done, size_t all);

private:
    const std::string what_;
    const bool is_terminal_;  // standard error
    bool is_shown_ = false;
};

}  // namespace vartml::tools
