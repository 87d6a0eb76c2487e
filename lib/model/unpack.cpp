// SPDX-License-Identifier: Apache-2.0
#include "lib/model/unpack.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "lib/base/text.h"
#include "lib/model/checks.h"
#include "lib/model/containers.h"
#include "lib/model/entries.h"
#include "lib/model/foreign.h"
#include "lib/model/tar_stream.h"
#include "lib/trace/descriptor.h"

namespace vartml::artifact {
namespace {

constexpr std::string_view manifest_name = "model.vmf";

// What is wrong with the name of an entry in the flat form.
std::optional<std::string> tar_name_fault(std::string_view name) {
    const size_t slash = name.find('/');
    if (name.empty() || name.size() > 255)
        return "has a name of " + std::to_string(name.size()) + " bytes, expected 1 to 255";
    if (slash == 0) return "has an absolute name";
    if (name == "." || name == ".." || name.starts_with("./") || name.starts_with("../") ||
        name.find("/../") != name.npos || name.ends_with("/.."))
        return "has '.' or '..' in its name";
    if (slash != name.npos) return "lies in a directory, expected a flat archive";
    for (const char c : {'\\', ':'})
        if (name.find(c) != name.npos) return std::string("has '") + c + "' in its name";
    if (!is_plain_text(name)) return "has a name that is no UTF-8 text without control characters";
    if (!has_only_name_characters(name))
        return "has a name with characters outside of A-Z, a-z, 0-9, '.', '_' and '-'";
    if (name == "modelinfo" || (!has_known_ending(name) && !name.ends_with(".elf")))
        return "has an ending that no entry has; known: .json .elf .yaml .vnp .vmf .bin .txt "
               ".modelinfo";
    return std::nullopt;
}

std::string folded(std::string_view name) {
    std::string out(name);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

bool is_program(std::string_view name) {
    return name.ends_with(".elf") || name.ends_with(".vnp") ||
           (name.ends_with(".bin") && name != profiling::descriptor_entry);
}

class Unpacking {
public:
    Unpacking(const std::string& path, const Fd& folder, const UnpackOptions& options)
        : path_(path), folder_(folder), options_(options) {}

    Result<TarListing> run() {
        auto stream = TarStream::open(path_, options_.limits);
        if (!stream) return stream.error();
        stream_ = std::move(*stream);
        bool is_ours = false;
        std::optional<Error> fault;
        for (;;) {
            const auto item = stream_->next();
            if (!item) return item.error();
            if (!*item) break;
            is_ours |= last_part((*item)->name) == manifest_name;
            // An archive of another tool is called that, whatever else is wrong with it.
            if (fault) continue;
            if (auto r = take(**item); !r) fault = r.error();
        }
        if (!is_ours) return refuse_archive(path_);
        if (fault) return *fault;
        for (const auto& [name, size] : listing_)
            if (name.ends_with(".json"))
                if (auto r = check_json(name); !r) return r.error();
        return std::move(listing_);
    }

private:
    Result<void> take(const TarItem& item) {
        if (!item.type_fault.empty())
            return entry_error(path_, item.name,
                               item.type_fault +
                                   ", expected a regular file in "
                                   "plain ustar format");
        if (const auto fault = tar_name_fault(item.name))
            return entry_error(path_, item.name, *fault);
        if (!names_.insert(folded(item.name)).second)
            return entry_error(path_, item.name,
                               "is there twice, or differs from another in upper and lower case "
                               "only");
        if (item.name.ends_with(".json") && item.size_bytes > max_json_bytes)
            return entry_error(path_, item.name,
                               "has " + std::to_string(item.size_bytes) + " bytes, JSON may have " +
                                   std::to_string(max_json_bytes));
        listing_[item.name] = item.size_bytes;
        if (!options_.programs && is_program(item.name)) return {};
        return write(item.name);
    }

    // A fresh file, directly in the folder; the rights are the user's usual ones.
    Result<void> write(const std::string& name) {
        constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        const Fd fd(::openat(folder_.get(), name.c_str(), flags, 0666));
        const int error = errno;
        if (!fd && (error == EEXIST || error == ELOOP))
            return entry_error(path_, name, "would overwrite a file where it is unpacked");
        if (!fd) return system_error(path_ + ": entry '" + name + "'", "unpack", error);
        for (;;) {
            const auto piece = stream_->data();
            if (!piece) return piece.error();
            if (piece->empty()) return {};
            const Bytes list[] = {*piece};
            if (auto r = write_pieces(fd.get(), path_ + ": entry '" + name + "'", list); !r)
                return r;
        }
    }

    Result<void> check_json(const std::string& name) {
        const Fd fd(::openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        const auto file = MappedFile::map(fd, path_ + ": entry '" + name + "'");
        if (!file) return file.error();
        if (const std::string fault = json_fault(as_text((*file)->bytes())); !fault.empty())
            return entry_error(path_, name, fault);
        return {};
    }

    const std::string& path_;
    const Fd& folder_;
    const UnpackOptions& options_;
    std::unique_ptr<TarStream> stream_;
    std::set<std::string> names_;  // folded
    TarListing listing_;
};

// All of the current entry, which may have `max_bytes`.
Result<std::string> read_entry(TarStream& stream, const std::string& path, const TarItem& item,
                               uint64_t max_bytes) {
    if (item.size_bytes > max_bytes)
        return Error{ErrorCode::bad_model, path + ": entry '" + printable(item.name) + "' has " +
                                               std::to_string(item.size_bytes) +
                                               " bytes, at most " + std::to_string(max_bytes) +
                                               " are read"};
    std::string text;
    for (;;) {
        const auto piece = stream.data();
        if (!piece) return piece.error();
        if (piece->empty()) return text;
        text += as_text(*piece);
    }
}

}  // namespace

Result<TarListing> unpack_tar(const std::string& path, const Fd& folder,
                              const UnpackOptions& options) {
    return Unpacking(path, folder, options).run();
}

Result<std::string> peek_manifest(const std::string& path) {
    auto stream = TarStream::open(path);
    if (!stream) return stream.error();
    for (;;) {
        const auto item = (*stream)->next();
        if (!item) return item.error();
        if (!*item) return refuse_archive(path);
        if ((*item)->name == manifest_name)
            return read_entry(**stream, path, **item, max_manifest_bytes + uint64_t{4});
    }
}

Result<std::string> foreign_mpk(const std::string& path) {
    auto stream = TarStream::open(path);
    if (!stream) return stream.error();
    std::optional<std::string> text;
    for (;;) {
        const auto item = (*stream)->next();
        if (!item) return item.error();
        if (!*item) break;
        const std::string& name = (*item)->name;
        if (last_part(name) == manifest_name)
            return Error{ErrorCode::invalid_argument, path + ": is a vartml archive"};
        if (text || !name.ends_with("_mpk.json") || !(*item)->is_file) continue;
        auto read = read_entry(**stream, path, **item, max_json_bytes);
        if (!read) return read.error();
        if (const std::string fault = json_fault(*read); !fault.empty())
            return entry_error(path, name, fault);
        text = std::move(*read);
    }
    if (!text) return refuse_archive(path);
    return *text;
}

}  // namespace vartml::artifact
