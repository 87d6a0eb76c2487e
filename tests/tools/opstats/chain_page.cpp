// SPDX-License-Identifier: Apache-2.0
// Writes the page and the trace of an invented inference, for tests that look at them.
//
// usage: chain_page FOLDER
#include <cstdio>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/page.h"
#include "lib/tools/opstats/summary_build.h"
#include "tests/tools/opstats/large_captures.h"

namespace p = vartml::profiling;
using namespace vartml::test;

namespace {

std::vector<p::LayerRow> layers_of(const p::Descriptor& d) {
    std::vector<p::LayerRow> rows;
    Dice dice;
    for (const p::Op& op : d.cores[0].groups[0].ops) {
        if (op.layer < 0) continue;
        const double est = static_cast<double>(op.ops) / 90'000 + 1;
        const double meas = est * (0.8 + 0.01 * static_cast<double>(dice.below(60)));
        p::LayerRow& row = rows.emplace_back();
        row.index = static_cast<uint64_t>(op.layer);
        row.name = op.name;
        row.partition = "vaiml_par_0";
        row.engine = "SNPU";
        row.est_cycles = est * 1000;
        row.est_us = est;
        row.meas_us = meas;
        row.meas_cycles = meas * 1000;
        row.error_pct = (est - meas) / meas * 100;
        row.est_share_pct = est / 150;
        row.meas_share_pct = meas / 150;
        row.scaled_error_pct = 1.5;
        row.macs = op.macs;
        row.gops_per_s = 3.5;
        row.read_kb = 10;
        row.write_kb = 5;
        row.gb_per_s = 1.25;
        row.bound = op.kind == 2 ? "compute" : "memory";
    }
    return rows;
}

int fail(const vartml::Error& error) {
    std::fprintf(stderr, "chain_page: %s\n", error.message.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string folder = argv[1];
    p::Descriptor descriptor = chain_descriptor(90);
    descriptor.network = "yolo-like <b>chain</b>";
    descriptor.cores[0].groups[0].ops[7].name = "</script><b>x</b><img src=x onerror=alert(1)>";
    const p::Capture capture = chain_capture(descriptor, 2, 4);
    p::BufferContext context = small_context(descriptor);
    context.peak_ops_per_s = 120'000'000'000;
    context.peak_bytes_per_s = 14'000'000'000;
    if (auto r = p::write_stats_buffer(capture, context, folder + "/chain.bin"); !r)
        return fail(r.error());
    auto buffer = p::BufferFile::open(folder + "/chain.bin");
    if (!buffer) return fail(buffer.error());
    const auto verdict = p::verdict_of(*buffer, descriptor);
    if (!verdict) return fail(verdict.error());
    const auto summary = p::build_summary(*buffer, descriptor, *verdict);
    if (!summary) return fail(summary.error());
    std::vector<double> round_trips_us;
    Dice dice;
    for (int i = 0; i < 800; ++i)
        round_trips_us.push_back(2300 + static_cast<double>(dice.below(300) + dice.below(300)) +
                                 (i % 50 == 0 ? 900 : 0));
    const auto layers = layers_of(descriptor);
    if (auto r = p::write_page(*buffer, descriptor, {*summary, *verdict, layers, round_trips_us},
                               folder + "/chain.html");
        !r)
        return fail(r.error());
    const p::TraceSource source{&*buffer, &descriptor, ""};
    if (auto r = p::write_trace({&source, 1}, {.flow_events = true}, folder + "/chain.trace.json");
        !r)
        return fail(r.error());
    std::printf("%s", p::text_of(*summary).c_str());
    return 0;
}
