// SPDX-License-Identifier: Apache-2.0
// The .tar.gz that we write, where it is unpacked, and archives that are damaged or foreign.
#include <gelf.h>
#include <gtest/gtest.h>
#include <libelf.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "lib/base/test_seams.h"
#include "lib/base/text.h"
#include "lib/model/compiled_model.h"
#include "lib/model/foreign.h"
#include "tests/model/models.h"
#include "tests/model/tar_archives.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using artifact::CompiledModel;
using artifact::Extraction;
using test::slurp;
using test::spill;

std::map<std::string, std::string> tree(const std::string& path) {
    std::map<std::string, std::string> files;
    for (const auto& e : fs::recursive_directory_iterator(path))
        if (e.is_regular_file())
            files[fs::relative(e.path(), path).string()] = slurp(e.path().string());
    return files;
}

// With a folder of its own for temporary files.
class Tar : public testing::Test {
protected:
    test::TempDir dir;
    const std::string file = dir / "m.tar.gz";

    void SetUp() override {
        fs::create_directory(dir / "tmp");
        ASSERT_EQ(::setenv("TMPDIR", (dir / "tmp").c_str(), 1), 0);
    }
    void TearDown() override { ::unsetenv("TMPDIR"); }

    void write(const CompiledModel& model) {
        const auto written = artifact::write_tar(model, file);
        ASSERT_TRUE(written) << written.error().message;
    }
    Result<CompiledModel> read_into(const std::string& path, bool keep) {
        return artifact::read(file, {.extraction = {path, keep}});
    }
    std::map<std::string, std::string> contents() {
        std::map<std::string, std::string> out;
        for (auto& seen : test::list_tar(file)) out[seen.entry.name] = seen.entry.bytes;
        return out;
    }
    ino_t inode(const std::string& path) {
        struct stat info{};
        EXPECT_EQ(::stat(path.c_str(), &info), 0);
        return info.st_ino;
    }
};

// ---- what is written ---------------------------------------------------------------------------

TEST_F(Tar, HoldsTheEntriesUnderTheirFlatNames) {
    CompiledModel model = test::mixed_model();
    model.files.push_back({"opstatsdesc.bin", "stats"});
    model.files.push_back({"final-vaiml-pass-summary.json", "{}\n"});
    write(model);
    std::vector<std::string> names;
    for (const auto& seen : test::list_tar(file)) {
        names.push_back(seen.entry.name);
        EXPECT_EQ(seen.entry.mode, 0644u);
        EXPECT_EQ(seen.entry.type, unsigned{AE_IFREG});
        EXPECT_EQ(seen.uid, 0);
        EXPECT_EQ(seen.gid, 0);
        EXPECT_EQ(seen.mtime, 0);
        EXPECT_EQ(seen.owner, "");
        EXPECT_EQ(seen.format, ARCHIVE_FORMAT_TAR_USTAR);
    }
    EXPECT_EQ(names, (std::vector<std::string>{
                         "connectivity_metadata.json",
                         "fail_safe_summary.json",
                         "final-vaiml-pass-summary.json",
                         "final-vaiml-pass-summary.txt",
                         "model.vmf",
                         "opstatsdesc.bin",
                         "tiny.modelinfo",
                         "tiny_cpu0.vnp",
                         "tiny_mpk.json",
                         "tiny_stage0_buffers.json",
                         "tiny_stage0_hsi.json",
                         "tiny_stage0_mla.elf",
                         "tiny_stage0_mla_stats.yaml",
                         "tiny_stage0_partition.json",
                         "tiny_stage1_buffers.json",
                         "tiny_stage1_hsi.json",
                         "tiny_stage1_mla.elf",
                         "tiny_stage1_mla_stats.yaml",
                         "tiny_stage1_partition.json",
                     }));
    // RFC 1952: no name, no time.
    EXPECT_EQ(slurp(file).substr(0, 8), std::string("\x1f\x8b\x08\0\0\0\0\0", 8));
}

