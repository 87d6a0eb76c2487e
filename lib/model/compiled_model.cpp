// SPDX-License-Identifier: Apache-2.0
#include "lib/model/compiled_model.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include <vartml/model.h>

#include "lib/base/checksum.h"
#include "lib/base/text.h"
#include "lib/model/container_tar.h"
#include "lib/model/containers.h"
#include "lib/model/entries.h"
#include "lib/model/foreign.h"
#include "lib/model/program.h"

namespace vartml::artifact {

const std::string* CompiledModel::find_file(std::string_view name) const {
    const auto at = std::ranges::find(files, name, &File::name);
    return at == files.end() ? nullptr : &at->bytes;
}

}  // namespace vartml::artifact

namespace vartml {

Result<ModelDescription> open_model(const std::string& path) {
    auto model = artifact::read(path, {.programs = false});
    if (!model) return model.error();
    ModelDescription d;
    d.path = path;
    d.format = std::move(model->format);
    d.name = std::move(model->model_name);
    d.signature = std::move(model->model_signature);
    d.device = std::move(model->device);
    d.target = std::move(model->target);
    d.tool_version = std::move(model->tool_version);
    d.cpu_partitioned = model->compilation == artifact::Compilation::cpu_partition;
    d.desired_batch_size = model->desired_batch_size;
    d.actual_batch_size = model->actual_batch_size;
    // Operators that no partition holds are left to another runtime, which means the CPU.
    d.npu_operators = model->summary.offloaded.operators;
    if (model->summary.total.operators > d.npu_operators)
        d.cpu_operators = model->summary.total.operators - d.npu_operators;
    if (!model->summary.fallbacks.empty()) {
        const artifact::Fallback& f = model->summary.fallbacks.front();
        d.first_cpu_operator = f.op_type + " node '" + f.node + "' (" + f.code + ')';
    }
    d.inputs = std::move(model->inputs);
    d.outputs = std::move(model->outputs);
    if (const std::string* modelinfo = model->find_file("modelinfo")) d.modelinfo = *modelinfo;
    return d;
}

}  // namespace vartml

