// SPDX-License-Identifier: Apache-2.0
// One run on a picture of nothing in particular: whether the decoder that the shapes chose can mean
// these numbers. Shapes alone do not tell regressions from boxes.
#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

#include <vartml/preprocess.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/doctor/checks_sidecar.h"
#include "lib/vision/modelinfo.h"

namespace vartml::doctor {
namespace {

using vart::TensorDirection;
using vart::TensorType;
using Tensors = std::vector<vart::NpuTensor>;

Tensors allocate(const vart::Runner& runner, TensorDirection direction) {
    Tensors tensors;
    for (const auto& info : runner.get_tensors_info(direction, TensorType::CPU))
        tensors.push_back(const_cast<vart::Runner&>(runner).allocate_npu_tensor(info));
    return tensors;
}

// Coloured areas, a slope and a little texture.
std::vector<uint8_t> some_picture(uint32_t width, uint32_t height) {
    std::vector<uint8_t> pixels(size_t{width} * height * 3);
    for (uint32_t y = 0; y < height; ++y) {
        for (uint32_t x = 0; x < width; ++x) {
            uint8_t* pixel = &pixels[(size_t{y} * width + x) * 3];
            const bool inside = x > width / 4 && x < width / 2 && y > height / 4;
            pixel[0] = static_cast<uint8_t>(inside ? 200 : 60 + 120 * x / width);
            pixel[1] = static_cast<uint8_t>(inside ? 150 : 90 + 100 * y / height);
            pixel[2] = static_cast<uint8_t>(110 + (x * 7 + y * 13) % 32);
        }
    }
    return pixels;
}

// Fills the picture; the others as the sidecar says, for a frame of the picture's size. False where
// one of them cannot be filled here.
bool fill_inputs(const Tensors& tensors, const artifact::CompiledModel& model,
                 const ModelInfo& info, const PictureInput& picture) {
    for (size_t i = 0; i < tensors.size(); ++i) {
        const TensorInfo& input = model.inputs[i];
        void* memory = const_cast<void*>(tensors[i].get_virtual_address());
        if (&input == picture.input) {
            const PixelChoice choice =
                choose_pixels(info, model.outputs, input, picture.width, picture.height);
            const PictureInfo frame{
                .format = PixelFormat::RGB, .width = picture.width, .height = picture.height};
            auto preprocessor =
                Preprocessor::create(frame, {}, input.cpu, input.cpu, choice.options);
            if (!preprocessor) return false;
            const auto pixels = some_picture(picture.width, picture.height);
            preprocessor->run({.planes = {pixels.data()}, .stride_bytes = {picture.width * 3}},
                              memory);
            continue;
        }
        const auto said = std::ranges::find(info.inputs, input.name, &ModelInfo::Input::name);
        std::vector<float> values;
        if (said == info.inputs.end()) return false;
        if (said->feed == "frame-size")
            values = {static_cast<float>(picture.width), static_cast<float>(picture.height)};
        else if (!said->feed.starts_with("const:") ||
                 !vision::parse_numbers(std::string_view(said->feed).substr(6), values))
            return false;
        for (size_t k = 0; k < input.cpu.size; ++k) {
            const float value = values[values.size() == 1 ? 0 : std::min(k, values.size() - 1)];
            const auto whole = static_cast<int64_t>(value);
            if (input.cpu.data_type == DataType::float32)
                std::memcpy(static_cast<float*>(memory) + k, &value, sizeof value);
            else if (input.cpu.data_type == DataType::int64)
                std::memcpy(static_cast<int64_t*>(memory) + k, &whole, sizeof whole);
            else
                return false;
        }
    }
    return true;
}

// What the decoder says after the run; nothing where the model could not be run like this.
std::optional<std::string> doubt_after_run(Decoder& decoder, const std::string& path,
                                           const artifact::CompiledModel& model,
                                           const ModelInfo& info, const PictureInput& picture) {
    const auto runner =
        vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path,
                                           {{"input_tensor_type", std::any(std::string("CPU"))},
                                            {"output_tensor_type", std::any(std::string("CPU"))}});
    std::vector<Tensors> in{allocate(*runner, TensorDirection::INPUT)};
    std::vector<Tensors> out{allocate(*runner, TensorDirection::OUTPUT)};
    if (in[0].size() != model.inputs.size() || out[0].size() != model.outputs.size() ||
        !fill_inputs(in[0], model, info, picture) ||
        runner->execute(in, out) != vart::StatusCode::SUCCESS)
        return std::nullopt;
    std::vector<OutputTensor> tensors;
    for (size_t i = 0; i < model.outputs.size(); ++i) {
        const TensorInfo& output = model.outputs[i];
        tensors.push_back({out[0][i].get_virtual_address(), output.name, &output.cpu, &output.cpu});
    }
    Decoded decoded;
    const auto done = decoder.decode(tensors, {}, picture.width, picture.height, decoded);
    return done ? decoder.doubt() : done.error().message;
}

}  // namespace

void check_numbers(Examination& e, const std::string& path, const artifact::CompiledModel& model,
                   const ModelInfo& info, const PictureInput& picture, Decoder decoder) {
    std::optional<std::string> doubt;
    try {
        doubt = doubt_after_run(decoder, path, model, info, picture);
    } catch (const std::exception&) {
        return;  // the check of the device says why
    }
    if (!doubt) return;
    if (doubt->empty()) return e.fine("the numbers of a run are what that decoder reads");
    e.problem("vartmldecode: " + *doubt, "vartmldecode decoder=…   (or x-vartml-decoder=…)",
              "dec-implausible");
}

}  // namespace vartml::doctor
