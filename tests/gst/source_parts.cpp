// SPDX-License-Identifier: Apache-2.0
// Parts of vartmlsrc: addresses, what of them may be shown, times, pauses, the gate.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "gst/source/gate.h"
#include "gst/source/keeper.h"
#include "gst/source/timeline.h"
#include "gst/support/address.h"
#include "tests/support/gst_main.h"

namespace {

using namespace vartml::gst;

struct Shown {
    const char *text, *shown;
};
constexpr Shown shown[] = {
    {"rtsp://cam/stream", "rtsp://cam/stream"},
    {"rtsp://cam:554/stream", "rtsp://cam:554/stream"},
    {"rtsp://admin:secret@cam:554/stream", "rtsp://cam:554/stream"},
    {"rtsp://admin@cam/stream", "rtsp://cam/stream"},
    {"rtsp://admin:se@cret@cam/stream", "rtsp://cam/stream"},
    {"rtsp://admin:se/cret@cam/stream", "rtsp://cam/stream"},
    {"rtsp://admin:se#cret?@cam/stream", "rtsp://cam/stream"},
    {"rtsp://[fe80::1]:554/a@b", "rtsp://[fe80::1]:554/a@b"},
    {"rtsp://cam:554/a@b", "rtsp://cam:554/a@b"},
    {"rtsp://cam/live?user=a&password=secret&ch=1", "rtsp://cam/live?user=a&password=***&ch=1"},
    {"rtsp://cam/user=a_password=secret_channel=1", "rtsp://cam/user=a_password=***"},
    {"http://cam/video?Token=abc", "http://cam/video?Token=***"},
    {"srt://cam:9?passphrase=secret&mode=caller", "srt://cam:9?passphrase=***&mode=caller"},
    {"http://cam/v.cgi?loginuse=a&loginpas=secret", "http://cam/v.cgi?loginuse=a&loginpas=***"},
    {"rtsp://cam/user=a&psw=secret&ch=1", "rtsp://cam/user=a&psw=***&ch=1"},
    {"http://cam/v?auth=c2VjcmV0=&x=1", "http://cam/v?auth=***&x=1"},
    {"http://cam/v?key=secret&sig=secret", "http://cam/v?key=***&sig=***"},
    {"RTSP://ADMIN:SECRET@cam/", "RTSP://cam/"},
    {"/dev/video0", "/dev/video0"},
    {"a file@home", "a file@home"},
    {"", ""},
};

TEST(SourceAddress, IsShownWithoutUserPasswordAndTokens) {
    for (const Shown& row : shown) EXPECT_EQ(without_login(row.text), row.shown) << row.text;
}

TEST(SourceAddress, GivesLoginAndKind) {
    const auto rtsp = parse_address("rtsp://ad%40min:p%3Ass@cam:554/stream?token=abc");
    ASSERT_TRUE(rtsp);
    EXPECT_EQ(rtsp->kind, AddressKind::rtsp);
    EXPECT_EQ(rtsp->uri, "rtsp://cam:554/stream?token=abc");
    EXPECT_EQ(rtsp->user, "ad@min");
    EXPECT_EQ(rtsp->password, "p:ss");
    EXPECT_TRUE(rtsp->live());
    EXPECT_EQ(rtsp->scrub("no rtsp://cam:554/stream?token=abc for p:ss or p%3Ass, abc"),
              "no rtsp://cam:554/stream?token=*** for *** or ***, ***");
    const auto flag = parse_address("http://cam/v?auth=1");
    ASSERT_TRUE(flag);
    EXPECT_EQ(flag->scrub("no 1 of 11"), "no 1 of 11");
    struct Row {
        const char* text;
        AddressKind kind;
        const char* path;
    };
    for (const Row& row :
         std::vector<Row>{{"file:///a%20b.mp4", AddressKind::file, "/a b.mp4"},
                          {"file://localhost/a.mp4", AddressKind::file, "/a.mp4"},
                          {"/a/b.mp4", AddressKind::file, "/a/b.mp4"},
                          {"/dev/video3", AddressKind::device, "/dev/video3"},
                          {"v4l2:///dev/video3", AddressKind::device, "/dev/video3"},
                          {"https://host/a.mp4", AddressKind::http, ""},
                          {"srt://host:1", AddressKind::other, ""}}) {
        const auto address = parse_address(row.text);
        ASSERT_TRUE(address) << row.text;
        EXPECT_EQ(address->kind, row.kind) << row.text;
        EXPECT_EQ(address->path, row.path) << row.text;
    }
}

TEST(SourceAddress, ThatNamesNoHostIsRefusedWithoutItsPassword) {
    EXPECT_FALSE(parse_address(""));
    const auto none = parse_address("rtsp://admin:secret@/stream");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().message,
              "property 'uri' is 'rtsp:///stream', which names no host; write rtsp://HOST/PATH");
}

