// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/processor.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

namespace vartml::softnpu {
namespace {

using dnnl::cpu_isa;

struct Instructions {
    cpu_isa isa;
    const char* name;
    bool bf16, int8;
};
// Names of later versions stand for the same number as avx512_core_fp16 and avx512_core_amx.
constexpr Instructions table[] = {
    {cpu_isa::sse41, "sse41", false, false},
    {cpu_isa::avx, "avx", false, false},
    {cpu_isa::avx2, "avx2", false, false},
    {cpu_isa::avx2_vnni, "avx2_vnni", false, true},
    {cpu_isa::avx2_vnni_2, "avx2_vnni_2", false, true},
    {cpu_isa::avx512_core, "avx512_core", false, false},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni", false, true},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16", true, true},
    {cpu_isa::avx512_core_fp16, "avx512_core_fp16", true, true},
    {cpu_isa::avx512_core_amx, "avx512_core_amx", true, true},
    {cpu_isa::avx512_core_amx_fp16, "avx512_core_amx_fp16", true, true},
};

Instructions effective() {
    const cpu_isa isa = dnnl::get_effective_cpu_isa();
    const auto row = std::ranges::find(table, isa, &Instructions::isa);
    // Other architectures have one value, without a name.
    return row != std::end(table) ? *row : Instructions{isa, "default", false, false};
}

}  // namespace

bool has_bf16_products() {
#if defined(__x86_64__)
    // Without asking oneDNN, which would be loaded for that alone.
    if (!__builtin_cpu_supports("avx512bf16")) return false;
#endif
    return effective().bf16;
}

bool has_int8_products() {
    return effective().int8;
}

std::string instruction_set() {
    return effective().name;
}

std::string onednn_version() {
    const dnnl_version_t* const v = dnnl_version();
    return std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' +
           std::to_string(v->patch);
}

}  // namespace vartml::softnpu
