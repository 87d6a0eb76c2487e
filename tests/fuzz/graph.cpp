// SPDX-License-Identifier: Apache-2.0
// Reads any text as a graph. What was read is printed and read again, and prints the same.
#include "lib/graph/text.h"
#include "lib/graph/verify.h"

#include "tests/fuzz/bytes.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("conv",
         "input %x : f32[1,3,8,8]\nconst %w : f32[4,3,3,3] = {0}\n"
         "%y = Conv+Relu %x, %w {pads=[1,1,1,1], strides=[1,1]} : f32[1,4,8,8]\noutput %y\n");
    seed("constants",
         "input %x : i64[2]\nconst %a : i64[2] = {1,-2}\n%y = Add %x, %a : i64[2]\noutput %y");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto read = graph::parse(as_text(data, size));
    check_refusal(read);
    if (!read) return 0;
    check_refusal(graph::verify(*read));
    const std::string text = graph::print(*read);
    const auto again = graph::parse(text, &*read);  // which has the constants of known hashes
    check(again && graph::print(*again) == text);
    return 0;
}
