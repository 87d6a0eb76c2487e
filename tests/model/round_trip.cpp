// SPDX-License-Identifier: Apache-2.0
// What is written is what is read, in the three containers, byte for byte.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "lib/model/compiled_model.h"
#include "lib/model/manifest.h"
#include "lib/model/program.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using artifact::CompiledModel;
using test::TempDir;

// All files below a folder.
std::map<std::string, std::string> tree(const std::string& path) {
    std::map<std::string, std::string> files;
    for (const auto& e : fs::recursive_directory_iterator(path))
        if (e.is_regular_file())
            files[fs::relative(e.path(), path).string()] = test::slurp(e.path().string());
    return files;
}

void expect_same_graph(const graph::Graph& a, const graph::Graph& b) {
    EXPECT_EQ(graph::print(a), graph::print(b));
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i) {
        EXPECT_EQ(a.nodes[i].attributes, b.nodes[i].attributes);
        EXPECT_EQ(a.nodes[i].domain, b.nodes[i].domain);
        EXPECT_EQ(a.nodes[i].sources, b.nodes[i].sources);
        EXPECT_EQ(a.nodes[i].name, b.nodes[i].name);
    }
    ASSERT_EQ(a.values.size(), b.values.size());
    for (size_t i = 0; i < a.values.size(); ++i) {
        EXPECT_EQ(a.values[i].type, b.values[i].type);
        ASSERT_EQ(a.values[i].constant.has_value(), b.values[i].constant.has_value());
        if (!a.values[i].constant) continue;
        EXPECT_TRUE(std::ranges::equal(a.values[i].constant->bytes, b.values[i].constant->bytes));
    }
}

void expect_same_model(const CompiledModel& a, const CompiledModel& b) {
    EXPECT_EQ(a.tool_version, b.tool_version);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.target, b.target);
    EXPECT_EQ(a.compilation, b.compilation);
    EXPECT_EQ(a.model_name, b.model_name);
    EXPECT_EQ(a.model_signature, b.model_signature);
    EXPECT_EQ(a.config_sha256, b.config_sha256);
    EXPECT_EQ(a.desired_batch_size, b.desired_batch_size);
    EXPECT_EQ(a.actual_batch_size, b.actual_batch_size);
    EXPECT_EQ(a.stats_level, b.stats_level);
    EXPECT_EQ(a.exact_floats, b.exact_floats);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.outputs, b.outputs);
    EXPECT_EQ(a.execution_order, b.execution_order);
    EXPECT_EQ(a.edges.size(), b.edges.size());
    EXPECT_EQ(a.summary.model, b.summary.model);
    EXPECT_EQ(a.summary.threshold_percent, b.summary.threshold_percent);
    EXPECT_EQ(a.summary.fallbacks.size(), b.summary.fallbacks.size());
    for (const artifact::File& f : a.files) {
        ASSERT_TRUE(b.find_file(f.name)) << f.name;
        EXPECT_EQ(*b.find_file(f.name), f.bytes);
    }
    ASSERT_EQ(a.partitions.size(), b.partitions.size());
    for (size_t i = 0; i < a.partitions.size(); ++i) {
        const artifact::Partition &p = a.partitions[i], &q = b.partitions[i];
        EXPECT_EQ(p.name, q.name);
        EXPECT_EQ(p.kind, q.kind);
        EXPECT_EQ(p.target, q.target);
        EXPECT_EQ(p.inputs, q.inputs);
        EXPECT_EQ(p.outputs, q.outputs);
        EXPECT_EQ(p.operators, q.operators);
        EXPECT_EQ(p.ops, q.ops);
        EXPECT_EQ(p.columns, q.columns);
        EXPECT_EQ(p.arena_size_bytes, q.arena_size_bytes);
        EXPECT_EQ(p.arena_offsets, q.arena_offsets);
        EXPECT_EQ(p.node_layers, q.node_layers);
        EXPECT_EQ(p.layers.size(), q.layers.size());
        expect_same_graph(p.graph, q.graph);
    }
}

