// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/latency_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/comma_locale.h"

namespace vartml::profiling {
namespace {

constexpr uint64_t us = 1000;

// Stamps that are powers of two apart, so that each difference is of one pair alone.
Capture full_capture() {
    Capture c;
    c.has_host = true;
    c.host = {100 * us, 101 * us,  103 * us,  107 * us, 115 * us,
              131 * us, 1131 * us, 1163 * us, 1227 * us};
    ThreadCapture thread;
    thread.start = 131 * us;
    thread.end = 1131 * us;
    c.threads = {thread};
    c.ports = {{.port = input_port, .is_output = false, .count = 1, .wait_ns = 7500},
               {.port = output_port, .is_output = true, .count = 1, .wait_ns = 250}};
    c.queue_depth = 10;
    c.jobs_in_queue = 3;
    c.bytes_copied = 4096;
    c.frames = {{.batch_slot = 0, .stream_index = 2, .frame_number = 41, .pts_ns = 33}};
    return c;
}

const LatencyHeader header{0, "yolox", 5, 4};

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> fields_of(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> fields;
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    return fields;
}

std::string stripped(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
}

std::map<std::string, std::string> row_of(const std::string& text, size_t sample) {
    const auto lines = lines_of(text);
    const auto names = fields_of(lines.at(4)), values = fields_of(lines.at(5 + sample));
    EXPECT_EQ(names.size(), values.size());
    std::map<std::string, std::string> row;
    for (size_t i = 0; i < std::min(names.size(), values.size()); ++i)
        row[stripped(names[i])] = stripped(values[i]);
    return row;
}

TEST(LatencyFile, BeginsWithFourLinesThatItsReaderSkips) {
    const Capture samples[] = {full_capture(), full_capture()};
    const auto lines = lines_of(latency_text(header, samples));
    ASSERT_EQ(lines.size(), 7U);
    EXPECT_EQ(lines[0], "Profiling Data");
    EXPECT_EQ(lines[1], "ProgramId:0");
    EXPECT_EQ(lines[2], "ProgramName: Program:yolox");
    EXPECT_EQ(lines[3], "NumSamples collected: 2 Num Requested: 5");
    EXPECT_TRUE(lines[4].starts_with(
        "Sample        ,devInfPerSec  ,devExecUs     ,devInWaitTimeUs  ,devOutWaitTimeUs  ,"));
    EXPECT_TRUE(lines[5].starts_with(
        "0             ,4000.000      ,1000.000      ,7.500            ,0.250             ,"));
    EXPECT_TRUE(lines[6].starts_with("1             ,"));
}

TEST(LatencyFile, PadsEveryFieldToItsName) {
    const Capture samples[] = {full_capture()};
    const auto lines = lines_of(latency_text(header, samples));
    const auto names = fields_of(lines[4]), values = fields_of(lines[5]);
    ASSERT_EQ(names.size(), 22U);
    for (size_t i = 0; i < names.size(); ++i) {
        EXPECT_EQ(names[i].size(), std::max<size_t>(14, stripped(names[i]).size() + 2));
        EXPECT_EQ(values[i].size(), names[i].size()) << names[i];
    }
}

TEST(LatencyFile, HasTheStagesOfTheJob) {
    const Capture samples[] = {full_capture()};
    auto row = row_of(latency_text(header, samples), 0);
    const std::pair<const char*, const char*> want[] = {
        {"enqTimeUs", "1.000"},
        {"queueWaitUs", "2.000"},
        {"preProcTimeUs", "4.000"},
        {"submitTimeUs", "8.000"},
        {"exectoVcUs", "16.000"},
        {"execToCompleteUs", "1000.000"},
        {"hostRoundTripUs", "1016.000"},  // exectoVcUs + execToCompleteUs
        {"execTotalUs", "1024.000"},
        {"postProcUs", "32.000"},
        {"totalRoundtripTimeUs", "1127.000"},
        {"queueDepth", "10"},
        {"numInfInQueue", "3"},
        {"streamId", "2"},
        {"frame", "41"},
        {"gstPtsNs", "33"},
        {"bytesCopied", "4096"},
        {"dropReason", "none"},
    };
    for (const auto& [name, value] : want) EXPECT_EQ(row[name], value) << name;
}

// An application may have set a locale whose decimals begin with what parts the columns.
TEST(LatencyFile, IsTheSameInEveryLocale) {
    const std::vector<Capture> samples = {full_capture()};
    const std::string plain = latency_text(header, samples);
    const test::CommaLocale comma;
    EXPECT_EQ(latency_text(header, samples), plain);
}

TEST(LatencyFile, SaysWhatWasNotCaptured) {
    Capture host_alone = full_capture();
    host_alone.threads.clear();
    host_alone.ports.clear();
    host_alone.frames.clear();
    Capture device_alone = full_capture();
    device_alone.has_host = false;
    Capture no_end = full_capture();
    no_end.host[8] = not_captured;
    const Capture samples[] = {host_alone, device_alone, no_end};
    const std::string text = latency_text(header, samples);
    for (const char* name : {"devInfPerSec", "devExecUs", "devInWaitTimeUs", "devOutWaitTimeUs",
                             "streamId", "frame", "gstPtsNs"})
        EXPECT_EQ(row_of(text, 0)[name], "N/A") << name;
    EXPECT_EQ(row_of(text, 0)["execTotalUs"], "1024.000");
    for (const char* name : {"hostRoundTripUs", "enqTimeUs", "totalRoundtripTimeUs", "queueDepth",
                             "numInfInQueue", "queueWaitUs", "bytesCopied"})
        EXPECT_EQ(row_of(text, 1)[name], "N/A") << name;
    EXPECT_EQ(row_of(text, 1)["devExecUs"], "1000.000");
    EXPECT_EQ(row_of(text, 2)["totalRoundtripTimeUs"], "N/A");
    EXPECT_EQ(row_of(text, 2)["postProcUs"], "32.000");
}

}  // namespace
}  // namespace vartml::profiling
