// SPDX-License-Identifier: Apache-2.0
// A folder of its own for one test, removed at its end.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace vartml::test {

class TempFolder {
public:
    TempFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "vartml-test-XXXXXX").string();
        path_ = ::mkdtemp(name.data()) ? name : "";
    }
    ~TempFolder() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + '/' + name; }

private:
    std::string path_;
};

}  // namespace vartml::test
