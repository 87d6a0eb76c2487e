// SPDX-License-Identifier: Apache-2.0
#include "lib/base/processors.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace vartml {
namespace {

// A hierarchy of control groups: version 1's that counts processor time, or version 2's.
struct Mount {
    std::string root;   // the group that is seen at `point`
    std::string point;  // a folder
    bool second = false;
};

bool has_word(const std::string& list, const std::string& word) {
    return (',' + list + ',').find(',' + word + ',') != std::string::npos;
}

// given, proc(5): of /proc/PID/mountinfo, the 4th word is the root, the 5th where it is mounted;
// behind " - " are type, source and options of the file system.
std::vector<Mount> mounts_in(const std::string& root) {
    std::vector<Mount> mounts;
    std::ifstream file(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t middle = line.find(" - ");
        if (middle == std::string::npos) continue;
        std::istringstream before(line.substr(0, middle)), behind(line.substr(middle + 3));
        std::string word, type, source, options;
        Mount mount;
        before >> word >> word >> word >> mount.root >> mount.point;
        behind >> type >> source >> options;
        mount.second = type == "cgroup2";
        if (mount.second || (type == "cgroup" && has_word(options, "cpu"))) mounts.push_back(mount);
    }
    return mounts;
}

// given, cgroups(7): a line of /proc/PID/cgroup is HIERARCHY:CONTROLLERS:PATH, version 2's 0::PATH.
std::string path_in(const std::string& root, const Mount& mount) {
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (mount.second ? controllers.empty() : has_word(controllers, "cpu"))
            return line.substr(second + 1);
    }
    return "/";
}

// Of one group, in processors; 0: it has none.
double quota_of(const std::string& folder, bool second) {
    double quota = 0, period = 0;
    if (second) {
        std::ifstream(folder + "/cpu.max") >> quota >> period;  // "max" is no number
    } else {
        std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;  // -1: none
        std::ifstream(folder + "/cpu.cfs_period_us") >> period;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

// given, cgroup-v2.rst and sched-bwc.rst of Linux: of cpu.stat, `throttled_usec N`, or version 1's
// `throttled_time N` in nanoseconds.
double throttled_s_of(const std::string& folder, bool second) {
    std::ifstream file(folder + "/cpu.stat");
    std::string name;
    for (double value = 0; file >> name >> value;)
        if (name == (second ? "throttled_usec" : "throttled_time"))
            return value / (second ? 1e6 : 1e9);
    return 0;
}

// Of this process's group. In a container it may be seen as the root that was mounted.
std::string group_in(const std::string& root, const Mount& mount) {
    std::string path = path_in(root, mount);
    const size_t size = mount.root.size();
    const bool is_below =
        path.starts_with(mount.root) && (path.size() == size || path[size] == '/');
    if (mount.root != "/" && is_below) path.erase(0, size);
    return path == "/" ? "" : path;
}

}  // namespace

double processor_quota_in(const std::string& root) {
    double least = 0;
    for (const Mount& mount : mounts_in(root)) {
        for (std::string path = group_in(root, mount);;) {
            const double quota = quota_of(root + mount.point + path, mount.second);
            if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
            const size_t last = path.rfind('/');
            if (last == path.npos) break;
            path.erase(last);
        }
    }
    return least;
}

double processor_throttled_s_in(const std::string& root) {
    double most = 0;  // of two hierarchies one counts
    for (const Mount& mount : mounts_in(root))
        most = std::max(most,
                        throttled_s_of(root + mount.point + group_in(root, mount), mount.second));
    return most;
}

double processor_quota() {
    return processor_quota_in("");
}

double processor_throttled_s() {
    return processor_throttled_s_in("");
}

unsigned usable_processors() {
    cpu_set_t set;
    const int most = sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
    const double quota = processor_quota();
    // Not rounded up: threads that share less than a processor each wait for the next period.
    return quota > 0 ? unsigned(std::clamp(quota, 1.0, double(most))) : unsigned(most);
}

}  // namespace vartml
