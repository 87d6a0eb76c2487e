// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/tar_write.h"

#include <archive.h>
#include <archive_entry.h>

#include <map>
#include <set>

#include "lib/artifact/elf_data.h"
#include "lib/artifact/mpk.h"
#include "lib/artifact/tar_limits.h"
#include "lib/artifact/tar_names.h"
#include "lib/common/utf8.h"

namespace vartml::artifact {
namespace {

struct FreeWrite {
    void operator()(archive* a) const { archive_write_free(a); }
};
struct FreeEntry {
    void operator()(archive_entry* e) const { archive_entry_free(e); }
};

// The files of the archive by name; sections of one .elf together.
class Files {
public:
    Result<void> add(const Entry& entry, const std::string& model_name) {
        const auto name = tar_name(entry.blob.name, model_name);
        if (!name)
            return Error{ErrorCode::internal,
                         "entry '" + entry.blob.name + "' has no name in a .tar.gz, which is flat"};
        if (!name->section.empty()) {
            Sections& elf = elves_[name->file];
            (name->section == program_section ? elf.program : elf.weights) = entry.pieces;
            return {};
        }
        Pieces pieces;
        for (const Bytes piece : entry.pieces) pieces.add(piece);
        return add(name->file, std::move(pieces));
    }
    Result<void> add(const std::string& name, Pieces pieces) {
        if (!files_.emplace(name, std::move(pieces)).second)
            return Error{ErrorCode::internal, "two entries are called '" + name + "' in a .tar.gz"};
        return {};
    }
    Result<void> finish_elves() {
        for (auto& [name, elf] : elves_)
            if (auto r = add(name, write_elf(elf.program, elf.weights)); !r) return r;
        return {};
    }
    const std::map<std::string, Pieces>& by_name() const { return files_; }

private:
    struct Sections {
        std::vector<Bytes> program, weights;
    };
    std::map<std::string, Sections> elves_;
    std::map<std::string, Pieces> files_;
};

Result<Files> make_files(const CompiledModel& model, const std::vector<Entry>& entries,
                         const std::string& manifest) {
    Files files;
    for (const Entry& e : entries)
        if (auto r = files.add(e, model.model_name); !r) return r.error();
    if (auto r = files.finish_elves(); !r) return r.error();
    Pieces vmf, mpk;
    vmf.add(as_bytes(manifest));
    if (auto r = files.add("model.vmf", std::move(vmf)); !r) return r.error();
    std::set<std::string> names;
    for (const auto& [name, pieces] : files.by_name()) names.insert(name);
    std::string text = mpk_text(model);
    Checks checks("the .tar.gz of the compiled model: " + mpk_name(model.model_name));
    if (!check_mpk(checks, text, model, names))
        return Error{ErrorCode::internal, checks.error().message};
    mpk.add(std::move(text));
    if (auto r = files.add(mpk_name(model.model_name), std::move(mpk)); !r) return r.error();
    return files;
}

class TarWriter {
public:
    TarWriter(int fd, const std::string& path) : path_(path), archive_(archive_write_new()) {
        archive* a = archive_.get();
        good_ = a && archive_write_set_format_ustar(a) == ARCHIVE_OK &&
                archive_write_add_filter_gzip(a) == ARCHIVE_OK &&
                archive_write_set_options(a, "gzip:compression-level=6,gzip:!timestamp") ==
                    ARCHIVE_OK &&
                // Nothing may follow the compressed stream.
                archive_write_set_bytes_in_last_block(a, 1) == ARCHIVE_OK &&
                archive_write_open_fd(a, fd) == ARCHIVE_OK;
    }

    bool add(const std::string& name, const Pieces& pieces) {
        const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
        archive_entry* e = entry.get();
        archive_entry_set_pathname(e, name.c_str());
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_uid(e, 0);
        archive_entry_set_gid(e, 0);
        archive_entry_set_mtime(e, 0, 0);
        archive_entry_set_size(e, static_cast<la_int64_t>(pieces.size_bytes));
        good_ = good_ && archive_write_header(archive_.get(), e) == ARCHIVE_OK;
        for (const Bytes piece : pieces.list)
            good_ = good_ && archive_write_data(archive_.get(), piece.data(), piece.size()) ==
                                 static_cast<la_ssize_t>(piece.size());
        good_ = good_ && archive_write_finish_entry(archive_.get()) == ARCHIVE_OK;
        return good_;
    }

    // Of the two layers: bytes of the tar, bytes of the file.
    Result<std::pair<uint64_t, uint64_t>> finish() {
        good_ = good_ && archive_write_close(archive_.get()) == ARCHIVE_OK;
        if (!good_) {
            const char* reason = archive_ ? archive_error_string(archive_.get()) : nullptr;
            return Error{ErrorCode::io,
                         path_ + ": cannot write: " + printable(reason ? reason : "out of memory")};
        }
        return std::pair(static_cast<uint64_t>(archive_filter_bytes(archive_.get(), 0)),
                         static_cast<uint64_t>(archive_filter_bytes(archive_.get(), -1)));
    }

private:
    const std::string& path_;
    std::unique_ptr<archive, FreeWrite> archive_;
    bool good_ = false;
};

Result<void> check_limits(const std::string& path, const Files& files) {
    const TarLimits limits;
    const auto refuse = [&](const std::string& what) {
        return Error{ErrorCode::unsupported,
                     path + ": " + what + ", more than a reader of .tar.gz takes; write a .rai"};
    };
    if (files.by_name().size() > limits.entries)
        return refuse("the model has " + std::to_string(files.by_name().size()) + " entries");
    uint64_t total = 0;
    for (const auto& [name, pieces] : files.by_name()) {
        total += pieces.size_bytes;
        if (pieces.size_bytes > limits.entry_bytes)
            return refuse(name + " has " + std::to_string(pieces.size_bytes) + " bytes");
    }
    // Headers and padding are at most two blocks of 512 bytes per entry, and two at the end.
    total += 1024 * (files.by_name().size() + 1);
    if (total > limits.total_bytes)
        return refuse("the model has " + std::to_string(total) + " bytes");
    return {};
}

}  // namespace

Result<void> write_tar_to(int fd, const std::string& path, const CompiledModel& model,
                          const std::vector<Entry>& entries, const std::string& manifest) {
    const auto files = make_files(model, entries, manifest);
    if (!files) return files.error();
    if (auto r = check_limits(path, *files); !r) return r;
    TarWriter writer(fd, path);
    for (const auto& [name, pieces] : files->by_name())
        if (!writer.add(name, pieces)) break;
    const auto sizes = writer.finish();
    if (!sizes) return sizes.error();
    const auto [tar_bytes, file_bytes] = *sizes;
    const TarLimits limits;
    if (file_bytes > limits.compressed_bytes || limits.expands_too_much(tar_bytes, file_bytes))
        return Error{ErrorCode::unsupported,
                     path + ": has " + std::to_string(file_bytes) + " bytes for " +
                         std::to_string(tar_bytes) +
                         " bytes of tar, and readers of .tar.gz refuse that; write a .rai"};
    return {};
}

}  // namespace vartml::artifact
