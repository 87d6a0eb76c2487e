// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a stats descriptor. With VARTML_FUZZ_SEEDS=DIR it writes its seed there.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "lib/base/text.h"
#include "lib/model/stats_descriptor.h"
#include "tests/model/descriptors.h"

using namespace vartml;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS"))
        std::ofstream(std::string(dir) + "/descriptor", std::ios::binary)
            << artifact::write_descriptor(test::small_descriptor());
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // Aligned as a mapping is.
    const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                                       reinterpret_cast<const std::byte*>(data) + size);
    const auto read = artifact::read_descriptor(bytes, "descriptor");
    if (!read && !is_plain_text(read.error().message)) std::abort();
    // What was read can be written again, and is the same then.
    if (read) {
        const std::string again = artifact::write_descriptor(*read);
        const auto twice = artifact::read_descriptor(as_bytes(again), "descriptor");
        if (!twice || artifact::write_descriptor(*twice) != again) std::abort();
    }
    return 0;
}
