// SPDX-License-Identifier: Apache-2.0
// Bytes of models and of what lies beside them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/compile/onnx/import_fixture.h"

namespace vartml::onnx {
namespace {

TEST_F(Import, ReadsWeightsOfEveryStoredForm) {
    // The number 1.5 as double, half and bfloat16, typed and raw.
    for (const auto& [type, raw] :
         {std::pair{10, std::string("\x00\x3e", 2)}, std::pair{16, std::string("\xc0\x3f", 2)},
          std::pair{11, std::string("\0\0\0\0\0\0\xf8\x3f", 8)}}) {
        ::onnx::TensorProto t;
        t.set_name("w");
        t.set_data_type(type);
        t.add_dims(1);
        t.set_raw_data(raw);
        TinyOnnx m;
        m.input("x", {1}).initialiser(t).node("Cast", {"w"}, {"f"}, {{"to", int64_t{1}}});
        m.node("Mul", {"x", "f"}, {"y"}).output("y");
        const Imported out = good(m);
        ASSERT_EQ(kinds(out.graph), (Kinds{"Mul"})) << "type " << type;
        EXPECT_EQ(out.graph.value(out.graph.nodes[0].inputs[1]).constant->as<float>()[0], 1.5f)
            << "type " << type;
    }
}

TEST_F(Import, RefusesWeightsWhoseBytesDoNotFitTheirShape) {
    ::onnx::TensorProto t = test::float_tensor("w", {2, 3}, {1, 2, 3, 4, 5});
    TinyOnnx m;
    m.input("x", {2, 3}).initialiser(t).node("Mul", {"x", "w"}, {"y"}).output("y");
    EXPECT_EQ(refusal(m),
              "model.onnx: initialiser 'w' holds 20 bytes, its shape and type need 24; the file is "
              "damaged, export it "
              "again");
}

TEST_F(Import, RefusesNumbersThatTheTypeOfTheirTensorHasNot) {
    const struct {
        int type;
        std::vector<int> numbers;
        const char* want;
    } cases[] = {
        {::onnx::TensorProto::INT8, {1, 128}, "the number 128, which is none of its type INT8"},
        {::onnx::TensorProto::INT8, {-129, 1}, "the number -129, which is none of its type INT8"},
        {::onnx::TensorProto::INT8, {-128, 127}, "imported"},
        {::onnx::TensorProto::UINT8, {-1, 0}, "the number -1, which is none of its type UINT8"},
        {::onnx::TensorProto::UINT8, {0, 255}, "imported"},
        {::onnx::TensorProto::INT16,
         {0, 32768},
         "the number 32768, which is none of its type INT16"},
        {::onnx::TensorProto::FLOAT16, {0, 65536}, "65536, which is none of its type FLOAT16"},
        {::onnx::TensorProto::BFLOAT16, {-1, 0}, "-1, which is none of its type BFLOAT16"},
        {::onnx::TensorProto::FLOAT16, {0, 65535}, "imported"},
        {::onnx::TensorProto::BOOL, {0, 256}, "imported"},  // true
        {::onnx::TensorProto::UNDEFINED, {0, 1}, "initialiser 'w' has no element type"},
    };
    for (const auto& c : cases) {
        ::onnx::TensorProto t;
        t.set_name("w");
        t.set_data_type(c.type);
        t.add_dims(2);
        for (const int number : c.numbers) t.add_int32_data(number);
        TinyOnnx m;
        m.input("x", {2}).initialiser(t).node("Cast", {"w"}, {"f"}, {{"to", int64_t{1}}});
        m.node("Mul", {"x", "f"}, {"y"}).output("y");
        EXPECT_NE(refusal(m).find(c.want), std::string::npos)
            << "type " << c.type << ": " << refusal(m);
    }
}

TEST_F(Import, RefusesAnOutputThatIsDeclaredAsAnotherType) {
    TinyOnnx m;
    m.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y", {}, TinyOnnx::int32);
    EXPECT_EQ(refusal(m),
              "model.onnx: output 'y' is declared as INT32, its node makes f32; export the model "
              "again, or insert a Cast");
}

// ---- files
// ---------------------------------------------------------------------------------------------------------

TEST_F(Import, SaysWhatAFileIsThatIsNoModel) {
    TinyOnnx m;
    m.input("x", {1, 1000}).weights("w", {1000}).node("Mul", {"x", "w"}, {"y"}).output("y");
    const std::string whole = m.bytes();
    const std::pair<std::string, const char*> cases[] = {
        {"", "model.onnx: is empty, expected an ONNX model"},
        {whole.substr(0, whole.size() / 2), "in the middle of the model; copy or export it again"},
        {std::string(5000, 'z'),
         "model.onnx: is not an ONNX model, or a damaged one; export it again"},
        {"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"},
        {"PK\x03\x04more", "is a ZIP archive"},
        {"\xff\xd8\xff\xe0", "is a JPEG picture, not a model; give the model's ONNX file"},
    };
    for (const auto& [bytes, want] : cases) {
        test::spill(path_, bytes);
        const auto result = import_onnx(path_);
        ASSERT_FALSE(result);
        EXPECT_NE(local(result.error().message).find(want), std::string::npos)
            << result.error().message;
        EXPECT_EQ(result.error().code, ErrorCode::bad_model);
    }
    std::filesystem::remove(path_);
    EXPECT_EQ(import_onnx(path_).error().code, ErrorCode::not_found);
    EXPECT_EQ(import_onnx(folder_.path()).error().code, ErrorCode::io);
}

TEST_F(Import, SurvivesEveryTruncation) {
    TinyOnnx m;
    m.input("x", {1, 3, 8, 8})
        .weights("w", {2, 3, 1, 1})
        .node("Conv", {"x", "w"}, {"y"})
        .output("y");
    const std::string whole = m.bytes();
    for (size_t size = 0; size < whole.size(); ++size) {
        test::spill(path_, whole.substr(0, size));
        const auto result = import_onnx(path_);
        if (!result) {
            EXPECT_FALSE(result.error().message.empty());
        }
    }
}

class ImportExternalData : public Import {
protected:
    // One weight of two numbers in `location`.
    TinyOnnx model(const std::string& location, const std::string& offset = "4",
                   const std::string& length = "8") {
        ::onnx::TensorProto t;
        t.set_name("w");
        t.set_data_type(TinyOnnx::float32);
        t.add_dims(2);
        t.set_data_location(::onnx::TensorProto::EXTERNAL);
        for (const auto& [key, value] :
             {std::pair{"location", location}, std::pair{"offset", offset},
              std::pair{"length", length}}) {
            auto* entry = t.add_external_data();
            entry->set_key(key);
            entry->set_value(value);
        }
        TinyOnnx m;
        m.input("x", {2}).initialiser(t).node("Mul", {"x", "w"}, {"y"}).output("y");
        return m;
    }
};

TEST_F(ImportExternalData, IsReadBesideAndBelowTheModel) {
    std::filesystem::create_directory(folder_ / "data");
    const float values[] = {9, 1.5f, -2};
    const std::string bytes(reinterpret_cast<const char*>(values), sizeof values);
    test::spill(folder_ / "data/w.bin", bytes);
    const Imported out = good(model("data/w.bin"));
    EXPECT_EQ(out.graph.value(out.graph.nodes[0].inputs[1]).constant->as<float>()[1], -2);
    const Imported same = good(model("./data/./w.bin"));
    EXPECT_EQ(same.graph.value(same.graph.nodes[0].inputs[1]).constant->as<float>()[1], -2);
    // The signature covers the external file.
    test::spill(folder_ / "data/w.bin", bytes + "x");
    EXPECT_NE(good(model("data/w.bin")).signature, out.signature);
}

// The model that ONNX Runtime gets of a loop has no folder in which the data could lie.
TEST_F(ImportExternalData, OfABodyComesIntoTheModelOfItsNode) {
    const float values[] = {9, 1.5f, -2};
    const std::string bytes(reinterpret_cast<const char*>(values), sizeof values);
    test::spill(folder_ / "w.bin", bytes);
    TinyOnnx body = model("w.bin", "4");  // y = x * w
    auto graph = body.graph();
    for (const auto& [name, type] : {std::pair{"i", 7}, std::pair{"c", 9}}) {
        auto* input = graph.add_input();
        input->set_name(name);
        input->mutable_type()->mutable_tensor_type()->set_elem_type(type);
        input->mutable_type()->mutable_tensor_type()->mutable_shape();
    }
    graph.mutable_input()->SwapElements(0, 1);
    graph.mutable_input()->SwapElements(1, 2);  // i, c, x
    auto* again = graph.add_node();
    again->set_op_type("Identity");
    again->add_input("c");
    again->add_output("d");
    *graph.add_output() = graph.input(1);
    graph.mutable_output(1)->set_name("d");
    graph.mutable_output()->SwapElements(0, 1);
    TinyOnnx loop;
    loop.input("v", {2}).node("Loop", {"", "", "v"}, {"z"}, {{"body", graph}}).output("z", {2});
    ImportOptions options;
    options.foreign.allowed = true;
    ::onnx::ModelProto asked;
    options.foreign.ask = [&](const std::string& text) -> Result<std::vector<ForeignOutput>> {
        asked.ParseFromString(text);
        return std::vector<ForeignOutput>{{.elem_type = 1, .has_shape = true, .shape = {2}}};
    };
    good(loop, options);
    ASSERT_EQ(asked.graph().node_size(), 1);
    const auto& weight = asked.graph().node(0).attribute(0).g().initializer(0);
    EXPECT_EQ(weight.data_location(), ::onnx::TensorProto::DEFAULT);
    EXPECT_EQ(weight.external_data_size(), 0);
    EXPECT_EQ(weight.raw_data(), bytes.substr(4));
    test::spill(folder_ / "w.bin", bytes.substr(0, 8));
    EXPECT_NE(refusal(loop, options).find("lies at 4 and has 8 bytes, the file ends at 8"),
              std::string::npos)
        << refusal(loop, options);
}

TEST_F(ImportExternalData, NeverLeavesTheFolder) {
    test::spill(folder_ / "w.bin", std::string(12, '\0'));
    std::filesystem::create_directory(folder_ / "sub");
    std::filesystem::create_symlink("../w.bin", folder_ / "sub/link.bin");
    std::filesystem::create_directory_symlink("..", folder_ / "sub/up");
    const std::pair<TinyOnnx, const char*> cases[] = {
        {model("../w.bin"), "external data '../w.bin' is no path below the folder of the model"},
        {model("/etc/passwd"), "is no path below the folder"},
        {model(""), "is no path below the folder"},
        {model("."), "is no path below the folder"},
        {model("./../w.bin"), "is no path below the folder"},
        {model("w.bin/."), "is no path below the folder"},
        {model("sub/link.bin"),
         "external data 'sub/link.bin' is a link; replace it by the file itself"},
        {model("missing.bin"),
         "external data 'missing.bin': cannot open: No such file or directory"},
        {model("w.bin", "8"), "lies at 8 and has 8 bytes, the file ends at 12"},
        {model("w.bin", "18446744073709551612"), "the file ends at 12"},
        {model("w.bin", "4", "9"), "holds 9 bytes, its shape and type need 8"},
        {model("w.bin", "-1"), "has the offset '-1'"},
        {model("sub"), "cannot read: Is a directory"},
    };
    for (const auto& [m, want] : cases)
        EXPECT_NE(refusal(m).find(want), std::string::npos) << refusal(m);
    EXPECT_NE(refusal(model("sub/up/w.bin")), "imported");
}

// ---- lowering
// ------------------------------------------------------------------------------------------------------

}  // namespace
}  // namespace vartml::onnx
