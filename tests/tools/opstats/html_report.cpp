// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/html_report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "lib/tools/opstats/summary_build.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/large_captures.h"

namespace p = vartml::profiling;

namespace vartml::test {
namespace {

constexpr const char* layers =
    "index,name,partition,engine,est_us,meas_us,est_share_pct,meas_share_pct,bound\n"
    "0,\"conv, \"\"0\"\"\",vaiml_par_0,SNPU,70.000,80.000,60.00,61.54,compute\n"
    "1,conv_1,vaiml_par_0,SNPU,45.000,50.000,40.00,38.46,memory\n"
    "total,,,,115.000,130.000,100.00,100.00,\n";

class HtmlReport : public testing::Test {
protected:
    std::string page(const p::Capture& capture, const std::string& csv = "",
                     const p::HtmlOptions& options = {}) {
        const auto written =
            p::write_stats_buffer(capture, small_context(descriptor_), folder_ / "a.bin");
        EXPECT_TRUE(written) << written.error().message;
        auto buffer = p::BufferFile::open(folder_ / "a.bin");
        EXPECT_TRUE(buffer) << buffer.error().message;
        const auto verdict = p::verdict_of(*buffer, descriptor_);
        EXPECT_TRUE(verdict) << verdict.error().message;
        const auto summary = p::build_summary(*buffer, descriptor_, *verdict);
        EXPECT_TRUE(summary) << summary.error().message;
        text_ = p::text_of(*summary);
        notes_ = summary->notes;
        const auto done = p::write_html(*buffer, descriptor_, *summary, *verdict, csv, options,
                                        folder_ / "a.html");
        EXPECT_TRUE(done) << done.error().message;
        return slurp(folder_ / "a.html");
    }

