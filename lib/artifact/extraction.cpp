// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/extraction.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "lib/artifact/containers.h"

namespace vartml::artifact {
namespace {

constexpr int max_attempts = 1000;

std::string temporary_folder() {
    const char* folder = std::getenv("TMPDIR");
    return folder && folder[0] == '/' ? folder : "/tmp";
}

// mkdtemp makes it with mode 0700.
Result<std::string> make_temporary() {
    std::string path = temporary_folder() + "/vartml-XXXXXX";
    if (!::mkdtemp(path.data())) {
        const int error = errno;
        return Error{ErrorCode::io,
                     system_error(temporary_folder(), "create a folder in it", error).message +
                         "; name another place in the environment variable TMPDIR"};
    }
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
    if (!is_private_directory(out.path_))
        return Error{ErrorCode::io, out.path_ +
                                        ": is not for this user alone, although it was "
                                        "made so (rule A12)"};
    return out;
}

ExtractionFolder::ExtractionFolder(ExtractionFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      staged_(std::move(other.staged_)),
      fd_(std::move(other.fd_)) {}

ExtractionFolder::~ExtractionFolder() {
    if (!staged_ && !path_.empty()) (void)remove_tree(path_);
}

Result<void> ExtractionFolder::commit() {
    return staged_ ? staged_->commit() : Result<void>();
}

bool is_private_directory(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
           info.st_uid == ::geteuid() && (info.st_mode & 0022) == 0;
}

}  // namespace vartml::artifact