CompiledModel many_partitions() {
    std::vector<artifact::Partition> partitions;
    for (int i = 0; i < 40; ++i) {
        const std::string in = "t" + std::to_string(i), out = "t" + std::to_string(i + 1);
        const bool cpu = i % 2 == 1;
        partitions.push_back(test::make_partition(
            (cpu ? "vaiml_cpu_subgraph_" : "vaiml_par_") + std::to_string(i / 2),
            test::parse_graph("graph g\ninput %" + in + " : f32[1,5]\n%" + out + " = Abs %" + in +
                              " : f32[1,5]\noutput %" + out + "\n")));
    }
    CompiledModel model = test::connect(test::make_model(std::move(partitions)));
    model.exact_floats = true;
    return model;
}

// Names are data: whatever text the model has is kept.
CompiledModel odd_names() {
    auto graph = test::parse_graph(R"(graph g
input %"spaces and : signs" : f32[1]
%"Größe/π" = Neg %"spaces and : signs" : f32[1] @"ノード"
output %"Größe/π"
)");
    graph.nodes[0].sources = {"", "a", std::string(300, 'x')};  // a node without a name
    CompiledModel m =
        test::connect(test::make_model({test::make_partition("vaiml_par_0", std::move(graph))}));
    m.model_name = "model with spaces (1)";
    m.partitions[0].layers[0].name = "MLA_0/odd: \"name\"";
    return m;
}

// Integers, floats, texts and lists of them.
CompiledModel attribute_kinds() {
    return test::connect(
        test::make_model({test::make_partition("vaiml_par_0", test::parse_graph(R"(graph g
input %x : f32[1,2,4,4]
%a = Resize %x {antialias=0, coordinate_transformation_mode="half_pixel", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode="nearest", nearest_mode="round_prefer_floor", scales=f[1.0,1.0,2.0,2.0], sizes=[1,2,8,8]} : f32[1,2,8,8]
%b = LeakyRelu %a {alpha=0.1} : f32[1,2,8,8]
%c = Softmax %b {axis=1} : f32[1,2,8,8]
%d = Reshape %c {shape=[8,1,16]} : f32[8,1,16]
const %w : f32[1,1,16] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}
const %r : f32[1,1,1] = {0.5}
%e = RNN %d, %w, %r {activations=s["Relu"], direction="forward", hidden_size=1, layout=0} : f32[8,1,1,1]
output %e
)"))}));
}

struct Case {
    const char* name;
    CompiledModel (*make)();
};
const Case cases[] = {
    {"conv", test::conv_model},    // weights, both views, quantisation
    {"mixed", test::mixed_model},  // CPU partitions, scalars, i64
    {"many partitions", many_partitions}, {"odd names", odd_names},
    {"attribute kinds", attribute_kinds},
};

TEST(RoundTrip, OfADirectoryKeepsTheModel) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const TempDir dir;
        const CompiledModel model = c.make();
        const auto written = artifact::write_directory(model, dir / "out");
        ASSERT_TRUE(written) << written.error().message;
        const auto read = artifact::read(dir / "out");
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->format, "directory");
        expect_same_model(model, *read);
    }
}

TEST(RoundTrip, OfARaiKeepsTheModel) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const TempDir dir;
        const CompiledModel model = c.make();
        const auto written = artifact::write_rai(model, dir / "any.name");
        ASSERT_TRUE(written) << written.error().message;
        const auto read = artifact::read(dir / "any.name");
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->format, "rai");
        expect_same_model(model, *read);
    }
}

TEST(RoundTrip, OfATarKeepsTheModel) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const TempDir dir;
        const CompiledModel model = c.make();
        const auto written = artifact::write_tar(model, dir / "any.name");
        ASSERT_TRUE(written) << written.error().message;
        const auto read = artifact::read(dir / "any.name");
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->format, "tar");
        expect_same_model(model, *read);
    }
}

