// SPDX-License-Identifier: Apache-2.0
// One inference on its way: the tensors it reads and writes, the part of the frame it is of, how it
// ended.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gst/gst.h>

#include <vartml/preprocess.h>
#include <vartml/profile.h>

#include "gst/support/vart_runner.h"

namespace vartml::gst::infer {

// A queue in one block of memory: no allocation unless it must grow.

template <typename T>
class Ring {
public:
    bool empty() const { return count_ == 0; }
    size_t size() const { return count_; }
    T& front() { return slots_[first_]; }
    T& operator[](size_t i) { return slots_[(first_ + i) % slots_.size()]; }

    void push(T value) {
        if (count_ == slots_.size()) grow();
        slots_[(first_ + count_++) % slots_.size()] = std::move(value);
    }
    T pop() {
        T value = std::move(slots_[first_]);
        slots_[first_] = T{};
        first_ = (first_ + 1) % slots_.size();
        --count_;
        return value;
    }
    // Takes out the first element that equals `value`; the others keep their order. False: none
    // does.
    bool remove(const T& value) {
        bool found = false;
        for (size_t n = count_; n > 0; --n) {
            T one = pop();
            if (!found && one == value) {
                found = true;
            } else {
                push(std::move(one));
            }
        }
        return found;
    }

private:
    void grow() {
        std::vector<T> larger(slots_.empty() ? 16 : 2 * slots_.size());
        for (size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
        slots_ = std::move(larger);
        first_ = 0;
    }

    std::vector<T> slots_;
    size_t first_ = 0, count_ = 0;
};

using Clock = std::chrono::steady_clock;

// What the threads of a stream and those of the runtime wait on together. Shared with requests that
// may outlive the stream.
struct Signal {
    std::mutex mutex;  // guards the stream's queue and the state of its requests; nothing is taken,
                       // pushed or called while it is held
    std::condition_variable changed;
};

// Pixels of the frame.
struct FrameRegion {
    int x = 0, y = 0, width = 0, height = 0;
    int od = -1;                   // id of the detection it comes from
    uint64_t track = 0;            // whose detection it is; 0: of no track
    unsigned tile = 0, tiles = 0;  // which of how many tiles of the frame; 0 of 0: it is none
    // Of one that comes from a region of interest: its type, and where it was before it was fitted.
    GQuark roi_type = 0;
    int roi_x = 0, roi_y = 0, roi_width = 0, roi_height = 0;
};

class Lane;

struct Request {
    Lane* lane = nullptr;
    std::vector<TensorMemory> memory;      // own input tensors, made once
    std::vector<vart::NpuTensor> inputs;   // what the run reads: of `memory`, or of `frame`
    std::vector<vart::NpuTensor> outputs;  // of the buffers in `data`
    std::vector<GstBuffer*> data;          // one per output; the stream takes them when done
    GstBuffer* frame = nullptr;            // a frame that the device reads itself; held until then
    Request* next = nullptr;               // of the same frame
    FrameRegion region;
    vartml::Affine to_frame;
    uint64_t pre_us = 0;
    TraceFrame trace_frame;  // the frame in a trace

    // the scheduler's, under its mutex; `inputs` and `outputs` are the run's while it runs
    Clock::time_point due;  // when it goes even if the batch is not full

    // guarded by the signal's mutex
    bool running = false;   // with the scheduler, queued or on the device
    bool done = false;      // the stream may look at the result
    bool given_up = false;  // the stream has gone on: free as soon as it is not running
    vart::StatusCode status = vart::StatusCode::SUCCESS;
    std::string failed_because;  // where the status alone does not tell
    bool device_lost = false;
    Clock::time_point submitted, started, finished;
    unsigned batch_fill = 0;   // requests in its run
    bool leads_batch = false;  // the first of its stream in the run
};

}  // namespace vartml::gst::infer
