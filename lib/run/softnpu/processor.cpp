// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/processor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include <strings.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/conv/conv.h"
#include "kernels/instruction_sets.h"
#include "lib/base/shortest_round.h"
#include "lib/base/test_seams.h"
#include "lib/run/softnpu/openmp.h"

namespace vartml::softnpu {
namespace {

using dnnl::cpu_isa;

using kernels::InstructionSet;

struct Instructions {
    cpu_isa isa;
    const char* name;        // as ONEDNN_MAX_CPU_ISA spells it
    InstructionSet kernels;  // what ours may use where this is the limit
};
// Names of later versions stand for the same number as avx512_core_fp16 and avx512_core_amx.
constexpr Instructions table[] = {
    {cpu_isa::sse41, "sse41", InstructionSet::sse4},
    {cpu_isa::avx, "avx", InstructionSet::sse4},
    {cpu_isa::avx2, "avx2", InstructionSet::avx2},
    {cpu_isa::avx2_vnni, "avx2_vnni", InstructionSet::avx2_vnni},
    {cpu_isa::avx2_vnni_2, "avx2_vnni_2", InstructionSet::avx2_vnni},
    {cpu_isa::avx512_core, "avx512_core", InstructionSet::avx512},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni", InstructionSet::avx512_vnni},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16", InstructionSet::all},
    {cpu_isa::avx512_core_fp16, "avx512_core_fp16", InstructionSet::all},
    {cpu_isa::avx512_core_amx, "avx512_core_amx", InstructionSet::all},
    {cpu_isa::avx512_core_amx_fp16, "avx512_core_amx_fp16", InstructionSet::all},
};

// What the user allows, as oneDNN reads it; a name that oneDNN does not know is none to it, either.
InstructionSet allowed() {
    static const InstructionSet once = [] {
        for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
            const char* const limit = std::getenv(variable);
            if (!limit) continue;
            const auto row = std::ranges::find_if(
                table, [limit](const char* name) { return ::strcasecmp(name, limit) == 0; },
                &Instructions::name);
            return row != std::end(table) ? row->kernels : InstructionSet::all;
        }
        return InstructionSet::all;
    }();
    return once;
}

#if defined(__x86_64__)
// A bit of leaf 7 of CPUID, in register EAX, EBX, ECX or EDX.
bool has_feature(unsigned subleaf, size_t at, unsigned bit) {
    unsigned r[4] = {};
    return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[at] >> bit & 1) != 0;
}
#endif

}  // namespace

Bf16Products bf16_products(const Bf16Instructions& has) {
    if (has.tiles) return Bf16Products::tiles;
    if (!has.pairs) return Bf16Products::none;
    return has.is_intel ? Bf16Products::slow : Bf16Products::pairs;
}

// Read off the processor, because asking oneDNN loads it, which takes longer than loading most
// models. It alone knows whether the system lets the process have tiles.
Bf16Products bf16_products() {
#if defined(__x86_64__)
    constexpr size_t edx = 3;
    const bool allows = allowed() == InstructionSet::all;
    Bf16Instructions has{allows && __builtin_cpu_supports("avx512bf16"),
                         allows && has_feature(0, edx, 22),
                         static_cast<bool>(__builtin_cpu_is("intel"))};
    if (has.tiles) has.tiles = dnnl::get_effective_cpu_isa() >= cpu_isa::avx512_core_amx;
    return bf16_products(has);
#else
    return Bf16Products::none;
#endif
}

bool prefers_bf16() {
    const Bf16Products products = bf16_products();
    return products == Bf16Products::pairs || products == Bf16Products::tiles;
}

void obey_instruction_limit() {
    static const bool once = [] {
        if (allowed() != InstructionSet::all) kernels::limit_instruction_sets(allowed());
        return true;
    }();
    static_cast<void>(once);
}

bool has_int8_products() {
    if (test_seams.saturating_products.load(std::memory_order_relaxed)) return true;
#if defined(__x86_64__)
    constexpr size_t eax = 0;
    const InstructionSet most = allowed();
    const bool wide = most >= InstructionSet::avx512_vnni && __builtin_cpu_supports("avx512vnni");
    const bool narrow = most == InstructionSet::avx2_vnni || most == InstructionSet::all;
    return wide || (narrow && __builtin_cpu_supports("avx2") && has_feature(1, eax, 4));
#else
    return false;
#endif
}

