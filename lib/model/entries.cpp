// SPDX-License-Identifier: Apache-2.0
#include "lib/model/entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "lib/base/checksum.h"
#include "lib/base/own_files.h"
#include "lib/base/temporaries.h"
#include "lib/model/containers.h"
#include "lib/model/derived.h"
#include "lib/model/program.h"
#include "lib/trace/descriptor.h"

namespace vartml::artifact {
namespace {

constexpr uint32_t page = 4096;  // programs and weights start at one in a .rai

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

Entry make_entry(std::string name, rai::BlobKind kind, std::vector<Bytes> pieces,
                 std::shared_ptr<const std::string> owner = nullptr) {
    Entry e;
    e.blob.name = std::move(name);
    e.blob.kind = kind;
    const bool paged = kind == rai::BlobKind::Program || kind == rai::BlobKind::Weights;
    e.blob.alignment = paged ? page : 64;
    for (const Bytes piece : pieces) {
        e.blob.size += piece.size();
        e.blob.crc32c = crc32c(piece, e.blob.crc32c);
    }
    e.pieces = std::move(pieces);
    e.owner = std::move(owner);
    return e;
}

Entry make_text_entry(std::string name, rai::BlobKind kind, std::string text) {
    auto owner = std::make_shared<const std::string>(std::move(text));
    const Bytes bytes = as_bytes(*owner);
    return make_entry(std::move(name), kind, {bytes}, std::move(owner));
}

}  // namespace

bool has_only_name_characters(std::string_view name) {
    return std::ranges::all_of(name, is_name_character);
}

bool has_known_ending(std::string_view name) {
    constexpr std::array<std::string_view, 7> endings{".json", ".yaml", ".vnp",      ".vmf",
                                                      ".bin",  ".txt",  ".modelinfo"};
    return name == "modelinfo" ||
           std::ranges::any_of(endings, [&](std::string_view e) { return name.ends_with(e); });
}

std::string name_fault(std::string_view name) {
    if (name.empty() || name.size() > 255)
        return "has " + std::to_string(name.size()) + " bytes, expected 1 to 255";
    if (name.front() == '/') return "is absolute";
    for (size_t begin = 0, end; begin <= name.size(); begin = end + 1) {
        end = std::min(name.find('/', begin), name.size());
        const std::string_view part = name.substr(begin, end - begin);
        if (part.empty()) return "has an empty part";
        if (part == "." || part == "..") return "holds '" + std::string(part) + "'";
        if (!has_only_name_characters(part))
            return "holds characters outside of A-Z, a-z, 0-9, '.', '_' and '-'";
    }
    const std::string_view file = last_part(name);
    if (!has_known_ending(file)) return "has an ending that no entry has";
    return {};
}

std::string file_stem(std::string_view model_name) {
    std::string stem(model_name.substr(0, 128));
    for (char& c : stem)
        if (!is_name_character(c)) c = '_';
    return stem.empty() ? "model" : stem;
}

bool is_no_entry(std::string_view name) {
    const bool top = name.find('/') == name.npos;
    if (top)
        return name == "model.vmf" || name == "compile.log" || name.ends_with(".rai") ||
               name.ends_with(".tar.gz");
    return name.starts_with("debug/") || name.starts_with("weights/") ||
           name.find("/0/debug/") != name.npos;
}

Result<std::vector<Entry>> make_entries(const CompiledModel& model) {
    std::vector<Entry> entries;
    for (const File& f : model.files) {
        const bool stats = f.name == profiling::descriptor_entry;
        entries.push_back(make_entry(f.name,
                                     stats ? rai::BlobKind::StatsDescriptor : rai::BlobKind::File,
                                     {as_bytes(f.bytes)}));
    }
    for (const Partition& p : model.partitions) {
        auto written = write_program(model, p);
        if (!written) return written.error();
        const std::string folder = entry_folder(p);
        entries.push_back(make_text_entry(folder + "program.vnp", rai::BlobKind::Program,
                                          std::move(written->bytes)));
        if (written->weights_size != 0)
            entries.push_back(make_entry(folder + "weights.bin", rai::BlobKind::Weights,
                                         std::move(written->weights)));
    }
    // After the programs: they have proved that the graphs are sound.
    for (File& f : derived_files(model))
        if (!model.find_file(f.name))
            entries.push_back(
                make_text_entry(std::move(f.name), rai::BlobKind::File, std::move(f.bytes)));
    std::ranges::sort(entries, {},
                      [](const Entry& e) -> const std::string& { return e.blob.name; });
    return entries;
}

namespace {

constexpr int max_attempts = 1000;

std::string temporary_folder() {
    const char* folder = std::getenv("TMPDIR");
    return folder && folder[0] == '/' ? folder : "/tmp";
}

// ours: a name and a mode that nobody else gives a folder, because what is left is removed
constexpr std::string_view temporary_name = ".vartml-unpacked-XXXXXX";
constexpr mode_t temporary_mode = 0700;  // of mkdtemp

// Folders whose owner was killed: their lock is gone with it. A new one is locked at once, but not
// in the same step.
void remove_left_temporaries() {
    constexpr time_t new_seconds = 600;
    const std::string parent = temporary_folder();
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(parent.c_str()), ::closedir);
    if (!folder) return;
    const std::string_view prefix = temporary_name.substr(0, temporary_name.find('X'));
    while (const dirent* entry = ::readdir(folder.get())) {
        const std::string_view name = entry->d_name;
        if (name.size() != temporary_name.size() || !name.starts_with(prefix)) continue;
        const std::string path = parent + '/' + std::string(name);
        const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        struct stat status{};
        if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_uid != ::geteuid() ||
            (status.st_mode & 0777) != temporary_mode ||
            status.st_mtime + new_seconds > ::time(nullptr))
            continue;
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) (void)remove_tree(path);
    }
}

