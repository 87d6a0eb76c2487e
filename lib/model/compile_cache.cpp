// SPDX-License-Identifier: Apache-2.0
// Compiles by a child process, once per model, options and version.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <vartml/compile.h>
#include <vartml/log.h>
#include <vartml/postprocess.h>
#include <vartml/version.h>

#include "lib/base/file.h"
#include "lib/base/own_files.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/model/containers.h"
#include "lib/model/entries.h"

namespace vartml {
namespace {

// Collects everything that the result depends on; each part is preceded by its length, so that
// parts cannot run into each other.
class Key {
public:
    void add(Bytes bytes) {
        const uint64_t size = bytes.size();
        hash_.update(std::as_bytes(std::span(&size, 1)));
        hash_.update(bytes);
    }
    void add(std::string_view text) { add(as_bytes(text)); }
    std::string finish() { return to_hex(hash_.finish()).substr(0, 32); }

    // Content of a file; for a folder names, sizes and times of what is in it. Others add nothing.
    void add_file(const std::string& path) {
        struct stat info{};
        if (::stat(path.c_str(), &info) != 0) return;
        if (S_ISREG(info.st_mode)) {
            if (const auto file = MappedFile::open(path)) add((*file)->bytes());
        } else if (S_ISDIR(info.st_mode)) {
            add_folder(path);
        }
    }

    // With the file of labels that it may name.
    void add_sidecar(const std::string& path) {
        add_file(path);
        struct stat info{};
        if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
        const auto file = MappedFile::open(path);
        if (!file) return;
        const auto said = parse_modelinfo(as_text((*file)->bytes()), path);
        if (said && !said->labels_file.empty()) add_file(said->labels_file);
    }

private:
    void add_folder(const std::string& path) {
        struct CloseDir {
            void operator()(DIR* dir) const { ::closedir(dir); }
        };
        const std::unique_ptr<DIR, CloseDir> dir(::opendir(path.c_str()));
        std::vector<std::string> lines;
        while (const dirent* e = dir ? ::readdir(dir.get()) : nullptr) {
            struct stat info{};
            if (::stat((path + '/' + e->d_name).c_str(), &info) != 0 || !S_ISREG(info.st_mode))
                continue;
            lines.push_back(std::string(e->d_name) + ' ' + std::to_string(info.st_size) + ' ' +
                            std::to_string(info.st_mtim.tv_sec) + '.' +
                            std::to_string(info.st_mtim.tv_nsec));
        }
        std::ranges::sort(lines);
        for (const std::string& line : lines) add(line);
    }

