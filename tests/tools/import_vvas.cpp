// SPDX-License-Identifier: Apache-2.0
// vartml import-vvas as its users call it: launch line, sidecar, what is named, what is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <vartml/postprocess.h>

#include "tests/tools/compile_program.h"
#include "tests/tools/vvas_files.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using test::Finished;
using test::slurp;
using test::spill;
using Json = nlohmann::ordered_json;

// shelf.onnx, whose input is 'images', and names.txt are beside the configurations.
class ImportVvas : public test::Compile {
protected:
    void SetUp() override {
        Compile::SetUp();
        spill(dir_ / "names.txt", "cat\ntraffic light\n");
    }
    Finished import(const std::string& arguments) {
        const std::string command = "cd '" + dir_.path() + "' && '" + program_ + "' import-vvas " +
                                    arguments + " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(dir_ / "out.txt"),
                slurp(dir_ / "err.txt")};
    }
    Finished import_text(const std::string& text, const std::string& arguments = "") {
        if (!keeps_sidecar_) fs::remove(dir_ / "x.modelinfo");
        spill(dir_ / "x.json", text);
        return import("x.json " + arguments);
    }
    bool keeps_sidecar_ = false;  // of the import before
    ModelInfo sidecar(const std::string& name = "x.modelinfo") {
        auto info = parse_modelinfo(slurp(dir_ / name), dir_ / name);
        EXPECT_TRUE(info) << info.error().message;
        return info ? *info : ModelInfo{};
    }
};

TEST_F(ImportVvas, TurnsAClassifierForOnnxRuntimeIntoLineAndSidecar) {
    const Finished f = import_text(test::vvas_resnet);
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(
        f.out,
        "gst-launch-1.0 videotestsrc ! vartmlinfer model=shelf.onnx modelinfo-file=x.modelinfo "
        "cache-dir=cache ! vartmldecode top-k=5 ! vartmloverlay ! videoconvert ! autovideosink\n");
    EXPECT_EQ(slurp(dir_ / "x.modelinfo"),
              "[modelinfo]\nversion=1.0\nx-vartml-version=1\nx-vartml-decoder=classify\n"
              "x-vartml-labels=cat;traffic light;\nx-vartml-score-threshold=0\n"
              "x-vartml-activation=softmax\n\n"
              "[images]\ndir=input\nx-vartml-resize=stretch\nx-vartml-channels=rgb\n"
              "x-vartml-mean=123.675,116.28,103.53\nx-vartml-scale=0.017124,0.017507,0.017429\n");
    const ModelInfo info = sidecar();
    EXPECT_EQ(info.decoder, "classify");
    EXPECT_EQ(info.labels, (std::vector<std::string>{"cat", "traffic light"}));
}

// That of the model beside it may be somebody's work.
TEST_F(ImportVvas, ReplacesNoSidecarThatSaysSomethingElse) {
    keeps_sidecar_ = true;
    test::spill(dir_ / "x.modelinfo", "[modelinfo]\nx-vartml-decoder=yolox\n");
    const Finished refused = import_text(test::vvas_yolox, "--input images");
    EXPECT_EQ(refused.status, 2);
    EXPECT_NE(refused.err.find("x.modelinfo: is there and says something else"), std::string::npos)
        << refused.err;
    EXPECT_EQ(slurp(dir_ / "x.modelinfo"), "[modelinfo]\nx-vartml-decoder=yolox\n");
    EXPECT_EQ(import_text(test::vvas_yolox, "--input images -o x.modelinfo").status, 0);
    EXPECT_EQ(import_text(test::vvas_yolox, "--input images").status, 0) << "the same again";
}

