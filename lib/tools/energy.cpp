// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/energy.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "lib/base/file.h"

namespace vartml::tools {
namespace {

// A number in a file of its own, as Linux writes them.
Result<uint64_t> read_number(const std::string& path) {
    errno = 0;
    std::ifstream file(path);  // of sysfs: it has no size, and cannot be mapped
    if (!file) return system_error(path, "open it", errno);
    uint64_t number = 0;
    if (!(file >> number)) return Error{ErrorCode::io, path + ": holds no number"};
    return number;
}

// "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it; both vendors' drivers use the name.
bool is_package(const std::string& name) {
    return name.starts_with("intel-rapl:") && std::count(name.begin(), name.end(), ':') == 1;
}

}  // namespace

void EnergyMeter::begin() {
    std::vector<Counter> counters;
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, absent)) {
        if (!is_package(entry.path().filename().string())) continue;
        Counter counter{(entry.path() / "energy_uj").string(), 0, 0};
        const auto before = read_number(counter.path);
        const auto range = read_number((entry.path() / "max_energy_range_uj").string());
        if (!before || !range) {
            const Error& fault = before ? range.error() : before.error();
            counters_ =
                Error{fault.code, fault.message + "; only root may read it, unless allowed"};
            return;
        }
        counter.before_uj = *before;
        counter.range_uj = *range;
        counters.push_back(std::move(counter));
    }
    if (counters.empty())
        counters_ = Error{
            ErrorCode::not_found,
            folder_ + " has no counter of a package; virtual machines and many boards have none"};
    else
        counters_ = std::move(counters);
}

Result<double> EnergyMeter::joules() const {
    if (!counters_) return counters_.error();
    uint64_t sum_uj = 0;
    for (const Counter& counter : *counters_) {
        const auto now = read_number(counter.path);
        if (!now) return now.error();
        sum_uj += *now >= counter.before_uj ? *now - counter.before_uj
                                            : *now + (counter.range_uj - counter.before_uj);
    }
    return static_cast<double>(sum_uj) * 1e-6;
}

}  // namespace vartml::tools
