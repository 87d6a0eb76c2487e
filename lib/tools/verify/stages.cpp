// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/stages.h"

#include "lib/base/convert.h"

namespace vartml::verify {
namespace {

Result<Preprocessed> preprocess(const PictureData& picture, const TensorView& cpu,
                                const TensorView& view, const PreprocessOptions& options) {
    auto preprocessor = Preprocessor::create(
        {.format = PixelFormat::RGB, .width = picture.width, .height = picture.height}, {}, cpu,
        view, options);
    if (!preprocessor) return preprocessor.error();
    Picture planes;
    planes.planes[0] = picture.rgb.data();
    planes.stride_bytes[0] = picture.width * 3;
    Preprocessed result{Buffer(view.size_bytes), preprocessor->to_frame()};
    preprocessor->run(planes, result.tensor.data());
    return result;
}

Result<Buffer> dequantise(const TensorView& hw, const TensorView& cpu, const Buffer& bytes) {
    auto conversion = Conversion::create(hw, cpu);
    if (!conversion) return conversion.error();
    Buffer result(cpu.size_bytes);
    conversion->run(bytes.data(), result.data());
    return result;
}

}  // namespace

Stages product_stages() {
    return {.preprocess = preprocess,
            .run = [](Session& session, const std::vector<Buffer>& in) { return session.run(in); },
            .dequantise = dequantise,
            .decode = [](DecodePath& path, std::span<const OutputTensor> tensors,
                         const Frame& frame) { return path.candidates(tensors, frame); },
            .suppress = [](DecodePath& path, std::span<const OutputTensor> tensors,
                           const Frame& frame) { return path.decode(tensors, frame); }};
}

}  // namespace vartml::verify
