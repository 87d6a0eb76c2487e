// SPDX-License-Identifier: Apache-2.0
// Which trace is open.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "lib/trace/writer.h"

namespace vartml::profiling {

// Another number for each trace that is opened or closed; never 0.
extern std::atomic<uint64_t> trace_generation;

// What the handles of one trace share.
class TraceSession {
public:
    explicit TraceSession(std::unique_ptr<TraceWriter> made);
    ~TraceSession();
    // Neither does anything in a child of the process that opened it.
    void finish();  // once
    void flush();

    std::unique_ptr<TraceWriter> writer;

private:
    const int pid_;
    std::atomic<bool> finished_{false};
};

// A new ring of the open trace for the calling thread (nullptr: none is open), and the generation
// that this is true of. May throw std::bad_alloc.
std::pair<std::shared_ptr<TraceRing>, uint64_t> new_ring();

}  // namespace vartml::profiling
