// SPDX-License-Identifier: Apache-2.0
// Nested loops over the elements of several views of equal dims.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "lib/run/softnpu/view.h"

namespace vartml::softnpu {

inline constexpr size_t max_operands = 3;
using Offsets = std::array<int64_t, max_operands>;  // elements, per operand

struct Loop {
    int64_t size = 1;
    Offsets strides{};
};

// One loop per dimension, outermost first by the strides of the first view (the destination);
// neighbours that all views can walk as one are merged, dimensions of size 1 left out.
std::vector<Loop> make_loops(std::initializer_list<const View*> views);

// Takes the loop at `index` out of the nest; one of size 1 where the nest is empty.
Loop take_loop(std::vector<Loop>& loops, size_t index);

int64_t iterations(const std::vector<Loop>& loops);

// A position in a nest of loops, advanced by one without divisions.
class Odometer {
public:
    Odometer(const std::vector<Loop>& loops, int64_t index);
    const Offsets& offsets() const { return offsets_; }
    void next();

private:
    static constexpr size_t max_loops = 16;
    const std::vector<Loop>& loops_;
    std::array<int64_t, max_loops> at_{};
    Offsets offsets_{};
};

}  // namespace vartml::softnpu
