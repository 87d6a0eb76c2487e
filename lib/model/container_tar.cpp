// SPDX-License-Identifier: Apache-2.0
// A .tar.gz: unpacked into the directory form, every entry checked, then mapped.
#include "lib/model/container_tar.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <archive.h>
#include <archive_entry.h>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/base/own_files.h"
#include "lib/base/test_seams.h"
#include "lib/base/text.h"
#include "lib/model/containers.h"
#include "lib/model/entries.h"
#include "lib/model/mpk.h"
#include "lib/model/tar_stream.h"
#include "lib/model/unpack.h"

namespace vartml::artifact {

// The .elf of an NPU partition in a .tar.gz: program and weights as two sections. It is data, never
// executed.

// Content of a file in pieces, one after another; `owners` keep those that are nobody else's.
struct Pieces {
    std::vector<Bytes> list;
    std::vector<std::shared_ptr<const std::string>> owners;
    uint64_t size_bytes = 0;

    void add(Bytes bytes);
    void add(std::string text);
};

// ELF64, little-endian, ET_EXEC, machine 0, no program headers; the weights begin at a multiple of
// 4096. Without weights there is no section for them.
Pieces write_elf(const std::vector<Bytes>& program, const std::vector<Bytes>& weights);

// The bytes of a section; a span without address where there is no such section.
struct ElfSections {
    Bytes program, weights;
};
// What is wrong with the file, for a sentence: "has no section .vartml.program". Other sections are
// not looked at.
Result<ElfSections> read_elf(Bytes file);

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
    Error bad(const std::string& entry, const std::string& text) const {
        return entry_error(path_, entry, text);
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

    // The files are those that the manifest means, no more and no less.
    Result<void> check_listing() {
        std::set<std::string> meant{manifest_name, mpk_name(model_name())};
        for (const Blob& blob : manifest.blobs) {
            const auto name = tar_name(blob.name, model_name());
            if (!name)
                return bad(manifest_name, "names '" + blob.name + "', which a .tar.gz cannot hold");
            if (!listing_.contains(name->file))
                return bad(name->file, "is missing, but model.vmf lists it");
            if (name->section.empty())
                if (auto r = check_size(blob, name->file, listing_[name->file]); !r) return r;
            if (!meant.insert(name->file).second && name->section.empty())
                return bad(name->file, "stands for two entries of model.vmf");
        }
        if (!listing_.contains(mpk_name(model_name())))
            return bad(mpk_name(model_name()), "is missing");
        for (const auto& [name, size] : listing_)
            if (!meant.contains(name)) return bad(name, "is not listed in model.vmf");
        return {};
    }

    Result<void> check_size(const Blob& blob, const std::string& file, uint64_t size) const {
        if (size == blob.size) return {};
        return bad(file, "has " + std::to_string(size) + " bytes, recorded in model.vmf " +
                             std::to_string(blob.size));
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
            if (!sections) return bad(name.file, sections.error().message);
            const Bytes bytes =
                name.section == program_section ? sections->program : sections->weights;
            if (!bytes.data()) return bad(name.file, "has no section " + std::string(name.section));
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

    // Returns errno. Some file systems (NFS, 9p, those of virtual machines) have no flags for a
    // rename; nobody else writes into this folder, so that looking first is as good there.
    int put(const char* from, const char* to) {
        const int folder = folder_->fd().get();
        if (!test_seams.plain_renames &&
            ::renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
            return 0;
        const int error = test_seams.plain_renames ? EINVAL : errno;
        if (error != EINVAL && error != ENOSYS) return error;
        if (::faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
        return errno != ENOENT || ::renameat(folder, from, folder, to) != 0 ? errno : 0;
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
            if (const int error = put(from.c_str(), blob.name.c_str()); error != 0)
                return failed(blob.name, "unpack", error);
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
                return bad(blob.name, "has the checksum " + hex(crc) + ", recorded in model.vmf " +
                                          hex(blob.crc32c));
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

namespace {

constexpr std::array<std::byte, 4096> zeros{};

template <typename T>
std::string bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The section headers and their names, in the order of the file.
class SectionTable {
public:
    SectionTable() { headers_.resize(1); }  // the empty one that every file begins with

    void add(std::string_view name, uint32_t type, uint64_t offset, uint64_t size, uint64_t align) {
        Elf64_Shdr header{};
        header.sh_name = static_cast<Elf64_Word>(names_.size());
        header.sh_type = type;
        header.sh_offset = offset;
        header.sh_size = size;
        header.sh_addralign = align;
        headers_.push_back(header);
        names_ += std::string(name) + '\0';
    }
    // Adds the names as the last section, which lies at `offset`.
    const std::string& finish_names(uint64_t offset) {
        add(".shstrtab", SHT_STRTAB, offset, 0, 1);
        headers_.back().sh_size = names_.size();
        return names_;
    }
    size_t count() const { return headers_.size(); }
    std::string headers() const {
        return {reinterpret_cast<const char*>(headers_.data()),
                headers_.size() * sizeof(Elf64_Shdr)};
    }

private:
    std::vector<Elf64_Shdr> headers_;
    std::string names_ = std::string(1, '\0');
};

uint64_t size_of(const std::vector<Bytes>& pieces) {
    uint64_t size = 0;
    for (const Bytes b : pieces) size += b.size();
    return size;
}

Error bad(std::string text) {
    return {ErrorCode::bad_model, std::move(text)};
}

template <typename T>
T copy_at(Bytes file, uint64_t offset) {
    T value{};
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
}

bool is_inside(Bytes file, uint64_t offset, uint64_t size) {
    return offset <= file.size() && size <= file.size() - offset;
}

Result<Elf64_Ehdr> read_header(Bytes file) {
    constexpr char identity[] = {'\x7f', 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
    if (file.size() < sizeof(Elf64_Ehdr) ||
        !as_text(file).starts_with(std::string_view(identity, sizeof identity)))
        return bad("is no little-endian ELF64 file");
    const auto header = copy_at<Elf64_Ehdr>(file, 0);
    if (header.e_type != ET_EXEC || header.e_machine != EM_NONE || header.e_phnum != 0)
        return bad("has ELF type " + std::to_string(header.e_type) + ", machine " +
                   std::to_string(header.e_machine) + " and " + std::to_string(header.e_phnum) +
                   " program headers, expected type 2, machine 0 and none");
    if (header.e_shnum == 0 ||  // or the file ends before their table
        !is_inside(file, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
        return bad("has no section " + std::string(program_section));
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum)
        return bad("has a damaged ELF header");
    return header;
}

}  // namespace

void Pieces::add(Bytes bytes) {
    list.push_back(bytes);
    size_bytes += bytes.size();
}

void Pieces::add(std::string text) {
    owners.push_back(std::make_shared<const std::string>(std::move(text)));
    add(as_bytes(*owners.back()));
}

Pieces write_elf(const std::vector<Bytes>& program, const std::vector<Bytes>& weights) {
    SectionTable table;
    Pieces body;  // behind the header
    const auto at = [&] { return sizeof(Elf64_Ehdr) + body.size_bytes; };
    const auto pad_to = [&](uint64_t multiple) {
        while (at() % multiple != 0)
            body.add(
                Bytes(zeros).first(std::min<uint64_t>(multiple - at() % multiple, zeros.size())));
    };
    const auto add_section = [&](std::string_view name, const std::vector<Bytes>& pieces,
                                 uint64_t alignment) {
        pad_to(alignment);
        table.add(name, SHT_PROGBITS, at(), size_of(pieces), alignment);
        for (const Bytes piece : pieces) body.add(piece);
    };
    add_section(program_section, program, 64);
    if (!weights.empty()) add_section(weights_section, weights, 4096);
    body.add(table.finish_names(at()));
    pad_to(alignof(Elf64_Shdr));

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_NONE;
    header.e_version = EV_CURRENT;
    header.e_shoff = at();
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(table.count());
    header.e_shstrndx = static_cast<Elf64_Half>(table.count() - 1);
    body.add(table.headers());

    Pieces file;
    file.add(bytes_of(header));
    for (const Bytes piece : body.list) file.add(piece);
    std::ranges::move(body.owners, std::back_inserter(file.owners));
    return file;
}

Result<ElfSections> read_elf(Bytes file) {
    const auto header = read_header(file);
    if (!header) return header.error();
    const auto section = [&](uint64_t i) {
        return copy_at<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr table = section(header->e_shstrndx);
    if (!is_inside(file, table.sh_offset, table.sh_size)) return bad("has no names of sections");
    const std::string_view names = as_text(file.subspan(table.sh_offset, table.sh_size));
    ElfSections out;
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
        const Elf64_Shdr s = section(i);
        const std::string_view rest = names.substr(std::min<uint64_t>(s.sh_name, names.size()));
        const std::string_view name = rest.substr(0, rest.find('\0'));
        Bytes* into = name == program_section   ? &out.program
                      : name == weights_section ? &out.weights
                                                : nullptr;
        if (!into) continue;
        if (into->data()) return bad("has section " + std::string(name) + " twice");
        if (s.sh_type != SHT_PROGBITS || !is_inside(file, s.sh_offset, s.sh_size))
            return bad("has section " + std::string(name) + " outside of the file's " +
                       std::to_string(file.size()) + " bytes");
        *into = file.subspan(s.sh_offset, s.sh_size);
    }
    if (!out.program.data()) return bad("has no section " + std::string(program_section));
    return out;
}

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
