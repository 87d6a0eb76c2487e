// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/processor.h"

#include <gtest/gtest.h>

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

TEST(Processor, PrefersBf16OnlyWhereItIsFaster) {
    const Bf16Products here = bf16_products();
    EXPECT_EQ(prefers_bf16(), here == Bf16Products::pairs || here == Bf16Products::tiles);
}

}  // namespace
}  // namespace vartml::softnpu
