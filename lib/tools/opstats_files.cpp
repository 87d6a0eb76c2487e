// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats_files.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "lib/common/file.h"

namespace vartml::tools {

void set_slice(OpstatsFile& file) {
    const std::string& name = file.name.network;
    constexpr std::string_view word = "_slice";
    file.base = name;
    const size_t at = name.rfind(word);
    if (at == name.npos || at == 0) return;
    const std::string_view digits = std::string_view(name).substr(at + word.size());
    const bool all = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
    if (!all) return;
    file.base = name.substr(0, at);
    file.slice = name.substr(at + 1);
}

Result<std::vector<OpstatsFile>> find_opstats_files(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<OpstatsFile> files;
    size_t seen = 0;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        std::error_code ignored;
        if (!entry.is_regular_file(ignored)) continue;
        ++seen;
        const std::string path = entry.path();
        auto name = profiling::parse_buffer_name(last_part(path));
        if (!name) continue;
        OpstatsFile& file = files.emplace_back();
        file.path = path;
        file.name = std::move(*name);
        set_slice(file);
    }
    if (error) return system_error(folder, "open the folder", error.value());
    if (files.empty())
        return Error{ErrorCode::not_found,
                     folder + ": holds no raw stats buffer named " + profiling::buffer_scheme +
                         " among " + std::to_string(seen) +
                         " files; collect some with vartml run --profiling-type=raw_device_stats"};
    std::ranges::sort(files, {}, [](const OpstatsFile& f) {
        return std::tie(f.name.program, f.name.activation, f.name.inference, f.name.network);
    });
    return files;
}

}  // namespace vartml::tools
