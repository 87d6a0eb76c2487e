// SPDX-License-Identifier: Apache-2.0
// Reads any text as the summary of a run. What was read is written and read again, and is the same
// then.
#include "lib/tools/opstats/summary.h"

#include "lib/tools/opstats/identities.h"
#include "tests/fuzz/bytes.h"
#include "tests/tools/opstats/captures.h"

using namespace vartml;
using namespace vartml::profiling;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("empty", text_of(SummaryText()));
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto read = parse_summary(as_text(data, size), "summary");
    check_refusal(read);
    if (!read) return 0;
    const std::string text = text_of(*read);
    const auto again = parse_summary(text, "summary");
    check(again && text_of(*again) == text);
    (void)check_identities(*read, ucycle_hz_of(*read));
    return 0;
}
