// SPDX-License-Identifier: Apache-2.0
// A lowered program: buffers with lifetimes and the steps that run over them in order.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vartml/result.h>

#include "lib/device/softnpu/bytes.h"
#include "lib/device/softnpu/view.h"

namespace vartml::softnpu {

enum class Place : uint8_t { arena, input, output, constant };

struct Buffer {
    Place place = Place::arena;
    size_t size_bytes = 0;
    int32_t index = 0;                // input, output: which one
    const std::byte* data = nullptr;  // constant: where it lies
    int32_t first = -1, last = -1;    // arena: steps that use it
    size_t offset = 0;                // arena: set by the memory plan
};

// Base address of each buffer in one run.
using Bases = std::span<std::byte* const>;

inline std::byte* address(const Bases& bases, const View& view) {
    return bases[static_cast<size_t>(view.buffer)] +
           view.offset * static_cast<int64_t>(size_bytes(view.type));
}

// One piece of work. run() is called on the device's thread, with its OpenMP team; it cannot fail:
// what could is checked when the step is made.
class Step {
public:
    virtual ~Step() = default;
    virtual void run(const Bases& bases) = 0;
    virtual std::string describe() const = 0;

    std::string name;              // the node it came from
    std::vector<int32_t> buffers;  // that it touches
};

struct Plan {
    std::vector<Buffer> buffers;
    std::vector<std::unique_ptr<Step>> steps;
    std::vector<std::shared_ptr<const Bytes>> owners;  // constants made at load
    size_t private_bytes = 0;                          // of these
    size_t scratch_bytes = 0;                          // largest scratchpad of a step
    int32_t scratch_buffer = -1;
    size_t arena_bytes = 0;
    unsigned border_conversions = 0;
};

}  // namespace vartml::softnpu
