// SPDX-License-Identifier: Apache-2.0
#include "lib/doctor/triad.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lib/common/file.h"
#include "lib/doctor/machine.h"

namespace vartml::doctor {
namespace {

using Clock = std::chrono::steady_clock;

struct Free {
    void operator()(double* p) const { std::free(p); }
};
using Array = std::unique_ptr<double[], Free>;

Array make_array(size_t elements) {
    return Array(static_cast<double*>(std::aligned_alloc(64, (elements * 8 + 63) / 64 * 64)));
}

void triad(double* __restrict a, const double* __restrict b, const double* __restrict c, size_t n) {
    for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3.0 * c[i];
}

// "48K", "2M" as the kernel writes them.
size_t parse_size(const std::string& text) {
    char unit = 0;
    unsigned long long number = 0;
    if (std::sscanf(text.c_str(), "%llu%c", &number, &unit) < 1) return 0;
    return static_cast<size_t>(number) << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}

}  // namespace

size_t last_level_cache_bytes() {
    size_t largest = 0;
    for (int index = 0; index < 8; ++index) {
        const auto text = read_file(
            "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size", 64);
        if (text) largest = std::max(largest, parse_size(*text));
    }
    return largest ? largest : size_t{32} << 20;
}

Result<double> triad_rate(unsigned threads, size_t array_bytes, unsigned repeats) {
    const size_t elements = array_bytes / sizeof(double);
    const uint64_t available = available_memory_bytes();
    const Array a = make_array(elements), b = make_array(elements), c = make_array(elements);
    if (!a || !b || !c || (available != 0 && available < 3 * array_bytes))
        return Error{ErrorCode::out_of_memory, "the bandwidth of memory is measured over " +
                                                   std::to_string((3 * array_bytes) >> 20) +
                                                   " MiB, and " + std::to_string(available >> 20) +
                                                   " MiB are free; close other programs"};
    std::barrier gate(static_cast<std::ptrdiff_t>(threads) + 1);
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
        const size_t first = elements * t / threads, last = elements * (t + 1) / threads;
        workers.emplace_back([&, first, last] {
            // First touched by the thread that works on them, so that the pages are near it.
            std::fill(a.get() + first, a.get() + last, 0.0);
            std::fill(b.get() + first, b.get() + last, 1.0);
            std::fill(c.get() + first, c.get() + last, 2.0);
            for (unsigned i = 0; i < repeats; ++i) {
                gate.arrive_and_wait();
                triad(a.get() + first, b.get() + first, c.get() + first, last - first);
                gate.arrive_and_wait();
            }
        });
    }
    double best = 1e30;
    for (unsigned i = 0; i < repeats; ++i) {
        gate.arrive_and_wait();
        const auto start = Clock::now();
        gate.arrive_and_wait();
        best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    for (std::thread& worker : workers) worker.join();
    return 3.0 * static_cast<double>(elements * sizeof(double)) / best;
}

}  // namespace vartml::doctor