TEST_F(ImportVvas, TurnsADetectorForVartIntoLineAndSidecar) {
    const Finished f = import_text(test::vvas_yolox, "--input images -o yolox.modelinfo");
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out,
              "gst-launch-1.0 videotestsrc ! vartmlinfer model=\"/etc/vai/models/yolox m.rai\" "
              "modelinfo-file=yolox.modelinfo output-tensor-type=hw "
              "runner-options=\"options,aie_columns_sharing=(boolean)false,start_column=(uint)8,"
              "cma_index=(int)1,config_json=(string)/etc/vai/vitisai_config.json\" "
              "batch-size=4 async-depth=30 ! vartmldecode nms=class-agnostic ! vartmloverlay ! "
              "videoconvert ! autovideosink\n");
    EXPECT_FALSE(fs::exists(dir_ / "x.modelinfo"));
    const ModelInfo info = sidecar("yolox.modelinfo");
    EXPECT_EQ(info.decoder, "yolox");
    EXPECT_NEAR(*info.score_threshold, 0.35, 1e-6);
    EXPECT_NEAR(*info.iou_threshold, 0.3, 1e-6);
    EXPECT_EQ(info.max_detections, 50u);
    EXPECT_EQ(info.strides, (std::vector<int>{8, 16, 32}));
    ASSERT_EQ(info.inputs.size(), 1u);
    const ModelInfo::Input& input = info.inputs[0];
    EXPECT_EQ(input.name, "images");
    EXPECT_EQ(input.resize, ResizeMode::letterbox_top_left);
    EXPECT_EQ(input.channels, ChannelOrder::bgr);
    EXPECT_EQ(input.pad, std::vector<float>{114});
    // In the order of the model: blue first.
    EXPECT_EQ(input.mean, (std::vector<float>{2, 1, 0}));
    EXPECT_EQ(input.scale, (std::vector<float>{0.25f, 0.5f, 1}));
}

TEST_F(ImportVvas, PutsThePreprocessingIntoTheLineWhereTheInputHasNoKnownName) {
    const Finished f = import_text(test::vvas_yolox);
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_NE(f.out.find(" preprocess=\"resize=letterbox-top-left channels=bgr mean=2,1,0 "
                         "scale=0.25,0.5,1 pad=114\" "),
              std::string::npos)
        << f.out;
    EXPECT_TRUE(sidecar().inputs.empty());
    EXPECT_NE(f.err.find("--input NAME puts it into the sidecar"), std::string::npos) << f.err;
}

TEST_F(ImportVvas, TurnsASecondLevelIntoRegions) {
    const Finished f = import_text(test::vvas_second_level, "--model shelf.onnx");
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_NE(
        f.out.find(" inference-region=roi roi-classes=\"car,traffic light\" roi-min-size=30 "),
        std::string::npos)
        << f.out;
    EXPECT_NE(
        f.err.find("'inference-level' is 2: put the elements of the level before it in front"),
        std::string::npos)
        << f.err;
    EXPECT_NE(
        f.err.find("left out: infer-config.input-obj-max-width (regions have no largest size"),
        std::string::npos)
        << f.err;
    EXPECT_NE(f.err.find("least width 40 and height 30"), std::string::npos) << f.err;
}

TEST_F(ImportVvas, TurnsAReleaseThatRanOnADpuIntoALineForTheOnnxModel) {
    spill(dir_ / "pp.json", test::vvas_dpu_preprocess);
    const Finished f =
        import_text(test::vvas_dpu, "--preprocess-config pp.json --model shelf.onnx");
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(
        f.out,
        "gst-launch-1.0 videotestsrc ! vartmlinfer model=shelf.onnx modelinfo-file=x.modelinfo "
        "batch-size=1 async-depth=64 ! vartmldecode classes=car,person ! vartmloverlay ! "
        "videoconvert ! autovideosink\n");
    const ModelInfo info = sidecar();
    EXPECT_EQ(info.decoder, "yolo-v5");
    EXPECT_EQ(info.max_detections, 3u);
    ASSERT_EQ(info.inputs.size(), 1u);
    EXPECT_EQ(info.inputs[0].resize, ResizeMode::letterbox);
    EXPECT_EQ(info.inputs[0].pad, std::vector<float>{128});
    EXPECT_TRUE(info.inputs[0].mean.empty());
    EXPECT_NE(f.err.find("'inference-max-queue' is 100; async-depth takes at most 64"),
              std::string::npos)
        << f.err;
}

