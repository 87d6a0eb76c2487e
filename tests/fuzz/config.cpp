// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a configuration of the compiler.
#include "lib/compile/config.h"

#include "tests/fuzz/bytes.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    seed("partitions",
         R"({"passes":[{"name":"init","plugin":"vaip-pass_init"},{"name":"vaiml_partition",
        "plugin":"vaip-pass_vaiml_partition","vaiml_config":{"optimize_level":2,"device":"softnpu",
        "threshold_gops_percent":20,"batch_size":1}}]})");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const MemoryFile file(as_text(data, size));
    for (const bool allow_unknown : {false, true}) {
        const compiler::ConfigReading read = compiler::read_config(file.path, allow_unknown);
        for (const auto* sentences : {&read.faults, &read.notes, &read.warnings})
            for (const std::string& sentence : *sentences) check(is_plain_text(sentence));
    }
    return 0;
}
