// SPDX-License-Identifier: Apache-2.0
// Encodes the scene into a video file, as a camera would have.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "pipelines/apps/demo/scene.h"

namespace demo {

struct Recording {
    bool interrupted = false;
    std::vector<std::vector<KnownCode>> codes;  // by frame
};

// Renders `frames` frames of the scene and writes them to the MP4 file, H.264. What is there keeps
// its place until the new one is complete; an interrupted one never takes it.
vartml::Result<Recording> record(const Scene& scene, unsigned frames, const std::string& file);

}  // namespace demo
