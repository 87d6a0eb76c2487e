// SPDX-License-Identifier: Apache-2.0
#include <vartml/publish_mqtt.h>

#include "lib/base/text.h"

namespace vartml {
namespace {

// given: MQTT 3.1.1, 1.5.3 and 4.7: wildcards, U+0000; control characters "should not" be there
void append_clean(std::string& topic, const std::string& text) {
    const bool valid = is_utf8(text);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool bad =
            byte < 0x20 || byte == 0x7f || c == '+' || c == '#' || (!valid && byte >= 0x80);
        topic += bad ? '_' : c;
    }
}

}  // namespace

std::string mqtt_topic(const std::string& pattern, const std::string& stream,
                       const std::string& model) {
    constexpr size_t longest = 65535;  // given: MQTT 3.1.1, 1.5.3
    std::string topic;
    for (size_t at = 0; at < pattern.size();) {
        const std::string_view rest = std::string_view(pattern).substr(at);
        if (rest.starts_with("{stream}")) {
            append_clean(topic, stream);
            at += 8;
        } else if (rest.starts_with("{model}")) {
            append_clean(topic, model);
            at += 7;
        } else {
            const size_t end = std::min(pattern.find('{', at + 1), pattern.size());
            append_clean(topic, pattern.substr(at, end - at));
            at = end;
        }
    }
    if (topic.size() > longest) {
        size_t end = longest;  // not in the middle of a character
        while (end > 0 && (static_cast<unsigned char>(topic[end]) & 0xc0) == 0x80) --end;
        topic.resize(end);
    }
    return topic.empty() ? "_" : topic;
}

}  // namespace vartml
