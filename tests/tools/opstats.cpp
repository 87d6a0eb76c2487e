// SPDX-License-Identifier: Apache-2.0
// `vartml opstats` as a program: outputs, order, and the sentence and exit status of every error.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/checksum.h"
#include "lib/model/compiled_model.h"
#include "lib/model/stats_descriptor.h"
#include "lib/trace/stats_buffer.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;

struct Finished {
    int status = -1;
    std::string out, err;
};

class Opstats : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
        program_ = program;
        fs::create_directories(dir_ / "in");
        fs::create_directories(dir_ / "out");
        bytes_ = artifact::write_descriptor(descriptor_);
        test::spill(dir_ / "opstatsdesc.bin", bytes_);
    }

    std::string add_buffer(uint64_t inference, const std::string& network = "small net",
                           unsigned level = 70, uint32_t device = 0) {
        profiling::Capture capture = test::small_capture_at(level);
        capture.inference_index = inference;
        capture.device_index = device;
        profiling::BufferContext context = test::small_context(descriptor_);
        context.descriptor_id = profiling::descriptor_id_of(bytes_);
        const std::string path = dir_ / "in/" + profiling::buffer_stem(0, 0, inference, network) +
                                 std::string(profiling::buffer_suffix);
        const auto r = profiling::write_stats_buffer(capture, context, path);
        EXPECT_TRUE(r) << r.error().message;
        return path;
    }

    Finished run(const std::string& arguments) {
        const std::string command = "cd '" + dir_.path() + "' && " + limits_ + "'" + program_ +
                                    "' opstats " + arguments + " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, test::slurp(dir_ / "out.txt"),
                test::slurp(dir_ / "err.txt")};
    }
    Finished good(const std::string& arguments) {
        return run("-q opstatsdesc.bin -i in -o out " + arguments);
    }

    std::vector<std::string> outputs() {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(dir_ / "out"))
            names.push_back(entry.path().filename());
        std::ranges::sort(names);
        return names;
    }

    const test::TempDir dir_;
    std::string program_, limits_, bytes_;
    const profiling::Descriptor descriptor_ = test::small_descriptor();
};

void expect_error(const Finished& r, int status, const std::string& words) {
    EXPECT_EQ(r.status, status) << r.err;
    EXPECT_NE(r.err.find(words), std::string::npos) << "'" << words << "' in: " << r.err;
}

constexpr const char* stem = "aic-profiling-program-0-activation-0-inf-";

TEST_F(Opstats, WritesOneSetOfFilesPerBufferInOrder) {
    add_buffer(10);
    add_buffer(9);
    test::spill(dir_ / "in/notes.txt", "ignored");
    test::spill(dir_ / "in/" + std::string(stem) + "7-x-aiccyclecounts.bin.part", "ignored");
    const Finished r = good("--summary --trace");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.err, "");
    const std::string nine = std::string(stem) + "9-small_net.qaic-opstats.";
    const std::string ten = std::string(stem) + "10-small_net.qaic-opstats.";
    EXPECT_EQ(outputs(), (std::vector<std::string>{ten + "summary.txt", ten + "trace.json",
                                                   nine + "summary.txt", nine + "trace.json"}));
    const size_t first = r.out.find(nine + "summary.txt");
    const size_t second = r.out.find(ten + "summary.txt");
    ASSERT_NE(first, std::string::npos) << r.out;
    EXPECT_LT(first, second) << r.out;
    EXPECT_NE(r.out.find("median of 2 inferences:\nverdict: "), std::string::npos) << r.out;

    const Finished check = run("--check out/" + nine + "summary.txt");
    EXPECT_EQ(check.status, 0) << check.out;
    EXPECT_EQ(std::ranges::count(check.out, '\n'), 13) << check.out;
}

