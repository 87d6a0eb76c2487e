// SPDX-License-Identifier: Apache-2.0
// One inference as a page: a single file that asks for nothing else, readable on a phone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/buffer/buffer_file.h"
#include "lib/profiling/descriptor.h"
#include "lib/profiling/summary/summary_text.h"

namespace vartml::profiling {

struct Verdict;

struct HtmlOptions {
    // Of the inferences of the run; empty: the page has no histogram. Named in the page.
    std::vector<double> latencies_us;
    std::string latencies_name = "round trip";
};

// Figures are those of `summary` and `layers_csv` as they are printed; "" where there is no
// estimate. Same input, same bytes; at most 8 MiB: what is too much is counted in the page. Errors:
// io.
Result<void> write_html(BufferFile& buffer, const Descriptor& descriptor,
                        const SummaryText& summary, const Verdict& verdict,
                        const std::string& layers_csv, const HtmlOptions& options,
                        const std::string& path);

}  // namespace vartml::profiling
