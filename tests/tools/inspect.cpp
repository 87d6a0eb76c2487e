// SPDX-License-Identifier: Apache-2.0
// vartml inspect: the text and JSON of a model, and the options and exit statuses of the program.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/model/compiled_model.h"
#include "tests/model/models.h"
#include "tests/model/tar_archives.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using test::slurp;
using test::spill;

struct Finished {
    int status = -1;
    std::string out, err;
};

class Inspect : public testing::Test {
protected:
    test::TempDir dir;
    std::string program;

    void SetUp() override {
        const char* path = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(path) << "set VARTML_PROGRAM to the program vartml";
        program = path;
        ASSERT_TRUE(artifact::write_rai(test::conv_model(), dir / "conv.rai"));
        ASSERT_TRUE(artifact::write_directory(test::mixed_model(), dir / "mixed"));
    }
    Finished run(const std::string& arguments) {
        const std::string command = "cd '" + dir.path() + "' && '" + program + "' inspect " +
                                    arguments + " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(dir / "out.txt"),
                slurp(dir / "err.txt")};
    }
};

TEST_F(Inspect, ShowsAModelThatRunsOnTheNpu) {
    const Finished f = run("conv.rai");
    EXPECT_EQ(f.status, 0) << f.err;
    EXPECT_EQ(f.out, R"(--- Model info ---
Model file        : conv.rai
Batch size : 1
  Inputs (1):
    [0] images
         cpu: shape=[1,3,8,8]  dtype=fp32  memory_layout=NCHW  size=768B
         hw : shape=[8,1,8,1,4]  dtype=int8  memory_layout=HCWNC4  size=256B  quant{scale=0.0078125, zero_point=3, rounding_mode=ROUND_TO_NEAREST_EVEN}

  Outputs (1):
    [0] y
         cpu: shape=[1,2,8,8]  dtype=fp32  memory_layout=NCHW  size=512B
         hw : shape=[8,1,8,1,16]  dtype=bf16  memory_layout=HCWNC16  size=2048B

--- vartml ---
Device            : softnpu (target softnpu-1)
Compilation       : standard
Batch size        : desired 1, actual 1
Partitions        : vaiml_par_0 (npu, 2 operators, 0.000 GOPs, 4 columns)
Offload           : 2 of 2 operators (100.000%), 100.000% of GOPs
Fallback reasons  : none
Stats level       : 40 (no opstatsdesc.bin)
Model signature   : 00112233445566778899aabbccddeeff
)");
}

TEST_F(Inspect, NamesTheEngineOfAPartition) {
    ASSERT_TRUE(artifact::write_rai(
        test::one_node_model("OnnxRuntime", "onnxruntime-1", std::string("\x08\x08", 2)),
        dir / "foreign.rai"));
    const Finished text = run("foreign.rai");
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_NE(text.out.find("Partitions        : vaiml_cpu_subgraph_0 (cpu, engine onnxruntime, 1 "
                            "operators, 0.000 GOPs)\n"),
              std::string::npos)
        << text.out;
    const auto json = nlohmann::json::parse(run("--json foreign.rai").out);
    EXPECT_EQ(json["partitions"][0]["engine"], "onnxruntime") << json.dump(2);
}

TEST_F(Inspect, TellsWhatIsKeptInF32AndWhy) {
    artifact::CompiledModel model = test::conv_model();
    model.partitions[0].graph.nodes[1].kind = "Round";
    ASSERT_TRUE(artifact::write_rai(model, dir / "round.rai"));
    const Finished f = run("round.rai");
    EXPECT_NE(
        f.out.find("Kept in f32       : vaiml_par_0: indices, comparisons, coordinates: 1 of 3 "
                   "tensors, because of Round x1 (the first: Round 'act')\n"),
        f.out.npos)
        << f.out << f.err;
    const auto json = nlohmann::json::parse(run("--json round.rai").out);
    const auto kept = json["partitions"][0].value("kept_in_f32", nlohmann::json::object());
    EXPECT_EQ(kept.value("tensors", 0), 1) << json.dump(2);
    EXPECT_EQ(kept.value("because_of", std::vector<std::string>()),
              (std::vector<std::string>{"Round 'act'"}))
        << json.dump(2);
    EXPECT_EQ(json["exact_floats"], false);
}

