// SPDX-License-Identifier: Apache-2.0
// The program as a user sees it: exit status, console lines, files.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "lib/model/compiled_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"
#include "tests/tools/compile_program.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using test::Compile;
using test::Finished;
using test::TinyOnnx;

TEST_F(Compile, WritesDirectoryAndArchiveIntoTheCache) {
    const Finished r = run("shelf.onnx");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out,
              "operators: 3 on the NPU, 0 on the CPU\nsubgraphs: 1 NPU, 0 CPU\nbatch size: desired "
              "1, actual 1\n"
              "model: vartml-cache/shelf/shelf.rai\nsummary: "
              "vartml-cache/shelf/final-vaiml-pass-summary.txt\n");
    EXPECT_EQ(r.err, "");  // libonnx has nothing to say either
    const auto model = artifact::read(dir_ / "vartml-cache/shelf");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->device, "softnpu");
    EXPECT_EQ(model->inputs[0].name, "images");
    EXPECT_EQ(model->inputs[0].hw->layout, Layout::HCWNC4);
    ASSERT_TRUE(artifact::read(dir_ / "vartml-cache/shelf/shelf.rai"));
    EXPECT_TRUE(fs::exists(dir_ / "vartml-cache/shelf/connectivity_metadata.json"));
    const std::string summary =
        test::slurp(dir_ / "vartml-cache/shelf/final-vaiml-pass-summary.txt");
    EXPECT_NE(summary.find("\nModel: shelf.onnx\n"), std::string::npos);
    EXPECT_NE(summary.find("\nNumber of operators in the model: 3\n"), std::string::npos);
    EXPECT_NE(test::slurp(dir_ / "vartml-cache/shelf/compile.log").find("imported: 3 operators"),
              std::string::npos);
}

TEST_F(Compile, GivesTheModelTheNameThatRecordsHave) {
    ASSERT_EQ(run("shelf.onnx").status, 0);
    const auto by_file = artifact::read(dir_ / "vartml-cache/shelf");
    ASSERT_TRUE(by_file) << by_file.error().message;
    EXPECT_EQ(by_file->model_name, "shelf");
    const Finished named = run("shelf.onnx -o named.rai --name 'top shelf'");
    ASSERT_EQ(named.status, 0) << named.err;
    const auto model = artifact::read(dir_ / "named.rai");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->model_name, "top shelf");
    for (const char* bad : {"''", "\"$(printf 'a\\nb')\""}) {
        const Finished refused = run(std::string("shelf.onnx --name ") + bad);
        EXPECT_EQ(refused.status, 2) << bad;
        EXPECT_NE(refused.err.find("--name"), std::string::npos) << refused.err;
    }
}

TEST_F(Compile, TakesModelsWhoseNamesAreNoPlainText) {
    fs::copy_file(dir_ / "shelf.onnx", dir_ / "caf\xe9\n.onnx");
    const Finished r = run("\"$(printf 'caf\\351\\n.onnx')\" -o odd");
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_NE(test::slurp(dir_ / "odd/final-vaiml-pass-summary.txt")
                  .find("\nModel: caf\\xe9\\x0a.onnx\n"),
              std::string::npos);
    const Finished again = run("\"$(printf 'caf\\351\\n.onnx')\" -o odd");
    EXPECT_NE(again.out.find("up to date"), std::string::npos) << again.out << again.err;
}

TEST_F(Compile, LeavesAFreshResultAlone) {
    ASSERT_EQ(run("shelf.onnx").status, 0);
    const auto inode = [&] {
        struct stat st{};
        ::stat((dir_ / "vartml-cache/shelf").c_str(), &st);
        return st.st_ino;
    };
    const auto before = inode();
    const Finished again = run("shelf.onnx");
    EXPECT_EQ(again.status, 0);
    EXPECT_TRUE(again.out.ends_with("\nup to date\n")) << again.out;
    EXPECT_EQ(inode(), before);
    EXPECT_EQ(run("shelf.onnx --force").out.find("up to date"), std::string::npos);
    EXPECT_EQ(run("shelf.onnx --numerics f32").out.find("up to date"), std::string::npos);
    EXPECT_NE(run("shelf.onnx --numerics f32 --jobs 2").out.find("up to date"), std::string::npos);
    fs::remove(dir_ / "vartml-cache/shelf/shelf.rai");
    EXPECT_EQ(run("shelf.onnx --numerics f32").out.find("up to date"), std::string::npos);
    small("N").save(dir_ / "shelf.onnx");
    EXPECT_EQ(run("shelf.onnx --numerics f32").out.find("up to date"), std::string::npos);
    test::spill(dir_ / "shelf.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-labels=a;b\n");
    EXPECT_EQ(run("shelf.onnx --numerics f32").out.find("up to date"), std::string::npos);
    test::spill(dir_ / "shelf.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-labels=l.txt\n");
    for (const char* labels : {"a\nb\n", "c\nd\n"}) {
        test::spill(dir_ / "l.txt", labels);
        EXPECT_EQ(run("shelf.onnx --numerics f32").out.find("up to date"), std::string::npos);
    }
    EXPECT_EQ(run("shelf.onnx --numerics f32 --cpu-memory-limit 100000").out.find("up to date"),
              std::string::npos);
    test::spill(dir_ / "shelf.modelinfo", "[modelinfo]\nversion=1.0\nx-vartml-labels=a;b\n");
    EXPECT_EQ(run("shelf.onnx --numerics f32").status, 0);
    // What the graph says of its outputs stands behind it.
    EXPECT_TRUE(test::slurp(dir_ / "vartml-cache/shelf/modelinfo")
                    .starts_with(test::slurp(dir_ / "shelf.modelinfo")));
}

