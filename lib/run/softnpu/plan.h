// SPDX-License-Identifier: Apache-2.0
// A lowered program: buffers with lifetimes and the steps that run over them in order.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "kernels/types.h"
#include "lib/graph/kernel.h"
#include "lib/run/exec/shared_run.h"
#include "lib/run/softnpu/view.h"

namespace vartml::softnpu {

// Memory for constants made at load: aligned to cache lines, so that no vector load is split.

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

// The types that the elements of a float view may have, and the kernels' names of them.

// Calls f with a value of the element type; false where the type is no float of at most 32 bits.
template <typename F>
bool with_float(DataType type, F&& f) {
    switch (type) {
        case DataType::float32:
            f(float{});
            return true;
        case DataType::bf16:
            f(kernels::bf16{});
            return true;
        case DataType::fp16:
            f(kernels::fp16{});
            return true;
        default:
            return false;
    }
}

inline bool is_float(DataType type) {
    return with_float(type, [](auto) {});
}

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

// How a step can be shared among threads: into at most `units` pieces; `cost_ns` is about what one
// thread needs for all of them, 0 where that is not known.
struct Extent {
    int64_t units = 1, cost_ns = 0;
};

// A row of numbers that jumps to the next costs no less than one of so many.
inline constexpr int64_t least_row_elements = 4;

// How many items an extent is worth where `threads` may take part: none shorter than what handing
// it over costs, and for long steps several per thread, so that one slow thread does not hold up
// the others.
uint32_t items_for(const Extent& extent, unsigned threads);

struct RunState;

// One piece of work, in items that may run in any order on any threads. run() cannot fail: what
// could is checked when the step is made.
class Step {
public:
    virtual ~Step() = default;
    virtual void run(const Bases& bases, size_t item) noexcept = 0;
    virtual std::string describe() const = 0;
    virtual Extent extent() const { return {}; }
    // Called once, before the first run.
    virtual void share_among(unsigned threads) { set_items(items_for(extent(), threads)); }
    // The same work for a run beside this step's own; nullptr where one step serves both, because
    // run() changes nothing in it.
    virtual std::shared_ptr<Step> for_another_run(RunState& state) const {
        (void)state;
        return nullptr;
    }
    uint32_t items() const { return items_; }

    std::string name;  // what it is about, for people: a node or a tensor
    // What it is measured as: a node of the program, or "PARTITION/in/TENSOR", "PARTITION/out/…"
    // at a border; the name of an operator in the stats descriptor. Steps of one follow each other.
    std::string op;
    std::vector<int32_t> buffers;  // that it touches

protected:
    Step() = default;
    Step(const Step&) = default;
    Step& operator=(const Step&) = delete;
    void set_items(uint32_t items) { items_ = items; }
    // What `item` covers of the extent's units: [first, second).
    std::pair<int64_t, int64_t> part(size_t item) const {
        return device::part_of(extent().units, static_cast<int64_t>(item), items_);
    }

private:
    uint32_t items_ = 1;
};

// How many of `threads` should share runs of so many frames: one where the others would save less
// than waking them costs.
unsigned threads_worth(std::span<const std::shared_ptr<Step>> steps, uint32_t frames,
                       unsigned threads);

// What is known only while a run goes on.
struct RunState {
    std::vector<cpu::Shape> shapes;  // of data-dependent values
    // The first step that rejected its data; general steps behind it do nothing.
    std::optional<Error> error;
    // What oneDNN refused, by any thread of the run: it takes memory of its own. 0: nothing.
    std::atomic<int> onednn_status{0};
    std::vector<int32_t> input_shapes, output_shapes;  // of the border: index into shapes, or -1
};

struct Plan {
    std::unique_ptr<RunState> state = std::make_unique<RunState>();
    std::vector<Buffer> buffers;
    std::vector<std::shared_ptr<Step>> steps;
    std::vector<std::shared_ptr<const void>> owners;  // of constants made at load
    size_t private_bytes = 0;                         // of these, in memory of this process
    size_t scratch_bytes = 0;                         // largest scratchpad of a step
    int32_t scratch_buffer = -1;
    size_t arena_bytes = 0;
    unsigned border_conversions = 0;

    // For a run that goes on at the same time, in an arena of its own. What runs do not change is
    // shared.
    Plan for_another_run() const;
};

}  // namespace vartml::softnpu
