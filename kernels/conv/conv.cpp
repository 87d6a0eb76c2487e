// SPDX-License-Identifier: Apache-2.0
// Which way a convolution goes.
#include "kernels/conv/conv.h"

#include "kernels/conv/direct.h"
#include "kernels/conv/padded.h"
#include "kernels/conv/winograd.h"

namespace vartml::kernels {

ConvMethod conv_method(const ConvShape& shape) {
    return prefers_winograd(shape) ? ConvMethod::winograd : ConvMethod::direct;
}

const char* name_of(ConvMethod method) {
    return method == ConvMethod::winograd ? "winograd" : "direct";
}

size_t packed_conv_size(const ConvShape& shape) {
    return prefers_winograd(shape) ? packed_winograd_size(shape) : packed_direct_size(shape);
}

void pack_conv(const ConvShape& shape, const float* weights, const float* bias, float* packed) {
    if (prefers_winograd(shape)) return pack_winograd(shape, weights, bias, packed);
    pack_direct(shape, weights, bias, packed);
}

size_t conv_units(const ConvShape& shape) {
    return prefers_winograd(shape) ? winograd_groups(shape) : shape.out_height;
}

size_t conv_scratch_size(const ConvShape& shape) {
    if (prefers_winograd(shape)) return winograd_scratch_size(shape);
    return prefers_padded(shape) ? padded_scratch_size(shape) : 0;
}

void conv(const ConvShape& shape, const SrcPicture& src, const float* packed,
          const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
          float* scratch, size_t first, size_t last) {
    if (prefers_winograd(shape))
        return conv_winograd(shape, src, packed, epilogue, residual, dst, scratch, first, last);
    if (prefers_padded(shape))
        return conv_padded(shape, src, packed, epilogue, residual, dst, scratch, first, last);
    conv_direct(shape, src, packed, epilogue, residual, dst, first, last);
}

void conv(const ConvShape& shape, const Bf16Picture& src, const float* packed,
          const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst,
          float* scratch, size_t first, size_t last) {
    conv_padded(shape, src, packed, epilogue, residual, dst, scratch, first, last);
}

}  // namespace vartml::kernels
