// SPDX-License-Identifier: Apache-2.0
// A .tar.gz: unpacked into the directory form, every entry checked, then mapped.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>

#include "lib/artifact/containers.h"
#include "lib/artifact/elf_data.h"
#include "lib/artifact/extraction.h"
#include "lib/artifact/mpk.h"
#include "lib/artifact/rai_footer.h"
#include "lib/artifact/tar_names.h"
#include "lib/artifact/tar_stream.h"
#include "lib/artifact/unpack.h"

namespace vartml::artifact {
namespace {

constexpr const char* manifest_name = "model.vmf";

bool is_program(const Blob& blob) {
    return blob.kind == rai::BlobKind::Program || blob.kind == rai::BlobKind::Weights;
}

class TarContainer final : public Container {
public:
    TarContainer(std::string path, const ReadOptions& options)
        : path_(std::move(path)), options_(options) {
        format = "tar";
    }

    Result<void> open() {
        if (options_.extraction.keep) {
            const auto reused = reuse();
            if (!reused) return reused.error();
            if (*reused) return {};
        }
        auto folder = ExtractionFolder::create(options_.extraction);
        if (!folder) return folder.error();
        folder_.emplace(std::move(*folder));
        auto listing = unpack_tar(path_, folder_->fd(), {.programs = options_.programs});
        if (!listing) return listing.error();
        listing_ = std::move(*listing);
        if (auto r = read_manifest_in(folder_->path()); !r) return r;
        if (auto r = check_listing(); !r) return r;
        if (auto r = check_description(); !r) return r;
        if (auto r = split_elves(); !r) return r;
        if (auto r = put_in_folders(); !r) return r;
        if (auto r = map_entries(folder_->path()); !r) return r;
        if (auto r = folder_->commit(); !r) return r;
        // The mappings need no names.
        if (options_.extraction.path.empty() || options_.extraction.keep) folder_.reset();
        return {};
    }

    // Checked when it was opened.
    Result<Bytes> entry(size_t index) override {
        if (!files_[index])
            return Error{ErrorCode::internal,
                         path_ + ": entry '" + manifest.blobs[index].name + "' was not unpacked"};
        return files_[index]->bytes();
    }

private:
    Error bad(const std::string& entry, const std::string& text, const char* rule) const {
        return rule_error(path_, entry, text, rule);
    }
    Error failed(const std::string& entry, const char* what, int error) const {
        return system_error(path_ + ": entry '" + entry + "'", what, error);
    }
    const std::string& model_name() const { return manifest.model.model_name; }

    // Whether the folder that is to stay holds this archive's model, whole.
    Result<bool> reuse() {
        const std::string place = without_trailing_slashes(options_.extraction.path);
        const auto kept = MappedFile::open(place + '/' + manifest_name);
        if (!kept || !is_private_directory(place)) return false;
        const auto wanted = peek_manifest(path_);
        if (!wanted) return wanted.error();
        if (as_text((*kept)->bytes()) != *wanted) return false;
        if (auto r = read_manifest_in(place); !r) return r.error();
        return static_cast<bool>(map_entries(place));
    }

    Result<void> read_manifest_in(const std::string& folder) {
        const auto file = MappedFile::open(folder + '/' + manifest_name);
        if (!file) return file.error();
        auto read = read_manifest((*file)->bytes(), path_ + ": " + manifest_name, false);
        if (!read) return read.error();
        manifest = std::move(*read);
        return {};
    }

    // Rule A11: the files are those that the manifest means, no more and no less.
    Result<void> check_listing() {
        std::set<std::string> meant{manifest_name, mpk_name(model_name())};
        for (const Blob& blob : manifest.blobs) {
            const auto name = tar_name(blob.name, model_name());
            if (!name)
                return bad(manifest_name, "names '" + blob.name + "', which a .tar.gz cannot hold",
                           "A11");
            if (!listing_.contains(name->file))
                return bad(name->file, "is missing, but model.vmf lists it", "A11");
            if (name->section.empty())
                if (auto r = check_size(blob, name->file, listing_[name->file]); !r) return r;
            if (!meant.insert(name->file).second && name->section.empty())
                return bad(name->file, "stands for two entries of model.vmf", "A11");
        }
        if (!listing_.contains(mpk_name(model_name())))
            return bad(mpk_name(model_name()), "is missing", "A11");
        for (const auto& [name, size] : listing_)
            if (!meant.contains(name)) return bad(name, "is not listed in model.vmf", "A11");
        return {};
    }

    Result<void> check_size(const Blob& blob, const std::string& file, uint64_t size) const {
        if (size == blob.size) return {};
        return bad(file,
                   "has " + std::to_string(size) + " bytes, recorded in model.vmf " +
                       std::to_string(blob.size),
                   "A11");
    }

