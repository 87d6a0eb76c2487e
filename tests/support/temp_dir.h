// SPDX-License-Identifier: Apache-2.0
// A folder for one test, removed with all it holds.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace vartml::test {

class TempDir {
public:
    TempDir() : path_(root() + "/vartml-test-XXXXXX") {
        if (!::mkdtemp(path_.data())) std::abort();
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }
    std::string operator/(std::string_view name) const { return path_ + '/' + std::string(name); }

private:
    // In memory where possible: some tests write a small file many thousand times.
    static std::string root() {
        if (::access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
        return std::filesystem::temp_directory_path().string();
    }
    std::string path_;
};

inline std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, std::string_view bytes) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
}

// Whether something is there that was not put in place.
inline bool has_temporaries(const std::string& folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().filename().string().find(".tmp-") != std::string::npos) return true;
    return false;
}

// Before a command of the shell: root, too, may not read what its mode keeps from it.
inline std::string bound_by_modes() {
    return ::geteuid() == 0 ? "setpriv --bounding-set=-all " : "";
}

}  // namespace vartml::test
