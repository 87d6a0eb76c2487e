// SPDX-License-Identifier: Apache-2.0
#include "lib/base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace vartml {
namespace {

struct File {
    const char *path, *text;
};

struct Row {
    const char* name;
    std::vector<File> files;
    double quota, throttled_s = 0;
};

constexpr const char* mounts_2 =
    "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* mounts_1 =
    "31 24 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

class ProcessorQuota : public testing::TestWithParam<Row> {};

TEST_P(ProcessorQuota, IsTheSmallestOfTheGroupAndThoseAboveIt) {
    const test::TempDir root;
    for (const File& file : GetParam().files) {
        const std::filesystem::path path(root / file.path);
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << file.text;
    }
    EXPECT_DOUBLE_EQ(processor_quota_in(root.path()), GetParam().quota);
    EXPECT_DOUBLE_EQ(processor_throttled_s_in(root.path()), GetParam().throttled_s);
}

INSTANTIATE_TEST_SUITE_P(
    Systems, ProcessorQuota,
    testing::Values(
        Row{"NoControlGroups", {}, 0},
        Row{"Version2",
            {{"proc/self/mountinfo", mounts_2},
             {"proc/self/cgroup", "0::/system.slice/worker.service\n"},
             {"sys/fs/cgroup/system.slice/worker.service/cpu.max", "150000 100000\n"},
             {"sys/fs/cgroup/system.slice/worker.service/cpu.stat",
              "usage_usec 9000000\nnr_throttled 4\nthrottled_usec 2500000\n"}},
            1.5,
            2.5},
        Row{"Version2WithoutLimit",
            {{"proc/self/mountinfo", mounts_2},
             {"proc/self/cgroup", "0::/a\n"},
             {"sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
            0},
        Row{"Version2LimitedAbove",
            {{"proc/self/mountinfo", mounts_2},
             {"proc/self/cgroup", "0::/pod/a\n"},
             {"sys/fs/cgroup/pod/a/cpu.max", "300000 100000\n"},
             {"sys/fs/cgroup/pod/cpu.max", "20000 10000\n"}},
            2},
        Row{"ContainerThatSeesItsGroupAsTheRoot",
            {{"proc/self/mountinfo", mounts_2},
             {"proc/self/cgroup", "0::/\n"},
             {"sys/fs/cgroup/cpu.max", "50000 100000\n"}},
            0.5},
        Row{"ContainerWhoseGroupIsMountedAsTheRoot",
            {{"proc/self/mountinfo",
              "33 31 0:29 /docker/ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"},
             {"proc/self/cgroup", "5:cpu,cpuacct:/docker/ab/c\n"},
             {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n"},
             {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
             {"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "30000\n"},
             {"sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"}},
            0.3},
        // Its root is the beginning of a name.
        Row{"GroupBesideTheOneThatIsMounted",
            {{"proc/self/mountinfo", "33 31 0:29 /job1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
             {"proc/self/cgroup", "0::/job12\n"},
             {"sys/fs/cgroup/job12/cpu.max", "max 100000\n"}},
            0},
        Row{"Version1",
            {{"proc/self/mountinfo", mounts_1},
             {"proc/self/cgroup", "4:cpuset:/x\n3:cpu,cpuacct:/workers\n0::/y\n"},
             {"sys/fs/cgroup/cpu,cpuacct/workers/cpu.cfs_quota_us", "250000\n"},
             {"sys/fs/cgroup/cpu,cpuacct/workers/cpu.cfs_period_us", "100000\n"},
             {"sys/fs/cgroup/cpu,cpuacct/workers/cpu.stat",
              "nr_periods 7\nnr_throttled 3\nthrottled_time 250000000\n"},
             {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
             {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}},
            2.5,
            0.25},
        Row{"FilesWithOtherWords",
            {{"proc/self/mountinfo", "cgroup2\n - cgroup2\n1 2 3 / /g rw - cgroup2 c rw\n"},
             {"proc/self/cgroup", "0\n:\n0::/a\n"},
             {"g/a/cpu.max", "many\n"}},
            0}),
    [](const auto& info) { return info.param.name; });

TEST(UsableProcessors, AreThoseOfTheAffinityAtMost) {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    EXPECT_GE(usable_processors(), 1u);
    EXPECT_LE(usable_processors(), unsigned(CPU_COUNT(&all)));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_processors(), 1u);
    sched_setaffinity(0, sizeof all, &all);
}

}  // namespace
}  // namespace vartml