TEST_F(Compile, RecordsHowPixelsAreFed) {
    ASSERT_EQ(run("shelf.onnx").status, 0);
    const Finished r = run("shelf.onnx --mean 127.5 --scale 0.0078125 --channels bgr");
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out.find("up to date"), std::string::npos) << r.out;
    const auto model = artifact::read(dir_ / "vartml-cache/shelf/shelf.rai");
    ASSERT_TRUE(model) << model.error().message;
    const std::string* const text = model->find_file("modelinfo");
    ASSERT_TRUE(text);
    for (const char* line :
         {"x-vartml-mean=127.5\n", "x-vartml-scale=0.0078125\n", "x-vartml-channels=bgr\n"})
        EXPECT_NE(text->find(line), std::string::npos) << *text;
    test::spill(dir_ / "shelf.modelinfo", "[images]\ndir=input\nx-vartml-channels=rgb\n");
    const Finished refused = run("shelf.onnx --channels bgr");
    EXPECT_EQ(refused.status, 2);
    EXPECT_NE(refused.err.find("--channels: is bgr, but shelf.modelinfo says "
                               "x-vartml-channels=rgb of input 'images'"),
              std::string::npos)
        << refused.err;
}

TEST_F(Compile, ColoursOfAnInputOfOneChannelAreRefused) {
    TinyOnnx m;
    m.input("mono", {1, 1, 8, 8}).node("Relu", {"mono"}, {"out"}).output("out");
    m.save(dir_ / "mono.onnx");
    for (const char* order : {"rgb", "bgr"}) {
        const Finished refused = run("mono.onnx --channels " + std::string(order));
        EXPECT_EQ(refused.status, 2);
        EXPECT_NE(refused.err.find("--channels: is " + std::string(order) +
                                   ", but input 'mono' of mono.onnx has one channel; give "
                                   "--channels gray"),
                  std::string::npos)
            << refused.err;
    }
    EXPECT_EQ(run("mono.onnx --channels gray").status, 0);
}

TEST_F(Compile, ReplacesADamagedResultWithAWarning) {
    ASSERT_EQ(run("shelf.onnx").status, 0);
    const std::string weights = dir_ / "vartml-cache/shelf/vaiml_par_0/0/weights.bin";
    std::string bytes = test::slurp(weights);
    bytes[10] ^= 1;
    test::spill(weights, bytes);
    const Finished r = run("shelf.onnx");
    EXPECT_EQ(r.status, 0);
    EXPECT_NE(r.err.find("WARNING"), std::string::npos);
    EXPECT_NE(r.err.find("weights.bin"), std::string::npos) << r.err;
    EXPECT_TRUE(artifact::read(dir_ / "vartml-cache/shelf"));
}

TEST_F(Compile, GivesTheSameBytesWhereverAndHoweverOften) {
    fs::create_directory(dir_ / "elsewhere");
    ASSERT_EQ(run("shelf.onnx --format rai,tar --cache-dir one --jobs 1").status, 0);
    ASSERT_EQ(run("shelf.onnx --format tar,rai --cache-dir elsewhere/two --jobs 8").status, 0);
    auto one = files("one/shelf"), two = files("elsewhere/two/shelf");
    one.erase("compile.log");
    two.erase("compile.log");
    EXPECT_GE(one.size(), 10u);
    EXPECT_EQ(one, two);
    ASSERT_EQ(run("shelf.onnx -o alone.rai").status, 0);
    EXPECT_EQ(test::slurp(dir_ / "alone.rai"), one["shelf.rai"]);
}

TEST_F(Compile, WritesOnlyWhatDashOAsksFor) {
    const Finished file = run("shelf.onnx -o out/model.rai");
    EXPECT_EQ(file.status, 0) << file.err;
    EXPECT_NE(file.out.find("\nmodel: out/model.rai\n"), std::string::npos);
    EXPECT_EQ(file.out.find("summary:"), std::string::npos);
    EXPECT_NE(run("shelf.onnx -o out/model.rai").out.find("up to date"), std::string::npos);
    const Finished folder = run("shelf.onnx -o result/");
    EXPECT_EQ(folder.status, 0) << folder.err;
    EXPECT_TRUE(fs::exists(dir_ / "result/model.vmf"));
    EXPECT_FALSE(fs::exists(dir_ / "result/shelf.rai"));
    EXPECT_FALSE(fs::exists(dir_ / "vartml-cache"));
}

