// SPDX-License-Identifier: Apache-2.0
// Boxes in frames of every format, compared byte by byte with a plain reference.
#include <cmath>
#include <functional>

#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;

// Half-open rectangles of pixels that a color covers.
struct Area {
    int x0, y0, x1, y1;
};
// The sides of a box of line width 1 or 3: a third of the line lies outside.
std::vector<Area> sides_of(int x, int y, int w, int h, int line) {
    const int out = line / 2, x0 = x - out, y0 = y - out, x1 = x + w + out, y1 = y + h + out;
    return {{x0, y0, x1, y0 + line},
            {x0, y1 - line, x1, y1},
            {x0, y0, x0 + line, y1},
            {x1 - line, y0, x1, y1}};
}
bool covered(const std::vector<Area>& areas, int x, int y) {
    for (const Area& a : areas) {
        if (x >= a.x0 && x < a.x1 && y >= a.y0 && y < a.y1) return true;
    }
    return false;
}

struct Format {
    GstVideoFormat format;
    std::vector<int> red;  // of each component, of 0xff0000
};
const Format formats[] = {
    {GST_VIDEO_FORMAT_NV12, {81, 90, 240}},  // BT.601, 16 to 235: how frames of this size default
    {GST_VIDEO_FORMAT_NV21, {81, 90, 240}},
    {GST_VIDEO_FORMAT_I420, {81, 90, 240}},
    {GST_VIDEO_FORMAT_RGB, {255, 0, 0}},
    {GST_VIDEO_FORMAT_BGR, {255, 0, 0}},
    {GST_VIDEO_FORMAT_RGBA, {255, 0, 0, 255}},
    {GST_VIDEO_FORMAT_BGRA, {255, 0, 0, 255}},
    {GST_VIDEO_FORMAT_RGBx, {255, 0, 0}},
    {GST_VIDEO_FORMAT_BGRx, {255, 0, 0}},
    {GST_VIDEO_FORMAT_GRAY8, {76}},  // 0 to 255
};

// What the frame's bytes have to be: each sample nears the color by the share of its pixels that
// are covered, times the color's alpha.
void draw_reference(std::vector<uint8_t>& bytes, const GstVideoInfo& info, const Format& format,
                    const std::vector<Area>& areas, int alpha) {
    const int width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_HEIGHT(&info);
    for (size_t c = 0; c < format.red.size(); ++c) {
        const auto i = static_cast<guint>(c);
        const int sub_x = 1 << GST_VIDEO_FORMAT_INFO_W_SUB(info.finfo, i);
        const int sub_y = 1 << GST_VIDEO_FORMAT_INFO_H_SUB(info.finfo, i);
        for (int y = 0; y * sub_y < height; ++y) {
            for (int x = 0; x * sub_x < width; ++x) {
                int inside = 0, all = 0;
                for (int py = y * sub_y; py < std::min((y + 1) * sub_y, height); ++py) {
                    for (int px = x * sub_x; px < std::min((x + 1) * sub_x, width); ++px) {
                        ++all;
                        inside += covered(areas, px, py);
                    }
                }
                uint8_t& sample =
                    bytes[GST_VIDEO_INFO_COMP_OFFSET(&info, i) +
                          static_cast<size_t>(y * GST_VIDEO_INFO_COMP_STRIDE(&info, i)) +
                          static_cast<size_t>(x * GST_VIDEO_INFO_COMP_PSTRIDE(&info, i))];
                const int share = (alpha * inside + all / 2) / all;
                sample = static_cast<uint8_t>(
                    (sample * (255 - share) + format.red[c] * share + 127) / 255);
            }
        }
    }
}

// Rows and planes further apart than they need be, and bytes before the first.
GstVideoInfo padded(GstVideoInfo info) {
    gsize offset = 48;
    for (guint p = 0; p < GST_VIDEO_INFO_N_PLANES(&info); ++p) {
        info.stride[p] += 20;
        info.offset[p] = offset;
        offset += gsize(info.stride[p]) * gsize(GST_VIDEO_INFO_HEIGHT(&info) + 1) + 32;
    }
    info.size = offset;
    return info;
}

struct Case {
    const char* why;
    int width, height;
    bool pad;
    int x, y, w, h;
};
const Case cases[] = {
    {"even everything", 64, 48, false, 8, 6, 32, 24},
    {"odd place and size", 64, 48, false, 7, 5, 33, 25},
    {"odd frame, touching its last row and column", 63, 47, false, 40, 30, 23, 17},
    {"strides and offsets", 63, 47, true, 7, 5, 33, 25},
    {"partly outside at the top left", 64, 48, false, -5, -3, 20, 20},
    {"partly outside at the bottom right", 63, 47, true, 50, 40, 200, 100},
    {"outside", 64, 48, false, 100, 100, 20, 20},
    {"thinner than its lines", 64, 48, false, 20, 20, 1, 1},
    {"larger than the frame", 64, 48, false, -10, -10, 100, 100},
    {"at the end of numbers", 64, 48, false, 10, 10, 1 << 24, 1 << 24},
};

