// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/diff.h"

#include <gtest/gtest.h>

namespace vartml::profiling {
namespace {

ResultFile read(const std::string& text) {
    auto file = read_result(text, "f");
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : ResultFile();
}

std::string row(const char* name, const char* ours, const char* sense, const char* unit = "us") {
    return std::string(R"({"name": ")") + name + R"(", "unit": ")" + unit + R"(", "ours": )" +
           ours + R"(, "peer": null, "peer_name": null, "ratio": null, "limit": null, "sense": ")" +
           sense + R"(", "pass": null})";
}

std::string json(const std::vector<std::string>& rows, const char* more = "") {
    std::string text = R"({"machine": {"cpu": "x"})" + std::string(more) + R"(, "rows": [)";
    for (size_t i = 0; i < rows.size(); ++i) text += (i ? ", " : "") + rows[i];
    return text + "]}";
}

std::string table(const ResultFile& a, const ResultFile& b, double threshold = 5) {
    const auto diff = compare(a, b, threshold);
    return diff ? diff_text(*diff) : diff.error().message;
}

// Each word, in both directions.
const std::vector<std::string> rows_a = {row("time/same", "100", "max"),
                                         row("time/better", "100", "max"),
                                         row("time/worse", "100", "max"),
                                         row("rate/better", "200.5", "min", "frames/s"),
                                         row("rate/worse", "200", "min", "frames/s"),
                                         row("lost", "1", "max"),
                                         row("absent", "null", "max")};
const std::vector<std::string> rows_b = {row("new/row", "7", "max"),
                                         row("time/same", "104", "max"),
                                         row("time/better", "50", "max"),
                                         row("time/worse", "150", "max"),
                                         row("rate/better", "401", "min", "frames/s"),
                                         row("rate/worse", "100", "min", "frames/s"),
                                         row("absent", "3", "max")};
constexpr const char* golden =
    "time/same    us                 100           104      +4.0%  same\n"
    "time/better  us                 100            50     -50.0%  better\n"
    "time/worse   us                 100           150     +50.0%  worse\n"
    "rate/better  frames/s         200.5           401    +100.0%  better\n"
    "rate/worse   frames/s           200           100     -50.0%  worse\n"
    "lost         us                   1             -          -  gone\n"
    "absent       us                 n/a             3          -  n/a\n"
    "new/row      us                   -             7          -  new\n"
    "same 1, better 2, worse 2, gone 1, new 1, n/a 1\n";

TEST(Diff, HasAWordForEachRowOfBenchAndRun) {
    EXPECT_EQ(table(read(json(rows_a)), read(json(rows_b))), golden);
    const char* run = R"(, "versions": {"vartml": "1"})";
    EXPECT_EQ(table(read(json(rows_a, run)), read(json(rows_b, run))), golden);
}

constexpr const char* csv_head =
    "index,name,partition,engine,est_cycles,est_us,meas_us,meas_cycles,error_pct,bound\n";

TEST(Diff, HasAWordForEachLayer) {
    const std::string a = std::string(csv_head) +
                          "0,conv_0,vaiml_par_0,SNPU,10,0.01,100.0,1,2,compute\n"
                          "1,\"a \"\"b\"\", c\",vaiml_par_0,SNPU,10,0.01,100,1,2,compute\n"
                          "2,pool_2,vaiml_par_0,SNPU,10,0.01,10,1,2,memory\n"
                          "3,gone_3,vaiml_par_0,SNPU,10,0.01,10,1,2,memory\n"
                          "4,idle_4,vaiml_par_0,SNPU,10,0.01,,,,unmatched\n"
                          ",Resize,vaiml_cpu_subgraph_0,CPU,,,8,,,\n"
                          ",Resize,vaiml_cpu_subgraph_0,CPU,,,9,,,\n"
                          ",total,,,40,0.04,220,,,\n"
                          ",mean_abs_error,,,,,,,12,\n";
    const std::string b = std::string(csv_head) +
                          "0,conv_0,vaiml_par_0,SNPU,10,0.01,101,1,2,compute\n"
                          "1,\"a \"\"b\"\", c\",vaiml_par_0,SNPU,10,0.01,90,1,2,compute\n"
                          "2,pool_2,vaiml_par_0,SNPU,10,0.01,11,1,2,memory\n"
                          "4,idle_4,vaiml_par_0,SNPU,10,0.01,5,,,memory\n"
                          "5,new_5,vaiml_par_0,SNPU,10,0.01,N/A,,,memory\n"
                          ",Resize,vaiml_cpu_subgraph_0,CPU,,,8,,,\n"
                          ",Resize,vaiml_cpu_subgraph_0,CPU,,,18,,,\n"
                          ",total,,,40,0.04,220,,,\n"
                          ",mean_abs_error,,,,,,,99,\n";
    EXPECT_EQ(
        table(read(a), read(b)),
        "vaiml_par_0/conv_0               us           100           101      +1.0%  same\n"
        "vaiml_par_0/a \"b\", c             us           100            90     -10.0%  better\n"
        "vaiml_par_0/pool_2               us            10            11     +10.0%  worse\n"
        "vaiml_par_0/gone_3               us            10             -          -  gone\n"
        "vaiml_par_0/idle_4               us           n/a             5          -  n/a\n"
        "vaiml_cpu_subgraph_0/Resize      us             8             8      +0.0%  same\n"
        "vaiml_cpu_subgraph_0/Resize (2)  us             9            18    +100.0%  worse\n"
        "total                            us           220           220      +0.0%  same\n"
        "vaiml_par_0/new_5                us             -           n/a          -  new\n"
        "same 3, better 1, worse 2, gone 1, new 1, n/a 1\n");
}

