// SPDX-License-Identifier: Apache-2.0
// Reads any text as an estimate. With VARTML_FUZZ_SEEDS=DIR it writes its seed there.
#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/base/text.h"
#include "lib/tools/opstats/layers.h"

using namespace vartml;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS"))
        std::ofstream(std::string(dir) + "/estimate")
            << "# layers\n0:\n  name: \"MLA_0/conv2d_0\"\n  start_cycle: 0\n  end_cycle: 9\n"
               "1:\n  name: 'a'\n  start_cycle: 10\n  end_cycle: 12 # last\n";
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto read = profiling::read_estimate(text, "estimate");
    if (!read && !is_plain_text(read.error().message)) std::abort();
    if (read)
        for (const profiling::EstimateLayer& layer : read->layers)
            if (layer.end_cycle < layer.start_cycle || !is_plain_text(layer.name)) std::abort();
    return 0;
}
