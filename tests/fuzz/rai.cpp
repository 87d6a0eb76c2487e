// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a .rai. Length and checksum in the end mark are made right first, so that the
// fuzzer gets behind them; with VARTML_FUZZ_SEEDS=DIR it writes its seeds there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/model/compiled_model.h"
#include "lib/model/containers.h"
#include "tests/model/models.h"

using namespace vartml;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS")) {
        if (!artifact::write_rai(test::conv_model(), std::string(dir) + "/conv.rai")) std::abort();
        if (!artifact::write_rai(test::mixed_model(), std::string(dir) + "/mixed.rai"))
            std::abort();
    }
    return 0;
}

static void repair(std::string& bytes) {
    artifact::Footer footer;
    uint32_t prefix = 0;
    if (bytes.size() < artifact::min_rai_bytes) return;
    std::memcpy(&prefix, bytes.data(), sizeof prefix);
    if (prefix > bytes.size() - sizeof footer - 4) return;
    footer.file_size = bytes.size();
    footer.manifest_size = prefix;
    footer.manifest_crc32c = crc32c(as_bytes(std::string_view(bytes).substr(0, prefix + 4)));
    std::memcpy(footer.magic, artifact::footer_magic, sizeof footer.magic);
    std::memcpy(bytes.data() + bytes.size() - sizeof footer, &footer, sizeof footer);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    repair(bytes);
    const Fd file(::memfd_create("rai", MFD_CLOEXEC));
    if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return 0;
    const auto model = artifact::read("/proc/self/fd/" + std::to_string(file.get()));
    if (!model && !is_plain_text(model.error().message)) std::abort();
    return 0;
}
