// SPDX-License-Identifier: Apache-2.0
// What bounds an inference: computing, memory, what lies between operators, the host, or that its
// threads did not get the processors.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/instances.h"
#include "lib/tools/opstats/summary.h"
#include "lib/trace/stats_buffer.h"

namespace vartml::profiling {

// Of the round trip without the wait in our own queue; nullopt: not captured. `device` is all that
// is not the host; without operators or calibration that is all there is to say.
struct Shares {
    std::optional<double> compute, memory, overhead, host, device;
};

struct TopOperator {
    std::string name;
    double us = 0, percent = 0;
    std::string bound;          // "memory", "compute"
    std::string unit;           // "GB/s", "GOP/s"
    double rate = 0, peak = 0;  // in `unit`
};

struct Verdict {
    std::string sentence;  // "memory bound (margin 0.21)", "starved (…)"
    std::string reason;    // why operators or peaks are not known; "" where they are
    Shares shares;
    // Of the time in operators, how much the threads had a processor; nullopt: not captured.
    std::optional<double> processor;
    std::vector<TopOperator> top;    // at most five, the longest first
    std::vector<std::string> hints;  // a sentence each
    double round_trip_ns = 0, device_ns = 0;
    bool lacks_frames = false;  // of a batch: operators are those of the first frames alone
};

// The instant is divided among the operators that run then, so that shares and times add up.
Result<Verdict> verdict_of(const BufferFile& file, const Descriptor& descriptor);
// The same from memory.
Verdict verdict_of(const Capture& capture, const BufferContext& context);
// The median of each share; no operators and no hints. Empty input: an empty sentence.
Verdict median_of(std::span<const Verdict> verdicts);
// Notes "verdict", "verdict-share", "verdict-top", "verdict-hint".
std::vector<Note> notes_of(const Verdict& verdict);

}  // namespace vartml::profiling
