// SPDX-License-Identifier: Apache-2.0
// Counts the program's allocations and lets one of them fail. Replaces operator new: include it in
// one source file of a test program.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace vartml::test {

// ThreadSanitizer has an operator new of its own, and lets nobody replace it.
#if defined(__SANITIZE_THREAD__)
#define VARTML_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VARTML_COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef VARTML_COUNTS_ALLOCATIONS
#define VARTML_COUNTS_ALLOCATIONS 1
#endif

inline std::atomic<size_t> allocations{0};        // since the start of the program
inline std::atomic<ptrdiff_t> until_failure{-1};  // allocations before the next failure; -1: none
inline std::atomic<bool> stays_out{false};        // one failure, or all from there on
inline std::atomic<unsigned> failures_seen{0};

// While it lives, allocation `n` (from 0) of any thread fails, and with `for_good` all after it.
class FailingAllocations {
public:
    FailingAllocations(ptrdiff_t n, bool for_good) {
        stays_out = for_good;
        failures_seen = 0;
        until_failure = n;
    }
    FailingAllocations(const FailingAllocations&) = delete;
    ~FailingAllocations() { until_failure = -1; }
    static bool was_hit() { return failures_seen > 0; }
};

// Is it the turn of this allocation to fail?
inline bool fails() noexcept {
    ptrdiff_t left = until_failure.load();
    while (left >= 0) {
        const ptrdiff_t next = left > 0 ? left - 1 : stays_out ? 0 : -1;
        if (!until_failure.compare_exchange_weak(left, next)) continue;
        if (left == 0) ++failures_seen;
        return left == 0;
    }
    return false;
}

inline void* counted(size_t size, size_t alignment) noexcept {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (fails()) return nullptr;
    if (size == 0) size = 1;
    return alignment <= alignof(std::max_align_t)
               ? std::malloc(size)
               : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

inline void* counted_or_throw(size_t size, size_t alignment) {
    if (void* const memory = counted(size, alignment)) return memory;
    throw std::bad_alloc();
}

}  // namespace vartml::test

#if VARTML_COUNTS_ALLOCATIONS
void* operator new(size_t size) {
    return vartml::test::counted_or_throw(size, 0);
}
void* operator new(size_t size, std::align_val_t alignment) {
    return vartml::test::counted_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
    return vartml::test::counted(size, 0);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
    std::free(memory);
}
#endif
