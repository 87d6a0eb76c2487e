// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a .tar.gz. The first byte says whether they are the archive itself or the tar
// that is compressed here, so that the fuzzer gets behind the checksum of gzip; with
// VARTML_FUZZ_SEEDS=DIR it writes its seeds there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/model/compiled_model.h"
#include "lib/model/foreign.h"
#include "tests/model/models.h"
#include "tests/model/tar_archives.h"
#include "tests/support/temp_dir.h"

using namespace vartml;

namespace {

constexpr char as_it_is = 0, as_tar = 1;

void write_seed(const std::string& name, char kind, const std::string& bytes) {
    std::ofstream(name, std::ios::binary) << kind << bytes;
}

// What is unpacked goes here, and must be gone after each run.
const test::TempDir& temporary() {
    static const test::TempDir dir;
    return dir;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    ::setenv("TMPDIR", temporary().path().c_str(), 1);
    const char* dir = std::getenv("VARTML_FUZZ_SEEDS");
    if (!dir) return 0;
    const std::string folder = dir;
    const artifact::CompiledModel models[] = {test::conv_model(), test::mixed_model()};
    for (const auto& model : models) {
        const std::string stem = folder + (&model == models ? "/conv" : "/mixed");
        if (!artifact::write_tar(model, stem + ".tar.gz")) std::abort();
        std::vector<test::TarEntry> entries;
        for (const auto& seen : test::list_tar(stem + ".tar.gz")) entries.push_back(seen.entry);
        write_seed(stem + ".plain", as_tar, test::make_tar(entries));
        write_seed(stem + ".pax", as_tar, test::make_tar(entries, test::TarFormat::pax));
        write_seed(stem + ".packed", as_it_is, test::slurp(stem + ".tar.gz"));
        ::unlink((stem + ".tar.gz").c_str());
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] == as_tar) bytes = test::gzip(bytes);
    const Fd file(::memfd_create("tar", MFD_CLOEXEC));
    if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return 0;
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    const auto model = artifact::read(path);
    if (!model && !is_plain_text(model.error().message)) std::abort();
    if (!model && artifact::is_gzip(path)) {
        const auto mpk = artifact::foreign_mpk(path);
        if (!mpk && !is_plain_text(mpk.error().message)) std::abort();
    }
    if (!std::filesystem::is_empty(temporary().path())) std::abort();
    return 0;
}
