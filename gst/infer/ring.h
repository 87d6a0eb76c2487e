// SPDX-License-Identifier: Apache-2.0
// A queue in one block of memory: no allocation unless it must grow.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace vartml::gst::infer {

template <typename T>
class Ring {
public:
    bool empty() const { return count_ == 0; }
    size_t size() const { return count_; }
    T& front() { return slots_[first_]; }
    T& operator[](size_t i) { return slots_[(first_ + i) % slots_.size()]; }

    void push(T value) {
        if (count_ == slots_.size()) grow();
        slots_[(first_ + count_++) % slots_.size()] = std::move(value);
    }
    T pop() {
        T value = std::move(slots_[first_]);
        slots_[first_] = T{};
        first_ = (first_ + 1) % slots_.size();
        --count_;
        return value;
    }
    // Takes out the first element that equals `value`; the others keep their order. False: none
    // does.
    bool remove(const T& value) {
        bool found = false;
        for (size_t n = count_; n > 0; --n) {
            T one = pop();
            if (!found && one == value) {
                found = true;
            } else {
                push(std::move(one));
            }
        }
        return found;
    }

private:
    void grow() {
        std::vector<T> larger(slots_.empty() ? 16 : 2 * slots_.size());
        for (size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
        slots_ = std::move(larger);
        first_ = 0;
    }

    std::vector<T> slots_;
    size_t first_ = 0, count_ = 0;
};

}  // namespace vartml::gst::infer
