// SPDX-License-Identifier: Apache-2.0
// The twelve rules for archives that nobody vouches for: each refusal with its literal text, and
// nothing left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "lib/base/text.h"
#include "lib/model/checks.h"
#include "lib/model/compiled_model.h"
#include "lib/model/unpack.h"
#include "tests/model/models.h"
#include "tests/model/tar_archives.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml {
namespace {

using test::TarEntry;
using test::TempDir;
using Entries = std::vector<TarEntry>;

// The entries of a good archive of conv_model.
const Entries& good_entries() {
    static const Entries entries = [] {
        const TempDir dir;
        const auto written = artifact::write_tar(test::conv_model(), dir / "m.tar.gz");
        EXPECT_TRUE(written) << written.error().message;
        Entries out;
        for (auto& seen : test::list_tar(dir / "m.tar.gz"))
            out.push_back({seen.entry.name, seen.entry.bytes});
        return out;
    }();
    return entries;
}

TarEntry& find(Entries& entries, std::string_view name) {
    const auto at = std::ranges::find(entries, name, &TarEntry::name);
    EXPECT_NE(at, entries.end()) << name;
    return *at;
}

void replace(std::string& text, std::string_view from, std::string_view to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
}

// Reads `bytes` as m.tar.gz with a temporary folder of its own; the message after the path.
class TarRules : public testing::Test {
protected:
    void SetUp() override {
        fs::create_directory(dir / "tmp");
        ASSERT_EQ(::setenv("TMPDIR", (dir / "tmp").c_str(), 1), 0);
    }
    void TearDown() override { ::unsetenv("TMPDIR"); }

    std::string refusal(const std::string& bytes) {
        test::spill(dir / "m.tar.gz", bytes);
        const auto model = artifact::read(dir / "m.tar.gz");
        EXPECT_TRUE(fs::is_empty(dir / "tmp"));
        if (model) return "";
        EXPECT_EQ(model.error().code, ErrorCode::bad_model);
        EXPECT_TRUE(is_plain_text(model.error().message));
        const std::string start = dir / "m.tar.gz" + ": ";
        EXPECT_TRUE(model.error().message.starts_with(start)) << model.error().message;
        return model.error().message.substr(std::min(start.size(), model.error().message.size()));
    }
    std::string refusal_of(const Entries& entries) {
        return refusal(test::gzip(test::make_tar(entries)));
    }

