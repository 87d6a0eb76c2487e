// SPDX-License-Identifier: Apache-2.0
// The threads of GCC's OpenMP, on which oneDNN runs. given: OpenMP API 5.0, 3.2. Its omp.h is for
// GCC alone.
#pragma once

extern "C" {
int omp_get_max_threads() noexcept;
void omp_set_num_threads(int count) noexcept;
}
