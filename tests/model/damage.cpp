// SPDX-License-Identifier: Apache-2.0
// Damaged, foreign and missing files: one sentence each, and never a crash.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/model/compiled_model.h"
#include "lib/model/containers.h"
#include "tests/model/models.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using artifact::read;
using test::slurp;
using test::spill;
using test::TempDir;

// One sentence about this file.
void expect_sentence(const Error& error, const std::string& path) {
    EXPECT_TRUE(error.message.starts_with(path)) << error.message;
    EXPECT_TRUE(is_plain_text(error.message)) << error.message;
    EXPECT_FALSE(error.message.ends_with('.')) << error.message;
}

std::string rai_bytes(const artifact::CompiledModel& model) {
    const TempDir dir;
    const auto written = artifact::write_rai(model, dir / "m.rai");
    EXPECT_TRUE(written) << written.error().message;
    return slurp(dir / "m.rai");
}

std::string message_of(const std::string& path) {
    const auto r = read(path);
    return r ? "" : r.error().message;
}

// Two of the ways to change a byte; over neighbouring bytes they differ.
std::array<int, 2> flips_at(size_t at) {
    constexpr std::array<std::array<int, 2>, 3> flips{{{0x01, 0xff}, {0x80, 0x02}, {0x10, 0x7f}}};
    return flips[at % flips.size()];
}

TEST(Damage, EveryTruncationIsRefused) {
    const TempDir dir;
    const std::string whole = rai_bytes(test::conv_model());
    spill(dir / "m.rai", whole);
    for (size_t size = whole.size(); size-- > 0;) {
        // Inside the manifest and the long runs of zeros one place is as good as the next.
        if (size > 256 && size % 61 != 0) continue;
        ASSERT_EQ(::truncate((dir / "m.rai").c_str(), static_cast<off_t>(size)), 0);
        const auto r = read(dir / "m.rai");
        ASSERT_FALSE(r) << size;
        expect_sentence(r.error(), dir / "m.rai");
        EXPECT_EQ(r.error().code, ErrorCode::bad_model);
    }
}

TEST(Damage, EveryChangedByteOfARaiIsRefused) {
    const TempDir dir;
    const std::string whole = rai_bytes(test::conv_model());
    for (size_t at = 0; at < whole.size(); ++at) {
        if (whole[at] == 0 && at % 64 != 1 && at > 4096) continue;  // padding, most of the file
        for (const int flip : {at % 2 ? 0x80 : 0x01}) {
            std::string bytes = whole;
            bytes[at] = static_cast<char>(bytes[at] ^ flip);
            spill(dir / "m.rai", bytes);
            const auto r = read(dir / "m.rai");
            ASSERT_FALSE(r) << at;
            expect_sentence(r.error(), dir / "m.rai");
        }
    }
}

// The manifest's checksum made right again, so that the checks behind it see the damage.
TEST(Damage, AChangedManifestWithAGoodChecksumNeverCrashes) {
    const TempDir dir;
    for (const auto& model : {test::conv_model(), test::mixed_model()}) {
        const std::string whole = rai_bytes(model);
        artifact::Footer footer;
        const size_t footer_at = whole.size() - sizeof footer;
        std::memcpy(&footer, whole.data() + footer_at, sizeof footer);
        const size_t end = footer.manifest_size + 4;
        for (size_t at = 4; at < end; at += 3) {
            for (const int flip : flips_at(at)) {
                std::string bytes = whole;
                bytes[at] = static_cast<char>(bytes[at] ^ flip);
                footer.manifest_crc32c = crc32c(as_bytes(std::string_view(bytes).substr(0, end)));
                std::memcpy(bytes.data() + footer_at, &footer, sizeof footer);
                spill(dir / "m.rai", bytes);
                const auto r = read(dir / "m.rai");
                if (!r) expect_sentence(r.error(), dir / "m.rai");
            }
        }
    }
}

// The same for the program, by way of a directory whose manifest records the new checksum.
TEST(Damage, AChangedProgramWithAGoodChecksumNeverCrashes) {
    const TempDir dir;
    for (const auto& model : {test::conv_model(), test::mixed_model()}) {
        fs::remove_all(dir / "d");
        ASSERT_TRUE(artifact::write_directory(model, dir / "d"));
        const std::string program_path = dir / "d/vaiml_par_0/0/program.vnp";
        const std::string manifest_path = dir / "d/model.vmf";
        const std::string program = slurp(program_path), manifest = slurp(manifest_path);
        const uint32_t recorded = crc32c(as_bytes(program));
        const size_t crc_at =
            manifest.find(std::string_view(reinterpret_cast<const char*>(&recorded), 4));
        ASSERT_NE(crc_at, manifest.npos);
        for (size_t at = 0; at < program.size(); at += 3) {
            for (const int flip : flips_at(at)) {
                std::string bytes = program, record = manifest;
                bytes[at] = static_cast<char>(bytes[at] ^ flip);
                const uint32_t crc = crc32c(as_bytes(bytes));
                std::memcpy(record.data() + crc_at, &crc, 4);
                spill(program_path, bytes);
                spill(manifest_path, record);
                const auto r = read(dir / "d");
                if (!r) expect_sentence(r.error(), dir / "d");
            }
        }
    }
}

