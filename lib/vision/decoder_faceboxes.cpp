// SPDX-License-Identifier: Apache-2.0
// FaceBoxes: scores of background and face [1,N,2] and boxes [1,N,4] relative to priors of 32 to
// 512 pixels on the strides 32, 64, 128; the small ones stand densely: 16 and 4 to a cell.
#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr Column columns[] = {{"scores", 2}, {"boxes", 4}};

Result<AnchoredForm> find_form(const HeadRequest& request) {
    // given: PriorBox of FaceBoxes.PyTorch, which FaceBoxesV2 and SeetaFace 6 share.
    const PriorLevel published[] = {{32, {32, 64, 128}, {4, 2, 1}}, {64, {256}}, {128, {512}}};
    auto priors = grid_priors(request, published);
    if (!priors) return std::move(priors).error();
    auto parts = find_parts(request, columns, priors->levels, priors->origin);
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    form.priors = std::move(priors->priors);
    form.parts = std::move(*parts);
    form.first_class = 1;
    return form;
}

}  // namespace

bool fits_faceboxes(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

Result<std::unique_ptr<Head>> create_faceboxes(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
