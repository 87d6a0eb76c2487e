// SPDX-License-Identifier: Apache-2.0
#include "gst/support/tensor_caps.h"

#include "gst/support/picture_info.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;
using vartml::ChannelOrder;
using vartml::DataType;
using vartml::Layout;

// The page of the fourccs, row by row: what a pixel is and how many bytes it has.
struct Row {
    const char* fourcc;
    Layout layout;
    DataType type;
    unsigned channels, pixel_bytes;
};
const Row rows[] = {
    {"HC48", Layout::HCWNC4, DataType::int8, 4, 4},
    {"HC43", Layout::HCWNC4, DataType::int8, 3, 4},
    {"HC44", Layout::HCWNC4, DataType::int8, 3, 4},
    {"HB46", Layout::HCWNC4, DataType::bf16, 4, 8},
    {"HB43", Layout::HCWNC4, DataType::bf16, 3, 8},
    {"HB44", Layout::HCWNC4, DataType::bf16, 3, 8},
    {"HF46", Layout::HCWNC4, DataType::fp16, 4, 8},
    {"HF43", Layout::HCWNC4, DataType::fp16, 3, 8},
    {"HF44", Layout::HCWNC4, DataType::fp16, 3, 8},
    {"H432", Layout::HCWNC4, DataType::float32, 4, 16},
    {"H433", Layout::HCWNC4, DataType::float32, 3, 16},
    {"H434", Layout::HCWNC4, DataType::float32, 3, 16},
    {"HC88", Layout::HCWNC8, DataType::int8, 4, 8},
    {"HC83", Layout::HCWNC8, DataType::int8, 3, 8},
    {"HC84", Layout::HCWNC8, DataType::int8, 3, 8},
    {"HB86", Layout::HCWNC8, DataType::bf16, 4, 16},
    {"HB83", Layout::HCWNC8, DataType::bf16, 3, 16},
    {"HB84", Layout::HCWNC8, DataType::bf16, 3, 16},
    {"HF86", Layout::HCWNC8, DataType::fp16, 4, 16},
    {"HF83", Layout::HCWNC8, DataType::fp16, 3, 16},
    {"HF84", Layout::HCWNC8, DataType::fp16, 3, 16},
    {"H832", Layout::HCWNC8, DataType::float32, 4, 32},
    {"H833", Layout::HCWNC8, DataType::float32, 3, 32},
    {"H834", Layout::HCWNC8, DataType::float32, 3, 32},
};

TEST(TensorCaps, EachFourccIsTheTensorOfItsPage) {
    GstCaps* all = tensor_caps();
    for (const Row& row : rows) {
        SCOPED_TRACE(row.fourcc);
        GstCaps* caps = gst_caps_from_string(
            (std::string("video/x-raw(memory:DMABuf),format=DMA_DRM,width=20,height=10,"
                         "framerate=30/1,drm-format=") +
             row.fourcc)
                .c_str());
        EXPECT_TRUE(gst_caps_is_subset(caps, all));
        const auto read = tensor_frame(caps);
        ASSERT_TRUE(read && *read);
        const TensorFrame& frame = **read;
        EXPECT_EQ(frame.name, row.fourcc);
        EXPECT_EQ(frame.layout, row.layout);
        EXPECT_EQ(frame.type, row.type);
        EXPECT_EQ(frame.channels, row.channels);
        EXPECT_EQ(frame.order, ChannelOrder::rgb);
        EXPECT_EQ(frame.row_bytes, 20 * row.pixel_bytes);
        EXPECT_EQ(frame.rows, 10u);
        const vartml::TensorView cpu =
            vartml::make_view(DataType::float32, Layout::NCHW, {1, row.channels, 10, 20});
        EXPECT_EQ(size_t(frame.row_bytes) * frame.rows,
                  vartml::hw_view(cpu, row.layout, row.type).size_bytes);
        const auto format = frame_format(caps);
        ASSERT_TRUE(format && format->tensor);
        EXPECT_EQ(GST_VIDEO_INFO_SIZE(&format->info), gsize(frame.row_bytes) * frame.rows);
        EXPECT_EQ(format->picture.width, 20u);
        EXPECT_EQ(GST_VIDEO_INFO_FPS_N(&format->info), 30);
        gst_caps_unref(caps);
    }
    gst_caps_unref(all);
}

