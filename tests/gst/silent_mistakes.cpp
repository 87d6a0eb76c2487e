// SPDX-License-Identifier: Apache-2.0
// Pipelines that run well and do nothing: the element that has nothing to work on, or labels that
// no model has, says so once, and a pipeline in which all is right says nothing.
#include <gst/gst.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace {

using vartml::test::spill;
using vartml::test::TempDir;
using vartml::test::TinyOnnx;

// A classifier of three classes on pictures of 16x16, and their names.
class Kitchen {
public:
    Kitchen() {
        TinyOnnx m;
        m.input("images", {1, 3, 16, 16}).weights("w", {3, 3, 3, 3});
        m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
            .node("GlobalAveragePool", {"c"}, {"p"})
            .node("Flatten", {"p"}, {"scores"})
            .output("scores")
            .save(dir_ / "m.onnx");
        spill(dir_ / "names", "cat\ndog\nbird\n");
        spill(dir_ / "sidecar",
              "[modelinfo]\nx-vartml-decoder=classify\nx-vartml-labels=cat;dog;bird\n");
    }
    std::string infer() const {
        return "vartmlinfer preprocess=\"mean=0 scale=1\" model=" + (dir_ / "m.onnx") +
               " cache-dir=" + (dir_ / "cache");
    }
    std::string infer_described() const {
        return infer() + " modelinfo-file=" + (dir_ / "sidecar");
    }
    std::string decode() const {
        return "vartmldecode decoder=classify label-file=" + (dir_ / "names");
    }

private:
    TempDir dir_;
};

GstPadProbeReturn drop_metadata(GstPad*, GstPadProbeInfo* info, gpointer) {
    GstBuffer* const buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    GST_PAD_PROBE_INFO_DATA(info) = gst_buffer_copy_region(
        buffer,
        GstBufferCopyFlags(GST_BUFFER_COPY_MEMORY | GST_BUFFER_COPY_TIMESTAMPS |
                           GST_BUFFER_COPY_FLAGS),
        0, gst_buffer_get_size(buffer));
    gst_buffer_unref(buffer);
    return GST_PAD_PROBE_OK;
}

// Sentences of the warnings of a pipeline that runs to its end. An element 'drop' lets no metadata
// pass: which ones of GStreamer do so depends on its version.
std::vector<std::string> warnings_of(const std::string& line) {
    std::vector<std::string> warnings;
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
    if (!pipeline || error) {
        ADD_FAILURE() << line << ": " << (error ? error->message : "no pipeline");
        return warnings;
    }
    if (GstElement* drop = gst_bin_get_by_name(GST_BIN(pipeline), "drop")) {
        GstPad* src = gst_element_get_static_pad(drop, "src");
        gst_pad_add_probe(src, GST_PAD_PROBE_TYPE_BUFFER, drop_metadata, nullptr, nullptr);
        gst_object_unref(src);
        gst_object_unref(drop);
    }
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    bool over = false;
    while (!over) {
        GstMessage* message = gst_bus_timed_pop_filtered(
            bus, GST_CLOCK_TIME_NONE,
            static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING));
        over = GST_MESSAGE_TYPE(message) != GST_MESSAGE_WARNING;
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
            gst_message_parse_error(message, &error, nullptr);
            ADD_FAILURE() << error->message;
            g_error_free(error);
        } else if (!over) {
            gst_message_parse_warning(message, &error, nullptr);
            warnings.emplace_back(error->message);
            g_error_free(error);
        }
        gst_message_unref(message);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    return warnings;
}

bool has_element(const char* name) {
    GstElementFactory* factory = gst_element_factory_find(name);
    if (factory) gst_object_unref(factory);
    return factory != nullptr;
}

struct Case {
    const char* why;
    std::string pipeline;            // behind the pictures
    std::vector<const char*> words;  // of the one warning; empty: there is none
    int frames = 40;
};

