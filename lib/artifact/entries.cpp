// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/entries.h"

#include <algorithm>
#include <array>

#include "lib/artifact/derived.h"
#include "lib/artifact/program.h"
#include "lib/common/crc32c.h"
#include "lib/profiling/descriptor.h"

namespace vartml::artifact {
namespace {

constexpr uint32_t page = 4096;  // programs and weights start at one in a .rai

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

Entry make_entry(std::string name, rai::BlobKind kind, std::vector<Bytes> pieces,
                 std::shared_ptr<const std::string> owner = nullptr) {
    Entry e;
    e.blob.name = std::move(name);
    e.blob.kind = kind;
    const bool paged = kind == rai::BlobKind::Program || kind == rai::BlobKind::Weights;
    e.blob.alignment = paged ? page : 64;
    for (const Bytes piece : pieces) {
        e.blob.size += piece.size();
        e.blob.crc32c = crc32c(piece, e.blob.crc32c);
    }
    e.pieces = std::move(pieces);
    e.owner = std::move(owner);
    return e;
}

Entry make_text_entry(std::string name, rai::BlobKind kind, std::string text) {
    auto owner = std::make_shared<const std::string>(std::move(text));
    const Bytes bytes = as_bytes(*owner);
    return make_entry(std::move(name), kind, {bytes}, std::move(owner));
}

}  // namespace

bool has_only_name_characters(std::string_view name) {
    return std::ranges::all_of(name, is_name_character);
}

bool has_known_ending(std::string_view name) {
    constexpr std::array<std::string_view, 7> endings{".json", ".yaml", ".vnp",      ".vmf",
                                                      ".bin",  ".txt",  ".modelinfo"};
    return name == "modelinfo" ||
           std::ranges::any_of(endings, [&](std::string_view e) { return name.ends_with(e); });
}

std::string name_fault(std::string_view name) {
    if (name.empty() || name.size() > 255)
        return "has " + std::to_string(name.size()) + " bytes, expected 1 to 255";
    if (name.front() == '/') return "is absolute";
    for (size_t begin = 0, end; begin <= name.size(); begin = end + 1) {
        end = std::min(name.find('/', begin), name.size());
        const std::string_view part = name.substr(begin, end - begin);
        if (part.empty()) return "has an empty part";
        if (part == "." || part == "..") return "holds '" + std::string(part) + "'";
        if (!has_only_name_characters(part))
            return "holds characters outside of A-Z, a-z, 0-9, '.', '_' and '-'";
    }
    const std::string_view file = last_part(name);
    if (!has_known_ending(file)) return "has an ending that no entry has";
    return {};
}

std::string file_stem(std::string_view model_name) {
    std::string stem(model_name.substr(0, 128));
    for (char& c : stem)
        if (!is_name_character(c)) c = '_';
    return stem.empty() ? "model" : stem;
}

bool is_no_entry(std::string_view name) {
    const bool top = name.find('/') == name.npos;
    if (top)
        return name == "model.vmf" || name == "compile.log" || name.ends_with(".rai") ||
               name.ends_with(".tar.gz");
    return name.starts_with("debug/") || name.starts_with("weights/") ||
           name.find("/0/debug/") != name.npos;
}

Result<std::vector<Entry>> make_entries(const CompiledModel& model) {
    std::vector<Entry> entries;
    for (const File& f : model.files) {
        const bool stats = f.name == profiling::descriptor_entry;
        entries.push_back(make_entry(f.name,
                                     stats ? rai::BlobKind::StatsDescriptor : rai::BlobKind::File,
                                     {as_bytes(f.bytes)}));
    }
    for (const Partition& p : model.partitions) {
        auto written = write_program(model, p);
        if (!written) return written.error();
        const std::string folder = entry_folder(p);
        entries.push_back(make_text_entry(folder + "program.vnp", rai::BlobKind::Program,
                                          std::move(written->bytes)));
        if (written->weights_size != 0)
            entries.push_back(make_entry(folder + "weights.bin", rai::BlobKind::Weights,
                                         std::move(written->weights)));
    }
    // After the programs: they have proved that the graphs are sound.
    for (File& f : derived_files(model))
        if (!model.find_file(f.name))
            entries.push_back(
                make_text_entry(std::move(f.name), rai::BlobKind::File, std::move(f.bytes)));
    std::ranges::sort(entries, {},
                      [](const Entry& e) -> const std::string& { return e.blob.name; });
    return entries;
}

}  // namespace vartml::artifact
