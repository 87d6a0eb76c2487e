// SPDX-License-Identifier: Apache-2.0
// The energy that the processors' packages took, from the counters that Linux shows below
// /sys/class/powercap (RAPL of Intel and AMD). It is that of all programs of the machine.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace vartml::tools {

class EnergyMeter {
public:
    explicit EnergyMeter(std::string folder = "/sys/class/powercap") : folder_(std::move(folder)) {}

    void begin();

    // Joules since begin(), of all packages. Errors: not_found where there is no counter, io where
    // one cannot be read, unsupported where so much time has passed that one may have begun anew
    // several times.
    Result<double> joules() const;

private:
    struct Counter {
        std::string path;
        uint64_t range_uj = 0;  // at which it begins anew
        uint64_t before_uj = 0;
    };
    std::string folder_;
    std::chrono::steady_clock::time_point begun_;
    Result<std::vector<Counter>> counters_ = std::vector<Counter>();
};

}  // namespace vartml::tools