TEST_F(ImportVvas, LeavesTheTensorsWhereNoFamilyDecodesThem) {
    const Finished f = import_text(test::vvas_oldest, "--model shelf.onnx");
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(
        f.out,
        "gst-launch-1.0 videotestsrc ! vartmlinfer model=shelf.onnx modelinfo-file=x.modelinfo "
        "! fakesink\n");
    EXPECT_EQ(sidecar().inputs[0].channels, ChannelOrder::bgr);  // what those releases assume
    EXPECT_NE(f.err.find("'kernel.config.model-class' is 'FACEDETECT'"), std::string::npos)
        << f.err;
}

TEST_F(ImportVvas, NamesEveryKeyThatItLeavesOut) {
    const Finished f = import_text(test::vvas_resnet);
    for (const char* key :
         {"preprocess-config.xclbin-location", "preprocess-config.library-name",
          "preprocess-config.library-config", "infer-config.onnxrt-config.input-tensor-layout",
          "infer-config.onnxrt-config.onnxrt-ep",
          "infer-config.onnxrt-config.vitisai-ep-config.config-file-path",
          "infer-config.onnxrt-config.vitisai-ep-config.cache-key"})
        EXPECT_NE(f.err.find(key), std::string::npos) << key << " in\n" << f.err;
    // What is switched off was not asked for.
    spill(dir_ / "dpu.json", test::vvas_dpu);
    const Finished dpu = import("dpu.json --model shelf.onnx");
    EXPECT_EQ(dpu.err.find("low-latency"), std::string::npos) << dpu.err;
    EXPECT_NE(dpu.err.find("kernel.config.float-feature, kernel.config.segoutfactor"),
              std::string::npos)
        << dpu.err;
}

struct Decoder {
    const char* library_config;
    const char* family;
};
const Decoder decoders[] = {
    {R"({"preset": "yolov5"})", "yolo-v5"},
    {R"({"preset": "yolo7"})", "yolo-v5"},
    {R"({"preset": "YOLOv8"})", "yolo-v8"},
    {R"({"preset": "yolo11"})", "yolo-v8"},
    {R"({"preset": "yolox"})", "yolox"},
    {R"({"preset": "yolov8", "has_objectness_score": true})", "yolo-v5"},  // explicit fields win
    {R"({"preset": "yolov5", "box_grid_decode": true})", "yolox"},
    {R"({"has_objectness_score": false})", "yolo-v8"},
    {R"({"box_grid_decode": true})", "yolox"},
    {R"({"conf_thresh": 0.5})", ""},  // by the shapes
};

TEST_F(ImportVvas, ChoosesTheFamilyByPresetAndFields) {
    Json json = Json::parse(test::vvas_yolox);
    for (const auto& [library_config, family] : decoders) {
        json["postprocess-config"]["library-config"] = Json::parse(library_config);
        const Finished f = import_text(json.dump());
        EXPECT_EQ(f.status, 0) << f.err;
        const ModelInfo info = sidecar();
        EXPECT_EQ(info.decoder, family) << library_config;
        EXPECT_EQ(info.max_detections, 300u);  // VVAS's own, as the IoU
        EXPECT_NEAR(*info.iou_threshold, 0.45, 1e-6);
        EXPECT_NE(f.out.find(" ! vartmldecode"), std::string::npos) << f.out;
    }
}

