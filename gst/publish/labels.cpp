// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/labels.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace vartml::gst {
namespace {

// ours: models of a pipeline whose labels are kept; after swaps the oldest goes
constexpr size_t most_models = 8;

int32_t number_of(const InferenceRecord& model, const char* label) {
    const std::vector<std::string>& labels = model.model_info.labels;
    const auto it = std::ranges::find(labels, label);
    if (it != labels.end()) return static_cast<int32_t>(it - labels.begin());
    int32_t number = -1;
    const char* const end = label + std::strlen(label);
    const auto [rest, error] = std::from_chars(label, end, number);
    return labels.empty() && error == std::errc() && rest == end ? number : -1;
}

}  // namespace

std::optional<int32_t> LabelNumbers::find(const std::shared_ptr<const InferenceRecord>& model,
                                          GQuark label) {
    if (!model || !label) return std::nullopt;
    auto it = std::ranges::find(models_, model, &Model::record);
    if (it == models_.end()) {
        if (models_.size() == most_models) models_.erase(models_.begin());
        it = models_.insert(models_.end(), Model{model, {}});
    }
    const auto [entry, added] = it->numbers.try_emplace(label, -1);
    if (added) entry->second = number_of(*model, g_quark_to_string(label));
    return entry->second < 0 ? std::nullopt : std::optional(entry->second);
}

}  // namespace vartml::gst
