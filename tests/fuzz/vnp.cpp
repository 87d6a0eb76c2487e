// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a program. The first byte picks the partition of the manifest that the program
// must fit; with VARTML_FUZZ_SEEDS=DIR it writes its seeds there.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "lib/base/text.h"
#include "lib/model/program.h"
#include "tests/model/models.h"

using namespace vartml;

namespace {

struct Reference {
    artifact::CompiledModel model;
    artifact::Partition partition;
    std::string weights, seed;
    uint32_t weights_crc32c = 0;
};

std::vector<Reference>& references() {
    static std::vector<Reference> list = [] {
        std::vector<Reference> out;
        for (const auto& model : {test::conv_model(), test::mixed_model()})
            for (const artifact::Partition& p : model.partitions) {
                const auto written = artifact::write_program(model, p);
                if (!written) std::abort();
                Reference r{model, p, {}, {}, written->weights_crc32c};
                for (const Bytes piece : written->weights) r.weights += as_text(piece);
                r.seed = static_cast<char>(out.size()) + written->bytes;
                out.push_back(std::move(r));
            }
        return out;
    }();
    return list;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS"))
        for (const Reference& r : references())
            std::ofstream(std::string(dir) + "/program" + std::to_string(r.seed[0]),
                          std::ios::binary)
                << r.seed;
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const Reference& reference = references()[data[0] % references().size()];
    // Aligned as a mapping is.
    const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1,
                                       reinterpret_cast<const std::byte*>(data) + size);
    artifact::Partition partition = reference.partition;
    partition.graph = {};
    partition.layers.clear();
    partition.node_layers.clear();
    artifact::ProgramSource source;
    source.program = bytes;
    source.weights = as_bytes(reference.weights);
    source.weights_crc32c = reference.weights_crc32c;
    source.where = "program";
    const auto read = artifact::read_program(source, reference.model, partition);
    if (!read && !is_plain_text(read.error().message)) std::abort();
    return 0;
}
