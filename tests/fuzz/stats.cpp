// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a raw stats buffer and goes through all its reports. Checksums and the length
// are made right first, so that the fuzzer gets behind them; with VARTML_FUZZ_SEEDS=DIR it writes
// its seeds there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/tools/opstats/buffer_trace.h"
#include "lib/tools/opstats/identities.h"
#include "lib/tools/opstats/layers.h"
#include "lib/tools/opstats/page.h"
#include "lib/tools/opstats/summary_build.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

using namespace vartml;
using namespace vartml::profiling;

static const Descriptor& model() {
    static const Descriptor descriptor = test::small_descriptor();
    return descriptor;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    if (const char* dir = std::getenv("VARTML_FUZZ_SEEDS"))
        for (const unsigned level : {40U, 50U, 70U, 100U})
            if (!write_stats_buffer(test::small_capture_at(level), test::small_context(model()),
                                    std::string(dir) + "/" + std::to_string(level) + ".bin"))
                std::abort();
    return 0;
}

static std::string_view part(const std::string& bytes, uint64_t offset, uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) return {};
    return std::string_view(bytes).substr(offset, size);
}

static void repair(std::string& bytes) {
    format::Header h;
    if (bytes.size() < sizeof h) return;
    std::memcpy(&h, bytes.data(), sizeof h);
    h.magic = format::magic;
    h.version_major = format::version_major;
    h.header_size = sizeof h;
    h.file_size = bytes.size();
    const uint64_t size = uint64_t{h.section_count} * sizeof(Section);
    const std::string_view table = part(bytes, h.section_table_offset, size);
    for (size_t at = 0; at + sizeof(Section) <= table.size(); at += sizeof(Section)) {
        Section s;
        std::memcpy(&s, table.data() + at, sizeof s);
        s.crc = crc32(as_bytes(part(bytes, s.offset, s.size)));
        std::memcpy(bytes.data() + h.section_table_offset + at, &s, sizeof s);
    }
    h.section_table_crc = crc32(as_bytes(table));
    h.header_crc = 0;
    h.header_crc = crc32(std::as_bytes(std::span(&h, 1)));
    std::memcpy(bytes.data(), &h, sizeof h);
}

static void check(bool good) {
    if (!good) std::abort();
}

static void write_files(BufferFile& file, const SummaryText& summary, const Verdict& verdict,
                        const LayersReport& layers) {
    static test::TempDir* const folder = new test::TempDir;
    (void)write_page(file, model(), {summary, verdict, layers.rows, {}}, *folder / "page.html");
    const TraceSource source{.buffer = &file, .descriptor = &model(), .label = {}};
    for (const bool all : {false, true})
        (void)write_trace({&source, 1},
                          {.merge_thread_groups = !all, .flow_events = all, .barrier_events = all},
                          *folder / "trace.json");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string bytes(reinterpret_cast<const char*>(data), size);
    repair(bytes);
    const Fd memory(::memfd_create("stats", MFD_CLOEXEC));
    if (::write(memory.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        return 0;
    auto file = BufferFile::open("/proc/self/fd/" + std::to_string(memory.get()));
    if (!file) {
        check(is_plain_text(file.error().message));
        return 0;
    }
    const auto match = check_match(*file, model(), file->header().descriptor_id, "model.rai");
    if (!match) {
        check(is_plain_text(match.error().message));
        return 0;
    }
    const auto verdict = verdict_of(*file, model());
    if (!verdict) return 0;
    const auto summary = build_summary(*file, model(), *verdict);
    if (!summary) return 0;
    // What we write we read, to the byte.
    const std::string text = text_of(*summary);
    const auto back = parse_summary(text, "summary");
    check(back && text_of(*back) == text);
    const auto layers = build_layers(*file, model(), {{Estimate{}}, 1'000'000'000});
    write_files(*file, *summary, *verdict, layers ? *layers : LayersReport());
    return 0;
}