TEST_F(Compile, WritesTheContainersThatAreAskedFor) {
    const Finished all = run("shelf.onnx --format dir,rai,tar");
    EXPECT_EQ(all.status, 0) << all.err;
    EXPECT_NE(all.out.find("\nmodel: vartml-cache/shelf/shelf.rai\n"), std::string::npos);
    EXPECT_TRUE(fs::exists(dir_ / "vartml-cache/shelf/shelf.rai"));
    EXPECT_TRUE(artifact::read(dir_ / "vartml-cache/shelf"));
    const std::string tar = dir_ / "vartml-cache/shelf/shelf.tar.gz";
    ASSERT_TRUE(artifact::read(tar));

    const Finished alone = run("shelf.onnx -o out/model.tar.gz");
    EXPECT_EQ(alone.status, 0) << alone.err;
    EXPECT_NE(alone.out.find("\nmodel: out/model.tar.gz\n"), std::string::npos) << alone.out;
    EXPECT_EQ(alone.out.find("summary:"), std::string::npos);
    EXPECT_EQ(test::slurp(dir_ / "out/model.tar.gz"), test::slurp(tar));
    EXPECT_EQ(names("out"), std::vector<std::string>{"model.tar.gz"});
    EXPECT_NE(run("shelf.onnx -o out/model.tar.gz").out.find("up to date"), std::string::npos);

    const Finished beside = run("shelf.onnx --format tar -o result");
    EXPECT_NE(beside.out.find("\nmodel: result\n"), std::string::npos) << beside.out;
    EXPECT_EQ(test::slurp(dir_ / "result/shelf.tar.gz"), test::slurp(tar));
    EXPECT_FALSE(fs::exists(dir_ / "result/shelf.rai"));
}

TEST_F(Compile, IsUpToDateOnlyWithAGoodTar) {
    const std::string arguments = "shelf.onnx --format dir,tar";
    const std::string tar = dir_ / "vartml-cache/shelf/shelf.tar.gz";
    const auto is_fresh = [&] {
        return run(arguments).out.find("up to date") != std::string::npos;
    };
    ASSERT_EQ(run("shelf.onnx --format dir").status, 0);
    EXPECT_FALSE(is_fresh());  // not there
    EXPECT_TRUE(is_fresh());
    std::string bytes = test::slurp(tar);
    const std::string good = bytes;
    bytes[bytes.size() / 2] ^= 1;
    test::spill(tar, bytes);
    const Finished damaged = run(arguments);
    EXPECT_NE(damaged.err.find("WARNING"), std::string::npos) << damaged.err;
    EXPECT_NE(damaged.err.find("shelf.tar.gz: "), std::string::npos) << damaged.err;
    EXPECT_EQ(damaged.out.find("up to date"), std::string::npos);
    EXPECT_EQ(test::slurp(tar), good);
    EXPECT_TRUE(is_fresh());
}

TEST_F(Compile, NeverReplacesADirectoryThatItDidNotMake) {
    test::spill(dir_ / "mine/notes.txt", "precious");
    for (const char* arguments : {"shelf.onnx -o mine", "shelf.onnx --cache-dir . --cache-key mine",
                                  "shelf.onnx --force -o mine"}) {
        const Finished r = run(arguments);
        EXPECT_EQ(r.status, 2) << arguments;
        EXPECT_NE(r.err.find("mine"), std::string::npos) << r.err;
        EXPECT_EQ(test::slurp(dir_ / "mine/notes.txt"), "precious");
    }
}

TEST_F(Compile, NeverReplacesWhatItIsMadeFrom) {
    const std::string model = test::slurp(dir_ / "shelf.onnx");
    EXPECT_EQ(run("shelf.onnx -o made").status, 0);
    // A model may have any name, and may have come to lie where an earlier result is.
    for (const char* place : {"model.rai", "model.tar.gz", "made/shelf.onnx"})
        test::spill(dir_ / place, model);
    test::spill(dir_ / "made/labels.txt", "cat\n");
    fs::create_symlink("model.rai", dir_ / "link.onnx");
    const std::pair<const char*, const char*> cases[] = {
        {"model.rai --force -o model.rai", "model.rai: is what is compiled, so it is not replaced"},
        {"link.onnx -o ./model.rai", "model.rai: is what is compiled, so it is not replaced"},
        {"model.tar.gz -o model.tar.gz", "model.tar.gz: is what is compiled"},
        {"made/shelf.onnx --force -o made",
         "made: holds 'made/shelf.onnx', so it is not replaced; give another place"},
        {"shelf.onnx --labels made/labels.txt -o made", "made: holds 'made/labels.txt'"},
    };
    for (const auto& [arguments, words] : cases) {
        const Finished r = run(arguments);
        EXPECT_EQ(r.status, 2) << arguments;
        EXPECT_NE(r.err.find(words), std::string::npos) << r.err;
    }
    for (const char* place : {"model.rai", "model.tar.gz", "made/shelf.onnx"})
        EXPECT_EQ(test::slurp(dir_ / place), model) << place;
    EXPECT_EQ(run("made/shelf.onnx -o other").status, 0);
}

TEST_F(Compile, NeverReplacesAPipe) {
    ASSERT_EQ(::mkfifo((dir_ / "pipe.rai").c_str(), 0600), 0);
    const Finished r = run("shelf.onnx -o pipe.rai");
    EXPECT_EQ(r.status, 2);
    EXPECT_NE(r.err.find("pipe.rai: exists and is no file, so it is not replaced"),
              std::string::npos)
        << r.err;
    EXPECT_TRUE(fs::is_fifo(dir_ / "pipe.rai"));
}

