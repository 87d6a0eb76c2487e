// SPDX-License-Identifier: Apache-2.0
#include "lib/model/foreign.h"

#include <algorithm>

#include "lib/base/foreign_file.h"

namespace vartml::artifact {
namespace {

constexpr const char* amd_way_out =
    "archives of AMD's compiler have no public format, compile the ONNX model with 'vartml "
    "compile'";

uint8_t byte_at(Bytes bytes, size_t i) {
    return i < bytes.size() ? std::to_integer<uint8_t>(bytes[i]) : 0;
}

// The four characters of a FlatBuffer's identifier at `offset`, or "".
std::string identifier_at(Bytes bytes, size_t offset) {
    if (bytes.size() < offset + 4) return {};
    std::string id(as_text(bytes.subspan(offset, 4)));
    const bool plain = std::ranges::all_of(id, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               c == '_';
    });
    return plain ? id : std::string();
}

uint32_t word_at(Bytes bytes, size_t offset) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) word |= uint32_t{byte_at(bytes, offset + i)} << 8 * i;
    return word;
}

// The identifier of a FlatBuffer, with or without size prefix, if the root's offset makes sense.
std::string flatbuffer_identifier(Bytes bytes) {
    const auto inside = [&](uint32_t root) { return root >= 8 && root < bytes.size(); };
    if (inside(word_at(bytes, 4)) && !identifier_at(bytes, 8).empty())
        return identifier_at(bytes, 8);
    if (inside(word_at(bytes, 0))) return identifier_at(bytes, 4);
    return {};
}

}  // namespace

bool looks_like_rai(Bytes bytes) {
    return identifier_at(bytes, 8) == "VRA1";
}

bool is_gzip(const std::string& path) {
    const auto file = MappedFile::open(path);
    return file && byte_at((*file)->bytes(), 0) == 0x1f && byte_at((*file)->bytes(), 1) == 0x8b;
}

Error refuse_file(const std::string& path, Bytes bytes) {
    if (const auto foreign = describe_foreign(path, bytes))
        return {ErrorCode::bad_model, path + ": " + *foreign};
    if (path.ends_with(".onnx") || looks_like_onnx(bytes))
        return {ErrorCode::bad_model,
                path + ": is an ONNX model; compile it first: vartml compile " + path};
    const std::string id = flatbuffer_identifier(bytes);
    if (!id.empty() || path.ends_with(".rai"))
        return {ErrorCode::bad_model, path + ": is not a vartml archive (identifier '" + id +
                                          "', expected 'VRA1'); " + amd_way_out};
    return {ErrorCode::bad_model,
            path + ": is no compiled model (" + std::to_string(bytes.size()) +
                " bytes without the identifier 'VRA1'); give the result of 'vartml compile'"};
}

Error refuse_directory(const std::string& path) {
    return {ErrorCode::bad_model, path + ": was not made by vartml (no model.vmf); " + amd_way_out};
}

Error refuse_archive(const std::string& path) {
    return {ErrorCode::bad_model,
            path +
                ": is not a vartml archive; models of other compilers hold code for other "
                "hardware, compile the ONNX model with 'vartml compile'"};
}

}  // namespace vartml::artifact
