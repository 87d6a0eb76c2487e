// SPDX-License-Identifier: Apache-2.0
// Raw stats buffers: the same bytes again, every record back, and a sentence for every damage.
#include "lib/trace/stats_buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/base/checksum.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/tools/opstats/buffer_file.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

namespace vartml::profiling {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;

std::string bytes_of(const Capture& capture, const Descriptor& descriptor) {
    const TempDir dir;
    const auto done = write_stats_buffer(capture, test::small_context(descriptor), dir / "b.bin");
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_FALSE(test::has_temporaries(dir.path()));
    return slurp(dir / "b.bin");
}

std::string small_bytes() {
    return bytes_of(test::small_capture(), test::small_descriptor());
}

BufferFile opened(const TempDir& dir, const std::string& bytes) {
    spill(dir / "b.bin", bytes);
    auto file = BufferFile::open(dir / "b.bin");
    if (!file) ADD_FAILURE() << file.error().message;
    return file ? std::move(*file) : BufferFile();
}

std::string message(const TempDir& dir, const std::string& bytes) {
    spill(dir / "b.bin", bytes);
    const auto file = BufferFile::open(dir / "b.bin");
    if (file) return "";
    EXPECT_TRUE(file.error().message.starts_with(dir / "b.bin: ")) << file.error().message;
    EXPECT_TRUE(is_plain_text(file.error().message)) << file.error().message;
    EXPECT_FALSE(file.error().message.ends_with('.')) << file.error().message;
    return file.error().message;
}

format::Header header_of(const std::string& bytes) {
    format::Header h;
    std::memcpy(&h, bytes.data(), sizeof h);
    return h;
}

// Puts the header back with a checksum that is right.
void set_header(std::string& bytes, format::Header h) {
    h.header_crc = 0;
    h.header_crc = crc32(std::as_bytes(std::span(&h, 1)));
    std::memcpy(bytes.data(), &h, sizeof h);
}

std::vector<Section> table_of(const std::string& bytes) {
    const format::Header h = header_of(bytes);
    std::vector<Section> table(h.section_count);
    std::memcpy(table.data(), bytes.data() + h.section_table_offset,
                table.size() * sizeof(Section));
    return table;
}

void set_table(std::string& bytes, const std::vector<Section>& table) {
    format::Header h = header_of(bytes);
    std::memcpy(bytes.data() + h.section_table_offset, table.data(),
                table.size() * sizeof(Section));
    h.section_table_crc = crc32(std::as_bytes(std::span(table)));
    set_header(bytes, h);
}

TEST(Crc32, IsThatOfZlib) {
    // The check value of the catalogue of CRC algorithms.
    EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926U);
    EXPECT_EQ(crc32(as_bytes("56789"), crc32(as_bytes("1234"))), 0xcbf43926U);
    const std::string long_text(1000, 'x');
    uint32_t byte_by_byte = 0;
    for (const char c : long_text)
        byte_by_byte = crc32(as_bytes(std::string_view(&c, 1)), byte_by_byte);
    EXPECT_EQ(crc32(as_bytes(long_text)), byte_by_byte);
}

TEST(BufferName, FollowsTheScheme) {
    EXPECT_EQ(buffer_stem(0, 1, 213, "a b/c.v1_2+x"),
              "aic-profiling-program-0-activation-1-inf-213-a_b_c.v1_2+x");
    const auto name = parse_buffer_name(
        "aic-profiling-program-0-activation-0-inf-213-QAicGraph-aiccyclecounts.bin");
    ASSERT_TRUE(name);
    EXPECT_EQ(*name, (BufferName{0, 0, 213, "QAicGraph"}));
    const char* others[] = {
        "aic-profiling-program-0-activation-0-inf-213-QAicGraph-aiccyclecounts.bin.part",
        "aic-profiling-program-0-activation-0-inf--QAicGraph-aiccyclecounts.bin",
        "aic-profiling-program-x-activation-0-inf-1-n-aiccyclecounts.bin",
        "aic-profiling-program-0-activation-0-inf-1--aiccyclecounts.bin",
        "aic-profiling-program-0-activation-0-inf-99999999999999999999-n-aiccyclecounts.bin",
        "aic-profiling-program-0-activation-0-inf-1.txt",
        "x-aic-profiling-program-0-activation-0-inf-1-n-aiccyclecounts.bin",
    };
    for (const char* other : others) EXPECT_FALSE(parse_buffer_name(other)) << other;
}

