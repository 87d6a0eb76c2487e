// SPDX-License-Identifier: Apache-2.0
#include "kernels/instruction_sets.h"

#include <hwy/targets.h>

#include <atomic>

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM_A64
#include <sys/auxv.h>
#endif

namespace vartml::kernels {
namespace {

std::atomic<bool> without_dot_products{false}, without_matrix_products{false};

// Highway's SupportedTargets() chooses all of the processor's targets before it answers with those
// that are enabled: who asks must choose these again, and not while kernels run.
int64_t choose_targets() {
    const int64_t targets = hwy::SupportedTargets();
    hwy::GetChosenTarget().Update(targets);
    return targets;
}

std::atomic<int64_t> chosen{0};  // 0: not asked for yet

bool detect_dot_products() {
#if HWY_ARCH_X86
    constexpr unsigned avx_vnni = 1U << 4;  // of EAX of leaf 7.1
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & avx_vnni) != 0;
#elif HWY_ARCH_ARM_A64
    constexpr unsigned long asimd_dp = 1UL << 20;  // HWCAP_ASIMDDP of Linux
    return (getauxval(AT_HWCAP) & asimd_dp) != 0;
#else
    return false;
#endif
}

bool detect_matrix_products() {
#if HWY_ARCH_ARM_A64
    constexpr unsigned long i8mm = 1UL << 13;  // HWCAP2_I8MM of Linux
    return (getauxval(AT_HWCAP2) & i8mm) != 0;
#else
    return false;
#endif
}

// Highway's targets beyond `most`.
int64_t targets_beyond(InstructionSet most) {
#if HWY_ARCH_X86
    switch (most) {
        case InstructionSet::sse4:
            return HWY_SSE4 - 1;
        case InstructionSet::avx2:
        case InstructionSet::avx2_vnni:
            return HWY_AVX2 - 1;
        case InstructionSet::avx512:
            return HWY_AVX3 - 1;
        case InstructionSet::avx512_vnni:
            return HWY_AVX3_DL - 1;
        case InstructionSet::all:
            break;
    }
#endif
    static_cast<void>(most);
    return 0;
}

}  // namespace

void limit_instruction_sets(InstructionSet most) {
    without_dot_products = most <= InstructionSet::avx2;
    without_matrix_products = most != InstructionSet::all;
    hwy::DisableTargets(targets_beyond(most));
    chosen = choose_targets();
}

bool has_dot_products() {
    static const bool detected = detect_dot_products();
    return detected && !without_dot_products.load(std::memory_order_relaxed);
}

bool has_matrix_products() {
    static const bool detected = detect_matrix_products();
    return detected && !without_matrix_products.load(std::memory_order_relaxed);
}

int64_t instruction_sets() {
    // Better targets of Highway's have lower bits, none has these.
    constexpr int64_t dot_products = 1, matrix_products = 2;
    int64_t targets = chosen.load(std::memory_order_relaxed);
    if (targets == 0) chosen = targets = choose_targets();
    return targets | (has_dot_products() ? dot_products : 0) |
           (has_matrix_products() ? matrix_products : 0);
}

}  // namespace vartml::kernels
