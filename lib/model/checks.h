// SPDX-License-Identifier: Apache-2.0
// Collects the first fault found while walking over a file that nobody vouches for.
#pragma once
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::artifact {

// After the first failure everything may be called on, but nothing counts any more: a walk need not
// stop at once, it must only not index by what it has not checked.
class Checks {
public:
    // `where` starts every sentence: "model.rai", "model.rai: program 'vaiml_par_0/0/program.vnp'".
    explicit Checks(std::string where) : where_(std::move(where)) {}

    bool ok() const { return !error_; }
    Error error() const { return *error_; }
    // Records the sentence unless an earlier one is there; returns false.
    bool fail(std::string_view sentence, ErrorCode code = ErrorCode::bad_model);
    // Text of at most 4096 bytes without control characters; "" where it is absent or refused.
    std::string text(const flatbuffers::String* string, std::string_view what);

private:
    std::string where_;
    std::optional<Error> error_;
};

// FlatBuffers' verifier does not check that elements of eight bytes are aligned (found by fuzzing),
// so elements are copied as bytes.
template <typename T>
std::vector<T> to_vector(const flatbuffers::Vector<T>* vector) {
    std::vector<T> out(vector ? vector->size() : 0);
    if (!out.empty()) std::memcpy(out.data(), vector->Data(), out.size() * sizeof(T));
    return out;
}

inline size_t size_of(const auto* vector) {
    return vector ? vector->size() : 0;
}

// "[1,3,640,640]"
std::string to_text(const std::vector<uint32_t>& shape);
std::string quoted(std::string_view name);

// Bytes of a dense tensor; nothing when they exceed 2^40.
std::optional<uint64_t> checked_size_bytes(DataType type, const std::vector<uint32_t>& shape);
// Whether the strides are those of a dense row-major tensor.
bool is_dense(const std::vector<uint32_t>& shape, const std::vector<uint32_t>& strides);

// Whether a JSON file that nobody vouches for may be parsed.

inline constexpr size_t max_json_bytes = 16u << 20;

// "" or what is wrong, for a sentence: "has key 'name' twice in one object". Refused are more than
// max_json_bytes, more than 64 levels, keys that occur twice in an object, text that is no UTF-8,
// numbers outside of 64-bit integers and finite doubles, and what is no JSON.
std::string json_fault(std::string_view text);

}  // namespace vartml::artifact