TEST(StatsBuffer, IsTheSameFileByteForByte) {
    const std::string bytes = small_bytes();
    EXPECT_EQ(bytes, small_bytes());
    const format::Header h = header_of(bytes);
    EXPECT_EQ(h.file_size, bytes.size());
    // Of the format, not of the writer: what a script would look for.
    EXPECT_EQ(bytes.substr(0, 8), "VMLSTATS");
    EXPECT_EQ(bytes.substr(8, 8), std::string("\1\0\0\0\0\1\0\0", 8));
    EXPECT_EQ(bytes.substr(48, 4), std::string("\x00\x11\x22\x33", 4));
    // Golden: changes only with the format's version.
    EXPECT_EQ(to_hex(sha256(as_bytes(bytes))),
              "e7f9e54b5816c34ffcd20859e68922e0ada173ac6a2b8deb51a9dcdaf4950069");
}

TEST(StatsBuffer, DoesNotDependOnTheOrderOfThreads) {
    Capture capture = test::small_capture();
    std::ranges::reverse(capture.threads);
    EXPECT_EQ(bytes_of(capture, test::small_descriptor()), small_bytes());
}

TEST(StatsBuffer, GivesEveryRecordBack) {
    const TempDir dir;
    const BufferFile file = opened(dir, small_bytes());
    const Capture capture = test::small_capture();
    EXPECT_EQ(file.network(), "small net");
    EXPECT_EQ(file.header().captured_level, 70);
    EXPECT_EQ(file.header().pid, 4242U);
    EXPECT_TRUE(file.has(format::has_operators));
    EXPECT_TRUE(file.has(format::ddr_computed));
    EXPECT_FALSE(file.has(format::ddr_measured));
    ASSERT_EQ(file.threads().size(), 10U);
    for (size_t i = 0; i < 10; ++i) {
        const ThreadCapture& wanted = capture.threads[i];
        const format::ThreadRecord& t = file.threads()[i];
        EXPECT_EQ(t.core, wanted.core);
        EXPECT_EQ(t.thread, wanted.thread);
        EXPECT_EQ(t.pcycles, wanted.pcycles);
        ASSERT_EQ(t.op_count, wanted.ops.size());
        auto stamps = file.of_thread<Stamp>("OPTS", t);
        for (size_t op = 0; op < wanted.ops.size(); ++op) {
            Stamp stamp;
            ASSERT_TRUE(stamps.get(op, stamp));
            EXPECT_EQ(stamp.start, wanted.ops[op].start);
            EXPECT_EQ(stamp.end, wanted.ops[op].end);
        }
        Stamp beyond;
        EXPECT_FALSE(stamps.get(wanted.ops.size(), beyond));
        EXPECT_EQ(file.of_thread<uint64_t>("OPPC", t).size(), wanted.pcycles_of_ops.size());
    }
    ASSERT_TRUE(file.host());
    EXPECT_EQ(*file.host(), capture.host);
    uint64_t waits = 0;
    EXPECT_TRUE(
        file.each<format::PortRecord>("PORT", [&](const auto& r) { waits += r.wait_ticks; }));
    EXPECT_EQ(waits, 72'000U);
    std::vector<std::string> fields;
    EXPECT_TRUE(file.each_line(
        "NOCA", [&](std::string_view field, std::string_view) { fields.emplace_back(field); }));
    EXPECT_EQ(fields, (std::vector<std::string>{"pcycles of core 1", "pmu ref-cycles",
                                                "pmu of operators"}));
    EXPECT_STREQ(file.pmu_events()[1].name.data(), "ref-cycles");
    EXPECT_EQ(file.pmu_events()[1].status, 13);
}

// For each level exactly its sections, and a line for each field that is not there.
TEST(StatsBuffer, HasTheSectionsOfItsLevel) {
    const struct {
        unsigned level;
        const char* sections;
        std::vector<std::string> missing;
    } cases[] = {
        {40,
         "DDRT FRAM HOST NETW NOCA PMUD PMUT STRM THRD",
         {"port waits", "doorbells", "hand-overs", "operators", "pmu of operators"}},
        {50,
         "BELL DDRT FRAM HOST NETW NOCA PMUD PMUT PORT SEMA STRM THRD",
         {"operators", "pmu of operators"}},
        {70,
         "BELL DDRT FRAM HOST NETW NOCA OPPC OPTS PMUD PMUT PORT SEMA STRM THRD",
         {"pmu of operators"}},
        {100, "BELL DDRT FRAM HOST NETW NOCA OPMU OPPC OPTS PMUD PMUT PORT SEMA STRM THRD", {}},
    };
    for (const auto& c : cases) {
        const TempDir dir;
        Descriptor descriptor = test::small_descriptor();
        descriptor.compiled_level = static_cast<uint16_t>(c.level);
        const BufferFile file = opened(dir, bytes_of(test::small_capture_at(c.level), descriptor));
        std::string types;
        for (const Section& s : file.sections()) {
            const std::string type(s.type.data(), 4);
            if (!types.ends_with(type)) types += (types.empty() ? "" : " ") + type;
        }
        EXPECT_EQ(types, c.sections) << c.level;
        std::vector<std::string> fields;
        EXPECT_TRUE(file.each_line("NOCA", [&](std::string_view field, std::string_view reason) {
            if (field.find("core 1") == field.npos && field != "pmu ref-cycles")
                fields.emplace_back(field);
            EXPECT_FALSE(reason.empty());
        }));
        EXPECT_EQ(fields, c.missing) << c.level;
    }
}

TEST(StatsBuffer, EveryTruncationIsRefused) {
    const TempDir dir;
    const std::string whole = small_bytes();
    for (size_t size = whole.size(); size-- > 0;) {
        const std::string said = message(dir, whole.substr(0, size));
        const std::string words = size < 256 ? "not a gst-vartml stats buffer"
                                             : "truncated: " + std::to_string(size) + " of " +
                                                   std::to_string(whole.size()) + " bytes";
        ASSERT_NE(said.find(words), std::string::npos) << said;
    }
    EXPECT_NE(message(dir, whole + "abc").find("3 bytes after the end"), std::string::npos);
}

TEST(StatsBuffer, AChangedByteOfASectionIsNamed) {
    const TempDir dir;
    const std::string whole = small_bytes();
    for (const Section& s : table_of(whole)) {
        std::string bytes = whole;
        bytes[s.offset + s.size / 2] ^= 0x20;
        const std::string said = message(dir, bytes);
        EXPECT_NE(said.find("checksum of section " + section_name(s) + " at offset " +
                            std::to_string(s.offset)),
                  std::string::npos)
            << said;
    }
}

TEST(StatsBuffer, EveryChangedByteIsRefusedOutsideOfPadding) {
    const TempDir dir;
    const std::string whole = small_bytes();
    std::vector<bool> covered(whole.size());
    std::fill_n(covered.begin(), sizeof(format::Header) + table_of(whole).size() * sizeof(Section),
                true);
    for (const Section& s : table_of(whole))
        std::fill_n(covered.begin() + static_cast<ptrdiff_t>(s.offset), s.size, true);
    for (size_t at = 0; at < whole.size(); ++at) {
        if (!covered[at]) continue;
        std::string bytes = whole;
        bytes[at] ^= 0x01;
        ASSERT_NE(message(dir, bytes), "") << at;
    }
}

struct Damage {
    const char* what;
    void (*change)(std::string& bytes);
    const char* words;
};

template <typename Change>
void change_header(std::string& bytes, Change change) {
    format::Header h = header_of(bytes);
    change(h);
    set_header(bytes, h);
}

template <typename Change>
void change_section(std::string& bytes, const char* type, Change change) {
    std::vector<Section> table = table_of(bytes);
    for (Section& s : table)
        if (std::string(s.type.data(), 4) == type) {
            change(s);
            s.crc = s.offset <= bytes.size() && s.size <= bytes.size() - s.offset
                        ? crc32(as_bytes(std::string_view(bytes).substr(s.offset, s.size)))
                        : 0;
            break;
        }
    set_table(bytes, table);
}

const Damage damages[] = {
    {"another file", [](std::string& b) { b[0] = 'Q'; }, "not a gst-vartml stats buffer"},
    {"a later format",
     [](std::string& b) { change_header(b, [](auto& h) { h.version_major = 2; }); },
     "has version 2.0 of the format, supported is 1.x"},
    {"a changed header", [](std::string& b) { b[100] ^= 1; }, "checksum of the header at offset 0"},
    {"a changed table", [](std::string& b) { b[300] ^= 1; },
     "checksum of the section table at offset 256"},
    {"no clock rate", [](std::string& b) { change_header(b, [](auto& h) { h.tick_hz = 0; }); },
     "tick_hz is 0"},
    {"a foreign clock", [](std::string& b) { change_header(b, [](auto& h) { h.clock_id = 7; }); },
     "clock_id 7"},
    {"a header beyond the file",
     [](std::string& b) { change_header(b, [](auto& h) { h.header_size = 0x7fffffff; }); },
     "header_size at offset 12"},
    {"too many sections",
     [](std::string& b) { change_header(b, [](auto& h) { h.section_count = 65537; }); },
     "65537 sections"},
    {"a table beyond the file",
     [](std::string& b) { change_header(b, [](auto& h) { h.section_table_offset = ~7ULL; }); },
     "the section table of"},
    {"a section beyond the file",
     [](std::string& b) { change_section(b, "PORT", [](auto& s) { s.offset = ~7ULL; }); },
     "is not within the"},
    {"a section that is too long",
     [](std::string& b) { change_section(b, "PORT", [](auto& s) { s.size = 1ULL << 62; }); },
     "is not within the"},
    {"a count that does not fit",
     [](std::string& b) { change_section(b, "PORT", [](auto& s) { s.count = 0xffffffff; }); },
     "expected 4294967295 records of 24"},
    {"records that are too small",
     [](std::string& b) {
         change_section(b, "PORT", [](auto& s) { s.record_size = 12, s.count *= 2; });
     },
     "records of 12 bytes, expected 24 to"},
    {"operators of no thread",
     [](std::string& b) { change_section(b, "OPTS", [](auto& s) { s.thread = 77; }); },
     "belongs to no thread of THRD"},
    {"operators that do not fit their thread",
     [](std::string& b) {
         change_section(b, "OPTS", [](auto& s) { s.count -= 1, s.size -= s.record_size; });
     },
     "its thread has 7 operators"},
    {"sections on top of each other",
     [](std::string& b) { change_section(b, "SEMA", [](auto& s) { s.offset -= 8; }); }, "overlaps"},
    {"no threads",
     [](std::string& b) { change_section(b, "THRD", [](auto& s) { s.type[3] = 'X'; }); },
     "has no section THRD"},
    {"another number of threads",
     [](std::string& b) { change_header(b, [](auto& h) { h.thread_count = 3; }); },
     "the header says 3 threads"},
    {"a section twice",
     [](std::string& b) {
         change_section(b, "BELL", [](auto& s) { std::memcpy(s.type.data(), "SEMA", 4); });
     },
     "is there twice"},
};

TEST(StatsBuffer, WhatDoesNotAddUpIsRefusedWithASentence) {
    const TempDir dir;
    for (const Damage& damage : damages) {
        std::string bytes = small_bytes();
        damage.change(bytes);
        const std::string said = message(dir, bytes);
        EXPECT_NE(said.find(damage.words), std::string::npos) << damage.what << ": " << said;
    }
}

TEST(StatsBuffer, UnknownSectionsAndLongerRecordsAreSkipped) {
    const TempDir dir;
    std::string bytes = small_bytes();
    change_section(bytes, "BELL", [](auto& s) { std::memcpy(s.type.data(), "NEWS", 4); });
    // Two records of 24 bytes read as one of 48, of which the known first 24 count.
    change_section(bytes, "DDRT", [](auto& s) { s.record_size *= 2, s.count /= 2; });
    const BufferFile file = opened(dir, bytes);
    EXPECT_EQ(file.find("BELL"), nullptr);
    std::vector<uint16_t> cores;
    EXPECT_TRUE(
        file.each<format::DdrRecord>("DDRT", [&](const auto& r) { cores.push_back(r.core); }));
    EXPECT_EQ(cores, std::vector<uint16_t>{0});
}

TEST(StatsBuffer, ADeviceClockIsMappedThroughTheAnchors) {
    const TempDir dir;
    std::string bytes = small_bytes();
    change_header(bytes, [](auto& h) {
        h.clock_id = format::clock_device;
        h.tick_hz = 1000;
        h.anchor0_tick = 100, h.anchor0_monotonic_ns = 5'000'000;
        h.anchor1_tick = 200, h.anchor1_monotonic_ns = 6'000'000;
    });
    const BufferFile file = opened(dir, bytes);
    EXPECT_EQ(file.to_ns(100), 5'000'000U);
    EXPECT_EQ(file.to_ns(150), 5'500'000U);
    EXPECT_EQ(file.to_ns(90), 4'900'000U);
    EXPECT_EQ(file.ticks_to_ns(7), 70'000U);
    EXPECT_EQ(file.ticks_to_ns(not_captured), not_captured);
}

TEST(StatsBuffer, AFailedWriteLeavesNothing) {
    const TempDir dir;
    std::filesystem::create_directory(dir / "b.bin");
    const Descriptor descriptor = test::small_descriptor();
    const auto r =
        write_stats_buffer(test::small_capture(), test::small_context(descriptor), dir / "b.bin");
    ASSERT_FALSE(r);
    EXPECT_TRUE(r.error().message.starts_with(dir / "b.bin: ")) << r.error().message;
    EXPECT_FALSE(test::has_temporaries(dir.path()));
}

}  // namespace
}  // namespace vartml::profiling
