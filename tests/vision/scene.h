// SPDX-License-Identifier: Apache-2.0
// Synthetic scenes: boxes on known paths, and what a tracker makes of them.
#pragma once
#include <vartml/track.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace vartml::test {

inline constexpr uint64_t second = 1'000'000'000;

struct Span {
    double from = 0, to = 0;  // seconds
    bool has(double t) const { return t >= from && t < to; }
};

// Something that moves: its centre at time 0, velocity and acceleration in pixels and seconds.
struct Actor {
    double x, y, vx = 0, vy = 0, ay = 0;
    double w = 40, h = 80;
    Span there = {0, 1e9}, hidden = {}, dim = {};  // dim: seen with a score of 0.3
    int32_t class_id = 0;
    double growth = 0;  // of the sides, as a share per second

    Detection at(double t) const {
        const double cx = x + vx * t, cy = y + vy * t + ay * t * t / 2, s = 1 + growth * t;
        return {static_cast<float>(cx - s * w / 2), static_cast<float>(cy - s * h / 2),
                static_cast<float>(cx + s * w / 2), static_cast<float>(cy + s * h / 2),
                dim.has(t) ? 0.3f : 0.9f,           class_id};
    }
    bool seen(double t) const { return there.has(t) && !hidden.has(t); }
};

struct Scene {
    std::string name;
    std::vector<Actor> actors;
    double seconds = 4;
    double jitter = 0;      // of each edge, in pixels
    bool shuffled = false;  // detections in another order on every frame
};
inline std::ostream& operator<<(std::ostream& out, const Scene& scene) {
    return out << scene.name;
}

struct Outcome {
    unsigned switches = 0;   // an actor got another id than it had last
    unsigned fragments = 0;  // an actor that is seen was without id after it had one
    std::vector<std::vector<uint64_t>> ids;  // of each actor, in the order in which it got them
};

// 30 frames per second, of which one in `interval` is inferred.
inline Outcome play(const Scene& scene, const TrackOptions& options, unsigned interval = 1) {
    Tracker tracker(options);
    std::mt19937 random(7);  // its numbers are the standard's; distributions' are not
    const auto noise = [&] {
        return (static_cast<double>(random() % 2001) / 1000 - 1) * scene.jitter;
    };
    Outcome outcome;
    outcome.ids.resize(scene.actors.size());
    std::vector<char> tracked(scene.actors.size());
    std::vector<PredictedBox> predicted;
    for (unsigned frame = 0; frame < scene.seconds * 30; ++frame) {
        const double t = frame / 30.;
        const uint64_t pts = frame * second / 30;
        if (frame % interval) {
            tracker.predict(pts, predicted);
            continue;
        }
        std::vector<size_t> seen;
        for (size_t i = 0; i < scene.actors.size(); ++i) {
            if (scene.actors[i].seen(t)) seen.push_back(i);
        }
        for (size_t i = seen.size(); scene.shuffled && i > 1; --i) {
            std::swap(seen[i - 1], seen[random() % i]);
        }
        std::vector<Detection> detections;
        for (const size_t actor : seen) {
            Detection d = scene.actors[actor].at(t);
            for (float* edge : {&d.x0, &d.y0, &d.x1, &d.y1}) *edge += static_cast<float>(noise());
            detections.push_back(d);
        }
        std::vector<Identity> identities;
        tracker.update(pts, detections, identities);
        for (size_t i = 0; i < seen.size(); ++i) {
            const uint64_t id = identities[i].id;
            auto& ids = outcome.ids[seen[i]];
            char& was_tracked = tracked[seen[i]];
            if (!id) {
                outcome.fragments += was_tracked;
                was_tracked = 0;
                continue;
            }
            was_tracked = 1;
            if (!ids.empty() && ids.back() == id) continue;
            outcome.switches += !ids.empty();
            ids.push_back(id);
        }
    }
    return outcome;
}

}  // namespace vartml::test
