// SPDX-License-Identifier: Apache-2.0
// Packing of weights.
#include "lib/device/softnpu/packed_weights.h"

#include <mutex>
#include <unordered_map>

#include "lib/device/softnpu/onednn.h"

namespace vartml::softnpu {
namespace {

struct Entry {
    std::string layout;
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

std::shared_ptr<const Bytes> find(const std::byte* source, const std::string& layout) {
    const std::lock_guard guard(lock());
    auto [entry, end] = entries().equal_range(source);
    while (entry != end) {
        auto bytes = entry->second.bytes.lock();
        if (bytes && entry->second.layout == layout) return bytes;
        entry = bytes ? std::next(entry) : entries().erase(entry);
    }
    return nullptr;
}

std::string name_of(dnnl::memory::desc desc) {
    const std::vector<uint8_t> blob = desc.get_blob();
    return {blob.begin(), blob.end()};
}

}  // namespace

Packed pack(const std::byte* source, const std::string& layout, bool shareable,
            const std::function<Bytes()>& make) {
    if (shareable) {
        if (auto bytes = find(source, layout)) return {std::move(bytes), false};
    }
    auto bytes = std::make_shared<const Bytes>(make());
    if (shareable) {
        const std::lock_guard guard(lock());
        entries().insert({source, {layout, bytes}});
    }
    return {std::move(bytes), true};
}

Packed pack(const std::byte* source, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
            bool shareable) {
    return pack(source, name_of(from) + " to " + name_of(to), shareable, [&] {
        Bytes bytes(to.get_size());
        // Reorders only read their source.
        dnnl::memory plain(from, cpu_engine(), const_cast<std::byte*>(source));
        dnnl::memory packed(to, cpu_engine(), bytes.data());
        dnnl::stream stream(cpu_engine());
        dnnl::reorder(plain, packed).execute(stream, plain, packed);
        stream.wait();
        return bytes;
    });
}

}  // namespace vartml::softnpu