TEST(Damage, NamesBlobAndBothChecksums) {
    const TempDir dir;
    std::string bytes = rai_bytes(test::conv_model());
    const auto model = test::conv_model();
    const auto weights = model.partitions[0].graph.values[1].constant->bytes;
    const size_t at = bytes.find(as_text(weights));
    ASSERT_NE(at, bytes.npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    spill(dir / "model.rai", bytes);
    const std::string message = message_of(dir / "model.rai");
    const std::string start =
        dir / "model.rai" + ": blob 'vaiml_par_0/0/weights.bin': checksum is 0x";
    EXPECT_TRUE(message.starts_with(start)) << message;
    EXPECT_NE(message.find(", recorded 0x"), message.npos);
    EXPECT_TRUE(message.ends_with("; the file is damaged, compile or copy it again"));
}

struct Foreign {
    const char* file;
    std::string bytes;
    const char* sentence;  // after the path
    ErrorCode code = ErrorCode::bad_model;
};

std::string flatbuffer(const char* identifier, bool prefixed) {
    std::string bytes(200, '\0');
    size_t at = 0;
    if (prefixed) bytes[at] = static_cast<char>(196), at = 4;
    bytes[at] = 16;
    std::memcpy(bytes.data() + at + 4, identifier, 4);
    return bytes;
}

// The rows of the table "files that are not ours".
TEST(Foreign, FilesAreNamedByTheirKind) {
    const std::string amd =
        "; archives of AMD's compiler have no public format, compile the ONNX model with 'vartml "
        "compile'";
    const std::string a = "is not a vartml archive (identifier 'RAI0', expected 'VRA1')" + amd;
    const std::string b = "is not a vartml archive (identifier '', expected 'VRA1')" + amd;
    const Foreign cases[] = {
        {"m.rai", flatbuffer("RAI0", false), a.c_str()},  // another identifier
        {"m.bin", flatbuffer("RAI0", true), a.c_str()},   // with a size prefix, by another name
        {"m.rai", "text", b.c_str()},                     // a .rai without identifier
        {"m.rai", "", b.c_str()},
        {"m.tar.gz", "\x1f\x8b\x08",
         "the gzip stream cannot be read (it has no gzip header); the file is damaged, compile or "
         "copy it again"},
        {"m.dat", std::string("\x08\x07\x12\x07pytorch", 11),
         "is an ONNX model; compile it first: vartml compile "},
        {"m.onnx", "anything", "is an ONNX model; compile it first: vartml compile "},
        {"m.onnx", "version https://git-lfs.github.com/spec/v1\n",
         "is a pointer of Git LFS, not the model itself; fetch the file with 'git lfs pull'"},
        {"m.tflite", std::string("\x1c\0\0\0TFL3", 8),
         "is a TensorFlow Lite model; export the model to ONNX, then compile that with 'vartml "
         "compile'"},
        {"m.txt", "hello",
         "is no compiled model (5 bytes without the identifier 'VRA1'); give the result of "
         "'vartml compile'"},
    };
    for (const Foreign& c : cases) {
        const TempDir dir;
        spill(dir / c.file, c.bytes);
        const auto r = read(dir / c.file);
        ASSERT_FALSE(r);
        std::string want = dir / c.file + ": " + c.sentence;
        if (want.ends_with(' ')) want += dir / c.file;  // the command line to run
        EXPECT_EQ(r.error().message, want);
        EXPECT_EQ(r.error().code, c.code);
    }
}

TEST(Foreign, DirectoriesAreNamedByWhatTheyHold) {
    const TempDir dir;
    fs::create_directories(dir / "amd/vaiml_par_0/0");
    EXPECT_EQ(message_of(dir / "amd"),
              dir / "amd" +
                  ": was not made by vartml (no model.vmf); archives of AMD's compiler have no "
                  "public format, compile the ONNX model with 'vartml compile'");

    fs::create_directories(dir / "empty");
    EXPECT_EQ(message_of(dir / "empty"),
              dir / "empty" +
                  ": holds neither vaiml_par_0 nor a .rai file; give the result of 'vartml "
                  "compile'");
    EXPECT_EQ(read(dir / "empty").error().code, ErrorCode::not_found);

    for (int i = 0; i < 7; ++i)
        fs::create_directories(dir / "cache/m" + std::to_string(i) + "/vaiml_par_0");
    fs::create_directories(dir / "cache/another");
    EXPECT_EQ(message_of(dir / "cache/"),
              dir / "cache" +
                  ": holds neither vaiml_par_0 nor a .rai file; give one of the folders "
                  "in it: m0, m1, m2, m3, m4");

    spill(dir / "two/a.rai", "");
    spill(dir / "two/b.rai", "");
    EXPECT_EQ(message_of(dir / "two"),
              dir / "two" + ": holds more than one .rai file (a.rai, b.rai); give one of them");
}

TEST(Foreign, MissingPathsGiveTheSystemsReason) {
    const TempDir dir;
    EXPECT_EQ(message_of(dir / "no"), dir / "no" + ": cannot open: No such file or directory");
    EXPECT_EQ(read(dir / "no").error().code, ErrorCode::not_found);
    EXPECT_EQ(read("").error().code, ErrorCode::invalid_argument);
    if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
    spill(dir / "m.rai", "x");
    ASSERT_EQ(::chmod((dir / "m.rai").c_str(), 0), 0);
    EXPECT_EQ(message_of(dir / "m.rai"), dir / "m.rai" + ": cannot open: Permission denied");
    EXPECT_EQ(read(dir / "m.rai").error().code, ErrorCode::io);
}

TEST(Directory, WithOneRaiAndNothingElseIsThatRai) {
    const TempDir dir;
    spill(dir / "d/model.rai", rai_bytes(test::conv_model()));
    spill(dir / "d/README", "hello");
    const auto r = read(dir / "d");
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->format, "rai");
}