// Whatever stands in the name of the buffer.
TEST_F(Opstats, NamesFilesAsTheBufferIsNamed) {
    const std::string path = add_buffer(4);
    const std::string slices = add_buffer(5), own = std::string(stem) + "004-a-net (1)";
    fs::rename(path, dir_ / "in/" + own + "-aiccyclecounts.bin");
    fs::rename(slices, dir_ / "in/" + std::string(stem) + "05-b-net_slice00-aiccyclecounts.bin");
    const Finished r = good("--summary --trace");
    EXPECT_EQ(r.status, 0) << r.err;
    const std::string other = std::string(stem) + "05-b-net";
    EXPECT_EQ(outputs(), (std::vector<std::string>{own + ".qaic-opstats.summary.txt",
                                                   own + ".qaic-opstats.trace.json",
                                                   other + ".qaic-opstats.trace.json",
                                                   other + "_slice00.qaic-opstats.summary.txt"}));
}

TEST_F(Opstats, TakesMoreSlicesThanTheSystemHasFilesOpen) {
    for (unsigned slice = 0; slice < 80; ++slice) {
        const std::string path = add_buffer(1, "small net", 70, slice);
        const std::string number = (slice < 10 ? "0" : "") + std::to_string(slice);
        fs::rename(path, dir_ / "in/" + std::string(stem) + "1-net_slice" + number +
                             "-aiccyclecounts.bin");
    }
    limits_ = "ulimit -n 40 && ";
    const Finished r = good("--trace");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(outputs().size(), 1U);
}

TEST_F(Opstats, TakesACompiledModelInEveryContainer) {
    add_buffer(1);
    artifact::CompiledModel model = test::conv_model();
    model.files.push_back({profiling::descriptor_entry, bytes_});
    ASSERT_TRUE(artifact::write_directory(model, dir_ / "folder"));
    ASSERT_TRUE(artifact::write_rai(model, dir_ / "m.rai"));
    fs::create_directories(dir_ / "bin");
    ASSERT_TRUE(artifact::write_rai(model, dir_ / "bin/programqpc.bin"));
    ASSERT_TRUE(artifact::write_tar(model, dir_ / "m.tar.gz"));
    for (const char* path : {"folder", "m.rai", "m.tar.gz", "bin", "bin/", "bin/programqpc.bin"}) {
        const Finished r = run("--model " + std::string(path) + " --input-dir=in -o out --summary");
        EXPECT_EQ(r.status, 0) << path << ": " << r.err;
    }
    ASSERT_TRUE(artifact::write_rai(model, dir_ / "bin/second.rai"));
    expect_error(run("-q bin -i in --summary"), 1,
                 "bin: holds more than one compiled model, programqpc.bin and second.rai");
    expect_error(run("-q in -i in --summary"), 1, "in: holds no compiled model");
    ASSERT_TRUE(artifact::write_rai(test::conv_model(), dir_ / "without.rai"));
    expect_error(run("-q without.rai -i in --summary"), 1, "without.rai: ");
}

struct Usage {
    const char *arguments, *words;
};

