// SPDX-License-Identifier: Apache-2.0
// The keys of a sidecar: one row each, for the three kinds of sections.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "lib/vision/modelinfo.h"

namespace vartml::vision {

inline constexpr std::string_view own_prefix = "x-vartml-";

// A key of a section that describes a T. What reads a sidecar, what writes one, the sentence of a
// misspelt key and docs/sidecar.md are made of these rows.
template <typename T>
struct Key {
    std::string_view name;
    std::string_view expected;  // type and range
    std::string_view fallback;  // what holds without it
    std::string_view reader;    // whom it is for
    std::string_view meaning;
    // Reads the value into the T and returns false when it is not `expected`. Not set: the key says
    // what the model says too, or is read with the section (`dir`, `ranges`).
    bool (*set)(T&, std::string_view value) = nullptr;
    // The value as a file has it, "" where the T leaves it open. Not set: the T does not hold it.
    std::string (*get)(const T&) = nullptr;
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

// A line `key=value` for each that `of` says.
template <typename T>
std::string key_lines(std::span<const Key<T>> keys, const T& of) {
    std::string lines;
    for (const Key<T>& key : keys) {
        const std::string value = key.get ? key.get(of) : "";
        if (!value.empty()) (((lines += key.name) += '=') += value) += '\n';
    }
    return lines;
}

}  // namespace vartml::vision