TEST_F(Inspect, ShowsWhatRunsOnTheCpuAndWhy) {
    const Finished f = run("mixed");
    EXPECT_EQ(f.status, 0) << f.err;
    const size_t from = f.out.find("  Outputs (2)");
    ASSERT_NE(from, f.out.npos) << f.out;
    EXPECT_EQ(f.out.substr(from), R"(  Outputs (2):
    [0] p
         cpu: shape=[3,3]  dtype=int64  memory_layout=GENERIC(memory_layout_order=[0,1])  size=72B
         hw : none (CPU partition vaiml_cpu_subgraph_0)
    [1] s
         cpu: shape=[2,3]  dtype=fp32  memory_layout=GENERIC(memory_layout_order=[0,1])  size=24B
         hw : none

--- vartml ---
Device            : softnpu (target softnpu-1)
Compilation       : cpu_partition
Batch size        : desired 1, actual 1
Partitions        : vaiml_par_0 (npu, 1 operators, 0.000 GOPs, 4 columns)
                    vaiml_cpu_subgraph_0 (cpu, 4 operators, 0.000 GOPs)
                    vaiml_par_1 (npu, 1 operators, 0.000 GOPs, 4 columns)
Offload           : 2 of 6 operators (33.333%), 33.333% of GOPs
Fallback reasons  : 4 operators outside the NPU
    unsupported-operator (4): not implemented on the NPU
        Cast x1, Clip x1, Pad x1, Softmax x1
CPU nodes         :
    Clip 'c': unsupported-operator, in vaiml_cpu_subgraph_0
    Cast 'q': unsupported-operator, in vaiml_cpu_subgraph_0
    Pad 'p': unsupported-operator, in vaiml_cpu_subgraph_0
    Softmax 'u': unsupported-operator, in vaiml_cpu_subgraph_0
Stats level       : 40 (no opstatsdesc.bin)
Model signature   : 00112233445566778899aabbccddeeff
)");
}

TEST_F(Inspect, WritesJsonWithNumbers) {
    const Finished f = run("--json mixed");
    ASSERT_EQ(f.status, 0) << f.err;
    const auto j = nlohmann::json::parse(f.out);
    EXPECT_EQ(j["batch_size"], 1);
    EXPECT_EQ(j["compilation"], "cpu_partition");
    EXPECT_EQ(j["outputs"][0]["cpu"]["shape"], (std::vector<int>{3, 3}));
    EXPECT_EQ(j["outputs"][0]["cpu"]["memory_layout_order"], (std::vector<int>{0, 1}));
    EXPECT_FALSE(j["outputs"][0].contains("hw"));
    EXPECT_EQ(j["execution_order"].size(), 3u);
    EXPECT_EQ(j["graph_edges"][0]["source_partition"], "__graph_input__");
    EXPECT_EQ(j["summary"]["total"]["operators"], 6);
    EXPECT_EQ(j["fallbacks"][0]["partition"], "vaiml_cpu_subgraph_0");
}

TEST_F(Inspect, WritesTheDumpWithNumbersAsStrings) {
    const Finished f = run("--json=compat conv.rai");
    ASSERT_EQ(f.status, 0) << f.err;
    const auto j = nlohmann::ordered_json::parse(f.out);
    std::vector<std::string> keys;
    for (const auto& [key, value] : j.items()) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"model_file", "batch_size", "inputs", "outputs"}));
    EXPECT_EQ(j["inputs"][0]["hw"].dump(),
              R"({"shape":["8","1","8","1","4"],"memory_layout":"HCWNC4","dtype":"int8",)"
              R"("size_in_bytes":"256","quantization":{"scale":"0.0078125","zero_point":"3",)"
              R"("rounding_mode":"1"}})");
}

