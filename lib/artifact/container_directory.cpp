// SPDX-License-Identifier: Apache-2.0
// The directory form: model.vmf and one file per entry.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "lib/artifact/containers.h"
#include "lib/artifact/entries.h"
#include "lib/artifact/rai_footer.h"
#include "lib/common/utf8.h"

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

}  // namespace vartml::artifact
