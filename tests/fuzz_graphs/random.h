// SPDX-License-Identifier: Apache-2.0
// Random choices that are the same with every standard library.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace vartml::fuzz_graphs {

class Random {
public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    // From low to high, both included.
    int64_t between(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
    }
    size_t index(size_t size) { return static_cast<size_t>(engine_() % size); }
    bool chance(double probability) { return unit() < probability; }
    double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
    double real(double low, double high) { return low + (high - low) * unit(); }
    template <typename T>
    T pick(const std::vector<T>& values) {
        return values[index(values.size())];
    }
    template <typename T>
    void shuffle(std::vector<T>& values) {
        for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[index(i)]);
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace vartml::fuzz_graphs