TEST_F(Tar, HoldsTheBytesOfTheDirectory) {
    write(test::conv_model());
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "out"));
    const auto directory = tree(dir / "out");
    for (const auto& seen : test::list_tar(file)) {
        if (seen.entry.name == "model.vmf") {
            EXPECT_EQ(seen.entry.bytes, directory.at("model.vmf"));
        }
        if (seen.entry.name == "tiny_stage0_hsi.json") {
            EXPECT_EQ(seen.entry.bytes, directory.at("vaiml_par_0/0/flexmlrt-hsi.json"));
        }
        if (seen.entry.name != "tiny_stage0_mla.elf") continue;
        // As another tool reads it.
        elf_version(EV_CURRENT);
        std::string bytes = seen.entry.bytes;
        Elf* elf = elf_memory(bytes.data(), bytes.size());
        GElf_Ehdr header{};
        ASSERT_TRUE(gelf_getehdr(elf, &header));
        EXPECT_EQ(header.e_ident[EI_CLASS], ELFCLASS64);
        EXPECT_EQ(header.e_ident[EI_DATA], ELFDATA2LSB);
        EXPECT_EQ(header.e_type, ET_EXEC);
        EXPECT_EQ(header.e_machine, EM_NONE);
        EXPECT_EQ(header.e_phnum, 0);
        std::map<std::string, std::string> sections;
        for (Elf_Scn* s = nullptr; (s = elf_nextscn(elf, s));) {
            GElf_Shdr h{};
            ASSERT_TRUE(gelf_getshdr(s, &h));
            const std::string name = elf_strptr(elf, header.e_shstrndx, h.sh_name);
            sections[name] = bytes.substr(h.sh_offset, h.sh_size);
            if (name == ".vartml.weights") {
                EXPECT_EQ(h.sh_offset % 4096, 0u);
            }
        }
        elf_end(elf);
        EXPECT_EQ(sections.at(".vartml.program"), directory.at("vaiml_par_0/0/program.vnp"));
        EXPECT_EQ(sections.at(".vartml.weights"), directory.at("vaiml_par_0/0/weights.bin"));
        EXPECT_EQ(sections.size(), 3u);  // and their names
    }
}

TEST_F(Tar, DescribesItselfToOtherTools) {
    CompiledModel model = test::conv_model();
    model.desired_batch_size = 16;
    model.actual_batch_size = 12;
    model.partitions[0].columns = 3;
    write(model);
    std::string text;
    for (const auto& seen : test::list_tar(file))
        if (seen.entry.name == "tiny_mpk.json") text = seen.entry.bytes;
    // Lists of numbers on one line: two-space indent makes a line of each number.
    std::string flat;
    for (const char c : text)
        if (c != '\n' && c != ' ') flat += c;
    EXPECT_EQ(
        flat,
        R"({"name":"tiny","model_path":"tiny_stage0_mla.elf",)"
        R"("model_checksum":"00112233445566778899aabbccddeeff","model_sdk_version":"vartml-1.0.0",)"
        R"("sequence":1,"input_nodes":[{"name":"images","type":"buffer","size":768,)"
        R"("logical_shape":[1,3,8,8],"logical_dtype":"fp32"}],)"
        R"("output_nodes":[{"name":"y","type":"buffer","size":512,"logical_shape":[1,2,8,8],)"
        R"("logical_dtype":"fp32"}],"plugins":[{"name":"MLA_0","sequence":1,"processor":"MLA",)"
        R"("type":"elf","config_params":{"desired_batch_size":16,"actual_batch_size":12,)"
        R"("number_of_quads_to_user":3,"input_shapes":[[1,3,8,8]],"output_shapes":[[1,2,8,8]],)"
        R"("input_data_type":["fp32"],"data_type":["fp32"],"tessellation":{"images":)"
        R"({"tile_shape":[0,0,0,0],"enable_mla":true},"y":{"tile_shape":[0,0,0,0],)"
        R"("enable_mla":true,"dram_layout":"HWC16"}}},"input_nodes":[{"name":"images",)"
        R"("type":"buffer","size":768,"logical_shape":[1,3,8,8],"logical_dtype":"fp32"}],)"
        R"("output_nodes":[{"name":"y","type":"buffer","size":512,"logical_shape":[1,2,8,8],)"
        R"("logical_dtype":"fp32"}],"resources":{"executable":"tiny_stage0_mla.elf"}}]})");
    EXPECT_TRUE(text.starts_with("{\n  \"name\": \"tiny\",\n")) << text;
    EXPECT_TRUE(text.ends_with("}\n"));
}

