// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/tools/opstats/summary_build.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/large_captures.h"

namespace p = vartml::profiling;
using Json = nlohmann::json;

namespace vartml::test {
namespace {

std::vector<p::LayerRow> layers() {
    p::LayerRow conv, total;
    conv.index = 0;
    conv.name = "conv, \"0\"";
    conv.partition = "vaiml_par_0";
    conv.est_us = 70.0004;
    conv.meas_us = 80;
    conv.est_share_pct = 60;
    conv.meas_share_pct = 61.538;
    total.name = "total";
    total.est_us = 70;
    return {conv, total};
}

class Page : public testing::Test {
protected:
    std::string page(const p::Capture& capture, const std::vector<p::LayerRow>& rows = {},
                     const std::vector<double>& round_trips_us = {}) {
        const auto written =
            p::write_stats_buffer(capture, small_context(descriptor_), folder_ / "a.bin");
        EXPECT_TRUE(written) << written.error().message;
        const auto buffer = p::BufferFile::open(folder_ / "a.bin");
        EXPECT_TRUE(buffer) << buffer.error().message;
        auto verdict = p::verdict_of(*buffer, descriptor_);
        EXPECT_TRUE(verdict) << verdict.error().message;
        auto summary = p::build_summary(*buffer, descriptor_, *verdict);
        EXPECT_TRUE(summary) << summary.error().message;
        verdict_ = std::move(*verdict);
        summary_ = std::move(*summary);
        const auto done = p::write_page(
            *buffer, descriptor_, {summary_, verdict_, rows, round_trips_us}, folder_ / "a.html");
        EXPECT_TRUE(done) << done.error().message;
        return slurp(folder_ / "a.html");
    }
    static std::string data_of(const std::string& html) {
        constexpr std::string_view begin = "id=\"data\">", end = "</script>";
        const size_t at = html.find(begin) + begin.size();
        return html.substr(at, html.find(end, at) - at);
    }

