// SPDX-License-Identifier: Apache-2.0
// What a model is fed where nobody gives anything better: the same bytes in every run.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/graph/graph.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/reference.h"

namespace vartml::verify {

// Where the sides of a picture are among dimensions, -1 for those without a number; `height` is 0
// where the tensor is no picture.
struct PictureAxes {
    size_t height = 0, width = 0, channels = 0;
};
PictureAxes picture_axes(const std::vector<int64_t>& shape);

// What becomes of pixels from 0 to 255 in a float tensor.
struct Pixels {
    std::array<float, 3> mean{0, 0, 0}, scale{1 / 255.f, 1 / 255.f, 1 / 255.f};
    bool is_bgr = false;
    bool operator==(const Pixels&) const = default;
};

// Whether a tensor of `count` numbers is fed the size of a picture, by its name.
bool is_size(const std::string& name, size_t count);

// What to feed: `picture` (null: a made scene of gradients, discs and a little noise) where the
// shape is a picture's, integers get the pixels themselves; what is_size() gets `side`;
// other floats are from -1 to 1 (from 0 to 1 where they are to be positive), other integers 0 or 1.
struct InputMaker {
    const PictureData* picture = nullptr;
    Pixels pixels = {};
    int64_t side = 320;
    bool is_positive = false;
    TensorData make(const std::string& name, DataType type,
                    const std::vector<int64_t>& shape) const;
};

// Each float element moved by one part in a million, up or down; false: the type has none so near.
bool nudge(TensorData& data);

// What a graph itself says about the pixels that it takes.

// Whether the first arithmetic on `input` is meant for pixels from 0 to 255: a mean of their size
// is taken away (Sub, Add, BatchNormalization), or they are divided by as much. False where the
// first arithmetic says nothing, as a convolution does.
bool takes_bytes(const graph::Graph& graph, graph::ValueId input);

}  // namespace vartml::verify
