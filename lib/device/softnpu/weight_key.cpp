// SPDX-License-Identifier: Apache-2.0
// What packed weights depend on, as the name of a file.
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/conv/conv.h"
#include "kernels/instruction_sets.h"
#include "lib/common/sha256.h"
#include "lib/device/softnpu/weight_cache.h"

namespace vartml::softnpu {
namespace {

struct BuildId {
    uintptr_t address;  // in the object that is looked for
    std::string hex;
};

bool contains(const dl_phdr_info& object, uintptr_t address) {
    return std::any_of(object.dlpi_phdr, object.dlpi_phdr + object.dlpi_phnum, [&](const auto& p) {
        return p.p_type == PT_LOAD && address - object.dlpi_addr - p.p_vaddr < p.p_memsz;
    });
}

// The GNU build id among the notes at `at`.
std::string find_build_id(const std::byte* at, size_t size) {
    const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const size_t name = sizeof note, text = name + padded(note.n_namesz);
        const size_t end = text + padded(note.n_descsz);
        if (end > size) break;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(at + name, "GNU", 4) == 0)
            return to_hex({reinterpret_cast<const uint8_t*>(at + text), note.n_descsz});
        at += end;
        size -= end;
    }
    return {};
}

int visit(dl_phdr_info* object, size_t, void* data) {
    auto& wanted = *static_cast<BuildId*>(data);
    if (!contains(*object, wanted.address)) return 0;
    for (const auto& p : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
        if (p.p_type != PT_NOTE || !wanted.hex.empty()) continue;
        const auto* notes = reinterpret_cast<const std::byte*>(object->dlpi_addr + p.p_vaddr);
        wanted.hex = find_build_id(notes, p.p_memsz);
    }
    return 1;
}

// Of the program or library that holds this function or object: two builds of one version differ in
// it. "" where the linker wrote none.
template <typename T>
std::string build_id_of(T* address) {
    BuildId wanted{reinterpret_cast<uintptr_t>(address), {}};
    ::dl_iterate_phdr(visit, &wanted);
    return wanted.hex;
}

// Code that packs. "" where one part cannot be told apart from another build of it.
std::string own_code() {
    const std::string lowering = build_id_of(&WeightCache::key);
    const std::string kernels = build_id_of(&kernels::pack_conv);
    if (lowering.empty() || kernels.empty()) return {};
    return lowering + ' ' + kernels + ' ' + std::to_string(kernels::instruction_sets());
}

std::string onednn_code() {
    const std::string library = build_id_of(dnnl::version());
    if (library.empty()) return {};
    return library + ' ' + std::to_string(static_cast<int>(dnnl::get_effective_cpu_isa()));
}

std::string digest(std::string_view text) {
    return to_hex(sha256(as_bytes(text))).substr(0, 32);
}

}  // namespace

std::optional<WeightCache::Key> WeightCache::key(const device::Program& program, DataType compute,
                                                 unsigned threads, bool uses_onednn) {
    static const std::string own = own_code();
    std::string build = own;
    if (uses_onednn) {
        static const std::string onednn = onednn_code();
        if (onednn.empty()) return std::nullopt;
        build += ' ' + onednn;
    }
    if (program.identity.empty() || own.empty()) return std::nullopt;
    for (const int64_t part : {static_cast<int64_t>(compute), static_cast<int64_t>(threads)})
        build += ' ' + std::to_string(part);
    return Key{digest(program.identity), digest(build)};
}

}  // namespace vartml::softnpu