    TempDir folder_;
    p::Descriptor descriptor_ = small_descriptor();
    std::string text_;
    std::vector<std::string> notes_;
};

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

TEST_F(HtmlReport, GivesAFileThatDoesNotChangeUnnoticed) {
    const std::string html = page(small_capture(), layers, {.latencies_us = {300, 310, 305, 999}});
    const char* folder = std::getenv("VARTML_GOLDEN");
    ASSERT_TRUE(folder);
    const std::string golden = std::string(folder) + "/golden.html";
    if (std::getenv("VARTML_WRITE_GOLDEN")) spill(golden, html);
    EXPECT_EQ(html, slurp(golden));
    EXPECT_EQ(html, page(small_capture(), layers, {.latencies_us = {300, 310, 305, 999}}));
}

TEST_F(HtmlReport, AsksForNothingElse) {
    const std::string html = page(small_capture(), layers, {.latencies_us = {1, 2}});
    // No attribute or rule that loads something, no address.
    for (const char* word : {"src=", "href=", "url(", "@import", "http:", "https:", "//", "<link",
                             "<iframe", "<object", "fetch(", "XMLHttpRequest"})
        EXPECT_FALSE(has(html, word)) << word;
    EXPECT_TRUE(has(html, "default-src 'none'"));
    EXPECT_TRUE(has(html, "width=device-width"));
}

TEST_F(HtmlReport, ANameThatLooksLikeMarkupStaysText) {
    descriptor_.network = "<h1>net</h1>";
    descriptor_.cores[0].groups[0].ops[1].name = "</title></svg><script>alert('x')</script>";
    descriptor_.kinds[kind_conv] = "<i onclick=\"x\">";
    p::Capture capture = small_capture();
    capture.missing.push_back({"<u>", "a & b"});
    const std::string csv = "index,name,est_share_pct,meas_share_pct\n0,<s>layer</s>,50.00,50.00\n";
    const std::string html = page(capture, csv);
    for (const char* word : {"<h1>net", "<script>alert", "<i onclick", "<u>", "<s>layer"})
        EXPECT_FALSE(has(html, word)) << word;
    for (const char* word :
         {"&lt;h1&gt;net&lt;/h1&gt;", "&lt;script&gt;alert(&#39;x&#39;)",
          "&lt;i onclick=&quot;x&quot;&gt;", "&lt;u&gt;", "a &amp; b", "&lt;s&gt;layer"})
        EXPECT_TRUE(has(html, word)) << word;
}

TEST_F(HtmlReport, HasTheFiguresOfTheSummary) {
    const std::string html = page(small_capture(), layers);
    // Each row of operators, word by word.
    std::istringstream lines(text_);
    size_t rows = 0;
    const std::regex row(
        R"((c\d+)\s+(\S+)\s+(\S+%|N/A)\s+(\S+)\s+(\S+)\s+(\d+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s+(.*\S)\s*)");
    for (std::string line; std::getline(lines, line);) {
        std::smatch words;
        if (!std::regex_match(line, words, row)) continue;
        ++rows;
        std::string cells = "<tr><td class=\"name\">" + words[1].str() +
                            "</td><td class=\"name\">" + p::html_text(words[11].str()) + "</td>";
        for (size_t i = 2; i <= 10; ++i) cells += "<td>" + words[i].str() + "</td>";
        EXPECT_TRUE(has(html, cells)) << line;
    }
    EXPECT_GT(rows, 5U);
    for (const std::string& note : notes_) {
        const std::string rest = note.substr(std::min(note.size(), note.find(": ") + 2));
        EXPECT_TRUE(has(html, p::html_text(rest))) << note;
    }
    EXPECT_TRUE(has(html, p::html_text(text_)));
    for (const char* cell : {"<td>70.000</td>", "<td>80.000</td>", "conv, &quot;0&quot;"})
        EXPECT_TRUE(has(html, cell)) << cell;
}

TEST_F(HtmlReport, BelowLevel70SaysWhatIsMissing) {
    const std::string html = page(small_capture_at(p::level_ports));
    EXPECT_TRUE(has(html, "captured at level 50; operators need 70 of both"));
    EXPECT_FALSE(has(html, "<rect"));
    EXPECT_FALSE(has(html, "Roofline"));
}

TEST_F(HtmlReport, ALargeModelStaysBelow8MiB) {
    descriptor_ = chain_descriptor(20'000);
    std::string csv = "index,name,est_share_pct,meas_share_pct\n";
    for (auto& op : descriptor_.cores[0].groups[0].ops) {
        op.name += std::string(1000, '"');
        csv += std::to_string(op.layer) + "," + std::string(1000, '<') + ",1.00,1.00\n";
    }
    const std::string html = page(chain_capture(descriptor_, 1, 2), csv);
    EXPECT_LE(html.size(), size_t{8} << 20);
    EXPECT_TRUE(has(html, "The 2000 longest operators; 18000 shorter ones are not drawn."));
    EXPECT_TRUE(has(html, " further rows are in the layers.csv"));
}

TEST(HtmlText, TextOfAnyOriginStaysText) {
    EXPECT_EQ(p::html_text("a<b>&\"'\x01\xff\xc3\xa9"),
              "a&lt;b&gt;&amp;&quot;&#39;\ufffd\ufffd\u00e9");
    EXPECT_EQ(p::html_name(std::string(159, 'x') + "\u00e9y"), std::string(159, 'x') + "\u2026");
    EXPECT_EQ(p::html_text("ab<", 5), "ab\u2026");
    EXPECT_EQ(p::html_text("ab<", 6), "ab&lt;");
}

TEST(HtmlText, ReadsQuotedFields) {
    using Rows = std::vector<std::vector<std::string>>;
    EXPECT_EQ(p::csv_rows("a,b\r\n\"x,\"\"y\"\"\n\",\n"), (Rows{{"a", "b"}, {"x,\"y\"\n", ""}}));
    EXPECT_EQ(p::csv_rows("a"), (Rows{{"a"}}));
    EXPECT_EQ(p::csv_rows(""), Rows{});
}

TEST(HtmlText, NumbersOfDrawingsAreShort) {
    EXPECT_EQ(p::html_number(1.5), "1.5");
    EXPECT_EQ(p::html_number(10000), "10000");
    EXPECT_EQ(p::html_number(-0.001), "0");
    EXPECT_EQ(p::html_number(1e300 * 1e300), "0");
}

}  // namespace
}  // namespace vartml::test
