// SPDX-License-Identifier: Apache-2.0
// Memory for constants made at load: aligned to cache lines, so that no vector load is split.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace vartml::softnpu {

template <typename T>
struct CacheLineAllocator {
    using value_type = T;
    static constexpr std::align_val_t alignment{64};
    CacheLineAllocator() = default;
    template <typename U>
    CacheLineAllocator(const CacheLineAllocator<U>&) {}
    T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
    void deallocate(T* p, size_t) { ::operator delete(p, alignment); }
    bool operator==(const CacheLineAllocator&) const = default;
};
using Bytes = std::vector<std::byte, CacheLineAllocator<std::byte>>;

}  // namespace vartml::softnpu