TEST_F(Inspect, PrintsTheSummary) {
    EXPECT_EQ(run("--summary mixed").out, "summary\n");
}

TEST_F(Inspect, VerifiesEveryByte) {
    EXPECT_EQ(run("--verify conv.rai").out, "conv.rai: valid\n");
    std::string bytes = slurp(dir / "mixed/vaiml_par_0/0/weights.bin");
    bytes[0] = static_cast<char>(bytes[0] ^ 1);
    spill(dir / "mixed/vaiml_par_0/0/weights.bin", bytes);
    EXPECT_EQ(run("mixed").status, 0);
    const Finished f = run("--verify mixed");
    EXPECT_EQ(f.status, 4);
    EXPECT_NE(f.err.find("mixed/vaiml_par_0/0/weights.bin: checksum is 0x"), f.err.npos) << f.err;
}

TEST_F(Inspect, UnpacksIntoANewFolder) {
    EXPECT_EQ(run("--extract out conv.rai").status, 0);
    EXPECT_EQ(fs::status(dir / "out").permissions(), fs::perms::owner_all);
    EXPECT_EQ(run("--verify out").out, "out: valid\n");
    const Finished again = run("--extract out conv.rai");
    EXPECT_EQ(again.status, 2);
    EXPECT_NE(again.err.find("out: exists; --extract makes a new folder"), again.err.npos);
}

TEST_F(Inspect, TakesATarLikeTheOthers) {
    ASSERT_TRUE(artifact::write_tar(test::conv_model(), dir / "conv.tar.gz"));
    std::string want = run("conv.rai").out;
    want.replace(want.find("conv.rai"), 8, "conv.tar.gz");
    EXPECT_EQ(run("conv.tar.gz").out, want);
    EXPECT_EQ(run("--summary conv.tar.gz").out, "summary\n");
    EXPECT_EQ(run("--verify conv.tar.gz").out, "conv.tar.gz: valid\n");
    EXPECT_EQ(run("--extract from_tar conv.tar.gz").status, 0);
    EXPECT_EQ(run("--extract from_rai conv.rai").status, 0);
    EXPECT_EQ(std::system(("diff -r " + dir / "from_tar" + ' ' + dir / "from_rai").c_str()), 0);
    std::string bytes = slurp(dir / "conv.tar.gz");
    bytes.resize(bytes.size() / 2);
    spill(dir / "conv.tar.gz", bytes);
    EXPECT_EQ(run("--extract nothing conv.tar.gz").status, 4);
    EXPECT_FALSE(fs::exists(dir / "nothing"));
}

TEST_F(Inspect, ShowsTheDescriptionInAnotherCompilersTar) {
    spill(dir / "resnet.tar.gz",
          test::gzip(
              test::make_tar({{"libx.so", "\x7f"}, {"r_mpk.json", R"({"name": "r\u00e9"})"}})));
    const Finished text = run("resnet.tar.gz");
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_EQ(text.out, R"(--- Model info ---
Model file        : resnet.tar.gz
Made by           : another compiler, for other hardware; vartml does not run it

--- _mpk.json ---
{
  "name": "r\u00e9"
}
)");
    EXPECT_EQ(run("--json resnet.tar.gz").out, "{\n  \"name\": \"r\\u00e9\"\n}\n");
    for (const char* option : {"--verify", "--summary", "--extract x"}) {
        const Finished f = run(std::string(option) + " resnet.tar.gz");
        EXPECT_EQ(f.status, 4) << option;
        EXPECT_EQ(f.out, "") << option;
        EXPECT_NE(f.err.find("resnet.tar.gz: is not a vartml archive; models of other compilers "
                             "hold code for other hardware, compile the ONNX model with 'vartml "
                             "compile'"),
                  f.err.npos)
            << f.err;
    }
}

// Changes one place of a dump that is text.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return at == text.npos ? text : text.replace(at, from.size(), to);
}

