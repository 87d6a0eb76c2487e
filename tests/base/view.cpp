// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vartml/tensor.h>

namespace vartml {
namespace {

// Names from the schema of the model's meta data (artifacts.md), numbers from vart::DataType.
struct TypeCase {
    DataType type;
    int number;
    std::string_view name;
    size_t bytes;
};
const TypeCase type_cases[] = {
    {DataType::unknown, 0, "unknown", 0}, {DataType::boolean, 1, "bool", 1},
    {DataType::int8, 2, "int8", 1},       {DataType::uint8, 3, "uint8", 1},
    {DataType::int16, 4, "int16", 2},     {DataType::uint16, 5, "uint16", 2},
    {DataType::bf16, 6, "bf16", 2},       {DataType::fp16, 7, "fp16", 2},
    {DataType::int32, 8, "int32", 4},     {DataType::uint32, 9, "uint32", 4},
    {DataType::float32, 10, "fp32", 4},   {DataType::int64, 11, "int64", 8},
    {DataType::uint64, 12, "uint64", 8},  {DataType::float64, 13, "fp64", 8},
};

TEST(TensorView, DataTypesHaveTheNumbersNamesAndSizesOfTheContract) {
    for (const TypeCase& c : type_cases) {
        EXPECT_EQ(static_cast<int>(c.type), c.number);
        EXPECT_EQ(to_string(c.type), c.name);
        EXPECT_EQ(size_bytes(c.type), c.bytes) << c.name;
        if (c.type == DataType::unknown) continue;
        EXPECT_EQ(parse_data_type(c.name), c.type);
    }
    EXPECT_EQ(parse_data_type("unknown"), std::nullopt);
    EXPECT_EQ(parse_data_type("float"), std::nullopt);
    EXPECT_EQ(parse_data_type(""), std::nullopt);
    EXPECT_EQ(to_string(static_cast<DataType>(99)), "unknown");
    EXPECT_EQ(size_bytes(static_cast<DataType>(99)), 0u);
}

TEST(TensorView, LayoutsHaveTheNumbersAndNamesOfTheContract) {
    const char* names[] = {"unknown",   "NC",        "NCH",      "NHC",      "NHW",
                           "NWC",       "NHWC",      "NCHW",     "NHWC4",    "NHWC8",
                           "NC4HW4",    "NC8HW8",    "HCWNC4",   "HCWNC8",   "HCWNC16",
                           "NHW16C4WC", "NHW16WC4C", "NH2HWC4C", "NH2C4HWC", "GENERIC"};
    for (size_t i = 0; i < std::size(names); ++i) {
        const auto layout = static_cast<Layout>(i);
        EXPECT_EQ(to_string(layout), names[i]);
        if (i > 0) {
            EXPECT_EQ(parse_layout(names[i]), layout);
        }
    }
    EXPECT_EQ(parse_layout("nhwc"), std::nullopt);
    EXPECT_EQ(to_string(static_cast<Layout>(99)), "unknown");
}

// Worked by hand.
struct ViewCase {
    const char* why;
    Layout cpu_layout;
    std::vector<uint32_t> cpu_shape;
    Layout hw_layout;
    DataType hw_type;
    std::vector<uint32_t> shape, strides;
    size_t size, size_bytes;
};
using T = DataType;
using L = Layout;
const ViewCase view_cases[] = {
    {"RGB in blocks of four",
     L::NCHW,
     {1, 3, 224, 224},
     L::HCWNC4,
     T::int8,
     {224, 1, 224, 1, 4},
     {896, 896, 4, 4, 1},
     200704,
     200704},
    {"the same in bf16",
     L::NCHW,
     {1, 3, 224, 224},
     L::HCWNC4,
     T::bf16,
     {224, 1, 224, 1, 4},
     {896, 896, 4, 4, 1},
     200704,
     401408},
    {"a channels-last model gives the same HW view",
     L::NHWC,
     {1, 224, 224, 3},
     L::HCWNC4,
     T::int8,
     {224, 1, 224, 1, 4},
     {896, 896, 4, 4, 1},
     200704,
     200704},
    {"a larger picture",
     L::NCHW,
     {1, 3, 640, 640},
     L::HCWNC4,
     T::int8,
     {640, 1, 640, 1, 4},
     {2560, 2560, 4, 4, 1},
     1638400,
     1638400},
    {"detection head, 85 becomes 88",
     L::NCHW,
     {1, 85, 52, 52},
     L::HCWNC8,
     T::int8,
     {52, 11, 52, 1, 8},
     {4576, 416, 8, 8, 1},
     237952,
     237952},
    {"blocks of 16, partly filled",
     L::NCHW,
     {1, 20, 8, 6},
     L::HCWNC16,
     T::bf16,
     {8, 2, 6, 1, 16},
     {192, 96, 16, 16, 1},
     1536,
     3072},
    {"NHW pads the innermost dimension to 8",
     L::NHW,
     {1, 8400, 85},
     L::NHW,
     T::int8,
     {1, 8400, 88},
     {739200, 88, 1},
     739200,
     739200},
    {"NHW that needs no padding",
     L::NHW,
     {1, 84, 8400},
     L::NHW,
     T::bf16,
     {1, 84, 8400},
     {705600, 8400, 1},
     705600,
     1411200},
    {"other ranks are copied",
     L::GENERIC,
     {1, 1000},
     L::GENERIC,
     T::int8,
     {1, 1000},
     {1000, 1},
     1000,
     1000},
    {"a batch stays in channels-last",
     L::NCHW,
     {4, 3, 8, 6},
     L::NHWC,
     T::bf16,
     {4, 8, 6, 3},
     {144, 18, 3, 1},
     576,
     1152},
    {"channels-last to planes",
     L::NHWC,
     {1, 8, 6, 3},
     L::NCHW,
     T::float32,
     {1, 3, 8, 6},
     {144, 48, 6, 1},
     144,
     576},
};

TEST(TensorView, HwViewsAreThoseOfTheWorkedExamples) {
    for (const ViewCase& c : view_cases) {
        SCOPED_TRACE(c.why);
        const TensorView cpu = make_view(DataType::float32, c.cpu_layout, c.cpu_shape);
        const TensorView hw = hw_view(cpu, c.hw_layout, c.hw_type);
        EXPECT_EQ(hw.layout, c.hw_layout);
        EXPECT_EQ(hw.data_type, c.hw_type);
        EXPECT_EQ(hw.shape, c.shape);
        EXPECT_EQ(hw.strides, c.strides);
        EXPECT_EQ(hw.size, c.size);
        EXPECT_EQ(hw.size_bytes, c.size_bytes);
        EXPECT_FALSE(hw.quantisation);
    }
}

TEST(TensorView, MakeViewIsDenseAndGivesGenericTheIdentityOrder) {
    const TensorView a = make_view(DataType::int64, Layout::GENERIC, {2, 3, 4, 5});
    EXPECT_EQ(a.order, (std::vector<uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(a.strides, (std::vector<uint32_t>{60, 20, 5, 1}));
    EXPECT_EQ(a.size, 120u);
    EXPECT_EQ(a.size_bytes, 960u);
    const TensorView b = make_view(DataType::int8, Layout::GENERIC, {2, 5, 3, 4}, {0, 3, 1, 2});
    EXPECT_EQ(b.order, (std::vector<uint32_t>{0, 3, 1, 2}));
    EXPECT_EQ(b.strides, (std::vector<uint32_t>{60, 12, 4, 1}));
    EXPECT_TRUE(make_view(DataType::int8, Layout::NCHW, {1, 1, 1, 1}).order.empty());
}

}  // namespace
}  // namespace vartml
