// SPDX-License-Identifier: Apache-2.0
// Which columns of the array are taken by whom, so that placement faults appear without hardware.
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

// Columns held until destruction. Counted per process.
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

private:
    ColumnReservation(uint64_t id, uint32_t start, uint32_t count)
        : id_(id), start_(start), count_(count) {}
    uint64_t id_;  // 0: moved from
    uint32_t start_, count_;
};

}  // namespace vartml::runtime
