// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout/interleave.h"

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/layout/interleave.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace vartml::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block is handled as quads, lanes of 32 bits: one 4-byte word, two of 2 bytes or four of 1 byte
// each. The lanes of a vector are consecutive pixels, so that joining and splitting words never
// crosses lanes. D is a tag of such quads.
constexpr size_t run_bytes = 16;  // four quads
template <class T>
constexpr size_t words_of_quad = 4 / sizeof(T);

template <class T>
struct Planes {
    const std::byte* src;
    size_t stride_bytes, count;  // of planes that exist
    const T* at(size_t c, size_t p) const {
        return reinterpret_cast<const T*>(src + c * stride_bytes) + p;
    }
};

template <class T>
struct MutablePlanes {
    std::byte* dst;
    size_t stride_bytes, count;
    T* at(size_t c, size_t p) const { return reinterpret_cast<T*>(dst + c * stride_bytes) + p; }
};

template <class D, class T>
HWY_INLINE hn::Vec<D> load_words(D d, const Planes<T>& planes, size_t c, size_t p) {
    if (c >= planes.count) return hn::Zero(d);
    if constexpr (sizeof(T) == 4)
        return hn::LoadU(d, planes.at(c, p));
    else
        return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), planes.at(c, p)));
}

// The quad whose first word is of plane `c`, of the pixels from `p`.
template <class D, class T>
HWY_INLINE hn::Vec<D> join(D d, const Planes<T>& planes, size_t c, size_t p) {
    hn::Vec<D> quad = load_words(d, planes, c, p);
    if constexpr (sizeof(T) == 2)
        quad = hn::Or(quad, hn::ShiftLeft<16>(load_words(d, planes, c + 1, p)));
    if constexpr (sizeof(T) == 1) {
        quad = hn::Or(quad, hn::ShiftLeft<8>(load_words(d, planes, c + 1, p)));
        quad = hn::Or(quad, hn::ShiftLeft<16>(load_words(d, planes, c + 2, p)));
        quad = hn::Or(quad, hn::ShiftLeft<24>(load_words(d, planes, c + 3, p)));
    }
    return quad;
}

template <class D, class T>
HWY_INLINE void store_words(D d, hn::Vec<D> v, const MutablePlanes<T>& planes, size_t c, size_t p) {
    if (c >= planes.count) return;
    if constexpr (sizeof(T) == 4) {
        hn::StoreU(v, d, planes.at(c, p));
    } else {
        const hn::Rebind<T, D> dt;
        hn::StoreU(hn::TruncateTo(dt, v), dt, planes.at(c, p));
    }
}

// Undoes join() for the planes that exist.
template <class D, class T>
HWY_INLINE void split(D d, hn::Vec<D> quad, const MutablePlanes<T>& planes, size_t c, size_t p) {
    store_words(d, quad, planes, c, p);
    if constexpr (sizeof(T) == 2) store_words(d, hn::ShiftRight<16>(quad), planes, c + 1, p);
    if constexpr (sizeof(T) == 1) {
        store_words(d, hn::ShiftRight<8>(quad), planes, c + 1, p);
        store_words(d, hn::ShiftRight<16>(quad), planes, c + 2, p);
        store_words(d, hn::ShiftRight<24>(quad), planes, c + 3, p);
    }
}

template <class D, class T>
HWY_INLINE void store_run(D d, const Planes<T>& planes, size_t c, size_t p, uint32_t* to) {
    constexpr size_t words = words_of_quad<T>;
    hn::StoreInterleaved4(join(d, planes, c, p), join(d, planes, c + words, p),
                          join(d, planes, c + 2 * words, p), join(d, planes, c + 3 * words, p), d,
                          to);
}

template <class D, class T>
HWY_INLINE void load_run(D d, const uint32_t* from, const MutablePlanes<T>& planes, size_t c,
                         size_t p) {
    constexpr size_t words = words_of_quad<T>;
    hn::Vec<D> q0, q1, q2, q3;
    hn::LoadInterleaved4(d, from, q0, q1, q2, q3);
    split(d, q0, planes, c, p);
    split(d, q1, planes, c + words, p);
    split(d, q2, planes, c + 2 * words, p);
    split(d, q3, planes, c + 3 * words, p);
}

