// SPDX-License-Identifier: Apache-2.0
// What bf16 costs in the end: boxes of a detector computed in bf16 against those of fp32, on frames
// of a film. usage: bf16_boxes MODEL.onnx FILM
// Prints: frames, boxes, boxes that are not found again within the accuracy target (IoU 0.95, score
// 0.03), the worst IoU and difference of scores of those that are found. A processor without bf16
// has the same arithmetic, slower.
#include <gst/app/gstappsink.h>
#include <gst/video/video.h>

#include <vartml/compile.h>
#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vart/vart_runner_factory.hpp>

#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

constexpr unsigned step = 6;  // every 6th frame of the film
constexpr float least_iou = 0.95F, most_difference = 0.03F;

void must(bool good, const std::string& what) {
    if (good) return;
    std::fprintf(stderr, "bf16_boxes: %s\n", what.c_str());
    std::exit(1);
}

// A compiled detector from a frame to boxes.
class Detector {
public:
    Detector(const std::string& onnx, const std::string& cache, const char* compiled_as,
             const char* numerics) {
        auto compiled = compile_onnx(
            onnx,
            {.cache_dir = cache, .arguments = {"--numerics", compiled_as, "--decoder", "yolox"}});
        must(bool(compiled), compiled ? "" : compiled.error().message);
        model_ = *open_model(compiled->path);
        info_ = *parse_modelinfo(model_.modelinfo, "");
        runner_ = vart::RunnerFactory::create_runner(
            vart::RunnerType::VAIML, compiled->path,
            {{"vartml_numerics", std::string(numerics)}, {"log_level", std::string("ERROR")}});
        for (auto [direction, tensors] : {std::pair(vart::TensorDirection::INPUT, &inputs_),
                                          std::pair(vart::TensorDirection::OUTPUT, &outputs_)}) {
            auto& list = tensors->emplace_back();
            for (const auto& info : runner_->get_tensors_info(direction, vart::TensorType::HW))
                list.push_back(runner_->allocate_npu_tensor(info));
        }
        const auto& shape = model_.inputs[0].cpu.shape;
        height_ = static_cast<uint32_t>(shape[2]);
        width_ = static_cast<uint32_t>(shape[3]);
        decoder_ =
            std::make_unique<Decoder>(*Decoder::create(info_, model_.outputs, width_, height_, {}));
    }

    std::string compute_type() const {
        return std::any_cast<std::string>(runner_->get_property("compute_type"));
    }

    std::vector<Detection> operator()(const PictureInfo& format, const Picture& picture) {
        const TensorInfo& input = model_.inputs[0];
        auto preprocessor = Preprocessor::create(
            format, {}, input.cpu, *input.hw,
            preprocess_options(info_, find_decoder_family("yolox"), input.name));
        preprocessor->run(picture, inputs_[0][0].get_virtual_address());
        must(runner_->execute(inputs_, outputs_) == vart::StatusCode::SUCCESS, "a run failed");
        const TensorInfo& output = model_.outputs[0];
        const OutputTensor tensor{outputs_[0][0].get_virtual_address(), output.name, &*output.hw,
                                  &output.cpu};
        Decoded decoded;
        must(bool(decoder_->decode({&tensor, 1}, preprocessor->to_frame(), format.width,
                                   format.height, decoded)),
             "decoding failed");
        return decoded.detections;
    }

private:
    ModelDescription model_;
    ModelInfo info_;
    std::shared_ptr<vart::Runner> runner_;
    std::vector<std::vector<vart::NpuTensor>> inputs_, outputs_;
    uint32_t width_ = 0, height_ = 0;
    std::unique_ptr<Decoder> decoder_;
};

// Calls `use` with each frame of a film.
void for_each_frame(const std::string& film,
                    const std::function<void(const PictureInfo&, const Picture&)>& use) {
    gst_init(nullptr, nullptr);
    const std::string line = "filesrc location=" + film +
                             " ! decodebin ! videoconvert ! video/x-raw,format=NV12 ! appsink "
                             "name=sink sync=false";
    GstElement* const pipeline = gst_parse_launch(line.c_str(), nullptr);
    must(pipeline != nullptr, "GStreamer has no elements for " + line);
    GstElement* const sink = gst_bin_get_by_name(GST_BIN(pipeline), "sink");
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    while (GstSample* sample = gst_app_sink_pull_sample(GST_APP_SINK(sink))) {
        GstVideoInfo video;
        GstVideoFrame frame;
        gst_video_info_from_caps(&video, gst_sample_get_caps(sample));
        must(gst_video_frame_map(&frame, &video, gst_sample_get_buffer(sample), GST_MAP_READ),
             "a frame cannot be mapped");
        PictureInfo info;
        info.format = PixelFormat::NV12;
        info.width = static_cast<uint32_t>(video.width);
        info.height = static_cast<uint32_t>(video.height);
        Picture picture;
        for (size_t p = 0; p < 2; ++p) {
            picture.planes[p] = static_cast<const uint8_t*>(frame.data[p]);
            picture.stride_bytes[p] = static_cast<uint32_t>(frame.info.stride[p]);
        }
        use(info, picture);
        gst_video_frame_unmap(&frame);
        gst_sample_unref(sample);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(sink);
    gst_object_unref(pipeline);
}

float iou(const Detection& a, const Detection& b) {
    const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (width <= 0 || height <= 0) return 0;
    const auto area = [](const Detection& d) { return (d.x1 - d.x0) * (d.y1 - d.y0); };
    return width * height / (area(a) + area(b) - width * height);
}

// How a box is found again: the nearest of its class.
struct Match {
    float iou = 0, difference = 1;
};
Match match(const Detection& box, const std::vector<Detection>& others) {
    Match best;
    for (const Detection& other : others)
        if (other.class_id == box.class_id && iou(box, other) > best.iou)
            best = {iou(box, other), std::abs(box.score - other.score)};
    return best;
}

}  // namespace
}  // namespace vartml

int main(int argc, char** argv) {
    using namespace vartml;
    if (argc != 3) return 2;
    const test::TempDir dir;
    Detector exact(argv[1], dir.path(), "f32", "f32"), coarse(argv[1], dir.path(), "auto", "bf16");
    must(exact.compute_type() == "fp32" && coarse.compute_type() == "bf16",
         "types are not as asked for");
    unsigned number = 0, frames = 0, boxes = 0, bad = 0;
    Match worst{1, 0};
    for_each_frame(argv[2], [&](const PictureInfo& info, const Picture& picture) {
        if (number++ % step != 0) return;
        ++frames;
        const auto a = exact(info, picture), b = coarse(info, picture);
        for (const auto& [these, those] : {std::pair(&a, &b), std::pair(&b, &a)}) {
            for (const Detection& box : *these) {
                // A box at the threshold may be below it in the other type.
                if (box.score < find_decoder_family("yolox")->score_threshold + most_difference)
                    continue;
                ++boxes;
                const Match found = match(box, *those);
                if (found.iou == 0) {
                    ++bad;
                    continue;
                }
                worst.iou = std::min(worst.iou, found.iou);
                worst.difference = std::max(worst.difference, found.difference);
                if (found.iou < least_iou || found.difference > most_difference) ++bad;
            }
        }
    });
    std::printf("%u %u %u %.4f %.4f\n", frames, boxes, bad, static_cast<double>(worst.iou),
                static_cast<double>(worst.difference));
    return 0;
}
