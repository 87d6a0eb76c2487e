// SPDX-License-Identifier: Apache-2.0
// `vartml compile --quantize` as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml {
namespace {

namespace fs = std::filesystem;
using test::TinyOnnx;

// float32 in NumPy's format.
std::string npy(const std::string& shape, const std::vector<float>& values) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(64 - (10 + header.size() + 1) % 64, ' ');
    header += '\n';
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size() & 0xFF);
    bytes += static_cast<char>(header.size() >> 8);
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return bytes;
}

// A picture of 16 by 16 pixels.
std::string png(int seed) {
    const auto number = [](uint32_t value) {
        std::string bytes;
        for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
        return bytes;
    };
    const auto chunk = [&](const std::string& type, const std::string& data) {
        const std::string both = type + data;
        const uLong sum =
            crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size()));
        return number(static_cast<uint32_t>(data.size())) + both +
               number(static_cast<uint32_t>(sum));
    };
    std::string rows;
    for (int y = 0; y < 16; ++y) {
        rows += '\0';
        for (int i = 0; i < 3 * 16; ++i)
            rows += static_cast<char>(128 + 100 * std::sin(0.2 * i * (seed + 1) + y));
    }
    uLongf size = compressBound(static_cast<uLong>(rows.size()));
    std::string packed(size, '\0');
    compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(rows.data()), static_cast<uLong>(rows.size()));
    packed.resize(size);
    return "\x89PNG\r\n\x1a\n" +
           chunk("IHDR", number(16) + number(16) + std::string("\x08\x02\0\0\0", 5)) +
           chunk("IDAT", packed) + chunk("IEND", "");
}