// Whole vectors of pixels from pixel `p` on. Returns the first pixel that is left.
template <class D, class T>
size_t interleave(D d, const Planes<T>& planes, size_t p, size_t pixels, T* dst, size_t block) {
    const size_t lanes = hn::Lanes(d), bytes = block * sizeof(T);
    constexpr size_t words = words_of_quad<T>;
    auto* quads = reinterpret_cast<uint32_t*>(dst);
    if (bytes == 4) {
        for (; p + lanes <= pixels; p += lanes) hn::StoreU(join(d, planes, 0, p), d, quads + p);
    } else if (bytes == 8) {
        for (; p + lanes <= pixels; p += lanes)
            hn::StoreInterleaved2(join(d, planes, 0, p), join(d, planes, words, p), d,
                                  quads + 2 * p);
    } else if (bytes == run_bytes) {
        for (; p + lanes <= pixels; p += lanes) store_run(d, planes, 0, p, quads + 4 * p);
    } else if (bytes > run_bytes) {
        HWY_ALIGN uint32_t run[4 * hn::MaxLanes(d)];
        const size_t whole = block / (4 * words) * (4 * words);
        for (; p + lanes <= pixels; p += lanes) {
            T* to = dst + p * block;
            for (size_t c = 0; c < whole; c += 4 * words) {
                store_run(d, planes, c, p, run);
                for (size_t i = 0; i < lanes; ++i)
                    std::memcpy(to + i * block + c, run + 4 * i, run_bytes);
            }
            for (size_t c = whole; c < block; ++c)
                for (size_t i = 0; i < lanes; ++i)
                    to[i * block + c] = c < planes.count ? *planes.at(c, p + i) : T{0};
        }
    }
    return p;
}

template <class D, class T>
size_t deinterleave(D d, const T* src, size_t block, size_t p, size_t pixels,
                    const MutablePlanes<T>& planes) {
    const size_t lanes = hn::Lanes(d), bytes = block * sizeof(T);
    constexpr size_t words = words_of_quad<T>;
    const auto* quads = reinterpret_cast<const uint32_t*>(src);
    if (bytes == 4) {
        for (; p + lanes <= pixels; p += lanes) split(d, hn::LoadU(d, quads + p), planes, 0, p);
    } else if (bytes == 8) {
        hn::Vec<D> a, b;
        for (; p + lanes <= pixels; p += lanes) {
            hn::LoadInterleaved2(d, quads + 2 * p, a, b);
            split(d, a, planes, 0, p);
            split(d, b, planes, words, p);
        }
    } else if (bytes == run_bytes) {
        for (; p + lanes <= pixels; p += lanes) load_run(d, quads + 4 * p, planes, 0, p);
    } else if (bytes > run_bytes) {
        HWY_ALIGN uint32_t run[4 * hn::MaxLanes(d)];
        const size_t whole = block / (4 * words) * (4 * words);
        for (; p + lanes <= pixels; p += lanes) {
            const T* from = src + p * block;
            for (size_t c = 0; c < whole && c < planes.count; c += 4 * words) {
                for (size_t i = 0; i < lanes; ++i)
                    std::memcpy(run + 4 * i, from + i * block + c, run_bytes);
                load_run(d, run, planes, c, p);
            }
            for (size_t c = whole; c < planes.count; ++c)
                for (size_t i = 0; i < lanes; ++i) *planes.at(c, p + i) = from[i * block + c];
        }
    }
    return p;
}

// Three words per pixel without padding; D is a tag of words.
template <class D, class T>
size_t interleave_three(D d, const Planes<T>& planes, size_t p, size_t pixels, T* dst) {
    for (; p + hn::Lanes(d) <= pixels; p += hn::Lanes(d))
        hn::StoreInterleaved3(hn::LoadU(d, planes.at(0, p)), hn::LoadU(d, planes.at(1, p)),
                              hn::LoadU(d, planes.at(2, p)), d, dst + 3 * p);
    return p;
}

