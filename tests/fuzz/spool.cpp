// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a segment of the publisher's spool. The lines that are whole are written
// again, and are the same bytes.
#include "lib/publish/spool.h"

#include "tests/fuzz/bytes.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("lines",
         publish::framed("{\"type\":\"frame\",\"run\":\"a\",\"stream\":\"s\",\"seq\":1}\n") +
             publish::framed("{\"type\":\"gap\",\"run\":\"a\",\"stream\":\"s\",\"first\":2,"
                             "\"last\":3}\n"));
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = as_text(data, size);
    const publish::SegmentContent content = publish::parse_segment(bytes);
    std::string again;
    for (const std::string& line : content.lines) again += publish::framed(line);
    check(again == bytes.substr(0, content.valid_bytes));
    check(content.torn == (content.valid_bytes != bytes.size()));
    uint64_t records = 0;
    const auto gaps = publish::gaps_for(content.lines, records);
    check(records <= content.lines.size() && gaps.size() <= content.lines.size());
    return 0;
}
