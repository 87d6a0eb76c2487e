// SPDX-License-Identifier: Apache-2.0
// vartml camera: lines and settings of a pre-processor whose frames are a model's input.
#include "lib/tools/camera_plan.h"

#include <gtest/gtest.h>
#include <linux/v4l2-subdev.h>
#include <linux/videodev2.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "tests/tools/compile_program.h"

namespace vartml::tools {
namespace {

using test::Finished;
using test::slurp;
using test::spill;

// ---- the plan ---------------------------------------------------------------------------------

TensorInfo codes(double scale, int zero_point = 0, uint32_t side = 64,
                 DataType type = DataType::int8, Layout layout = Layout::HCWNC4) {
    TensorInfo tensor;
    tensor.name = "images";
    tensor.cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, side, side + 32});
    tensor.hw = hw_view(tensor.cpu, layout, type);
    if (type == DataType::int8) tensor.hw->quantisation = Quantisation{scale, zero_point};
    return tensor;
}

PixelChoice pixels(std::array<float, 3> mean, std::array<float, 3> scale,
                   ChannelOrder order = ChannelOrder::rgb) {
    PixelChoice choice;
    choice.options.mean = mean;
    choice.options.scale = scale;
    choice.options.channels = order;
    choice.source = "the sidecar";
    return choice;
}

Result<CameraPlan> plan(const TensorInfo& tensor, const PixelChoice& choice) {
    return plan_camera("m.rai", tensor, choice, 1920, 1080);
}

struct Step {
    double scale;
    int zero_point;
    float pixel_scale;
    int bits;
};
const Step steps[] = {
    {1, 0, 1, 8},
    {0.5, 0, 0.5f, 7},
    {1 / 32., 0, 0.017f, 3},
    {1 / 128., 0, 1 / 255.f, 1},
    {1 / 256., 0, 1 / 255.f, 0},
    {1 / 1024., 0, 1 / 1000.f, 0},  // beyond the last position of the point: in beta
    {2, 0, 1, 8},                   // before the first: in beta
    {1, 0, 3, 6},                   // a scale above 1: in the point
    {1 / 2., -20, 0.25f, 7},        // the zero point is a part of the mean
};

TEST(CameraPlan, MakesTheCodesThatVartmlinferMakes) {
    for (const Step& s : steps) {
        const float third = s.pixel_scale / 3;
        const auto made = plan(codes(s.scale, s.zero_point),
                               pixels({0, 16.5f, 100}, {s.pixel_scale, third, third}));
        ASSERT_TRUE(made) << made.error().message;
        const auto& c = made->controls;
        ASSERT_EQ(c.size(), 7u);
        EXPECT_EQ(c[6], (CameraControl{"preprocess_int8_out_ibits", s.bits})) << s.scale;
        const double one = 1 << 23, step = std::ldexp(1, 8 - s.bits);
        for (const double x : {0., 1., 100., 255.}) {
            const auto code = [&](size_t slot) {
                return (x - c[slot].value / one) * (c[slot + 3].value / one) * step;
            };
            const double last = s.zero_point;
            // Green, blue, red.
            EXPECT_NEAR(code(0), (x - 16.5) * third / s.scale + last, 0.01) << s.scale;
            EXPECT_NEAR(code(1), (x - 100.) * third / s.scale + last, 0.01) << s.scale;
            EXPECT_NEAR(code(2), x * s.pixel_scale / s.scale + last, 0.01) << s.scale;
        }
    }
}

TEST(CameraPlan, SetsColoursOfAModelThatTakesBlueFirst) {
    const auto rgb = plan(codes(1), pixels({3, 2, 1}, {1, 0.5f, 0.25f}));
    const auto bgr = plan(codes(1), pixels({1, 2, 3}, {0.25f, 0.5f, 1}, ChannelOrder::bgr));
    ASSERT_TRUE(rgb && bgr);
    EXPECT_EQ(rgb->controls, bgr->controls);
    EXPECT_TRUE(rgb->warnings.empty());
    ASSERT_EQ(bgr->warnings.size(), 1u);
    EXPECT_NE(bgr->warnings[0].find("built for BGR"), std::string::npos) << bgr->warnings[0];
}

TEST(CameraPlan, WarnsWhereTheModelIsNotStretched) {
    PixelChoice choice = pixels({0, 0, 0}, {1, 1, 1});
    choice.options.resize = ResizeMode::letterbox;
    const auto made = plan(codes(1), choice);
    ASSERT_TRUE(made);
    ASSERT_EQ(made->warnings.size(), 1u);
    EXPECT_NE(made->warnings[0].find("takes letterbox: the pre-processor stretches"),
              std::string::npos)
        << made->warnings[0];
}

