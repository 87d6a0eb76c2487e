// SPDX-License-Identifier: Apache-2.0
// A model and a runner for tests of vartmlinfer, in the place of the library's: the test says when
// and in which order runs finish, and which fail. Link gst_fake_model.cpp with gst_parts_dep.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <vartml/compile.h>
#include <vartml/model.h>

namespace vartml::test {

inline constexpr uint32_t fake_width = 16, fake_height = 12;

// What the input `images` is.
enum class FakeInput {
    floats,      // [1,3,12,16] fp32, HW view HCWNC4 bf16
    picture,     // [1,12,16,3] uint8 that takes the bytes of an RGB picture, HW view NHWC
    four_bytes,  // [1,3,12,16] uint8, HW view HCWNC4
    codes,       // [1,3,12,16] fp32, HW view HCWNC4 int8 in steps of 1/64
    permuted,    // [1,3,12,16] fp32, HW view GENERIC
};

// Output `scores` [1,4] fp32 in both views: scores[0] is the number of the run from 0 (warm-up not
// counted), [1] the place in its batch, [2] the first byte of its input, [3] is -1.
struct FakeModel {
    std::mutex mutex;
    std::condition_variable changed;

    // set by the test, under the mutex or before the element starts
    bool hold = false;  // submitted runs wait
    unsigned shuffle_seed =
        0;  // not 0: runs finish in random order, at least two at a time where they are there
    std::set<unsigned> failing;    // numbers of runs that end with RUNTIME_ERROR
    std::set<unsigned> lost;       // numbers of runs that never end
    bool refuses_imports = false;  // runs that read a DMA_FD end with INVALID_INPUT
    FakeInput input = FakeInput::floats;
    unsigned warm_up_ms = 0;     // of each run before the first frame
    unsigned run_ms = 0;         // of each later one; for measurements
    bool second_input = false;   // `size` [1,2] fp32, which is no picture
    unsigned refusals = 0;       // next submissions that find no slot
    bool output_hw_view = true;  // false: a CPU partition makes the output
    bool table = false;          // the output is [1,1,4]
    unsigned cpu_operators = 0;
    unsigned batch = 1;
    bool on_host = false;  // runs are short and made by the processors of the host
    std::string modelinfo;
    std::string signature = "00112233445566778899aabbccddeeff";
    vartml::Result<void> open = {}, create = {};  // what open_model and create_runner answer
    vartml::Result<void> compile = {};
    bool compile_waits = false;  // compile_onnx returns only when cancelled

    // read by the test
    unsigned submitted = 0, finished = 0, compiles = 0;
    std::atomic<unsigned> live_runners{0};
    std::vector<uint8_t> last_input;  // of the last element of the last run
    std::vector<size_t> fills;        // elements of each run
    unsigned dma_inputs = 0;          // elements read from a DMA_FD
    float last_size[2] = {-1, -1};    // the second input of the last run

    std::vector<std::shared_ptr<void>> tensors;  // stay when their runner ends

    void release() {
        const std::lock_guard lock(mutex);
        hold = false;
        changed.notify_all();
    }
    void wait_submitted(unsigned count) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return submitted >= count; });
    }
};

// The one model; reset() makes it new.
FakeModel& fake_model();
void reset_fake_model();

vartml::TensorInfo fake_input();
vartml::TensorInfo fake_second_input();
vartml::TensorInfo fake_output();

}  // namespace vartml::test
