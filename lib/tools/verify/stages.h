// SPDX-License-Identifier: Apache-2.0
// What is under test, a function per stage, so that tests can put faults in its place.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include "lib/tools/verify/decode_path.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/session.h"

namespace vartml::verify {

struct Preprocessed {
    Buffer tensor;  // in the view asked for
    Affine to_frame;
};

struct Stages {
    std::function<Result<Preprocessed>(const PictureData&, const TensorView& cpu,
                                       const TensorView& view, const PreprocessOptions&)>
        preprocess;
    std::function<Result<std::vector<Buffer>>(Session&, const std::vector<Buffer>&)> run;
    std::function<Result<Buffer>(const TensorView& hw, const TensorView& cpu, const Buffer&)>
        dequantise;
    std::function<Result<vision::Candidates>(DecodePath&, std::span<const OutputTensor>,
                                             const Frame&)>
        decode;
    std::function<Result<Decoded>(DecodePath&, std::span<const OutputTensor>, const Frame&)>
        suppress;  // decodes too: NMS has no entrance of its own
};

// The functions that a pipeline uses.
Stages product_stages();

}  // namespace vartml::verify