namespace vartml::artifact {

// Finds the compiled model that a path means and brings it into memory.
namespace {

struct Listing {
    std::vector<std::string> rai, folders;  // sorted
    bool has_manifest = false, has_partition = false;
};

Result<Listing> list(const std::string& path) {
    struct CloseDir {
        void operator()(DIR* dir) const { ::closedir(dir); }
    };
    const std::unique_ptr<DIR, CloseDir> dir(::opendir(path.c_str()));
    if (!dir) return system_error(path, "open", errno);
    Listing out;
    while (const dirent* e = ::readdir(dir.get())) {
        const std::string name = e->d_name;
        struct stat info{};
        if (name == "." || name == ".." || ::stat((path + '/' + name).c_str(), &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode)) {
            out.folders.push_back(name);
            out.has_partition |= name == "vaiml_par_0";
        } else {
            out.has_manifest |= name == "model.vmf";
            if (name.ends_with(".rai")) out.rai.push_back(name);
        }
    }
    std::ranges::sort(out.rai);
    std::ranges::sort(out.folders);
    return out;
}

std::string join(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
    return text;
}

// The caller may have given the folder of several results; name up to five of them.
std::string sub_directory_hint(const std::string& path, const Listing& listing) {
    std::vector<std::string> found;
    for (const std::string& folder : listing.folders) {
        if (found.size() == 5) break;
        if (folder.starts_with('.')) continue;
        const auto inner = list(path + '/' + folder);
        if (inner && (inner->has_manifest || inner->has_partition || inner->rai.size() == 1))
            found.push_back(folder);
    }
    return found.empty() ? "; give the result of 'vartml compile'"
                         : "; give one of the folders in it: " + join(found);
}

Result<std::shared_ptr<Container>> open_in_directory(const std::string& path) {
    const auto listing = list(path);
    if (!listing) return listing.error();
    if (listing->rai.size() > 1)
        return Error{ErrorCode::bad_model, path + ": holds more than one .rai file (" +
                                               join(listing->rai) + "); give one of them"};
    const std::string rai = listing->rai.empty() ? "" : path + '/' + listing->rai[0];
    if (!listing->has_manifest) {
        if (listing->has_partition) return refuse_directory(path);
        if (!rai.empty()) return open_rai(rai);
        return Error{ErrorCode::not_found, path + ": holds neither vaiml_par_0 nor a .rai file" +
                                               sub_directory_hint(path, *listing)};
    }
    auto directory = open_directory(path);
    if (!directory || rai.empty()) return directory;
    const auto other = open_rai(rai);
    if (!other) return other.error();
    const std::string& ours = (*directory)->manifest.model.model_signature;
    const std::string& theirs = (*other)->manifest.model.model_signature;
    if (ours != theirs)
        return Error{ErrorCode::bad_model, rai + ": has model signature " + theirs +
                                               ", the directory around it " + ours +
                                               "; they are not the same model, remove one of them"};
    return directory;
}

Result<void> read_files(Container& container, CompiledModel& model) {
    using rai::BlobKind;
    for (size_t i = 0; i < container.manifest.blobs.size(); ++i) {
        const Blob& blob = container.manifest.blobs[i];
        if (blob.kind != BlobKind::File && blob.kind != BlobKind::StatsDescriptor) continue;
        const auto bytes = container.entry(i);
        if (!bytes) return bytes.error();
        model.files.push_back({blob.name, std::string(as_text(*bytes))});
    }
    return {};
}

// Where an entry is. Of a folder without a manifest it is the .rai in it.
std::string file_of(const Container& container, const std::string& path, const std::string& entry) {
    if (container.format == "directory") return path + '/' + entry;
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return path;
    const auto listing = list(path);
    return listing && !listing->rai.empty() ? path + '/' + listing->rai[0] : path;
}

// Which file it is: checksums alone may be chosen by whoever makes a model. Who writes a file
// cannot choose the last two.
std::string stamp_of(const std::string& file) {
    struct stat info{};
    ::stat(file.c_str(), &info);
    return std::to_string(info.st_size) + ' ' + std::to_string(info.st_ino) + ' ' +
           std::to_string(info.st_ctim.tv_sec) + '.' + std::to_string(info.st_ctim.tv_nsec) + ' ';
}

Result<void> read_programs(const std::shared_ptr<Container>& container, const std::string& path,
                           CompiledModel& model) {
    const Manifest& manifest = container->manifest;
    for (size_t i = 0; i < model.partitions.size(); ++i) {
        const auto& [program, weights] = manifest.programs[i];
        ProgramSource source;
        const auto bytes = container->entry(program);
        if (!bytes) return bytes.error();
        source.program = *bytes;
        if (weights >= 0) {
            const auto at = static_cast<size_t>(weights);
            const auto weight_bytes = container->entry(at);
            if (!weight_bytes) return weight_bytes.error();
            source.weights = *weight_bytes;
            source.weights_crc32c = manifest.blobs[at].crc32c;
        }
        source.owner = container;
        source.where = path + ": program '" + manifest.blobs[program].name + "'";
        if (auto r = read_program(source, model, model.partitions[i]); !r) return r;
        for (const uint64_t part :
             {uint64_t{manifest.blobs[program].crc32c}, uint64_t{source.weights_crc32c},
              uint64_t{source.program.size()}, uint64_t{source.weights.size()}})
            model.partitions[i].checksums += std::to_string(part) + ' ';
        std::string& checksums = model.partitions[i].checksums;
        checksums += stamp_of(file_of(*container, path, manifest.blobs[program].name));
        if (weights >= 0)
            checksums += stamp_of(
                file_of(*container, path, manifest.blobs[static_cast<size_t>(weights)].name));
    }
    return {};
}

}  // namespace

Result<std::shared_ptr<Container>> open_container(const std::string& path,
                                                  const ReadOptions& options) {
    if (path.empty())
        return Error{ErrorCode::invalid_argument, "the path of the compiled model is empty"};
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return system_error(path, "open", errno);
    if (S_ISDIR(info.st_mode)) return open_in_directory(without_trailing_slashes(path));
    if (is_gzip(path)) return open_tar(path, options);
    return open_rai(path);
}

Result<CompiledModel> read(const std::string& path, const ReadOptions& options) {
    auto container = open_container(path, options);
    if (!container) return container.error();
    CompiledModel model = std::move((*container)->manifest.model);
    model.format = (*container)->format;
    model.owner = *container;
    if (auto r = read_files(**container, model); !r) return r.error();
    if (options.programs)
        if (auto r = read_programs(*container, path, model); !r) return r.error();
    return model;
}

// Puts a compiled model on disk, whole or not at all.
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