TEST_F(ImportVvas, TakesFramesForTheTensorWhereNothingPreprocesses) {
    const Finished there = import_text(test::vvas_tensor_frames);  // the model is on the board
    ASSERT_EQ(there.status, 0) << there.err;
    EXPECT_EQ(there.out,
              "gst-launch-1.0 videotestsrc ! vartmlinfer model=/opt/models/gate.rai "
              "modelinfo-file=x.modelinfo "
              "runner-options=\"options,aie_columns_sharing=(boolean)false,start_column=(uint)4\" "
              "input-is-tensor=yes preprocess=channels=rgb ! vartmldecode ! vartmloverlay ! "
              "videoconvert ! autovideosink\n");
    EXPECT_NE(there.err.find("so a frame is the input tensor already: put the source"),
              std::string::npos)
        << there.err;
    EXPECT_EQ(there.err.find("mean and scale"), std::string::npos) << there.err;

    test::TinyOnnx m;
    m.input("codes", {1, 3, 8, 8}, test::TinyOnnx::int8).output("y");
    m.floats("s", {}, {0.25f}).weights("w", {2, 3, 8, 8});
    m.node("DequantizeLinear", {"codes", "s"}, {"x"}).node("Conv", {"x", "w"}, {"y"});
    m.save(dir_ / "codes.onnx");
    const Finished here = import_text(test::vvas_tensor_frames, "--model codes.onnx");
    ASSERT_EQ(here.status, 0) << here.err;
    EXPECT_NE(here.out.find(" input-is-tensor=yes !"), std::string::npos) << here.out;
    ASSERT_EQ(sidecar().inputs.size(), 1u);
    EXPECT_EQ(sidecar().inputs[0].name, "codes");

    // No frame is a tensor of floats, and none a region.
    const Finished floats = import_text(test::vvas_tensor_frames, "--model shelf.onnx");
    ASSERT_EQ(floats.status, 0) << floats.err;
    EXPECT_EQ(floats.out.find("input-is-tensor"), std::string::npos) << floats.out;
    EXPECT_NE(floats.err.find("has no 'preprocess-config', so frames are the input tensor there; "
                              "here input 'images' is fp32"),
              std::string::npos)
        << floats.err;
    Json regions = Json::parse(test::vvas_tensor_frames);
    regions["infer-config"]["inference-level"] = 2;
    EXPECT_EQ(import_text(regions.dump()).out.find("input-is-tensor"), std::string::npos);
}

TEST_F(ImportVvas, WarnsOfALabelFileOfTheBoard) {
    const Finished f = import_text(test::vvas_tensor_frames);
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_NE(f.err.find("label file '/opt/models/not-on-this-machine.txt' is not here"),
              std::string::npos)
        << f.err;
    EXPECT_TRUE(sidecar().labels.empty());
    const Finished given =
        import_text(test::vvas_tensor_frames, "--labels /opt/models/not-on-this-machine.txt");
    EXPECT_EQ(given.status, 1) << given.err;  // what was asked for by name
}

TEST_F(ImportVvas, LeavesOutACacheFolderOfTheBoard) {
    Json json = Json::parse(test::vvas_resnet);
    std::string folder = dir_.path();
    for (const bool there : {true, false}) {
        json["infer-config"]["onnxrt-config"]["vitisai-ep-config"]["cache-dir"] = folder;
        const Finished f = import_text(json.dump());
        EXPECT_EQ(f.status, 0) << f.err;
        EXPECT_EQ(f.out.find(" cache-dir=" + folder + " ") != std::string::npos, there) << f.out;
        EXPECT_EQ(f.err.find("cache folder '" + folder + "' is not here") == std::string::npos,
                  there)
            << f.err;
        folder += "/of/the/board";
    }
}

struct Type {
    const char *type, *family, *activation;
};
const Type types[] = {
    {"SOFTMAX", "classify", "softmax"},
    {"TOPK", "classify", "none"},
    {"ARGMAX", "classify", "none"},
    {"LABEL_MAPPING", "classify", "none"},
    {"NMS", "yolo-v5", ""},
    {"CLASSWISE_NMS", "yolo-v5", ""},
    {"OBJECT_COUNT", "yolo-v5", ""},
    {"SOFTMAXSEG", "segment", "softmax"},
    {"ARGMAXSEG", "segment", "none"},
    {"SIGMOIDSEG", "segment", "none"},
};

