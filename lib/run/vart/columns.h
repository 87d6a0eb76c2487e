// SPDX-License-Identifier: Apache-2.0
// Which columns of the array are taken by whom, in this process and in others, so that placement
// faults appear without hardware.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <vartml/result.h>

namespace vartml::runtime {

struct ColumnRequest {
    std::string device;  // as the model was compiled for; decides how many columns there are
    std::string user;    // of messages
    uint32_t count = 4;
    bool shared = true;
    std::optional<uint64_t> start;
};

// Columns held until destruction, or until the process ends, however it ends: the system gives its
// locks back. Other processes are seen through a file per device, columns_file(). A fork() keeps
// nothing of its parent's.
class ColumnReservation {
public:
    // Errors: busy listing the requested range and the current users; invalid_argument for a range
    // that the device does not have.
    static Result<ColumnReservation> acquire(const ColumnRequest& request);
    ColumnReservation(ColumnReservation&& other) noexcept;
    ColumnReservation& operator=(ColumnReservation&&) = delete;
    ~ColumnReservation();
    uint32_t start() const { return start_; }
    uint32_t count() const { return count_; }
    // Why other processes do not see it; "" where they do.
    const std::string& fault() const { return fault_; }

private:
    ColumnReservation(uint64_t id, uint32_t start, uint32_t count)
        : id_(id), start_(start), count_(count) {}
    uint64_t id_;  // 0: moved from
    uint32_t start_, count_;
    std::string fault_;
};

// `vartml-columns-<device>` in $XDG_RUNTIME_DIR, else in /tmp. A byte stands for a column: locked
// for reading by who shares it, for writing by who has it alone, whose pid then stands in a line of
// 12 bytes per column.
std::string columns_file(const std::string& device);

}  // namespace vartml::runtime