template <class D, class T>
size_t deinterleave_three(D d, const T* src, size_t p, size_t pixels,
                          const MutablePlanes<T>& planes) {
    hn::Vec<D> a, b, c;
    for (; p + hn::Lanes(d) <= pixels; p += hn::Lanes(d)) {
        hn::LoadInterleaved3(d, src + 3 * p, a, b, c);
        hn::StoreU(a, d, planes.at(0, p));
        hn::StoreU(b, d, planes.at(1, p));
        hn::StoreU(c, d, planes.at(2, p));
    }
    return p;
}

// Runs `work(tag, first pixel)` with whole vectors, then with short ones, the last of which may do
// pixels again. Returns how many pixels are done.
template <class T, class Work>
HWY_INLINE size_t with_tags(size_t pixels, const Work& work) {
    const hn::CappedTag<T, 4> four;
    const size_t lanes = hn::Lanes(four);
    size_t p = work(hn::ScalableTag<T>(), 0);
    p = work(four, p);
    if (p < pixels && p >= lanes) p = work(four, pixels - lanes);
    return p;
}

// Three words to four and back, the only steps where single pixels are too short to be moved one by
// one.
template <class T>
size_t widen_vectors(const T* src, T* dst, size_t pixels) {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> a, b, c;
    size_t p = 0;
    for (; p + lanes <= pixels; p += lanes) {
        hn::LoadInterleaved3(d, src + 3 * p, a, b, c);
        hn::StoreInterleaved4(a, b, c, hn::Zero(d), d, dst + 4 * p);
    }
    return p;
}

template <class T>
size_t narrow_vectors(const T* src, T* dst, size_t pixels) {
    const hn::ScalableTag<T> d;
    const size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> a, b, c, e;
    size_t p = 0;
    for (; p + lanes <= pixels; p += lanes) {
        hn::LoadInterleaved4(d, src + 4 * p, a, b, c, e);
        hn::StoreInterleaved3(a, b, c, d, dst + 3 * p);
    }
    return p;
}

// Calls `run` with a word of that size; 0 pixels done for a size without vectors.
template <class Run>
size_t by_word(size_t word_bytes, const Run& run) {
    if (word_bytes == 1) return run(uint8_t{});
    if (word_bytes == 2) return run(uint16_t{});
    if (word_bytes == 4) return run(uint32_t{});
    return 0;
}

size_t InterleaveBlock(size_t word_bytes, const void* src, size_t plane_stride_bytes,
                       size_t channels, size_t pixels, void* dst, size_t block) {
    const auto* s = static_cast<const std::byte*>(src);
    return by_word(word_bytes, [&](auto word) HWY_ATTR {
        using T = decltype(word);
        const Planes<T> planes{s, plane_stride_bytes, channels};
        auto* const d = static_cast<T*>(dst);
        if (block == 3 && channels == 3)
            return with_tags<T>(pixels, [&](auto tag, size_t p) HWY_ATTR {
                return interleave_three(tag, planes, p, pixels, d);
            });
        return with_tags<uint32_t>(pixels, [&](auto tag, size_t p) HWY_ATTR {
            return interleave(tag, planes, p, pixels, d, block);
        });
    });
}

size_t DeinterleaveBlock(size_t word_bytes, const void* src, size_t block, size_t channels,
                         size_t pixels, void* dst, size_t plane_stride_bytes) {
    auto* d = static_cast<std::byte*>(dst);
    return by_word(word_bytes, [&](auto word) HWY_ATTR {
        using T = decltype(word);
        const MutablePlanes<T> planes{d, plane_stride_bytes, channels};
        const auto* const s = static_cast<const T*>(src);
        if (block == 3 && channels == 3)
            return with_tags<T>(pixels, [&](auto tag, size_t p) HWY_ATTR {
                return deinterleave_three(tag, s, p, pixels, planes);
            });
        return with_tags<uint32_t>(pixels, [&](auto tag, size_t p) HWY_ATTR {
            return deinterleave(tag, s, block, p, pixels, planes);
        });
    });
}