TEST_F(Tar, GivesTheSameBytesForTheSameModel) {
    for (const auto make : {test::conv_model, test::mixed_model}) {
        write(make());
        const std::string first = slurp(file);
        ASSERT_TRUE(artifact::write_tar(make(), dir / "other.tar.gz"));
        EXPECT_EQ(slurp(dir / "other.tar.gz"), first);
        ASSERT_TRUE(artifact::write_directory(make(), dir / "out", {.tar = true}));
        EXPECT_EQ(slurp(dir / "out/tiny.tar.gz"), first);
        EXPECT_TRUE(artifact::read(dir / "out"));
        // Through the other containers and back.
        auto from_tar = artifact::read(file);
        ASSERT_TRUE(from_tar) << from_tar.error().message;
        ASSERT_TRUE(artifact::write_rai(*from_tar, dir / "m.rai"));
        auto from_rai = artifact::read(dir / "m.rai");
        ASSERT_TRUE(from_rai);
        ASSERT_TRUE(artifact::write_tar(*from_rai, dir / "other.tar.gz"));
        EXPECT_EQ(slurp(dir / "other.tar.gz"), first);
    }
}

TEST_F(Tar, RefusesToWriteWhatItCannotHold) {
    CompiledModel model = test::conv_model();
    model.files.push_back({"notes/a.txt", ""});
    auto written = artifact::write_tar(model, file);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message,
              "entry 'notes/a.txt' has no name in a .tar.gz, which is flat");
    model.files.back().name = "tiny_stage0_hsi.json";
    written = artifact::write_tar(model, file);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message,
              "two entries are called 'tiny_stage0_hsi.json' in a .tar.gz");
    model.files.back() = {"zeros.bin", std::string(65u << 20, '\0')};
    written = artifact::write_tar(model, file);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unsupported);
    EXPECT_NE(written.error().message.find("readers of .tar.gz refuse that; write a .rai"),
              std::string::npos)
        << written.error().message;
    EXPECT_FALSE(fs::exists(file));
}

// ---- where it is unpacked ----------------------------------------------------------------------

TEST_F(Tar, IsUnpackedIntoATemporaryFolderThatIsGone) {
    write(test::mixed_model());
    const auto model = artifact::read(file);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->format, "tar");
    EXPECT_EQ(model->partitions.size(), 3u);
    EXPECT_TRUE(fs::is_empty(dir / "tmp"));
    const auto description = artifact::read(file, {.programs = false});
    ASSERT_TRUE(description) << description.error().message;
    EXPECT_EQ(description->files.size(), model->files.size());
    EXPECT_TRUE(description->partitions[0].graph.nodes.empty());
    EXPECT_TRUE(fs::is_empty(dir / "tmp"));
}

TEST_F(Tar, IsUnpackedWhereARenameHasNoFlags) {
    write(test::mixed_model());
    test_seams.plain_renames = true;
    const auto model = artifact::read(file);
    test_seams.plain_renames = false;
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->partitions.size(), 3u);
}

TEST_F(Tar, NamesAPlaceThatCannotBeWrittenTo) {
    write(test::conv_model());
    ASSERT_EQ(::setenv("TMPDIR", (dir / "nowhere").c_str(), 1), 0);
    const auto model = artifact::read(file);
    ASSERT_FALSE(model);
    EXPECT_EQ(
        model.error().message,
        dir / "nowhere" +
            ": cannot create a folder in it: No such file or directory; name another place in "
            "the environment variable TMPDIR");
    EXPECT_EQ(model.error().code, ErrorCode::io);
}