TEST(RoundTrip, ThroughATarGivesTheSameBytes) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const TempDir dir;
        const CompiledModel model = c.make();
        ASSERT_TRUE(artifact::write_directory(model, dir / "a"));
        ASSERT_TRUE(artifact::write_tar(model, dir / "a.tar.gz"));
        // As it is unpacked, and written again from what was read.
        const auto from_tar = artifact::read(dir / "a.tar.gz", {.extraction = {dir / "b", true}});
        ASSERT_TRUE(from_tar) << from_tar.error().message;
        EXPECT_EQ(tree(dir / "a"), tree(dir / "b"));
        ASSERT_TRUE(artifact::write_directory(*from_tar, dir / "c"));
        EXPECT_EQ(tree(dir / "a"), tree(dir / "c"));
        const auto from_directory = artifact::read(dir / "c");
        ASSERT_TRUE(from_directory);
        ASSERT_TRUE(artifact::write_tar(*from_directory, dir / "b.tar.gz"));
        EXPECT_EQ(test::slurp(dir / "a.tar.gz"), test::slurp(dir / "b.tar.gz"));
    }
}

TEST(RoundTrip, ThroughTheOtherContainerGivesTheSameBytes) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        const TempDir dir;
        const CompiledModel model = c.make();
        ASSERT_TRUE(artifact::write_directory(model, dir / "a"));
        ASSERT_TRUE(artifact::write_rai(model, dir / "a.rai"));
        const auto from_rai = artifact::read(dir / "a.rai");
        ASSERT_TRUE(from_rai) << from_rai.error().message;
        ASSERT_TRUE(artifact::write_directory(*from_rai, dir / "b"));
        EXPECT_EQ(tree(dir / "a"), tree(dir / "b"));
        const auto from_directory = artifact::read(dir / "b");
        ASSERT_TRUE(from_directory);
        ASSERT_TRUE(artifact::write_rai(*from_directory, dir / "b.rai"));
        EXPECT_EQ(test::slurp(dir / "a.rai"), test::slurp(dir / "b.rai"));
    }
}

TEST(Write, ReplacesItsOwnDirectoryAlsoWhileItIsInUse) {
    const TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "out"));
    const auto before = artifact::read(dir / "out");
    ASSERT_TRUE(before);
    const std::string text = graph::print(before->partitions[0].graph);
    ASSERT_TRUE(artifact::write_directory(test::mixed_model(), dir / "out/"));
    EXPECT_EQ(artifact::read(dir / "out")->partitions.size(), 3u);
    EXPECT_EQ(graph::print(before->partitions[0].graph), text);  // the old mapping still lives
}

TEST(Write, GivesTheEntriesOfTheFormat) {
    const TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::mixed_model(), dir / "out"));
    std::vector<std::string> names;
    for (const auto& [name, bytes] : tree(dir / "out")) names.push_back(name);
    EXPECT_EQ(names, (std::vector<std::string>{
                         "connectivity_metadata.json",
                         "fail_safe_summary.json",
                         "final-vaiml-pass-summary.txt",
                         "model.vmf",
                         "modelinfo",
                         "vaiml_cpu_subgraph_0/program.vnp",
                         "vaiml_par_0/0/buffer_info.json",
                         "vaiml_par_0/0/flexmlrt-hsi.json",
                         "vaiml_par_0/0/program.vnp",
                         "vaiml_par_0/0/tiny_mla_stats.yaml",
                         "vaiml_par_0/0/weights.bin",
                         "vaiml_par_0/partition-info.json",
                         "vaiml_par_1/0/buffer_info.json",
                         "vaiml_par_1/0/flexmlrt-hsi.json",
                         "vaiml_par_1/0/program.vnp",
                         "vaiml_par_1/0/tiny_mla_stats.yaml",
                         "vaiml_par_1/partition-info.json",
                     }));
}