TEST_F(Compile, ReportsProgressOnADescriptor) {
    const Finished r = run("shelf.onnx --progress-fd 7 7>progress.txt");
    EXPECT_EQ(r.status, 0) << r.err;
    const std::string lines = test::slurp(dir_ / "progress.txt");
    EXPECT_TRUE(lines.starts_with("progress 5 import\n")) << lines;
    EXPECT_TRUE(lines.ends_with("progress 100 done\n")) << lines;
}

// A configuration of the two passes of standard compilation, with these members of vaiml_config.
std::string standard_config(const std::string& keys) {
    return R"({"passes": [{"name": "init", "plugin": "vaip-pass_init"},
 {"name": "vaiml_partition", "plugin": "vaip-pass_vaiml_partition", "vaiml_config": {)" +
           keys + R"(}}], "target": "VAIML",
 "targets": [{"name": "VAIML", "pass": ["init", "vaiml_partition"]}]})";
}

TEST_F(Compile, TakesAConfigurationAndLetsOptionsWin) {
    std::ofstream(dir_ / "c.json")
        << standard_config(R"("device": "softnpu", "enable_f32_to_bf16_conversion": false)");
    const Finished r = run("shelf.onnx --config c.json -o standard.rai");
    EXPECT_EQ(r.status, 0) << r.err;
    const auto model = artifact::read(dir_ / "standard.rai");
    ASSERT_TRUE(model);
    EXPECT_EQ(model->compilation, artifact::Compilation::standard);
    EXPECT_EQ(model->partitions[0].inputs[0].hw->data_type, DataType::float32);
    EXPECT_EQ(run("shelf.onnx --config c.json -o bf16.rai --numerics auto").status, 0);
    // The .rai is the form of CPU-partition compilation.
    EXPECT_NE(run("shelf.onnx --config c.json").out.find("\nmodel: vartml-cache/shelf\n"),
              std::string::npos);
    EXPECT_FALSE(fs::exists(dir_ / "vartml-cache/shelf/shelf.rai"));
    EXPECT_EQ(artifact::read(dir_ / "bf16.rai")->partitions[0].inputs[0].hw->data_type,
              DataType::bf16);
}

TEST_F(Compile, MakesAModelThatRunsOfEitherCompilationWhereTheNpuTakesAll) {
    std::ofstream(dir_ / "c.json") << standard_config(R"("device": "softnpu")");
    ASSERT_EQ(run("shelf.onnx -o standard.rai --config c.json").status, 0);
    ASSERT_EQ(run("shelf.onnx -o parts.rai").status, 0);
    for (const char* name : {"standard", "parts"}) {
        const std::string words = std::string(name) + ".rai -n 1 --save-outputs " + name;
        EXPECT_EQ(std::system(("cd '" + dir_.path() + "' && mkdir " + name + " && '" + program_ +
                               "' run " + words + " >out.txt 2>&1")
                                  .c_str()),
                  0)
            << test::slurp(dir_ / "out.txt");
    }
    const std::string scores = test::slurp(dir_ / "standard/output_0.npy");
    EXPECT_GT(scores.size(), 8 * sizeof(float));
    EXPECT_EQ(scores, test::slurp(dir_ / "parts/output_0.npy"));
}

TEST_F(Compile, RefusesABadConfigurationWithAllItsFaults) {
    std::ofstream(dir_ / "c.json") << standard_config(R"("device": "x", "optimize_level": 7)");
    const Finished r = run("shelf.onnx --config c.json");
    EXPECT_EQ(r.status, 2);
    EXPECT_NE(r.err.find("c.json: /passes/1/vaiml_config/device: unknown device 'x'; known: "),
              std::string::npos)
        << r.err;
    EXPECT_NE(r.err.find("optimize_level: is 7, expected 0 to 4"), std::string::npos) << r.err;
    EXPECT_FALSE(fs::exists(dir_ / "vartml-cache"));
    std::ofstream(dir_ / "c.json")
        << standard_config(R"("device": "softnpu", "enable_f32_to_bf16_conversion": false,
 "enable_f32_to_f16_conversion": true)");
    const Finished unsupported = run("shelf.onnx --config c.json");
    EXPECT_EQ(unsupported.status, 2);
    EXPECT_NE(unsupported.err.find("enable_f32_to_f16_conversion"), std::string::npos)
        << unsupported.err;
}

TEST_F(Compile, KeepsTheGraphsOfEachPartitionOnRequest) {
    std::ofstream(dir_ / "c.json")
        << standard_config(R"("device": "softnpu", "keep_outputs": true)");
    const Finished r = run("shelf.onnx --config c.json");
    EXPECT_EQ(r.status, 0) << r.err;
    const std::string folder = dir_ / "vartml-cache/shelf/vaiml_par_0/0/debug/";
    EXPECT_NE(test::slurp(folder + "imported.txt").find("= Relu %c"), std::string::npos);
    EXPECT_NE(test::slurp(folder + "optimised.txt").find("= Conv+Relu %images"), std::string::npos);
    EXPECT_TRUE(artifact::read(dir_ / "vartml-cache/shelf"));
    EXPECT_NE(run("shelf.onnx --config c.json").out.find("up to date"), std::string::npos);
}

