// SPDX-License-Identifier: Apache-2.0
// The .elf of an NPU partition in a .tar.gz: program and weights as two sections. It is data, never
// executed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/common/file.h"

namespace vartml::artifact {

// Content of a file in pieces, one after another; `owners` keep those that are nobody else's.
struct Pieces {
    std::vector<Bytes> list;
    std::vector<std::shared_ptr<const std::string>> owners;
    uint64_t size_bytes = 0;

    void add(Bytes bytes);
    void add(std::string text);
};

// ELF64, little-endian, ET_EXEC, machine 0, no program headers; the weights begin at a multiple of
// 4096. Without weights there is no section for them.
Pieces write_elf(const std::vector<Bytes>& program, const std::vector<Bytes>& weights);

// The bytes of a section; a span without address where there is no such section.
struct ElfSections {
    Bytes program, weights;
};
// What is wrong with the file, for a sentence: "has no section .vartml.program". Other sections are
// not looked at.
Result<ElfSections> read_elf(Bytes file);

}  // namespace vartml::artifact