TEST(Write, PutsEachWeightAtAMultipleOf64) {
    const TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "out"));
    const auto model = artifact::read(dir / "out");
    ASSERT_TRUE(model);
    for (const graph::Value& v : model->partitions[0].graph.values) {
        if (!v.constant) continue;
        EXPECT_EQ(reinterpret_cast<uintptr_t>(v.constant->bytes.data()) % 64, 0u);
    }
    // Six floats, padding, two floats.
    EXPECT_EQ(fs::file_size(dir / "out/vaiml_par_0/0/weights.bin"), 72u);
}

TEST(Write, GivesTheHardwareInterfaceOfSection9) {
    const TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "out"));
    EXPECT_EQ(test::slurp(dir / "out/vaiml_par_0/0/flexmlrt-hsi.json"), R"({
  "inputs": [
    {
      "name": "compute_graph.ifm_ddr",
      "tensor_name": "images",
      "cpu_shape": [
        1,
        3,
        8,
        8
      ],
      "hw_shape": [
        8,
        1,
        8,
        1,
        4
      ],
      "cpu_format": "NCHW",
      "hw_format": "HCWNC4",
      "cpu_dtype": "fp32",
      "hw_dtype": "int8",
      "scale_factor": 0.0078125,
      "zero_point": 3
    }
  ],
  "outputs": [
    {
      "name": "compute_graph.ofm_ddr",
      "tensor_name": "y",
      "cpu_shape": [
        1,
        2,
        8,
        8
      ],
      "hw_shape": [
        8,
        1,
        8,
        1,
        16
      ],
      "cpu_format": "NCHW",
      "hw_format": "HCWNC16",
      "cpu_dtype": "fp32",
      "hw_dtype": "bf16",
      "scale_factor": 1.0
    }
  ],
  "vartml": {
    "format_version": 1,
    "partition": "vaiml_par_0",
    "device_batch_size": 1
  }
}
)");
    EXPECT_EQ(test::slurp(dir / "out/vaiml_par_0/partition-info.json"), R"({
  "aie_partition_call_order": [
    "vaiml_par_0_part_0"
  ]
}
)");
    EXPECT_EQ(test::slurp(dir / "out/fail_safe_summary.json"), R"({
  "offload_map": {
    "AIE": 100,
    "CPU": 0
  }
}
)");
    EXPECT_EQ(test::slurp(dir / "out/vaiml_par_0/0/tiny_mla_stats.yaml"),
              "0:\n  name: MLA_0/op_0\n  start_cycle: 0\n  end_cycle: 99\n"
              "1:\n  name: MLA_0/op_1\n  start_cycle: 100\n  end_cycle: 199\n");
}

TEST(Write, PutsTheRaiAndOtherFilesIntoTheDirectory) {
    const TempDir dir;
    const auto written = artifact::write_directory(
        test::conv_model(), dir / "out",
        {.rai = true,
         .extras = {{"compile.log", "log\n"}, {"vaiml_par_0/0/debug/graph.txt", "g"}}});
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_TRUE(fs::exists(dir / "out/tiny.rai"));
    EXPECT_EQ(test::slurp(dir / "out/compile.log"), "log\n");
    const auto read = artifact::read(dir / "out");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->format, "directory");
}

TEST(Write, RefusesADirectoryThatItDidNotMake) {
    const TempDir dir;
    test::spill(dir / "photos/cat.jpg", "meow");
    const auto written = artifact::write_directory(test::conv_model(), dir / "photos");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(written.error().message,
              dir / "photos" +
                  ": exists and was not made by vartml (no model.vmf), so it is not "
                  "replaced; remove it or give another place");
    EXPECT_EQ(test::slurp(dir / "photos/cat.jpg"), "meow");
    EXPECT_FALSE(artifact::write_directory(test::conv_model(), dir / "photos/cat.jpg"));
    EXPECT_EQ(artifact::write_directory(test::conv_model(), dir / "no/folder").error().code,
              ErrorCode::not_found);
}

