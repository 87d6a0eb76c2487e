// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/collection.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/base/sha256.h"
#include "lib/compile/onnx/import.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_results_bytes = size_t{256} << 20;

// Changes whenever the meaning of a row does.
constexpr const char* rules = "rules 3";

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
    // Folders below it that cannot be read are passed over, but not the folder itself.
    if (fs::directory_iterator(request.folder, error); error)
        return system_error(request.folder, "read the folder", error.value());
    using Walk = fs::recursive_directory_iterator;
    for (Walk it(request.folder, fs::directory_options::skip_permission_denied, error), end;
         !error && it != end; it.increment(error)) {
        std::error_code is_none;
        if (it->path().extension() != ".onnx" || !it->is_regular_file(is_none)) continue;
        names.push_back(it->path().lexically_relative(request.folder).string());
    }
    if (error) return system_error(request.folder, "read the folder", error.value());
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
    // With its external data; of a file that is no model as it is.
    const auto signature = onnx::model_signature(path);
    std::string text = rules + (signature ? *signature : to_hex(sha256((*file)->bytes()))) + ' ' +
                       reference + ' ' + std::to_string(request.picture_side) + ' ';
    for (const NamedPicture& picture : request.pictures)
        text += to_hex(sha256(std::as_bytes(std::span(picture.data.rgb))));
    const std::string stem = fs::path(path).replace_extension().string();
    for (const std::string& sidecar : {path + ".modelinfo", stem + ".modelinfo"})
        text += stamp(sidecar);
    return digest(text);
}

std::string limits_text(const Limits& limits) {
    return std::to_string(limits.time.count()) + " ms, " + std::to_string(limits.memory) + " bytes";
}

bool may_keep(const CollectionRequest& request, const ModelRow& old, const std::string& key,
              const std::string& build) {
    using Again = CollectionRequest::Again;
    if (request.again == Again::all || old.key != key) return false;
    if (!old.is_good() && old.limits != limits_text(request.limits)) return false;
    const bool good = old.is_good() || !old.reference_runs;
    return request.again == Again::misses ? good : old.build == build;
}

// Of the models of the same folder.
Result<std::map<std::string, ModelRow>> read_results(const std::string& path,
                                                     const std::string& folder) {
    std::map<std::string, ModelRow> rows;
    const auto text = read_file(path, max_results_bytes);
    if (!text && text.error().code == ErrorCode::not_found) return rows;
    if (!text) return text.error();
    auto list = rows_of_json(*text);
    if (!list) return Error{list.error().code, path + ": " + list.error().message};
    std::error_code error;
    if (!list->rows.empty() &&
        fs::weakly_canonical(list->folder, error) != fs::weakly_canonical(folder, error))
        return Error{ErrorCode::invalid_argument, path + ": has the results of folder " +
                                                      list->folder +
                                                      ", which would be lost; name another file"};
    for (ModelRow& row : list->rows) rows.insert_or_assign(row.name, std::move(row));
    return rows;
}

// With the rows of other models that are in the file by now: another call may write it, too.
Result<void> write_results(const CollectionRequest& request, const Collection& collection) {
    const std::string& path = request.results;
    const auto lock =
        FileLock::acquire(parent_of(path) + "/." + std::string(last_part(path)) + ".lock", nullptr);
    if (!lock) return lock.error();
    auto rows = read_results(path, request.folder);
    if (!rows) return rows.error();
    std::error_code error;
    std::erase_if(*rows, [&](const auto& entry) {
        return !fs::exists(fs::path(request.folder) / entry.first, error);
    });
    for (const ModelRow& row : collection.rows) rows->insert_or_assign(row.name, row);
    Collection all = collection;
    all.rows.clear();
    for (auto& [name, row] : *rows) all.rows.push_back(std::move(row));
    return replace_file(path, json_text(all), Durability::none);
}

}  // namespace

