// SPDX-License-Identifier: Apache-2.0
// The side cache of packed weights, seen by who loads programs: results never depend on it.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/run/softnpu/softnpu.h"
#include "tests/model/models.h"
#include "tests/support/graphs.h"
#include "tests/support/run_once.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace vartml::device {
namespace {

constexpr size_t inputs = 3 * 8 * 8;

// Weights for our own kernels and for oneDNN, a bias that is scaled, a constant of lib/graph.
std::shared_ptr<const Program> program(const std::string& identity, float first_weight = 1) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->identity = identity;
    program->graph = graph::must_parse(R"(graph g
input %x : f32[1,3,8,8]
const %w : f32[2,3,1,1] = {)" + std::to_string(first_weight) +
                                       R"(, 2.0, 3.0, 4.0, 5.0, 6.0}
const %b : f32[2] = {0.5, -0.5}
const %m : f32[2,2] = {1.0, -1.0, 0.25, 2.0}
const %a : f32[2] = {1.0, 2.0}
%c = Conv %x, %w, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,8,8]
%g = GlobalAveragePool %c : f32[1,2,1,1]
%f = Reshape %g {shape=[1,2]} : f32[1,2]
%y = Gemm %f, %m, %a {alpha=0.5, beta=2.0, transA=0, transB=0} : f32[1,2]
output %y
)");
    for (auto [ids, infos] : {std::pair(&program->graph.inputs, &program->inputs),
                              std::pair(&program->graph.outputs, &program->outputs)})
        for (const graph::ValueId id : *ids) {
            infos->push_back(test::border_tensor(program->graph, id));
            infos->back().hw = infos->back().cpu;
        }
    return program;
}

struct Loaded {
    std::vector<float> result;
    size_t private_bytes = 0;
    std::vector<std::string> notes;
};

Loaded load(const std::string& folder, const std::string& identity = "one",
            Numerics numerics = Numerics::f32, float first_weight = 1) {
    Loaded loaded;
    const LoadOptions options{
        .numerics = numerics,
        .threads = 2,
        .concurrent_runs = 2,
        .weights_cache_dir = folder,
        .note = [&loaded](const std::string& text) { loaded.notes.push_back(text); }};
    auto executable = softnpu_device().load(program(identity, first_weight), options);
    EXPECT_TRUE(executable) << executable.error().message;
    if (!executable) return loaded;
    std::vector<float> x(inputs);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 8;
    loaded.result.resize(2);
    const void* const in[] = {x.data()};
    void* const out[] = {loaded.result.data()};
    EXPECT_TRUE(test::run_once(**executable, in, out));
    loaded.private_bytes = (*executable)->private_weight_bytes();
    return loaded;
}

std::vector<fs::path> files_in(const std::string& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    return files;
}

class WeightCache : public testing::Test {
protected:
    test::TempDir dir;
    const std::string folder = dir / "a/weights";
    const Loaded without = load("");

    fs::path only_file() {
        const auto files = files_in(folder);
        EXPECT_EQ(files.size(), 1u);
        return files.empty() ? fs::path() : files[0];
    }
    static ino_t inode(const fs::path& path) {
        struct stat info{};
        EXPECT_EQ(::stat(path.c_str(), &info), 0);
        return info.st_ino;
    }
};

