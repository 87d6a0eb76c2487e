// SPDX-License-Identifier: Apache-2.0
// The operators of an inference, one after another: what each thread of a team stamped is joined to
// one instance.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

// A core above those of the descriptor has the groups of core 0.
const std::vector<Group>& groups_of(const Descriptor& descriptor, uint16_t core);

// Whether a buffer was recorded from a compilation. `model` is for messages. Errors: bad_model for
// another network, model or compilation, and for operators that do not fit.
Result<void> check_match(const BufferFile& file, const Descriptor& descriptor,
                         const format::Id& descriptor_id, const std::string& model);

// Threads whose end lies before their start are left out of every report, as are operators.
inline bool is_valid(const format::ThreadRecord& t) {
    return t.end >= t.start;
}
inline bool was_run(const format::ThreadRecord& t) {
    return is_valid(t) && (t.start != 0 || t.end != 0);
}

struct Instance {
    const Op* op = nullptr;
    uint32_t engine = 0;
    uint64_t start = 0, end = 0;      // ns, from the first thread to the last
    uint64_t longest_ns = 0;          // of one thread
    std::optional<uint64_t> pcycles;  // the most of one thread
};

// The instances of one group of a core, in the order of the descriptor.
class GroupReader {
public:
    GroupReader(const BufferFile& file, const Descriptor& descriptor, uint16_t core,
                uint16_t index);
    GroupReader(const Capture& capture, const Descriptor& descriptor, uint16_t core,
                uint16_t index);
    uint16_t core() const { return core_; }
    const Group& group() const { return *group_; }
    // Those not executed are left out. False behind the last, and when the file can no longer be
    // read: status() tells.
    bool next(Instance& instance);
    Result<void> status() const;
    // Of what next() passed: records with an end before their start; and per thread with stamps,
    // the time in operators other than sync and barrier.
    uint64_t left_out() const { return left_out_; }
    struct Busy {
        uint16_t thread = 0;
        uint64_t ns = 0;
    };
    const std::vector<Busy>& busy() const { return busy_; }

private:
    // A thread's records, in a file or in memory.
    struct Lane {
        Records<Stamp> stamps;
        Records<uint64_t> pcycles;
        const ThreadCapture* capture = nullptr;
        bool get(uint64_t index, Stamp& stamp, uint64_t& cycles);
    };
    void join(Lane& lane, Busy& busy, bool is_wait, Instance& instance);

    const BufferFile* file_ = nullptr;
    const Descriptor* descriptor_;
    const Group* group_;
    uint16_t core_;
    uint64_t at_ = 0, left_out_ = 0;
    std::vector<Lane> lanes_;
    std::vector<Busy> busy_;
};

// One reader for each group of each core that has threads.
std::vector<GroupReader> group_readers(const BufferFile& file, const Descriptor& descriptor);
std::vector<GroupReader> group_readers(const Capture& capture, const Descriptor& descriptor);

// Divides the time of an inference among its operators: each instant equally among those that run
// then. Waits never count; conversions only where nothing else runs.

struct Attribution {
    double work_ns = 0, conversion_ns = 0;
};

// `done` gets each operator that is no wait and no conversion, with its part of the time. Within a
// group operators must start one after another, as they are executed; one that starts before what
// was already divided gets its part from there on.
Result<Attribution> attribute(std::vector<GroupReader>& readers, const Descriptor& descriptor,
                              uint64_t begin_ns, uint64_t end_ns,
                              const std::function<void(const Instance&, double ns)>& done);

}  // namespace vartml::profiling