TEST(Write, RefusesWhatTheFormatCannotHold) {
    const TempDir dir;
    struct Bad {
        const char* part;  // of the sentence
        void (*spoil)(CompiledModel&);
    };
    const Bad cases[] = {
        {"arena offsets", [](CompiledModel& m) { m.partitions[0].arena_offsets.pop_back(); }},
        {"is also an input",
         [](CompiledModel& m) { m.partitions[0].graph.outputs = {m.partitions[0].graph.inputs}; }},
        {"no edge leads to output 'y'", [](CompiledModel& m) { m.edges.pop_back(); }},
        {"signature", [](CompiledModel& m) { m.model_signature = "abc"; }},
        {"has an ending that no entry has",
         [](CompiledModel& m) { m.files.push_back({"run.sh", ""}); }},
        {"holds '..'", [](CompiledModel& m) { m.files.push_back({"../up.txt", ""}); }},
        {"occurs twice",
         [](CompiledModel& m) {
             m.files.push_back({"NOTES.txt", ""});
             m.files.push_back({"notes.txt", ""});
         }},
        {"control characters", [](CompiledModel& m) { m.device = "a\nb"; }},
        {"layer", [](CompiledModel& m) { m.partitions[0].node_layers.pop_back(); }},
    };
    for (const Bad& c : cases) {
        CompiledModel model = test::conv_model();
        c.spoil(model);
        const auto written = artifact::write_directory(model, dir / "out");
        ASSERT_FALSE(written) << c.part;
        EXPECT_EQ(written.error().code, ErrorCode::internal);
        EXPECT_NE(written.error().message.find(c.part), std::string::npos)
            << written.error().message;
        EXPECT_TRUE(fs::is_empty(dir.path()));
    }
}

TEST(Read, WithoutProgramsTouchesNoWeights) {
    const TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "out"));
    // Damage that only a look at the bytes would find.
    std::string weights = test::slurp(dir / "out/vaiml_par_0/0/weights.bin");
    weights[0] = static_cast<char>(weights[0] ^ 1);
    test::spill(dir / "out/vaiml_par_0/0/weights.bin", weights);
    const auto model = artifact::read(dir / "out", {.programs = false});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_TRUE(model->partitions[0].graph.nodes.empty());
    EXPECT_EQ(model->partitions[0].inputs[0].name, "images");
    EXPECT_FALSE(artifact::read(dir / "out"));
}

// Bytes of files that are in this process's memory.
size_t resident_file_bytes() {
    std::ifstream statm("/proc/self/statm");
    size_t all = 0, resident = 0, of_files = 0;
    statm >> all >> resident >> of_files;
    return of_files * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(RoundTrip, ReadingAModelLeavesItsWeightsOutOfMemory) {
    constexpr size_t weights = size_t{16} << 20;
    graph::Graph graph = test::parse_graph(
        "graph g\ninput %x : f32[4194304]\nconst %w : f32[4194304] = {0}\n"
        "%y = Mul %x, %w : f32[4194304]\noutput %y\n");
    for (graph::Value& value : graph.values)
        if (value.constant)
            value.constant = graph::make_constant(std::vector<std::byte>(weights, std::byte{1}));
    const TempDir dir;
    const auto model =
        test::connect(test::make_model({test::make_partition("vaiml_par_0", std::move(graph))}));
    ASSERT_TRUE(artifact::write_directory(model, dir / "m"));
    ASSERT_TRUE(artifact::write_rai(model, dir / "m.rai"));
    for (const char* name : {"m", "m.rai"}) {
        const size_t before = resident_file_bytes();
        const auto read = artifact::read(dir / name);
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_LT(resident_file_bytes(), before + weights / 4) << name;
    }
}

}  // namespace
}  // namespace vartml