class OverlayBlend : public Overlay, public testing::WithParamInterface<Format> {
protected:
    void check(const Case& c, int line, int alpha) {
        const GstVideoInfo caps_info = make_info(GetParam().format, c.width, c.height);
        const GstVideoInfo info = c.pad ? padded(caps_info) : caps_info;
        set("draw", "boxes");
        set("color-mode", "fixed");
        g_object_set(element(), "color", static_cast<guint>(alpha) << 24 | 0xff0000, "line-width",
                     line, nullptr);
        if (!harness_) open(caps_info);
        std::vector<uint8_t> bytes(info.size);
        std::mt19937 random(1);
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
        GstBuffer* in = gst_buffer_new_allocate(nullptr, info.size, nullptr);
        gst_buffer_fill(in, 0, bytes.data(), bytes.size());
        if (c.pad) {
            gst_buffer_add_video_meta_full(
                in, GST_VIDEO_FRAME_FLAG_NONE, GetParam().format, static_cast<guint>(c.width),
                static_cast<guint>(c.height), GST_VIDEO_INFO_N_PLANES(&info), info.offset,
                info.stride);
        }
        add_od(in, c.x, c.y, c.w, c.h);
        const Buffer out = run(in);
        draw_reference(bytes, info, GetParam(), sides_of(c.x, c.y, c.w, c.h, line), alpha);
        EXPECT_EQ(bytes_of(out.get()), bytes) << c.why << ", line " << line << ", alpha " << alpha;
    }
};

TEST_P(OverlayBlend, DrawsBoxesAndChangesNoOtherByte) {
    for (const Case& c : cases) {
        for (const int line : {1, 2, 3}) check(c, line, 255);
        check(c, 3, 100);
        EXPECT_EQ(stat("copied"), 0u);
        close();
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, OverlayBlend, testing::ValuesIn(formats), [](const auto& info) {
    return std::string(gst_video_format_to_string(info.param.format));
});

// A table of known colors: the frame's colorimetry decides.
TEST_F(Overlay, ConvertsColorsAsTheCapsSay) {
    struct Row {
        const char* colorimetry;
        guint color;
        std::vector<uint8_t> yuv;
    };
    const Row rows[] = {
        {"bt709", 0xff0000ff, {32, 240, 118}},  {"bt601", 0xff0000ff, {41, 240, 110}},
        {"bt709", 0xffffffff, {235, 128, 128}}, {"1:4:0:0", 0xffffffff, {255, 128, 128}},
        {"bt709", 0xff00ff00, {173, 42, 26}},
    };
    for (const Row& row : rows) {
        GstVideoInfo info = make_info(GST_VIDEO_FORMAT_I420, 16, 16);
        gst_video_colorimetry_from_string(&info.colorimetry, row.colorimetry);
        set("draw", "boxes");
        set("color-mode", "fixed");
        g_object_set(element(), "color", row.color, "line-width", 100, nullptr);
        open(info);
        GstBuffer* in = frame();
        add_od(in, 0, 0, 16, 16);
        const auto bytes = bytes_of(run(in).get());
        EXPECT_EQ((std::vector<uint8_t>{bytes[0], bytes[256], bytes[320]}), row.yuv)
            << row.colorimetry << ' ' << std::hex << row.color;
        close();
    }
}

TEST_F(Overlay, CopiesFramesThatAreNotWritableAndCountsThem) {
    set("draw", "boxes");
    open();
    GstBuffer* in = frame();
    add_od(in, 10, 10, 50, 50);
    gst_buffer_ref(in);  // somebody else has it too
    const Buffer out = run(in);
    EXPECT_NE(out.get(), in);
    EXPECT_EQ(Picture(in, info_).ink(), 0);
    EXPECT_GT(Picture(out.get(), info_).ink(), 100);
    EXPECT_EQ(stat("copied"), 1u);
    gst_buffer_unref(in);

    // The buffer is ours alone, its memory is not.
    in = frame();
    add_od(in, 10, 10, 50, 50);
    GstMemory* memory = gst_buffer_get_memory(in, 0);
    GstBuffer* other = gst_buffer_new();
    gst_buffer_append_memory(other, memory);
    EXPECT_GT(draw(in).ink(), 100);
    EXPECT_EQ(Picture(other, info_).ink(), 0);
    EXPECT_EQ(stat("copied"), 2u);
    gst_buffer_unref(other);
}

TEST_F(Overlay, FramesWithoutResultsPassAsTheyAre) {
    open();
    GstBuffer* in = frame();
    gst_buffer_ref(in);
    const Buffer out = run(in);
    EXPECT_EQ(out.get(), in);
    gst_buffer_unref(in);
    EXPECT_EQ(stat("frames"), 1u);
    EXPECT_EQ(stat("drawn"), 0u);
    EXPECT_EQ(stat("copied"), 0u);
}

TEST_F(Overlay, DrawsAThousandBoxes) {
    set("draw", "boxes");
    set("line-width", "1");
    open(1000, 400);
    GstBuffer* in = frame();
    for (int i = 0; i < 1000; ++i) add_od(in, i % 100 * 10, i / 100 * 40, 8, 30);
    EXPECT_EQ(draw(in).ink(), 1000 * (2 * 8 + 2 * 28));
    EXPECT_EQ(stat("blended"), 1u);
}

TEST(ZOverlayLeaks, LeavesNoObjectBehind) {
    expect_no_objects();
}

}  // namespace
