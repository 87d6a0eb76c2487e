// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a configuration of vvas_xinfer, alone and with a second file.
#include "lib/tools/vvas_config.h"

#include "tests/fuzz/bytes.h"
#include "tests/tools/vvas_files.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("resnet", vvas_resnet);
    seed("yolox", vvas_yolox);
    seed("dpu", vvas_dpu);
    seed("oldest", vvas_oldest);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const MemoryFile file(as_text(data, size));
    check_refusal(tools::read_vvas_config(file.path, ""));
    check_refusal(tools::read_vvas_config(file.path, file.path));
    return 0;
}