TEST(SilentMistakes, AreNamedOnce) {
    const Kitchen kitchen;
    const std::string infer = kitchen.infer(), decode = kitchen.decode();
    const std::string drop = "videobalance name=drop";
    const Case cases[] = {
        {"a decoder alone",
         decode + " ! fakesink",
         {"30 frames came without tensors", "no vartmlinfer stands before"}},
        {"a tracker alone", "vartmltrack ! fakesink", {"30 frames", "no vartmlinfer"}},
        {"an overlay alone", "vartmloverlay ! fakesink", {"30 frames", "no vartmlinfer"}},
        {"an overlay alone has its display to draw", "vartmloverlay hud=true ! fakesink", {}},
        {"the decoder was forgotten",
         infer + " ! queue ! vartmloverlay ! fakesink",
         {"no vartmldecode stands between"}},
        {"an element drops the tensors",
         infer + " ! " + drop + " ! " + decode + " ! fakesink",
         {"one of the elements between them drops it: videobalance 'drop'", "vartmlinfer"}},
        {"an element that crops drops the tensors",
         infer + " ! videobox left=8 name=cut ! " + decode + " ! fakesink",
         {"videobox 'cut' between them drops it", "vartmlinfer"}},
        {"an element drops the results, in a bin",
         infer + " ! " + decode + " ! ( " + drop + " ) ! queue ! vartmloverlay ! fakesink",
         {"one of the elements between them drops it: videobalance 'drop'"}},
        {"an element drops the results that would be published",
         infer + " ! " + decode + " ! " + drop +
             " ! vartmlpublish method=file location=/dev/null ! fakesink",
         {"30 frames came without results", "videobalance 'drop'"}},
        {"the decoder was forgotten before what publishes",
         infer + " ! vartmlpublish method=file location=/dev/null ! fakesink",
         {"no vartmldecode stands between"}},
        {"inferences that are published without results",
         infer + " ! vartmlpublish add-empty=true method=file location=/dev/null ! fakesink",
         {}},
        {"results that are published",
         infer + " ! " + decode + " ! vartmlpublish method=file location=/dev/null ! fakesink",
         {}},
        {"results that are published of every tenth frame",
         infer + " ! " + decode +
             " ! vartmlpublish every=10 method=file location=/dev/null ! fakesink",
         {}},
        {"results that a publisher is not to include",
         infer + " ! " + decode +
             " ! vartmlpublish include=tracks method=file location=/dev/null ! fakesink",
         {}},
        {"metadata of every tenth picture, of a model that finds no boxes",
         "tee name=t ! queue ! videorate ! video/x-raw,framerate=3/1 ! " + infer + " ! " + decode +
             " ! join.sink_meta vartmlmetajoin name=join ! vartmltrack ! fakesink t. ! queue ! "
             "join.sink_main",
         {}},
        {"too few frames to know", "vartmltrack ! fakesink", {}, 29},
        {"a model that finds no boxes",
         infer + " ! " + decode + " ! vartmltrack ! vartmloverlay ! fakesink",
         {}},
        {"the decoder that GStreamer finds",
         kitchen.infer_described() + " ! tensordecodebin ! vartmloverlay classes=cat ! fakesink",
         {}},
        {"labels that the model knows",
         infer + " ! " + decode +
             " ! vartmltrack classes=dog ! vartmloverlay classes=cat,bird ! fakesink",
         {}},
        {"a misspelt label of the overlay",
         infer + " ! " + decode + " ! queue ! vartmloverlay classes=cat,brid ! fakesink",
         {"'classes' has 'brid'", "known are bird, cat, dog"}},
        {"a misspelt label of the tracker",
         infer + " ! " + decode + " ! vartmltrack classes=persn ! fakesink",
         {"'classes' has 'persn'", "known are bird, cat, dog"}},
        {"a misspelt label of regions",
         infer + " ! " + decode + " ! " + infer +
             " inference-region=roi roi-classes=dgo ! fakesink",
         {"'roi-classes' has 'dgo'", "known are bird, cat, dog"}},
    };
    for (const Case& c : cases) {
        if (c.pipeline.find("tensordecodebin") != std::string::npos &&
            !has_element("tensordecodebin"))
            continue;  // before GStreamer 1.28
        if (GST_CHECK_VERSION(1, 28, 0) && c.pipeline.find("videobox") != std::string::npos)
            continue;  // takes them along there
        const std::vector<std::string> warnings = warnings_of(
            "videotestsrc num-buffers=" + std::to_string(c.frames) +
            " ! video/x-raw,format=RGBx,width=32,height=24,framerate=30/1 ! " + c.pipeline);
        std::string all;
        for (const std::string& w : warnings) all += w + "\n";
        EXPECT_EQ(warnings.size(), c.words.empty() ? 0u : 1u) << c.why << "\n" << all;
        for (const char* word : c.words)
            EXPECT_NE(all.find(word), std::string::npos) << c.why << ": " << word << "\n" << all;
    }
}

}  // namespace