TEST_F(Compile, TakesThresholdMemoryBatchAndTessellation) {
    TinyOnnx m;
    m.input("x", {8, 8}).node("Exp", {"x"}, {"a"}).node("Trilu", {"a"}, {"b"});
    for (const auto& [from, to] : {std::pair{"b", "c"}, {"c", "d"}, {"d", "e"}, {"e", "y"}})
        m.node("Exp", {from}, {to});
    m.output("y").save(dir_ / "parts.onnx");
    const auto first_lines = [&](const std::string& arguments) {
        const Finished r = run("parts.onnx " + arguments);
        EXPECT_EQ(r.status, 0) << r.err;
        return r.out.substr(0, r.out.find("model:"));
    };
    EXPECT_EQ(first_lines(""),
              "operators: 5 on the NPU, 1 on the CPU\nsubgraphs: 2 NPU, 1 CPU\nbatch size: desired "
              "1, actual 1\n");
    std::ofstream(dir_ / "c.json")
        << standard_config(R"("device": "softnpu", "threshold_gops_percent": 30)");
    EXPECT_EQ(first_lines("--config c.json"),
              "operators: 4 on the NPU, 0 on the CPU\nsubgraphs: 1 NPU, 0 CPU\nbatch size: desired "
              "1, actual 1\n");
    // Borders and one value between nodes, two where the places of neighbours meet: 1 KiB a frame.
    EXPECT_EQ(first_lines("--batch-size 8 --device-memory-limit 3072"),
              "operators: 5 on the NPU, 1 on the CPU\nsubgraphs: 2 NPU, 1 CPU\nbatch size: desired "
              "8, actual 3\n");
    EXPECT_EQ(run("shelf.onnx --tessellate default -o t").status, 0);
    EXPECT_EQ(artifact::read(dir_ / "t")->inputs[0].hw->layout, Layout::NHWC);
    EXPECT_EQ(artifact::read(dir_ / "t")->outputs[0].hw->layout, Layout::HCWNC16);
    test::spill(dir_ / "t.json", R"({"scores": {"enable_mla": false}})");
    EXPECT_EQ(run("shelf.onnx --tessellate t.json -o t").status, 0);
    EXPECT_EQ(artifact::read(dir_ / "t")->inputs[0].hw->layout, Layout::HCWNC4);
    EXPECT_FALSE(artifact::read(dir_ / "t")->outputs[0].hw);
    test::spill(dir_ / "t.json", R"({"scores": {"enable_mla": true}})");
    EXPECT_EQ(run("shelf.onnx --tessellate t.json -o t").out.find("up to date"), std::string::npos);
    EXPECT_NE(run("shelf.onnx --tessellate t.json -o t").out.find("up to date"), std::string::npos);
}

TEST_F(Compile, RecordsDecoderAndLabels) {
    test::spill(dir_ / "labels.txt", "a\nb\nc\nd\ne\nf\ng\nh\n");
    const Finished r = run("shelf.onnx --decoder classify --labels labels.txt");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(test::slurp(dir_ / "vartml-cache/shelf/modelinfo").find("x-vartml-decoder=classify"),
              std::string::npos);
}

TEST_F(Compile, KeepsQuietOnRequest) {
    const Finished r = run("shelf.onnx -q");
    EXPECT_EQ(r.status, 0);
    EXPECT_EQ(r.out + r.err, "");
}

TEST_F(Compile, SaysThatAModelCannotBeCompiledAndLeavesTheOldResult) {
    ASSERT_EQ(run("shelf.onnx --cache-key k").status, 0);
    const auto before = files("vartml-cache/k");
    TinyOnnx m;
    m.opset("onnx.brevitas", 1).input("x", {4, 4}).node("Quant", {"x"}, {"y"}, {}, "onnx.brevitas");
    m.output("y").save(dir_ / "quant.onnx");
    const Finished r = run("quant.onnx --cache-key k");
    EXPECT_EQ(r.status, 3);
    EXPECT_NE(r.err.find("ERROR: quant.onnx: node 'y_node' uses onnx.brevitas::Quant (opset 1), "
                         "which neither the NPU nor the CPU partition runs"),
              std::string::npos)
        << r.err;
    EXPECT_EQ(files("vartml-cache/k"), before);
}

// A model with an operator that is none of ours.
void save_foreign(const std::string& path) {
    TinyOnnx m(17);
    m.input("x", {1, 8, 1})
        .node("DFT", {"x"}, {"y"}, {{"axis", int64_t{1}}})
        .output("y")
        .save(path);
}

