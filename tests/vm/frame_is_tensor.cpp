// SPDX-License-Identifier: Apache-2.0
// Frames of a camera of the kernel that are the model's input as they lie: imported, not read.
// gstreamer.md 3.5, table of paths
#include <cstring>
#include <set>

#include <vart/vart_runner_factory.hpp>

#include "tests/support/gst_main.h"
#include "tests/vm/cameras.h"
#include "tests/vm/pipeline.h"

namespace {

using namespace vartml::test;

constexpr unsigned num_frames = 16;  // more than any pool has buffers
constexpr const char *plain = "video/x-raw,format=",
                     *drm = "video/x-raw(memory:DMABuf),format=DMA_DRM,drm-format=";

struct Case {
    const char* name;
    const char* io_mode;
    const char* caps;
    const char* format;
    const char* model;  // with its size of pictures
    int width, height;
    const char* properties;
    unsigned copies;  // per frame, for not being device memory
};

const Case cases[] = {
    {"RgbOfAnEmbeddedPreprocess", "dmabuf", plain, "RGB", "picture", 320, 180, "", 0},
    {"RgbUnderDrmCaps", "dmabuf", drm, "BG24", "picture", 320, 180, "", 0},
    {"RgbFromTheOfferedPool", "dmabuf-import", plain, "RGB", "picture", 320, 180, "", 0},
    {"RgbInMemoryOfTheDriver", "mmap", plain, "RGB", "picture", 320, 180, "copy-policy=allow", 1},
    {"BlocksOfFour", "dmabuf", plain, "RGBx", "codes", 320, 180, "input-is-tensor=yes", 0},
    {"BlocksOfFourUnderDrmCaps", "dmabuf", drm, "XB24", "codes", 320, 180, "input-is-tensor=yes",
     0},
    {"BlocksOfFourFromTheOfferedPool", "dmabuf-import", drm, "XB24", "codes", 320, 180,
     "input-is-tensor=yes", 0},
    {"BlocksOfFourInMemoryOfTheDriver", "mmap", plain, "RGBx", "codes", 320, 180,
     "input-is-tensor=yes copy-policy=allow", 1},
    {"SignedBlocksOfABoard", "dmabuf-import", plain, "RGBx", "board", 640, 640,
     "input-is-tensor=yes copy-policy=forbid", 0},
};

std::string model_path(const char* name) {
    const char* models = std::getenv("VARTML_VM_MODELS");
    return models ? std::string(models) + '/' + name + ".rai" : std::string();
}

// The model alone, on the bytes of a frame as its input in the HW view.
class Reference {
public:
    explicit Reference(const std::string& model)
        : runner_(vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model,
                                                     {{"input_tensor_type", std::string("HW")},
                                                      {"output_tensor_type", std::string("HW")}})),
          in_(1),
          out_(1) {
        using vart::TensorDirection, vart::TensorType;
        in_[0].push_back(runner_->allocate_npu_tensor(
            runner_->get_tensors_info(TensorDirection::INPUT, TensorType::HW)[0]));
        out_[0].push_back(runner_->allocate_npu_tensor(
            runner_->get_tensors_info(TensorDirection::OUTPUT, TensorType::HW)[0]));
    }
    std::vector<guint8> operator()(const std::vector<guint8>& pixels) {
        EXPECT_EQ(pixels.size(), in_[0][0].get_info().size_in_bytes);
        if (pixels.size() != in_[0][0].get_info().size_in_bytes) return {};
        std::memcpy(in_[0][0].get_virtual_address(), pixels.data(), pixels.size());
        EXPECT_EQ(runner_->execute(in_, out_), vart::StatusCode::SUCCESS);
        const auto* bytes = static_cast<const guint8*>(out_[0][0].get_virtual_address());
        return {bytes, bytes + out_[0][0].get_info().size_in_bytes};
    }

private:
    std::shared_ptr<vart::Runner> runner_;
    std::vector<std::vector<vart::NpuTensor>> in_, out_;
};

class FrameIsTensor : public testing::TestWithParam<Case> {};

TEST_P(FrameIsTensor, WithoutAPassOverItsBytes) {
    const Case& c = GetParam();
    const auto device = c.width == c.height ? find_camera_of_every_size() : find_camera(false);
    VARTML_NEEDS(device, "a camera of vivid");
    Pipeline pipeline(
        "v4l2src name=source device=" + *device + " io-mode=" + c.io_mode +
            " extra-controls=c,test_pattern=21 num-buffers=" + std::to_string(num_frames) + " ! " +
            c.caps + c.format + ",width=" + std::to_string(c.width) +
            ",height=" + std::to_string(c.height),
        std::string(c.properties) + " output-tensor-type=hw model=" + model_path(c.model));
    pipeline.play();
    const Errors errors = pipeline.finish();
    ASSERT_EQ(errors.text, "");
    ASSERT_EQ(pipeline.frames().size(), num_frames);
    Reference reference(model_path(c.model));
    std::set<guint64> buffers;
    for (const Frame& frame : pipeline.frames()) {
        EXPECT_EQ(frame.is_dma_buf, std::vector<bool>{c.copies == 0});
        buffers.insert(frame.inodes.begin(), frame.inodes.end());
        EXPECT_EQ(frame.status, "inferred");
        EXPECT_TRUE(frame.tensor == reference(frame.pixels));
    }
    EXPECT_FALSE(pipeline.frames().front().tensor == pipeline.frames().back().tensor);
    EXPECT_EQ(pipeline.counter("conversions"), 0u);
    EXPECT_EQ(pipeline.counter("copies"), c.copies * num_frames);
    if (c.copies > 0) {
        EXPECT_EQ(pipeline.counter("copy-not-device-memory-count"), c.copies * num_frames);
        EXPECT_EQ(pipeline.counter("imports"), 0u);
    } else {
        EXPECT_LT(buffers.size(), num_frames);
        EXPECT_EQ(pipeline.counter("imports"), buffers.size()) << "once per buffer of the pool";
    }
}

INSTANTIATE_TEST_SUITE_P(Vivid, FrameIsTensor, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
