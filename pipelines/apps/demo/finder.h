// SPDX-License-Identifier: Apache-2.0
// Decodes a video or opens a camera, runs the model, draws what it finds, encodes the result, and
// counts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "pipelines/apps/demo/options.h"
#include "pipelines/apps/demo/scoring.h"

namespace demo {

struct FindResult {
    bool interrupted = false;
    unsigned frames = 0, inferred = 0;
    double frames_per_second = 0;                   // of the whole pipeline
    double latency_p50_ms = 0, latency_p99_ms = 0;  // of a frame in vartmlinfer
    KnownTally known;
    ClassTallies boxes;
    BoxTally all_boxes;
    ClassTallies classes;  // the best of the whole picture, a frame each
    ClassTallies areas;    // of class maps
    // Frames with masks of boxes, with keypoints, with an embedding.
    unsigned masks = 0, keypoints = 0, embeddings = 0;
    bool anything() const {
        return !boxes.empty() || !classes.empty() || !areas.empty() || keypoints || embeddings;
    }
};

struct FindOptions {
    Input input = Input::video;
    std::string source;  // file or device
    std::string model, labels, decoder;
    std::string video, picture;  // what is written
    double seconds = 0;          // 0 = until the end
    // Known places by frame, or nullptr.
    const std::vector<std::vector<KnownCode>>* codes = nullptr;
    int frames_per_second = 0;  // of the known places
};

// Writes `video` and `picture`, or neither: those of an earlier run are replaced when the new ones
// are complete.
vartml::Result<FindResult> find(const FindOptions& options);

}  // namespace demo
