// SPDX-License-Identifier: Apache-2.0
// A small model and an inference of it, made by hand: two cores, a team of four threads in which t2
// is late, waits of both kinds, a CPU partition, a second core without counters of cycles.
#pragma once
#include <string>

#include "lib/trace/stats_buffer.h"

namespace vartml::test {

namespace p = vartml::profiling;

inline constexpr uint64_t start_ns = 1'000'000'000;  // 19200000 ucycles

// Indices into the lists of small_descriptor().
enum Kind : uint32_t { kind_sync, kind_barrier, kind_conv, kind_to_nchw, kind_softmax };
enum Dtype : uint16_t { dtype_int8, dtype_int32, dtype_float };

inline p::Op wait_op(uint32_t id, uint32_t kind, uint32_t partition) {
    p::Op op;
    op.id = id;
    op.kind = kind;
    op.partition = partition;
    return op;
}

inline p::Op conv_op(uint32_t id, const std::string& name, int32_t layer, uint64_t out_bytes,
                     uint64_t ops) {
    p::Op op = wait_op(id, kind_conv, 0);
    op.name = name;
    op.dtypes = {dtype_int8, dtype_int32};
    op.layer = layer;
    op.out_bytes = op.write_bytes = out_bytes;
    op.read_bytes = 2 * out_bytes;
    op.ops = ops;
    op.macs = ops / 2;
    return op;
}

inline p::Descriptor small_descriptor() {
    p::Descriptor d;
    d.network = "small net";
    for (size_t i = 0; i < d.model_signature.size(); ++i)
        d.model_signature[i] = static_cast<uint8_t>(i * 17);
    d.compiled_level = p::level_operators;
    d.stats_batchsize = d.batch = 8;
    d.ddr_stats = true;
    d.pmu.recipe = "KernelUtil";
    d.target = "softnpu-1";
    d.nominal_clock_hz = 1'000'000'000;
    d.kinds = {p::sync_kind, p::barrier_kind, "conv", "to_nchw", "softmax"};
    d.memories = {p::system_memory};
    d.engines = {p::npu_engine, p::cpu_engine};
    d.dtypes = {"i8", "i32", "float32"};
    d.partitions = {"vaiml_par_0", "vaiml_cpu_subgraph_0"};
    d.estimate_entries = {"vaiml_par_0/small_mla_stats.yaml"};
    d.tensors = {{"x", 1, 1, {8, 3, 4, 4}, 65536, false}};

    p::Op to_nchw = wait_op(5, kind_to_nchw, 0);
    to_nchw.name = "vaiml_par_0/out/y";
    to_nchw.dtypes = {dtype_int8};
    to_nchw.out_bytes = to_nchw.read_bytes = to_nchw.write_bytes = 32768;
    to_nchw.data_movement = true;
    p::Op softmax = wait_op(8, kind_softmax, 1);
    softmax.name = "softmax_0";
    softmax.dtypes = {dtype_float};
    softmax.out_bytes = softmax.read_bytes = softmax.write_bytes = 4000;
    softmax.ops = 3000;

    p::Core core;
    core.groups.push_back({0,
                           {wait_op(0, kind_sync, 0), conv_op(1, "conv_0", 0, 65536, 1'000'000),
                            wait_op(2, kind_barrier, 0), conv_op(3, "conv_1", 1, 32768, 40'000),
                            wait_op(4, kind_barrier, 0), to_nchw, wait_op(6, kind_barrier, 0)}});
    core.groups.push_back({1, {wait_op(7, kind_sync, 1), softmax, wait_op(9, kind_barrier, 1)}});
    d.cores.push_back(core);
    d.edges = {{1, 3, true}, {3, 5, true}, {5, 8, true}};
    return d;
}

inline p::ThreadCapture npu_thread(uint16_t core, uint16_t thread, uint64_t base) {
    const auto at = [&](uint64_t start, uint64_t end) {
        return p::Stamp{base + start, base + end};
    };
    const uint64_t conv0 = thread == 2 ? 90'000 : 60'000;
    const uint64_t conv1 = thread == 1 ? 135'000 : 140'000;
    p::ThreadCapture t;
    t.core = core;
    t.thread = thread;
    t.os_tid = 1000 + 10U * core + thread;
    t.start = base + 100U * thread;
    t.end = base + 200'000;
    t.cpu_ns = 150'000;
    t.activate_ns = 1'000'000 + 1000U * thread;
    t.ops = {at(100U * thread, 10'000),
             at(10'000, conv0),
             at(conv0, 90'000),
             at(90'000, conv1),
             at(conv1, 140'000),
             thread == 0 ? at(140'000, 150'000) : p::Stamp{},
             thread == 0 ? at(150'000, 150'000) : at(140'000, 150'000)};
    return t;
}

inline p::ThreadCapture cpu_thread(uint16_t core, uint64_t base) {
    p::ThreadCapture t;
    t.core = core;
    t.thread = 4;
    t.group = t.engine = 1;
    t.os_tid = 1000 + 10U * core + 4;
    t.start = base + 150'000;
    t.end = base + 190'000;
    t.cpu_ns = 31'000;
    t.ops = {{base + 150'000, base + 155'000},
             {base + 155'000, base + 185'000},
             {base + 185'000, base + 185'000}};
    return t;
}

// At level 70.
inline p::Capture small_capture() {
    p::Capture c;
    c.inference_index = 3;
    c.captured_level = p::level_operators;
    c.core_count = 2;
    c.begin_ns = start_ns - 60'000;
    c.end_ns = start_ns + 240'000;
    c.record_count = 80;
    c.record_cost_ps = 25'000;
    for (uint16_t core = 0; core < 2; ++core) {
        const uint64_t base = start_ns + core * 5'000U;
        for (uint16_t thread = 0; thread < 4; ++thread)
            c.threads.push_back(npu_thread(core, thread, base));
        c.threads.push_back(cpu_thread(core, base));
        c.traffic.push_back({core, false, 200'000, 135'000});
        c.doorbells.push_back({core, p::input_port, 3, base - 1000});
        c.semaphores.push_back({core, 4, 0, base + 150'000, base + 155'000});
        c.ports.push_back({core, 0, p::input_port, false, 1, core == 0 ? 50'000U : 20'000U});
        c.ports.push_back({core, 0, p::output_port, true, 1, 1'000});
    }
    for (size_t i = 0; i < 5; ++i) {
        c.threads[i].pcycles = i == 4 ? 90'000 : 400'000 + i;
        c.threads[i].pmu.enabled_ns = c.threads[i].pmu.running_ns = 200'000;
        c.threads[i].pmu.values.fill(p::not_captured);
        c.threads[i].pmu.values[0] = 1'000'000 + i;
    }
    for (size_t i = 5; i < 10; ++i) c.threads[i].pmu.values.fill(p::not_captured);
    c.threads[0].pcycles_of_ops = {5'000, 150'000, 20'000, 140'000, 10, 30'000, 10};
    c.pmu_events = {{0, 0, 1, "instructions"}, {0, 13, 9, "ref-cycles"}};
    c.has_host = true;
    c.host = {start_ns - 60'000,  start_ns - 55'000,  start_ns - 45'000,
              start_ns - 20'000,  start_ns - 10'000,  start_ns - 1'000,
              start_ns + 210'000, start_ns + 230'000, start_ns + 240'000};
    c.frames = {{0, 0, 12, 400'000'000, 12}};
    c.streams = {{0, "camera"}};
    c.missing = {{"pcycles of core 1", "perf_event_open refused (perf_event_paranoid=4)"},
                 {"pmu ref-cycles", "perf_event_open refused (perf_event_paranoid=4)"}};
    return c;
}

// The same at another level.
inline p::Capture small_capture_at(unsigned level) {
    p::Capture c = small_capture();
    c.captured_level = static_cast<uint16_t>(level);
    if (level < p::level_ports) {
        c.ports.clear();
        c.doorbells.clear();
        c.semaphores.clear();
    }
    for (p::ThreadCapture& t : c.threads) {
        if (level < p::level_operators) {
            t.ops.clear();
            t.pcycles_of_ops.clear();
        }
        if (level >= p::level_pmu_per_operator)
            for (size_t i = 0; i < t.ops.size(); ++i) t.pmu_of_ops.push_back({i, 2 * i});
    }
    return c;
}

inline p::BufferContext small_context(const p::Descriptor& descriptor) {
    p::BufferContext context;
    context.descriptor = &descriptor;
    context.descriptor_id.fill(0xd1);
    context.boot_id.fill(0xb0);
    context.anchor0_realtime_ns = 1'700'000'000'000'000'000;
    context.pid = 4242;
    context.peak_ops_per_s = 50'000'000'000;
    context.peak_bytes_per_s = 10'000'000'000;
    return context;
}

}  // namespace vartml::test