TEST_F(ImportVvas, ChoosesTheFamilyByTheTypeOfTheGeneralLibrary) {
    Json json = Json::parse(test::vvas_by_type);
    Json& library = json["postprocess-config"]["library-config"];
    for (const auto& [type, family, activation] : types) {
        library["type"] = type;
        library["topk"] = 5;
        const Finished f = import_text(json.dump());
        EXPECT_EQ(f.status, 0) << f.err;
        EXPECT_EQ(sidecar().decoder, family) << type;
        EXPECT_EQ(sidecar().activation, activation) << type;
        EXPECT_EQ(sidecar().labels.size(), 2u);
        const bool classifies = std::string_view(family) == "classify";
        EXPECT_EQ(f.out.find(" ! vartmldecode top-k=5 !") != std::string::npos, classifies)
            << f.out;
        EXPECT_EQ(f.err.find("library-config.topk (it concerns classifiers)") != std::string::npos,
                  !classifies)
            << f.err;
        EXPECT_EQ(f.err.find("post-process-print"), std::string::npos) << f.err;  // "false"
    }
    library["type"] = "SOFT_NMS";
    const Finished other = import_text(json.dump());
    EXPECT_EQ(other.status, 0) << other.err;
    EXPECT_NE(other.err.find("'postprocess-config.library-config.type' is 'SOFT_NMS', which no "
                             "decoder family stands for; known: SOFTMAX, TOPK"),
              std::string::npos)
        << other.err;
    EXPECT_TRUE(other.out.ends_with(" ! fakesink\n")) << other.out;
}

struct Head {
    const char *params, *family;
    std::vector<float> anchors;
    std::vector<int> strides;
    const char* activation = "";
};
const Head heads[] = {
    {R"({"is-obj-score-included": "true", "num-anchorboxes": [3, 3]})", "yolo-v5", {}, {}},
    {R"({"is-obj-score-included": true, "is-scaling-required": "true"})", "yolox", {}, {}},
    {R"({"is-obj-score-included": true, "is-scaling-required": "true",
         "grid-shape": [[4, 4], [8, 8]]})",
     "yolox",
     {},
     {2, 4}},
    {R"({"grid-shape": [[8, 8]], "apply-sigmoid-to-obj-conf": "true"})",
     "yolo-v8",
     {},
     {},
     "sigmoid"},
    {R"({"is-obj-score-included": "true", "is-scaling-required": true,
         "anchors": [[10, 13, 16, 30], [33, 23]]})",
     "yolo-v5",
     {10, 13, 16, 30, 33, 23},
     {}},
};

TEST_F(ImportVvas, ChoosesTheFamilyOfADetectorByItsHead) {
    Json json = Json::parse(test::vvas_by_type);
    for (const Head& head : heads) {
        json["postprocess-config"]["library-config"]["model-params"] = Json::parse(head.params);
        const Finished f = import_text(json.dump());
        EXPECT_EQ(f.status, 0) << f.err;
        const ModelInfo info = sidecar();
        EXPECT_EQ(info.decoder, head.family) << head.params;
        EXPECT_EQ(info.anchors, head.anchors) << head.params;
        EXPECT_EQ(info.strides, head.strides) << head.params;
        EXPECT_EQ(info.activation, head.activation) << head.params;
        EXPECT_NEAR(*info.score_threshold, 0.2, 1e-6);
        EXPECT_NEAR(*info.iou_threshold, 0.55, 1e-6);
    }
}

