// SPDX-License-Identifier: Apache-2.0
// The public face of Conversion.
#include <vartml/convert.h>

#include <utility>

#include "lib/tensor/convert.h"

namespace vartml {

struct TensorConversion::State {
    Conversion conversion;
};

TensorConversion::TensorConversion(std::unique_ptr<const State> state) : state_(std::move(state)) {}
TensorConversion::TensorConversion(TensorConversion&&) noexcept = default;
TensorConversion& TensorConversion::operator=(TensorConversion&&) noexcept = default;
TensorConversion::~TensorConversion() = default;

Result<TensorConversion> TensorConversion::create(const TensorView& src, const TensorView& dst) {
    auto conversion = Conversion::create(src, dst);
    if (!conversion) return std::move(conversion).error();
    return TensorConversion(std::make_unique<const State>(State{*std::move(conversion)}));
}

void TensorConversion::run(const void* src, void* dst) const {
    state_->conversion.run(src, dst);
}

}  // namespace vartml
