// SPDX-License-Identifier: Apache-2.0
// Finds the compiled model that a path means and brings it into memory.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "lib/artifact/compiled_model.h"
#include "lib/artifact/containers.h"
#include "lib/artifact/foreign.h"
#include "lib/artifact/program.h"
#include "lib/common/utf8.h"

namespace vartml::artifact {
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

}  // namespace vartml::artifact
