// SPDX-License-Identifier: Apache-2.0
// UltraFace: scores of background and face [1,N,2], and boxes [1,N,4]: corners in 0 to 1 where the
// model decodes them, as published; with the role `offsets`, or where the graph makes them with
// nothing but a product, relative to priors, cut to the input.
#include "lib/vision/anchored.h"

namespace vartml::vision {

namespace {

constexpr Column columns[] = {{"scores", 2}, {"boxes", 4}};

Result<AnchoredForm> find_form(const HeadRequest& request) {
    const PriorLevel published[] = {
        {8, {10, 16, 24}}, {16, {32, 48}}, {32, {64, 96}}, {64, {128, 192, 256}}};
    auto priors = grid_priors(request, published);
    if (!priors) return std::move(priors).error();
    const Rows all[] = {{0, priors->priors.size()}};
    auto parts = find_parts(request, columns, all, priors->origin);
    if (!parts) return std::move(parts).error();
    AnchoredForm form;
    const TensorInfo& boxes = request.outputs[parts->front().outputs[form.boxes]];
    const bool relative =
        role_of(request, boxes) == "offsets" || ends_in(request, boxes) == "product";
    if (!relative) take_box_order(form, request);
    form.priors = std::move(priors->priors);
    cut_to_input(form.priors, request);
    form.parts = std::move(*parts);
    form.first_class = 1;
    return form;
}

}  // namespace

bool fits_ultraface(const HeadRequest& request) {
    return fits_anchored(request, find_form);
}

Result<std::unique_ptr<Head>> create_ultraface(const HeadRequest& request) {
    return create_anchored(request, find_form);
}

}  // namespace vartml::vision