struct Edge {
    const char *a, *b, *sense;
    double threshold;
    Change want;
};
const Edge edges[] = {
    {"100", "105", "max", 5, Change::same},       // at the threshold
    {"1", "1.05", "max", 5, Change::same},        // the same, where binary numbers round up
    {"100", "105.001", "max", 5, Change::worse},  // above
    {"100", "104.999", "max", 5, Change::same},   // below
    {"100", "95", "max", 5, Change::same},       {"100", "94.999", "max", 5, Change::better},
    {"100", "94.999", "min", 5, Change::worse},  {"100", "105.001", "min", 5, Change::better},
    {"100", "100.001", "max", 0, Change::worse},  // nothing is forgiven
    {"100", "100", "max", 0, Change::same},      {"0", "0", "max", 5, Change::same},
    {"0", "0.1", "max", 1000, Change::worse},  // from nothing to something
    {"-10", "-20", "max", 5, Change::better},  // smaller
};
class DiffEdge : public testing::TestWithParam<Edge> {};
TEST_P(DiffEdge, CountsBeyondTheThresholdOnly) {
    const Edge& e = GetParam();
    const auto diff = compare(read(json({row("r", e.a, e.sense)})),
                              read(json({row("r", e.b, e.sense)})), e.threshold);
    ASSERT_TRUE(diff) << diff.error().message;
    EXPECT_STREQ(to_string(diff->rows[0].change), to_string(e.want));
    EXPECT_EQ(diff->is_worse(), e.want == Change::worse);
}
INSTANTIATE_TEST_SUITE_P(Thresholds, DiffEdge, testing::ValuesIn(edges));

TEST(Diff, ARowThatIsGoneIsWorse) {
    const auto diff = compare(read(json({row("a", "1", "max"), row("b", "1", "max")})),
                              read(json({row("a", "1", "max")})), 5);
    ASSERT_TRUE(diff);
    EXPECT_TRUE(diff->is_worse());
}

TEST(Diff, RefusesOtherKindsAndFilesWithoutACommonRow) {
    const ResultFile bench = read(json({row("a", "1", "max")}));
    const ResultFile run = read(json({row("a", "1", "max")}, R"(, "versions": {})"));
    EXPECT_EQ(table(bench, run),
              "the first file is a bench.json, the second a file of vartml run, bench or density "
              "--json; compare two of one "
              "kind");
    EXPECT_EQ(table(bench, read(csv_head)),
              "the first file is a bench.json, the second a layers.csv; compare two of one kind");
    EXPECT_EQ(table(bench, read(json({row("b", "1", "max")}))),
              "no row is in both files; the first has 'a', the second 'b'");
}

const char* foreign[] = {
    "",
    "{",
    "[]",
    "{\"rows\": 1}",
    "{\"rows\": [1]}",
    "{\"rows\": [{\"name\": \"a\"}]}",
    "{\"rows\": [{\"name\": \"a\", \"unit\": \"us\", \"sense\": \"up\"}]}",
    "{\"rows\": [{\"name\": \"a\\u0007\", \"unit\": \"us\", \"sense\": \"max\"}]}",
    "a,b\n1,2\n",
    "index,name,partition,meas_us\n1,2\n"};
class DiffForeign : public testing::TestWithParam<const char*> {};
TEST_P(DiffForeign, IsRefusedByName) {
    const auto file = read_result(GetParam(), "f.txt");
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(file.error().message.starts_with("f.txt: ")) << file.error().message;
    EXPECT_NE(file.error().message.find("bench.json of './dev bench'"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Files, DiffForeign, testing::ValuesIn(foreign));

}  // namespace
}  // namespace vartml::profiling
