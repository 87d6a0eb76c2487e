// SPDX-License-Identifier: Apache-2.0
#include "lib/verify/collection.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "lib/common/file.h"
#include "lib/common/sha256.h"
#include "lib/verify/collection_model.h"
#include "lib/verify/collection_report.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_results_bytes = size_t{256} << 20;

// Changes whenever the meaning of a row does.
constexpr const char* rules = "rules 2";

std::string digest(const std::string& text) {
    return to_hex(sha256(as_bytes(text))).substr(0, 24);
}

// Size and time of a file, "" where there is none.
std::string stamp(const std::string& path) {
    struct stat s{};
    if (::stat(path.c_str(), &s) != 0) return {};
    return path + ' ' + std::to_string(s.st_size) + ' ' + std::to_string(s.st_mtim.tv_sec) + '.' +
           std::to_string(s.st_mtim.tv_nsec) + ' ';
}

// Of this program and the libraries of ours that it has loaded.
std::string build_id() {
    std::string text = stamp("/proc/self/exe");
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
            const std::string path = info->dlpi_name;
            if (path.find("libvartml") != path.npos) *static_cast<std::string*>(to) += stamp(path);
            return 0;
        },
        &text);
    return digest(text);
}

// Names of the ONNX files below the folder, sorted.
Result<std::vector<std::string>> find_models(const CollectionRequest& request) {
    std::vector<std::string> names;
    std::error_code error;
    if (!fs::is_directory(request.folder, error))
        return Error{ErrorCode::not_found, request.folder + ": is no folder"};
    using Walk = fs::recursive_directory_iterator;
    for (Walk it(request.folder, fs::directory_options::skip_permission_denied, error), end;
         it != end; it.increment(error)) {
        if (it->path().extension() != ".onnx" || !it->is_regular_file(error)) continue;
        names.push_back(it->path().lexically_relative(request.folder).string());
    }
    if (names.empty()) return Error{ErrorCode::not_found, request.folder + ": holds no .onnx file"};
    std::ranges::sort(names);
    std::erase_if(names, [&](const std::string& name) {
        return !request.only.empty() && std::ranges::none_of(request.only, [&](const auto& part) {
            return name.find(part) != name.npos;
        });
    });
    if (names.empty())
        return Error{ErrorCode::not_found,
                     request.folder + ": no model has a part of --only in its name"};
    return names;
}

// Of the bytes of the model, of what lies beside it, of ONNX Runtime and of the options.
Result<std::string> key_of(const CollectionRequest& request, const std::string& reference,
                           const std::string& path) {
    const auto file = MappedFile::open(path);
    if (!file) return file.error();
    std::string text = rules + to_hex(sha256((*file)->bytes())) + ' ' + reference + ' ' +
                       std::to_string(request.picture_side) + ' ';
    if (request.picture) text += to_hex(sha256(std::as_bytes(std::span(request.picture->rgb))));
    const std::string stem = fs::path(path).replace_extension().string();
    for (const char* beside : {".data", "_data", ".modelinfo"}) text += stamp(path + beside);
    for (const char* beside : {".modelinfo", ".bin", ".weights"}) text += stamp(stem + beside);
    return digest(text);
}

bool may_keep(const CollectionRequest& request, const ModelRow& old, const std::string& key,
              const std::string& build) {
    using Again = CollectionRequest::Again;
    if (request.again == Again::all || old.key != key) return false;
    const bool good = old.is_good() || !old.reference_runs;
    return request.again == Again::misses ? good : old.build == build;
}

Result<std::map<std::string, ModelRow>> read_results(const std::string& path) {
    std::map<std::string, ModelRow> rows;
    const auto text = read_file(path, max_results_bytes);
    if (!text && text.error().code == ErrorCode::not_found) return rows;
    if (!text) return text.error();
    auto list = rows_of_json(*text);
    if (!list) return Error{list.error().code, path + ": " + list.error().message};
    for (ModelRow& row : *list) rows.insert_or_assign(row.name, std::move(row));
    return rows;
}

Result<void> write_results(const std::string& path, const Collection& collection,
                           const std::map<std::string, ModelRow>& others) {
    Collection all = collection;
    for (const auto& [name, row] : others) all.rows.push_back(row);
    std::ranges::sort(all.rows, {}, &ModelRow::name);
    const std::string text = json_text(all);
    const Bytes bytes = as_bytes(text);
    return replace_file(path, std::span(&bytes, 1), Durability::none);
}

}  // namespace

std::string ModelRow::reason() const {
    if (!reference_runs) {
        const std::string ours = compiled != Compiled::no ? "compiled"
                                 : is_refused             ? "refused: " + compile_text
                                                          : "ended: " + compile_text;
        return ours + "; ONNX Runtime: " + reference_text;
    }
    if (compiled == Compiled::no) return compile_text;
    std::string text;
    const auto add = [&](const std::string& words) {
        if (!words.empty()) text += (text.empty() ? "" : "; ") + words;
    };
    if (f32.state != Verdict::State::agrees) add("f32: " + f32.text);
    if (standard.state != Verdict::State::agrees && standard.text != f32.text)
        add("default: " + standard.text);
    if (compiled == Compiled::followed) add("with " + option);
    return text;
}

bool Collection::all_good() const {
    return std::ranges::all_of(
        rows, [](const ModelRow& row) { return !row.reference_runs || row.is_good(); });
}

Result<Collection> verify_collection(const CollectionRequest& request) {
    auto reference = OnnxRuntime::find();
    if (!reference) return reference.error();
    reference->set_limits(request.limits);
    reference->set_cancel(request.cancel);
    auto names = find_models(request);
    if (!names) return names.error();
    auto old = read_results(request.results);
    if (!old) return old.error();

    std::error_code error;
    std::erase_if(*old, [&](const auto& entry) {
        return !fs::exists(fs::path(request.folder) / entry.first, error);
    });
    Collection collection;
    collection.folder = request.folder;
    collection.reference = reference->version();
    const std::string build = build_id();
    if (request.begin) request.begin(*names);
    for (const std::string& name : *names) {
        const std::string path = (fs::path(request.folder) / name).string();
        const auto key = key_of(request, reference->version(), path);
        if (!key) return key.error();
        ModelRow row;
        if (const auto it = old->find(name);
            it != old->end() && may_keep(request, it->second, *key, build)) {
            row = it->second;
            row.is_kept = true;
        } else {
            row.name = name;
            row.key = *key;
            row.build = build;
            if (auto done = verify_model(request, *reference, path, row); !done)
                return done.error();
            if (request.cancel && request.cancel->load()) break;
        }
        old->erase(name);
        const bool is_new = !row.is_kept;
        collection.rows.push_back(std::move(row));
        if (request.row) request.row(collection.rows.back());
        if (is_new)
            if (auto done = write_results(request.results, collection, *old); !done)
                return done.error();
    }
    collection.is_complete = collection.rows.size() == names->size();
    if (auto done = write_results(request.results, collection, *old); !done) return done.error();
    return collection;
}

}  // namespace vartml::verify