// Whoever may write to a file may have put other weights there.
TEST_F(WeightCache, TakesNoFileThatOthersMayWrite) {
    const mode_t before = ::umask(0);
    const Loaded first = load(folder);
    ::umask(before);
    const fs::path file = only_file();
    EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
    const ino_t old = inode(file);
    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    EXPECT_EQ(load(folder).result, first.result);
    EXPECT_NE(inode(only_file()), old);
    EXPECT_EQ(fs::status(only_file()).permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(WeightCache, IsNotThereWithoutAFolder) {
    EXPECT_GT(without.private_bytes, 0u);
    EXPECT_TRUE(without.notes.empty());
}

TEST_F(WeightCache, IsNotThereForAProgramThatCannotBeToldFromOthers) {
    EXPECT_EQ(load(folder, "").private_bytes, without.private_bytes);
    EXPECT_FALSE(fs::exists(folder));
}

TEST_F(WeightCache, IsBuiltByTheFirstLoadAndUsedByTheNext) {
    const Loaded cold = load(folder);
    const ino_t file = inode(only_file());
    const Loaded warm = load(folder);
    EXPECT_EQ(inode(only_file()), file) << "built again";
    for (const Loaded& loaded : {cold, warm}) {
        EXPECT_EQ(loaded.result, without.result);
        EXPECT_EQ(loaded.private_bytes, 0u);
        EXPECT_TRUE(loaded.notes.empty());
    }
}

// The bytes of the file are those that are computed with: other weights under the same key show.
TEST_F(WeightCache, IsWhatIsComputedWith) {
    const Loaded other = load(folder, "one", Numerics::f32, 9);
    EXPECT_NE(other.result, without.result);
    EXPECT_EQ(load(folder).result, other.result);
}

TEST_F(WeightCache, KeepsProgramsAndTypesApart) {
    load(folder);
    const Loaded other = load(folder, "two", Numerics::f32, 9);
    EXPECT_NE(other.result, without.result);
    load(folder, "one", Numerics::bf16);
    EXPECT_EQ(files_in(folder).size(), 3u);
    EXPECT_EQ(load(folder).result, without.result);
}

struct Damage {
    const char* why;
    void (*apply)(std::string& bytes);
};
const Damage damages[] = {
    {"empty", [](std::string& b) { b.clear(); }},
    {"cut inside the header", [](std::string& b) { b.resize(40); }},
    {"cut by one byte", [](std::string& b) { b.pop_back(); }},
    {"longer by one byte", [](std::string& b) { b += '\0'; }},
    {"of another format", [](std::string& b) { b[7] = '0'; }},
    {"of another key", [](std::string& b) { b[8] = b[8] == '0' ? '1' : '0'; }},
    {"another size in the header", [](std::string& b) { ++b[72]; }},
    {"another number of pieces", [](std::string& b) { ++b[80]; }},
    {"another checksum", [](std::string& b) { ++b[84]; }},
    {"a flipped bit in the table", [](std::string& b) { b[90] ^= 1; }},
    {"a flipped bit in the last piece", [](std::string& b) { b[b.size() - 64] ^= 1; }},
};

TEST_F(WeightCache, RebuildsAFileThatIsDamaged) {
    load(folder);
    const fs::path file = only_file();
    const std::string whole = test::slurp(file);
    for (const Damage& damage : damages) {
        SCOPED_TRACE(damage.why);
        std::string bytes = whole;
        damage.apply(bytes);
        fs::remove(file);
        test::spill(file, bytes);
        const Loaded loaded = load(folder);
        EXPECT_EQ(loaded.result, without.result);
        EXPECT_EQ(loaded.private_bytes, 0u);
        EXPECT_EQ(test::slurp(file), whole);
        EXPECT_EQ(files_in(folder).size(), 1u) << "something was left behind";
    }
}

TEST_F(WeightCache, GivesWayToPrivateMemoryWhereItCannotBeWritten) {
    test::spill(dir / "file", "no folder");
    const Loaded loaded = load(dir / "file/weights");
    EXPECT_EQ(loaded.result, without.result);
    EXPECT_EQ(loaded.private_bytes, without.private_bytes);
    ASSERT_EQ(loaded.notes.size(), 1u);
    EXPECT_NE(loaded.notes[0].find("packed weights stay in private memory"), std::string::npos);
    EXPECT_NE(loaded.notes[0].find(dir / "file"), std::string::npos) << loaded.notes[0];
}

TEST_F(WeightCache, FollowsNoLinkAndWritesThroughNone) {
    load(folder);
    const fs::path file = only_file();
    test::spill(dir / "elsewhere", "mine");
    fs::remove(file);
    fs::create_symlink(dir / "elsewhere", file);
    EXPECT_EQ(load(folder).private_bytes, 0u);
    EXPECT_FALSE(fs::is_symlink(file));
    EXPECT_EQ(test::slurp(dir / "elsewhere"), "mine");
}

// Each builds, finds and loses the file under the hands of the other.
TEST_F(WeightCache, IsRightForProcessesThatBuildItAtOnce) {
    load(folder);
    const fs::path file = only_file();
    pid_t children[2];
    for (pid_t& child : children) {
        child = ::fork();
        ASSERT_GE(child, 0);
        if (child > 0) continue;
        bool good = true;
        for (int round = 0; round < 100 && good; ++round) {
            std::error_code ignored;
            fs::remove(file, ignored);
            good = load(folder).result == without.result && load(folder).result == without.result;
        }
        ::_exit(good ? 0 : 1);
    }
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    const Loaded after = load(folder);
    EXPECT_EQ(after.result, without.result);
    EXPECT_EQ(after.private_bytes, 0u);
    EXPECT_EQ(files_in(folder).size(), 1u) << "something was left behind";
}

// What lies in the folder when a file is built; `days` since its last use.
struct Old {
    const char* why;
    std::string name;
    int days;
    bool stays;
};

TEST_F(WeightCache, RemovesWhatNobodyUses) {
    load(folder);
    const std::string own = only_file().filename();
    fs::remove(only_file());
    const std::string program = own.substr(0, 32), other(32, 'a'), build(32, 'b');
    const Old files[] = {
        {"another library's, used lately", program + '-' + build + ".weights", 1, true},
        {"another library's", program + '-' + other + ".weights", 3, false},
        {"another program's", other + '-' + build + ".weights", 20, true},
        {"another program's, unused", build + '-' + build + ".weights", 31, false},
        {"a writer's at work", '.' + own + ".tmp-0123456789", 0, true},
        {"of a writer that was killed", '.' + own + ".tmp-abcdefghij", 1, false},
        {"somebody's own", "notes.txt", 400, true},
        {"somebody's own with our ending", "my.weights", 400, true},
    };
    for (const Old& old : files) {
        test::spill(folder + '/' + old.name, "x");
        fs::last_write_time(folder + '/' + old.name,
                            fs::file_time_type::clock::now() - std::chrono::hours(24 * old.days));
    }
    load(folder);
    for (const Old& old : files)
        EXPECT_EQ(fs::exists(folder + '/' + old.name), old.stays) << old.why;
    EXPECT_TRUE(fs::exists(folder + '/' + own));
}

TEST_F(WeightCache, KeepsNoMoreThan256Files) {
    fs::create_directories(folder);
    const std::string build(32, 'b');
    for (int i = 0; i < 300; ++i) {
        const std::string number = std::to_string(1000 + i);
        const std::string path = folder + '/' + std::string(28, 'a') + number + '-' + build;
        test::spill(path + ".weights", "x");
        fs::last_write_time(path + ".weights",
                            fs::file_time_type::clock::now() - std::chrono::seconds(i));
    }
    load(folder);
    EXPECT_EQ(files_in(folder).size(), 256u);
    EXPECT_TRUE(fs::exists(folder + '/' + std::string(28, 'a') + "1000-" + build + ".weights"));
}

TEST_F(WeightCache, RemembersThatAFileIsInUse) {
    load(folder);
    const auto now = fs::file_time_type::clock::now();
    fs::last_write_time(only_file(), now - std::chrono::hours(24 * 20));
    load(folder);
    EXPECT_GT(fs::last_write_time(only_file()), now - std::chrono::hours(24));
}

}  // namespace
}  // namespace vartml::device
