// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/pmu.h"

#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <utility>

#include "lib/base/test_seams.h"

namespace vartml::profiling {
namespace {

constexpr uint64_t cache_event(uint64_t operation, uint64_t result) {
    return PERF_COUNT_HW_CACHE_LL | operation << 8 | result << 16;
}

constexpr uint64_t read_op = PERF_COUNT_HW_CACHE_OP_READ, write_op = PERF_COUNT_HW_CACHE_OP_WRITE,
                   all = PERF_COUNT_HW_CACHE_RESULT_ACCESS, miss = PERF_COUNT_HW_CACHE_RESULT_MISS;

enum Recipe : unsigned { kernel_util = 1, axi_read = 2, axi_write = 4 };

struct RecipeRow {
    const char* name;
    unsigned parts;
};
constexpr RecipeRow recipes[] = {{"KernelUtil", kernel_util},
                                 {"AxiRd", axi_read},
                                 {"AxiWr", axi_write},
                                 {"AxiRdWr", axi_read | axi_write}};

struct CounterRow {
    Recipe part;
    const char* name;
    uint32_t type;
    uint64_t config;
};
constexpr CounterRow counters[] = {
    {kernel_util, "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {kernel_util, "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {kernel_util, "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {kernel_util, "context-switches", rusage_type, 0},
    {kernel_util, "page-faults", rusage_type, 1},
    {axi_read, "LLC-loads", PERF_TYPE_HW_CACHE, cache_event(read_op, all)},
    {axi_read, "LLC-load-misses", PERF_TYPE_HW_CACHE, cache_event(read_op, miss)},
    {axi_write, "LLC-stores", PERF_TYPE_HW_CACHE, cache_event(write_op, all)},
    {axi_write, "LLC-store-misses", PERF_TYPE_HW_CACHE, cache_event(write_op, miss)},
};

// -1 where the system does not say.
int paranoid_level() {
    std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
    int level = -1;
    file >> level;
    return file ? level : -1;
}

uint64_t from_rusage(uint64_t config) {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<uint64_t>(config == 0 ? usage.ru_nvcsw + usage.ru_nivcsw
                                             : usage.ru_minflt + usage.ru_majflt);
}

}  // namespace

std::vector<PmuEvent> pmu_events_of(const Pmu& pmu) {
    std::vector<PmuEvent> events;
    for (const uint32_t id : pmu.events) {
        char name[16];
        std::snprintf(name, sizeof name, "r%x", id);
        events.push_back({PERF_TYPE_RAW, 0, id, name});
    }
    const auto recipe = std::ranges::find(recipes, pmu.recipe, &RecipeRow::name);
    if (recipe == std::end(recipes)) return events;
    for (const CounterRow& c : counters)
        if (recipe->parts & c.part) events.push_back({c.type, 0, c.config, c.name});
    return events;
}

std::string no_pmu_reason(const Pmu& pmu) {
    if (pmu.empty()) return "the model was compiled without --pmu-recipe and --pmu-events";
    if (pmu.recipe == "HmxMacs")
        return "HmxMacs: the software NPU has no matrix unit; MACs are computed from shapes, see "
               "layers.csv";
    return {};
}

int open_counter(perf_event_attr& attributes, int group) {
    return static_cast<int>(
        ::syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC));
}

std::string pmu_reason(int status) {
    switch (status) {
        case 0:
            return {};
        case ENOENT:
        case ENODEV:
        case EOPNOTSUPP:
        case EINVAL:
            return "not supported by the processor or virtual machine";
        case EACCES:
        case EPERM:
        case ENOSYS:
            break;
        default:
            return "perf_event_open failed with error " + std::to_string(status);
    }
    const int paranoid = paranoid_level();
    if (status != ENOSYS && paranoid > 2)
        return "perf_event_open refused (perf_event_paranoid=" + std::to_string(paranoid) + ")";
    return "perf_event_open is not allowed by the container";
}

PmuCounters::PmuCounters(const Pmu& pmu) : pmu_(pmu), events_(pmu_events_of(pmu)) {
    if (events_.size() > max_pmu_events) events_.resize(max_pmu_events);
    cycles_ = open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, -1, cycles_status_);
    for (PmuEvent& event : events_) {
        const int fd = event.perf_type == rusage_type
                           ? -1
                           : open(event.perf_type, event.config, leader_, event.status);
        if (leader_ < 0) leader_ = fd;
        descriptors_.push_back(fd);
    }
}

PmuCounters::~PmuCounters() {
    for (const int fd : descriptors_)
        if (fd >= 0) ::close(fd);
    if (cycles_ >= 0) ::close(cycles_);
}

PmuCounters& PmuCounters::of_this_thread(const Pmu& pmu) {
    thread_local std::vector<std::unique_ptr<PmuCounters>> all;
    for (const auto& counters_of : all)
        if (counters_of->pmu_.recipe == pmu.recipe && counters_of->pmu_.events == pmu.events)
            return *counters_of;
    all.push_back(std::make_unique<PmuCounters>(pmu));
    return *all.back();
}

int PmuCounters::open(uint32_t type, uint64_t config, int group, int& status) const {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = type;
    attributes.config = config;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    attributes.read_format =
        PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    const auto seam = test_seams.open_counter.load(std::memory_order_relaxed);
    const int fd = seam ? seam(attributes, group) : open_counter(attributes, group);
    status = fd < 0 ? errno : 0;
    return fd;
}

namespace {

// As the kernel gives it for a group.
struct Reading {
    uint64_t count = 0, enabled_ns = 0, running_ns = 0;
    std::array<uint64_t, max_pmu_events> values{};
};

bool read_group(int fd, Reading& reading) {
    return fd >= 0 && ::read(fd, &reading, sizeof reading) > 0;
}

}  // namespace

uint64_t PmuCounters::cycles() const {
    Reading reading;
    if (!read_group(cycles_, reading) || reading.running_ns < reading.enabled_ns)
        return not_captured;
    return reading.values[0];
}

PmuCount PmuCounters::read() const {
    PmuCount count;
    count.values.fill(not_captured);
    Reading reading;
    const bool has_group = read_group(leader_, reading);
    count.enabled_ns = reading.enabled_ns;
    count.running_ns = reading.running_ns;
    size_t place = 0;
    for (size_t i = 0; i < events_.size(); ++i) {
        if (events_[i].perf_type == rusage_type)
            count.values[i] = from_rusage(events_[i].config);
        else if (descriptors_[i] >= 0 && has_group)
            count.values[i] = reading.values[place++];
    }
    return count;
}

PmuCount PmuCounters::since(const PmuCount& before) const {
    PmuCount count = read();
    count.enabled_ns -= before.enabled_ns;
    count.running_ns -= before.running_ns;
    const bool is_multiplexed = count.running_ns < count.enabled_ns;
    for (size_t i = 0; i < events_.size(); ++i) {
        const bool is_withheld = is_multiplexed && events_[i].perf_type != rusage_type;
        uint64_t& value = count.values[i];
        if (is_withheld || before.values[i] == not_captured) value = not_captured;
        if (value != not_captured) value -= before.values[i];
    }
    return count;
}

}  // namespace vartml::profiling