const Usage usages[] = {
    {"-q opstatsdesc.bin -i in", "--summary, --trace, --layers, --html"},
    {"-i in --summary", "--qpc: is missing"},
    {"-q opstatsdesc.bin --summary", "--input-dir: is missing"},
    {"-q opstatsdesc.bin -i in --trace -c 0,x",
     "--select-cores: is '0,x', expected numbers with commas between, as in 0,5,1"},
    {"-q opstatsdesc.bin -i in --trace --select-cores 1,",
     "--select-cores: is '1,', expected numbers"},
    {"-q opstatsdesc.bin -i in --trace -d ,1", "--select-devices: is ',1', expected numbers"},
    {"-q opstatsdesc.bin -i in --trace --merge-mq-traces maybe", "--merge-mq-traces: maybe not in"},
    {"-q opstatsdesc.bin -i in --trace --merge-thread-groups=1", "--merge-thread-groups: 1 not in"},
    {"-q opstatsdesc.bin -i in --trace --flow-events some", "--flow-events: some not in"},
    {"-q opstatsdesc.bin -i in --summary --host-trace h.json", "--host-trace: needs --trace"},
    {"-q opstatsdesc.bin -i in --trace --host-clock-offset-us 5",
     "--host-clock-offset-us: needs --host-trace"},
    {"-q opstatsdesc.bin -i in --summary --estimate auto", "--estimate: needs --layers"},
    {"-q opstatsdesc.bin -i in --summary --select-cores 1", "--select-cores: needs --trace"},
    {"-q opstatsdesc.bin -i in --summary -d 1", "--select-devices: needs --trace"},
    {"-q opstatsdesc.bin -i in --layers --flow-events full", "--flow-events: needs --trace"},
    {"-q opstatsdesc.bin -i in --layers --show-barrier-events",
     "--show-barrier-events: needs --trace"},
    {"-q opstatsdesc.bin -i in --summary --ucycle-hz 0", "--ucycle-hz"},
    {"-q opstatsdesc.bin -i in --summary --infix a/b", "--infix: is 'a/b'"},
    {"-q opstatsdesc.bin -i in --summary --unknown", "--unknown"},
};

TEST_F(Opstats, AWrongCommandLineIsNamedBeforeAnythingIsRead) {
    fs::remove_all(dir_ / "in");
    for (const Usage& u : usages) {
        const Finished r = run(u.arguments);
        expect_error(r, 2, u.words);
        EXPECT_EQ(r.out, "");
    }
}

TEST_F(Opstats, AFolderWithoutBuffersIsNamedWithTheScheme) {
    test::spill(dir_ / "in/a.txt", "");
    test::spill(dir_ / "in/b.txt", "");
    const Finished r = good("--summary");
    expect_error(r, 1,
                 "in: holds no raw stats buffer named aic-profiling-program-<P>-activation-<A>"
                 "-inf-<I>-<NetworkName>-aiccyclecounts.bin among 2 files");
    expect_error(run("-q opstatsdesc.bin -i nowhere --summary"), 1, "nowhere: cannot open");
    expect_error(run("-q opstatsdesc.bin -i in -o nowhere --summary"), 1,
                 "nowhere: --output-dir must be a folder");
    expect_error(run("-q nowhere.rai -i in --summary"), 1, "nowhere.rai: ");
}

// Changes the header and makes its checksum right again.
template <typename Change>
void change_header(const std::string& path, Change change) {
    std::string bytes = test::slurp(path);
    profiling::format::Header h;
    std::memcpy(&h, bytes.data(), sizeof h);
    change(h);
    h.header_crc = 0;
    h.header_crc = crc32(std::as_bytes(std::span(&h, 1)));
    std::memcpy(bytes.data(), &h, sizeof h);
    test::spill(path, bytes);
}

struct Bad {
    void (*change)(const std::string& path);
    const char* words;
};

const Bad bads[] = {
    {[](const std::string& p) { test::spill(p, "short"); }, "not a gst-vartml stats buffer"},
    {[](const std::string& p) { test::spill(p, std::string(5000, 'Q')); },
     "not a gst-vartml stats buffer"},
    {[](const std::string& p) { change_header(p, [](auto& h) { h.version_major = 9; }); },
     "has version 9.0 of the format, supported is 1.x"},
    {[](const std::string& p) { fs::resize_file(p, 2000); }, "truncated: 2000 of "},
    {[](const std::string& p) { test::spill(p, test::slurp(p) + "xx"); }, "2 bytes after the end"},
    {[](const std::string& p) {
         std::string b = test::slurp(p);
         b[b.find("small net")] ^= 1;
         test::spill(p, b);
     },
     "checksum of section NETW at offset "},
    {[](const std::string& p) { change_header(p, [](auto& h) { h.model_signature.fill(0xee); }); },
     "recorded from another model: its signature is eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee, that of "},
    {[](const std::string& p) {
         change_header(p, [](auto& h) { h.descriptor_id.fill(0), h.compiled_level = 40; });
     },
     "same model, other compilation: recorded with --stats-level=40, "},
};

