// SPDX-License-Identifier: Apache-2.0
// Captures of any size, made by hand: a chain of convolutions as networks have them.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "tests/tools/opstats/captures.h"

namespace vartml::test {

// The same numbers everywhere.
class Dice {
public:
    uint64_t below(uint64_t bound) {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return (state_ >> 33) % bound;
    }

private:
    uint64_t state_ = 7;
};

// sync, then per layer an operator and a barrier, each with an edge to the next operator.
inline p::Descriptor chain_descriptor(uint32_t layers) {
    p::Descriptor d = small_descriptor();
    d.network = "chain";
    d.kinds = {p::sync_kind, p::barrier_kind, "conv",   "to_nchw", "softmax",
               "maxpool",    "add",           "concat", "resize",  "matmul"};
    constexpr uint32_t kinds[] = {2, 2, 2, 6, 2, 5, 2, 7, 9, 8, 3};
    d.tensors.clear();
    p::Group& npu = d.cores[0].groups[0];
    d.cores[0].groups.resize(1);
    npu.ops = {wait_op(0, kind_sync, 0)};
    d.edges.clear();
    Dice dice;
    for (uint32_t i = 0; i < layers; ++i) {
        const uint64_t bytes = 1024 * (1 + dice.below(1024));
        const uint32_t kind = kinds[dice.below(std::size(kinds))];
        const bool computes = kind == 2 || kind == 9;
        p::Op op = conv_op(2 * i + 1, "/model/" + std::to_string(i) + "/" + d.kinds[kind],
                           static_cast<int32_t>(i), bytes,
                           computes ? bytes * (4 + dice.below(90)) : bytes / 4);
        op.kind = kind;
        op.data_movement = kind == 3;
        op.onnx_nodes = {op.name};
        op.attributes = computes ? "kernel=3x3 pads=1,1,1,1 act=relu" : "";
        op.inputs = {i};
        op.outputs = {i + 1};
        d.tensors.push_back({"t" + std::to_string(i), 1, 1, {1, 16, 64, 64}, bytes, false});
        npu.ops.push_back(op);
        npu.ops.push_back(wait_op(2 * i + 2, kind_barrier, 0));
        if (i > 0) d.edges.push_back({2 * i - 1, 2 * i + 1, true});
    }
    d.tensors.push_back({"y", 1, 1, {1, 16, 64, 64}, 65536, false});
    return d;
}

// `threads` of each core in step, each a little early or late.
inline p::Capture chain_capture(const p::Descriptor& descriptor, uint16_t cores, uint16_t threads) {
    p::Capture c = small_capture();
    c.core_count = cores;
    c.threads.clear();
    c.traffic.clear();
    c.doorbells.clear();
    c.semaphores.clear();
    c.ports.clear();
    c.pmu_events.clear();
    const auto& ops = descriptor.cores[0].groups[0].ops;
    for (uint16_t core = 0; core < cores; ++core) {
        c.traffic.push_back({core, false, 12'000'000, 7'000'000});
        c.doorbells.push_back({core, p::input_port, 3, start_ns - 1000});
        c.ports.push_back({core, 0, p::input_port, false, 1, 20'000});
        c.ports.push_back({core, 0, p::output_port, true, 1, 1'000});
        for (uint16_t thread = 0; thread < threads; ++thread) {
            p::ThreadCapture t = npu_thread(core, thread, start_ns);
            t.ops.clear();
            t.pcycles = 0;
            Dice dice, jitter;
            jitter.below(1);
            for (uint16_t skip = 0; skip < thread; ++skip) jitter.below(2);
            uint64_t at = start_ns;
            for (const p::Op& op : ops) {
                // By bytes and operations, as a roofline has it, and some luck.
                const uint64_t share = op.ops / 60 + op.write_bytes / 4;
                const uint64_t ns = 400 + share * (90 + dice.below(120)) / 100;
                const uint64_t end = at + (descriptor.is_barrier(op) ? 300 : ns);
                const uint64_t begin = at + (descriptor.is_barrier(op) ? 0 : 1 + jitter.below(200));
                t.ops.push_back({begin, end});
                const uint64_t cycles = (end - begin) * 28 / 10;
                if (thread == 0) t.pcycles_of_ops.push_back(cycles);
                t.pcycles += cycles;
                at = end;
            }
            t.start = start_ns;
            t.end = at;
            t.cpu_ns = at - start_ns;
            c.threads.push_back(std::move(t));
        }
    }
    const uint64_t end = c.threads.back().end;
    c.host[6] = end + 10'000;
    c.host[7] = end + 30'000;
    c.host[8] = c.end_ns = end + 40'000;
    c.record_count = ops.size() * threads;
    return c;
}

}  // namespace vartml::test
