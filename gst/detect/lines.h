// SPDX-License-Identifier: Apache-2.0
// What was found on a frame as lines for people, and counts of it.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include <vartml/publish.h>

namespace vartml::gst::detect {

// Names and sentences come out of files: what would move the cursor becomes a blank.
std::string plain(std::string_view text);

// A line per object, class, mask, set of keypoints, text or vector, each with a newline and behind
// `prefix`:
//   dog               0.93  at 131,219  size 178x326, 17 points
std::string lines_of(const vartml::FrameRecord& record, std::string_view prefix);

// How often what was found, over all frames.
class Tally {
public:
    void add(const vartml::FrameRecord& record);
    // "12 objects: dog 8, person 4"; "nothing found".
    std::string text() const;

private:
    struct Kind {
        std::map<std::string, uint64_t, std::less<>> names;
        uint64_t total = 0;
        void add(std::string_view name);
    };
    Kind objects_, classes_, areas_;
    uint64_t points_ = 0, texts_ = 0, embeddings_ = 0;
};

}  // namespace vartml::gst::detect
