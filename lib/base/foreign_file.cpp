// SPDX-License-Identifier: Apache-2.0
#include "lib/base/foreign_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace vartml {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view export_it =
    "; export the model to ONNX, then compile that with 'vartml compile'";
constexpr std::string_view unpack_it = "; unpack it and give the file inside";
constexpr std::string_view no_model = ", not a model; give the model's ONNX file";

struct Row {
    size_t offset;
    std::string_view bytes, is, way_out;
};
// The first row that fits counts.
constexpr Row by_content[] = {
    {0, "version https://git-lfs"sv, "is a pointer of Git LFS, not the model itself",
     "; fetch the file with 'git lfs pull'"},
    {4, "TFL3"sv, "is a TensorFlow Lite model", export_it},
    {4, "ORTM"sv, "is a model in ONNX Runtime's own format",
     "; give the ONNX file that it was made of"},
    {0, "\x89HDF"sv, "is an HDF5 file, as Keras saves models", export_it},
    {0, "\x80\x02\x8a\x0a"sv, "is a PyTorch checkpoint", export_it},
    {0, "\x80\x02"sv, "is a Python pickle", export_it},
    {0, "\x80\x03"sv, "is a Python pickle", export_it},
    {0, "\x80\x04"sv, "is a Python pickle", export_it},
    {0, "\x80\x05"sv, "is a Python pickle", export_it},
    {8, "{\""sv, "is a file of weights (safetensors) without a model", export_it},
    {0, "GGUF"sv, "is a language model (GGUF)", export_it},
    {0, "ftrt"sv, "is an engine of TensorRT, which holds code for one GPU", export_it},
    {0, "\x01HEF"sv, "is a model for Hailo's hardware", export_it},
    {0, "RKNN"sv, "is a model for Rockchip's hardware", export_it},
    {0, "7767517\n"sv, "is a model of ncnn", export_it},
    {0, "\x93NUMPY"sv, "is an array of NumPy", no_model},
    {0, "\xff\xd8\xff"sv, "is a JPEG picture", no_model},
    {0, "\x89PNG"sv, "is a PNG picture", no_model},
    {0, "GIF8"sv, "is a GIF picture", no_model},
    {8, "WEBP"sv, "is a WebP picture", no_model},
    {4, "ftyp"sv, "is an MP4 or QuickTime film", no_model},
    {8, "AVI "sv, "is an AVI film", no_model},
    {0, "\x1a\x45\xdf\xa3"sv, "is a Matroska or WebM film", no_model},
    {0, "%PDF"sv, "is a PDF document", no_model},
    {0, "\x1f\x8b"sv, "is a gzip archive", unpack_it},
    {0,
     "\xfd"
     "7zXZ"sv,
     "is an xz archive", unpack_it},
    {0, "\x28\xb5\x2f\xfd"sv, "is a Zstandard archive", unpack_it},
    {0, "7z\xbc\xaf"sv, "is a 7-Zip archive", unpack_it},
    {0, "Rar!"sv, "is a RAR archive", unpack_it},
    {257, "ustar"sv, "is a tar archive", unpack_it},
    {0,
     "\x7f"
     "ELF"sv,
     "is a program or library", no_model},
};

// What PK\x03\x04 holds, by the name of a member near the start.
constexpr Row in_zip[] = {
    {0, "/data.pkl"sv, "is a PyTorch checkpoint", export_it},
    {0, "data.pkl"sv, "is a PyTorch checkpoint", export_it},
    {0, ".pkl"sv, "is a PyTorch checkpoint", export_it},
    {0, "model.weights.h5"sv, "is a Keras model", export_it},
    {0, ".npy"sv, "is a file of NumPy arrays", no_model},
    {0, ""sv, "is a ZIP archive, as PyTorch and Keras save them", export_it},
};

// Text, after blanks and whatever case.
constexpr Row by_text[] = {
    {0, "<!doctype html"sv, "is a web page, not the file that its link names",
     "; download the file itself"},
    {0, "<html"sv, "is a web page, not the file that its link names", "; download the file itself"},
    {0, "<net "sv, "is a model of OpenVINO", export_it},
    {0, "<?xml"sv, "is an XML text, as OpenVINO describes models", export_it},
    {0, "[net]"sv, "is a model of Darknet", export_it},
};

// Formats without a mark of their own.
constexpr Row by_ending[] = {
    {0, ".pt"sv, "is a PyTorch file", export_it},
    {0, ".pth"sv, "is a PyTorch file", export_it},
    {0, ".pdmodel"sv, "is a model of PaddlePaddle", export_it},
    {0, ".caffemodel"sv, "is a model of Caffe", export_it},
    {0, ".prototxt"sv, "is a model of Caffe", export_it},
    {0, ".mlmodel"sv, "is a Core ML model", export_it},
    {0, ".engine"sv, "is an engine of TensorRT, which holds code for one GPU", export_it},
    {0, ".plan"sv, "is an engine of TensorRT, which holds code for one GPU", export_it},
    {0, ".weights"sv, "is a file of weights of Darknet", export_it},
    {0, ".mnn"sv, "is a model of MNN", export_it},
};

std::string sentence(const Row& row) {
    return std::string(row.is).append(row.way_out);
}

// The first characters without leading blanks and byte order mark, in lower case.
std::string first_word(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    const size_t begin = text.find_first_not_of(" \t\r\n");
    std::string word(begin == text.npos ? std::string_view() : text.substr(begin, 32));
    for (char& c : word)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return word;
}

}  // namespace

bool looks_like_onnx(Bytes bytes) {
    // A ModelProto: field 1 (ir_version), then one of its other fields.
    constexpr std::array<uint8_t, 8> next{0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72};
    const auto at = [&](size_t i) {
        return i < bytes.size() ? std::to_integer<uint8_t>(bytes[i]) : uint8_t{0};
    };
    return at(0) == 0x08 && at(1) >= 1 && at(1) < 0x40 &&
           std::ranges::find(next, at(2)) != next.end();
}

std::optional<std::string> describe_foreign(const std::string& path, Bytes bytes) {
    const std::string_view text = as_text(bytes);
    for (const Row& row : by_content)
        if (text.size() > row.offset && text.substr(row.offset).starts_with(row.bytes))
            return sentence(row);
    if (text.starts_with("PK\x03\x04"sv)) {
        const std::string_view begin = text.substr(0, 4096);
        for (const Row& row : in_zip)
            if (begin.find(row.bytes) != begin.npos) return sentence(row);
    }
    const std::string word = first_word(text.substr(0, 256));
    for (const Row& row : by_text)
        if (word.starts_with(row.bytes)) return sentence(row);
    for (const Row& row : by_ending)
        if (path.ends_with(row.bytes)) return sentence(row);
    return std::nullopt;
}

}  // namespace vartml
