// SPDX-License-Identifier: Apache-2.0
// What the software NPU finds of the processor. Also linked into the program vartml, whose doctor
// tells it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <vartml/result.h>

namespace vartml::softnpu {

// How fast the processor multiplies bf16, against its fp32.
enum class Bf16Products : uint8_t {
    none,
    slow,   // two products an instruction, a quarter as many instructions: half of fp32 (Intel)
    pairs,  // two products an instruction, as many instructions: twice fp32 (AMD)
    tiles,  // AMX
};
// What the instructions are, read off the processor.
struct Bf16Instructions {
    bool pairs, tiles, is_intel;
};
Bf16Products bf16_products(const Bf16Instructions& has);
// The same of this processor, of what ONEDNN_MAX_CPU_ISA leaves of it.
Bf16Products bf16_products();
// Whether float work goes in bf16 where nobody says in what: where that is faster than fp32.
bool prefers_bf16();
// Whether the processor adds four products of 8 bits without saturating in between (VNNI). Others
// compute in 16 bits or in floats.
bool has_int8_products();

// Whether our kernels multiply codes, if need be as numbers of 16 bits.
bool has_int16_products();

// Kernels do without what the variable ONEDNN_MAX_CPU_ISA hides of the processor, as oneDNN does:
// one limit for both. Asked once per process, before a program is lowered.
void obey_instruction_limit();

// What oneDNN uses of the processor, such as "avx512_core_vnni", and its version, such as "3.7.1".
std::string instruction_set();
std::string onednn_version();

// How fast oneDNN multiplies matrices on this processor: the peaks of `vartml doctor --calibrate`.
// Linked into the program vartml only.

enum class ProductType { f32, bf16, int8 };

// Operations per second (a multiply-add is two) of a product of size x size x size, the best of
// `repeats`. The rows are shared among `threads` threads that run oneDNN each on its own, as the
// software NPU does; weights are in the form that oneDNN likes best. Measured on two cores, that is
// 10 to 25 % above one call on a team of OpenMP, which spends the difference on its barrier.
// Errors: unsupported where the processor has no instructions for the type, out_of_memory, device.
Result<double> product_rate(ProductType type, unsigned threads, unsigned size, unsigned repeats);

}  // namespace vartml::softnpu
