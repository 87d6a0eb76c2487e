// SPDX-License-Identifier: Apache-2.0
// What the entries of a compiled model are called in the flat .tar.gz.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace vartml::artifact {

inline constexpr std::string_view program_section = ".vartml.program";
inline constexpr std::string_view weights_section = ".vartml.weights";

struct TarName {
    std::string file;
    std::string_view section;  // of an ELF file; "" where the entry is the whole file
};

// Where the entry with this name in the directory form lies in the .tar.gz; nothing for one that a
// flat archive has no place for.
std::optional<TarName> tar_name(std::string_view entry, std::string_view model_name);

// The file that describes the archive to other tools: NAME_mpk.json.
std::string mpk_name(std::string_view model_name);

// "3" of "vaiml_par_3" and of "vaiml_cpu_subgraph_3".
std::string_view partition_number(std::string_view partition_name);

}  // namespace vartml::artifact