Result<std::string> make_temporary() {
    remove_left_temporaries();
    std::string path = temporary_folder() + '/' + std::string(temporary_name);
    MakingTemporary making;
    if (!::mkdtemp(path.data())) {
        const int error = errno;
        return Error{ErrorCode::io,
                     system_error(temporary_folder(), "create a folder in it", error).message +
                         "; name another place in the environment variable TMPDIR"};
    }
    making.made(path);
    return path;
}

// Of two runners of one thread each has its own. Where the user may not write, it is a temporary
// folder instead.
Result<std::string> make_numbered(const std::string& stem) {
    std::string path = stem;
    for (int attempt = 2; ::mkdir(path.c_str(), 0700) != 0; ++attempt) {
        const int error = errno;
        if (error == EACCES || error == EPERM || error == EROFS) return make_temporary();
        if (error != EEXIST || attempt > max_attempts)
            return Error{ErrorCode::io, system_error(path, "create the folder", error).message +
                                            "; give a folder that can be written to as cache_path"};
        path = stem + '_' + std::to_string(attempt);
    }
    return path;
}

}  // namespace

Result<ExtractionFolder> ExtractionFolder::create(const Extraction& extraction) {
    ExtractionFolder out;
    if (extraction.keep) {
        const std::string place = without_trailing_slashes(extraction.path);
        if (auto r = make_directories(parent_of(place)); !r) return r.error();
        ::rmdir(place.c_str());  // an empty folder is as good as none
        if (auto r = check_replaceable(place); !r) return r.error();
        auto staged = StagedDirectory::create(place, 0700);
        if (!staged) return staged.error();
        out.staged_.emplace(std::move(*staged));
        out.path_ = out.staged_->path();
    } else {
        auto made = extraction.path.empty() ? make_temporary() : make_numbered(extraction.path);
        if (!made) return made.error();
        out.path_ = std::move(*made);
    }
    out.fd_ = Fd(::open(out.path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!out.fd_) return system_error(out.path_, "open", errno);
    if (!out.staged_) ::flock(out.fd_.get(), LOCK_SH);  // until it is closed: somebody's
    if (!is_private_directory(out.path_))
        return Error{ErrorCode::io, out.path_ +
                                        ": is not for this user alone, although it was "
                                        "made so"};
    return out;
}

ExtractionFolder::ExtractionFolder(ExtractionFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      staged_(std::move(other.staged_)),
      fd_(std::move(other.fd_)) {}

ExtractionFolder::~ExtractionFolder() {
    if (staged_ || path_.empty()) return;
    (void)remove_tree(path_);
    forget_temporary(path_);
}

Result<void> ExtractionFolder::commit() {
    return staged_ ? staged_->commit() : Result<void>();
}

}  // namespace vartml::artifact
