// SPDX-License-Identifier: Apache-2.0
// The parts of `vartml run`: tensor files, tolerances, figures.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/tools/energy.h"
#include "lib/tools/run_report.h"
#include "lib/tools/tensor_file.h"
#include "lib/tools/verify/compare.h"
#include "tests/support/temp_dir.h"

namespace {
using namespace vartml;
using namespace vartml::tools;
using namespace vartml::verify;

std::string npy(const std::string& dictionary, const std::string& elements) {
    std::string header = dictionary + "\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    return bytes + header + elements;
}

TEST(Npy, GivesTypeShapeAndBytes) {
    const auto data = parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
                                    std::string("\0\0\x80\x3f\0\0\0\x40", 8)),
                                "a.npy");
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->type, DataType::float32);
    EXPECT_EQ(data->shape, (std::vector<int64_t>{1, 2}));
    float values[2];
    std::memcpy(values, data->bytes.data(), 8);
    EXPECT_EQ(values[0], 1.0f);
    EXPECT_EQ(values[1], 2.0f);
    const auto scalar =
        parse_npy(npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "x"), "b.npy");
    ASSERT_TRUE(scalar);
    EXPECT_TRUE(scalar->shape.empty());
}

TEST(Npy, IsReadAsOthersWriteIt) {
    for (const char* header :
         {"{'descr': '<i2', 'fortran_order': False, 'shape': (1L, 2L), }",
          "{'descr': '<i2', 'fortran_order': False, 'shape': (1L,2L)}",
          "{\"descr\": \"<i2\", \"fortran_order\": False, \"shape\": (1, 2)}"}) {
        const auto data = parse_npy(npy(header, "1234"), "a.npy");
        ASSERT_TRUE(data) << header << data.error().message;
        EXPECT_EQ(data->type, DataType::int16);
        EXPECT_EQ(data->shape, (std::vector<int64_t>{1, 2}));
    }
}

TEST(Npy, IsReadAsItWasWritten) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, std::vector<int64_t>{3}, std::vector<int64_t>{1, 2, 3}}) {
        TensorData data{DataType::int16, shape, {}};
        size_t count = 1;
        for (const int64_t d : shape) count *= static_cast<size_t>(d);
        for (size_t i = 0; i < 2 * count; ++i) data.bytes.push_back(std::byte(i + 1));
        const std::string bytes = npy_of(data);
        const auto read = parse_npy(bytes, "a.npy");
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->type, data.type);
        EXPECT_EQ(read->shape, data.shape);
        EXPECT_EQ(read->bytes, data.bytes);
        EXPECT_EQ((bytes.size() - data.bytes.size()) % 64, 0U);
    }
    const TensorData half{DataType::bf16, {1}, {std::byte(0x80), std::byte(0x3f)}};  // 1
    const auto whole = parse_npy(npy_of(half), "a.npy");
    ASSERT_TRUE(whole) << whole.error().message;
    EXPECT_EQ(whole->type, DataType::float32);
    float value = 0;
    std::memcpy(&value, whole->bytes.data(), sizeof value);
    EXPECT_EQ(value, 1.0f);
}

TEST(Npy, NamesWhatIsWrong) {
    const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    const std::pair<std::string, const char*> rows[] = {
        {"PK", "a.npy: is no .npy file"},
        {npy(good, "1234"), "a.npy: holds 4 bytes of elements, the header says 8"},
        {npy("{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (2,)}", ""),
         "a.npy: elements are of type '\\x1b[2J', expected a little-endian number or bool"},
        {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "12345678"),
         "a.npy: elements are of type '>f4'"},
        {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", "12345678"),
         "a.npy: is in Fortran order"},
        {npy("{'descr': '<f4', 'shape': (2,)}", ""), "a.npy: the header lacks"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", ""),
         "a.npy: the shape in the header is damaged"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8)}", ""),
         "a.npy: the shape in the header is too large"},
        {npy(good, "").substr(0, 30), "a.npy: the header is cut off"},
        {npy("{'descr': '<f4', 'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", "1234"),
         "a.npy: the header has 'descr' twice"},
        {npy("{'descr': '<f4', \"descr\": '<i4', 'fortran_order': False, 'shape': (1,)}", "1234"),
         "a.npy: the header has 'descr' twice"},
        {"\x93NUMPY\x09" + npy(good, "12345678").substr(7),
         "a.npy: is of version 9 of its format, expected 1 to 3"},
    };
    for (const auto& [bytes, text] : rows) {
        const auto data = parse_npy(bytes, "a.npy");
        ASSERT_FALSE(data) << text;
        EXPECT_EQ(data.error().message.substr(0, std::strlen(text)), text);
    }
    // The model is not to blame.
    EXPECT_EQ(read_tensor("picture.txt").error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(read_tensor("/nowhere/a.npy").error().code, ErrorCode::not_found);
}

