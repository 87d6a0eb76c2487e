// SPDX-License-Identifier: Apache-2.0
// Writes the page and the trace of an invented inference, for tests that look at them.
//
// usage: chain_page FOLDER
#include <cstdio>

#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/html_report.h"
#include "lib/tools/opstats/summary_build.h"
#include "lib/trace/text.h"
#include "tests/tools/opstats/large_captures.h"

namespace p = vartml::profiling;
using namespace vartml::test;

namespace {

std::string layers_csv(const p::Descriptor& d) {
    std::string csv =
        "index,name,partition,engine,est_cycles,est_us,meas_us,meas_cycles,error_pct,est_share_pct,"
        "meas_share_pct,scaled_error_pct,macs,gops_per_s,read_kb,write_kb,gb_per_s,bound\n";
    Dice dice;
    for (const p::Op& op : d.cores[0].groups[0].ops) {
        if (op.layer < 0) continue;
        const double est = static_cast<double>(op.ops) / 90'000 + 1;
        const double meas = est * (0.8 + 0.01 * static_cast<double>(dice.below(60)));
        csv += p::format_text("%d,%s,vaiml_par_0,SNPU,%.0f,%.3f,%.3f,%.0f,%.2f,%.2f,%.2f,%.2f,",
                              op.layer, op.name.c_str(), est * 1000, est, meas, meas * 1000,
                              (est - meas) / meas * 100, est / 150, meas / 150, 1.5);
        csv += p::format_text("%llu,%.2f,%.2f,%.2f,%.2f,%s\n",
                              static_cast<unsigned long long>(op.macs), 3.5, 10.0, 5.0, 1.25,
                              op.kind == 2 ? "compute" : "memory");
    }
    return csv;
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
    descriptor.cores[0].groups[0].ops[7].name = "</script><img src=x onerror=alert(1)>";
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
    p::HtmlOptions options;
    Dice dice;
    for (int i = 0; i < 800; ++i)
        options.latencies_us.push_back(2300 +
                                       static_cast<double>(dice.below(300) + dice.below(300)) +
                                       (i % 50 == 0 ? 900 : 0));
    if (auto r = p::write_html(*buffer, descriptor, *summary, *verdict, layers_csv(descriptor),
                               options, folder + "/chain.html");
        !r)
        return fail(r.error());
    const p::TraceSource source{&*buffer, &descriptor, ""};
    if (auto r = p::write_trace({&source, 1}, {.flow_events = true}, folder + "/chain.trace.json");
        !r)
        return fail(r.error());
    std::printf("%s", p::text_of(*summary).c_str());
    return 0;
}
