// SPDX-License-Identifier: Apache-2.0
// What the model sees: on the newest frame, and class by class since the last change.
#pragma once
#include <gst/gst.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace live {

// A detection, or a class of the whole picture, which has no box.
struct Sighting {
    std::string label;
    float score = 0;
    bool has_box = false;
    int x = 0, y = 0, width = 0, height = 0;
    int64_t track = -1;  // -1: none
};

// Of a frame behind vartmldecode and vartmltrack.
std::vector<Sighting> sightings_of(GstBuffer* buffer);

// Thread-safety: none.
class Sightings {
public:
    struct Class {
        std::string label;
        unsigned now = 0;     // on the newest frame
        uint64_t frames = 0;  // on so many frames
        uint64_t tracks = 0;  // so many different objects
    };

    void frame(std::vector<Sighting> seen);
    void restart() { classes_.clear(), tracks_.clear(); }

    const std::vector<Sighting>& newest() const { return newest_; }
    std::vector<Class> classes() const;  // by label

private:
    void forget_old_tracks();

    std::vector<Sighting> newest_;
    std::map<std::string, Class> classes_;
    uint64_t frame_ = 0;                  // number of the newest
    std::map<int64_t, uint64_t> tracks_;  // known ones with the frame that had them last
};

}  // namespace live
