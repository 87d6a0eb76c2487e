// SPDX-License-Identifier: Apache-2.0
// What the targets share: bytes as a file, seeds, what a refusal must be.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/base/text.h"

namespace vartml::test {

// A file in memory; `path` can be opened while it lives.
class MemoryFile {
public:
    explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
        if (::write(file_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            std::abort();
        path = "/proc/self/fd/" + std::to_string(file_.get());
    }
    std::string path;

private:
    Fd file_;
};

inline std::string_view as_text(const uint8_t* data, size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

// With VARTML_FUZZ_SEEDS=DIR a target writes its seeds there.
inline void seed(const std::string& name, std::string_view bytes) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS"))
        std::ofstream(std::string(dir) + "/" + name, std::ios::binary) << bytes;
}

inline void check(bool good) {
    if (!good) std::abort();
}

// One line of text that a terminal can show.
inline void check_line(std::string_view line) {
    if (!line.empty() && is_plain_text(line)) return;
    std::fprintf(stderr, "the refusal is no line of text: %s\n", printable(line).c_str());
    std::abort();
}
template <typename T>
void check_refusal(const Result<T>& result) {
    if (!result) check_line(result.error().message);
}

}  // namespace vartml::test
