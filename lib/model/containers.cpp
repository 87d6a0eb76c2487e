// SPDX-License-Identifier: Apache-2.0
// The directory form: model.vmf and one file per entry.
#include "lib/model/containers.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "lib/base/checksum.h"
#include "lib/base/text.h"
#include "lib/model/entries.h"
#include "lib/model/foreign.h"

namespace vartml::artifact {

namespace {

constexpr size_t max_depth = 4;         // vaiml_par_0/0/debug/x
constexpr size_t max_names = 2 * 4096;  // entries, and files that are none

class DirectoryContainer final : public Container {
public:
    explicit DirectoryContainer(std::string path) : path_(std::move(path)) { format = "directory"; }

    Result<void> open() {
        const std::string name = path_ + "/model.vmf";
        auto file = MappedFile::open(name);
        if (!file) return file.error();
        auto read = read_manifest((*file)->bytes(), name, false);
        if (!read) return read.error();
        manifest = std::move(*read);
        files_.resize(manifest.blobs.size());
        for (size_t i = 0; i < manifest.blobs.size(); ++i) index_[manifest.blobs[i].name] = i;
        if (auto r = walk("", 0); !r) return r;
        for (size_t i = 0; i < files_.size(); ++i)
            if (!seen_.contains(i))
                return bad(path_ + '/' + manifest.blobs[i].name +
                           ": is missing, but model.vmf lists it; compile or copy the model again");
        return {};
    }

    Result<Bytes> entry(size_t index) override {
        const Blob& blob = manifest.blobs[index];
        const std::string name = path_ + '/' + blob.name;
        if (!files_[index]) {
            auto file = MappedFile::open(name);
            if (!file) return file.error();
            files_[index] = std::move(*file);
        }
        return verified(*files_[index], 0, files_[index]->bytes().size(), blob, name);
    }

private:
    static Error bad(std::string text) { return {ErrorCode::bad_model, std::move(text)}; }

    struct CloseDir {
        void operator()(DIR* dir) const { ::closedir(dir); }
    };

    // Every file below is an entry of the recorded size or one of those that need not be entries.
    Result<void> walk(const std::string& below, size_t depth) {
        const std::string folder = path_ + '/' + below;
        const std::unique_ptr<DIR, CloseDir> dir(::opendir(folder.c_str()));
        if (!dir) return system_error(folder, "open", errno);
        std::vector<std::string> names;
        while (const dirent* e = ::readdir(dir.get())) {
            const std::string_view name = e->d_name;
            if (name != "." && name != "..") names.emplace_back(name);
            if (names.size() + seen_.size() > max_names)
                return bad(folder + ": holds more than " + std::to_string(max_names) + " files");
        }
        std::ranges::sort(names);  // the first fault is the same one everywhere
        for (const std::string& name : names) {
            struct stat info{};
            const std::string relative = below + name;
            if (::lstat((path_ + '/' + relative).c_str(), &info) != 0)
                return system_error(path_ + '/' + relative, "read", errno);
            if (auto r = visit(relative, info, depth); !r) return r;
        }
        return {};
    }

    Result<void> visit(const std::string& name, const struct stat& info, size_t depth) {
        const std::string path = printable(path_ + '/' + name);
        if (S_ISDIR(info.st_mode)) {
            if (is_no_entry(name + "/x")) return {};  // debug/
            if (depth + 1 >= max_depth) return bad(path + ": no entry lies that deep");
            return walk(name + '/', depth + 1);
        }
        const auto at = index_.find(name);
        if (at == index_.end()) {
            if (is_no_entry(name)) return {};
            return bad(path +
                       ": is not listed in model.vmf; remove it, or compile the model again");
        }
        if (!S_ISREG(info.st_mode))
            return bad(path + ": is a link or a device, expected a regular file");
        const Blob& blob = manifest.blobs[at->second];
        if (static_cast<uint64_t>(info.st_size) != blob.size)
            return bad(path + ": has " + std::to_string(info.st_size) +
                       " bytes, recorded in model.vmf " + std::to_string(blob.size) +
                       "; the file is damaged, compile or copy it again");
        seen_.emplace(at->second, true);
        return {};
    }

