// SPDX-License-Identifier: Apache-2.0
// Memory bandwidth.
#pragma once
#include <cstddef>

#include <vartml/result.h>

namespace vartml::doctor {

// Bytes of the last-level cache that one processor sees; 32 MiB where the system does not say.
size_t last_level_cache_bytes();

// Bytes per second of a[i] = b[i] + s * c[i] over arrays of `array_bytes` each, the best of
// `repeats`. Counted are two reads and one write of each element; the read that the processor makes
// before it writes a line is not. Errors: out_of_memory naming what is needed.
Result<double> triad_rate(unsigned threads, size_t array_bytes, unsigned repeats);

}  // namespace vartml::doctor
