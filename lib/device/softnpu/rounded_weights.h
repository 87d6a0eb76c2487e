// SPDX-License-Identifier: Apache-2.0
// What rounding the weights of a convolution to bf16 shifts, taken back through its biases.
#pragma once
#include <map>
#include <vector>

#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// The mean of each channel (dimension 1) of the values that convolutions read, while the program
// runs on noise in f32. Activations have means far from 0, which differ from channel to channel
// much more than from picture to picture.
class ChannelMeans {
public:
    // Runs the program once, on the calling thread.
    explicit ChannelMeans(const device::Program& program);
    // Empty where it is not known: programs whose shapes depend on the data, or that do not run.
    const std::vector<double>& of(graph::ValueId id) const;

private:
    std::map<graph::ValueId, std::vector<double>> means_;
};

// The biases [O], in f32, of a convolution whose constant weights are rounded to bf16: less
// what the errors of a filter add up to where each channel has its mean. Without that every pixel
// of an output channel is off by the same amount, in all pictures.
Bytes biases_for_rounded_weights(Lowering& lowering, const graph::Node& node);

}  // namespace vartml::softnpu