    TempDir dir;
};

TEST_F(TarRules, LetTheGoodArchivePass) {
    EXPECT_EQ(refusal_of(good_entries()), "");
    Entries shuffled = good_entries();
    std::ranges::reverse(shuffled);  // the order is ours, not the reader's
    EXPECT_EQ(refusal_of(shuffled), "");
    Entries odd_modes = good_entries();
    for (TarEntry& e : odd_modes) e.mode = 04777;  // setuid is dropped, not refused
    EXPECT_EQ(refusal_of(odd_modes), "");
}

// ---- rules for single entries and for the whole, one row each ----------------------------------

struct Case {
    const char* what;
    std::function<void(Entries&)> spoil;
    std::string sentence;  // after the path
};

void PrintTo(const Case& c, std::ostream* os) {
    *os << c.what;
}

std::function<void(Entries&)> add(TarEntry entry) {
    return [entry = std::move(entry)](Entries& e) { e.push_back(entry); };
}
std::function<void(Entries&)> edit(std::string name, std::string from, std::string to) {
    return [=](Entries& e) { replace(find(e, name).bytes, from, to); };
}
std::function<void(Entries&)> json(std::string text) {
    return [text = std::move(text)](Entries& e) { find(e, "fail_safe_summary.json").bytes = text; };
}

constexpr const char* mpk = "tiny_mpk.json";
const std::string plain = ", expected a regular file in plain ustar format";
const std::string json_entry = "entry 'fail_safe_summary.json' ";
const std::string mpk_entry = "entry 'tiny_mpk.json': ";

const Case cases[] = {
    // count
    {"many entries",
     [](Entries& e) {
         for (int i = 0; i < 1025; ++i) e.push_back({"x" + std::to_string(i) + ".txt", ""});
     },
     "has more than 1024 entries"},
    {"empty archive", [](Entries& e) { e.clear(); }, "has no entries"},
    // path
    {"absolute", add({"/etc/x.json", "{}"}), "entry '/etc/x.json' has an absolute name"},
    {"parent", add({"../x.json", "{}"}), "entry '../x.json' has '.' or '..' in its name"},
    {"hidden parent", add({"a/../../x.json", "{}"}),
     "entry 'a/../../x.json' has '.' or '..' in its name"},
    {"this folder", add({"./x.json", "{}"}), "entry './x.json' has '.' or '..' in its name"},
    {"directory part", add({"a/x.json", "{}"}),
     "entry 'a/x.json' lies in a directory, expected a flat archive"},
    {"empty part", add({"a//x.json", "{}"}),
     "entry 'a//x.json' lies in a directory, expected a flat archive"},
    {"backslash", add({"a\\x.json", "{}"}), "entry 'a\\x.json' has '\\' in its name"},
    {"colon", add({"c:x.json", "{}"}), "entry 'c:x.json' has ':' in its name"},
    {"long path", add({std::string(120, 'a') + '/' + std::string(99, 'b'), ""}),
     "entry '" + printable(std::string(120, 'a') + '/' + std::string(99, 'b')) +
         "' lies in a directory, expected a flat archive"},
    // text
    {"not UTF-8", add({"x\xff.json", "{}"}),
     "entry 'x\\xff.json' has a name that is no UTF-8 text without control characters"},
    {"control character", add({"x\n.json", "{}"}),
     "entry 'x\\x0a.json' has a name that is no UTF-8 text without control characters"},
    {"confusable letter", add({"m\u043edel.vmf", ""}),
     "entry 'm\u043edel.vmf' has a name with characters outside of A-Z, a-z, 0-9, '.', '_' and "
     "'-'"},
    // uniqueness
    {"one name twice", add({"model.vmf", ""}),
     "entry 'model.vmf' is there twice, or differs from another in upper and lower case only"},
    {"one name twice, folded", add({"Model.VMF.json", "{}"}),
     "entry 'Model.VMF.json' is not listed in model.vmf"},
    {"another case", add({"TINY_mpk.json", "{}"}),
     "entry 'TINY_mpk.json' is there twice, or differs from another in upper and lower case only"},
    // type
    {"symbolic link", add({"x.json", "", AE_IFLNK, "/etc/passwd"}),
     "entry 'x.json' is a symbolic link" + plain},
    {"hard link", add({"x.json", "", AE_IFREG, "", "model.vmf"}),
     "entry 'x.json' is a hard link" + plain},
    {"directory", add({"x.json", "", AE_IFDIR}), "entry 'x.json/' is a directory" + plain},
    {"device", add({"x.json", "", AE_IFCHR}), "entry 'x.json' is a device" + plain},
    {"block device", add({"x.json", "", AE_IFBLK}), "entry 'x.json' is a device" + plain},
    {"pipe", add({"x.json", "", AE_IFIFO}), "entry 'x.json' is a named pipe" + plain},
    // extension
    {"shared object", add({"libx.so", "\x7f"}),
     "entry 'libx.so' has an ending that no entry has; known: .json .elf .yaml .vnp .vmf .bin "
     ".txt .modelinfo"},
    {"no extension", add({"README", ""}),
     "entry 'README' has an ending that no entry has; known: .json .elf .yaml .vnp .vmf .bin "
     ".txt .modelinfo"},
    {"name of the directory form", add({"modelinfo", ""}),
     "entry 'modelinfo' has an ending that no entry has; known: .json .elf .yaml .vnp .vmf .bin "
     ".txt .modelinfo"},
    // JSON
    {"large JSON", json(std::string((16u << 20) + 1, ' ')),
     json_entry + "has 16777217 bytes, JSON may have 16777216"},
    {"deep JSON", json(std::string(65, '[') + std::string(65, ']')),
     json_entry + "is nested deeper than 64 levels"},
    {"duplicate key", json(R"({"a": 1, "b": {"a": 2}, "a": 3})"),
     json_entry + "has key 'a' twice in one object"},
    {"JSON not UTF-8", json("{\"a\": \"\xc3\x28\"}"),
     json_entry + "is no JSON in UTF-8 from byte 9 on"},
    {"integer beyond 64 bits", json("[9223372036854775808]"),
     json_entry + "holds the number 9223372036854775808, integers have at most 64 bits with sign"},
    {"integer beyond all", json("[-123456789012345678901]"),
     json_entry + "holds the number -123456789012345678901, integers have at most 64 bits with "
                  "sign"},
    {"infinite double", json("[1e999]"),
     json_entry + "holds a number that no double can hold, at byte 6"},
    {"no JSON", json("{"), json_entry + "is no JSON in UTF-8 from byte 2 on"},
    // schema
    {"missing key", edit(mpk, "\"sequence\": 1,\n  \"input", "\"input"),
     mpk_entry + "/sequence: is missing"},
    {"wrong type", edit(mpk, "\"size\": 768", "\"size\": \"768\""),
     mpk_entry + "/input_nodes/0/size: is string, expected a whole number from 0 on"},
    {"wrong type in a list",
     edit(mpk, "\"logical_shape\": [\n        1,", "\"logical_shape\": [\n        -1,"),
     mpk_entry + "/input_nodes/0/logical_shape: is array, expected a list of whole numbers"},
    {"unknown key", edit(mpk, "\"sequence\"", "\"colour\": 1, \"sequence\""),
     mpk_entry + "/colour: is a key that nobody knows"},
    {"no object", [](Entries& e) { find(e, mpk).bytes = "[]"; }, mpk_entry + "is no JSON object"},
    {"no ELF file", [](Entries& e) { find(e, "tiny_stage0_mla.elf").bytes[5] = 2; },  // big-endian
     "entry 'tiny_stage0_mla.elf' is no little-endian ELF64 file"},
    {"executable ELF file", [](Entries& e) { find(e, "tiny_stage0_mla.elf").bytes[18] = 62; },
     "entry 'tiny_stage0_mla.elf' has ELF type 2, machine 62 and 0 program headers, expected type "
     "2, machine 0 and none"},
    {"ELF file without sections",
     [](Entries& e) { find(e, "tiny_stage0_mla.elf").bytes.resize(64); },
     "entry 'tiny_stage0_mla.elf' has no section .vartml.program"},
    // allow-lists
    {"processor", edit(mpk, "\"MLA\"", "\"GPU\""),
     mpk_entry + "/plugins/0/processor: is 'GPU', allowed: MLA, A65"},
    {"data type", edit(mpk, "\"logical_dtype\": \"fp32\"", "\"logical_dtype\": \"fp8\""),
     mpk_entry + "/input_nodes/0/logical_dtype: is 'fp8', which is no data type"},
    {"layout", edit(mpk, "\"HWC16\"", "\"HWC32\""),
     mpk_entry + "/plugins/0/config_params/tessellation/y/dram_layout: is 'HWC32', allowed: HWC, "
                 "HWC16"},
    // references
    {"absent file", edit(mpk, "\"executable\": \"tiny_stage0", "\"executable\": \"tiny_stage7"),
     mpk_entry + "/plugins/0/resources/executable: names 'tiny_stage7_mla.elf', which is not in "
                 "the archive"},
    {"absent entry",
     [](Entries& e) {
         std::erase_if(e, [](const TarEntry& t) { return t.name == "tiny_stage0_hsi.json"; });
     },
     "entry 'tiny_stage0_hsi.json' is missing, but model.vmf lists it"},
    {"absent description",
     [](Entries& e) { std::erase_if(e, [](const TarEntry& t) { return t.name == mpk; }); },
     "entry 'tiny_mpk.json' is missing"},
    {"file that nobody names", add({"more.txt", "hello"}),
     "entry 'more.txt' is not listed in model.vmf"},
    {"size", [](Entries& e) { find(e, "tiny.modelinfo").bytes += ' '; },
     "entry 'tiny.modelinfo' has 25 bytes, recorded in model.vmf 24"},
    {"checksum", [](Entries& e) { find(e, "tiny.modelinfo").bytes[1] = 'M'; },
     "entry 'modelinfo' has the checksum 0x"},  // the rest is below
    {"two producers",
     edit(mpk, "\"output_nodes\": [\n        {\n          \"name\": \"y\"",
          "\"output_nodes\": [\n        {\n          \"name\": \"images\""),
     mpk_entry + "/plugins/0: makes tensor 'images', as /input_nodes does"},
    {"no producer",
     edit(mpk, "\"output_nodes\": [\n        {\n          \"name\": \"y\"",
          "\"output_nodes\": [\n        {\n          \"name\": \"z\""),
     mpk_entry + "/output_nodes: takes tensor 'y', which nothing makes"},
    {"another model's description",
     edit(mpk, "00112233445566778899aabbccddeeff", "f0112233445566778899aabbccddeeff"),
     mpk_entry + "/model_checksum: is 'f0112233445566778899aabbccddeeff', model.vmf says "
                 "00112233445566778899aabbccddeeff"},
    {"edited description", edit(mpk, "\"actual_batch_size\": 1", "\"actual_batch_size\": 2"),
     mpk_entry + "differs from what model.vmf says, it was edited or damaged"},
};

class TarRule : public TarRules, public testing::WithParamInterface<Case> {};
TEST_P(TarRule, IsNamedWithEntryAndLimit) {
    Entries entries = good_entries();
    GetParam().spoil(entries);
    const std::string found = refusal_of(entries);
    const bool begins = GetParam().sentence.ends_with("0x");
    EXPECT_EQ(begins ? found.substr(0, GetParam().sentence.size()) : found, GetParam().sentence);
    EXPECT_TRUE(!begins || found.find(", recorded in model.vmf 0x") != found.npos) << found;
}
INSTANTIATE_TEST_SUITE_P(Archives, TarRule, testing::ValuesIn(cases));

// ---- rules that need bytes which no archive writer makes ---------------------------------------

TEST_F(TarRules, A1LimitsTheFile) {
    const std::string good = test::gzip(test::make_tar(good_entries()));
    test::spill(dir / "m.tar.gz", good);
    constexpr off_t over = (off_t{4} << 30) + 1;
    if (::truncate((dir / "m.tar.gz").c_str(), over) != 0) GTEST_SKIP() << "no sparse file here";
    const auto model = artifact::read(dir / "m.tar.gz");
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().message,
              dir / "m.tar.gz" + ": has 4294967297 bytes, at most 4294967296 bytes are read");
}