    Result<void> check_description() {
        const std::string name = mpk_name(model_name());
        const auto file = MappedFile::open(folder_->path() + '/' + name);
        if (!file) return file.error();
        std::set<std::string> names;
        for (const auto& [entry, size] : listing_) names.insert(entry);
        Checks checks(path_ + ": entry '" + name + '\'');
        if (!check_mpk(checks, as_text((*file)->bytes()), manifest.model, names))
            return checks.error();
        return remove(name);
    }

    Result<void> remove(const std::string& name) {
        if (::unlinkat(folder_->fd().get(), name.c_str(), 0) != 0)
            return failed(name, "remove", errno);
        return {};
    }

    // The sections of each .elf become files beside it.
    Result<void> split_elves() {
        if (!options_.programs) return {};
        std::set<std::string> done;
        for (const Blob& blob : manifest.blobs) {
            const TarName name = *tar_name(blob.name, model_name());
            if (name.section.empty()) continue;
            const auto file = MappedFile::open(folder_->path() + '/' + name.file);
            if (!file) return file.error();
            const auto sections = read_elf((*file)->bytes());
            if (!sections) return bad(name.file, sections.error().message, "A9");
            const Bytes bytes =
                name.section == program_section ? sections->program : sections->weights;
            if (!bytes.data())
                return bad(name.file, "has no section " + std::string(name.section), "A11");
            if (auto r = check_size(blob, name.file + ": section " + std::string(name.section),
                                    bytes.size());
                !r)
                return r;
            if (auto r = write_section(name, bytes); !r) return r;
            done.insert(name.file);
        }
        for (const std::string& name : done)
            if (auto r = remove(name); !r) return r;
        return {};
    }

    // Sections lie under a name that no entry has until they are put in their folder.
    static std::string file_of(const TarName& name) {
        return name.file + std::string(name.section);
    }

    Result<void> write_section(const TarName& name, Bytes bytes) {
        constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        const Fd fd(::openat(folder_->fd().get(), file_of(name).c_str(), flags, 0666));
        if (!fd) return failed(name.file, "unpack", errno);
        const Bytes pieces[] = {bytes};
        return write_pieces(fd.get(), path_ + ": entry '" + name.file + "'", pieces);
    }

    Result<void> put_in_folders() {
        const int folder = folder_->fd().get();
        for (const Blob& blob : manifest.blobs) {
            if (is_program(blob) && !options_.programs) continue;
            const std::string from = file_of(*tar_name(blob.name, model_name()));
            if (from == blob.name) continue;
            for (size_t at = blob.name.find('/'); at != blob.name.npos;
                 at = blob.name.find('/', at + 1))
                if (::mkdirat(folder, blob.name.substr(0, at).c_str(), 0777) != 0 &&
                    errno != EEXIST)
                    return failed(blob.name, "create the folder of", errno);
            if (::renameat2(folder, from.c_str(), folder, blob.name.c_str(), RENAME_NOREPLACE) != 0)
                return failed(blob.name, "unpack", errno);
        }
        return {};
    }

    Result<void> map_entries(const std::string& folder) {
        files_.assign(manifest.blobs.size(), nullptr);
        for (size_t i = 0; i < files_.size(); ++i) {
            const Blob& blob = manifest.blobs[i];
            if (is_program(blob) && !options_.programs) continue;
            auto file = MappedFile::open(folder + '/' + blob.name);
            if (!file) return file.error();
            const Bytes bytes = (*file)->bytes();
            if (auto r = check_size(blob, blob.name, bytes.size()); !r) return r;
            if (const uint32_t crc = (*file)->checksum(0, bytes.size()); crc != blob.crc32c)
                return bad(
                    blob.name,
                    "has the checksum " + hex(crc) + ", recorded in model.vmf " + hex(blob.crc32c),
                    "A11");
            files_[i] = std::move(*file);
        }
        return {};
    }

    const std::string path_;
    const ReadOptions options_;
    std::optional<ExtractionFolder> folder_;
    TarListing listing_;
    std::vector<std::shared_ptr<const MappedFile>> files_;  // by blob
};

}  // namespace

Result<std::shared_ptr<Container>> open_tar(const std::string& path, const ReadOptions& options) {
    // Without programs there is nothing that is worth keeping.
    auto container = std::make_shared<TarContainer>(
        path, options.programs ? options : ReadOptions{.programs = false});
    if (auto r = container->open(); !r) return r.error();
    return std::shared_ptr<Container>(std::move(container));
}

}  // namespace vartml::artifact
