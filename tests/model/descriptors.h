// SPDX-License-Identifier: Apache-2.0
// A small stats descriptor, made by hand.
#pragma once
#include "lib/trace/descriptor.h"

namespace vartml::test {

// One partition of one convolution.
inline profiling::Descriptor small_descriptor() {
    profiling::Descriptor d;
    d.network = "tiny";
    for (uint8_t i = 0; i < 16; ++i) d.model_signature[i] = i;
    d.compiled_level = 70;
    d.target = "softnpu-1";
    d.nominal_clock_hz = 1'000'000'000;
    d.kinds = {"sync", "conv2d", "barrier"};
    d.memories = {"DDR"};
    d.engines = {"SNPU"};
    d.dtypes = {"fp32"};
    d.partitions = {"vaiml_par_0"};
    d.estimate_entries = {"vaiml_par_0/0/tiny_mla_stats.yaml"};
    d.tensors = {{"x", 10, 7, {1, 3, 8, 8}, 768, false}, {"y", 10, 7, {1, 2, 8, 8}, 512, false}};
    profiling::Op sync, conv, barrier;
    conv.id = 1;
    conv.name = "conv";
    conv.kind = 1;
    conv.dtypes = {0};
    conv.layer = 0;
    conv.out_bytes = conv.write_bytes = 512;
    conv.read_bytes = 768;
    conv.macs = 384;
    conv.ops = 768;
    conv.inputs = {0};
    conv.outputs = {1};
    conv.onnx_nodes = {"conv", "relu"};
    conv.attributes = "group=1";
    barrier.id = 2;
    barrier.kind = 2;
    d.cores = {{0, {{0, {sync, conv, barrier}}}}};
    d.edges = {{0, 1, false}, {1, 2, false}};
    return d;
}

inline profiling::Op& conv_of(profiling::Descriptor& d) {
    return d.cores[0].groups[0].ops[1];
}

}  // namespace vartml::test