TEST_F(TarRules, A1LimitsAnEntry) {
    std::string tar = test::make_tar({{"x.bin", "x"}});
    test::change_header(tar, 0, 124, "40000000001\0");  // 4 GiB + 1, octal
    EXPECT_EQ(refusal(test::gzip(tar)),
              "entry 'x.bin' has 4294967297 bytes, at most 4294967296 bytes are read");
}

// The limit of the whole is tried with a smaller one: 8 GiB take half a minute to unpack.
TEST_F(TarRules, A1LimitsTheWhole) {
    test::spill(dir / "m.tar.gz", test::gzip(test::make_tar(good_entries())));
    const Fd folder(::open((dir / "tmp").c_str(), O_RDONLY | O_DIRECTORY));
    artifact::UnpackOptions options;
    EXPECT_EQ(options.limits.total_bytes, uint64_t{8} << 30);
    options.limits.total_bytes = 10000;
    const auto listing = artifact::unpack_tar(dir / "m.tar.gz", folder, options);
    ASSERT_FALSE(listing);
    EXPECT_EQ(listing.error().message, dir / "m.tar.gz" + ": unpacks to more than 10000 bytes");
}

TEST_F(TarRules, A1LimitsTheExpansion) {
    const std::string bomb = test::gzip(test::make_tar({{"x.bin", std::string(65u << 20, '\0')}}));
    EXPECT_LT(bomb.size(), 100000u);
    EXPECT_EQ(refusal(bomb), "has " + std::to_string(bomb.size()) +
                                 " bytes and unpacks to more than 200 times as many");
    const std::string small = test::gzip(test::make_tar({{"x.bin", std::string(60u << 20, '\0')}}));
    EXPECT_TRUE(refusal(small).starts_with("is not a vartml archive")) << "free up to 64 MiB";
}

