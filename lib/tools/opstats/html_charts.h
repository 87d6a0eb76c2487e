// SPDX-License-Identifier: Apache-2.0
// Drawings of a page: the lanes of an inference, its operators under the machine's roofline, a
// histogram, bars of shares.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

struct ShownOp {
    const Op* op = nullptr;
    size_t lane = 0;
    uint64_t start_ns = 0, end_ns = 0;
    uint64_t longest_ns = 0;  // on one thread
};

// The longest operators of an inference, in the order of lanes and time; waits are not among them.
struct ShownOps {
    std::vector<std::string> lanes;  // a thread group each
    std::vector<ShownOp> ops;
    uint64_t count = 0;  // of all, shown or not
    uint64_t begin_ns = 0, end_ns = 0;
    size_t lanes_left_out = 0;
};
Result<ShownOps> longest_ops(const BufferFile& buffer, const Descriptor& descriptor);

std::string timeline_html(const ShownOps& shown, const Descriptor& descriptor);
// Where the machine's peaks are in the buffer.
std::string roofline_html(const ShownOps& shown, const Descriptor& descriptor,
                          const format::Header& header);
std::string histogram_html(std::vector<double> values_us, const std::string& name);

}  // namespace vartml::profiling