bool has_int16_products() {
    return kernels::has_code_products();
}

std::string instruction_set() {
    const auto row = std::ranges::find(table, dnnl::get_effective_cpu_isa(), &Instructions::isa);
    // Other architectures have one value, without a name.
    return row != std::end(table) ? row->name : "default";
}

std::string onednn_version() {
    const dnnl_version_t* const v = dnnl_version();
    return std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' +
           std::to_string(v->patch);
}

namespace {

using Clock = std::chrono::steady_clock;
using Kind = dnnl::memory::data_type;

struct Types {
    Kind src, weights, dst;
};

Types types_of(ProductType type) {
    switch (type) {
        case ProductType::bf16:
            return {Kind::bf16, Kind::bf16, Kind::bf16};
        case ProductType::int8:
            return {Kind::u8, Kind::s8, Kind::s32};
        default:
            return {Kind::f32, Kind::f32, Kind::f32};
    }
}

// Every byte alike: 1 in integers, a small normal number in floats.
dnnl::memory filled(const dnnl::memory::desc& desc, const dnnl::engine& engine) {
    dnnl::memory memory(desc, engine);
    const Kind kind = desc.get_data_type();
    std::memset(memory.get_data_handle(), kind == Kind::f32 || kind == Kind::bf16 ? 0x3c : 1,
                desc.get_size());
    return memory;
}

// The rows of one thread.
class Share {
public:
    Share(const Types& t, int64_t rows, int64_t size, const dnnl::engine& engine)
        : stream_(engine) {
        using Tag = dnnl::memory::format_tag;
        const dnnl::matmul::primitive_desc pd(engine,
                                              dnnl::memory::desc({rows, size}, t.src, Tag::ab),
                                              dnnl::memory::desc({size, size}, t.weights, Tag::any),
                                              dnnl::memory::desc({rows, size}, t.dst, Tag::ab));
        product_ = dnnl::matmul(pd);
        arguments_ = {{DNNL_ARG_SRC, filled(pd.src_desc(), engine)},
                      {DNNL_ARG_WEIGHTS, filled(pd.weights_desc(), engine)},
                      {DNNL_ARG_DST, filled(pd.dst_desc(), engine)}};
    }
    bool run() noexcept {
        try {
            product_.execute(stream_, arguments_);
            stream_.wait();
            return true;
        } catch (const dnnl::error&) {
            return false;
        }
    }

private:
    dnnl::stream stream_;
    dnnl::matmul product_;
    std::unordered_map<int, dnnl::memory> arguments_;
};

Result<double> best_seconds(std::vector<Share>& shares, unsigned repeats) {
    std::atomic<bool> is_good{true};
    const double best = shortest_round(
        static_cast<unsigned>(shares.size()), repeats, [](unsigned) { omp_set_num_threads(1); },
        [&](unsigned t) {
            if (!shares[t].run()) is_good = false;
        },
        [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); });
    if (!is_good) return Error{ErrorCode::device, "oneDNN: a matrix product failed"};
    return best;
}

}  // namespace

Result<double> product_rate(ProductType type, unsigned threads, unsigned size, unsigned repeats) {
    if ((type == ProductType::bf16 && bf16_products() == Bf16Products::none) ||
        (type == ProductType::int8 && !has_int8_products()))
        return Error{ErrorCode::unsupported,
                     "the processor has no instructions for " +
                         std::string(type == ProductType::bf16 ? "bf16" : "int8") + " products (" +
                         instruction_set() + ")"};
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);  // primitives are made for as many threads as run them
    Result<double> rate = 0.0;
    try {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        std::vector<Share> shares;
        for (unsigned i = 0; i < threads; ++i)
            if (const unsigned rows = size * (i + 1) / threads - size * i / threads; rows > 0)
                shares.emplace_back(types_of(type), rows, size, engine);
        const Result<double> best = best_seconds(shares, repeats);
        rate = best ? Result<double>(2.0 * size * size * size / *best) : best;
    } catch (const dnnl::error& e) {
        rate = Error{e.status == dnnl_out_of_memory ? ErrorCode::out_of_memory : ErrorCode::device,
                     std::string("oneDNN: ") + e.what()};
    }
    omp_set_num_threads(before);
    return rate;
}

}  // namespace vartml::softnpu
