// SPDX-License-Identifier: Apache-2.0
// Between the views of a tensor: layout, padding and element type in one pass.
#pragma once
#include <memory>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml {

/// One prepared conversion, such as from the HW view of an output to its CPU view. Rounding is to
/// nearest even, integers saturate. Thread-safety: immutable; run() may be called concurrently and
/// allocates nothing.
class TensorConversion {
public:
    /// `src` and `dst` are views of the same tensor. Padding of `dst` is written as zero.
    /// Errors: invalid_argument (not views of one tensor), unsupported (a pair of layouts or
    /// types); names both views.
    static Result<TensorConversion> create(const TensorView& src, const TensorView& dst);

    /// Reads size_bytes of `src`, writes size_bytes of `dst`. No overlap; nothing is demanded of
    /// alignment. Cannot fail.
    void run(const void* src, void* dst) const;

    TensorConversion(TensorConversion&&) noexcept;
    TensorConversion& operator=(TensorConversion&&) noexcept;
    ~TensorConversion();

private:
    struct State;
    explicit TensorConversion(std::unique_ptr<const State> state);
    std::unique_ptr<const State> state_;
};

}  // namespace vartml
