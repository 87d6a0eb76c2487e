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

// "intel-rapl:0" may be a package, "intel-rapl:0:1" is a part of one; both vendors' drivers use the
// name. Another zone of the first kind is "psys", the whole machine with its packages in it.
bool is_package(const std::filesystem::path& zone) {
    const std::string file = zone.filename().string();
    if (!file.starts_with("intel-rapl:") || std::ranges::count(file, ':') != 1) return false;
    std::string name;
    std::ifstream(zone / "name") >> name;
    return name.starts_with("package");
}

constexpr double most_watts = 1000;  // ours: no package takes more

}  // namespace

void EnergyMeter::begin() {
    std::vector<Counter> counters;
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, absent)) {
        if (!is_package(entry.path())) continue;
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
    begun_ = std::chrono::steady_clock::now();
    if (counters.empty())
        counters_ = Error{
            ErrorCode::not_found,
            folder_ + " has no counter of a package; virtual machines and many boards have none"};
    else
        counters_ = std::move(counters);
}

Result<double> EnergyMeter::joules() const {
    if (!counters_) return counters_.error();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
    uint64_t sum_uj = 0;
    for (const Counter& counter : *counters_) {
        const double safe_seconds = static_cast<double>(counter.range_uj) * 1e-6 / most_watts;
        if (passed.count() > safe_seconds)
            return Error{ErrorCode::unsupported,
                         counter.path + " may have gone round more than once, in over " +
                             std::to_string(static_cast<int>(safe_seconds)) +
                             " s; measure a shorter run (--time, -n)"};
        const auto now = read_number(counter.path);
        if (!now) return now.error();
        sum_uj += *now >= counter.before_uj ? *now - counter.before_uj
                                            : *now + (counter.range_uj - counter.before_uj);
    }
    return static_cast<double>(sum_uj) * 1e-6;
}

}  // namespace vartml::tools