TEST_F(Tar, IsUnpackedIntoAFolderThatGoesWithTheModel) {
    write(test::conv_model());
    {
        const auto first = read_into(dir / "x", false), second = read_into(dir / "x", false);
        ASSERT_TRUE(first && second);
        for (const char* name : {"x", "x_2"}) {
            EXPECT_EQ(fs::status(dir / name).permissions(), fs::perms::owner_all);
            EXPECT_TRUE(fs::exists(dir / name + "/vaiml_par_0/0/weights.bin"));
        }
    }
    EXPECT_FALSE(fs::exists(dir / "x"));
    EXPECT_FALSE(fs::exists(dir / "x_2"));
}

TEST_F(Tar, IsUnpackedOnceIntoAFolderThatStays) {
    write(test::conv_model());
    fs::create_directory(dir / "kept");  // empty, as mkdtemp leaves it
    ASSERT_TRUE(read_into(dir / "kept/", true));
    EXPECT_EQ(fs::status(dir / "kept").permissions(), fs::perms::owner_all);
    ASSERT_TRUE(artifact::write_directory(test::conv_model(), dir / "out"));
    EXPECT_EQ(tree(dir / "kept"), tree(dir / "out"));
    const auto before = inode(dir / "kept");
    spill(dir / "kept/weights/packed", "packed weights");  // what the runtime may put there
    const auto again = read_into(dir / "kept", true);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->format, "tar");
    EXPECT_EQ(inode(dir / "kept"), before);
    EXPECT_TRUE(artifact::read(dir / "kept"));
}

TEST_F(Tar, IsUnpackedAgainWhereTheFolderDoesNotMatch) {
    write(test::conv_model());
    const auto used = read_into(dir / "kept", true);
    ASSERT_TRUE(used);
    const std::string text = graph::print(used->partitions[0].graph);
    const auto before = inode(dir / "kept");
    // Damaged, open to others, of another model.
    std::string weights = slurp(dir / "kept/vaiml_par_0/0/weights.bin");
    weights[0] ^= 1;
    fs::remove(dir / "kept/vaiml_par_0/0/weights.bin");
    spill(dir / "kept/vaiml_par_0/0/weights.bin", weights);
    ASSERT_TRUE(read_into(dir / "kept", true));
    const auto after = inode(dir / "kept");
    EXPECT_NE(after, before);
    fs::permissions(dir / "kept", fs::perms::all);
    ASSERT_TRUE(read_into(dir / "kept", true));
    EXPECT_EQ(fs::status(dir / "kept").permissions(), fs::perms::owner_all);
    write(test::mixed_model());
    const auto other = read_into(dir / "kept", true);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_EQ(other->partitions.size(), 3u);
    EXPECT_EQ(graph::print(used->partitions[0].graph), text);  // the old mapping still lives
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(dir.path()))
        names.push_back(e.path().filename().string());
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector<std::string>{"kept", "m.tar.gz", "tmp"}));
}

// ---- damage ------------------------------------------------------------------------------------

// One sentence about the file and nothing left behind.
#define EXPECT_REFUSED()                                                                          \
    do {                                                                                          \
        const auto refused = artifact::read(file);                                                \
        ASSERT_FALSE(refused);                                                                    \
        EXPECT_EQ(refused.error().code, ErrorCode::bad_model);                                    \
        EXPECT_TRUE(refused.error().message.starts_with(file + ": ")) << refused.error().message; \
        EXPECT_TRUE(is_plain_text(refused.error().message));                                      \
        EXPECT_TRUE(fs::is_empty(dir / "tmp"));                                                   \
    } while (false)

TEST_F(Tar, TruncatedAnywhereIsRefused) {
    write(test::conv_model());
    const std::string whole = slurp(file);
    for (size_t size = 2; size < whole.size(); size += size < 64 ? 1 : 37) {
        spill(file, whole.substr(0, size));
        EXPECT_REFUSED();
    }
    spill(file, whole.substr(0, whole.size() / 2));
    EXPECT_EQ(artifact::read(file).error().message,
              file +
                  ": the gzip stream cannot be read (truncated gzip input); the file is damaged, "
                  "compile or copy it again");
    spill(file, whole.substr(0, whole.size() - 1));
    EXPECT_REFUSED();
}