TEST(CameraPlan, HasThreeBytesAPixelWhereTheModelHas) {
    const auto made =
        plan(codes(1, 0, 64, DataType::int8, Layout::NHWC), pixels({0, 0, 0}, {1, 1, 1}));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_STREQ(made->pads[1].code, "RBG888_1X24");
    EXPECT_EQ(made->pads[1].width, 96u);
    EXPECT_EQ(made->pads[1].height, 64u);
}

TEST(CameraPlan, RefusesWhatThePreprocessorCannotMake) {
    const PixelChoice plain = pixels({0, 0, 0}, {1, 1, 1});
    PixelChoice nobody = plain, type = plain, gray = plain;
    nobody.source.clear();
    type.source = "the input's type int8";
    gray.options.channels = ChannelOrder::gray;
    TensorInfo one = codes(1);
    one.cpu = make_view(DataType::float32, Layout::NCHW, {1, 1, 64, 96});
    struct Row {
        TensorInfo tensor;
        PixelChoice pixels;
        const char* says;
    };
    const Row rows[] = {
        {codes(1, 0, 64, DataType::bf16), plain,
         "is bf16 in layout HCWNC4, and a camera's pre-processor makes int8 in HCWNC4 or NHWC"},
        {codes(1, 0, 64, DataType::uint8), plain, "is uint8 in layout HCWNC4"},
        {codes(1, 0, 64, DataType::int8, Layout::HCWNC8), plain, "is int8 in layout HCWNC8"},
        {one, plain, "is no single picture of three colours"},
        {codes(1), nobody, "has no recorded pixels"},
        {codes(1), type, "has no recorded pixels"},
        {codes(1), gray, "takes gray in three channels"},
        {codes(0.03), plain, "has the quantisation scale 0.03, and"},
        {codes(1, 0, 16), plain, "is 48x16 pixels, and"},
        {codes(1), pixels({0, -1, 0}, {1, 1, 1}),
         "needs -1 for green in control 'preprocess_param_alpha_1', which takes 0 to 255"},
        {codes(1), pixels({0, 0, 256}, {1, 1, 1}),
         "needs 256 for blue in control 'preprocess_param_alpha_2', which takes 0 to 255"},
        {codes(1), pixels({0, 0, 0}, {-1, 1, 1}),
         "needs -1 for red in control 'preprocess_param_beta_3', which takes 2^-23 to 1"},
        {codes(1), pixels({0, 0, 0}, {1, 300, 1}),
         "needs 1.171875 for green in control 'preprocess_param_beta_1', which takes 2^-23 to 1"},
    };
    for (const Row& row : rows) {
        const auto made = plan(row.tensor, row.pixels);
        ASSERT_FALSE(made) << row.says;
        EXPECT_EQ(made.error().code, ErrorCode::unsupported);
        EXPECT_EQ(
            made.error().message.find(std::string("model 'm.rai': input 'images' ") + row.says), 0u)
            << made.error().message;
    }
    EXPECT_FALSE(plan_camera("m.rai", codes(1), plain, 10, 1080));
}

// ---- setting ----------------------------------------------------------------------------------

// A sub-device with the controls of a pre-processor, or without some.
struct FakeSubdev {
    struct Control {
        std::string name;
        int64_t maximum;
        int32_t value = -1;
    };
    std::vector<Control> controls;
    v4l2_mbus_framefmt pads[2] = {};
    uint32_t most_width = 8192;
    int refused = -1;  // the position of the value that is

    FakeSubdev() {
        for (const char* number : {"1", "2", "3", "4"}) {
            controls.push_back({std::string("preprocess_param_alpha_") + number, 0x7f800000});
            controls.push_back({std::string("preprocess_param_beta_") + number, 1 << 23});
        }
        controls.push_back({"preprocess_int8_out_ibits", 8});
        pads[0].code = 7, pads[1].code = 9;
    }
    static constexpr uint32_t first = 0x0098c901;

    int operator()(unsigned long request, void* data) {
        switch (request) {
            case VIDIOC_QUERY_EXT_CTRL: {
                auto* query = static_cast<v4l2_query_ext_ctrl*>(data);
                const uint32_t id = query->id & ~V4L2_CTRL_FLAG_NEXT_CTRL;
                const size_t next = id < first ? 0 : id - first + 1;
                if (next >= controls.size()) return errno = EINVAL, -1;
                query->id = first + uint32_t(next);
                controls[next].name.copy(query->name, sizeof query->name - 1);
                query->maximum = controls[next].maximum;
                return 0;
            }
            case VIDIOC_SUBDEV_G_FMT: {
                auto* format = static_cast<v4l2_subdev_format*>(data);
                format->format = pads[format->pad];
                return 0;
            }
            case VIDIOC_SUBDEV_S_FMT: {
                auto* format = static_cast<v4l2_subdev_format*>(data);
                EXPECT_EQ(format->which, uint32_t(V4L2_SUBDEV_FORMAT_ACTIVE));
                format->format.width = std::min(format->format.width, most_width);
                pads[format->pad] = format->format;
                return 0;
            }
            case VIDIOC_S_EXT_CTRLS: {
                auto* set = static_cast<v4l2_ext_controls*>(data);
                if (refused >= 0) return set->error_idx = uint32_t(refused), errno = EBUSY, -1;
                for (uint32_t i = 0; i < set->count; ++i)
                    controls.at(set->controls[i].id - first).value = set->controls[i].value;
                return 0;
            }
        }
        return errno = ENOTTY, -1;
    }
    int32_t value(const std::string& name) const {
        return std::ranges::find(controls, name, &Control::name)->value;
    }
};