TEST_F(TarRules, A1LetsNothingFollow) {
    const std::string good = test::gzip(test::make_tar(good_entries()));
    EXPECT_EQ(refusal(good + "tail"),
              "has 4 bytes behind the end of the gzip stream, expected none");
    // The last bytes of the file must not pass for the end of the stream.
    EXPECT_EQ(refusal(good + good.substr(good.size() - 8)),
              "has 8 bytes behind the end of the gzip stream, expected none");
    const std::string tar = test::make_tar(good_entries());
    EXPECT_EQ(refusal(test::gzip(tar + std::string(1024, 'x'))),
              "has data behind the end of the tar archive");
    EXPECT_EQ(refusal(test::gzip(tar + std::string(100000, 'x'))),
              "has data behind the end of the tar archive");
    EXPECT_EQ(refusal(test::gzip(tar + std::string(20480, '\0'))), "");  // padding of other writers
    // A second stream behind the first.
    EXPECT_NE(refusal(good + test::gzip("x")), "");
}

TEST_F(TarRules, A3LimitsTheLength) {
    // 155 bytes before the slash and 100 behind it fill the header; more takes an extended one.
    const std::string prefix(155, 'p'), name(100, 'n');
    EXPECT_EQ(refusal(test::gzip(test::make_tar({{prefix + '/' + name, ""}, {"model.vmf", ""}}))),
              "entry '" + printable(prefix + '/' + name) +
                  "' has a name of 256 bytes, expected 1 to 255");
}