TEST(Directory, MayHoldTheRaiOfTheSameModelOnly) {
    const TempDir dir;
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "d"));
    auto other = test::conv_model();
    spill(dir / "d/tiny.rai", rai_bytes(other));
    EXPECT_TRUE(read(dir / "d"));
    other.model_signature[0] = 'f';
    spill(dir / "d/tiny.rai", rai_bytes(other));
    EXPECT_EQ(message_of(dir / "d"),
              dir / "d/tiny.rai" +
                  ": has model signature f0112233445566778899aabbccddeeff, the "
                  "directory around it 00112233445566778899aabbccddeeff; they "
                  "are not the same model, remove one of them");
}

TEST(Directory, HoldsWhatTheManifestListsAndNothingElse) {
    const TempDir dir;
    const auto fresh = [&] {
        fs::remove_all(dir / "d");
        EXPECT_TRUE(artifact::write_directory(test::conv_model(), dir / "d"));
    };
    fresh();
    fs::remove(dir / "d/vaiml_par_0/0/weights.bin");
    EXPECT_EQ(message_of(dir / "d"),
              dir / "d/vaiml_par_0/0/weights.bin" +
                  ": is missing, but model.vmf lists it; compile or copy the model again");
    fresh();
    spill(dir / "d/vaiml_par_0/more.json", "{}");
    EXPECT_EQ(message_of(dir / "d"),
              dir / "d/vaiml_par_0/more.json" +
                  ": is not listed in model.vmf; remove it, or compile the model again");
    fresh();
    spill(dir / "d/modelinfo", "[modelinfo]\nversion=2.0\n");  // edited, the same length
    EXPECT_NE(message_of(dir / "d").find("modelinfo: checksum is 0x"), std::string::npos);
    fresh();
    spill(dir / "d/modelinfo", "edited");
    EXPECT_EQ(message_of(dir / "d"), dir / "d/modelinfo" +
                                         ": has 6 bytes, recorded in model.vmf 24; the file is "
                                         "damaged, compile or copy it again");
    fresh();
    fs::rename(dir / "d/modelinfo", dir / "elsewhere");
    fs::create_symlink(dir / "elsewhere", dir / "d/modelinfo");
    EXPECT_EQ(message_of(dir / "d"),
              dir / "d/modelinfo" + ": is a link or a device, expected a regular file");
    fresh();
    spill(dir / "d/compile.log", "");
    spill(dir / "d/vaiml_par_0/0/debug/deep/x", "");
    EXPECT_EQ(message_of(dir / "d"), "");
}

