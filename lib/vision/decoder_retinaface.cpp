// SPDX-License-Identifier: Apache-2.0
// RetinaFace: scores of background and face [1,N,2], boxes [1,N,4] and five landmarks [1,N,10]
// relative to priors of 16 to 512 pixels on the strides 8, 16, 32.
#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr Column columns[] = {{"scores", 2}, {"boxes", 4}, {"landmarks", 10}};

Result<AnchoredForm> find_form(const HeadRequest& request) {
    const PriorLevel published[] = {{8, {16, 32}}, {16, {64, 128}}, {32, {256, 512}}};
    auto priors = grid_priors(request, published);
    if (!priors) return std::move(priors).error();
    auto parts = find_parts(request, columns, priors->levels, priors->origin);
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = std::move(priors->priors);
    form.parts = std::move(*parts);
    form.landmarks = 2;
    form.first_class = 1;
    form.landmark_count = 5;
    return form;
}

}  // namespace

bool fits_retinaface(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

Result<std::unique_ptr<Head>> create_retinaface(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
