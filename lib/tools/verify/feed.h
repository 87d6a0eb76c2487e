// SPDX-License-Identifier: Apache-2.0
// From a sample to the tensors of all inputs, with the pre-process of pictures judged on the way.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lib/tools/verify/judge.h"
#include "lib/tools/verify/session.h"
#include "lib/tools/verify/stages.h"
#include "lib/tools/verify/verify.h"

namespace vartml::verify {

// What a frame feeds: the reference's tensors, and ours where we make them ourselves.
struct Fed {
    std::vector<TensorData> reference;  // in the CPU views
    std::vector<Buffer> inputs;         // the reference's, in the model's views
    std::vector<Buffer> own;            // empty where no stage of ours made them
    Frame frame, own_frame;
    std::optional<Judgement> preprocess;  // of a picture
};

// Inputs that the sidecar feeds nothing and whose own name says that they take the size of a
// picture become frame-size. Their names.
std::vector<std::string> feed_sizes(ModelInfo& info, const std::vector<TensorInfo>& inputs);

// What the sidecar's x-vartml-feed says of an input beside the picture, whose size in pixels this
// is. Errors: invalid_argument where it says nothing that fits.
Result<TensorData> beside_picture(const TensorInfo& input, const ModelInfo& info, uint32_t width,
                                  uint32_t height);

class Feeder {
public:
    // The first two must outlive it. `pixels_from`: who says mean and scale, where it is not the
    // sidecar.
    Feeder(const Session& session, const ModelInfo& info, const std::string& decoder,
           const std::string& pixels_from = {});

    std::optional<size_t> picture() const { return picture_; }  // the input that pictures go to
    // How pictures become tensors, and who says so.
    std::string words() const;

    // Errors: invalid_argument for a sample that does not fit the model; those of the stage.
    Result<Fed> feed(const Sample& sample, const Stages& stages) const;

private:
    const ModelInfo::Input* sidecar_input(const std::string& name) const;
    Result<Fed> feed_picture(const Sample& sample, const Stages& stages) const;
    Result<Fed> feed_tensors(const Sample& sample) const;
    void frame_of_tensors(Fed& fed) const;

    const Session& session_;
    const ModelInfo& info_;
    std::optional<size_t> picture_;
    PixelChoice pixels_;
};

}  // namespace vartml::verify
