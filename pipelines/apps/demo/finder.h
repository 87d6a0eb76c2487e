// SPDX-License-Identifier: Apache-2.0
// Decodes a video or opens a camera, finds objects, draws the boxes, encodes the result, and
// counts.
#pragma once
#include <map>
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
    std::map<std::string, ClassTally> classes;
    bool snapshot = false;
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

vartml::Result<FindResult> find(const FindOptions& options);

}  // namespace demo
