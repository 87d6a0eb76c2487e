// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/doctor/peaks.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lib/run/softnpu/processor.h"
#include "tests/support/temp_dir.h"

namespace vartml::doctor {
namespace {

const PeaksKey key{"Processor (R) \"X\"", 4, "3.7.2"};

class PeaksFile : public testing::Test {
protected:
    test::TempDir dir_;
    const std::string folder_ = dir_ / "made/on/demand";
    const Peaks whole_{key, 2.5e11, 5e11, 1e12, 2e10};
};

TEST_F(PeaksFile, IsReadAsWritten) {
    ASSERT_TRUE(write_peaks(whole_, folder_));
    const auto read = read_peaks(key, folder_);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->key, key);
    EXPECT_EQ(read->f32, whole_.f32);
    EXPECT_EQ(read->bf16, whole_.bf16);
    EXPECT_EQ(read->int8, whole_.int8);
    EXPECT_EQ(read->bytes_per_second, whole_.bytes_per_second);
}

TEST_F(PeaksFile, KeepsATypeAbsent) {
    Peaks peaks = whole_;
    peaks.bf16.reset();
    ASSERT_TRUE(write_peaks(peaks, folder_));
    const auto read = read_peaks(key, folder_);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_FALSE(read->bf16);
    EXPECT_FALSE(ops_per_second(*read, "bf16"));
    EXPECT_EQ(ops_per_second(*read, "fp32"), 2.5e11);
    EXPECT_FALSE(ops_per_second(*read, "fp64"));
}

TEST_F(PeaksFile, IsOnePerProcessorThreadsAndOnednn) {
    const std::vector<PeaksKey> others = {
        {"Processor", 4, "3.7.2"}, {key.processor, 1, "3.7.2"}, {key.processor, 4, "3.8.0"}};
    ASSERT_TRUE(write_peaks(whole_, folder_));
    for (const PeaksKey& other : others) {
        const auto read = read_peaks(other, folder_);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code, ErrorCode::not_found);
        EXPECT_NE(read.error().message.find("vartml doctor --calibrate"), std::string::npos);
    }
}

TEST_F(PeaksFile, IsReplacedAsAWhole) {
    ASSERT_TRUE(write_peaks(whole_, folder_));
    ASSERT_TRUE(write_peaks({key, 1e9, {}, {}, 1e9}, folder_));
    EXPECT_EQ(read_peaks(key, folder_)->f32, 1e9);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(PeaksFile, IsRefusedWhereItIsDamaged) {
    ASSERT_TRUE(write_peaks(whole_, folder_));
    const std::string path = peaks_path(key, folder_), good = test::slurp(path);
    const auto with = [&](std::string from, const std::string& to) {
        std::string text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    const std::string damaged[] = {
        "",
        good.substr(0, good.size() / 2),  // a write that was cut off
        "[]",
        with("\"format\": 1", "\"format\": 2"),
        with("\"threads\": 4", "\"threads\": 5"),  // copied from elsewhere
        with("250000000000.0", "-1.0"),
        with("250000000000.0", "\"fast\""),
        with("250000000000.0", "null"),  // every processor computes in f32
        with("\"bytes_per_second\"", "\"bytes\""),
        with("\"bytes_per_second\": 20000000000.0", "\"bytes_per_second\": 1e999"),
    };
    for (const std::string& text : damaged) {
        test::spill(path, text);
        const auto read = read_peaks(key, folder_);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.error().code, ErrorCode::bad_model) << text;
        EXPECT_NE(read.error().message.find(path), std::string::npos);
    }
}

TEST(Calibration, MeasuresTheTypesThatTheProcessorMultipliesAndNoOther) {
    std::vector<std::string> steps;
    const auto peaks = measure_peaks(2, {.product_size = 64, .array_bytes = 4096, .repeats = 2},
                                     [&](const std::string& step) { steps.push_back(step); });
    ASSERT_TRUE(peaks) << peaks.error().message;
    EXPECT_EQ(peaks->key, peaks_key(2));
    ASSERT_TRUE(peaks->f32);
    EXPECT_GT(*peaks->f32, 0);
    EXPECT_EQ(peaks->bf16.has_value(), softnpu::bf16_products() != softnpu::Bf16Products::none);
    EXPECT_EQ(peaks->int8.has_value(), softnpu::has_int8_products());
    EXPECT_GT(peaks->bytes_per_second, 0);
    EXPECT_EQ(steps.size(), 4U);
}

}  // namespace
}  // namespace vartml::doctor
