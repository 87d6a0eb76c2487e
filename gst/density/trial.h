// SPDX-License-Identifier: Apache-2.0
// So many streams at once, each as a camera sends it, for a set time: how long frames are under way
// from their arrival until their result is there.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "gst/density/clip.h"

namespace vartml::gst::density {

struct TrialRequest {
    std::string model, modelinfo, decoder, device;
    unsigned streams = 1;
    unsigned first = 0, of = 1;  // these streams among all, which begin one after the other
    double seconds = 10, warm_up = 2;
    double patience = 2;  // for what is under way at the end
};

struct Trial {
    double rate = 0;                     // frames per second of a stream
    uint64_t frames = 0;                 // that arrived in the set time
    uint64_t lost = 0;                   // of them without a result
    uint64_t in_flight_end = 0;          // at the end of the set time, of all streams
    uint64_t in_flight_max = 0;          // of one stream
    std::vector<uint32_t> latencies_us;  // one per frame that came out
};

// `ready` is called when all is loaded, before the first frame. Errors: bad_model where the model
// does not fit, not_found for elements, io for what the pipeline says.
Result<Trial> run_trial(const TrialRequest& request, const Clip& clip,
                        const std::function<void()>& ready);

}  // namespace vartml::gst::density