size_t Widen(size_t word_bytes, const void* src, void* dst, size_t pixels) {
    const auto run = [&](auto word) HWY_ATTR {
        using T = decltype(word);
        return widen_vectors(static_cast<const T*>(src), static_cast<T*>(dst), pixels);
    };
    return by_word(word_bytes, run);
}

size_t Narrow(size_t word_bytes, const void* src, void* dst, size_t pixels) {
    const auto run = [&](auto word) HWY_ATTR {
        using T = decltype(word);
        return narrow_vectors(static_cast<const T*>(src), static_cast<T*>(dst), pixels);
    };
    return by_word(word_bytes, run);
}

}  // namespace HWY_NAMESPACE
}  // namespace vartml::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vartml::kernels {
namespace {

// Moves `bytes` of each pixel as one.
template <size_t bytes>
void move_runs(const std::byte* src, size_t src_step, std::byte* dst, size_t dst_step,
               size_t pixels) {
    for (size_t p = 0; p < pixels; ++p) std::memcpy(dst + p * dst_step, src + p * src_step, bytes);
}

}  // namespace

HWY_EXPORT(InterleaveBlock);
HWY_EXPORT(DeinterleaveBlock);
HWY_EXPORT(Widen);
HWY_EXPORT(Narrow);

void planes_to_pixels(size_t word_bytes, const void* src, size_t plane_stride_bytes,
                      size_t channels, size_t pixels, void* dst, size_t block) {
    const size_t done = HWY_DYNAMIC_DISPATCH(InterleaveBlock)(word_bytes, src, plane_stride_bytes,
                                                              channels, pixels, dst, block);
    planes_to_pixels_ref(word_bytes, static_cast<const std::byte*>(src) + done * word_bytes,
                         plane_stride_bytes, channels, pixels - done,
                         static_cast<std::byte*>(dst) + done * block * word_bytes, block);
}

void pixels_to_planes(size_t word_bytes, const void* src, size_t block, size_t channels,
                      size_t pixels, void* dst, size_t plane_stride_bytes) {
    const size_t done = HWY_DYNAMIC_DISPATCH(DeinterleaveBlock)(word_bytes, src, block, channels,
                                                                pixels, dst, plane_stride_bytes);
    pixels_to_planes_ref(word_bytes, static_cast<const std::byte*>(src) + done * block * word_bytes,
                         block, channels, pixels - done,
                         static_cast<std::byte*>(dst) + done * word_bytes, plane_stride_bytes);
}

void pixels_to_pixels(size_t word_bytes, const void* src, size_t src_step, void* dst,
                      size_t dst_step, size_t channels, size_t fill, size_t pixels) {
    const auto* s = static_cast<const std::byte*>(src);
    auto* d = static_cast<std::byte*>(dst);
    const size_t src_bytes = src_step * word_bytes, dst_bytes = dst_step * word_bytes;
    size_t done = 0;
    if (channels == fill) {
        const auto run = [&](auto bytes) {
            move_runs<bytes>(s, src_bytes, d, dst_bytes, pixels);
            done = pixels;
        };
        switch (channels * word_bytes) {
            case 1:
                run(std::integral_constant<size_t, 1>());
                break;
            case 2:
                run(std::integral_constant<size_t, 2>());
                break;
            case 4:
                run(std::integral_constant<size_t, 4>());
                break;
            case 8:
                run(std::integral_constant<size_t, 8>());
                break;
            case 16:
                run(std::integral_constant<size_t, 16>());
                break;
            case 32:
                run(std::integral_constant<size_t, 32>());
                break;
            case 64:
                run(std::integral_constant<size_t, 64>());
                break;
            default:
                if (channels == 3 && src_step == 4 && dst_step == 3)
                    done = HWY_DYNAMIC_DISPATCH(Narrow)(word_bytes, src, dst, pixels);
        }
    } else if (channels == 3 && fill == 4 && src_step == 3 && dst_step == 4) {
        done = HWY_DYNAMIC_DISPATCH(Widen)(word_bytes, src, dst, pixels);
    }
    pixels_to_pixels_ref(word_bytes, s + done * src_bytes, src_step, d + done * dst_bytes, dst_step,
                         channels, fill, pixels - done);
}

}  // namespace vartml::kernels
#endif
