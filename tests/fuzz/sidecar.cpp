// SPDX-License-Identifier: Apache-2.0
// Reads any text as a sidecar. What was read is written and read again, and is the same then.
#include <vartml/postprocess.h>

#include "tests/fuzz/bytes.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("detector",
         "[modelinfo]\nversion=1.0\ngroup-id=yolo\n\n[images]\ndirection=input\nid=images\ntype="
         "uint8\n"
         "ranges=0.0,255.0;0.0,255.0;0.0,255.0\nresize=letterbox\npad=114\nmean=1,2,3\n\n[output]\n"
         "direction=output\ndecoder=yolo-v8\nclasses=2\nlabels=cat;dog\nscore-threshold=0.25\n");
    seed("keypoints", "[modelinfo]\nversion=1.0\n[p]\ndirection=output\nskeleton=0-1;1-2\n# a\n");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto read = parse_modelinfo(as_text(data, size), "");
    check_refusal(read);
    if (!read) return 0;
    check_refusal(check_modelinfo(*read, {}, {}));
    const std::string text = print_modelinfo(*read, {}, {});
    const auto again = parse_modelinfo(text, "");
    check(again && print_modelinfo(*again, {}, {}) == text);
    return 0;
}