TEST_F(Compile, TellsWhatOnnxRuntimeRunsOrRefusesIt) {
    save_foreign(dir_ / "dft.onnx");
    const Finished r = run("dft.onnx");
    EXPECT_EQ(r.status, 0) << r.err;
    const std::string line =
        "operators: 0 on the NPU, 1 on the CPU\nONNX Runtime: DFT; the machine that runs the model "
        "needs it (--no-onnxruntime refuses such operators)\n";
    EXPECT_NE(r.out.find(line), std::string::npos) << r.out;
    const Finished again = run("dft.onnx");
    EXPECT_NE(again.out.find(line), std::string::npos) << again.out;
    EXPECT_NE(again.out.find("up to date"), std::string::npos) << again.out;
    const std::string summary = test::slurp(dir_ / "vartml-cache/dft/final-vaiml-pass-summary.txt");
    EXPECT_NE(summary.find("    Type: cpu\n    Engine: onnxruntime\n"), std::string::npos)
        << summary;
    const Finished refused = run("dft.onnx --no-onnxruntime");
    EXPECT_EQ(refused.status, 3);
    EXPECT_NE(refused.err.find("node 'y_node' uses DFT (opset 17), an operator on signals or coded "
                               "pictures that neither the NPU nor the CPU partition runs; do this "
                               "step before the model"),
              std::string::npos)
        << refused.err;
}

// Three operators; where the first true element is, only the CPU finds out.
void save_dynamic(const std::string& path) {
    TinyOnnx m;
    m.input("x", {4, 4})
        .node("NonZero", {"x"}, {"n"})
        .node("Cast", {"n"}, {"f"}, {{"to", int64_t{1}}});
    m.node("ReduceMax", {"f"}, {"y"}, {{"axes", TinyOnnx::Ints{1}}}).output("y").save(path);
}

TEST_F(Compile, PutsTheRestOnTheCpu) {
    save_dynamic(dir_ / "dynamic.onnx");
    const Finished r = run("dynamic.onnx");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_TRUE(
        r.out.starts_with("operators: 0 on the NPU, 3 on the CPU\nsubgraphs: 0 NPU, 1 CPU\n"))
        << r.out;
    EXPECT_EQ(r.err, "");
    EXPECT_NE(run("dynamic.onnx").out.find("up to date"), std::string::npos);
}

// A picture model whose end is the CPU's: where its features are not zero, cut to as many as there
// are channels that live. The Slice takes its end from a shape that depends on the data.
void save_parts(const std::string& path) {
    TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {8, 3, 3, 3}).ints("one", {1}, {1});
    m.ints("zero", {1}, {0});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
        .node("Relu", {"c"}, {"r"})
        .node("GlobalAveragePool", {"r"}, {"scores"});
    m.node("NonZero", {"r"}, {"places"})
        .node("NonZero", {"scores"}, {"live"})
        .node("Shape", {"live"}, {"size"})
        .node("Gather", {"size", "one"}, {"count"})
        .node("Slice", {"places", "zero", "count", "one"}, {"first"});
    m.output("scores").output("places", {}, TinyOnnx::int64);
    m.output("first", {}, TinyOnnx::int64).save(path);
}

TEST_F(Compile, MakesAModelWhoseSavedOutputsSayWhereTheyAreFilled) {
    save_parts(dir_ / "parts.onnx");
    ASSERT_EQ(run("parts.onnx -o parts.rai").status, 0);
    EXPECT_EQ(std::system(("cd '" + dir_.path() + "' && '" + program_ +
                           "' run parts.rai -n 1 --save-outputs out >out.txt 2>&1")
                              .c_str()),
              0);
    const std::string out = test::slurp(dir_ / "out.txt");
    const std::string filled = ", the largest shape that it may have";
    EXPECT_NE(out.find("out/output_0.npy\n"), out.npos) << out;
    for (const char* name : {"out/output_1.npy", "out/output_2.npy"})
        EXPECT_NE(out.find(name + filled), out.npos) << out;
}

TEST_F(Compile, GivesTheSameBytesOfPartsAndShapesThatDependOnTheData) {
    const auto compile = [&](const std::string& folder, const std::string& options) {
        fs::create_directories(dir_ / folder);
        save_parts(dir_ / folder + "/parts.onnx");
        const Finished r = run("parts.onnx --format dir,rai,tar " + options, "cd " + folder + "; ");
        EXPECT_EQ(r.status, 0) << r.err;
        auto all = files(folder + "/vartml-cache/parts");
        all.erase("compile.log");
        return all;
    };
    const auto one = compile("one", "--jobs 1"), two = compile("two/deeper", "--jobs 8");
    EXPECT_EQ(one, two);
    for (const char* name : {"connectivity_metadata.json", "parts.rai", "parts.tar.gz",
                             "vaiml_cpu_subgraph_0/program.vnp", "vaiml_par_0/0/weights.bin"})
        EXPECT_TRUE(one.contains(name)) << name;

    const auto model = artifact::read(dir_ / "one/vartml-cache/parts");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_FALSE(model->outputs[0].data_dependent);
    EXPECT_TRUE(model->outputs[1].data_dependent && model->outputs[2].data_dependent);
    size_t late = 0;
    for (const artifact::Partition& p : model->partitions)
        late += static_cast<size_t>(std::ranges::count(p.graph.nodes, "Late", &graph::Node::kind));
    EXPECT_GT(late, 0u);
}