TEST_F(Inspect, FindsNoDifferenceToItsOwnDumps) {
    ASSERT_TRUE(artifact::write_tar(test::mixed_model(), dir / "mixed.tar.gz"));
    for (const char* model : {"conv.rai", "mixed", "mixed.tar.gz"})
        for (const char* form : {"--json", "--json=compat"}) {
            spill(dir / "dump.json", run(std::string(form) + ' ' + model).out);
            const Finished f = run(std::string("--against dump.json ") + model);
            EXPECT_EQ(f.status, 0) << model << ' ' << form << '\n' << f.out << f.err;
            EXPECT_EQ(f.out + f.err,
                      "No difference: batch size, inputs and outputs are those of dump.json\n")
                << model << ' ' << form;
        }
    // As another program might print the same numbers.
    spill(dir / "dump.json",
          replaced(run("--json=compat conv.rai").out, "\"0.0078125\"", "\"7.8125000e-03\""));
    EXPECT_EQ(run("--against dump.json conv.rai").status, 0);
}

struct Difference {
    const char *model, *from, *to;  // in the model's own dump, of the strings
    const char* lines;
};
const Difference differences[] = {
    {"conv.rai", R"("HCWNC4")", R"("HCWNC8")",
     "input 'images' hw memory_layout: is HCWNC4, expected HCWNC8\n"},
    {"conv.rai", R"("0.0078125")", R"("0.5")",
     "input 'images' hw quantization.scale: is 0.0078125, expected 0.5\n"},
    {"conv.rai", R"("zero_point": "3")", R"("zero_point": 4)",
     "input 'images' hw quantization.zero_point: is 3, expected 4\n"},
    {"conv.rai", R"("rounding_mode": "1")", R"("rounding_mode": "2")",
     "input 'images' hw quantization.rounding_mode: is 1, expected 2\n"},
    {"conv.rai", R"("bf16")", R"("int8")", "output 'y' hw dtype: is bf16, expected int8\n"},
    // The first 8 is the height of the CPU view.
    {"conv.rai", R"("8")", R"(9)", "input 'images' cpu shape: is [1,3,8,8], expected [1,3,9,8]\n"},
    {"conv.rai", R"("batch_size": "1")", R"("batch_size": "4")", "batch_size: is 1, expected 4\n"},
    // Where one has no HW view.
    {"conv.rai", R"("hw")", R"("HW")",
     "input 'images' hw: is HCWNC4 [8,1,8,1,4] of int8, expected absent\n"},
    {"mixed", R"("size_in_bytes": "72"
      })",
     R"("size_in_bytes": "72"}, "hw": {"shape": ["4", "3"], "memory_layout": "NC", "dtype": "int64"})",
     "output 'p' hw: is absent, expected NC [4,3] of int64\n"},
    // A tensor that the other does not have; found by name, so both have a line.
    {"mixed", R"("name": "s")", R"("name": "t\u001b")",
     "output 't\\x1b': is in the dump, the model has 'p', 's'\n"
     "output 's': is in the model, the dump has 'p', 't\\x1b'\n"},
    {"mixed", R"("memory_layout_order": [
          "0",
          "1")",
     R"("memory_layout_order": [
          "1",
          "0")",
     "input 'x' cpu memory_layout_order: is [0,1], expected [1,0]\n"},
};
TEST_F(Inspect, NamesEachDifferenceToADump) {
    for (const Difference& d : differences) {
        spill(dir / "dump.json",
              replaced(run(std::string("--json=compat ") + d.model).out, d.from, d.to));
        const Finished f = run(std::string("--against dump.json ") + d.model);
        EXPECT_EQ(f.status, 6) << d.lines;
        EXPECT_EQ(f.out, d.lines);
        EXPECT_EQ(f.err, "");
    }
    // Whatever differs has its line.
    spill(dir / "dump.json", run("--json=compat mixed").out);
    EXPECT_EQ(run("--against dump.json conv.rai").out,
              "input 'x': is in the dump, the model has 'images'\n"
              "input 'images': is in the model, the dump has 'x'\n"
              "output 'p': is in the dump, the model has 'y'\n"
              "output 's': is in the dump, the model has 'y'\n"
              "output 'y': is in the model, the dump has 'p', 's'\n");
}

