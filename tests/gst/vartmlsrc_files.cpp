// SPDX-License-Identifier: Apache-2.0
// vartmlsrc and what is no camera over RTSP: files, devices, an HTTP server in a process of its
// own.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/gst/viewer.h"
#include "tests/support/child.h"
#include "tests/support/free_port.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml::test;

class VartmlSrcFile : public testing::Test {
protected:
    static void make(const std::string& line) {
        GstElement* pipeline = gst_parse_launch(line.c_str(), nullptr);
        ASSERT_NE(pipeline, nullptr);
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
        GstBus* bus = gst_element_get_bus(pipeline);
        GstMessage* end = gst_bus_timed_pop_filtered(
            bus, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
        EXPECT_EQ(GST_MESSAGE_TYPE(end), GST_MESSAGE_EOS);
        gst_message_unref(end);
        gst_object_unref(bus);
        gst_element_set_state(pipeline, GST_STATE_NULL);
        gst_object_unref(pipeline);
    }
    void SetUp() override {
        make(
            "videotestsrc num-buffers=10 ! video/x-raw,width=64,height=48,framerate=10/1 ! "
            "jpegenc ! matroskamux name=mux ! filesink location=" +
            film_ + " audiotestsrc num-buffers=40 ! vorbisenc ! mux.");
        make(
            "videotestsrc num-buffers=1 ! video/x-raw,width=64,height=48 ! jpegenc ! filesink "
            "location=" +
            picture_);
    }
    TempDir dir_;
    const std::string film_ = dir_ / "film.mkv", picture_ = dir_ / "picture.jpg";
};

TEST_F(VartmlSrcFile, EndsTheStream) {
    for (const std::string& uri : {film_, "file://" + film_}) {
        Viewer viewer(uri);
        viewer.play();
        viewer.wait_for(GST_MESSAGE_EOS);
        EXPECT_EQ(viewer.times().size(), 10u);
        EXPECT_EQ(viewer.stat("state"), "ended");
    }
}

TEST_F(VartmlSrcFile, IsRepeatedWithTimesThatGoOn) {
    Viewer viewer(film_, "at-end=repeat");
    viewer.play();
    viewer.wait_for_frames(35);
    viewer.set_state(GST_STATE_READY);
    const auto times = viewer.times();
    for (size_t i = 1; i < times.size(); ++i)
        EXPECT_EQ(times[i] - times[i - 1], 100 * GST_MSECOND) << i;
}

TEST_F(VartmlSrcFile, ThatCannotBeReadIsAnErrorAtOnce) {
    spill(dir_ / "text.mkv",
          "no film, but enough words for a file of text to be recognised as one");
    for (const auto& [name, why] :
         {std::pair{"absent.mkv", "Resource not found"}, {"text.mkv", "no picture"}}) {
        Viewer viewer(dir_ / name);
        viewer.play();
        const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
        EXPECT_TRUE(said.starts_with("Could not read the file: " + dir_ / name)) << said;
        EXPECT_EQ(viewer.stat("state"), "failed");
    }
}

TEST_F(VartmlSrcFile, OfSoundAloneHasNoPicture) {
    const std::string sound = dir_ / "sound.mkv";
    make("audiotestsrc num-buffers=10 ! vorbisenc ! matroskamux ! filesink location=" + sound);
    Viewer viewer(sound);
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_TRUE(said.ends_with("there is no picture in it, only sound")) << said;
}

TEST_F(VartmlSrcFile, WhoseFormatsNobodyTakesIsAnErrorThatSaysWhatHelps) {
    Viewer viewer(film_, "", "video/x-raw,format=GRAY16_LE");
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_NE(said.find("put videoconvert after vartmlsrc"), std::string::npos) << said;
    Viewer converted(film_, "", "videoconvert ! video/x-raw,format=GRAY16_LE");
    converted.play();
    converted.wait_for(GST_MESSAGE_EOS);
}

TEST_F(VartmlSrcFile, OfAnHttpServerEndsAndItsCameraIsConnectedAgain) {
    gchar* python = g_find_program_in_path("python3");
    GstElementFactory* soup = gst_element_factory_find("souphttpsrc");
    if (!python || !soup) GTEST_SKIP() << "python3 or souphttpsrc is not installed";
    gst_object_unref(soup);
    const FreePort port;
    Child server;
    server.start({python, VARTML_HTTP_CAMERA, std::to_string(port.number()), film_, picture_});
    g_free(python);
    ASSERT_EQ(server.line(), "ready");
    const std::string host = "http://127.0.0.1:" + std::to_string(port.number());
    Viewer film(host + "/film");
    film.play();
    film.wait_for(GST_MESSAGE_EOS);
    EXPECT_EQ(film.times().size(), 10u);

    Viewer camera(host + "/camera");
    camera.play();
    camera.wait_for_frames(5);
    server.tell("drop");
    camera.wait_for_state("waiting");
    camera.wait_for_state("playing");
    camera.wait_for_frames(5);
    camera.expect_one_stream(2);
}

TEST_F(VartmlSrcFile, ThatRepeatsEndsWhenTheApplicationSendsEos) {
    Viewer viewer(film_, "at-end=repeat");
    viewer.play();
    viewer.wait_for_frames(25);
    EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
    viewer.wait_for(GST_MESSAGE_EOS);
}

// So often that the thread that closes a connection is there long before the last change.
void change_often(Viewer& viewer, GstState other, int times) {
    for (int i = 0; i < times; ++i) {
        viewer.set_state(other);
        viewer.set_state(GST_STATE_PAUSED);
    }
}

TEST_F(VartmlSrcFile, IsPausedAfterTheApplicationHasSentEos) {
    for (const bool stops : {false, true}) {
        Viewer viewer(film_, "at-end=repeat");
        viewer.set_state(GST_STATE_PAUSED);
        gst_element_get_state(viewer.pipeline(), nullptr, nullptr, GST_CLOCK_TIME_NONE);
        EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
        change_often(viewer, GST_STATE_PAUSED, 20000);
        if (stops) continue;
        viewer.play();
        viewer.wait_for(GST_MESSAGE_EOS);
    }
}

// What follows holds a frame, as a sink does that was paused first.
TEST_F(VartmlSrcFile, IsPausedWhileAConnectionIsClosed) {
    for (const bool is_lost : {false, true}) {
        Viewer viewer(film_, "at-end=repeat");
        // Else a sink without a frame keeps the pipeline from every change that follows.
        gst_util_set_object_arg(G_OBJECT(viewer.sink()), "async", "false");
        for (const bool stops : {true, false}) {
            viewer.play();
            viewer.wait_for_frames(3);
            {
                Holder holder(viewer);
                holder.wait_for_frame();
                if (is_lost) {
                    GstElement* const source =
                        gst_bin_get_by_name(GST_BIN(viewer.element()), "source");
                    GST_ELEMENT_ERROR(source, RESOURCE, READ, ("The disk is gone"), (nullptr));
                    gst_object_unref(source);
                } else {
                    EXPECT_TRUE(gst_element_send_event(viewer.pipeline(), gst_event_new_eos()));
                }
                change_often(viewer, GST_STATE_PLAYING, 2000);
                holder.release();
            }
            if (stops) {
                viewer.set_state(GST_STATE_READY);
                viewer.forget_messages();
                continue;
            }
            viewer.play();
            if (is_lost) {
                const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
                EXPECT_NE(said.find("The disk is gone"), std::string::npos) << said;
            } else {
                viewer.wait_for(GST_MESSAGE_EOS);
            }
        }
    }
}

TEST(VartmlSrc, WaitsForADeviceThatIsNotThere) {
    Viewer viewer("/dev/video-none");
    viewer.play();
    EXPECT_NE(viewer.wait_for(GST_MESSAGE_WARNING).find("/dev/video-none"), std::string::npos);
}

TEST(VartmlSrc, RefusesAnAddressThatIsNone) {
    for (const auto& [uri, why] :
         {std::pair{"", "'uri' is not set"}, {"rtsp://a:secret@/x", "names no host"}}) {
        Viewer viewer(uri);
        EXPECT_EQ(viewer.set_state(GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
        EXPECT_NE(said.find(why), std::string::npos) << said;
    }
    Viewer viewer("nosuch://a:secret@host/x", "");
    viewer.play();
    const std::string said = viewer.wait_for(GST_MESSAGE_ERROR);
    EXPECT_NE(said.find("no installed source takes"), std::string::npos) << said;
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

}  // namespace