TEST_F(Compile, FailsWhereAFullOffloadIsRequiredAndNotThere) {
    save_dynamic(dir_ / "dynamic.onnx");
    const Finished r = run("dynamic.onnx --require-full-offload");
    EXPECT_EQ(r.status, 5);
    EXPECT_NE(r.err.find("node 'n_node' (NonZero) is not on softnpu: not implemented on the NPU"),
              std::string::npos)
        << r.err;
    EXPECT_FALSE(fs::exists(dir_ / "vartml-cache/dynamic"));
    // A result that is there does not meet it either.
    ASSERT_EQ(run("dynamic.onnx").status, 0);
    EXPECT_EQ(run("dynamic.onnx --require-full-offload").status, 5);
    EXPECT_TRUE(fs::exists(dir_ / "vartml-cache/dynamic"));
}

struct Refusal {
    const char* arguments;
    int status;
    const char* words;
};
const Refusal refusals[] = {
    {"", 2, "MODEL is required"},
    {"shelf.onnx more.onnx", 2, "more.onnx"},
    {"missing.onnx", 1, "missing.onnx: cannot open: No such file or directory"},
    {".", 1, ".: cannot read: Is a directory"},
    {"shelf.onnx --config c.json", 2, "c.json: cannot open: No such file or directory"},
    {"shelf.onnx --quantize d", 2, "--quantize"},
    {"shelf.onnx --device ve3", 2, "unknown device 've3'; known: softnpu"},
    {"shelf.onnx --batch-size 0", 2, "--batch-size"},
    {"shelf.onnx --device-memory-limit 0", 2, "--device-memory-limit"},
    {"shelf.onnx --tessellate none.json", 2, "none.json: cannot open: No such file or directory"},
    {"shelf.onnx --numerics f16", 2, "--numerics"},
    {"shelf.onnx --format dir,zip", 2, "--format: 'zip' is not a container; known: dir, rai, tar"},
    {"shelf.onnx --cache-key ../up", 2, "--cache-key: '../up' is no key"},
    {"shelf.onnx --cache-key .hidden", 2, "is no key"},
    {"shelf.onnx -o mine --cache-key k", 2, "--cache-key: -o 'mine' says where the result goes"},
    {"shelf.onnx -o mine --cache-dir d", 2, "--cache-dir: -o 'mine' says where the result goes"},
    {"shelf.onnx --input-shape images", 2, "--input-shape: is 'images', expected NAME:D0,D1,..."},
    {"shelf.onnx --input-shape images:1,3,x,9", 2, "expected NAME:D0,D1,..."},
    {"shelf.onnx --input-shape images:1,3,8,8", 2, "has 8 at axis 2, the model fixes 16"},
    {"shelf.onnx --input-shape images:1,3,16,16 --input-shape images:1,3,16,16", 2,
     "names input 'images' twice"},
    {"shelf.onnx --layout images=HCW", 2, "expected NAME=NHWC or NAME=NCHW"},
    {"shelf.onnx --layout picture=NHWC", 2,
     "names no input or output; there are 'images', 'scores'"},
    {"shelf.onnx --decoder yolo", 2, "'yolo' is not a decoder; known: "},
    {"shelf.onnx --labels none.txt", 1, "none.txt: cannot open: No such file or directory"},
    {"shelf.onnx --progress-fd 99", 2, "99 is no open descriptor"},
    {"shelf.onnx -o shelf.onnx", 2, "-o: 'shelf.onnx' would be a directory"},
    {"shelf.onnx -o ''", 2, "--output: is '', expected OUT"},
    {"shelf.onnx --embed-preprocess images:u8,rgb,hwc,mean=nan", 2, "has 'mean=nan'"},
    {"shelf.onnx --embed-preprocess images:u8,rgb,hwc,scale=1/0/1", 2, "has 'scale=1/0/1'"},
    {"shelf.onnx --embed-preprocess images:u8,rgb,hwc,scale=-inf", 2, "has 'scale=-inf'"},
    {"shelf.onnx -o shelf.tar", 2, "expected a name that ends in .rai or .tar.gz"},
    {"shelf.onnx -o one.rai --format dir", 2, "--format: -o 'one.rai' is one file already"},
    {"shelf.onnx --mean 1,2", 2, "--mean: is '1,2', expected one number or three"},
    {"shelf.onnx --mean 1,2,3,4", 2, "--mean: is '1,2,3,4', expected one number or three"},
    {"shelf.onnx --mean nan", 2, "--mean: is 'nan', expected one number or three"},
    {"shelf.onnx --mean 300", 2, "--mean: is '300', expected numbers from 0 to 255"},
    {"shelf.onnx --mean 0.485,0.456,0.406 --scale 0.229,0.224,0.225", 2,
     "--mean: is '0.485,0.456,0.406', a mean of pixels from 0 to 1; here they are 0 to 255, and "
     "(pixel - mean) is multiplied by the scale: give --mean 123.675,116.28,103.53 --scale "
     "0.0171248,0.017507,0.0174292"},
    {"shelf.onnx --mean 0.5 --scale 0.0078125", 2,
     "give --mean 127.5,127.5,127.5 --scale 0.0078125"},
    {"shelf.onnx --scale 1,0,1", 2, "--scale: is '1,0,1', expected numbers other than 0"},
    {"shelf.onnx --mean 1 --embed-preprocess images:u8,rgb,hwc,mean=0,scale=1", 2,
     "--mean: differs from what --embed-preprocess says of input 'images'"},
    {"shelf.onnx --cache-dir /proc/none", 1, "/proc/none"},
};
class CompileRefuses : public Compile, public testing::WithParamInterface<Refusal> {};
TEST_P(CompileRefuses, WithStatusAndSentence) {
    const Finished r = run(GetParam().arguments);
    EXPECT_EQ(r.status, GetParam().status) << r.err;
    EXPECT_NE(r.err.find(GetParam().words), std::string::npos) << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_FALSE(fs::exists(dir_ / "vartml-cache/shelf"));
}
TEST_F(Compile, RefusesInOneSentenceToReplaceWhatItDidNotMake) {
    test::spill(dir_ / "notes", "mine");
    fs::create_directories(dir_ / "pictures");
    test::spill(dir_ / "pictures/a.jpg", "mine");
    for (const char* place : {"notes", "pictures"}) {
        const Finished r = run(std::string("shelf.onnx -o ") + place);
        EXPECT_EQ(r.status, 2);
        EXPECT_EQ(std::ranges::count(r.err, '\n'), 1) << r.err;
        EXPECT_NE(r.err.find("remove it or give another place"), std::string::npos) << r.err;
        EXPECT_FALSE(fs::exists(dir_ / ("." + std::string(place) + ".lock")));
    }
    EXPECT_EQ(test::slurp(dir_ / "notes"), "mine");
    EXPECT_EQ(test::slurp(dir_ / "pictures/a.jpg"), "mine");
}
INSTANTIATE_TEST_SUITE_P(Options, CompileRefuses, testing::ValuesIn(refusals));

