// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/values.h"

#include <nlohmann/json.hpp>

namespace vartml::fleet {

std::string text_of(const std::string& value, const char* member) {
    const auto json = nlohmann::json::parse(value, nullptr, false);
    const auto found = json.find(member);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

size_t count_of(const std::string& value, const char* member) {
    const auto json = nlohmann::json::parse(value, nullptr, false);
    const auto found = json.find(member);
    return found != json.end() && found->is_number_unsigned() ? found->get<size_t>() : 0;
}

bool flag_of(const std::string& value, const char* member) {
    const auto json = nlohmann::json::parse(value, nullptr, false);
    const auto found = json.find(member);
    return found != json.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace vartml::fleet