constexpr GstClockTime s = GST_SECOND, frame = GST_SECOND / 10;

TEST(SourceTimeline, KeepsTimesOfALiveSourceThatArePlausible) {
    Timeline line;
    line.begin(true, false);
    EXPECT_EQ(line.map(2 * s, 2 * s + frame, frame), 2 * s);
    EXPECT_EQ(line.map(2 * s + frame, 2 * s + 2 * frame, frame), 2 * s + frame);
    line.begin(true, true);
    EXPECT_EQ(line.map(9 * s, 9 * s + frame, frame), 9 * s) << "after an outage";
    EXPECT_EQ(line.offset(), 0);
}

TEST(SourceTimeline, GivesALiveSourceTheClocksTimeWhereItsOwnIsNot) {
    Timeline line;
    line.begin(true, false);
    EXPECT_EQ(line.map(0, 20 * s, frame), 20 * s) << "it counts from its own beginning";
    EXPECT_EQ(line.map(frame, 20 * s + frame, frame), 20 * s + frame);
    EXPECT_EQ(line.map(3600 * s, 21 * s, frame), 21 * s) << "its clock was set";
    EXPECT_EQ(line.map(3600 * s + frame, 21 * s + frame, frame), 21 * s + frame);
    EXPECT_EQ(line.map(std::nullopt, 22 * s, frame), 22 * s) << "it has none";
}

TEST(SourceTimeline, NeverGoesBack) {
    Timeline line;
    line.begin(true, false);
    EXPECT_EQ(line.map(5 * s, 5 * s, frame), 5 * s);
    EXPECT_EQ(line.map(4 * s, 5 * s, frame), 5 * s + 1);
    EXPECT_EQ(line.map(4 * s + frame, 5 * s + frame, frame), 5 * s + 1 + frame);
    line.begin(true, true);
    EXPECT_EQ(line.map(2 * s, 5 * s, frame), 5 * s + 2 + frame);
    EXPECT_EQ(line.map(std::nullopt, std::nullopt, frame), 5 * s + 2 + 2 * frame);
}

TEST(SourceTimeline, PutsWhatIsNotLiveOneAfterTheOther) {
    Timeline line;
    line.begin(false, false);
    EXPECT_EQ(line.map(s, std::nullopt, frame), s) << "as it is";
    EXPECT_EQ(line.map(s + frame, 9 * s, frame), s + frame);
    line.begin(false, false);
    EXPECT_EQ(line.map(s, 9 * s, frame), s + 2 * frame) << "where the last frame ended";
    line.begin(false, true);
    EXPECT_EQ(line.map(0, 9 * s, frame), 9 * s) << "after an outage not in the past";
}

TEST(SourceTimeline, TakesTheLengthOfFramesFromTheirDistance) {
    Timeline line;
    line.begin(false, false);
    EXPECT_EQ(line.map(0, std::nullopt, GST_CLOCK_TIME_NONE), 0u);
    EXPECT_EQ(line.map(frame, std::nullopt, GST_CLOCK_TIME_NONE), frame);
    line.begin(false, false);
    EXPECT_EQ(line.map(0, std::nullopt, GST_CLOCK_TIME_NONE), 2 * frame);
    EXPECT_EQ(line.map(frame, std::nullopt, GST_CLOCK_TIME_NONE), 3 * frame);
}

