// SPDX-License-Identifier: Apache-2.0
// The keys of a sidecar: one row each, for the three kinds of sections.
#pragma once
#include <span>
#include <string_view>

#include "lib/vision/modelinfo.h"

namespace vartml::vision {

inline constexpr std::string_view own_prefix = "x-vartml-";

// A key of a section that describes a T. `set` reads the value into the T and returns false when it
// is not `expected`.
template <typename T>
struct Key {
    std::string_view name;
    std::string_view expected;
    bool (*set)(T&, std::string_view value);
};

std::span<const Key<ModelInfo>> general_keys();
std::span<const Key<ModelInfo::Input>> input_keys();
std::span<const Key<ModelInfo::Output>> output_keys();

template <typename T>
const Key<T>* find_key(std::span<const Key<T>> keys, std::string_view name) {
    for (const Key<T>& key : keys) {
        if (key.name == name) return &key;
    }
    return nullptr;
}

}  // namespace vartml::vision
