// SPDX-License-Identifier: Apache-2.0
#include "lib/base/foreign_file.h"

#include <gtest/gtest.h>

using namespace std::string_literals;

namespace vartml {
namespace {

struct Case {
    const char* path;
    std::string bytes;
    const char* begins;  // nullptr: nothing foreign
};
const Case cases[] = {
    {"m.onnx", "version https://git-lfs.github.com/spec/v1\noid", "is a pointer of Git LFS, "},
    {"m.onnx", "\n<!DOCTYPE html>\n<html>", "is a web page, "},  // a failed download
    {"m.tflite", "\x1c\0\0\0TFL3"s, "is a TensorFlow Lite model; export the model to ONNX, "},
    {"m.pt", "PK\x03\x04........best/data.pkl", "is a PyTorch checkpoint; export "},
    {"m.pt", "PK\x03\x04", "is a ZIP archive, as PyTorch and Keras save them; export "},
    {"old.pth", "\x80\x02\x8a\x0al\xfc\x9c", "is a PyTorch checkpoint; "},
    {"m.pt", "rest of something", "is a PyTorch file; "},
    {"m.h5", "\x89HDF\r\n", "is an HDF5 file, "},
    {"m.ort", "\x20\0\0\0ORTM"s, "is a model in ONNX Runtime's own format; give the ONNX file "},
    {"m.safetensors", "\x10\0\0\0\0\0\0\0{\"a\":1}"s, "is a file of weights (safetensors) "},
    {"m.xml", "<?xml version=\"1.0\"?>", "is an XML text, as OpenVINO describes models"},
    {"m.param", "7767517\n", "is a model of ncnn"},
    {"cat.jpg", "\xff\xd8\xff\xe0", "is a JPEG picture, not a model; give "},
    {"clip.mp4",
     "\0\0\0\x20"
     "ftypisom"s,
     "is an MP4 or QuickTime film, not a model; "},
    {"m.tar.gz", "\x1f\x8b\x08", "is a gzip archive; unpack it "},
    {"m.engine", "", "is an engine of TensorRT, "},
    {"m.onnx", "\x08\x07\x12\x07pytorch", nullptr},
    {"m.bin", "hello", nullptr},
    {"m.rai", "", nullptr},
};

TEST(ForeignFile, IsNamedWithTheWayOut) {
    for (const Case& c : cases) {
        const auto found = describe_foreign(c.path, as_bytes(c.bytes));
        EXPECT_EQ(found.has_value(), c.begins != nullptr) << c.path << ' ' << c.bytes;
        if (found && c.begins) {
            EXPECT_TRUE(found->starts_with(c.begins)) << c.path << ": " << *found;
        }
    }
}

TEST(ForeignFile, OnnxIsToldByItsFirstFields) {
    EXPECT_TRUE(looks_like_onnx(as_bytes("\x08\x07\x12\x07pytorch")));
    EXPECT_FALSE(looks_like_onnx(as_bytes("\x08\x07")));
    EXPECT_FALSE(looks_like_onnx(as_bytes("PK\x03\x04")));
}

}  // namespace
}  // namespace vartml