class Quantize : public testing::Test {
protected:
    void SetUp() override {
        const char* program = std::getenv("VARTML_PROGRAM");
        ASSERT_TRUE(program) << "set VARTML_PROGRAM to the program vartml";
        program_ = program;
        TinyOnnx m;
        m.input("x", {1, 3, 8, 8})
            .weights("w", {4, 3, 3, 3})
            .weights("v", {5, 4, 1, 1})
            .node("Conv", {"x", "w"}, {"a"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
            .node("Relu", {"a"}, {"r"})
            .node("Conv", {"r", "v"}, {"y"})
            .output("y")
            .save(dir_ / "net.onnx");
        for (int sample = 0; sample < 3; ++sample) {
            std::vector<float> values(192);
            for (size_t i = 0; i < values.size(); ++i)
                values[i] = std::sin(static_cast<float>(i * (static_cast<size_t>(sample) + 1)));
            test::spill(dir_ / ("set/" + std::to_string(sample) + ".npy"),
                        npy("1, 3, 8, 8", values));
        }
    }

    // Files of the calibration cache.
    std::vector<fs::path> kept() {
        const fs::path folder = dir_ / "cache/vartml/calibration";
        std::vector<fs::path> files;
        if (fs::exists(folder))
            files.assign(fs::directory_iterator(folder), fs::directory_iterator{});
        return files;
    }
    // Compiles, and says whether the samples had to be measured.
    bool measures(const std::string& arguments) {
        EXPECT_EQ(run("compile net.onnx -o net.rai --force --quantize " + arguments), 0) << err_;
        const bool before = out_.find("on 3 samples, measured before:\n") != std::string::npos;
        EXPECT_NE(before, out_.find("on 3 samples:\n") != std::string::npos) << out_;
        return !before;
    }

    // Exit status; the streams go to out and err.
    int run(const std::string& arguments, const std::string& setup = "") {
        const std::string command = "cd '" + dir_.path() + "' && XDG_CACHE_HOME='" + dir_.path() +
                                    "/cache' " + setup + "'" + program_ + "' " + arguments +
                                    " >out.txt 2>err.txt";
        const int status = std::system(command.c_str());
        out_ = test::slurp(dir_ / "out.txt");
        err_ = test::slurp(dir_ / "err.txt");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    test::TempDir dir_;
    std::string program_, out_, err_;
};

TEST_F(Quantize, MakesAnInt8ModelAndSaysWhatItCost) {
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize set"), 0) << err_;
    EXPECT_NE(out_.find("int8 against float32 on 3 samples:\noutput 'y': correlation 0.99"),
              std::string::npos)
        << out_;
    // Of 6912 and 1280; the last stays float.
    EXPECT_NE(out_.find("int8: 84.4 % of the multiply-adds (1 operators)\n"), std::string::npos)
        << out_;
    ASSERT_EQ(run("inspect net.rai --summary"), 0);
    EXPECT_NE(out_.find("Model data type: int8 quantized"), std::string::npos) << out_;
}

// The model's cost is measured on the finished file, whatever lies beside it.
TEST_F(Quantize, LeavesNothingBesideTheModelButTheModel) {
    ASSERT_EQ(run("compile net.onnx -o float/model"), 0) << err_;
    test::spill(dir_ / "full/notes.txt", "precious");
    for (const std::string place :
         {"alone/net.rai", "alone/net.tar.gz", "full/net.tar.gz", "float/model/net.tar.gz"}) {
        fs::remove_all(dir_ / "alone");
        const fs::path file = dir_ / place, folder = file.parent_path();
        std::set<fs::path> names = {file.filename()};
        if (fs::exists(folder))
            for (const auto& entry : fs::directory_iterator(folder))
                names.insert(entry.path().filename());
        ASSERT_EQ(run("compile net.onnx --quantize-target 0 --quantize set -o " + place), 0)
            << err_;
        EXPECT_NE(out_.find("int8 against float32"), std::string::npos) << out_;
        for (const auto& entry : fs::directory_iterator(folder))
            EXPECT_EQ(names.erase(entry.path().filename()), 1u) << entry.path();
        EXPECT_TRUE(names.empty()) << place << ": " << *names.begin() << " is gone";
    }
}

TEST_F(Quantize, NeverReplacesTheSetThatItMeasures) {
    ASSERT_EQ(run("compile net.onnx -o made"), 0) << err_;
    fs::rename(dir_ / "set", dir_ / "made/set");
    EXPECT_EQ(run("compile net.onnx --quantize made/set -o made"), 2);
    EXPECT_NE(err_.find("made: holds 'made/set', so it is not replaced; give another place"),
              std::string::npos)
        << err_;
    EXPECT_TRUE(fs::exists(dir_ / "made/set/0.npy"));
}

// Of classes, and of numbers that are not float32.
TEST_F(Quantize, MeasuresOutputsOfEveryType) {
    for (const auto& [type, line] : {std::pair{TinyOnnx::int64, "% of the elements are the same\n"},
                                     std::pair{TinyOnnx::fp16, "correlation 0.99"}}) {
        TinyOnnx m;
        m.input("x", {1, 3, 8, 8})
            .weights("w", {4, 3, 3, 3})
            .weights("v", {5, 4, 1, 1})
            .node("Conv", {"x", "w"}, {"a"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
            .node("Relu", {"a"}, {"r"})
            .node("Conv", {"r", "v"}, {"s"});
        if (type == TinyOnnx::int64)
            m.node("ArgMax", {"s"}, {"y"}, {{"axis", int64_t{1}}});
        else
            m.node("Cast", {"s"}, {"y"}, {{"to", int64_t{type}}});
        m.output("y", {}, type).save(dir_ / "typed.onnx");
        ASSERT_EQ(run("compile typed.onnx -o typed.rai --force --quantize set"), 0) << err_;
        const size_t begin = out_.find("int8 against float32 on 3 samples:\noutput 'y': ");
        ASSERT_NE(begin, std::string::npos) << out_;
        EXPECT_NE(out_.find(line, begin), std::string::npos) << out_;
    }
}

// A target that classes miss keeps operators in floats, as one that other numbers miss.
TEST_F(Quantize, HoldsWholeNumbersToTheTarget) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {16, 3, 3, 3})
        .weights("v", {64, 16, 1, 1})
        .node("Conv", {"x", "w"}, {"a"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
        .node("Relu", {"a"}, {"r"})
        .node("Conv", {"r", "v"}, {"s"})
        .node("ArgMax", {"s"}, {"y"}, {{"axis", int64_t{1}}})
        .output("y", {}, TinyOnnx::int64)
        .save(dir_ / "classes.onnx");
    ASSERT_EQ(run("compile classes.onnx -o c.rai --quantize set --quantize-target 0"), 0) << err_;
    const std::string missed = "output 'y': 9";  // of 100 %
    EXPECT_NE(out_.find(missed), std::string::npos) << out_;
    ASSERT_EQ(run("compile classes.onnx -o c.rai --force --quantize set --quantize-target 1"), 0)
        << err_;
    EXPECT_EQ(out_.find(missed), std::string::npos) << out_;
}

// Tensors that are measured look like outputs of the family, too.
TEST_F(Quantize, HoldsTheDecoderAgainstTheOutputsOfTheModelAlone) {
    EXPECT_EQ(run("compile net.onnx -o net.rai --quantize set --decoder segment"), 0) << err_;
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {4, 3, 3, 3})
        .weights("v", {4, 5})
        .node("Conv", {"x", "w"}, {"a"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
        .node("Relu", {"a"}, {"r"})
        .node("GlobalAveragePool", {"r"}, {"g"})
        .node("Flatten", {"g"}, {"f"})
        .node("Gemm", {"f", "v"}, {"y"})
        .output("y")
        .save(dir_ / "list.onnx");
    EXPECT_EQ(run("compile list.onnx -o list.rai --quantize set --decoder classify"), 0) << err_;
}

// One scale for all channels of a tensor: what the second one says is lost beside the first, and
// Concat keeps them from being brought to one size.
TEST_F(Quantize, WarnsOfAModelThatDoesNotSurviveIt) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .floats("w", {2, 3, 1, 1}, {10000, 10000, 10000, 1, -1, 1})
        .floats("v", {1, 4, 1, 1}, {0, 1, 0, 1})
        .node("Conv", {"x", "w"}, {"a"})
        .node("Relu", {"a"}, {"r"})
        .node("Concat", {"r", "r"}, {"c"}, {{"axis", int64_t{1}}})
        .node("Conv", {"c", "v"}, {"y"})
        .output("y")
        .save(dir_ / "fine.onnx");
    ASSERT_EQ(run("compile fine.onnx -o fine.rai --quantize set --quantize-target 0"), 0) << err_;
    EXPECT_EQ(out_.find("stay float"), std::string::npos) << out_;
    EXPECT_NE(
        err_.find("WARNING: --quantize: output 'y' of the int8 model is not that of the float "
                  "model, correlation "),
        std::string::npos)
        << out_ << err_;
    // What nobody asks for is the usual target.
    ASSERT_EQ(run("compile fine.onnx -o kept.rai --quantize set"), 0) << err_;
    EXPECT_EQ(err_.find("is not that of"), std::string::npos) << err_;
    EXPECT_NE(out_.find("1 convolutions and products stay float (--quantize-target)"),
              std::string::npos)
        << out_;
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize set"), 0) << err_;
    EXPECT_EQ(err_.find("is not that of"), std::string::npos) << err_;
}

TEST_F(Quantize, KeepsNothingInFloatsThatAgrees) {
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize set --quantize-target 0.9"), 0) << err_;
    EXPECT_EQ(out_.find("stay float"), std::string::npos) << out_;
    EXPECT_EQ(run("compile net.onnx -o net.rai --quantize-target 0.9"), 2);
    EXPECT_NE(err_.find("--quantize-target: is for --quantize"), std::string::npos) << err_;
}

TEST_F(Quantize, TakesAPictureOfEachSecondOfAClip) {
    fs::create_directory(dir_ / "clips");
    const std::string line = "cd '" + dir_.path() +
                             "' && gst-launch-1.0 -q videotestsrc num-buffers=40 ! "
                             "video/x-raw,width=32,height=32,framerate=10/1 ! jpegenc ! avimux ! "
                             "filesink location=clips/a.avi >/dev/null 2>&1";
    if (std::system(line.c_str()) != 0) GTEST_SKIP() << "GStreamer has no elements for: " << line;
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize clips --mean 0 --scale 1"), 0) << err_;
    EXPECT_NE(out_.find("int8 against float32 on 4 samples"), std::string::npos) << out_;
    ASSERT_EQ(run("compile net.onnx -o one.rai --quantize clips/a.avi --mean 0 --scale 1"), 0)
        << err_;
    EXPECT_NE(out_.find("int8 against float32 on 4 samples"), std::string::npos) << out_;
    test::spill(dir_ / "clips/b.mp4", "no clip");
    EXPECT_NE(run("compile net.onnx -o net.rai --quantize clips --mean 0 --scale 1"), 0);
    EXPECT_NE(err_.find("clips/b.mp4' is no clip that GStreamer decodes"), std::string::npos)
        << err_;
}

// As the camera was held: both clips are the same pictures then.
TEST_F(Quantize, TurnsClipsUpright) {
    fs::create_directory(dir_ / "clips");
    const std::string line =
        "cd '" + dir_.path() +
        "' && for n in upright:identity:0 turned:90l:90; do "
        "IFS=: read name method angle <<END\n$n\nEND\n"
        "gst-launch-1.0 -q videotestsrc num-buffers=20 ! "
        "video/x-raw,format=RGB,width=32,height=24,framerate=10/1 ! videoflip "
        "video-direction=$method ! taginject tags=image-orientation=rotate-$angle ! qtmux ! "
        "filesink location=clips/$name.mov >/dev/null 2>&1 || exit 1; done";
    test::spill(dir_ / "make.sh", line);
    if (std::system(("sh '" + (dir_ / "make.sh") + "'").c_str()) != 0)
        GTEST_SKIP() << "GStreamer has no elements for: " << line;
    const std::string arguments = " --mean 0 --scale 1 --quantize clips/";
    ASSERT_EQ(run("compile net.onnx -o a.rai" + arguments + "upright.mov"), 0) << err_;
    EXPECT_NE(out_.find("on 2 samples:"), std::string::npos) << out_;
    ASSERT_EQ(run("compile net.onnx -o b.rai" + arguments + "turned.mov"), 0) << err_;
    EXPECT_NE(out_.find("on 2 samples, measured before:"), std::string::npos) << out_;
}

TEST_F(Quantize, IsUpToDateForTheSameSetOnly) {
    ASSERT_EQ(run("compile net.onnx --quantize set"), 0) << err_;
    ASSERT_EQ(run("compile net.onnx --quantize set"), 0) << err_;
    EXPECT_NE(out_.find("up to date"), std::string::npos) << out_;
    fs::remove(dir_ / "set/2.npy");
    ASSERT_EQ(run("compile net.onnx --quantize set"), 0) << err_;
    EXPECT_EQ(out_.find("up to date"), std::string::npos) << out_;
    ASSERT_EQ(run("compile net.onnx"), 0) << err_;
    EXPECT_EQ(out_.find("up to date"), std::string::npos) << out_;
}

TEST_F(Quantize, TakesOneFile) {
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize set/1.npy"), 0) << err_;
    EXPECT_NE(out_.find("int8 against float32 on 1 samples"), std::string::npos) << out_;
}

// A trial says more than its samples: nothing in int8 agrees wholly.
TEST_F(Quantize, SaysThatAModelStaysFloat) {
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize set --quantize-target 1"), 0) << err_;
    EXPECT_NE(err_.find("net.onnx: no convolution or product in int8 agrees with the floats as "
                        "well as --quantize-target asks; the model stays float"),
              std::string::npos)
        << out_ << err_;
    EXPECT_EQ(run("compile net.onnx -o net.rai --quantize set --quantize-target 1.5"), 2);
}

TEST_F(Quantize, MeasuresASetOnceForAllOptions) {
    EXPECT_TRUE(measures("set"));
    const std::string first = test::slurp(dir_ / "net.rai");
    EXPECT_FALSE(measures("set"));
    EXPECT_EQ(test::slurp(dir_ / "net.rai"), first);
    EXPECT_FALSE(measures("set --quantize-target 0.5"));
    EXPECT_FALSE(measures("set --device ve2 --batch-size 2"));
    // Under another name it is the same set; with another sample it is none.
    fs::rename(dir_ / "set", dir_ / "moved");
    EXPECT_FALSE(measures("moved"));
    fs::copy_file(dir_ / "moved/0.npy", dir_ / "moved/1.npy", fs::copy_options::overwrite_existing);
    EXPECT_TRUE(measures("moved"));
}

TEST_F(Quantize, KeepsWhatItMeasuredForItsUserAlone) {
    const fs::perms owner = fs::perms::owner_read | fs::perms::owner_write;
    ASSERT_TRUE(measures("set"));
    ASSERT_FALSE(kept().empty());
    for (const fs::path& file : kept()) {
        EXPECT_EQ(fs::status(file).permissions(), owner) << file;
        EXPECT_EQ(file.extension(), ".calibration") << file;
    }
    EXPECT_EQ(fs::status(kept()[0].parent_path()).permissions(), fs::perms::owner_all);
    // What others could have written is not believed, and is replaced.
    for (const fs::path& file : kept())
        fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    EXPECT_TRUE(measures("set"));
    for (const fs::path& file : kept()) EXPECT_EQ(fs::status(file).permissions(), owner) << file;
    EXPECT_FALSE(measures("set"));
}

TEST_F(Quantize, HealsWhatWasDamagedOfItsCache) {
    ASSERT_TRUE(measures("set"));
    const std::string good = test::slurp(dir_ / "net.rai");
    const auto damage = [&](const auto& how) {
        for (const fs::path& file : kept()) test::spill(file, how(test::slurp(file)));
        EXPECT_TRUE(measures("set"));
        EXPECT_EQ(test::slurp(dir_ / "net.rai"), good);
        EXPECT_FALSE(measures("set"));
    };
    damage([](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); });
    damage([](const std::string&) { return std::string(); });
    damage([](std::string bytes) {
        bytes[bytes.size() * 3 / 4] = static_cast<char>(bytes[bytes.size() * 3 / 4] ^ 1);
        return bytes;
    });
}

TEST_F(Quantize, DoesWithoutACache) {
    test::spill(dir_ / "cache", "no folder");
    EXPECT_TRUE(measures("set"));
    EXPECT_TRUE(measures("set"));
}

// The result takes bytes, the set was measured as floats.
TEST_F(Quantize, MeasuresAModelThatTakesPixelsByPixels) {
    for (int i = 0; i < 4; ++i)
        test::spill(dir_ / ("pictures/" + std::to_string(i) + ".png"), png(i));
    const std::string embedded =
        "--mean 127 --scale 0.01 --channels rgb "
        "--embed-preprocess x:u8,rgb,hwc,mean=127,scale=0.01";
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize pictures " + embedded), 0) << err_;
    EXPECT_NE(out_.find("on 4 samples:\noutput 'y': correlation 0.99"), std::string::npos) << out_;
    EXPECT_EQ(err_, "");
    ASSERT_EQ(run("compile net.onnx -o net.rai --force --quantize set " + embedded), 0) << err_;
    EXPECT_NE(out_.find("not measured, the samples are tensors and the model takes pixels"),
              std::string::npos)
        << out_;
}

TEST_F(Quantize, FeedsWhatTheModelTakesBesideAPicture) {
    TinyOnnx m;
    m.input("images", {1, 3, 8, 8})
        .input("orig_target_sizes", {1, 2})
        .weights("w", {4, 3, 3, 3})
        .ints("axes", {2}, {2, 3})
        .node("Conv", {"images", "w"}, {"a"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
        .node("Unsqueeze", {"orig_target_sizes", "axes"}, {"size"})
        .node("Concat", {"size", "size"}, {"sizes"}, {{"axis", int64_t{1}}})
        .node("Mul", {"a", "sizes"}, {"y"})
        .output("y")
        .save(dir_ / "sized.onnx");
    test::spill(dir_ / "pictures/a.png", png(1));
    ASSERT_EQ(run("compile sized.onnx -o s.rai --quantize pictures --mean 127 --scale 0.01"), 0)
        << err_;
    EXPECT_NE(out_.find("on 1 samples:\noutput 'y': correlation "), std::string::npos) << out_;
}

TEST_F(Quantize, SaysWhatItLeavesOut) {
    test::spill(dir_ / "set/0.webp", "a picture of another kind");
    test::spill(dir_ / "set/more/1.png", png(1));
    ASSERT_EQ(run("compile net.onnx -o net.rai --quantize set"), 0) << err_;
    EXPECT_NE(out_.find("on 3 samples:"), std::string::npos) << out_;
    EXPECT_NE(err_.find("--quantize: 2 of what is in 'set' is no sample, 'set/0.webp' to begin "
                        "with; samples are .npy, .pb, .png and .jpg files"),
              std::string::npos)
        << err_;
}

TEST_F(Quantize, SaysWhatIsWrongWithTheSet) {
    test::spill(dir_ / "short/0.npy", npy("1, 3", {1, 2, 3}));
    std::vector<float> values(192, 0.5F);
    values[7] = NAN;
    test::spill(dir_ / "nan/0.npy", npy("1, 3, 8, 8", values));
    // As many bytes, but channels last.
    test::spill(dir_ / "last/0.npy", npy("1, 8, 8, 3", std::vector<float>(192, 0.5F)));
    fs::create_symlink("loop", dir_ / "loop");
    test::spill(dir_ / "many/a/input_0.npy", npy("1", {1}));
    test::spill(dir_ / "many/a/input_1.npy", npy("1", {1}));
    test::spill(dir_ / "pictures/a.png", "no picture");
    // A PNG that says it is of 60000 by 60000 pixels, and holds a thousand bytes of them.
    constexpr std::string_view huge(
        "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122"
        "\000\000\352\140\000\000\352\140\010\002\000\000\000\017\260\342"
        "\025\000\000\000\021\111\104\101\124\170\234\143\140\030\005\243"
        "\140\024\014\167\000\000\003\350\000\001\263\246\323\106",
        62);
    test::spill(dir_ / "large/a.png", huge);
    fs::create_directory(dir_ / "empty");
    const std::pair<const char*, const char*> rows[] = {
        {"nowhere", "--quantize: 'nowhere' is no folder, and no picture, tensor or clip"},
        {"net.onnx", "--quantize: 'net.onnx' is no folder, and no picture, tensor or clip"},
        {"empty", "--quantize: 'empty' holds no sample; expected .npy, .pb, .png or .jpg files"},
        {"short", "'short/0.npy' holds fp32 [1,3], input 'x' is fp32 [1,3,8,8]"},
        {"last", "'last/0.npy' holds fp32 [1,8,8,3], input 'x' is fp32 [1,3,8,8]"},
        {"loop", "--quantize: 'loop' is no folder, and no picture, tensor or clip"},
        {"nan", "'nan/0.npy': input 'x' has nan at element 7, expected finite numbers"},
        {"many",
         "--quantize: 'many/a' has 2 inputs, the model 1; a sample is a folder with input_0.npy"},
        {"pictures", "is a picture and the model has no sidecar"},
        {"pictures --mean 1,2 --scale 1", "--mean: is '1,2', expected one number or three"},
        {"large --mean 0",
         "--quantize: large/a.png: is a picture of 60000x60000 pixels, expected at most"},
        {"''", "--quantize: is '', expected "},
        {"pictures --mean 0", "--quantize: pictures/a.png: is no picture that can be read"},
    };
    for (const auto& [arguments, words] : rows) {
        EXPECT_EQ(run("compile net.onnx -o net.rai --quantize " + std::string(arguments)), 2);
        EXPECT_NE(err_.find(words), std::string::npos) << arguments << ": " << err_;
        EXPECT_FALSE(fs::exists(dir_ / "net.rai"));
    }
}

TEST_F(Quantize, NeedsAFolderForItsProbe) {
    EXPECT_EQ(run("compile net.onnx -o net.rai --quantize set", "TMPDIR=/nowhere "), 1);
    EXPECT_NE(err_.find("/nowhere: cannot create a folder in it"), std::string::npos) << err_;
    EXPECT_FALSE(fs::exists(dir_ / "net.rai"));
}

}  // namespace
}  // namespace vartml
