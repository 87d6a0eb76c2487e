// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a manifest.
#include "lib/model/manifest.h"

#include "tests/fuzz/bytes.h"
#include "tests/model/models.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("conv", artifact::write_manifest(conv_model(), {}, 0));
    seed("mixed", artifact::write_manifest(mixed_model(), {}, 0));
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // Aligned as a mapping is.
    const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                       reinterpret_cast<const std::byte*>(data) + size);
    for (const bool in_rai : {false, true})
        check_refusal(artifact::read_manifest(bytes, "manifest", in_rai));
    return 0;
}