std::string ModelRow::reason() const {
    if (!reference_runs) {
        const std::string ours = compiled != Compiled::no ? "compiled"
                                 : is_refused             ? "refused: " + compile_text
                                                          : "ended: " + compile_text;
        return ours +
               (is_unfed ? "; ONNX Runtime, fed with what is made here: " : "; ONNX Runtime: ") +
               reference_text;
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
    return is_compared() && std::ranges::all_of(rows, [](const ModelRow& row) {
               return row.reference_runs ? row.is_good()
                                         : row.compiled != ModelRow::Compiled::no || row.is_refused;
           });
}

bool Collection::is_compared() const {
    return std::ranges::any_of(rows, &ModelRow::reference_runs);
}

Result<Collection> verify_collection(const CollectionRequest& request) {
    auto reference = OnnxRuntime::find();
    if (!reference) return reference.error();
    reference->set_limits(request.limits);
    reference->set_cancel(request.cancel);
    auto names = find_models(request);
    if (!names) return names.error();
    auto old = read_results(request.results, request.folder);
    if (!old) return old.error();

    Collection collection;
    collection.folder = request.folder;
    collection.reference = reference->version();
    const std::string build = build_id();
    if (request.begin) request.begin(*names);
    for (const std::string& name : *names) {
        const std::string path = (fs::path(request.folder) / name).string();
        const auto key = key_of(request, reference->version(), path);
        ModelRow row;
        row.name = name;
        if (!key) {  // nobody can read it
            row.compile_text = row.reference_text = key.error().message;
        } else if (const auto it = old->find(name);
                   it != old->end() && may_keep(request, it->second, *key, build)) {
            row = it->second;
            row.is_kept = true;
        } else {
            row.key = *key;
            row.build = build;
            row.limits = limits_text(request.limits);
            if (auto done = verify_model(request, *reference, path, row); !done)
                return done.error();
            if (request.cancel && request.cancel->load()) break;
        }
        const bool is_new = !row.is_kept;
        collection.rows.push_back(std::move(row));
        if (request.row) request.row(collection.rows.back());
        if (is_new)
            if (auto done = write_results(request, collection); !done) return done.error();
    }
    collection.is_complete = collection.rows.size() == names->size();
    if (auto done = write_results(request, collection); !done) return done.error();
    return collection;
}

namespace {

using Json = nlohmann::ordered_json;
using State = Verdict::State;
using Compiled = ModelRow::Compiled;

constexpr int format_version = 1;
constexpr std::pair<State, const char*> states[] = {{State::none, "-"},
                                                    {State::agrees, "agrees"},
                                                    {State::differs, "differs"},
                                                    {State::unclear, "unclear"},
                                                    {State::fails, "fails"}};
constexpr std::pair<Compiled, const char*> compilations[] = {
    {Compiled::no, "no"}, {Compiled::at_once, "yes"}, {Compiled::followed, "followed"}};

template <typename Table, typename T>
const char* word_of(const Table& table, T value) {
    return std::ranges::find(table, value, [](const auto& e) { return e.first; })->second;
}
template <typename Table, typename T>
T value_of(const Table& table, const std::string& word, T otherwise) {
    const auto it = std::ranges::find(table, word, [](const auto& e) { return e.second; });
    return it == std::end(table) ? otherwise : it->first;
}

std::string number(double value, const char* format) {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string padded(std::string text, size_t width, bool right = false) {
    if (text.size() >= width) return text;
    return right ? std::string(width - text.size(), ' ') + text
                 : text.append(width - text.size(), ' ');
}

size_t name_width(const std::vector<std::string>& names) {
    size_t width = 5;
    for (const std::string& name : names) width = std::max(width, name.size());
    return width;
}

std::string line(const std::vector<std::string>& names, const std::string& name,
                 const std::string& reference, const std::string& compiled, const std::string& f32,
                 const std::string& standard, const std::string& seconds, const std::string& rate,
                 const std::string& reason) {
    std::string text = padded(name, name_width(names)) + "  " + padded(reference, 7) + "  " +
                       padded(compiled, 8) + "  " + padded(f32, 7) + "  " + padded(standard, 7) +
                       "  " + padded(seconds, 9, true) + "  " + padded(rate, 7, true) + "  " +
                       reason;
    while (text.ends_with(' ')) text.pop_back();
    return text + '\n';
}

Json json_of(const Verdict& v) {
    return {{"verdict", word_of(states, v.state)}, {"text", v.text}, {"seconds", v.seconds}};
}

Verdict verdict_of(const Json& json) {
    Verdict v;
    v.state = value_of(states, json.value("verdict", ""), State::none);
    v.text = json.value("text", "");
    v.seconds = json.value("seconds", 0.0);
    return v;
}

Json json_of(const ModelRow& row) {
    return {{"name", row.name},
            {"key", row.key},
            {"build", row.build},
            {"limits", row.limits},
            {"onnxruntime", row.reference_word()},
            {"onnxruntime_text", row.reference_text},
            {"compiled", word_of(compilations, row.compiled)},
            {"refused", row.is_refused},
            {"option", row.option},
            {"compile_text", row.compile_text},
            {"compile_seconds", row.compile_seconds},
            {"f32", json_of(row.f32)},
            {"default", json_of(row.standard)},
            {"reason", row.reason()}};
}

ModelRow row_of(const Json& json) {
    ModelRow row;
    row.name = json.value("name", "");
    row.key = json.value("key", "");
    row.build = json.value("build", "");
    row.limits = json.value("limits", "");
    row.reference_runs = json.value("onnxruntime", "") == "runs";
    row.is_unfed = json.value("onnxruntime", "") == "unfed";
    row.reference_text = json.value("onnxruntime_text", "");
    row.compiled = value_of(compilations, json.value("compiled", ""), Compiled::no);
    row.is_refused = json.value("refused", false);
    row.option = json.value("option", "");
    row.compile_text = json.value("compile_text", "");
    row.compile_seconds = json.value("compile_seconds", 0.0);
    row.f32 = verdict_of(json.value("f32", Json::object()));
    row.standard = verdict_of(json.value("default", Json::object()));
    return row;
}

// What is counted, over the models that ONNX Runtime runs.
struct Counts {
    size_t all = 0, runs = 0, at_once = 0, followed = 0, f32 = 0, standard = 0, good = 0;
    size_t refused_too = 0, compiled_anyway = 0, broken = 0, unfed = 0;

    explicit Counts(const std::vector<ModelRow>& rows) : all(rows.size()) {
        for (const ModelRow& row : rows) {
            const bool compiled = row.compiled != Compiled::no;
            if (!row.reference_runs) {
                ++(!compiled && !row.is_refused ? broken
                   : row.is_unfed               ? unfed
                   : compiled                   ? compiled_anyway
                                                : refused_too);
                continue;
            }
            ++runs;
            at_once += row.compiled == Compiled::at_once;
            followed += row.compiled == Compiled::followed;
            f32 += row.f32.state == State::agrees;
            standard += row.standard.state == State::agrees;
            good += compiled && row.standard.state == State::agrees;
        }
    }
};

std::string share(const char* what, size_t part, size_t of) {
    std::string text = "  " + padded(what, 44) + padded(std::to_string(part), 5, true) + " of " +
                       std::to_string(of);
    if (of != 0)
        text += padded(number(100 * static_cast<double>(part) / static_cast<double>(of), "%.1f"), 8,
                       true) +
                " %";
    return text + '\n';
}

}  // namespace

std::string table_heading(const std::vector<std::string>& names) {
    return line(names, "MODEL", "ONNX RT", "COMPILED", "F32", "DEFAULT", "COMPILE s", "RUNS/s",
                "REASON");
}

std::string table_line(const ModelRow& row, const std::vector<std::string>& names) {
    const double run = row.standard.seconds;
    return line(names, row.name, std::string(row.reference_word()),
                word_of(compilations, row.compiled), word_of(states, row.f32.state),
                word_of(states, row.standard.state),
                row.compiled == Compiled::no ? "" : number(row.compile_seconds, "%.1f"),
                run > 0 ? number(1 / run, run > 0.1 ? "%.1f" : "%.0f") : "", row.reason());
}

std::string summary_text(const Collection& collection) {
    const Counts c(collection.rows);
    const size_t compiled = c.at_once + c.followed;
    std::string text = '\n' + std::to_string(c.all) + (c.all == 1 ? " model, " : " models, ") +
                       std::to_string(c.runs) + " that ONNX Runtime " + collection.reference +
                       " runs; of these\n";
    text += share("compiled without an option", c.at_once, c.runs);
    text += share("compiled, a message followed once included", compiled, c.runs);
    text += share("agree in f32", c.f32, c.runs);
    text += share("agree in f32, of the compiled", c.f32, compiled);
    text += share("agree in default numerics", c.standard, c.runs);
    text += share("compiled, and agree in default numerics", c.good, c.runs);
    if (c.unfed != 0)
        text += std::to_string(c.unfed) +
                " that ONNX Runtime loads and does not run with the shapes and numbers made here: "
                "not judged; vartml verify MODEL FOLDER feeds the input_<i>.npy of a folder\n";
    if (c.all != c.runs + c.unfed)
        text += std::to_string(c.all - c.runs - c.unfed) +
                " that ONNX Runtime refuses: " + std::to_string(c.refused_too) +
                " refused with a sentence, " + std::to_string(c.compiled_anyway) + " compiled, " +
                std::to_string(c.broken) + " ended otherwise\n";
    const auto kept = std::ranges::count_if(collection.rows, &ModelRow::is_kept);
    if (kept != 0)
        text += std::to_string(kept) + (kept == 1 ? " row is" : " rows are") +
                " of an earlier call; --again all makes them anew\n";
    if (collection.is_complete && !collection.is_compared())
        text += "nothing was compared: ONNX Runtime runs none of these models\n";
    if (!collection.is_complete) text += "interrupted: the same command goes on from here\n";
    return text;
}

std::string json_text(const Collection& collection) {
    const Counts c(collection.rows);
    Json rows = Json::array();
    for (const ModelRow& row : collection.rows) rows.push_back(json_of(row));
    const Json json = {{"format", format_version},
                       {"folder", collection.folder},
                       {"onnxruntime", collection.reference},
                       {"complete", collection.is_complete},
                       {"summary",
                        {{"models", c.all},
                         {"onnxruntime_runs", c.runs},
                         {"compiled_at_once", c.at_once},
                         {"compiled", c.at_once + c.followed},
                         {"f32_agrees", c.f32},
                         {"default_agrees", c.standard},
                         {"compiled_and_default_agrees", c.good},
                         {"both_refuse", c.refused_too}}},
                       {"models", std::move(rows)}};
    return json_file_text(json);
}

Result<RecordedRows> rows_of_json(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        return Error{ErrorCode::bad_model, "is not JSON, expected a file that --json wrote"};
    RecordedRows recorded;
    try {
        // Of another version: measured anew.
        if (json.at("format").get<int>() != format_version) return recorded;
        recorded.folder = json.at("folder").get<std::string>();
        for (const Json& row : json.at("models")) recorded.rows.push_back(row_of(row));
    } catch (const Json::exception&) {  // of somebody else
        return Error{ErrorCode::bad_model,
                     "is JSON of another kind, expected a file that verify "
                     "--all --json wrote; name another one"};
    }
    return recorded;
}

}  // namespace vartml::verify