CameraPlan good_plan() {
    return *plan(codes(1 / 32.), pixels({1, 2, 3}, {0.25f, 0.125f, 0.5f}));
}

Result<void> set(FakeSubdev& device) {
    return set_camera(good_plan(), "/dev/v4l-subdev3", std::ref(device));
}

TEST(SetCamera, SetsPadsAndControls) {
    FakeSubdev device;
    const auto done = set(device);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(device.pads[0].width, 1920u);
    EXPECT_EQ(device.pads[0].height, 1080u);
    EXPECT_EQ(device.pads[1].width, 96u);
    EXPECT_EQ(device.pads[1].height, 64u);
    EXPECT_EQ(device.pads[0].code, 7u);  // the device's own stay
    EXPECT_EQ(device.pads[1].code, 9u);
    EXPECT_EQ(device.value("preprocess_param_alpha_1"), 2 << 23);
    EXPECT_EQ(device.value("preprocess_param_alpha_2"), 3 << 23);
    EXPECT_EQ(device.value("preprocess_param_alpha_3"), 1 << 23);
    EXPECT_EQ(device.value("preprocess_param_beta_1"), 1 << 20);
    EXPECT_EQ(device.value("preprocess_param_beta_2"), 1 << 22);
    EXPECT_EQ(device.value("preprocess_param_beta_3"), 1 << 21);
    EXPECT_EQ(device.value("preprocess_int8_out_ibits"), 3);
    EXPECT_EQ(device.value("preprocess_param_alpha_4"), -1);
}

TEST(SetCamera, SetsNothingOnAnotherDevice) {
    FakeSubdev device;
    device.controls.pop_back();
    const auto done = set(device);
    ASSERT_FALSE(done);
    EXPECT_NE(
        done.error().message.find("/dev/v4l-subdev3: has no control 'preprocess_int8_out_ibits'"),
        std::string::npos)
        << done.error().message;
    EXPECT_EQ(device.pads[0].width, 0u);
    EXPECT_EQ(device.value("preprocess_param_alpha_1"), -1);
}

TEST(SetCamera, SaysWhatTheDeviceRefuses) {
    FakeSubdev narrow;
    narrow.most_width = 1280;
    const auto pad = set(narrow);
    ASSERT_FALSE(pad);
    EXPECT_NE(pad.error().message.find("pad 0 takes 1280x1080, expected 1920x1080"),
              std::string::npos)
        << pad.error().message;
    FakeSubdev small;
    small.controls[1].maximum = 100;
    const auto range = set(small);
    ASSERT_FALSE(range);
    EXPECT_NE(range.error().message.find(
                  "control 'preprocess_param_beta_1' takes 0 to 100, and the model needs 1048576"),
              std::string::npos)
        << range.error().message;
    FakeSubdev busy;
    busy.refused = 4;
    const auto value = set(busy);
    ASSERT_FALSE(value);
    EXPECT_NE(value.error().message.find("cannot set control 'preprocess_param_beta_2'"),
              std::string::npos)
        << value.error().message;
}

// ---- the program ------------------------------------------------------------------------------

// The NPU reads codes of the model's input where the configuration asks for them.
class Camera : public test::Compile {
protected:
    void SetUp() override {
        Compile::SetUp();
        test::TinyOnnx m;
        m.input("images", {1, 3, 224, 224}).output("y");
        m.floats("s", {}, {1 / 32.f}).initialiser(zero()).weights("w", {4, 3, 8, 8});
        m.node("QuantizeLinear", {"images", "s", "z"}, {"q"});
        m.node("DequantizeLinear", {"q", "s", "z"}, {"x"}).node("Conv", {"x", "w"}, {"y"});
        m.save(dir_ / "gate.onnx");
        spill(dir_ / "codes.json",
              R"({"target": "t", "targets": [{"name": "t", "pass": ["init", "vaiml_partition"]}],
            "passes": [{"name": "init", "plugin": "vaip-pass_init"},
              {"name": "vaiml_partition", "plugin": "vaip-pass_vaiml_partition", "vaiml_config":
              {"device": "softnpu", "fe_experiment": "input-quantization-in-rt=1"}}]})");
    }
    static ::onnx::TensorProto zero() {
        ::onnx::TensorProto tensor;
        tensor.set_name("z");
        tensor.set_data_type(test::TinyOnnx::int8);
        tensor.add_int32_data(0);
        return tensor;
    }
    Finished camera(const std::string& arguments) {
        const std::string command = "cd '" + dir_.path() + "' && '" + program_ + "' camera " +
                                    arguments + " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(dir_ / "out.txt"),
                slurp(dir_ / "err.txt")};
    }
};

