// SPDX-License-Identifier: Apache-2.0
// Writes the buffer of captures.h to a file, for a reader that shares no code with ours.
#include <cstdio>

#include "tests/tools/opstats/captures.h"

int main(int argc, char** argv) {
    using namespace vartml;
    if (argc != 2) return 2;
    const auto descriptor = test::small_descriptor();
    const auto written =
        profiling::write_stats_buffer(test::small_capture_at(profiling::level_pmu_per_operator),
                                      test::small_context(descriptor), argv[1]);
    if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return written ? 0 : 1;
}
