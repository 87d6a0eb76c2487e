// SPDX-License-Identifier: Apache-2.0
// Which code the kernels choose on this processor.
#pragma once
#include <cstdint>

namespace vartml::kernels {

// Of x86, each with those before it but for avx2_vnni, which is AVX-VNNI: products of four codes on
// vectors of 256 bits. On Arm, up to avx2 means NEON without such products, avx2_vnni and beyond,
// but for all, NEON with them and without products of matrices.
enum class InstructionSet : uint8_t { sse4, avx2, avx2_vnni, avx512, avx512_vnni, all };

// From now on kernels do without what is beyond `most`. What was packed before may no longer fit.
void limit_instruction_sets(InstructionSet most);

// The instruction sets that kernels use, a bit each: what is packed for one set of them is of no
// use to another.
int64_t instruction_sets();

// Whether AVX-VNNI is among them, or on Arm FEAT_DotProd: sums of four products of codes that are
// no target of Highway's.
bool has_dot_products();

// Whether products of matrices of codes are among them: FEAT_I8MM of Arm.
bool has_matrix_products();

}  // namespace vartml::kernels
