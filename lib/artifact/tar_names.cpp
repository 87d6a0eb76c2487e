// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/tar_names.h"

#include "lib/artifact/entries.h"

namespace vartml::artifact {
namespace {

// '#' stands for the number of the partition, '@' for the model's name.
struct Row {
    std::string_view entry, file, section;
};
constexpr Row rows[] = {
    {"vaiml_par_#/partition-info.json", "@_stage#_partition.json", ""},
    {"vaiml_par_#/0/flexmlrt-hsi.json", "@_stage#_hsi.json", ""},
    {"vaiml_par_#/0/buffer_info.json", "@_stage#_buffers.json", ""},
    {"vaiml_par_#/0/@_mla_stats.yaml", "@_stage#_mla_stats.yaml", ""},
    {"vaiml_par_#/0/program.vnp", "@_stage#_mla.elf", program_section},
    {"vaiml_par_#/0/weights.bin", "@_stage#_mla.elf", weights_section},
    {"vaiml_cpu_subgraph_#/program.vnp", "@_cpu#.vnp", ""},
    {"vaiml_cpu_subgraph_#/weights.bin", "@_cpu#.bin", ""},
    {"modelinfo", "@.modelinfo", ""},
};

// A name in a ustar header has 100 bytes; the longest ending here is
// "_stage999999999_mla_stats.yaml".
constexpr size_t max_stem_bytes = 64;

std::string tar_stem(std::string_view model_name) {
    return file_stem(model_name).substr(0, max_stem_bytes);
}

std::string filled(std::string_view pattern, std::string_view number, std::string_view stem) {
    std::string out;
    for (const char c : pattern) {
        if (c == '#')
            out += number;
        else if (c == '@')
            out += stem;
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string_view partition_number(std::string_view name) {
    return name.substr(name.find_last_not_of("0123456789") + 1);
}

std::optional<TarName> tar_name(std::string_view entry, std::string_view model_name) {
    const std::string_view number = partition_number(entry.substr(0, entry.find('/')));
    for (const Row& row : rows)
        if (filled(row.entry, number, file_stem(model_name)) == entry)
            return TarName{filled(row.file, number, tar_stem(model_name)), row.section};
    if (entry.find('/') != entry.npos) return std::nullopt;
    return TarName{std::string(entry), {}};
}

std::string mpk_name(std::string_view model_name) {
    return tar_stem(model_name) + "_mpk.json";
}

}  // namespace vartml::artifact
