// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/view.h"

#include <gtest/gtest.h>

#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

View make(const Dims& dims, const Order& order) {
    return {0, DataType::float32, 0, dims, dense_strides(dims, order)};
}

TEST(View, KnowsTheStridesOfChannelsLast) {
    const View view = make({1, 3, 4, 5}, channels_last(4));
    EXPECT_EQ(view.strides, (Dims{60, 1, 15, 3}));
    EXPECT_TRUE(is_dense(view, channels_last(4)));
    EXPECT_FALSE(is_dense(view, row_major(4)));
}

TEST(View, IsDenseInEveryOrderWhereOnlyOneDimensionIsNotOne) {
    const View view = make({1, 7, 1, 1}, channels_last(4));
    EXPECT_TRUE(is_dense(view, row_major(4)));
}

struct ReshapeCase {
    const char* why;
    Dims dims;
    Order order;
    Dims to;
    std::optional<Dims> strides;  // nullopt: needs a copy
};
const ReshapeCase reshapes[] = {
    {"merging dense dimensions", {2, 3, 4}, {0, 1, 2}, {6, 4}, Dims{4, 1}},
    {"splitting one", {6, 4}, {0, 1}, {2, 3, 4}, Dims{12, 4, 1}},
    {"positions of channels-last stay a view",
     {1, 85, 13, 13},
     {0, 2, 3, 1},
     {1, 85, 169},
     Dims{14365, 1, 85}},
    {"channels with height do not", {1, 85, 13, 13}, {0, 2, 3, 1}, {1, 1105, 13}, std::nullopt},
    {"sizes of one carry nothing", {1, 4, 1, 1}, {0, 2, 3, 1}, {4}, Dims{1}},
    {"channels split in groups", {1, 8, 2, 2}, {0, 2, 3, 1}, {1, 2, 4, 4}, Dims{32, 4, 1, 8}},
    {"a scalar from one element", {1, 1}, {0, 1}, {}, Dims{}},
};

TEST(View, ReshapesWithoutCopyWhereStridesCanSayIt) {
    for (const ReshapeCase& c : reshapes) {
        SCOPED_TRACE(c.why);
        const auto result = reshape(make(c.dims, c.order), c.to);
        ASSERT_EQ(result.has_value(), c.strides.has_value());
        if (!result) continue;
        EXPECT_EQ(result->dims, c.to);
        for (size_t i = 0; i < c.to.size(); ++i) {
            if (c.to[i] == 1) continue;
            EXPECT_EQ(result->strides[i], (*c.strides)[i]) << "dimension " << i;
        }
    }
}

TEST(View, BroadcastsWithStrideZero) {
    const View view = broadcast(make({3, 1}, row_major(2)), {2, 3, 4});
    EXPECT_EQ(view.strides, (Dims{0, 1, 0}));
}

// Every element of a copy is where the strides say, for any pair of orders and types.
struct CopyCase {
    Dims dims;
    Order from, to;
};
const CopyCase copies[] = {
    {{1, 3, 5, 7}, {0, 1, 2, 3}, {0, 2, 3, 1}},
    {{1, 33, 17, 19}, {0, 2, 3, 1}, {0, 1, 2, 3}},
    {{2, 3, 4, 5, 6, 2}, {5, 3, 1, 0, 2, 4}, {0, 1, 2, 3, 4, 5}},
    {{40, 1, 40}, {2, 1, 0}, {0, 1, 2}},
    {{64, 1024}, {0, 1}, {0, 1}},
    {{1}, {0}, {0}},
    {{}, {}, {}},
};

TEST(CopyStep, MovesEveryElementToItsPlace) {
    for (const CopyCase& c : copies) {
        const View from = make(c.dims, c.from), to = make(c.dims, c.to);
        const auto n = static_cast<size_t>(from.elements());
        std::vector<float> src(n), dst(n);
        for (size_t i = 0; i < n; ++i) src[i] = static_cast<float>(i);
        copy_now(from, reinterpret_cast<const std::byte*>(src.data()), to,
                 reinterpret_cast<std::byte*>(dst.data()));
        Dims at(c.dims.size(), 0);
        for (size_t i = 0; i < n; ++i) {
            int64_t a = 0, b = 0;
            for (size_t d = 0; d < at.size(); ++d) {
                a += at[d] * from.strides[d];
                b += at[d] * to.strides[d];
            }
            ASSERT_EQ(dst[static_cast<size_t>(b)], src[static_cast<size_t>(a)]);
            for (size_t d = at.size(); d-- > 0;) {
                if (++at[d] < c.dims[d]) break;
                at[d] = 0;
            }
        }
    }
}

TEST(CopyStep, RoundsToBf16ToNearestEven) {
    const View from = make({4}, row_major(1));
    View to = from;
    to.type = DataType::bf16;
    const uint32_t bits[] = {0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x7F800001};
    uint16_t result[4];
    copy_now(from, reinterpret_cast<const std::byte*>(bits), to,
             reinterpret_cast<std::byte*>(result));
    EXPECT_EQ(result[0], 0x3F80);
    EXPECT_EQ(result[1], 0x3F82);
    EXPECT_EQ(result[2], 0x7F80);
    EXPECT_EQ(result[3], 0x7FC0);
}

TensorInfo picture(uint32_t c, uint32_t h, uint32_t w, Layout layout) {
    const TensorView cpu = make_view(DataType::float32, Layout::NCHW, {1, c, h, w});
    return {"x", cpu, hw_view(cpu, layout, DataType::bf16), false, {}};
}

TEST(Border, SeesABlockedPictureOfOneGroupInPlace) {
    const auto view = border_view(picture(3, 5, 7, Layout::HCWNC4), {1, 3, 5, 7}, 0);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->strides[1], 1);
    EXPECT_EQ(view->strides[2], 28);
    EXPECT_EQ(view->strides[3], 4);
    const auto padded = with_padding_channels(*view);
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->dims[1], 4);
    EXPECT_TRUE(is_dense(*padded, channels_last(4)));
}

TEST(Border, SplitsABlockedPictureOfSeveralGroups) {
    const TensorInfo info = picture(20, 8, 6, Layout::HCWNC16);
    EXPECT_FALSE(border_view(info, {1, 20, 8, 6}, 0));
    const auto parts = border_parts(info, make({1, 20, 8, 6}, channels_last(4)), 0);
    ASSERT_EQ(parts.size(), 2u);
    // given: c17 h3 w5 lies at 753
    const View& tail = parts[1].first;
    EXPECT_EQ(tail.offset + 1 * tail.strides[2] + 3 * tail.strides[3] + 5 * tail.strides[4], 753);
    const auto padding = border_padding(info, {1, 20, 8, 6}, 0);
    ASSERT_EQ(padding.size(), 1u);
    EXPECT_EQ(padding[0].elements(), 8 * 6 * 12);
}

TEST(Border, PadsTheColumnsOfARowView) {
    const TensorView cpu = make_view(DataType::float32, Layout::NHW, {1, 3549, 85});
    const TensorInfo info{"y", cpu, hw_view(cpu, Layout::NHW, DataType::float32), false, {}};
    const auto view = border_view(info, {1, 3549, 85}, 0);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->strides[1], 88);
    const auto padding = border_padding(info, {1, 3549, 85}, 0);
    ASSERT_EQ(padding.size(), 1u);
    EXPECT_EQ(padding[0].elements(), 3549 * 3);
}

}  // namespace
}  // namespace vartml::softnpu
