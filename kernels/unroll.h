// SPDX-License-Identifier: Apache-2.0
// Loops over arrays of vectors that are to stay in registers.
#pragma once

#if defined(__clang__)
#define VARTML_UNROLL _Pragma("clang loop unroll(full)")
#else
#define VARTML_UNROLL _Pragma("GCC unroll 40")
#endif
