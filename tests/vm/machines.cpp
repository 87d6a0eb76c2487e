// SPDX-License-Identifier: Apache-2.0
// Workers on three machines, which are network namespaces, around one broker: lines that go down,
// and a time of day that jumps.
#include <array>
#include <csignal>

#include "tests/vm/fleet.h"

namespace {

using namespace vartml::test;

constexpr int machines = 3;
using Shares = std::map<std::string, size_t>;

class Machines : public Fleet {
protected:
    void SetUp() override {
        Fleet::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        for (int i = 0; i < machines; ++i) {
            const std::string n = std::to_string(i);
            shell("ip netns add m" + n);
            shell("ip link add line" + n + " type veth peer name eth0 netns m" + n);
            shell("ip address add 10.9." + n + ".1/24 dev line" + n);
            shell("ip link set line" + n + " up");
            shell("ip -n m" + n + " address add 10.9." + n + ".2/24 dev eth0");
            shell("ip -n m" + n + " link set eth0 up; ip -n m" + n + " link set lo up");
        }
        add_cameras(6, "rtsp://10.0.0.1/");
        for (int i = 0; i < machines; ++i) start_machine(i);
        wait_for({{"m0", 2}, {"m1", 2}, {"m2", 2}});
    }
    void TearDown() override {
        for (Child& worker : workers_) worker.stop(SIGKILL);
        for (int i = 0; in_guest() && i < machines; ++i)
            shell("ip netns delete m" + std::to_string(i));
    }

    void start_machine(int i) {
        const std::string n = std::to_string(i);
        start(workers_[size_t(i)], "exec ip netns exec m" + n, "m" + n,
              "--nats nats://10.9." + n +
                  ".1 --capacity 6 --ttl 6 --run sh -c 'read camera; exec sleep 100000'");
    }
    void wait_for(const Shares& wanted) {
        wait_until([&] { return shares() == wanted; });
    }
    // The seconds from the moment until the last camera of `worker` has its next owner.
    double seconds_since(int64_t boot_ms) const {
        int64_t last = boot_ms;
        for (const auto& e : events())
            if (e["event"] == "start") last = std::max(last, e["boot_ms"].get<int64_t>());
        return double(last - boot_ms) / 1000;
    }
    static int64_t boot_ms() {
        timespec now{};
        ::clock_gettime(CLOCK_BOOTTIME, &now);
        return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
    }
    size_t stops() const {
        return size_t(std::ranges::count_if(
            events(), [](const nlohmann::json& e) { return e["event"] == "stop"; }));
    }

    std::array<Child, machines> workers_;
};

TEST_F(Machines, WhoseLineIsDownHaveNoCameraWhenOthersTakeIt) {
    const int64_t cut_ms = boot_ms();
    shell("ip link set line0 down");
    wait_for({{"m1", 3}, {"m2", 3}});
    std::printf("a line is down: others have its cameras after %.1f s\n", seconds_since(cut_ms));
    shell("ip link set line0 up");
    wait_for({{"m0", 2}, {"m1", 2}, {"m2", 2}});
    expect_one_owner();
}

TEST_F(Machines, KeepTheirCamerasWhenTheTimeOfDayJumps) {
    size_t before = stops();
    for (int i = 0; i < 12; ++i) {
        shell("date -s \"$(date -d '+1 hour' '+%Y-%m-%d %H:%M:%S')\" > /tmp/fleet/date");
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
    }
    EXPECT_EQ(stops(), before);
    const int64_t ahead_ms = boot_ms();
    workers_[0].stop(SIGKILL);
    wait_for({{"m1", 3}, {"m2", 3}});
    std::printf("killed with the clock ahead: others have its cameras after %.1f s\n",
                seconds_since(ahead_ms));
    before = stops();
    shell("date -s \"$(date -d '-24 hours' '+%Y-%m-%d %H:%M:%S')\" > /tmp/fleet/date");
    std::this_thread::sleep_for(std::chrono::seconds(8));  // longer than a lease
    EXPECT_EQ(stops(), before);
    start_machine(0);
    wait_for({{"m0", 2}, {"m1", 2}, {"m2", 2}});
    const int64_t back_ms = boot_ms();
    workers_[1].stop(SIGKILL);
    wait_for({{"m0", 3}, {"m2", 3}});
    std::printf("killed with the clock back: others have its cameras after %.1f s\n",
                seconds_since(back_ms));
    expect_one_owner();
    shell("date -s \"$(date -d '+12 hours' '+%Y-%m-%d %H:%M:%S')\" > /tmp/fleet/date");
}

}  // namespace
