// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/softmax_step.h"

#include "kernels/ops/softmax.h"
#include "lib/device/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

class SoftmaxStep final : public Step {
public:
    SoftmaxStep(View src, View dst, int64_t rows, int64_t count)
        : src_(std::move(src)), dst_(std::move(dst)), rows_(rows), count_(count) {}

    Extent extent() const override { return {rows_, rows_ * (count_ + 20)}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        kernels::softmax_rows(reinterpret_cast<const float*>(address(bases, src_)) + first * count_,
                              reinterpret_cast<float*>(address(bases, dst_)) + first * count_,
                              static_cast<size_t>(last - first), static_cast<size_t>(count_));
    }

    std::string describe() const override {
        return "Softmax rows " + text(src_) + " -> " + text(dst_);
    }

private:
    View src_, dst_;
    int64_t rows_, count_;
};

}  // namespace

void emit_softmax(Lowering& lowering, const graph::Node& node, const View& src, const View& dst,
                  int64_t rows, int64_t count) {
    lowering.emit(std::make_unique<SoftmaxStep>(src, dst, rows, count), node.name, {&src, &dst});
}

}  // namespace vartml::softnpu