TEST_F(Inspect, RefusesWhatIsNoDump) {
    struct Case {
        const char *text, *sentence;
    };
    const std::string deep = std::string(100000, '[');
    const Case cases[] = {
        {"{",
         "dump.json: is no JSON in UTF-8 from byte 2 on; expected a model-info dump, as "
         "'vartml inspect --json=compat' prints it"},
        {"", "is no JSON"},
        {"[]", "is no object"},
        {R"({"inputs": []})", "outputs is missing or no array"},
        {R"({"inputs": {}, "outputs": []})", "inputs is missing or no array"},
        {R"({"inputs": [3], "outputs": []})", "inputs[0] has no name"},
        {R"({"inputs": [], "outputs": [{"name": "y"}]})", "outputs[0] has no object 'cpu'"},
        {R"({"inputs": [{"name": "x", "cpu": {}, "hw": 1}], "outputs": []})",
         "inputs[0]: 'hw' is no object"},
        {R"({"inputs": [{"name": "x", "cpu": {}}, {"name": "x", "cpu": {}}], "outputs": []})",
         "inputs[1] has the name of inputs[0]"},
        {R"({"inputs": [], "inputs": [], "outputs": []})", "has key 'inputs' twice"},
        {deep.c_str(), "is nested deeper than 64 levels"},
    };
    for (const Case& c : cases) {
        spill(dir / "dump.json", c.text);
        const Finished f = run("--against dump.json conv.rai");
        EXPECT_EQ(f.status, 2) << c.sentence;
        EXPECT_EQ(f.out, "") << c.sentence;
        EXPECT_NE(f.err.find(c.sentence), f.err.npos) << f.err;
    }
    const Finished missing = run("--against nowhere.json conv.rai");
    EXPECT_EQ(missing.status, 1);
    EXPECT_NE(missing.err.find("nowhere.json: cannot open: No such file"), missing.err.npos);
    spill(dir / "good.json", run("--json=compat conv.rai").out);
    EXPECT_EQ(run("--against good.json empty").status, 1);
    spill(dir / "broken.rai", "no model");
    EXPECT_EQ(run("--against good.json broken.rai").status, 4);
}

TEST_F(Inspect, EndsWithTheStatusOfTheFault) {
    struct Case {
        const char* arguments;
        int status;
        const char* sentence;
    };
    spill(dir / "net.onnx", "x");
    spill(dir / "x.tar.gz", "\x1f\x8b");
    fs::create_directories(dir / "empty");
    const Case cases[] = {
        {"", 2, "PATH is required"},
        {"--colour conv.rai", 2, "--colour"},
        {"--json=xml conv.rai", 2, "--json: is 'xml', expected --json or --json=compat"},
        {"--json --summary conv.rai", 2, "--json excludes --summary"},
        {"--against x.json --json conv.rai", 2, "--json excludes --against"},
        {"nowhere.rai", 1, "nowhere.rai: cannot open: No such file or directory"},
        {"net.onnx", 4, "net.onnx: is an ONNX model; compile it first: vartml compile net.onnx"},
        {"x.tar.gz", 4, "x.tar.gz: the gzip stream cannot be read"},
        {"empty", 4, "empty: holds neither vaiml_par_0 nor a .rai file"},
        {"--extract no/folder conv.rai", 1, "no/folder: cannot"},
    };
    for (const Case& c : cases) {
        const Finished f = run(c.arguments);
        EXPECT_EQ(f.status, c.status) << c.arguments << '\n' << f.err;
        EXPECT_NE(f.err.find(c.sentence), f.err.npos) << f.err;
        EXPECT_EQ(f.out, "") << c.arguments;
    }
    const Finished help = run("--help");
    EXPECT_EQ(help.status, 0);
    EXPECT_NE(help.out.find("--extract"), help.out.npos);
}

}  // namespace
}  // namespace vartml
