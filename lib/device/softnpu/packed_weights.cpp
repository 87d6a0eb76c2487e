// SPDX-License-Identifier: Apache-2.0
// Packing of weights.
#include "lib/device/softnpu/packed_weights.h"

#include <mutex>
#include <unordered_map>

#include "lib/device/softnpu/onednn.h"

namespace vartml::softnpu {
namespace {

struct Entry {
    dnnl::memory::desc from, to;
    std::weak_ptr<const Bytes> bytes;
};

// Guards `entries`; a leaf lock, not held while packing.
std::mutex& lock() {
    static std::mutex mutex;
    return mutex;
}

std::unordered_multimap<const std::byte*, Entry>& entries() {
    static std::unordered_multimap<const std::byte*, Entry> map;
    return map;
}

std::shared_ptr<const Bytes> find(const std::byte* source, const dnnl::memory::desc& from,
                                  const dnnl::memory::desc& to) {
    const std::lock_guard guard(lock());
    auto [entry, end] = entries().equal_range(source);
    while (entry != end) {
        auto bytes = entry->second.bytes.lock();
        if (bytes && entry->second.from == from && entry->second.to == to) return bytes;
        entry = bytes ? std::next(entry) : entries().erase(entry);
    }
    return nullptr;
}

}  // namespace

Packed pack(const std::byte* source, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
            bool shareable) {
    if (shareable) {
        if (auto bytes = find(source, from, to)) return {std::move(bytes), false};
    }
    auto bytes = std::make_shared<Bytes>(to.get_size());
    // Reorders only read their source.
    dnnl::memory plain(from, cpu_engine(), const_cast<std::byte*>(source));
    dnnl::memory packed(to, cpu_engine(), bytes->data());
    dnnl::stream stream(cpu_engine());
    dnnl::reorder(plain, packed).execute(stream, plain, packed);
    stream.wait();
    if (shareable) {
        const std::lock_guard guard(lock());
        entries().insert({source, {from, to, bytes}});
    }
    return {std::move(bytes), true};
}

}  // namespace vartml::softnpu
