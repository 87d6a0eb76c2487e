// SPDX-License-Identifier: Apache-2.0
// Reads any text as bones between keypoints, and as a file of labels.
#include <vartml/postprocess.h>

#include "tests/fuzz/bytes.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("bones", "0-1;1-2");
    seed("name", "coco17");
    seed("labels", "cat\r\ndog\n");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    (void)parse_skeleton(as_text(data, size));
    const MemoryFile file(as_text(data, size));
    check_refusal(read_labels(file.path));
    return 0;
}
