// SPDX-License-Identifier: Apache-2.0
// Values of the model's inputs that are not the picture (`x-vartml-feed` of the sidecar).
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::gst::infer {

class Feed {
public:
    // `text` is "const:<one number, or one per element>" or "frame-size" (width, height of the
    // frame in pixels). Errors: bad_model naming the tensor and what fits it.
    static vartml::Result<Feed> create(const std::string& text, const std::string& name,
                                       const vartml::TensorView& view);

    // Writes the whole tensor; allocates nothing.
    void write(unsigned frame_width, unsigned frame_height, void* tensor) const;

private:
    vartml::DataType type_ = vartml::DataType::unknown;
    vartml::Quantisation quantisation_;
    size_t count_ = 0;
    bool frame_size_ = false;
    std::vector<double> values_;
};

}  // namespace vartml::gst::infer
