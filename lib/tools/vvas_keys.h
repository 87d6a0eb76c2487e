// SPDX-License-Identifier: Apache-2.0
// The keys of VVAS's configurations, a table per object.
#pragma once
#include <span>
#include <string_view>

#include "lib/tools/vvas_config.h"

namespace vartml::tools {

// A value of the file, without its JSON library.
struct VvasValue {
    std::optional<bool> flag;
    std::optional<int64_t> integer;
    std::optional<double> number;  // also of an integer
    std::optional<std::string> text;
    std::optional<std::vector<std::string>> texts;
    std::optional<std::vector<int>> integers;
};

// One of `set`, `inside` and `left_out`.
struct VvasKey {
    std::string_view name;
    const char* expected = nullptr;  // what `set` takes
    bool (*set)(VvasConfig&, const VvasValue&) = nullptr;
    // The keys of this object; empty: those of a library that is not known here.
    std::span<const VvasKey> (*inside)(const VvasConfig&) = nullptr;
    const char* left_out = nullptr;
};

std::span<const VvasKey> vvas_keys();             // release 6
std::span<const VvasKey> vvas_dpu_keys();         // releases 1 to 3
std::span<const VvasKey> vvas_preprocess_keys();  // their second file

}  // namespace vartml::tools