// A change of a good configuration by a JSON pointer ("" value: removed), and what is said then.
struct Fault {
    const char *base, *pointer, *value;
    std::vector<const char*> says;
};
const Fault faults[] = {
    {test::vvas_resnet,
     "/infer-config/batchsize",
     "1",
     {"x.json: key 'infer-config.batchsize' is unknown; did you mean 'batch-size'?", "Known:"}},
    {test::vvas_resnet,
     "/tracker",
     "{}",
     {"key 'tracker' is unknown; known: preprocess-config, infer-config, postprocess-config"}},
    {test::vvas_yolox,
     "/infer-config/vart-config/xyz",
     "1",
     {"key 'infer-config.vart-config.xyz' is unknown; known: vart-model-path"}},
    {test::vvas_yolox,
     "/postprocess-config/library-config/topk",
     "1",
     {"key 'postprocess-config.library-config.topk' is unknown", "known: preset, conf_thresh"}},
    {test::vvas_dpu, "/kernel/config/model", "1", {"key 'kernel.config.model' is unknown"}},
    {test::vvas_resnet,
     "/infer-config/batch-size",
     "65",
     {"key 'infer-config.batch-size' is 65, expected a whole number from 0 to 64"}},
    {test::vvas_resnet, "/infer-config/batch-size", "\"4\"", {"is \"4\", expected a whole number"}},
    {test::vvas_resnet,
     "/infer-config/inference-level",
     "0",
     {"is 0, expected a whole number of at"}},
    {test::vvas_resnet,
     "/infer-config/model-format",
     "\"NV12\"",
     {"is \"NV12\", expected \"RGB\", \"BGR\" or \"GRAY8\""}},
    {test::vvas_resnet,
     "/infer-config/model-format",
     "",
     {"'infer-config.model-format' is not set"}},
    {test::vvas_resnet,
     "/infer-config/onnxrt-config/onnx-model-path",
     "",
     {"onnx-model-path' is not set", "--model FILE"}},
    {test::vvas_yolox, "/infer-config/vart-config", "", {"vart-model-path' is not set"}},
    {test::vvas_yolox,
     "/infer-config/vart-config",
     "[1, 2]",
     {"is a list of 2, expected an object"}},
    {test::vvas_yolox,
     "/infer-config/vart-config/config-file-path",
     "\"a b.json\"",
     {"runner option config_json is '(string)a b.json'"}},
    {test::vvas_yolox,
     "/infer-config/vart-config/vart-model-path",
     "\"a\\\"b.rai\"",
     {"'a\"b.rai' has a character that a launch line cannot hold"}},
    {test::vvas_resnet, "/preprocess-config/mean-g", "", {"'preprocess-config.mean-g' is not set"}},
    {test::vvas_resnet, "/preprocess-config/scale-b", "0.0", {"expected a number other than 0"}},
    {test::vvas_resnet, "/preprocess-config/mean-r", "1e60", {"is 1e+60, expected a number"}},
    {test::vvas_yolox, "/preprocess-config/image-pad-value", "256", {"from 0 to 255"}},
    {test::vvas_yolox,
     "/postprocess-config/library-config/preset",
     "\"yolov6\"",
     {"is \"yolov6\", expected yolov5, yolov7, yolov8"}},
    {test::vvas_yolox,
     "/postprocess-config/library-config/has_objectness_score",
     "false",
     {"'box_grid_decode' is true and 'has_objectness_score' false"}},
    {test::vvas_yolox, "/postprocess-config/library-config/conf_thresh", "1.5", {"from 0 to 1"}},
    {test::vvas_second_level,
     "/infer-config/input-class-filters",
     "[\"a,b\"]",
     {"label 'a,b' cannot stand in a list of labels"}},
    {test::vvas_second_level,
     "/infer-config/input-class-filters",
     "\"car\"",
     {"is \"car\", expected a list of labels"}},
    {test::vvas_dpu,
     "/inference-level",
     "1",
     {"'/usr/share/vitis_ai_library/models/yolov3_voc' is a program for a DPU", "--model FILE"}},
    {test::vvas_by_type,
     "/postprocess-config/library-config/model-params/grid-shape",
     "[[4, 4, 4]]",
     {"model-params.grid-shape' is a list of 1, expected a list of [height, width]"}},
    {test::vvas_by_type,
     "/postprocess-config/library-config/model-params/anchors",
     "[[1, 2, 3]]",
     {"model-params.anchors' is a list of 1, expected a list of lists with pairs"}},
    {test::vvas_by_type,
     "/postprocess-config/library-config/model-params/is-obj-score-included",
     "\"yes\"",
     {"is \"yes\", expected false, true, \"false\" or \"true\""}},
    {test::vvas_by_type,
     "/postprocess-config/library-config/model-params",
     "{\"anchors\": [[1, 2]]}",
     {"model-params.anchors' has boxes and 'is-obj-score-included' is not true"}},
    {test::vvas_dpu, "/kernels", "[{}]", {"key 'kernels' is a list of 1, expected a list of one"}},
    {test::vvas_dpu, "/kernel", "", {"neither 'infer-config' nor 'kernel'"}},
};

