// SPDX-License-Identifier: Apache-2.0
// Boxes are where upstream's objectdetectionoverlay draws them.
#include "tests/gst/overlay_harness.h"

namespace {

using namespace overlay_test;

struct Extent {
    int left = 1 << 20, top = 1 << 20, right = -1, bottom = -1;
};
// Where green pixels are.
Extent extent(GstBuffer* buffer, int width, int height) {
    const auto bytes = bytes_of(buffer);
    Extent e;
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            if (bytes[static_cast<size_t>(y * width + x) * 4 + 1] < 128) continue;
            e.left = std::min(e.left, x), e.right = std::max(e.right, x);
            e.top = std::min(e.top, y), e.bottom = std::max(e.bottom, y);
        }
    }
    return e;
}

TEST(OverlayPeer, DrawsBoxesWhereUpstreamDoes) {
    constexpr int width = 320, height = 200;
    GstElement* upstream = gst_element_factory_make("objectdetectionoverlay", nullptr);
    if (!upstream) GTEST_SKIP() << "the plugin analyticsoverlay is not here";
    gst_object_ref_sink(upstream);
    g_object_set(upstream, "object-detection-outline-color", 0xff00ff00u, "draw-labels", FALSE,
                 nullptr);
    GstElement* ours =
        GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_OVERLAY, nullptr)));
    gst_util_set_object_arg(G_OBJECT(ours), "draw", "boxes");
    gst_util_set_object_arg(G_OBJECT(ours), "color-mode", "fixed");
    g_object_set(ours, "line-width", 2, nullptr);  // as upstream's
    std::vector<Extent> extents;
    for (GstElement* element : {upstream, ours}) {
        GstHarness* h = gst_harness_new_with_element(element, "sink", "src");
        gst_harness_set_src_caps_str(h,
                                     "video/x-raw,format=BGRx,width=320,height=200,framerate=30/1");
        for (const auto& [x, y, w, bh] : {std::array{50, 40, 100, 80}, {101, 33, 51, 77}}) {
            GstBuffer* in = gst_buffer_new_allocate(nullptr, width * height * 4, nullptr);
            gst_buffer_memset(in, 0, 0, width * height * 4);
            add_od(in, x, y, w, bh);
            const Buffer out(gst_harness_push_and_pull(h, in));
            extents.push_back(extent(out.get(), width, height));
        }
        gst_harness_teardown(h);
        gst_object_unref(element);
    }
    for (size_t i = 0; i < 2; ++i) {
        const Extent &want = extents[i], &got = extents[i + 2];
        EXPECT_EQ(got.left, want.left);
        EXPECT_EQ(got.top, want.top);
        EXPECT_EQ(got.right, want.right);
        EXPECT_EQ(got.bottom, want.bottom);
        EXPECT_GT(want.right, want.left + 50);
    }
}

}  // namespace