// ---- real models
// ---------------------------------------------------------------------------------------------------

struct RealModel {
    const char* name;
    const char* arguments;
    int status;
    std::vector<const char*> words;  // on standard output or standard error
};
const RealModel real_models[] = {
    {"bodypix_s8",
     "--input-shape input:1,241,321,3",
     0,
     {"operators: 73 on the NPU, 0 on the CPU"}},
    {"bodypix_s8",
     "",
     3,
     {"input 'input' has no number for ", "; give --input-shape input:1,640,640,3 to vartml"}},
    {"deimv2_femto_coco",
     "",
     0,
     {"operators: 202 on the NPU, 516 on the CPU\nsubgraphs: 1 NPU, 1 CPU\n"}},
    {"deimv2_femto_coco",
     "--require-full-offload",
     5,
     {"(TopK) is not on softnpu: not implemented on the NPU (unsupported-operator)",
      "516 of 718 operators do not run on the NPU"}},
    {"hand_landmark", "", 0, {"operators: 98 on the NPU"}},
    {"lightperson", "", 0, {"operators: 369 on the NPU"}},
    {"mnist_cntk", "", 0, {"operators: 11 on the NPU"}},
    {"nanodet_m_320", "", 0, {"operators: 238 on the NPU"}},
    {"person_reid_0287", "", 0, {"operators: 549 on the NPU"}},
    {"ppocr_cls", "--input-shape x:1,3,48,192", 0, {"operators: 215 on the NPU"}},
    {"ppocr_cls",
     "",
     3,
     {"input 'x' has no number for ", "; give --input-shape x:1,3,640,640 to vartml compile"}},
    {"road_seg_adas", "", 0, {"operators: 360 on the NPU"}},
    {"selfie_landscape", "", 0, {"operators: 172 on the NPU"}},
    {"shufflenet_v2_int8", "", 0, {"operators: 189 on the NPU", "subgraphs: 1 NPU"}},
    {"super_resolution_10", "", 0, {"operators: 10 on the NPU"}},
    {"superres_prepost_refuse",
     "",
     3,
     {"node 'pre_process_0' uses com.microsoft.extensions::DecodeImage (opset 1), which neither "
      "the NPU nor the CPU partition runs",
      "split the model at tensor '_ppp0_bgr_data'", "com.microsoft.extensions::EncodeImage"}},
    {"ultraface_rfb_320", "", 0, {"operators: 163 on the NPU"}},
    {"yolox_nano_416", "--decoder yolox", 0, {"operators: 369 on the NPU"}},
    {"yunet_n_320", "", 0, {"operators: 115 on the NPU"}},
};
class CompileRealModel : public Compile, public testing::WithParamInterface<RealModel> {};
TEST_P(CompileRealModel, CompilesOrSaysWhyNot) {
    const char* shared = std::getenv("VARTML_SHARED");
    const std::string path =
        std::string(shared ? shared : "") + "/models/" + GetParam().name + "/model.onnx";
    if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
    const Finished r = run("'" + path + "' " + GetParam().arguments + " -o result");
    EXPECT_EQ(r.status, GetParam().status) << r.err;
    for (const char* words : GetParam().words)
        EXPECT_NE((r.out + r.err).find(words), std::string::npos) << r.out << r.err;
    if (GetParam().status != 0) {
        EXPECT_FALSE(fs::exists(dir_ / "result"));
        return;
    }
    EXPECT_EQ(r.err, "");
    const auto model = artifact::read(dir_ / "result");
    EXPECT_TRUE(model) << model.error().message;
}
INSTANTIATE_TEST_SUITE_P(Shared, CompileRealModel, testing::ValuesIn(real_models));

}  // namespace
}  // namespace vartml