struct OwnCase {
    const char *name, *fields;
    unsigned row_bytes, rows;
};
const OwnCase own_cases[] = {
    {"Blocks", "data-type=int8,layout=HCWNC4,channels=3", 80, 10},
    {"BlocksOfSixteen", "data-type=bf16,layout=HCWNC16,channels=3", 640, 10},
    {"Pixels", "data-type=uint8,layout=NHWC,channels=3", 60, 10},
    {"Planes", "data-type=fp32,layout=NCHW,channels=3", 80, 30},
    {"RowsOfEight", "data-type=fp16,layout=NHW,channels=1", 48, 10},
};
TEST(TensorCaps, TheOwnTypeHasEachLayoutOfAPicture) {
    for (const OwnCase& c : own_cases) {
        SCOPED_TRACE(c.name);
        GstCaps* caps = gst_caps_from_string(
            (std::string(tensor_media_type) + ",width=20,height=10," + c.fields).c_str());
        const auto read = tensor_frame(caps);
        ASSERT_TRUE(read && *read) << (read ? "" : read.error().message);
        EXPECT_EQ((*read)->row_bytes, c.row_bytes);
        EXPECT_EQ((*read)->rows, c.rows);
        EXPECT_FALSE((*read)->order || (*read)->scale || (*read)->zero_point) << "is not known";
        gst_caps_unref(caps);
    }
}

TEST(TensorCaps, SayWhatIsKnownOfTheValues) {
    GstCaps* caps = gst_caps_from_string(
        "application/x-vartml-tensor,data-type=int8,layout=HCWNC4,channels=3,width=20,height=10,"
        "scale=0.0078125,zero-point=-3,channel-order=bgr");
    const auto read = tensor_frame(caps);
    ASSERT_TRUE(read && *read);
    EXPECT_EQ((*read)->scale, 0.0078125);
    EXPECT_EQ((*read)->zero_point, -3);
    EXPECT_EQ((*read)->order, ChannelOrder::bgr);
    gst_caps_unref(caps);
}

struct WrongCase {
    const char *name, *fields, *sentence;
};
const WrongCase wrong_cases[] = {
    {"Type", "data-type=int64,layout=NHWC,channels=3,width=8,height=8", "data-type 'int64'"},
    {"NoType", "layout=NHWC,channels=3,width=8,height=8", "expected int8, uint8, bf16"},
    {"Layout", "data-type=int8,layout=NHWC4,channels=3,width=8,height=8", "layout 'NHWC4'"},
    {"Channels", "data-type=int8,layout=NHWC,channels=9,width=8,height=8",
     "channels 9, expected 1 to 4"},
    {"Width", "data-type=int8,layout=NHWC,channels=3,width=0,height=8", "width 0"},
    {"Height", "data-type=int8,layout=NHWC,channels=3,width=8", "height 0"},
    {"Order", "data-type=int8,layout=NHWC,channels=3,width=8,height=8,channel-order=grb",
     "channel-order grb, expected rgb, bgr, gray"},
};
TEST(TensorCaps, NameTheFieldThatIsWrong) {
    for (const WrongCase& c : wrong_cases) {
        SCOPED_TRACE(c.name);
        GstCaps* caps =
            gst_caps_from_string((std::string(tensor_media_type) + "," + c.fields).c_str());
        const auto read = tensor_frame(caps);
        ASSERT_FALSE(read);
        EXPECT_NE(read.error().message.find(c.sentence), std::string::npos) << read.error().message;
        gst_caps_unref(caps);
    }
}

TEST(TensorCaps, PicturesAreNone) {
    for (const char* text :
         {"video/x-raw,format=RGBx,width=8,height=8",
          "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=XB24,width=8,height=8",
          "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=HC48:0x0100000000000002,width=8,"
          "height=8"}) {
        GstCaps* caps = gst_caps_from_string(text);
        const auto read = tensor_frame(caps);
        EXPECT_TRUE(read && !*read) << text;
        gst_caps_unref(caps);
    }
}

}  // namespace
