// SPDX-License-Identifier: Apache-2.0
// The summary of a capture made by hand: its text, and the identities on it and on its variants.
#include <gtest/gtest.h>

#include "lib/tools/opstats/identities.h"
#include "lib/tools/opstats/summary_build.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

namespace vartml::profiling {
namespace {

std::string summary_of(const Capture& capture, const Descriptor& descriptor,
                       uint64_t hz = default_ucycle_hz) {
    const test::TempDir dir;
    const auto written =
        write_stats_buffer(capture, test::small_context(descriptor), dir / "b.bin");
    EXPECT_TRUE(written) << written.error().message;
    const auto file = BufferFile::open(dir / "b.bin");
    EXPECT_TRUE(file) << file.error().message;
    const auto match =
        check_match(*file, descriptor, test::small_context(descriptor).descriptor_id, "model.rai");
    EXPECT_TRUE(match) << match.error().message;
    const auto verdict = verdict_of(*file, descriptor);
    EXPECT_TRUE(verdict) << verdict.error().message;
    const auto summary = build_summary(*file, descriptor, *verdict, hz);
    EXPECT_TRUE(summary) << summary.error().message;
    return summary ? text_of(*summary) : "";
}

void expect_identities(const std::string& text) {
    const auto summary = parse_summary(text, "summary");
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(text_of(*summary), text);
    for (const IdentityResult& r : check_identities(*summary, ucycle_hz_of(*summary)))
        EXPECT_TRUE(r.holds) << profiling::text_of(r);
}

// Each figure of the golden text follows from captures.h; 1 us is 19.2 ucycles:
// conv of c0 is (80 + 50) us = 2496 ucycles of 3840, 290000 pcycles of 96 KB.
TEST(Summary, IsTheGoldenText) {
    const std::string golden =
        test::slurp(std::string(std::getenv("VARTML_GOLDEN")) + "/small_summary.txt");
    const std::string text = summary_of(test::small_capture(), test::small_descriptor());
    EXPECT_EQ(text, golden);
    expect_identities(text);
}

TEST(Summary, HoldsTheIdentitiesAtEveryLevelAndClock) {
    for (const unsigned level : {40U, 50U, 70U, 100U})
        for (const uint64_t hz :
             {default_ucycle_hz, uint64_t{1'000'000}, uint64_t{3'000'000'000}}) {
            const std::string text =
                summary_of(test::small_capture_at(level), test::small_descriptor(), hz);
            expect_identities(text);
            EXPECT_NE(text.find("ucycle 1/" + std::to_string(hz)), std::string::npos);
        }
}

TEST(Summary, SaysWhichBytesWereMeasured) {
    Capture capture = test::small_capture();
    capture.traffic.push_back(
        {.core = 1, .is_measured = true, .read_bytes = 64, .write_bytes = not_captured});
    const std::string text = summary_of(capture, test::small_descriptor());
    expect_identities(text);
    const char* lines[] = {
        "# ddr: c1 computed read 200000 bytes, computed write 135000 bytes, by tensor sizes\n",
        "# ddr: c1 measured read 64 bytes, measured write N/A, lines that missed the last cache\n",
    };
    for (const char* line : lines) EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Summary, NamesAThreadWithoutStampsAndDamagedRecords) {
    Capture capture = test::small_capture();
    for (const size_t thread : {1U, 3U}) {
        capture.threads[thread].is_stamped = false;
        capture.threads[thread].ops.clear();
    }
    std::swap(capture.threads[2].ops[1].start, capture.threads[2].ops[1].end);
    const std::string text = summary_of(capture, test::small_descriptor());
    expect_identities(text);
    const char* lines[] = {
        "    N/A utilization\n",
        "# not captured: operators of c0t1 c0t3: inside an OpenMP region of oneDNN\n",
        "# not captured: records: 1 end before their start and are left out\n",
    };
    for (const char* line : lines) EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(Summary, BelowOperatorsHasItsHeaderWithoutRows) {
    const std::string text = summary_of(test::small_capture_at(40), test::small_descriptor());
    EXPECT_NE(text.find("opdetails\n\nc0 total:"), std::string::npos) << text;
    EXPECT_NE(text.find("# not captured: operators: captured at level 40; run with "
                        "--profiling-level=70\n"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("Host_IO_Port"), std::string::npos);
}

TEST(CheckMatch, RefusesWhatDoesNotBelongTogether) {
    const test::TempDir dir;
    const Descriptor descriptor = test::small_descriptor();
    const BufferContext context = test::small_context(descriptor);
    ASSERT_TRUE(write_stats_buffer(test::small_capture(), context, dir / "b.bin"));
    const auto file = BufferFile::open(dir / "b.bin");
    ASSERT_TRUE(file);
    const struct {
        void (*change)(Descriptor&);
        const char* words;
    } cases[] = {
        {[](Descriptor& d) { d.network = "other"; },
         "unknown network 'small net'; model.rai has 'other'"},
        {[](Descriptor& d) { d.model_signature.fill(1); },
         "recorded from another model: its signature is 00112233445566778899aabbccddeeff, that of "
         "model.rai is 01010101010101010101010101010101"},
        {[](Descriptor& d) { d.cores[0].groups[0].ops.pop_back(); },
         "core 0, thread 0 has 7 operators, its group in model.rai has 6"},
        {[](Descriptor& d) { d.cores[0].groups.pop_back(); },
         "core 0, thread 4 is of group 1, model.rai has 1 groups"},
        {[](Descriptor& d) { d.engines.pop_back(); }, "core 0, thread 4 is of engine 1"},
    };
    for (const auto& c : cases) {
        Descriptor changed = descriptor;
        c.change(changed);
        const auto r = check_match(*file, changed, context.descriptor_id, "model.rai");
        ASSERT_FALSE(r) << c.words;
        EXPECT_NE(r.error().message.find(c.words), std::string::npos) << r.error().message;
    }
    const auto r = check_match(*file, descriptor, {}, "model.rai");
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message.find("same model, other compilation: recorded with "
                                     "--stats-level=70, model.rai was compiled with "
                                     "--stats-level=70"),
              std::string::npos)
        << r.error().message;
}

}  // namespace
}  // namespace vartml::profiling
