// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats_model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "lib/artifact/compiled_model.h"
#include "lib/artifact/foreign.h"
#include "lib/artifact/stats_descriptor.h"
#include "lib/common/file.h"
#include "lib/profiling/buffer/stats_buffer.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t max_descriptor_bytes = size_t{256} << 20, max_estimate_bytes = size_t{64} << 20;
constexpr std::string_view descriptor_identifier = "VMOD";

std::string first_bytes(const std::string& path) {
    char bytes[16] = {};
    std::ifstream(path, std::ios::binary).read(bytes, sizeof bytes);
    return {bytes, sizeof bytes};
}

bool is_descriptor(const std::string& path) {
    return std::string_view(first_bytes(path)).substr(4).starts_with(descriptor_identifier);
}

// What a folder may hold under any name.
bool is_container(const fs::directory_entry& entry) {
    std::error_code ignored;
    if (!entry.is_regular_file(ignored)) return false;
    const std::string path = entry.path();
    return artifact::looks_like_rai(as_bytes(first_bytes(path))) || artifact::is_gzip(path);
}

// A directory container is itself; else the one model that a folder holds.
Result<std::string> model_in(const std::string& folder) {
    std::error_code error;
    if (fs::exists(folder + "/vaiml_par_0", error)) return folder;
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (is_container(entry)) found.push_back(entry.path());
    if (error) return system_error(folder, "open the folder", error.value());
    std::ranges::sort(found);
    if (found.size() == 1) return found.front();
    if (found.empty())
        return Error{ErrorCode::not_found, folder +
                                               ": holds no compiled model (a .rai, a .tar.gz "
                                               "or a folder vaiml_par_0)"};
    return Error{ErrorCode::invalid_argument, folder + ": holds more than one compiled model, " +
                                                  std::string(last_part(found[0])) + " and " +
                                                  std::string(last_part(found[1])) +
                                                  "; name the file"};
}

Result<OpstatsModel> open_descriptor(const std::string& path) {
    const auto bytes = read_file(path, max_descriptor_bytes);
    if (!bytes) return bytes.error();
    auto descriptor = artifact::read_descriptor(as_bytes(*bytes), path);
    if (!descriptor) return descriptor.error();
    return OpstatsModel{path, std::move(*descriptor), profiling::descriptor_id_of(*bytes), {}};
}

bool is_same_text(const OpstatsModel& model, size_t index, const std::string& text) {
    return index < model.estimates.size() && model.estimates[index] == text;
}

}  // namespace

Result<OpstatsModel> open_opstats_model(const std::string& path) {
    std::error_code ignored;
    std::string file = without_trailing_slashes(path);
    if (fs::is_directory(file, ignored)) {
        const auto found = model_in(file);
        if (!found) return found.error();
        file = *found;
    } else if (is_descriptor(file)) {
        return open_descriptor(file);
    }
    const auto model = artifact::read(file, {.programs = false});
    if (!model) return model.error();
    auto descriptor = artifact::descriptor_of(*model, file);
    if (!descriptor) return descriptor.error();
    const std::string& bytes = *model->find_file(profiling::descriptor_entry);
    OpstatsModel out{file, std::move(*descriptor), profiling::descriptor_id_of(bytes), {}};
    for (const std::string& name : out.descriptor.estimate_entries)
        if (const std::string* text = model->find_file(name)) out.estimates.push_back(*text);
    return out;
}

Result<profiling::LayerEstimates> read_layer_estimates(const OpstatsModel& model,
                                                       const std::vector<std::string>& files,
                                                       std::vector<std::string>& warnings) {
    profiling::LayerEstimates out;
    const bool is_auto = files.empty() || (files.size() == 1 && files[0] == "auto");
    if (is_auto && model.estimates.empty())
        return Error{ErrorCode::not_found, model.path +
                                               ": holds no estimate; give the *_mla_stats.yaml of "
                                               "each NPU partition with --estimate"};
    bool is_own = true;
    const size_t count = is_auto ? model.estimates.size() : files.size();
    for (size_t i = 0; i < count; ++i) {
        std::string text, where;
        if (is_auto) {
            text = model.estimates[i];
            where = model.path + ": " + model.descriptor.estimate_entries[i];
        } else {
            auto read = read_file(files[i], max_estimate_bytes);
            if (!read) return read.error();
            text = std::move(*read);
            where = files[i];
            is_own = is_own && is_same_text(model, i, text);
        }
        auto estimate = profiling::read_estimate(text, where);
        if (!estimate) return estimate.error();
        warnings.insert(warnings.end(), estimate->warnings.begin(), estimate->warnings.end());
        out.of_partitions.push_back(std::move(*estimate));
    }
    if (is_own) out.clock_hz = model.descriptor.nominal_clock_hz;
    return out;
}

}  // namespace vartml::tools