TEST(SourceRetry, WaitsLongerUpToItsBoundAndLongForACameraThatRefuses) {
    for (const auto& [cause, n, delay] :
         std::vector<std::tuple<Cause, unsigned, unsigned>>{{Cause::lost, 1, 100},
                                                            {Cause::lost, 2, 200},
                                                            {Cause::silent, 3, 400},
                                                            {Cause::lost, 4, 700},
                                                            {Cause::lost, 1000, 700},
                                                            {Cause::refused, 1, 1000},
                                                            {Cause::refused, 5, 16000},
                                                            {Cause::unreadable, 1000, 30000}}) {
        EXPECT_EQ(retry_delay_ms(cause, n, 700, 1), delay) << n;
        EXPECT_EQ(retry_delay_ms(cause, n, 700, 0), delay / 2) << n;
    }
}

class SourceGate : public testing::Test {
protected:
    void open(bool repeats) {
        gate_ = GST_ELEMENT(gst_object_ref_sink(make_gate()));
        gate_start(
            gate_, false, repeats, 0,
            {.frame = [](bool) {}, .end = [] {}, .refused = [](GstFlowReturn) {}, .idle = [] {}});
        harness_ = gst_harness_new_with_element(gate_, "sink", "src");
        gst_harness_set_src_caps_str(harness_,
                                     "video/x-raw,format=GRAY8,width=4,height=4,framerate=25/1");
    }
    void TearDown() override {
        if (harness_) gst_harness_teardown(harness_);
        gst_clear_object(&gate_);
        harness_ = nullptr;
    }
    GstElement* gate_ = nullptr;
    GstHarness* harness_ = nullptr;
};

// As after a seek to the middle of a frame.
TEST_F(SourceGate, ShowsTheRestOfAFrameThatReachesIntoTheSegment) {
    open(false);
    constexpr GstClockTime step = 40 * GST_MSECOND;
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = segment.time = step + step / 4;
    ASSERT_TRUE(gst_harness_push_event(harness_, gst_event_new_segment(&segment)));
    for (GstClockTime n = 0; n < 3; ++n) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 16, nullptr);
        GST_BUFFER_PTS(buffer) = n * step;
        GST_BUFFER_DURATION(buffer) = step;
        ASSERT_EQ(gst_harness_push(harness_, buffer), GST_FLOW_OK);
    }
    const struct {
        GstClockTime pts, duration;
    } want[] = {{0, step * 3 / 4}, {step * 3 / 4, step}};
    ASSERT_EQ(gst_harness_buffers_received(harness_), std::size(want));
    for (const auto& one : want) {
        GstBuffer* buffer = gst_harness_pull(harness_);
        EXPECT_EQ(GST_BUFFER_PTS(buffer), one.pts);
        EXPECT_EQ(GST_BUFFER_DURATION(buffer), one.duration);
        gst_buffer_unref(buffer);
    }
}

TEST_F(SourceGate, HasADurationWhereTheStreamEndsWithTheConnection) {
    for (const bool repeats : {false, true}) {
        open(repeats);
        gst_pad_set_query_function(
            harness_->srcpad, +[](GstPad* pad, GstObject* parent, GstQuery* query) -> gboolean {
                if (GST_QUERY_TYPE(query) != GST_QUERY_DURATION)
                    return gst_pad_query_default(pad, parent, query);
                gst_query_set_duration(query, GST_FORMAT_TIME, GST_SECOND);
                return TRUE;
            });
        gint64 duration = 0;
        EXPECT_EQ(gst_pad_peer_query_duration(harness_->sinkpad, GST_FORMAT_TIME, &duration),
                  !repeats);
        EXPECT_EQ(duration, repeats ? -1 : gint64(GST_SECOND));
        TearDown();
    }
}

}  // namespace