    Sha256 hash_;
};

// Files with weights that an ONNX file names. This code must not know the format, but the records
// are plain to see: field 1 "location", field 2 the path. A chance match names no file, or adds one
// to the key for nothing.
std::vector<std::string> external_files(Bytes onnx) {
    constexpr std::string_view record = "\x0a\x08location\x12";
    std::vector<std::string> files;
    const std::string_view text = as_text(onnx);
    for (size_t at = text.find(record); at != text.npos; at = text.find(record, at + 1)) {
        // given: protobuf's varint, of which a path's length has at most two bytes
        size_t begin = at + record.size(), length = 0;
        for (unsigned shift = 0; shift <= 7 && begin < text.size(); shift += 7) {
            const auto byte = static_cast<unsigned char>(text[begin++]);
            length |= size_t{byte & 0x7fu} << shift;
            if (byte < 0x80) break;
        }
        if (begin + length > text.size()) continue;
        const std::string_view path = text.substr(begin, length);
        if (is_plain_text(path)) files.emplace_back(path);
    }
    std::ranges::sort(files);
    files.erase(std::ranges::unique(files).begin(), files.end());
    return files;
}

std::string stem_of(const std::string& path) {
    const std::string_view name = last_part(path);
    const size_t dot = name.rfind('.');
    return artifact::file_stem(name.substr(0, dot == 0 ? name.npos : dot));
}

std::string cache_key(const std::string& onnx_path, Bytes onnx, const CompileOptions& options) {
    Key key;
    key.add(version());
    key.add(source_commit());
    key.add(onnx);
    const std::string folder = parent_of(onnx_path);
    for (const std::string& file : external_files(onnx)) key.add_file(folder + '/' + file);
    // Sidecars become part of the compiled model.
    const std::string without_ending = onnx_path.substr(0, onnx_path.rfind('.'));
    for (const std::string& sidecar :
         {onnx_path + ".modelinfo", without_ending + ".modelinfo", folder + "/modelinfo"})
        key.add_sidecar(sidecar);
    for (const std::string& argument : options.arguments) {
        key.add(argument);
        key.add_file(argument);
        if (const size_t equals = argument.find('='); equals != argument.npos)
            key.add_file(argument.substr(equals + 1));
    }
    return stem_of(onnx_path) + '-' + key.finish();
}

// Where a program has no option for it, the environment has.
std::string another_folder(const CompileOptions& options) {
    return options.cache_dir.empty() ? "; set XDG_CACHE_HOME to another folder"
                                     : "; give another cache folder";
}

Result<std::string> cache_folder(const CompileOptions& options) {
    std::string folder = options.cache_dir;
    if (folder.empty()) folder = user_cache_folder();
    if (folder.empty())
        return Error{ErrorCode::io,
                     "neither XDG_CACHE_HOME nor HOME says where compiled models can be kept; "
                     "set XDG_CACHE_HOME to a folder"};
    folder = without_trailing_slashes(folder);
    if (auto r = make_own_directory(folder); !r)
        return Error{ErrorCode::io, r.error().message + another_folder(options)};
    return folder;
}

// Whether a whole, undamaged model is there that nobody else can have put there.
bool is_intact(const std::string& place) {
    if (!is_private_directory(place)) return false;
    const auto container = artifact::open_container(place);
    if (!container) return false;
    for (size_t i = 0; i < (*container)->manifest.blobs.size(); ++i)
        if (!(*container)->entry(i)) return false;
    return true;
}

std::string compiler_of(const CompileOptions& options) {
    return options.compiler.empty() ? vartml_program() : options.compiler;
}

std::string_view without_prefix(std::string_view line) {
    for (const std::string_view prefix :
         {"vartml: ", "[vartml] ", "ERROR: ", "error: ", "WARNING: "})
        if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    return line;
}

// How many faults a line tells: the compiler's last one counts those that it does not list.
size_t faults_of(std::string_view line) {
    constexpr std::string_view counted = " more nodes like these";
    if (!line.ends_with(counted)) return 1;
    line.remove_suffix(counted.size());
    line.remove_prefix(line.find_last_not_of("0123456789") + 1);
    size_t faults = 0;
    std::from_chars(line.data(), line.data() + line.size(), faults);
    return std::max<size_t>(faults, 1);
}

// What the compiler died of: of several faults the first, and how many there are beside; else the
// last line that says something. Warnings on the way go to the log.
std::string last_words(std::string_view text) {
    std::string last, fault;
    size_t more = 0;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.find_first_not_of(" \t\r") == line.npos) continue;
        if (line.find("WARNING") != line.npos) log(LogLevel::warning, "", without_prefix(line));
        last = printable(without_prefix(line), 4096);
        if (line.find("ERROR: ") == line.npos) continue;
        if (fault.empty())
            fault = last;
        else
            more += faults_of(line);
    }
    if (fault.empty()) return last;
    return more ? fault + " (and " + std::to_string(more) + " more)" : fault;
}

ErrorCode code_of(int exit_status) {
    switch (exit_status) {
        case 1:
            return ErrorCode::io;
        case 2:
            return ErrorCode::invalid_argument;
        case 3:
        case 5:
            return ErrorCode::unsupported;
        case 4:
            return ErrorCode::bad_model;
        default:
            return ErrorCode::internal;
    }
}