TEST_F(Tar, WithAnyBitFlippedIsRefusedOrTheSame) {
    write(test::conv_model());
    const std::string whole = slurp(file);
    const auto content = contents();
    for (size_t at = 10; at < whole.size(); at += 3) {
        SCOPED_TRACE(at);
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
        spill(file, bytes);
        // Some bits of a compressed stream mean nothing: codes that are not used, the last byte's
        // rest.
        if (artifact::read(file) && contents() == content) continue;
        EXPECT_REFUSED();
    }
    std::string bytes = whole;
    bytes[whole.size() - 8] = static_cast<char>(bytes[whole.size() - 8] ^ 1);
    spill(file, bytes);
    const std::string message = artifact::read(file).error().message;
    EXPECT_TRUE(message.starts_with(file + ": the checksum of the gzip stream is 0x")) << message;
    EXPECT_TRUE(message.ends_with("; the file is damaged, compile or copy it again")) << message;
}

// Behind a good checksum.
TEST_F(Tar, WithChangedContentNeverCrashes) {
    write(test::mixed_model());
    std::vector<test::TarEntry> entries;
    for (auto& seen : test::list_tar(file)) entries.push_back({seen.entry.name, seen.entry.bytes});
    const std::string tar = test::make_tar(entries);
    for (size_t at = 0; at < tar.size(); at += 29) {
        if (tar[at] == 0 && at % 5 != 0) continue;
        std::string bytes = tar;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
        spill(file, test::gzip(bytes));
        const auto model = artifact::read(file);
        EXPECT_TRUE(model || is_plain_text(model.error().message)) << model.error().message;
        EXPECT_TRUE(fs::is_empty(dir / "tmp"));
    }
}

// ---- archives of others ------------------------------------------------------------------------

const std::string not_ours =
    ": is not a vartml archive; models of other compilers hold code for other hardware, compile "
    "the ONNX model with 'vartml compile'";

TEST_F(Tar, OfAnotherCompilerIsRefusedAndShown) {
    const std::vector<test::TarEntry> entries = {
        {"resnet/libx.so",
         "\x7f"
         "ELF"},
        {"resnet/resnet_mpk.json", "{\"name\": \"resnet\"}"},
    };
    for (const auto format : {test::TarFormat::ustar, test::TarFormat::gnu, test::TarFormat::pax}) {
        spill(file, test::gzip(test::make_tar(entries, format)));
        const auto model = artifact::read(file);
        ASSERT_FALSE(model);
        EXPECT_EQ(model.error().message, file + not_ours);
        EXPECT_EQ(model.error().code, ErrorCode::bad_model);
        const auto mpk = artifact::foreign_mpk(file);
        ASSERT_TRUE(mpk) << mpk.error().message;
        EXPECT_EQ(*mpk, "{\"name\": \"resnet\"}");
    }
    EXPECT_TRUE(fs::is_empty(dir / "tmp"));
}

TEST_F(Tar, WithoutAModelIsRefused) {
    spill(file, test::gzip(test::make_tar({{"a.txt", "hello"}})));
    EXPECT_EQ(artifact::read(file).error().message, file + not_ours);
    EXPECT_EQ(artifact::foreign_mpk(file).error().message, file + not_ours);
    spill(file, test::gzip(test::make_tar({{"a_mpk.json", "{\"a\": 1, \"a\": 2}"}})));
    EXPECT_EQ(artifact::foreign_mpk(file).error().message,
              file + ": entry 'a_mpk.json' has key 'a' twice in one object");
    spill(file, test::gzip("no archive at all, and longer than the 512 bytes of a header"));
    EXPECT_REFUSED();
}

}  // namespace
}  // namespace vartml
