// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <vartml/postprocess.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lib/base/text.h"
#include "lib/vision/modelinfo.h"

using namespace vartml;

namespace {

std::string message(const Result<ModelInfo>& info) {
    return info ? "(no error)" : info.error().message;
}

// A folder that goes away with the test.
class Folder {
public:
    Folder() {
        std::string name = std::filesystem::temp_directory_path() / "vartml-modelinfo-XXXXXX";
        path_ = mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string write(const std::string& name, std::string_view text) const {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << text;
        return path_ / name;
    }
    std::filesystem::path path() const { return path_; }

private:
    std::filesystem::path path_;
};

TEST(Modelinfo, MayBeginWithAByteOrderMark) {
    const auto info = parse_modelinfo("\xef\xbb\xbf[modelinfo]\nx-vartml-decoder=yolox\n", "");
    ASSERT_TRUE(info) << message(info);
    EXPECT_EQ(info->decoder, "yolox");
}

TEST(Modelinfo, DoesNotWaitForAPipeThatIsNamedAsItsLabels) {
    const Folder folder;
    const std::string file = folder.write("m.modelinfo", "[modelinfo]\nx-vartml-labels=pipe\n");
    ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
    const auto info = find_modelinfo(file, "", "");
    EXPECT_NE(message(info).find("pipe', which is a pipe, expected a file"), std::string::npos)
        << message(info);
}

TEST(Modelinfo, ReadsEverythingOurSectionsKnow) {
    const auto info = parse_modelinfo(
        "# a comment\r\n"
        "[modelinfo]\r\nversion=1.0\ngroup-id=g\nsomebody-elses-key=1\n"
        "x-vartml-version=1\nx-vartml-decoder=yolox\nx-vartml-labels=cat; a\\;b ;dog;\n"
        "x-vartml-num-classes=3\nx-vartml-class-offset=-1\nx-vartml-score-threshold=0.5\n"
        "x-vartml-iou-threshold = 0.4\nx-vartml-max-detections=7\nx-vartml-strides=8,16;32\n"
        "x-vartml-anchors=1,2,3.5,4\nx-vartml-activation=sigmoid\nx-vartml-box-order=xyxy\n"
        "x-vartml-skeleton=0-1;1-2\n"
        "x-vartml-peak=centroid\n"
        "[in]\ndir=input\ntype=float32\ndims=1,3,-1,-1\nx-vartml-resize=letterbox-top-left\n"
        "x-vartml-pad=1,2,3\nx-vartml-crop-fraction=0.875\nx-vartml-interpolation=area\n"
        "x-vartml-channels=bgr\nx-vartml-mean=127\nx-vartml-scale=0.5,0.25,0.125\n"
        "x-vartml-picture=rgb\n"
        "[size]\nx-vartml-feed=frame-size\ndir=input\n"
        "[out]\ndir=output\nid=yolo-out\nx-vartml-role=boxes\nx-vartml-stride=16\n"
        "x-vartml-quant-scale=0.25\nx-vartml-zero-point=-3\ndims-order=col-major\n",
        "");
    ASSERT_TRUE(info) << message(info);
    EXPECT_EQ(info->decoder, "yolox");
    EXPECT_EQ(info->group_id, "g");
    EXPECT_EQ(info->labels, (std::vector<std::string>{"cat", "a;b", "dog"}));
    EXPECT_EQ(info->num_classes, 3u);
    EXPECT_EQ(info->class_offset, -1);
    EXPECT_EQ(info->score_threshold, 0.5);
    EXPECT_EQ(info->iou_threshold, 0.4);
    EXPECT_EQ(info->max_detections, 7u);
    EXPECT_EQ(info->strides, (std::vector<int>{8, 16, 32}));
    EXPECT_EQ(info->anchors, (std::vector<float>{1, 2, 3.5f, 4}));
    EXPECT_EQ(info->activation, "sigmoid");
    EXPECT_EQ(info->box_order, "xyxy");
    EXPECT_EQ(info->skeleton, "0-1;1-2");
    EXPECT_EQ(info->peak, "centroid");
    ASSERT_EQ(info->inputs.size(), 2u);
    const ModelInfo::Input& input = info->inputs[0];
    EXPECT_EQ(input.name, "in");
    EXPECT_EQ(input.resize, ResizeMode::letterbox_top_left);
    EXPECT_EQ(input.pad, (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(input.crop_fraction, 0.875);
    EXPECT_EQ(input.interpolation, Interpolation::area);
    EXPECT_EQ(input.channels, ChannelOrder::bgr);
    EXPECT_EQ(input.mean, std::vector<float>{127});
    EXPECT_EQ(input.scale, (std::vector<float>{0.5f, 0.25f, 0.125f}));
    EXPECT_EQ(input.picture, "rgb");
    EXPECT_EQ(info->inputs[1].feed, "frame-size");
    ASSERT_EQ(info->outputs.size(), 1u);
    EXPECT_EQ(info->outputs[0].id, "yolo-out");
    EXPECT_EQ(info->outputs[0].role, "boxes");
    EXPECT_EQ(info->outputs[0].stride, 16);
    EXPECT_EQ(info->outputs[0].quant_scale, 0.25);
    EXPECT_EQ(info->outputs[0].zero_point, -3);
    EXPECT_TRUE(info->outputs[0].column_major);
}

TEST(Modelinfo, ReadsUpstreamsRangesAsMeanAndScale) {
    const auto info = parse_modelinfo("[x]\ndir=input\nranges=-1.0,1.0;0.0,1.0;0.0,255.0\n", "");
    ASSERT_TRUE(info) << message(info);
    ASSERT_EQ(info->inputs.size(), 1u);
    const PreprocessOptions options = preprocess_options(*info, nullptr, "x");
    EXPECT_FLOAT_EQ(options.mean[0], 127.5f);
    EXPECT_FLOAT_EQ(options.scale[0], 2 / 255.f);
    EXPECT_EQ(options.mean[1], 0);
    EXPECT_FLOAT_EQ(options.scale[1], 1 / 255.f);
    EXPECT_EQ(options.scale[2], 1);
}

TEST(Modelinfo, AcceptsRangesThatSayTheSameAsMeanAndScale) {
    EXPECT_TRUE(parse_modelinfo(
        "[x]\ndir=input\nranges=-1,1\nx-vartml-mean=127.5\nx-vartml-scale=0.00784314\n", ""));
}

struct BadCase {
    const char* text;
    const char* words[3];
};
const BadCase bad_cases[] = {
    {"[modelinfo]\nx-vartml-decodr=yolox\n", {"line 2", "x-vartml-decodr", "unknown"}},
    {"[modelinfo]\nx-vartml-mean=1\n", {"line 2", "x-vartml-mean", "does not belong"}},
    {"[modelinfo]\nx-vartml-decoder=yolo99\n", {"line 2", "yolo99", "decoder family"}},
    {"[modelinfo]\nversion=2.0\n", {"line 2", "2.0", "1.0"}},
    {"[modelinfo]\nx-vartml-version=2\n", {"line 2", "'2'", "expected 1"}},
    {"[modelinfo]\nx-vartml-score-threshold=1.5\n", {"line 2", "1.5", "0 to 1"}},
    {"[modelinfo]\nx-vartml-score-threshold=nan\n", {"line 2", "nan", "0 to 1"}},
    {"[modelinfo]\nx-vartml-num-classes=0\n", {"line 2", "'0'", "at least 1"}},
    {"[modelinfo]\nx-vartml-strides=8,x\n", {"line 2", "8,x", "whole numbers"}},
    {"[modelinfo]\nx-vartml-anchors=1,2,3\n", {"line 2", "1,2,3", "pairs"}},
    {"[modelinfo]\nx-vartml-anchors=1,2,0,4\n", {"line 2", "1,2,0,4", "pairs"}},
    {"[modelinfo]\nx-vartml-labels=names.txt\n", {"line 2", "names.txt", "a;b;c"}},
    {"[a]\ndir=sideways\n", {"line 2", "sideways", "input or output"}},
    {"[a]\nx-vartml-mean=1\n", {"line 2", "[a]", "dir=input"}},
    {"[a]\ndir=input\nx-vartml-mean=1,2\n", {"line 3", "1,2", "1 or 3"}},
    {"[a]\ndir=input\nx-vartml-resize=fit\n", {"line 3", "fit", "letterbox"}},
    {"[a]\ndir=input\nranges=0,1\nx-vartml-scale=1\n", {"line 3", "ranges", "differs"}},
    {"[a]\ndir=input\nranges=1,0\n", {"line 3", "1,0", "min,max"}},
    {"[a]\ndir=input\nranges=0,1;0,1,x\n", {"line 3", "0,1,x", "min,max"}},
    {"[a]\ndir=input\nranges=0,1;low,high\n", {"line 3", "low,high", "min,max"}},
    {"[a]\ndir=input\nranges=0,1,2\n", {"line 3", "0,1,2", "min,max"}},
    {"[a]\ndir=output\ndims-order=columns\n", {"line 3", "'columns'", "row-major or col-major"}},
    {"[a]\ndir=output\nx-vartml-role=box\n", {"line 3", "'box'", "boxes"}},
    {"[modelinfo]\nx-vartlm-decoder=yolox\n", {"line 2", "unknown", "x-vartml-decoder"}},
    {"[modelinfo]\ndecoder=yolox\n", {"line 2", "unknown", "did you mean 'x-vartml-decoder'"}},
    {"[a]\ndir=input\nmean=1\n", {"line 3", "unknown", "did you mean 'x-vartml-mean'"}},
    {"[modelinof]\nx-vartml-decoder=yolox\n", {"line 2", "[modelinof]", "[modelinfo]"}},
    {"[general]\nx-vartml-strides=8\n", {"line 2", "[general]", "[modelinfo]"}},
    {"[a]\nranges=0,1\n", {"line 2", "ranges", "dir=input"}},
    {"[a]\ndir=output\nx-vartml-ends-in=tanh\n", {"line 3", "tanh", "softmax"}},
    {"key=1\n", {"line 1", "first section", "[modelinfo]"}},
    {"[modelinfo]\nnonsense\n", {"line 2", "nonsense", "key=value"}},
    {"[modelinfo\n", {"line 1", "[modelinfo", "[section]"}},
    {"[a]\ndir=input\nx-vartml-mean=1\n[b]\ndir=input\n[a]\nx-vartml-mean=2\n",
     {"line 7", "'x-vartml-mean' of [a] is '2'", "before it was '1'"}},
    {"[modelinfo]\nx=\xff\n", {"line 2", "UTF-8", ""}},
    // a terminal is not told to forge or to hide a line
    {"[modelinfo]\nx-vartml-decoder\x1b[2J=yolox\n", {"line 2", "decoder\\x1b[2J", "unknown"}},
    {"[mod\relinfo\n", {"line 1", "[mod\\x0delinfo", "[section]"}},
    {"[modelinfo]\nx-vartml-decoder=\xc2\x9b\n", {"line 2", "\\xc2\\x9b", ""}},
};
class BadModelinfo : public testing::TestWithParam<BadCase> {};
TEST_P(BadModelinfo, IsRefusedNamingTheLine) {
    const auto info = parse_modelinfo(GetParam().text, "");
    ASSERT_FALSE(info);
    EXPECT_EQ(info.error().code, ErrorCode::bad_model);
    EXPECT_TRUE(is_plain_text(message(info))) << printable(message(info));
    for (const char* word : GetParam().words) {
        EXPECT_NE(message(info).find(word), std::string::npos) << word << " in: " << message(info);
    }
}
INSTANTIATE_TEST_SUITE_P(Table, BadModelinfo, testing::ValuesIn(bad_cases));

TEST(Modelinfo, IsFoundInTheDocumentedOrder) {
    const Folder folder;
    const std::string model = folder.write("m.onnx", "");
    const auto decoder = [&](const std::string& file, const std::string& entry) {
        const auto info = find_modelinfo(file, model, entry);
        return info ? info->decoder : message(info);
    };
    EXPECT_EQ(decoder("", ""), "");
    folder.write("m.modelinfo", "[modelinfo]\nx-vartml-decoder=yolox\n");
    EXPECT_EQ(decoder("", ""), "yolox");
    folder.write("m.onnx.modelinfo", "[modelinfo]\nx-vartml-decoder=yolo-v5\n");
    EXPECT_EQ(decoder("", ""), "yolo-v5");
    const std::string entry = "[modelinfo]\nx-vartml-decoder=yolo-v8\n";
    EXPECT_EQ(decoder("", entry), "yolo-v8");
    const std::string file = folder.write("own", "[modelinfo]\nx-vartml-decoder=classify\n");
    EXPECT_EQ(decoder(file, entry), "classify");
    const auto missing = find_modelinfo(file + "-missing", model, entry);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

TEST(Modelinfo, OfAFileIsJoinedToWhatTheCompilerSaw) {
    const Folder folder;
    const std::string model = folder.write("m.rai", "");
    const std::string seen =
        "[modelinfo]\nversion=1.0\n[out]\ndir=output\nx-vartml-ends-in=linear\n";
    const auto text = [&](const std::string& file, const std::string& entry) {
        const auto info = find_modelinfo(file, model, entry);
        if (!info) return message(info);
        return info->decoder + " " + (info->outputs.empty() ? "" : info->outputs[0].ends_in);
    };
    EXPECT_EQ(text("", seen), " linear");
    folder.write("m.modelinfo", "[modelinfo]\nx-vartml-decoder=yolox\n");
    EXPECT_EQ(text("", seen), "yolox linear");  // the entry is no sidecar that anybody wrote
    EXPECT_EQ(text("", seen + "[modelinfo]\nx-vartml-decoder=classify\n"), "classify linear");
    const std::string file = folder.write(
        "own", "[modelinfo]\nx-vartml-decoder=ssd\n[out]\ndir=output\nx-vartml-role=boxes\n");
    EXPECT_EQ(text(file, seen), "ssd linear");
    const std::string weights = seen + "[images]\ndir=input\nx-vartml-weights-for=units\n";
    for (const std::string& of : {std::string(), file}) {
        const auto info = find_modelinfo(of, model, weights);
        ASSERT_TRUE(info) << message(info);
        EXPECT_EQ(info->decoder, of.empty() ? "yolox" : "ssd");
        ASSERT_EQ(info->inputs.size(), 1u);
        EXPECT_EQ(info->inputs[0].weights_for, "units");
    }
    const std::string table = seen +
                              "[modelinfo]\nx-vartml-columns=class,score,x0y0x1y1\n"
                              "x-vartml-num-classes=80\n"
                              "[im_shape]\ndir=input\nx-vartml-feed=const:416,416\n";
    for (const std::string& of : {std::string(), file}) {
        const auto info = find_modelinfo(of, model, table);
        ASSERT_TRUE(info) << message(info);
        EXPECT_EQ(info->decoder, of.empty() ? "yolox" : "ssd");
        EXPECT_EQ(info->columns, "class,score,x0y0x1y1");
        EXPECT_EQ(info->num_classes, 80u);
        ASSERT_EQ(info->inputs.size(), 1u);
        EXPECT_EQ(info->inputs[0].feed, "const:416,416");
    }
    // Where somebody wrote the entry, these are part of what the file takes the place of.
    const auto written =
        find_modelinfo(file, model, table + "[modelinfo]\nx-vartml-decoder=yolo-v8\n");
    ASSERT_TRUE(written) << message(written);
    EXPECT_EQ(written->columns, "");
    EXPECT_FALSE(written->num_classes);
    EXPECT_TRUE(written->inputs.empty() || written->inputs[0].feed.empty());
    EXPECT_EQ(written->outputs.at(0).ends_in, "linear");
    folder.write("m.modelinfo", "[modelinfo]\nx-vartml-labels=a;b;c\n");
    const auto labelled = find_modelinfo("", model, table);
    ASSERT_TRUE(labelled) << message(labelled);
    EXPECT_FALSE(labelled->num_classes) << "who names the classes counts them";
}

struct ForeignSection {
    const char* text;
    const char* words[3];
};
const ForeignSection foreign_sections[] = {
    {"[imagez]\ndir=input\nx-vartml-mean=1\n", {"line 1", "[imagez]", "did you mean [images]?"}},
    {"[pictures of cats]\ndir=input\n", {"line 1", "names no input", "'images'"}},
    {"[ot]\ndir=output\n", {"line 1", "names no output", "did you mean [out]?"}},
    {"[out]\ndir=input\n", {"line 1", "[out]", "is an output"}},
    {"[out]\ndir=output\nx-vartml-quant-scale=0.5\n", {"line 1", "quant-scale", "fp32"}},
};
TEST(Modelinfo, WithASectionOfNoTensorIsRefused) {
    TensorInfo input, output;
    input.name = "images";
    output.name = "out";
    input.cpu = output.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 4});
    const auto check = [&](const char* text) {
        const auto info = parse_modelinfo(text, "m.modelinfo");
        EXPECT_TRUE(info) << message(info);
        const auto fits = check_modelinfo(*info, {&input, 1}, {&output, 1});
        return fits ? std::string() : fits.error().message;
    };
    for (const ForeignSection& c : foreign_sections) {
        for (const char* word : c.words)
            EXPECT_NE(check(c.text).find(word), std::string::npos)
                << word << " in: " << check(c.text);
    }
    EXPECT_EQ(check("[images]\ndir=input\nx-vartml-mean=1\n[out]\ndir=output\n[other]\na=1\n"), "");
}

TEST(Modelinfo, OfADirectoryMayLieInsideIt) {
    const Folder folder;
    folder.write("m/modelinfo", "[modelinfo]\nx-vartml-decoder=ultraface\n");
    const auto info = find_modelinfo("", (folder.path() / "m/").string(), "");
    ASSERT_TRUE(info) << message(info);
    EXPECT_EQ(info->decoder, "ultraface");
}

TEST(Modelinfo, TakesLabelsFromTheFileBesideIt) {
    const Folder folder;
    folder.write("names.txt", "\xef\xbb\xbfone\r\ntwo words\r\n\r\nfour\r\n\n");
    const std::string file =
        folder.write("m.modelinfo", "[modelinfo]\nx-vartml-labels=names.txt\n");
    const auto info = find_modelinfo(file, "", "");
    ASSERT_TRUE(info) << message(info);
    EXPECT_EQ(info->labels, (std::vector<std::string>{"one", "two words", "", "four"}));
    EXPECT_EQ(info->labels_file, (folder.path() / "names.txt").string());
}

TEST(ReadText, TakesMemoryForTheFileNotForTheLimit) {
    const Folder folder;
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{200000}}) {
        const std::string text(size, 'x'), file = folder.write("text", text);
        const auto read = vision::read_text(file, size_t{1} << 30);
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_TRUE(*read == text) << size;
        EXPECT_LT(read->capacity(), size_t{1} << 20) << size;
        EXPECT_TRUE(vision::read_text(file, size)) << size;
        EXPECT_EQ(size > 0 && vision::read_text(file, size - 1), false) << size;
    }
}

TEST(Labels, AreRefusedWithFileAndLine) {
    const Folder folder;
    const auto missing = read_labels((folder.path() / "none.txt").string());
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    const auto latin1 = read_labels(folder.write("l.txt", "caf\xc3\xa9\ncaf\xe9\n"));
    ASSERT_FALSE(latin1);
    EXPECT_EQ(latin1.error().code, ErrorCode::bad_model);
    EXPECT_NE(latin1.error().message.find("line 2"), std::string::npos) << latin1.error().message;
    EXPECT_FALSE(read_labels(folder.write("empty.txt", "")));
    EXPECT_FALSE(read_labels(folder.path().string()));
}

TensorInfo tensor(const char* name, Layout layout, std::vector<uint32_t> shape) {
    TensorInfo info;
    info.name = name;
    info.cpu.data_type = DataType::float32;
    info.cpu.layout = layout;
    info.cpu.shape = std::move(shape);
    return info;
}

class PrintedFamily : public testing::TestWithParam<DecoderFamily> {};
TEST_P(PrintedFamily, ReadsBackAsTheFamilysConventions) {
    const DecoderFamily& family = GetParam();
    const TensorInfo inputs[] = {tensor("in", Layout::NCHW, {1, 3, 64, 64})};
    const TensorInfo outputs[] = {tensor("out", Layout::NHW, {1, 84, 85})};
    ModelInfo info;
    info.decoder = family.nick;
    info.labels = {" edge ", "a;b", "c\\d", "e=f", "#g"};
    info.outputs.push_back({.name = "out", .id = "some-id", .role = "boxes"});
    const std::string text = print_modelinfo(info, inputs, outputs);
    const auto back = parse_modelinfo(text, "");
    ASSERT_TRUE(back) << message(back) << "\n" << text;
    EXPECT_EQ(back->decoder, family.nick);
    EXPECT_EQ(back->labels, info.labels);
    EXPECT_FLOAT_EQ(static_cast<float>(*back->score_threshold),
                    static_cast<float>(family.score_threshold));
    EXPECT_EQ(preprocess_options(*back, nullptr, "in"), family.input) << text;
    EXPECT_EQ(back->outputs.at(0).id, "some-id");
    EXPECT_EQ(back->outputs.at(0).role, "boxes");
    EXPECT_EQ(print_modelinfo(*back, inputs, outputs), text);
}
INSTANTIATE_TEST_SUITE_P(All, PrintedFamily,
                         testing::ValuesIn(decoder_families().begin(), decoder_families().end()),
                         [](const auto& family) {
                             std::string name(family.param.nick);
                             std::erase(name, '-');
                             return name;
                         });

TEST(PreprocessOptions, PreferTheSidecarOverTheFamily) {
    const auto info =
        parse_modelinfo("[in]\ndir=input\nx-vartml-channels=rgb\nx-vartml-scale=0.5\n", "");
    ASSERT_TRUE(info) << message(info);
    const PreprocessOptions options = preprocess_options(*info, find_decoder_family("yolox"), "in");
    EXPECT_EQ(options.channels, ChannelOrder::rgb);
    EXPECT_EQ(options.scale, (std::array<float, 3>{0.5f, 0.5f, 0.5f}));
    EXPECT_EQ(options.resize, ResizeMode::letterbox_top_left);
    EXPECT_EQ(preprocess_options(*info, nullptr, "other"), PreprocessOptions{});
}

}  // namespace
