// SPDX-License-Identifier: Apache-2.0
// GStreamer's half of the demo: runs pipelines to their end and turns what goes wrong into one
// sentence.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <vartml/result.h>

#include "pipelines/apps/demo/canvas.h"
#include "pipelines/apps/demo/scene.h"

namespace demo {

struct GstObjectUnref {
    void operator()(gpointer object) const { gst_object_unref(object); }
};
struct GstSampleUnref {
    void operator()(GstSample* sample) const { gst_sample_unref(sample); }
};
using ElementPtr = std::unique_ptr<GstElement, GstObjectUnref>;
using SamplePtr = std::unique_ptr<GstSample, GstSampleUnref>;

// A pipeline from its text. Errors: not_found naming a missing element.
vartml::Result<ElementPtr> make_pipeline(const std::string& text);
// The named element of a pipeline, which must have it.
ElementPtr element_of(GstElement* pipeline, const char* name);

// good: as a camera has it, 10 Mbit/s; small: fit for a mail, 2.3 Mbit/s; live: without delay.
enum class Encoding : uint8_t { good, small, live };
// "x264enc ..." ready for a pipeline text: the first H.264 encoder that is installed, with its
// options. Errors: not_found.
vartml::Result<std::string> h264_encoder(Encoding encoding);

// Plays the pipeline to end of stream; Ctrl-C ends the stream, so that files are complete.
// `finished` is called before the pipeline is taken down. Progress of the model's compilation and
// warnings go to standard error. Returns whether the user interrupted it.
vartml::Result<bool> play(GstElement* pipeline, const std::function<void()>& finished = {});

// Ends the stream of the pipeline from any thread.
void end_stream(GstElement* pipeline);

// Whether the user has such a camera. Errors: not_found, with the way out.
vartml::Result<void> check_camera(const std::string& device);

// The first frame at `seconds` of a picture or video file, of the size given.
vartml::Result<Picture> load_picture(const std::string& file, int width, int height,
                                     double seconds);

// Writes the sample as a PNG file.
vartml::Result<void> write_png(GstSample* sample, const std::string& file);

}  // namespace demo
