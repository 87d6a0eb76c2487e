// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/elf_data.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/artifact/tar_names.h"

namespace vartml::artifact {
namespace {

constexpr std::array<std::byte, 4096> zeros{};

template <typename T>
std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The section headers and their names, in the order of the file.
class SectionTable {
public:
    SectionTable() { headers_.resize(1); }  // the empty one that every file begins with

    void add(std::string_view name, uint32_t type, uint64_t offset, uint64_t size, uint64_t align) {
        Elf64_Shdr header{};
        header.sh_name = static_cast<Elf64_Word>(names_.size());
        header.sh_type = type;
        header.sh_offset = offset;
        header.sh_size = size;
        header.sh_addralign = align;
        headers_.push_back(header);
        names_ += std::string(name) + '\0';
    }
    // Adds the names as the last section, which lies at `offset`.
    const std::string& finish_names(uint64_t offset) {
        add(".shstrtab", SHT_STRTAB, offset, 0, 1);
        headers_.back().sh_size = names_.size();
        return names_;
    }
    size_t count() const { return headers_.size(); }
    std::string headers() const {
        return {reinterpret_cast<const char*>(headers_.data()),
                headers_.size() * sizeof(Elf64_Shdr)};
    }

private:
    std::vector<Elf64_Shdr> headers_;
    std::string names_ = std::string(1, '\0');
};

uint64_t size_of(const std::vector<Bytes>& pieces) {
    uint64_t size = 0;
    for (const Bytes b : pieces) size += b.size();
    return size;
}

Error bad(std::string text) {
    return {ErrorCode::bad_model, std::move(text)};
}

// Before the library sees it: it must have nothing to convert.
Result<void> check_identity(Bytes file) {
    const std::string_view text = as_text(file);
    constexpr char identity[] = {'\x7f', 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    if (file.size() < sizeof(Elf64_Ehdr) ||
        !text.starts_with(std::string_view(identity, sizeof identity)))
        return bad("is no little-endian ELF64 file");
    return {};
}

Result<void> check_header(Elf* elf) {
    GElf_Ehdr header{};
    size_t program_headers = 0;
    if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) ||
        elf_getphdrnum(elf, &program_headers) != 0)
        return bad("has a damaged ELF header");
    if (header.e_type != ET_EXEC || header.e_machine != EM_NONE || program_headers != 0)
        return bad("has ELF type " + std::to_string(header.e_type) + ", machine " +
                   std::to_string(header.e_machine) + " and " + std::to_string(program_headers) +
                   " program headers, expected type 2, machine 0 and none");
    return {};
}

Result<ElfSections> find_sections(Elf* elf, Bytes file) {
    ElfSections out;
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return bad("has no names of sections");
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header{};
        if (!gelf_getshdr(section, &header)) return bad("has a damaged section header");
        const char* text = elf_strptr(elf, names, header.sh_name);
        const std::string_view name = text ? text : "";
        Bytes* into = name == program_section   ? &out.program
                      : name == weights_section ? &out.weights
                                                : nullptr;
        if (!into) continue;
        if (into->data()) return bad("has section " + std::string(name) + " twice");
        if (header.sh_type != SHT_PROGBITS || header.sh_offset > file.size() ||
            header.sh_size > file.size() - header.sh_offset)
            return bad("has section " + std::string(name) + " outside of the file's " +
                       std::to_string(file.size()) + " bytes");
        *into = file.subspan(header.sh_offset, header.sh_size);
    }
    if (!out.program.data()) return bad("has no section " + std::string(program_section));
    return out;
}

}  // namespace

void Pieces::add(Bytes bytes) {
    list.push_back(bytes);
    size_bytes += bytes.size();
}

void Pieces::add(std::string text) {
    owners.push_back(std::make_shared<const std::string>(std::move(text)));
    add(as_bytes(*owners.back()));
}

// Written by hand: the library would keep a second copy of the weights until the end.
Pieces write_elf(const std::vector<Bytes>& program, const std::vector<Bytes>& weights) {
    SectionTable table;
    Pieces body;  // behind the header
    const auto at = [&] { return sizeof(Elf64_Ehdr) + body.size_bytes; };
    const auto pad_to = [&](uint64_t multiple) {
        while (at() % multiple != 0)
            body.add(
                Bytes(zeros).first(std::min<uint64_t>(multiple - at() % multiple, zeros.size())));
    };
    const auto add_section = [&](std::string_view name, const std::vector<Bytes>& pieces,
                                 uint64_t alignment) {
        pad_to(alignment);
        table.add(name, SHT_PROGBITS, at(), size_of(pieces), alignment);
        for (const Bytes piece : pieces) body.add(piece);
    };
    add_section(program_section, program, 64);
    if (!weights.empty()) add_section(weights_section, weights, 4096);
    body.add(table.finish_names(at()));
    pad_to(alignof(Elf64_Shdr));

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_NONE;
    header.e_version = EV_CURRENT;
    header.e_shoff = at();
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(table.count());
    header.e_shstrndx = static_cast<Elf64_Half>(table.count() - 1);
    body.add(table.headers());

    Pieces file;
    file.add(bytes_of(header));
    for (const Bytes piece : body.list) file.add(piece);
    std::ranges::move(body.owners, std::back_inserter(file.owners));
    return file;
}

Result<ElfSections> read_elf(Bytes file) {
    if (auto good = check_identity(file); !good) return good.error();
    elf_version(EV_CURRENT);
    struct EndElf {
        void operator()(Elf* elf) const { elf_end(elf); }
    };
    // Takes a writable image but, with nothing to convert, only reads it.
    auto* image = const_cast<char*>(as_text(file).data());
    const std::unique_ptr<Elf, EndElf> elf(elf_memory(image, file.size()));
    if (!elf) return bad("has a damaged ELF header");
    if (auto good = check_header(elf.get()); !good) return good.error();
    return find_sections(elf.get(), file);
}

}  // namespace vartml::artifact
