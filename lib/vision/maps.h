// SPDX-License-Identifier: Apache-2.0
// Outputs that are maps: channels of cells over the picture.
#pragma once
#include <optional>

#include "lib/base/convert.h"
#include "lib/vision/head.h"

namespace vartml::vision {

// Where the cells of a dense map lie; strides in elements.
struct MapForm {
    size_t output = 0;  // index
    uint32_t channels = 0, height = 0, width = 0;
    size_t channel_stride = 0, row_stride = 0, column_stride = 0;

    size_t at(size_t channel, size_t row, size_t column) const {
        return channel * channel_stride + row * row_stride + column * column_stride;
    }
};

// The form of an output of shape [1,C,h,w], [1,h,w,C], [1,h,w] or [h,w]: the axes of the cells are
// those with the aspect of the model's input, to a cell, and not finer than it. Where both pairs
// are, the channels come first.
std::optional<MapForm> map_form(const HeadRequest& request, const TensorInfo& output);

// Whether the sidecar says that a map is one of keypoints: by its role, or by naming bones.
bool is_known_heatmap(const HeadRequest& request, const MapForm& form);

// Whether the only output is a map as large as the model's picture of two or three channels that
// nobody calls classes: it may as well be another picture, the colours of a grey one, or motion.
bool may_be_picture(const HeadRequest& request);

// Whether the outputs are several maps of two channels: a class each, or pairs of something else.
bool may_be_objects(const HeadRequest& request);

// How many times as large as the model's picture the only output is, where it has the form of a
// picture of one channel or three and is larger; 0 where it is not.
unsigned times_the_picture(const HeadRequest& request);

// Whether somebody says that a vector is the scores of classes: sidecar, labels, a name, the
// graph's last operator, or a number of classes that models are published for.
bool are_classes(const HeadRequest& request, const TensorInfo& vector);
// Whether the only output is a vector that may as well be an embedding or landmarks: many sums of
// products, with or without a Relu behind them, that nobody calls classes.
bool may_be_other_than_classes(const HeadRequest& request, const TensorInfo& vector);

// A tensor as dense floats in the order of its CPU shape: its own bytes where they are that, else a
// copy. Keeps memory over frames.
class FloatView {
public:
    // Valid until the next call and while the tensor's bytes are. Errors: unsupported (type or
    // layout).
    Result<const float*> read(const OutputTensor& tensor);

private:
    std::optional<Conversion> conversion_;
    TensorView from_;  // of conversion_
    std::vector<float> values_;
    std::vector<std::byte> in_order_;  // integers that are no floats yet
};

// Maps of cells as rows of a matrix.

// Reads [1,C,h,w] as h*w rows of C columns, [1,A,h,w,C] as A*h*w rows, and [1,N,C] as it is. Keeps
// memory over frames.
class Cells {
public:
    // Valid until the next call and while the tensor's bytes are: in place where the view is dense
    // floats, else of a copy. Errors: bad_model (another rank), unsupported (type or layout).
    Result<Matrix> read(const OutputTensor& tensor);

private:
    FloatView floats_;
};

}  // namespace vartml::vision
