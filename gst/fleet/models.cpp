// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/models.h"
#include "gst/fleet/values.h"

#include <glib.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

namespace vartml::fleet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// given: nats-architecture-and-design, ADR-20: the parts of an object, and what says of them
constexpr size_t chunk_bytes = 128 * 1024;
constexpr const char* bucket = "models";
constexpr const char* parts_prefix = "$O.models.C.";
constexpr const char* names_prefix = "$O.models.M.";

struct FreeChecksum {
    void operator()(GChecksum* sum) const { g_checksum_free(sum); }
};

class Sha256 {
public:
    void add(std::string_view bytes) {
        g_checksum_update(sum_.get(), reinterpret_cast<const guchar*>(bytes.data()),
                          gssize(bytes.size()));
    }
    std::string hex() { return g_checksum_get_string(sum_.get()); }
    // As an object's digest is written.
    std::string digest() {
        guint8 bytes[32];
        gsize size = sizeof bytes;
        g_checksum_get_digest(sum_.get(), bytes, &size);
        return "SHA-256=" + url_base64({reinterpret_cast<char*>(bytes), size});
    }
    static std::string url_base64(std::string_view text) {
        gchar* const code =
            g_base64_encode(reinterpret_cast<const guchar*>(text.data()), text.size());
        std::string result = code;
        g_free(code);
        for (char& c : result) c = c == '+' ? '-' : c == '/' ? '_' : c;
        return result;
    }

private:
    std::unique_ptr<GChecksum, FreeChecksum> sum_{g_checksum_new(G_CHECKSUM_SHA256)};
};

std::string ending_of(const std::string& file) {
    for (const char* ending : {".rai", ".tar.gz", ".onnx"})
        if (file.ends_with(ending)) return ending;
    return {};
}

fs::path cache_folder() {
    return fs::path(g_get_user_cache_dir()) / "vartml" / "fleet";
}

// A name of ours alone: it becomes part of a path.
bool is_name(const std::string& name) {
    const std::string ending = ending_of(name);
    return name.size() == 64 + ending.size() && !ending.empty() &&
           name.find_first_not_of("0123456789abcdef") >= 64;
}

std::string hash_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in.is_open()) return {};
    Sha256 sum;
    std::string chunk(chunk_bytes, '\0');
    while (in.read(chunk.data(), std::streamsize(chunk.size())) || in.gcount() > 0)
        sum.add({chunk.data(), size_t(in.gcount())});
    return sum.hex();
}

std::string subject_of(const std::string& name) {
    return names_prefix + Sha256::url_base64(name);
}

}  // namespace

Result<std::string> store_model(const StoreSettings& settings, const std::string& file) {
    std::error_code error;
    const std::string ending = ending_of(file);
    if (ending.empty() || !fs::is_regular_file(file, error))
        return Error{ErrorCode::invalid_argument,
                     "--upload: " + file +
                         ": is no file that ends in .rai, .tar.gz or .onnx; compile the model into "
                         "one (vartml compile -o MODEL.rai)"};
    const std::string hash = hash_of(file), name = hash + ending;
    if (hash.empty()) return Error{ErrorCode::io, "--upload: " + file + ": cannot be read"};
    auto store = Store::open(settings);
    if (!store) return store.error();
    if (auto made = (*store)->object_bucket(bucket); !made) return made.error();
    const auto there = (*store)->last_of(bucket, subject_of(name));
    if (!there) return there.error();
    // One that was deleted, or that somebody else wrote, is put there anew.
    if (*there && !flag_of(**there, "deleted") && !text_of(**there, "nuid").empty() &&
        count_of(**there, "chunks") > 0)
        return stored_model + name;
    // Parts first, then the name: nobody finds half of it.
    gchar* const random = g_uuid_string_random();
    const std::string parts = random;
    g_free(random);
    std::ifstream in(file, std::ios::binary);
    Sha256 sum;
    size_t size = 0, chunks = 0;
    std::string chunk(chunk_bytes, '\0');
    while (in.read(chunk.data(), std::streamsize(chunk.size())) || in.gcount() > 0) {
        const std::string_view part(chunk.data(), size_t(in.gcount()));
        if (auto put = (*store)->publish(parts_prefix + parts, part); !put) return put.error();
        sum.add(part);
        size += part.size();
        ++chunks;
    }
    if (sum.hex() != hash)
        return Error{ErrorCode::io, "--upload: " + file + ": was changed while it was read"};
    const json about = {
        {"name", name},           {"description", fs::path(file).filename().string()},
        {"bucket", bucket},       {"nuid", parts},
        {"size", size},           {"chunks", chunks},
        {"digest", sum.digest()}, {"options", {{"max_chunk_size", chunk_bytes}}}};
    const std::string text = about.dump(-1, ' ', false, json::error_handler_t::replace);
    if (auto put = (*store)->publish(subject_of(name), text, true); !put) return put.error();
    return stored_model + name;
}

Result<std::string> fetch_model(const StoreSettings& settings, const std::string& model) {
    const std::string name = model.substr(std::string_view(stored_model).size());
    const auto wrong = [&](ErrorCode code, const std::string& why) {
        return Error{code, "model " + model + ": " + why};
    };
    if (!is_name(name))
        return wrong(ErrorCode::invalid_argument,
                     "is not object:SHA256 with an ending, as vartml cameras add --upload says");
    const fs::path path = cache_folder() / name;
    const std::string hash = name.substr(0, 64);
    if (hash_of(path) == hash) return path.string();
    auto store = Store::open(settings);
    if (!store) return store.error();
    const auto about = (*store)->last_of(bucket, subject_of(name));
    if (!about) return about.error();
    if (!*about)
        return wrong(ErrorCode::not_found,
                     "is not in the store; put it there with vartml cameras add --upload");
    if (flag_of(**about, "deleted"))
        return wrong(ErrorCode::not_found, "was deleted from the store; upload it again");
    std::error_code error;
    fs::create_directories(cache_folder(), error);
    // Several workers of a machine may fetch it at once.
    const fs::path part = path.string() + '.' + std::to_string(::getpid()) + ".part";
    std::ofstream out(part, std::ios::binary);
    Sha256 sum;
    const auto read = (*store)->read_all(bucket, parts_prefix + text_of(**about, "nuid"),
                                         count_of(**about, "chunks"), [&](std::string_view bytes) {
                                             out.write(bytes.data(), std::streamsize(bytes.size()));
                                             sum.add(bytes);
                                         });
    out.close();
    const bool good = read && out && sum.hex() == hash;
    if (good) fs::rename(part, path, error);
    if (!good || error) {
        std::error_code ignored;
        fs::remove(part, ignored);
    }
    if (!read) return read.error();
    if (!out || error)
        return wrong(ErrorCode::io, "cannot be written to " + cache_folder().string());
    if (!good)
        return wrong(ErrorCode::bad_model,
                     "what the store has is not what it is named after; upload it again");
    return path.string();
}

std::optional<Result<std::string>> Models::find(const std::string& model) {
    if (!model.starts_with(stored_model)) return Result<std::string>(model);
    if (const auto known = paths_.find(model); known != paths_.end())
        return Result<std::string>(known->second);
    const auto way = on_their_way_.find(model);
    if (way == on_their_way_.end()) {
        on_their_way_[model] = std::async(std::launch::async, fetch_model, settings_, model);
        awaited_ = true;
        return std::nullopt;
    }
    if (way->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        awaited_ = true;
        return std::nullopt;
    }
    auto fetched = way->second.get();
    on_their_way_.erase(way);
    if (fetched) paths_[model] = *fetched;
    return fetched;
}

}  // namespace vartml::fleet