template <typename T>
TensorData tensor(DataType type, std::vector<T> values) {
    TensorData data{type, {static_cast<int64_t>(values.size())}, {}};
    data.bytes.resize(values.size() * sizeof(T));
    std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
    return data;
}

TEST(Tolerance, FollowsWhatWasComputed) {
    EXPECT_EQ(tolerance_of(DataType::int64, "bf16", {}, {}).measure, Measure::exact);
    EXPECT_EQ(tolerance_of(DataType::float32, "bf16", {}, {}).measure, Measure::cosine);
    EXPECT_EQ(tolerance_of(DataType::float32, "fp32", {}, {}).measure, Measure::range);
    EXPECT_EQ(tolerance_of(DataType::float32, "bf16", 0.5, {}).measure, Measure::steps);
    EXPECT_EQ(tolerance_of(DataType::float32, "bf16", 0.5, {}).limit, 1);
    EXPECT_EQ(tolerance_of(DataType::float32, "bf16", 0.5, 3).limit, 3);
    EXPECT_EQ(tolerance_of(DataType::int64, "bf16", {}, {}).limit, 0);
    EXPECT_EQ(tolerance_of(DataType::float32, "bf16", {}, {}).limit, 0.999);
    EXPECT_EQ(tolerance_of(DataType::float32, "fp32", {}, {}).limit, 1e-4);
    EXPECT_EQ(tolerance_of(DataType::float32, "fp32", {}, 0.25).limit, 0.25);
}

TEST(Compare, MeasuresByTheTolerance) {
    const auto floats = [](std::vector<float> v) {
        return tensor(DataType::float32, std::move(v));
    };
    const float nan = std::nanf("");
    struct Row {
        TensorData found, expected;
        Tolerance tolerance;
        bool is_good;
    };
    const Tolerance exact{Measure::exact, 0, 1}, cosine{Measure::cosine, 0.999, 1},
        range{Measure::range, 1e-4, 1}, magnitude{Measure::magnitude, 1e-4, 1},
        steps{Measure::steps, 1, 0.5};
    const Row rows[] = {
        {tensor<int64_t>(DataType::int64, {1, 2}), tensor<int64_t>(DataType::int64, {1, 2}), exact,
         true},
        {tensor<int64_t>(DataType::int64, {1, 3}), tensor<int64_t>(DataType::int64, {1, 2}), exact,
         false},
        {floats({1, 2, 3}), floats({1.001f, 2, 3}), cosine, true},
        {floats({1, 2, 3}), floats({3, 2, 1}), cosine, false},
        {floats({2, 4, 6}), floats({1, 2, 3}), cosine, false},  // an angle does not see the scale
        {floats({1.05f}), floats({1}), cosine, true},
        {floats({0, 0}), floats({0, 0}), cosine, true},
        {floats({0, 0}), floats({1, 0}), cosine, false},
        {floats({nan, 0}), floats({1, 0}), cosine, false},
        {floats({0, 10.0009f}), floats({0, 10}), range, true},  // a part of the range of 10
        {floats({0, 10.01f}), floats({0, 10}), range, false},
        {floats({100, 100.0009f}), floats({100, 100}), magnitude, true},
        {floats({100, 100.1f}), floats({100, 100}), magnitude, false},
        {floats({0, 0.1f}), floats({0, 0}), magnitude, false},
        {floats({nan, 1}), floats({nan, 1}), range, true},
        {floats({nan, 1}), floats({0, 1}), range, false},
        {floats({1.5f}), floats({1.0f}), steps, true},
        {floats({2.5f}), floats({1.0f}), steps, false},
    };
    for (const Row& row : rows) {
        const auto result = compare(row.found, row.expected, row.tolerance, "o");
        ASSERT_TRUE(result);
        EXPECT_EQ(result->is_good, row.is_good) << result->text;
    }
    EXPECT_FALSE(compare(floats({1}), floats({1, 2}), range, "o"));
    EXPECT_FALSE(compare(floats({1}), tensor<int32_t>(DataType::int32, {1}), range, "o"));
}

