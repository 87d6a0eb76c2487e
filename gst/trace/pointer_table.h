// SPDX-License-Identifier: Apache-2.0
// What is known of an object, by its address: found without a lock, from any hook.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace vartml::gst::trace {

// An `Entry` is default-constructed and has reset(), which makes it like new. Entries stay in
// memory as long as the table: who looks one up while it is removed sees another object's values,
// never freed memory.
// Thread-safety: all may be called concurrently. The mutex is a leaf.
template <typename Entry>
class PointerTable {
public:
    ~PointerTable() {
        for (std::atomic<Node*>& head : heads_) {
            for (Node* n = head.load(); n;) delete std::exchange(n, n->next);
        }
    }

    Entry* find(const void* key) const {
        for (Node* n = heads_[slot(key)].load(std::memory_order_acquire); n; n = n->next)
            if (n->key.load(std::memory_order_acquire) == key) return &n->entry;
        return nullptr;
    }
    // The entry of the object, new where there is none.
    Entry* add(const void* key) {
        const std::lock_guard lock(mutex_);
        if (Entry* const known = find(key)) return known;
        std::atomic<Node*>& head = heads_[slot(key)];
        for (Node* n = head.load(std::memory_order_relaxed); n; n = n->next) {
            if (n->key.load(std::memory_order_relaxed)) continue;
            n->entry.reset();
            n->key.store(key, std::memory_order_release);
            return &n->entry;
        }
        Node* const made = new Node;
        made->key.store(key, std::memory_order_relaxed);
        made->next = head.load(std::memory_order_relaxed);
        head.store(made, std::memory_order_release);
        return &made->entry;
    }
    void remove(const void* key) {
        if (!find(key)) return;
        const std::lock_guard lock(mutex_);
        for (Node* n = heads_[slot(key)].load(std::memory_order_relaxed); n; n = n->next)
            if (n->key.load(std::memory_order_relaxed) == key)
                n->key.store(nullptr, std::memory_order_release);
    }

private:
    struct Node {
        std::atomic<const void*> key{nullptr};
        Node* next = nullptr;  // immutable once it is in the list
        Entry entry;
    };
    static size_t slot(const void* key) {
        const auto address = reinterpret_cast<uintptr_t>(key);
        return ((address >> 4) ^ (address >> 14)) % num_slots;
    }
    static constexpr size_t num_slots = 1024;
    std::array<std::atomic<Node*>, num_slots> heads_{};
    std::mutex mutex_;
};

}  // namespace vartml::gst::trace