TEST_F(Opstats, ABadBufferIsNamedAndTheOthersAreDone) {
    for (const Bad& bad : bads) {
        fs::remove_all(dir_ / "in");
        fs::remove_all(dir_ / "out");
        fs::create_directories(dir_ / "in");
        fs::create_directories(dir_ / "out");
        const std::string path = add_buffer(1);
        add_buffer(2);
        bad.change(path);
        const Finished r = good("--summary");
        expect_error(r, 1, bad.words);
        EXPECT_NE(r.err.find("in/" + std::string(stem) + "1-small_net"), std::string::npos)
            << r.err;
        EXPECT_EQ(outputs().size(), 1U) << bad.words;
    }
}

TEST_F(Opstats, ABufferOfAnotherNetworkOrOtherOperatorsIsNamed) {
    add_buffer(1);
    profiling::Descriptor other = descriptor_;
    other.network = "big";
    test::spill(dir_ / "opstatsdesc.bin", artifact::write_descriptor(other));
    expect_error(good("--summary"), 1, "unknown network 'small net'; opstatsdesc.bin has 'big'");
}

// The operators of a thread against those of its group: same compilation by its id, other contents.
TEST_F(Opstats, OtherOperatorsThanTheModelsAreNamed) {
    profiling::Descriptor other = descriptor_;
    other.cores[0].groups[1].ops.pop_back();
    bytes_ = artifact::write_descriptor(other);
    test::spill(dir_ / "opstatsdesc.bin", bytes_);
    add_buffer(1);
    expect_error(good("--summary"), 1,
                 "core 0, thread 4 has 3 operators, its group in opstatsdesc.bin has 2");
}

TEST_F(Opstats, AHostTraceOfAnotherClockIsNamed) {
    add_buffer(1);
    const auto capture_event = [](const std::string& clock, char boot) {
        return R"([{"ph":"M","name":"vartml_capture","pid":1,"tid":1,"args":{"version":1,"clock":")" +
               clock + R"(","boot_id":")" + std::string(32, boot) + R"("}}])";
    };
    const struct {
        std::string text;
        const char* words;
    } cases[] = {
        {"[]", "h.json: names no clock; --host-clock-offset-us"},
        {capture_event("CLOCK_TAI", 'b'), "h.json: its clock is CLOCK_TAI"},
        {capture_event("CLOCK_MONOTONIC", '1'), "h.json: is of another boot"},
    };
    for (const auto& c : cases) {
        test::spill(dir_ / "h.json", c.text);
        expect_error(good("--trace --host-trace h.json"), 1, c.words);
        EXPECT_TRUE(outputs().empty());
    }
    test::spill(dir_ / "h.json", "[]");
    EXPECT_EQ(good("--trace --host-trace h.json --host-clock-offset-us 5").status, 0);
}

TEST_F(Opstats, WritesAPageWithTheFiguresOfTheSummary) {
    add_buffer(1);
    const Finished r = good("--html");
    EXPECT_EQ(r.status, 0) << r.err;
    ASSERT_EQ(outputs(),
              std::vector<std::string>{std::string(stem) + "1-small_net.qaic-opstats.html"});
    const std::string page = test::slurp(dir_ / "out/" + outputs()[0]);
    for (const char* figure : {"conv SNPU DDR (i8, i32)", "3020.83", "mixed memory and host bound"})
        EXPECT_NE(page.find(figure), std::string::npos) << figure;
}

