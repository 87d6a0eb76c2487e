// SPDX-License-Identifier: Apache-2.0
// The keys of vaiml_config, one row each.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lib/compiler/config.h"
#include "lib/compiler/config_json.h"

namespace vartml::compiler::config {

// What came of a value: nothing to say, a fault, or a note for the user.
struct Taken {
    std::string fault, note;
};
struct Key {
    std::string_view name;
    std::function<Taken(const Json& value, Config& config)> take;
};
std::span<const Key> keys();

}  // namespace vartml::compiler::config
