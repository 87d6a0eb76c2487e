// SPDX-License-Identifier: Apache-2.0
// Compiles an ONNX file by running the program `vartml compile` as a child process.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace vartml {

struct CompileOptions {
    std::string cache_dir{};  ///< parent of the result; "" = `vartml` in the user's cache folder
    std::vector<std::string>
        arguments{};  ///< further options of `vartml compile`, such as {"--decoder", "yolox"}
    std::string compiler{};  ///< path of the program; "" = environment variable VARTML_COMPILER,
                             ///< else as built
    const std::atomic<bool>* cancel =
        nullptr;  ///< set to true from another thread: the child is killed and reaped
    /// Called on the calling thread with percent (0…100) and stage.
    std::function<void(int percent, const std::string& stage)> progress{};
};

struct CompileResult {
    std::string path;        ///< the compiled model
    bool cache_hit = false;  ///< nothing was compiled and no child was started
};

/// Compiles `onnx_path` into the cache and returns the compiled model; a second call with the same
/// file content and options is a cache hit. Concurrent calls, also from other processes, compile
/// once. A cancelled or failed compile leaves no half result; a damaged cache entry is rebuilt.
/// Errors: not_found (file), unsupported or bad_model (the compiler's own sentence), io (cache
/// folder not writable, program missing), timeout (cancelled).
Result<CompileResult> compile_onnx(const std::string& onnx_path, const CompileOptions& options);

}  // namespace vartml