TEST_F(Opstats, WithoutOperatorsTheTraceIsThereAndTheLayersAreNot) {
    add_buffer(1, "small net", 50);
    test::spill(dir_ / "e.yaml", "0:\n  name: conv_0\n  start_cycle: 0\n  end_cycle: 9\n");
    const Finished r = good("--trace --layers --estimate e.yaml");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.err.find("has no operator data: compiled at level 70, captured at level 50"),
              std::string::npos)
        << r.err;
    EXPECT_EQ(outputs().size(), 1U);
}

TEST_F(Opstats, WritesLayersFromAnEstimate) {
    add_buffer(1);
    expect_error(good("--layers"), 1, "opstatsdesc.bin: holds no estimate");
    test::spill(dir_ / "e.yaml", "0:\n  name: conv_0\n  start_cycle: 0\n  end_cycle: 9\n");
    const Finished r = good("--layers --estimate e.yaml");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find("unknown clock"), std::string::npos) << r.out;
    ASSERT_EQ(outputs().size(), 1U);
    EXPECT_TRUE(outputs()[0].ends_with(".qaic-opstats.layers.csv"));
}

TEST_F(Opstats, SelectsCoresAndDevicesOfTheTrace) {
    add_buffer(1);
    Finished r = good("--trace -c 1,5");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.err.find("--select-cores names 5; it has the cores 0, 1"), std::string::npos)
        << r.err;
    EXPECT_EQ(outputs().size(), 1U);
    fs::remove(dir_ / "out/" + outputs()[0]);
    expect_error(good("--trace -c 5,6"), 1, "none of the cores of --select-cores is in it");
    expect_error(good("--trace -d 3"), 1, "none of the devices of --select-devices is in it");
    EXPECT_TRUE(outputs().empty());
}

TEST_F(Opstats, SlicesOfOneInferenceShareATrace) {
    for (uint32_t device = 0; device < 2; ++device)
        add_buffer(4, "small net_slice0" + std::to_string(device), 70, device);
    add_buffer(5);
    const std::string four = std::string(stem) + "4-small_net",
                      five = std::string(stem) + "5-small_net";
    EXPECT_EQ(good("--summary --trace --infix x").status, 0);
    EXPECT_EQ(outputs(),
              (std::vector<std::string>{four + ".x.trace.json", four + "_slice00.x.summary.txt",
                                        four + "_slice01.x.summary.txt", five + ".x.summary.txt",
                                        five + ".x.trace.json"}));
    fs::remove_all(dir_ / "out");
    fs::create_directories(dir_ / "out");
    EXPECT_EQ(good("--trace --infix x --merge-mq-traces false").status, 0);
    EXPECT_EQ(outputs(),
              (std::vector<std::string>{four + "_slice00.x.trace.json",
                                        four + "_slice01.x.trace.json", five + ".x.trace.json"}));
}

TEST_F(Opstats, VerboseNamesTheSections) {
    add_buffer(1);
    const Finished r = good("--summary -v");
    EXPECT_EQ(r.status, 0);
    EXPECT_NE(r.err.find("OPTS of core 0, thread 0: 7 records, 112 bytes at "), std::string::npos)
        << r.err;
}

TEST_F(Opstats, CheckNamesTheIdentityThatFails) {
    add_buffer(1);
    ASSERT_EQ(good("--summary").status, 0);
    const std::string path = dir_ / "out/" + outputs()[0];
    std::string text = test::slurp(path);
    const size_t at = text.find("c0 total:            3840");
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, 25, "c0 total:            3841");
    test::spill(dir_ / "bad.txt", text);
    const Finished r = run("--check bad.txt");
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(
        r.out.find("identity 7: core totals are the maximum over the threads: FAILED (c0 total "
                   "ucycles is 3841, expected 3840)"),
        std::string::npos)
        << r.out;
    expect_error(run("--check nowhere.txt"), 1, "nowhere.txt: cannot open");
    test::spill(dir_ / "other.txt", "hello\n");
    expect_error(run("--check other.txt"), 1, "other.txt: line 1 is none of a summary: 'hello'");
}

}  // namespace
}  // namespace vartml