    std::string path_;
    std::map<std::string, size_t, std::less<>> index_;  // of blobs by name
    std::map<size_t, bool> seen_;
    std::vector<std::shared_ptr<const MappedFile>> files_;
};

}  // namespace

Result<Bytes> Container::verified(const MappedFile& file, size_t offset, size_t size,
                                  const Blob& blob, const std::string& where) {
    if (size != blob.size)
        return Error{ErrorCode::bad_model, where + ": has " + std::to_string(size) +
                                               " bytes, recorded " + std::to_string(blob.size) +
                                               "; the file is damaged, compile or copy it again"};
    if (const uint32_t crc = file.checksum(offset, size); crc != blob.crc32c)
        return Error{ErrorCode::bad_model, where + ": checksum is " + hex(crc) + ", recorded " +
                                               hex(blob.crc32c) +
                                               "; the file is damaged, compile or copy it again"};
    return file.bytes().subspan(offset, size);
}

Result<std::shared_ptr<Container>> open_directory(const std::string& path) {
    auto container = std::make_shared<DirectoryContainer>(path);
    if (auto r = container->open(); !r) return r.error();
    return std::shared_ptr<Container>(std::move(container));
}

// A .rai: manifest, entries and footer in one mapped file.
namespace {

class RaiContainer final : public Container {
public:
    RaiContainer(std::string path, std::shared_ptr<const MappedFile> file)
        : path_(std::move(path)), file_(std::move(file)) {
        format = "rai";
    }

    Result<void> open() {
        const Bytes all = file_->bytes();
        const auto bytes = check_frame(all);
        if (!bytes) return bytes.error();
        auto read = read_manifest(*bytes, path_, true);
        if (!read) return read.error();
        manifest = std::move(*read);
        if (manifest.file_size != all.size())
            return bad("the manifest records a file size of " + std::to_string(manifest.file_size) +
                       ", the file has " + std::to_string(all.size()));
        return check_gaps(all, bytes->size());
    }

    Result<Bytes> entry(size_t index) override {
        const Blob& blob = manifest.blobs[index];
        return verified(*file_, blob.offset, blob.size, blob, path_ + ": blob '" + blob.name + "'");
    }

private:
    Error bad(const std::string& what) const { return {ErrorCode::bad_model, path_ + ": " + what}; }
    Error truncated(const std::string& what) const {
        return bad(what + "; the file is truncated, compile or copy it again");
    }

    // Footer, length and checksum of the manifest; returns the manifest's bytes.
    Result<Bytes> check_frame(Bytes all) const {
        if (all.size() < min_rai_bytes)
            return truncated("has " + std::to_string(all.size()) + " bytes, expected at least " +
                             std::to_string(min_rai_bytes));
        Footer footer;
        std::memcpy(&footer, all.last(sizeof footer).data(), sizeof footer);
        if (std::memcmp(footer.magic, footer_magic, sizeof footer.magic) != 0)
            return truncated("has no end mark");
        if (footer.file_size != all.size())
            return truncated("has " + std::to_string(all.size()) + " bytes, recorded " +
                             std::to_string(footer.file_size));
        uint32_t prefix;
        std::memcpy(&prefix, all.data(), sizeof prefix);
        const uint64_t end = all.size() - sizeof footer;
        if (footer.manifest_size > max_manifest_bytes || footer.manifest_size + 4ull > end ||
            prefix != footer.manifest_size || footer.reserved != 0 || end % 64 != 0)
            return bad("the manifest has " + std::to_string(prefix) +
                       " bytes at the start of the file and " +
                       std::to_string(footer.manifest_size) +
                       " in its end mark; the file is damaged, compile or copy it again");
        const Bytes bytes = all.first(footer.manifest_size + 4u);
        if (const uint32_t crc = crc32c(bytes); crc != footer.manifest_crc32c)
            return bad("manifest: checksum is " + hex(crc) + ", recorded " +
                       hex(footer.manifest_crc32c) +
                       "; the file is damaged, compile or copy it again");
        return bytes;
    }

    Result<void> check_gaps(Bytes all, size_t begin) const {
        const auto gap = [&](uint64_t from, uint64_t to) {
            return from <= to && std::ranges::all_of(all.subspan(from, to - from),
                                                     [](std::byte b) { return b == std::byte{0}; });
        };
        uint64_t end = begin;
        for (const Blob& b : manifest.blobs) {
            if (!gap(end, b.offset))
                return bad("the gap before entry '" + b.name +
                           "' is not zero; the file is damaged, compile or copy it again");
            end = b.offset + b.size;
        }
        if (!gap(end, all.size() - sizeof(Footer)))
            return bad(
                "the gap before the end mark is not zero, or an entry reaches into it; the "
                "file is damaged, compile or copy it again");
        return {};
    }

    std::string path_;
    std::shared_ptr<const MappedFile> file_;
};

}  // namespace

Result<std::shared_ptr<Container>> open_rai(const std::string& path) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    if (!looks_like_rai((*file)->bytes())) return refuse_file(path, (*file)->bytes());
    auto container = std::make_shared<RaiContainer>(path, std::move(*file));
    if (auto r = container->open(); !r) return r.error();
    return std::shared_ptr<Container>(std::move(container));
}

}  // namespace vartml::artifact
