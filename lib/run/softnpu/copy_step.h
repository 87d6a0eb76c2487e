// SPDX-License-Identifier: Apache-2.0
// Moves elements between views: layout changes, changes between float types, concatenation,
// padding.
#pragma once
#include <string>
#include <vector>

#include "lib/run/softnpu/loops.h"
#include "lib/run/softnpu/plan.h"

namespace vartml::softnpu {

// The loops of a copy: `columns` is contiguous in the destination where any dimension is, `rows` is
// the loop beside it that suits the source best.
struct CopyLoops {
    std::vector<Loop> outer;
    Loop rows, columns;
    int64_t elements = 1;
};
CopyLoops make_copy_loops(const View& dst, const View& src);

// Whether elements can be copied: types equal, or two of fp32, bf16 and fp16.
bool can_copy(DataType from, DataType to);

// Copies all elements; the types are such that can_copy() holds.
class CopyStep final : public Step {
public:
    CopyStep(View src, View dst);
    void run(const Bases& bases, size_t item) noexcept override;
    Extent extent() const override;
    std::string describe() const override;

private:
    View src_, dst_;
    CopyLoops loops_;
};

// Writes zeros, or the same byte everywhere.
class ZeroStep final : public Step {
public:
    explicit ZeroStep(View dst, uint8_t byte = 0);
    void run(const Bases& bases, size_t item) noexcept override;
    Extent extent() const override;
    std::string describe() const override;

private:
    View dst_;
    uint64_t element_;
    CopyLoops loops_;
};

// The same copy at load time; the views' buffers do not matter.
void copy_now(const View& src, const std::byte* src_base, const View& dst, std::byte* dst_base);

// "fp32[1,16,208,208]", for reports.
std::string text(const View& view);

}  // namespace vartml::softnpu
