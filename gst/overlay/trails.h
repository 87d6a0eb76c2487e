// SPDX-License-Identifier: Apache-2.0
// Where the objects of a stream were.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <utility>

namespace vartml::gst::overlay {

// The last centres of an object, oldest first.
class Trail {
public:
    static constexpr unsigned capacity = 32;
    struct Point {
        float x = 0, y = 0;
        bool operator==(const Point&) const = default;
    };

    void add(Point point) {
        points_[(first_ + size_) % capacity] = point;
        if (size_ < capacity) {
            ++size_;
        } else {
            first_ = (first_ + 1) % capacity;
        }
    }
    unsigned size() const { return size_; }
    const Point& operator[](unsigned i) const { return points_[(first_ + i) % capacity]; }

private:
    friend class Trails;
    std::array<Point, capacity> points_;
    unsigned first_ = 0, size_ = 0;
    uint64_t last_frame_ = 0;
};

// Thread-safety: none.
class Trails {
public:
    // Adds where the object of a track is on this frame; tracks of two labels are two.
    const Trail& add(uint32_t label, uint64_t track, Trail::Point centre) {
        Trail& trail = trails_[{label, track}];
        trail.add(centre);
        trail.last_frame_ = frame_;
        return trail;
    }
    // Trails of tracks that were not seen for as many frames as a trail is long are forgotten.
    void end_frame() {
        ++frame_;
        std::erase_if(trails_, [this](const auto& entry) {
            return entry.second.last_frame_ + Trail::capacity < frame_;
        });
    }
    void clear() { trails_.clear(); }
    size_t size() const { return trails_.size(); }

private:
    uint64_t frame_ = 0;
    std::map<std::pair<uint32_t, uint64_t>, Trail> trails_;
};

}  // namespace vartml::gst::overlay
