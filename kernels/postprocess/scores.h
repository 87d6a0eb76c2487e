// SPDX-License-Identifier: Apache-2.0
// Finds the positions of a detection head that can become boxes, in the type that the scores are
// stored in.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

enum class StoredType : uint8_t { f32, bf16, f16, i8, u8, i16, u16 };

constexpr size_t size_bytes(StoredType type) {
    return type == StoredType::f32 ? 4 : type == StoredType::i8 || type == StoredType::u8 ? 1 : 2;
}

// How stored values become real ones: integers as (q - zero_point) * scale in float, floats as they
// are.
struct Stored {
    StoredType type = StoredType::f32;
    float scale = 1;  // finite, > 0
    int32_t zero_point = 0;
};

// The real value of one element.
float load(const Stored& stored, const void* element);

// Scores of `classes` classes at `positions` places. One class: a plain list, such as objectness.
struct Scores {
    const void* data = nullptr;
    Stored stored;
    size_t positions = 0, classes = 1;
    size_t position_stride_bytes = 0, class_stride_bytes = 0;
};

// Writes, ascending, the positions that have a score of at least `threshold`, or one that is NaN or
// infinite (so that the caller sees and counts them), to `found`, which has room for all positions.
// Returns their number. Requires classes >= 1 and a threshold that is not NaN. Fast where positions
// or classes lie side by side. Every instruction set gives the list of positions_above_ref.
size_t positions_above(const Scores& scores, float threshold, uint32_t* found);
size_t positions_above_ref(const Scores& scores, float threshold, uint32_t* found);

// The greatest score at a position, the first of equal ones; not `finite` when any of them is NaN
// or infinite.
struct BestClass {
    int32_t class_id = 0;
    float score = 0;
    bool finite = true;
};
BestClass best_class(const Scores& scores, size_t position);

// Least stored integer whose real value is at least `threshold`; one past the type's greatest where
// there is none.
int32_t least_above(const Stored& stored, float threshold);

}  // namespace vartml::kernels
