// SPDX-License-Identifier: Apache-2.0
// One inference as a page: page.html with its figures as JSON. A single file that asks for nothing
// else, readable on a phone.
#pragma once
#include <span>
#include <string>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/layers.h"
#include "lib/tools/opstats/nodes.h"
#include "lib/tools/opstats/summary.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

struct PageParts {
    const SummaryText& summary;
    const Verdict& verdict;
    std::span<const LayerRow> layers;        // empty: there is no estimate
    std::span<const double> round_trips_us;  // of the inferences of the run; empty: no histogram
    const NodeTable* nodes = nullptr;        // nullptr: the page begins with the capture
};

// Numbers have the digits of the summary and of the layers' CSV. Same input, same bytes; at most
// 8 MiB: what is too much is counted in the page. Errors: io.
Result<void> write_page(const BufferFile& buffer, const Descriptor& descriptor,
                        const PageParts& parts, const std::string& path);

// page.html alone.
std::span<const EmbeddedFile> page_files();

}  // namespace vartml::profiling
