// SPDX-License-Identifier: Apache-2.0
// Texts that are kept for good.
#include <mutex>
#include <set>
#include <string>

#include <vartml/profile.h>

namespace vartml {

TraceText TraceText::intern(std::string_view text) {
    struct Texts {
        std::mutex mutex;  // a leaf
        std::set<std::string, std::less<>> all;
    };
    static Texts* const kept = new Texts;
    const std::lock_guard lock(kept->mutex);
    auto known = kept->all.find(text);
    if (known == kept->all.end()) known = kept->all.emplace(text).first;
    return {Kept{}, known->c_str()};
}

}  // namespace vartml