    TempDir folder_;
    p::Descriptor descriptor_ = small_descriptor();
    p::SummaryText summary_;
    p::Verdict verdict_;
};

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

TEST_F(Page, AsksForNothingElse) {
    const std::string html = page(small_capture(), layers(), {1, 2});
    // No attribute or rule that loads something, no address.
    for (const char* word : {"src=", "href=", "url(", "@import", "http:", "https:", "//", "<link",
                             "<iframe", "<object", "fetch(", "XMLHttpRequest"})
        EXPECT_FALSE(has(html, word)) << word;
    EXPECT_TRUE(has(html, "default-src 'none'"));
    EXPECT_TRUE(has(html, "width=device-width"));
    EXPECT_EQ(html, page(small_capture(), layers(), {1, 2}));
}

TEST_F(Page, ANameThatLooksLikeMarkupStaysText) {
    const std::string plain = page(small_capture());
    const std::string markup = "</script><b>\"'&";
    descriptor_.network = markup;
    descriptor_.cores[0].groups[0].ops[1].name = markup + "\xff";
    descriptor_.kinds[kind_conv] = markup;
    descriptor_.engines[0] = markup;
    p::Capture capture = small_capture();
    capture.missing.push_back({"<u>", "a & b"});
    auto rows = layers();
    rows[0].name = markup;
    const std::string html = page(capture, rows);
    // No bracket of a name is one of the page.
    EXPECT_EQ(std::ranges::count(html, '<'), std::ranges::count(plain, '<'));
    const Json json = Json::parse(data_of(html));
    EXPECT_EQ(json["network"], markup);
    EXPECT_TRUE(json["timeline"]["lanes"][0].get<std::string>().ends_with(markup));
    EXPECT_EQ(json["timeline"]["ops"][0]["name"], markup + "\ufffd");
    EXPECT_EQ(json["timeline"]["ops"][0]["kind"], markup);
    EXPECT_EQ(json["layers"]["rows"][0][1], markup);
    EXPECT_EQ(std::ranges::count(json["missing"], "<u>: a & b"), 1);
}

TEST_F(Page, HasTheNumbersOfTheSummary) {
    const Json json = Json::parse(data_of(page(small_capture(), layers(), {300, 310, 305, 999})));
    EXPECT_EQ(json["summary"], p::text_of(summary_));
    EXPECT_EQ(json["figures"][0][1], *summary_.inferences_per_s);
    EXPECT_EQ(json["figures"][3][1], *summary_.max_input_wait);
    const Json& operators = json["operators"];
    EXPECT_EQ(operators["columns"][2], Json::parse(R"(["ucycles", 0, ""])"));
    EXPECT_EQ(operators["columns"][3], Json::parse(R"j(["ucycles(%)", 2, "%"])j"));
    size_t count = 0;
    for (const p::SummaryCore& core : summary_.cores)
        for (const p::SummaryRow& row : core.rows) {
            const Json& shown = operators["rows"][count++];
            EXPECT_EQ(shown[0], core.index);
            EXPECT_EQ(shown[1], row.details);
            EXPECT_EQ(shown[2], *row.ucycles);
            EXPECT_NEAR(shown[3], *row.ucycles_percent, 0.005);
            EXPECT_EQ(shown[4].is_null(), !row.pcycles) << row.details;
        }
    EXPECT_GT(count, 5U);
    EXPECT_EQ(operators["rows"].size(), count);
    EXPECT_EQ(json["verdict"]["sentence"], verdict_.sentence);
    EXPECT_EQ(json["verdict"]["top"].size(), verdict_.top.size());
    EXPECT_NEAR(json["verdict"]["shares"][0][1], *verdict_.shares.compute, 0.005);
    size_t notes = json["missing"].size() + json["notes"].size() + 1;  // "vartml-opstats 1"
    for (const p::Note& note : summary_.notes) notes += note.key.starts_with("verdict");
    EXPECT_EQ(notes, summary_.notes.size());
    EXPECT_EQ(json["timeline"]["ops"][0]["us"], 80.0);
    EXPECT_EQ(json["layers"]["rows"][0][5], 70.0);
    EXPECT_TRUE(json["layers"]["rows"][0][4].is_null());
    EXPECT_EQ(json["pairs"], Json::parse(R"([["conv, \"0\"", 60, 61.54]])"));
    EXPECT_EQ(
        json["latency"]["ranks"],
        Json::parse(R"([["min",300.0],["p50",305.0],["p90",999.0],["p99",999.0],["max",999.0]])"));
    EXPECT_EQ(json["latency"]["bins"][0], 3);
    EXPECT_EQ(json["latency"]["bins"].back(), 1);
}

TEST_F(Page, BelowLevel70HasNoOperators) {
    const Json json = Json::parse(data_of(page(small_capture_at(p::level_ports))));
    EXPECT_EQ(json["captured_level"], 50);
    EXPECT_TRUE(json["operators"]["rows"].empty());
    EXPECT_TRUE(json["timeline"]["ops"].empty());
    EXPECT_FALSE(json.contains("latency"));
}

TEST_F(Page, ALargeModelStaysBelow8MiB) {
    descriptor_ = chain_descriptor(20'000);
    std::vector<p::LayerRow> rows;
    for (auto& op : descriptor_.cores[0].groups[0].ops) {
        op.name += std::string(1000, '"');
        rows.emplace_back(layers()[0]).name = std::string(1000, '<');
    }
    const std::string html = page(chain_capture(descriptor_, 1, 2), rows);
    EXPECT_LE(html.size(), size_t{8} << 20);
    const Json json = Json::parse(data_of(html));
    EXPECT_EQ(json["timeline"]["ops"].size(), 2000U);
    EXPECT_EQ(json["timeline"]["ops_left_out"], 18'000);
    const Json& shown = json["layers"];
    EXPECT_EQ(shown["rows"].size() + shown["left_out"].get<size_t>(), rows.size());
    EXPECT_EQ(shown["rows"][0][1], std::string(26, '<') + "…");
}

}  // namespace
}  // namespace vartml::test