TEST_F(ImportVvas, RefusesWhatItDoesNotUnderstandAndWritesNothing) {
    for (const Fault& fault : faults) {
        Json json = Json::parse(fault.base);
        const Json::json_pointer at(fault.pointer);
        if (*fault.value)
            json[at] = Json::parse(fault.value);
        else
            json.at(at.parent_pointer()).erase(at.back());
        const Finished f = import_text(json.dump());
        EXPECT_EQ(f.status, 2) << fault.pointer << ": " << f.err;
        EXPECT_EQ(f.out, "") << fault.pointer;
        for (const char* text : fault.says)
            EXPECT_NE(f.err.find(text), std::string::npos) << text << " in\n" << f.err;
        EXPECT_EQ(std::ranges::count(f.err, '\n'), 1) << f.err;
        EXPECT_FALSE(fs::exists(dir_ / "x.modelinfo")) << fault.pointer;
    }
}

TEST_F(ImportVvas, RefusesFilesThatAreNoConfiguration) {
    EXPECT_EQ(import("").status, 2);
    const Finished missing = import("nowhere.json");
    EXPECT_EQ(missing.status, 1);
    EXPECT_NE(missing.err.find("nowhere.json"), std::string::npos);
    const Finished torn = import_text("{\"infer-config\": ");
    EXPECT_EQ(torn.status, 2);
    EXPECT_NE(torn.err.find("x.json: is no JSON: parse error at line 1"), std::string::npos)
        << torn.err;
    EXPECT_NE(import_text("[]").err.find("holds a list of 0, expected a JSON object"),
              std::string::npos);
    EXPECT_EQ(import_text(std::string(1 << 20, '[') + std::string(1 << 20, ']')).status, 2);

    spill(dir_ / "pp.json", R"({"scaler-type": "letterbox", "scaler-horz-align": "right"})");
    const Finished aligned =
        import_text(test::vvas_dpu, "--model m.rai --preprocess-config pp.json");
    EXPECT_EQ(aligned.status, 2);
    EXPECT_NE(aligned.err.find("'scaler-horz-align' is right and 'scaler-vert-align' top"),
              std::string::npos)
        << aligned.err;
    spill(dir_ / "pp.json", R"({"scaler": "letterbox"})");
    const Finished unknown =
        import_text(test::vvas_dpu, "--model m.rai --preprocess-config pp.json");
    EXPECT_NE(unknown.err.find("pp.json: key 'scaler' is unknown"), std::string::npos)
        << unknown.err;
    EXPECT_NE(import_text(test::vvas_resnet, "--preprocess-config pp.json").err.find("leave "),
              std::string::npos);

    const Finished name = import_text(test::vvas_resnet, "--input 'a\nb'");
    EXPECT_EQ(name.status, 2);
    EXPECT_NE(name.err.find("makes no sidecar"), std::string::npos) << name.err;
    fs::remove(dir_ / "names.txt");
    const Finished labels = import_text(test::vvas_resnet);
    EXPECT_EQ(labels.status, 1);
    EXPECT_NE(labels.err.find("give the labels with --labels FILE"), std::string::npos)
        << labels.err;
    spill(dir_ / "names.txt", "cup\n");
    const std::pair<const char*, const char*> lost[] = {
        {"-o x.json", "-o: is x.json itself, which would be lost"},
        {"--labels names.txt -o ./names.txt", "-o: is names.txt itself"},
        {"--model shelf.onnx --labels names.txt -o shelf.onnx", "-o: is shelf.onnx itself"}};
    for (const auto& [options, says] : lost) {
        const Finished f = import_text(test::vvas_resnet, options);
        EXPECT_EQ(f.status, 2) << options;
        EXPECT_NE(f.err.find(says), std::string::npos) << f.err;
    }
    EXPECT_EQ(slurp(dir_ / "names.txt"), "cup\n");
    const Finished unwritable = import_text(test::vvas_second_level,
                                            "--model shelf.onnx --labels x.json -o no/such/folder");
    EXPECT_EQ(unwritable.status, 1);
    EXPECT_EQ(unwritable.out, "");
    EXPECT_NE(unwritable.err.find("no/such/folder"), std::string::npos) << unwritable.err;
    EXPECT_FALSE(fs::exists(dir_ / "x.modelinfo"));
}

}  // namespace
}  // namespace vartml
