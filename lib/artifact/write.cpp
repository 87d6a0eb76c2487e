// SPDX-License-Identifier: Apache-2.0
// Puts a compiled model on disk, whole or not at all.
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "lib/artifact/compiled_model.h"
#include "lib/artifact/containers.h"
#include "lib/artifact/entries.h"
#include "lib/artifact/foreign.h"
#include "lib/artifact/rai_footer.h"
#include "lib/artifact/tar_write.h"
#include "lib/common/crc32c.h"

namespace vartml::artifact {
namespace {

constexpr std::array<std::byte, 4096> zeros{};
constexpr uint64_t first_blob_alignment = 4096;

std::vector<Blob> blobs_of(const std::vector<Entry>& entries) {
    std::vector<Blob> blobs;
    for (const Entry& e : entries) blobs.push_back(e.blob);
    return blobs;
}

// What we write must be what we read: the reader's own checks run over each manifest.
Result<std::string> checked_manifest(const CompiledModel& model, const std::vector<Blob>& blobs,
                                     uint64_t file_size) {
    std::string bytes = write_manifest(model, blobs, file_size);
    // A copy on the heap, aligned as a mapping is.
    if (auto r = read_manifest(as_bytes(bytes), "the compiled model", file_size != 0); !r)
        return Error{ErrorCode::internal, r.error().message};
    return bytes;
}

uint64_t round_up(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// Places the blobs behind a manifest of `manifest_size` bytes; returns the size of the file.
uint64_t place(std::vector<Blob>& blobs, uint64_t manifest_size) {
    uint64_t end = round_up(manifest_size, first_blob_alignment);
    for (Blob& b : blobs) {
        b.offset = round_up(end, b.alignment);
        end = b.offset + b.size;
    }
    return round_up(end, 64) + sizeof(Footer);
}

struct Rai {
    std::string manifest;
    Footer footer;
    std::vector<Bytes> pieces;
};

Result<void> make_rai(const CompiledModel& model, const std::vector<Entry>& entries, Rai& rai) {
    std::vector<Blob> blobs = blobs_of(entries);
    // The length of the manifest does not depend on the numbers, only on their not being zero.
    const uint64_t provisional = place(blobs, 1);
    const size_t manifest_size = write_manifest(model, blobs, provisional).size();
    const uint64_t file_size = place(blobs, manifest_size);
    auto manifest = checked_manifest(model, blobs, file_size);
    if (!manifest) return manifest.error();
    if (manifest->size() != manifest_size)
        return Error{ErrorCode::internal, "the manifest of the .rai changed its length"};
    rai.manifest = std::move(*manifest);
    rai.footer.file_size = file_size;
    rai.footer.manifest_size = static_cast<uint32_t>(manifest_size - 4);
    rai.footer.manifest_crc32c = crc32c(as_bytes(rai.manifest));
    std::memcpy(rai.footer.magic, footer_magic, sizeof footer_magic);

    uint64_t end = 0;
    const auto add = [&](Bytes bytes) {
        rai.pieces.push_back(bytes);
        end += bytes.size();
    };
    const auto pad_to = [&](uint64_t offset) {
        while (end < offset)
            add(Bytes(zeros).first(std::min<uint64_t>(offset - end, zeros.size())));
    };
    add(as_bytes(rai.manifest));
    for (size_t i = 0; i < entries.size(); ++i) {
        pad_to(blobs[i].offset);
        for (const Bytes piece : entries[i].pieces) add(piece);
    }
    pad_to(file_size - sizeof(Footer));
    add(std::as_bytes(std::span(&rai.footer, 1)));
    return {};
}

class DirectoryWriter {
public:
    explicit DirectoryWriter(std::string path) : path_(std::move(path)) {}

    // `write` gets the open file and its path.
    using Write = std::function<Result<void>(int fd, const std::string& path)>;

    Result<void> add(const std::string& name, const Write& write) {
        const std::string file = path_ + '/' + name;
        const std::string parent = parent_of(file);
        if (made_.insert(parent).second)
            if (auto r = make_directories(parent); !r) return r;
        return write_new_file(file, [&](int fd) { return write(fd, file); });
    }
    Result<void> add(const std::string& name, std::span<const Bytes> pieces) {
        return add(name, [pieces](int fd, const std::string& path) {
            return write_pieces(fd, path, pieces);
        });
    }
    Result<void> add(const std::string& name, std::string_view text) {
        const Bytes pieces[] = {as_bytes(text)};
        return add(name, pieces);
    }

private:
    std::string path_;
    std::set<std::string> made_;
};

Result<void> fill(const CompiledModel& model, const DirectoryOptions& options,
                  const std::string& path) {
    const auto entries = make_entries(model);
    if (!entries) return entries.error();
    const auto manifest = checked_manifest(model, blobs_of(*entries), 0);
    if (!manifest) return manifest.error();
    DirectoryWriter writer(path);
    for (const Entry& e : *entries)
        if (auto r = writer.add(e.blob.name, e.pieces); !r) return r;
    for (const File& f : options.extras) {
        if (!is_no_entry(f.name) || f.name.find("..") != f.name.npos)
            return Error{ErrorCode::internal, "'" + f.name + "' cannot lie beside the entries"};
        if (auto r = writer.add(f.name, f.bytes); !r) return r;
    }
    if (options.rai) {
        Rai rai;
        if (auto r = make_rai(model, *entries, rai); !r) return r;
        if (auto r = writer.add(file_stem(model.model_name) + ".rai", rai.pieces); !r) return r;
    }
    if (options.tar) {
        const auto write = [&](int fd, const std::string& file) {
            return write_tar_to(fd, file, model, *entries, *manifest);
        };
        const std::string name = file_stem(model.model_name) + ".tar.gz";
        if (auto r = writer.add(name, DirectoryWriter::Write(write)); !r) return r;
    }
    return writer.add("model.vmf", *manifest);
}

}  // namespace

Result<void> check_replaceable(const std::string& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) {
        if (errno == ENOENT) return {};
        return system_error(path, "open", errno);
    }
    const auto refuse = [&](const std::string& why) {
        return Error{ErrorCode::invalid_argument,
                     path + ": exists and " + why +
                         ", so it is not replaced; remove it or give another place"};
    };
    if (!S_ISDIR(info.st_mode)) return refuse("is no folder");
    const auto manifest = MappedFile::open(path + "/model.vmf");
    if (!manifest || !looks_like_rai((*manifest)->bytes()))
        return refuse("was not made by vartml (no model.vmf)");
    return {};
}

Result<void> write_directory(const CompiledModel& model, const std::string& path,
                             const DirectoryOptions& options) {
    const std::string place = without_trailing_slashes(path);
    if (auto r = check_replaceable(place); !r) return r;
    auto staged = StagedDirectory::create(place);
    if (!staged) return staged.error();
    if (auto r = fill(model, options, staged->path()); !r) return r;
    return staged->commit();
}

Result<void> write_rai(const CompiledModel& model, const std::string& path) {
    const auto entries = make_entries(model);
    if (!entries) return entries.error();
    Rai rai;
    if (auto r = make_rai(model, *entries, rai); !r) return r;
    return replace_file(path, rai.pieces);
}

Result<void> write_tar(const CompiledModel& model, const std::string& path) {
    const auto entries = make_entries(model);
    if (!entries) return entries.error();
    const auto manifest = checked_manifest(model, blobs_of(*entries), 0);
    if (!manifest) return manifest.error();
    return replace_file(path,
                        [&](int fd) { return write_tar_to(fd, path, model, *entries, *manifest); });
}

}  // namespace vartml::artifact