constexpr char imagenet[] =
    "--mean 123.675,116.28,103.53 --scale 0.017124,0.017507,0.017429 --channels rgb ";

TEST_F(Camera, PrintsTheLinesOfAModel) {
    const Finished compiled =
        run(std::string("gate.onnx -q -o gate.rai --config codes.json ") + imagenet);
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Finished f = camera("gate.rai --entity pre.0");
    ASSERT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.err, "");
    EXPECT_EQ(f.out,
              "media-ctl -d /dev/media0 -V '\"pre.0\":0 [fmt:RBG888_1X24/1920x1080 field:none]'\n"
              "media-ctl -d /dev/media0 -V '\"pre.0\":1 [fmt:RGBA8888_1X32/224x224 field:none]'\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_param_alpha_1=975427338\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_param_alpha_2=868472586\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_param_alpha_3=1037461094\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_param_beta_1=146859\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_param_beta_2=146205\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_param_beta_3=143647\n"
              "v4l2-ctl -d SUBDEV --set-ctrl=preprocess_int8_out_ibits=3\n");
    const Finished other =
        camera("gate.rai --subdev /dev/v4l-subdev77 --media /dev/media2 --size 1280x720");
    ASSERT_EQ(other.status, 0) << other.err;
    EXPECT_EQ(other.out.find("media-ctl -d /dev/media2 -V '\"ENTITY\":0 "
                             "[fmt:RBG888_1X24/1280x720 field:none]'\n"),
              0u)
        << other.out;
    EXPECT_NE(other.out.find("v4l2-ctl -d /dev/v4l-subdev77 --set-ctrl="), std::string::npos);

    const Finished unset = camera("gate.rai --set");
    EXPECT_EQ(unset.status, 2);
    EXPECT_NE(unset.err.find("--set: needs the sub-device"), std::string::npos) << unset.err;
    const Finished missing = camera("gate.rai --set --subdev no/such/device");
    EXPECT_EQ(missing.status, 1);
    EXPECT_EQ(missing.out, "");
    EXPECT_NE(missing.err.find("no/such/device: cannot open it as the sub-device of a camera"),
              std::string::npos)
        << missing.err;
    const Finished null = camera("gate.rai --set --subdev /dev/null");
    EXPECT_EQ(null.status, 4);
    EXPECT_NE(null.err.find("/dev/null: has no control"), std::string::npos) << null.err;
    EXPECT_EQ(camera("gate.rai --size 1080p").status, 2);
    const Finished unnamed = camera("gate.rai --input sound");
    EXPECT_EQ(unnamed.status, 4);
    EXPECT_NE(unnamed.err.find("has no input 'sound', only 'images'"), std::string::npos)
        << unnamed.err;
}

TEST_F(Camera, RefusesModelsOfOtherInputs) {
    ASSERT_EQ(run(std::string("shelf.onnx -q -o floats.rai ") + imagenet).status, 0);
    const Finished floats = camera("floats.rai");
    EXPECT_EQ(floats.status, 4);
    EXPECT_NE(floats.err.find("model 'floats.rai': input 'images' is bf16 in layout HCWNC4"),
              std::string::npos)
        << floats.err;
    ASSERT_EQ(run("gate.onnx -q -o codes.rai --config codes.json").status, 0);
    const Finished silent = camera("codes.rai");
    EXPECT_EQ(silent.status, 4);
    EXPECT_NE(silent.err.find("model 'codes.rai': input 'images' has no recorded pixels: say what"),
              std::string::npos)
        << silent.err;
    spill(dir_ / "codes.modelinfo",
          "[modelinfo]\nversion=1.0\nx-vartml-version=1\n\n[images]\ndir=input\n"
          "x-vartml-mean=0\nx-vartml-scale=1\nx-vartml-channels=rgb\nx-vartml-resize=stretch\n");
    EXPECT_EQ(camera("codes.rai").status, 0);
    EXPECT_EQ(camera("nowhere.rai").status, 1);
}

}  // namespace
}  // namespace vartml::tools
