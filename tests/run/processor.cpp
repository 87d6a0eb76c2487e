// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace vartml::softnpu {
namespace {

TEST(Processor, MultipliesBf16AsItsInstructionsAndMakerSay) {
    struct Case {
        const char* processor;
        Bf16Instructions has;
        Bf16Products products;
    };
    constexpr Case cases[] = {
        {"Zen 3", {false, false, false}, Bf16Products::none},
        {"Ice Lake", {false, false, true}, Bf16Products::none},
        {"Zen 4", {true, false, false}, Bf16Products::pairs},
        {"Sapphire Rapids whose tiles a hypervisor hides", {true, false, true}, Bf16Products::slow},
        {"Sapphire Rapids", {true, true, true}, Bf16Products::tiles},
    };
    for (const Case& c : cases) EXPECT_EQ(bf16_products(c.has), c.products) << c.processor;
}

// Ours reads the processor itself, so that no program loads oneDNN for the question alone.
TEST(Processor, SaysTheSameAsOnednn) {
    const std::string name = instruction_set();
    if (name == "default") GTEST_SKIP() << "oneDNN names the instructions of x86 alone";
    const auto is_one_of = [&name](std::initializer_list<const char*> names) {
        return std::ranges::find(names, name) != names.end();
    };
    const bool bf16 = is_one_of(
        {"avx512_core_bf16", "avx512_core_fp16", "avx512_core_amx", "avx512_core_amx_fp16"});
    const bool int8 = bf16 || is_one_of({"avx2_vnni", "avx2_vnni_2", "avx512_core_vnni"});
    EXPECT_EQ(bf16_products() != Bf16Products::none, bf16) << name;
    EXPECT_EQ(has_int8_products(), int8) << name;
}

TEST(Processor, PrefersBf16OnlyWhereItIsFaster) {
    const Bf16Products here = bf16_products();
    EXPECT_EQ(prefers_bf16(), here == Bf16Products::pairs || here == Bf16Products::tiles);
}

}  // namespace
}  // namespace vartml::softnpu
