// SPDX-License-Identifier: Apache-2.0
// Which way a convolution goes.
#include "kernels/conv/conv.h"

#include "kernels/conv/bf16_pairs.h"
#include "kernels/conv/code_pairs.h"
#include "kernels/conv/code_quads.h"
#include "kernels/conv/code_winograd.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/direct.h"
#include "kernels/conv/padded.h"
#include "kernels/conv/winograd.h"

namespace vartml::kernels {

namespace {

bool is_winograd(ConvMethod method) {
    return method == ConvMethod::winograd4 || method == ConvMethod::winograd6;
}

// Whether the columns under some outputs have room in the first-level cache, as words.
bool joins_taps(const ConvShape& s) {
    return s.kernel_height <= 8 && (s.kernel_width - 1) * s.dilation_width < 64;
}

}  // namespace

ConvMethod conv_method(const ConvShape& shape) {
    if (const size_t side = winograd_side(shape); side > 0)
        return side == 6 ? ConvMethod::winograd6 : ConvMethod::winograd4;
    if (shape.factors == Element::f32) return ConvMethod::direct;
    // Filters of one channel each have no sums over channels, which is where pairs of bf16 are.
    // Those of codes are made of kernel columns.
    const bool is_bf16 = shape.factors == Element::bf16;
    if (shape.depthwise && (is_bf16 || !joins_taps(shape))) return ConvMethod::direct;
    if (is_bf16) return ConvMethod::bf16_pairs;
    if (has_code_quads()) return ConvMethod::code_quads;
    return prefers_code_winograd(shape) ? ConvMethod::code_winograd : ConvMethod::code_pairs;
}

bool has_code_products() {
    return has_code_quads() || has_code_pairs();
}

const char* name_of(ConvMethod method) {
    static constexpr const char* names[] = {"direct", "winograd 4x4", "winograd 6x6",  "bf16",
                                            "int8",   "int16",        "int16 winograd"};
    return names[static_cast<size_t>(method)];
}

size_t packed_conv_size(const ConvShape& shape) {
    switch (conv_method(shape)) {
        case ConvMethod::winograd4:
        case ConvMethod::winograd6:
            return packed_winograd_size(shape) * sizeof(float);
        case ConvMethod::bf16_pairs:
            return packed_pairs_size(shape);
        case ConvMethod::code_quads:
            return packed_quads_size(shape);
        case ConvMethod::code_pairs:
            return packed_code_pairs_size(shape);
        case ConvMethod::code_winograd:
            return packed_code_winograd_size(shape);
        case ConvMethod::direct:
            break;
    }
    return (shape.depthwise ? packed_depthwise_size(shape) : packed_direct_size(shape)) *
           sizeof(float);
}

void pack_conv(const ConvShape& shape, const float* weights, const float* bias, std::byte* packed) {
    auto* const floats = reinterpret_cast<float*>(packed);
    switch (conv_method(shape)) {
        case ConvMethod::winograd4:
        case ConvMethod::winograd6:
            return pack_winograd(shape, weights, bias, floats);
        case ConvMethod::bf16_pairs:
            return pack_pairs(shape, weights, bias, packed);
        case ConvMethod::code_quads:
            return pack_quads(shape, weights, bias, packed);
        case ConvMethod::code_pairs:
            return pack_code_pairs(shape, weights, bias, packed);
        case ConvMethod::code_winograd:
            return pack_code_winograd(shape, weights, bias, packed);
        case ConvMethod::direct:
            return shape.depthwise ? pack_depthwise(shape, weights, bias, floats)
                                   : pack_direct(shape, weights, bias, floats);
    }
}

size_t conv_units(const ConvShape& shape) {
    const ConvMethod method = conv_method(shape);
    if (is_winograd(method)) return winograd_groups(shape);
    return method == ConvMethod::code_winograd ? code_winograd_groups(shape) : shape.out_height;
}

size_t conv_scratch_size(const ConvShape& shape) {
    const ConvMethod method = conv_method(shape);
    if (is_winograd(method)) return winograd_scratch_size(shape) * sizeof(float);
    if (method == ConvMethod::code_winograd) return code_winograd_scratch_size(shape);
    return prefers_padded(shape) ? padded_scratch_size(shape) : 0;
}

void conv(const ConvShape& shape, const AnySrcPicture& src, const std::byte* packed,
          const Epilogue& epilogue, const AnySrcPicture& residual, const AnyDstPicture& dst,
          std::byte* scratch, size_t first, size_t last) {
    const auto* const floats = reinterpret_cast<const float*>(packed);
    const ConvMethod method = conv_method(shape);
    if (is_winograd(method))
        conv_winograd(shape, src, floats, epilogue, residual, dst,
                      reinterpret_cast<float*>(scratch), first, last);
    else if (method == ConvMethod::code_winograd)
        conv_code_winograd(shape, {static_cast<const uint8_t*>(src.data), src.row, src.pixel},
                           packed, epilogue, dst, scratch, first, last);
    else if (prefers_padded(shape))
        conv_padded(shape, src, packed, epilogue, residual, dst, scratch, first, last);
    else if (method == ConvMethod::bf16_pairs)
        conv_pairs(shape, {static_cast<const bf16*>(src.data), src.row, src.pixel}, packed,
                   epilogue, residual, dst, first, last);
    else if (method == ConvMethod::code_quads)
        conv_quads(shape, {static_cast<const uint8_t*>(src.data), src.row, src.pixel}, packed,
                   epilogue, dst, first, last);
    else if (shape.depthwise)
        conv_depthwise(shape, src, shape.source, floats, epilogue, residual, dst, first, last);
    else
        conv_direct(shape, {static_cast<const float*>(src.data), src.row, src.pixel}, floats,
                    epilogue, residual, dst, first, last);
}

}  // namespace vartml::kernels
