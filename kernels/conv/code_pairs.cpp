// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/code_pairs.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// after foreach_target.h
#include <hwy/highway.h>

#include "kernels/conv/code_pairs-inl.h"
#include "kernels/conv/code_pairs.h"
#include "kernels/conv/depthwise_words-inl.h"
#include "kernels/conv/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels::HWY_NAMESPACE {
namespace {

#if VARTML_HAS_CODE_PAIRS

bool has_pairs() {
    return true;
}
size_t packed_pairs(const ConvShape& s) {
    return s.depthwise ? packed_depthwise_size<CodePairs>(s) : packed_size<CodePairs>(s);
}
void pack_all(const ConvShape& s, const float* weights, const float* bias, std::byte* packed) {
    if (s.depthwise) return pack_depthwise<CodePairs>(s, weights, bias, packed);
    pack<CodePairs>(s, weights, bias, packed);
}
void rows(const ConvShape& s, const PictureOf<const int16_t>& src, const std::byte* packed,
          const Epilogue& epilogue, const AnyDstPicture& dst, size_t first, size_t last) {
    if (s.depthwise) return depthwise_rows<CodePairs>(s, src, packed, epilogue, dst, first, last);
    conv_rows<CodePairs>(s, src, packed, epilogue, {nullptr, 0, 0}, dst, first, last);
}

#else  // has_code_pairs() is false: never called

bool has_pairs() {
    return false;
}
size_t packed_pairs(const ConvShape&) {
    return 0;
}
void pack_all(const ConvShape&, const float*, const float*, std::byte*) {}
void rows(const ConvShape&, const PictureOf<const int16_t>&, const std::byte*, const Epilogue&,
          const AnyDstPicture&, size_t, size_t) {}

#endif

}  // namespace
}  // namespace vartml::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {
HWY_EXPORT(has_pairs);
HWY_EXPORT(packed_pairs);
HWY_EXPORT(pack_all);
HWY_EXPORT(rows);
}  // namespace

bool has_code_pairs() {
    return HWY_DYNAMIC_DISPATCH(has_pairs)();
}

size_t packed_code_pairs_size(const ConvShape& shape) {
    return HWY_DYNAMIC_DISPATCH(packed_pairs)(shape);
}

void pack_code_pairs(const ConvShape& shape, const float* weights, const float* bias,
                     std::byte* packed) {
    HWY_DYNAMIC_DISPATCH(pack_all)(shape, weights, bias, packed);
}

void conv_code_pairs(const ConvShape& shape, const PictureOf<const int16_t>& src,
                     const std::byte* packed, const Epilogue& epilogue, const AnyDstPicture& dst,
                     size_t first, size_t last) {
    HWY_DYNAMIC_DISPATCH(rows)(shape, src, packed, epilogue, dst, first, last);
}

}  // namespace vartml::kernels
#endif  // HWY_ONCE