void report(std::string_view line, const CompileOptions& options) {
    constexpr std::string_view word = "progress ";
    if (!options.progress || !line.starts_with(word)) return;
    line.remove_prefix(word.size());
    int percent = -1;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), percent);
    if (error != std::errc() || percent < 0 || percent > 100) return;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
    options.progress(percent, std::string(line.substr(line.starts_with(' ') ? 1 : 0)));
}

// What never says why it fails, or leaves nothing behind, is not the program vartml.
Error no_compiler(const std::string& onnx_path, const std::string& program,
                  const std::string& what_it_did) {
    return {ErrorCode::io, onnx_path + ": the compiler " + program + " " + what_it_did +
                               ", so it is not the program vartml; name that in the environment "
                               "variable VARTML_COMPILER"};
}

Result<void> run_compiler(const std::string& onnx_path, const std::string& out,
                          const CompileOptions& options) {
    Child child;
    // A file named "-x" is no option.
    const std::string file = onnx_path.starts_with('-') ? "./" + onnx_path : onnx_path;
    child.arguments = {compiler_of(options),          "compile", file, "-o", out, "--progress-fd",
                       std::to_string(child_lines_fd)};
    child.arguments.insert(child.arguments.end(), options.arguments.begin(),
                           options.arguments.end());
    child.cancel = options.cancel;
    child.on_line = [&](std::string_view line) { report(line, options); };
    const std::string& program = child.arguments[0];
    const auto result = run_child(child);
    if (!result)
        return Error{ErrorCode::io,
                     result.error().message +
                         "; install the program vartml, or name it in the environment variable "
                         "VARTML_COMPILER"};
    if (result->cancelled)
        return Error{ErrorCode::timeout, onnx_path + ": compiling was cancelled"};
    const std::string words = last_words(result->stderr_tail);
    const std::string again = "; run it by hand: " + program + " compile " + onnx_path;
    if (result->signal != 0)
        return Error{ErrorCode::internal, onnx_path + ": the compiler was ended by signal " +
                                              std::to_string(result->signal) + " (" +
                                              ::strsignal(result->signal) + ')' + again};
    if (result->exit_status == 0) return {};
    if (words.empty())
        return no_compiler(
            onnx_path, program,
            "ended with status " + std::to_string(result->exit_status) + " and no message");
    return Error{code_of(result->exit_status), words};
}

// Under the lock: compiles into a folder beside `place` and puts the result there.
Result<void> compile_into(const std::string& place, const std::string& onnx_path,
                          const CompileOptions& options) {
    remove_left_overs(place);
    auto staged = StagedDirectory::create(place);
    if (!staged) return Error{ErrorCode::io, staged.error().message + another_folder(options)};
    // The compiler's own temporaries lie beside its result, and so inside of ours.
    const std::string out = staged->path() + "/model";
    if (auto r = run_compiler(onnx_path, out, options); !r) return r;
    struct stat info{};
    if (::stat(out.c_str(), &info) != 0)
        return no_compiler(onnx_path, compiler_of(options), "ended well and made no model");
    if (const auto model = artifact::open_container(out); !model)
        return Error{ErrorCode::internal, onnx_path + ": the compiler " + compiler_of(options) +
                                              " left no valid model: " + model.error().message};
    if (::chmod(out.c_str(), own_folder) != 0) return system_error(out, "make it private", errno);
    return replace_directory(out, place);
}

}  // namespace

Result<CompileResult> compile_onnx(const std::string& onnx_path, const CompileOptions& options) {
    const auto onnx = MappedFile::open(onnx_path);
    if (!onnx) return onnx.error();
    const auto folder = cache_folder(options);
    if (!folder) return folder.error();
    const std::string key = cache_key(onnx_path, (*onnx)->bytes(), options);
    const std::string place = *folder + '/' + key;
    if (is_intact(place)) return CompileResult{place, true};
    auto lock = FileLock::acquire(*folder + "/." + key + ".lock", options.cancel);
    if (!lock) return lock.error();
    // Another process may have compiled it while we waited.
    if (is_intact(place)) return CompileResult{place, true};
    if (auto r = compile_into(place, onnx_path, options); !r) return r.error();
    return CompileResult{place, false};
}

}  // namespace vartml
