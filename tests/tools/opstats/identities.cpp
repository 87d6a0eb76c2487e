// SPDX-License-Identifier: Apache-2.0
// The public sample of a summary: it comes back byte for byte, holds the 13 identities, and one
// changed number breaks the identity that covers it.
#include "lib/tools/opstats/identities.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/temp_dir.h"

namespace vartml::profiling {
namespace {

std::string sample() {
    const char* shared = std::getenv("VARTML_SHARED");
    return shared ? test::slurp(std::string(shared) + "/samples/qaic_summary_bert.txt") : "";
}

#define NEED_SAMPLE(text)              \
    const std::string text = sample(); \
    if (text.empty()) GTEST_SKIP() << "samples/qaic_summary_bert.txt is not there"

SummaryText parsed(const std::string& text) {
    auto summary = parse_summary(text, "sample");
    EXPECT_TRUE(summary) << summary.error().message;
    return summary ? *summary : SummaryText{};
}

std::vector<IdentityResult> checked(const std::string& text) {
    return check_identities(parsed(text), default_ucycle_hz);
}

TEST(Summary, ComesBackByteForByte) {
    NEED_SAMPLE(text);
    const SummaryText summary = parsed(text);
    EXPECT_EQ(text_of(summary), text);
    ASSERT_EQ(summary.cores.size(), 2U);
    EXPECT_EQ(summary.cores[0].rows.size() + summary.cores[1].rows.size(), 64U);
    EXPECT_EQ(summary.cores[1].threads.size(), 6U);
    EXPECT_EQ(summary.network, "QAicGraph");
    EXPECT_EQ(summary.batch, 8U);
}

TEST(Identities, AllHoldInTheSample) {
    NEED_SAMPLE(text);
    for (const IdentityResult& r : checked(text)) EXPECT_TRUE(r.holds) << text_of(r);
}

// Figures that the format's document computed from the sample on its own.
TEST(Identities, GiveTheKnownFiguresOfTheSample) {
    NEED_SAMPLE(text);
    const auto results = checked(text);
    const struct {
        unsigned number;
        const char* words;
    } cases[] = {
        {6, "c0 HVX 62.04 >= 61.46"},
        {6, "c1 HVX 63.77 >= 62.55"},
        {13, "c0 DMAIssue 117.38"},
        {13, "c0 HMX 99.56"},
    };
    for (const auto& c : cases)
        EXPECT_NE(results[c.number - 1].detail.find(c.words), std::string::npos)
            << text_of(results[c.number - 1]);
}

struct Change {
    unsigned identity;
    const char *from, *to, *named;
};

const Change changes[] = {
    {1, "(1/0.0231603)", "(1/0.0231604)", "seconds of batch/s"},
    {1, "(8/0.0231603)", "(8/0.0231613)", "seconds of inf/s"},
    {2, "is 1233.12MHz", "is 1233.15MHz", "c0 effective frequency"},
    {3, "55.00%", "55.01%", "c0 'aicconvolutiond32 HMX TCM (float16, i8, index32)' ucycles(%)"},
    {3, "13.83%", "13.84%", "c0 'elementerf  HVX TCM (float16)' pcycles(%)"},
    {4, "29.73          20.98", "29.74          20.98", "pcycles/KB"},
    {4, "        3.80      245.88", "        3.81      245.88", "ucycles/KB"},
    {5, "54.77% utilization", "54.80% utilization", "c0t4 utilization"},
    {5, "0.73% utilization", "0.75% utilization", "c1t5 utilization"},
    {6, "61.46% utilization", "62.10% utilization", "c0t2 utilization"},
    {7, "c0 total:          444672", "c0 total:          444671", "c0 total ucycles"},
    {7, "28793610 pcycles (thread max)", "28793611 pcycles (thread max)", "c1 total pcycles"},
    {8, "c00t1 batch ucycles:           444602", "c00t1 batch ucycles:           444603",
     "c0t1 batch"},
    {8, "pcycles:        28554512", "pcycles:        28554513", "batch pcycles"},
    {9, "444677 [9803252406778, 9803252851455]", "444676 [9803252406779, 9803252851455]",
     "total batch start"},
    {10, "43.1774", "43.1775", "batch/s"},
    {10, "345.419", "345.418", "inf/s"},
    {11, "max input wait ucycles:             30711", "max input wait ucycles:             30710",
     "max input wait"},
    {11, "max output wait ucycles:                2", "max output wait ucycles:                3",
     "max output wait"},
    {12, "75.16           0.00", "75.16           0.01", "stddev"},
    {12, "pcycle is 28559169", "pcycle is 28559103", "c0 total inference pcycle"},
};

TEST(Identities, OneChangedNumberBreaksTheIdentityThatCoversIt) {
    NEED_SAMPLE(text);
    for (const Change& c : changes) {
        std::string changed = text;
        const size_t at = changed.find(c.from);
        ASSERT_NE(at, std::string::npos) << c.from;
        changed.replace(at, std::string_view(c.from).size(), c.to);
        const IdentityResult r = checked(changed)[c.identity - 1];
        EXPECT_FALSE(r.holds) << c.from;
        EXPECT_NE(r.detail.find(c.named), std::string::npos) << text_of(r);
    }
}

TEST(Identities, UnsortedRowsAreNamed) {
    NEED_SAMPLE(text);
    SummaryText summary = parsed(text);
    std::swap(summary.cores[0].rows[3], summary.cores[0].rows[4]);
    const auto results = check_identities(summary, default_ucycle_hz);
    EXPECT_FALSE(results[11].holds);
    EXPECT_NE(results[11].detail.find("sync HVX"), std::string::npos) << results[11].detail;
}

// The form of newer tools: the specialization comes first, there are more than ten cores, outputs
// of a few bytes, no waits, and operators that are issued and whose pcycles are not told.
std::string newer() {
    const char* folder = std::getenv("VARTML_GOLDEN");
    return folder ? test::slurp(std::string(folder) + "/specialised_summary.txt") : "";
}

TEST(Summary, OfANewerToolComesBackByteForByte) {
    const std::string text = newer();
    ASSERT_FALSE(text.empty()) << "set VARTML_GOLDEN to the folder of this test";
    const SummaryText summary = parsed(text);
    EXPECT_EQ(text_of(summary), text);
    EXPECT_EQ(summary.specialization, "demo");
    ASSERT_EQ(summary.cores.size(), 2U);
    EXPECT_EQ(summary.cores[1].index, 12U);
    EXPECT_FALSE(summary.has_waits);
    for (const IdentityResult& r : checked(text)) EXPECT_TRUE(r.holds) << text_of(r);
}

TEST(Identities, OneChangedNumberOfANewerToolBreaksTheIdentityThatCoversIt) {
    const Change cases[] = {
        {2, "is 716.488MHz", "is 716.588MHz", "c12 effective frequency"},
        {4, "9600.00   360000.00", "6600.00   360000.00", "ucycles/KB"},  // of 0.03 KB
        {4, "80.00     3000.00", "70.00     3000.00", "ucycles/KB"},      // of 0.12 KB
        {4, "2048.00    76800.00", "1048.00    76800.00", "at least"},    // of 0.00 KB
        {4, "3.91      146.48", "3.93      146.48", "ucycles/KB"},        // of 1024 KB
        {5, "8.50% utilization", "0.70% utilization", "c0t3 utilization"},
        {5, "22.51% utilization", "22.61% utilization", "c0t2 utilization"},
        {6, "10.40% utilization", "12.80% utilization", "c0t0 utilization"},
    };
    for (const Change& c : cases) {
        std::string changed = newer();
        const size_t at = changed.find(c.from);
        ASSERT_NE(at, std::string::npos) << c.from;
        changed.replace(at, std::string_view(c.from).size(), c.to);
        const IdentityResult r = checked(changed)[c.identity - 1];
        EXPECT_FALSE(r.holds) << c.from;
        EXPECT_NE(r.detail.find(c.named), std::string::npos) << text_of(r);
    }
}

TEST(Summary, GenuineOnesComeBackAndHold) {
    const char* shared = std::getenv("VARTML_SHARED");
    const std::string folder = std::string(shared ? shared : "") + "/samples";
    size_t count = 0;
    std::error_code error;
    for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
        if (!file.path().filename().string().ends_with(".summary.txt")) continue;
        ++count;
        const std::string text = test::slurp(file.path().string());
        EXPECT_EQ(text_of(parsed(text)), text) << file.path();
        for (const IdentityResult& r : checked(text))
            EXPECT_TRUE(r.holds) << file.path() << ": " << text_of(r);
    }
    if (count == 0) GTEST_SKIP() << folder << " has no *.summary.txt";
}

TEST(Summary, ALineThatIsNoneOfASummaryIsNamedWithItsNumber) {
    const char* bad[] = {
        "core  ucycles  ucycles(%)\nc0 what\n",
        "core  ucycles  ucycles(%)\nc0 total: nan ucycles 1 pcycles (thread max)\n",
    };
    for (const char* text : bad) {
        const auto r = parse_summary(text, "s.txt");
        ASSERT_FALSE(r) << text;
        EXPECT_TRUE(r.error().message.starts_with("s.txt: line 2 is none")) << r.error().message;
    }
    EXPECT_FALSE(parse_summary("", "s.txt"));
}

TEST(Summary, ThatIsCutOffIsNone) {
    const std::string whole =
        test::slurp(std::string(std::getenv("VARTML_GOLDEN")) + "/small_summary.txt");
    ASSERT_TRUE(parse_summary(whole, "s.txt"));
    const size_t last = whole.find("Device instance inf/s:");
    ASSERT_NE(last, whole.npos);
    for (size_t end = 0; end < last; end = whole.find('\n', end) + 1) {
        const auto r = parse_summary(std::string_view(whole).substr(0, end), "s.txt");
        ASSERT_FALSE(r) << end;
    }
}

TEST(Summary, WhatWasNotCapturedComesBack) {
    const std::string text =
        "\ncore  ucycles  ucycles(%)     pcycles  pcycles(%)  count      out KB  ucycles/KB  "
        "pcycles/KB  stddev(pc/KB)  opdetails\n\n"
        "c0 total:              10 ucycles             N/A pcycles (thread max)\n"
        "c0    t0 SNPU                  10 ucycles [1, 11]             N/A pcycles     N/A "
        "utilization\n\n\n"
        "c00t0 batch ucycles:               10 [1,11]    pcycles:             N/A \n"
        "c0: Total inference pcycle is N/A\nc0: Effective frequency is N/A\n"
        "c00t0p100 Host_IO_Port ucycles:              N/A\n"
        "c00t0 activate ucycles:               N/A\n"
        "total batch ucycles:               10 [1, 11]\n"
        "[n] Device instance batch/s: (1/5.20833e-07): 1.92e+06\n"
        "[n] Device instance inf/s: (1/5.20833e-07): 1.92e+06\n"
        "max input wait ucycles:               N/A\nmax output wait ucycles:              N/A\n"
        "# vartml-opstats 1\n# not captured: pcycles: refused\n";
    const SummaryText summary = parsed(text);
    EXPECT_EQ(text_of(summary), text);
    EXPECT_EQ(note_of(summary, "not captured"), "pcycles: refused");
    for (const IdentityResult& r : check_identities(summary, default_ucycle_hz))
        EXPECT_TRUE(r.holds) << text_of(r);
}

}  // namespace
}  // namespace vartml::profiling