// The rules for the manifest, each broken in a model whose checksums are right. The writer refuses
// with the reader's own sentence.
TEST(Manifest, BreaksNoRuleOfTheFormat) {
    struct Bad {
        const char* sentence;
        void (*spoil)(artifact::CompiledModel&);
    };
    using M = artifact::CompiledModel;
    const Bad cases[] = {
        {"the execution order [0,0,2] does not name each of the 3 partitions once",
         [](M& m) { m.execution_order = {0, 0, 2}; }},
        {"edge 'y' from vaiml_par_0 to vaiml_cpu_subgraph_0 goes against the execution order",
         [](M& m) { m.execution_order = {1, 0, 2}; }},
        {"edge 'x' goes from partition -1 to 7, there are 3",
         [](M& m) { m.edges[0].destination = 7; }},
        {"edge 'y' from vaiml_par_0 to vaiml_cpu_subgraph_0: the destination gets this tensor "
         "twice",
         [](M& m) { m.edges.push_back(m.edges[1]); }},
        {"edge 'y' from vaiml_par_0 to vaiml_cpu_subgraph_0 is fp32[2,4], vaiml_par_0 says "
         "fp32[2,3]",
         [](M& m) { m.edges[1].shape = {2, 4}; }},
        {"shares buffer 'buf_x' with", [](M& m) { m.edges[1].temp_buffer_name = "buf_x"; }},
        {"no edge leads to input 'u' of partition 'vaiml_par_1'",
         [](M& m) { std::erase_if(m.edges, [](const auto& e) { return e.tensor_name == "u"; }); }},
        {"partition 'vaiml_par_00x' is not named vaiml_par_<number>, or occurs twice",
         [](M& m) { m.partitions[2].name = "vaiml_par_00x"; }},
        {"partition 'vaiml_par_0' has 0 columns, expected 1 or more",
         [](M& m) { m.partitions[0].columns = 0; }},
        {"input 'x': CPU view of shape [2,3] is recorded with 6 elements and 23 bytes",
         [](M& m) { m.inputs[0].cpu.size_bytes = 23; }},
        {"input 'x': CPU view of shape [2,3] has strides [2,1], expected dense ones",
         [](M& m) { m.inputs[0].cpu.strides = {2, 1}; }},
        {"input 'x': CPU view has the order [0,2]", [](M& m) { m.inputs[0].cpu.order = {0, 2}; }},
        {"input 'x': CPU view has the order [1,0], which only HW views have",
         [](M& m) { m.inputs[0].cpu.order = {1, 0}; }},
        {"input 'x': CPU view of layout NCHW has shape [2,3]",
         [](M& m) { m.inputs[0].cpu.layout = Layout::NCHW; }},
        {"input 'x': CPU view has layout HCWNC4, which only HW views have",
         [](M& m) {
             m.inputs[0].cpu = make_view(DataType::float32, Layout::HCWNC4, {1, 1, 2, 1, 4});
         }},
        {"input 'x': HW view NHWC[1,1,2,3] does not fit the CPU view GENERIC[2,3]",
         [](M& m) { m.inputs[0].hw = make_view(DataType::int8, Layout::NHWC, {1, 1, 2, 3}); }},
        {"input 'x': CPU view of shape [2147483648,2147483648,4] is recorded with 0 elements",
         [](M& m) {  // 2^64 bytes: a product that wraps to 0
             m.inputs[0].cpu = make_view(DataType::int8, Layout::GENERIC, {1u << 31, 1u << 31, 4});
         }},
        {"batch size is 3 of 2 desired, expected 1 to 256",
         [](M& m) { m.desired_batch_size = 2, m.actual_batch_size = 3; }},
        {"node 'n' is in partition 3, there are 3",
         [](M& m) { m.summary.fallbacks[0] = {"n", "T", "c", "t", 3}; }},
        {"the device has 5000 bytes, at most 4096 are allowed",
         [](M& m) { m.device = std::string(5000, 'x'); }},
    };
    for (const Bad& c : cases) {
        const TempDir dir;
        auto model = test::mixed_model();
        c.spoil(model);
        const auto r = artifact::write_rai(model, dir / "m.rai");
        ASSERT_FALSE(r) << c.sentence;
        EXPECT_NE(r.error().message.find(c.sentence), std::string::npos) << r.error().message;
        EXPECT_TRUE(fs::is_empty(dir.path()));
    }
}

// The rows of such a tensor are copied one by one: both sides must have the same elements.
TEST(Program, HasNoOtherHwViewOfADataDependentTensor) {
    const TempDir dir;
    auto p = test::make_partition("vaiml_cpu_subgraph_0", test::parse_graph(R"(graph g
input %x : f32[4]
%n = NonZero %x : i64[1,4]?
%y = Cast %n {to="u8"} : u8[1,4]?
output %y
)"));
    p.outputs[0].hw = hw_view(p.outputs[0].cpu, Layout::GENERIC, DataType::float32);
    const auto model = test::connect(test::make_model({std::move(p)}));
    ASSERT_TRUE(artifact::write_rai(model, dir / "m.rai"));
    const auto read = artifact::read(dir / "m.rai");
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("output 'y' has a shape that depends on the data and a HW "
                                        "view that is not its CPU view"),
              std::string::npos)
        << read.error().message;
}

}  // namespace
}  // namespace vartml