RunMeasurement public_measurement() {
    RunMeasurement m;
    // 5787 inferences of 8 in 20.018960 s are 2312.608 per second (public figures).
    m.round_trip_us.assign(5787, 1000.0);
    m.round_trip_us[0] = 2000;
    m.total_us = 20018960;
    m.batch_size = 8;
    m.model = "bert";
    m.verdict = "# verdict: host bound\n";
    return m;
}

TEST(Report, IsThePublicFormFollowedByOurs) {
    RunMeasurement m = public_measurement();
    m.no_execution = "not recorded";
    m.no_waits = "level 40";
    const std::string text = console_text(m);
    const std::string begin =
        " ---- Stats ----\n"
        "InferenceCnt 5787 TotalDuration 20018960us BatchSize 8 Inf/Sec 2312.608\n"
        "not measured: ExecTimeUs: not recorded\n"
        "not measured: InputWaitTimeUs, OutputWaitTimeUs: level 40\n"
        "\nround trip us: min 1000.0 p50 1000.0 p75 1000.0 p90 1000.0 p95 1000.0 p99 1000.0 max "
        "2000.0\n";
    EXPECT_EQ(text.substr(0, begin.size()), begin);
    EXPECT_TRUE(text.ends_with("# verdict: host bound\n")) << text;
}

TEST(Report, HasTheTimesOfTheDevice) {
    RunMeasurement m = public_measurement();
    for (const double v : {31000.0, 31252.0}) m.device.execution_us.add(v);
    m.device.input_wait_us.add(3290983);
    m.device.output_wait_us.add(0);
    m.joules = 1;
    const std::string text = console_text(m);
    for (const char* line :
         {"\nExecTimeUs,      31126.000,     31000.000,     31252.000,     126.000\n",
          "\nInputWaitTimeUs, 3290983.000,   3290983.000,   3290983.000,   0.000\n",
          "\nOutputWaitTimeUs,0.000,         0.000,         0.000,         0.000\n"})
        EXPECT_NE(text.find(line), std::string::npos) << line << text;
    EXPECT_EQ(text.find("not measured"), std::string::npos);
}

const nlohmann::json& row_named(const nlohmann::json& json, const std::string& name) {
    static const nlohmann::json none;
    for (const auto& row : json["rows"])
        if (row["name"] == name) return row;
    ADD_FAILURE() << name;
    return none;
}

TEST(Report, HasRowsOfTheFormOfBenchmarks) {
    RunMeasurement m = public_measurement();
    m.processor = "some processor";
    m.threads = 2;
    m.version = "1.0.0";
    m.device.execution_us.add(31000);
    const auto json = nlohmann::json::parse(json_text(m));
    EXPECT_EQ(json["machine"], nlohmann::json({{"cpu", "some processor"}, {"threads", 2}}));
    EXPECT_EQ(json["versions"]["vartml"], "1.0.0");
    EXPECT_EQ(json["inferences"], 5787);
    for (const auto& row : json["rows"]) {
        std::vector<std::string> keys;
        for (const auto& [key, value] : row.items()) keys.push_back(key);
        EXPECT_EQ(keys, (std::vector<std::string>{"limit", "name", "ours", "pass", "peer",
                                                  "peer_name", "ratio", "sense", "unit"}));
        EXPECT_TRUE(row["peer"].is_null() && row["ratio"].is_null() && row["limit"].is_null());
    }
    EXPECT_NEAR(row_named(json, "bert/inferences")["ours"].get<double>(), 2312.608, 0.001);
    EXPECT_EQ(row_named(json, "bert/inferences")["sense"], "min");
    EXPECT_EQ(row_named(json, "bert/round_trip_p99")["ours"], 1000);
    EXPECT_EQ(row_named(json, "bert/device_execution")["ours"], 31000);
    EXPECT_TRUE(row_named(json, "bert/device_input_wait")["ours"].is_null());
}