TEST_F(TarRules, A6RefusesExtendedEntries) {
    Entries long_name = good_entries();
    long_name.push_back({std::string(120, 'x') + ".json", "{}"});
    const auto entry = [](const std::string& name) { return "entry '" + name + "' "; };
    EXPECT_EQ(refusal(test::gzip(test::make_tar(good_entries(), test::TarFormat::gnu))),
              entry(good_entries()[0].name) + "is an extended one (GNU tar format)" + plain);
    EXPECT_EQ(refusal(test::gzip(
                  test::make_tar({{"model.vmf", ""}, long_name.back()}, test::TarFormat::pax))),
              entry(printable(long_name.back().name)) +
                  "is an extended one (POSIX pax interchange format)" + plain);
    const std::string good = test::gzip(test::make_tar(good_entries()));
    EXPECT_EQ(refusal(test::gzip(good)), "is compressed more than once");
}

TEST_F(TarRules, A8CoversTheBytesBehindANul) {
    EXPECT_EQ(artifact::json_fault(std::string("{}\0{", 4)), "is no JSON in UTF-8 from byte 3 on");
    EXPECT_EQ(artifact::json_fault(R"({"a": [1, -2.5e3, "x", null, true], "b": {"a": 1}})"), "");
    EXPECT_EQ(artifact::json_fault("9223372036854775807"), "");
    EXPECT_EQ(artifact::json_fault(std::string(64, '[') + std::string(64, ']')), "");
}

// ---- A12: where the entries go ------------------------------------------------------------------

TEST_F(TarRules, A12OverwritesNothing) {
    test::spill(dir / "m.tar.gz", test::gzip(test::make_tar(good_entries())));
    fs::create_directory(dir / "into");
    const Fd folder(::open((dir / "into").c_str(), O_RDONLY | O_DIRECTORY));
    // A file and a link, as if somebody else had put them into the fresh folder.
    test::spill(dir / "outside", "precious");
    fs::create_symlink(dir / "outside", dir / "into/model.vmf");
    auto listing = artifact::unpack_tar(dir / "m.tar.gz", folder);
    ASSERT_FALSE(listing);
    EXPECT_EQ(listing.error().message,
              dir / "m.tar.gz" + ": entry 'model.vmf' would overwrite a file where it is unpacked");
    EXPECT_EQ(test::slurp(dir / "outside"), "precious");
}

TEST_F(TarRules, A12PutsAModelThatStaysIntoAFreshFolderOfItsOwn) {
    test::spill(dir / "m.tar.gz", test::gzip(test::make_tar(good_entries())));
    const auto read_into = [&](const std::string& path) {
        return artifact::read(dir / "m.tar.gz", {.extraction = {path, true}});
    };
    test::spill(dir / "mine/notes.txt", "precious");
    const auto refused = read_into(dir / "mine");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().message,
              dir / "mine" +
                  ": exists and was not made by vartml (no model.vmf), so it is not replaced; "
                  "remove it or give another place");
    EXPECT_EQ(test::slurp(dir / "mine/notes.txt"), "precious");
    fs::create_directory_symlink(dir / "mine", dir / "link");
    const auto link = read_into(dir / "link");
    ASSERT_FALSE(link);
    EXPECT_EQ(link.error().message,
              dir / "link" +
                  ": exists and is no folder, so it is not replaced; remove it or give another "
                  "place");
    EXPECT_TRUE(fs::is_symlink(dir / "link"));
}

TEST_F(TarRules, A12LeavesNothingBehindOnFailure) {
    Entries entries = good_entries();
    find(entries, "tiny.modelinfo").bytes[1] = 'M';  // found at the very end
    test::spill(dir / "m.tar.gz", test::gzip(test::make_tar(entries)));
    for (const artifact::Extraction& e :
         {artifact::Extraction{}, artifact::Extraction{dir / "kept", true},
          artifact::Extraction{dir / "passing", false}})
        EXPECT_FALSE(artifact::read(dir / "m.tar.gz", {.extraction = e}));
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(dir.path()))
        names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector<std::string>{"m.tar.gz", "tmp"}));
}

}  // namespace
}  // namespace vartml