TEST(Report, CountsWhatIsCopiedForEachOfABatch) {
    RunMeasurement m = public_measurement();
    m.batch_size = 4;
    m.round_trip_us = {10, 10};
    m.bytes_copied = 4000;
    m.conversions = 16;
    EXPECT_NE(console_text(m).find("bytes copied per inference: 500, conversions: 2.0\n"),
              std::string::npos);
    const auto json = nlohmann::json::parse(json_text(m));
    EXPECT_EQ(row_named(json, "bert/bytes_copied")["ours"], 500);
    EXPECT_EQ(json["bytes_copied_per_inference"], 500);
    EXPECT_EQ(json["conversions_per_inference"], 2);
}

TEST(Report, SaysTheEnergyOfAnInferenceOrWhyThereIsNone) {
    RunMeasurement m = public_measurement();
    m.no_energy = "nobody knows";
    EXPECT_NE(console_text(m).find("energy per inference: not measured: nobody knows\n"),
              std::string::npos);
    auto json = nlohmann::json::parse(json_text(m));
    EXPECT_TRUE(row_named(json, "bert/energy")["ours"].is_null());
    EXPECT_EQ(json["no_energy"], "nobody knows");
    m.joules = 5787.0 * static_cast<double>(m.batch_size) / 4;
    json = nlohmann::json::parse(json_text(m));
    EXPECT_DOUBLE_EQ(json["joules_per_inference"].get<double>(), 0.25);
    EXPECT_EQ(row_named(json, "bert/energy")["sense"], "max");
    EXPECT_NE(console_text(m).find("per inference: 0.25 J, "), std::string::npos);
}

// A folder as Linux shows it: two packages, and parts of the first, which are in it already.
class Energy : public ::testing::Test {
protected:
    void counter(const std::string& zone, const std::string& energy,
                 const std::string& name = "package-0", const char* range = "262143000000") {
        const std::string folder = sysfs_ / zone;
        std::filesystem::create_directories(folder);
        std::ofstream(folder + "/name") << name << "\n";
        std::ofstream(folder + "/energy_uj") << energy << "\n";
        std::ofstream(folder + "/max_energy_range_uj") << range << "\n";
    }
    vartml::test::TempDir sysfs_;
    EnergyMeter meter_{sysfs_.path()};
};

TEST_F(Energy, IsTheSumOfThePackagesAlsoWhereACounterBeginsAnew) {
    counter("intel-rapl:0", "1000000");
    counter("intel-rapl:0:0", "5");
    counter("intel-rapl:1", "262142500000", "package-1");
    counter("intel-rapl:2", "7", "psys");  // of the machine, with the packages in it
    meter_.begin();
    counter("intel-rapl:0", "1250000");
    counter("intel-rapl:0:0", "4000000");
    counter("intel-rapl:2", "9000000", "psys");
    counter("intel-rapl:1", "1500000", "package-1");  // 0.5 J to its end, and 1.5 J
    const auto joules = meter_.joules();
    ASSERT_TRUE(joules) << joules.error().message;
    EXPECT_DOUBLE_EQ(*joules, 2.25);
}

TEST_F(Energy, IsNotKnownWhereACounterMayHaveGoneRoundTwice) {
    counter("intel-rapl:0", "5", "package-0", "1000");
    meter_.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // 1 W at most
    ASSERT_FALSE(meter_.joules());
    EXPECT_NE(meter_.joules().error().message.find("measure a shorter run"), std::string::npos);
}

TEST_F(Energy, WithoutASensorSaysWhereItLooked) {
    meter_.begin();
    ASSERT_FALSE(meter_.joules());
    EXPECT_EQ(meter_.joules().error().code, ErrorCode::not_found);
    EXPECT_TRUE(meter_.joules().error().message.starts_with(sysfs_.path()));
}

TEST_F(Energy, OfASensorThatCannotBeReadNamesIt) {
    counter("intel-rapl:0", "?");
    meter_.begin();
    ASSERT_FALSE(meter_.joules());
    EXPECT_NE(meter_.joules().error().message.find("intel-rapl:0/energy_uj"), std::string::npos);
}

TEST(Report, TakesPercentilesByTheNearestRank) {
    std::vector<double> values;
    for (int i = 100; i >= 1; --i) values.push_back(i);
    const Summary s = summarise(values);
    EXPECT_EQ(s.p50, 50);
    EXPECT_EQ(s.p90, 90);
    EXPECT_EQ(s.p99, 99);
    EXPECT_EQ(s.max, 100);
    EXPECT_EQ(s.mean, 50.5);
    EXPECT_EQ(summarise({7}).p99, 7);
}

}  // namespace
