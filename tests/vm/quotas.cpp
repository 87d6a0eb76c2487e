// SPDX-License-Identifier: Apache-2.0
// Workers that share a machine by control groups: quotas and weights hold, each knows what it cost,
// and the end of one changes nothing of another's results.
#include <csignal>
#include <sstream>

#include "tests/support/temp_dir.h"
#include "tests/vm/fleet.h"

namespace {

using namespace vartml::test;

constexpr double within = 0.05, account_within = 0.01;
const std::string groups = "/sys/fs/cgroup/";

class Quotas : public Fleet {
protected:
    void SetUp() override {
        Fleet::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        shell("mountpoint -q " + groups + " || mount -t cgroup2 none " + groups);
        shell("echo +cpu > " + groups + "cgroup.subtree_control");
        for (const std::string name : {"a", "b"}) shell("mkdir " + groups + name);
    }
    void TearDown() override {
        a_.stop(SIGKILL);
        b_.stop(SIGKILL);
        for (const std::string name : {"a", "b"}) {
            if (!in_guest()) continue;
            wait_until([&] { return slurp(groups + name + "/cgroup.procs").empty(); });
            shell("rmdir " + groups + name);
        }
    }

    void start_in(Child& worker, const std::string& name, const std::string& options,
                  const std::string& prefix = "") {
        start(worker, "echo $$ > " + groups + name + "/cgroup.procs; exec " + prefix, name,
              "--capacity 1 --ttl 10 " + options);
    }
    // Seconds of processor time of a group, as the kernel counts.
    static double used_s(const std::string& name) {
        std::ifstream stat(groups + name + "/cpu.stat");
        std::string word;
        double value = 0;
        stat >> word >> value;
        EXPECT_EQ(word, "usage_usec");
        return value / 1e6;
    }
    // Of both groups over some seconds: processors.
    static std::pair<double, double> rates() {
        const double a = used_s("a"), b = used_s("b");
        const auto begin = std::chrono::steady_clock::now();
        std::this_thread::sleep_for(std::chrono::seconds(10));
        const std::pair used{used_s("a") - a, used_s("b") - b};
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        return {used.first / passed.count(), used.second / passed.count()};
    }
    // Each worker's own account, when it has ended.
    void expect_accounts() {
        for (const auto& [worker, name] : {std::pair{&a_, "a"}, {&b_, "b"}}) {
            worker->signal(SIGTERM);
            worker->wait();
            const double kernel_s = used_s(name);
            double own_s = 0;
            for (const auto& e : events())
                if (e["event"] == "end" && e["worker"] == name) own_s = e["cpu_s"];
            EXPECT_NEAR(own_s / kernel_s, 1, account_within);
            std::printf("%s: %.3f s by its account, %.3f s by the kernel's\n", name, own_s,
                        kernel_s);
        }
    }

    // A software NPU that computes as much as it gets.
    const std::string busy_ = "--run sh -c 'read camera; exec " + vartml_ + " run " +
                              variable("VARTML_VM_MODELS") +
                              "/picture.rai --time 100000 > /dev/null'";
    Child a_, b_;
};

TEST_F(Quotas, Hold) {
    shell("echo 30000 100000 > " + groups + "a/cpu.max; echo 60000 100000 > " + groups +
          "b/cpu.max");
    add_cameras(2, "rtsp://10.0.0.1/");
    start_in(a_, "a", busy_);
    start_in(b_, "b", busy_);
    wait_until([&] { return shares().size() == 2; });
    std::this_thread::sleep_for(std::chrono::seconds(20));  // the programs start
    const auto [a, b] = rates();
    std::printf("quotas of 0.3 and 0.6 processors: %.3f and %.3f\n", a, b);
    EXPECT_NEAR(a / 0.3, 1, within);
    EXPECT_NEAR(b / 0.6, 1, within);
    expect_accounts();
}

TEST_F(Quotas, WeightsShareWhatBothWant) {
    shell("echo 100 > " + groups + "a/cpu.weight; echo 300 > " + groups + "b/cpu.weight");
    add_cameras(2, "rtsp://10.0.0.1/");
    start_in(a_, "a", busy_, "taskset -c 1");
    start_in(b_, "b", busy_, "taskset -c 1");
    wait_until([&] { return shares().size() == 2; });
    std::this_thread::sleep_for(std::chrono::seconds(10));
    const auto [a, b] = rates();
    std::printf("weights of 100 and 300: %.1f %% and %.1f %%\n", 100 * a / (a + b),
                100 * b / (a + b));
    EXPECT_NEAR(a / (a + b) / 0.25, 1, within);
    EXPECT_NEAR(b / (a + b) / 0.75, 1, within);
    expect_accounts();
}

// What was found on each frame: no time of day, and no name of a run.
std::vector<std::string> found_in(const std::string& file) {
    std::vector<std::string> all;
    std::istringstream text(slurp(file));
    for (std::string line; std::getline(text, line);) {
        const auto record = nlohmann::json::parse(line, nullptr, false);
        if (!record.is_object()) break;  // it is being written
        nlohmann::json kept;
        for (const char* member : {"frame_seq", "pts_ns", "frame", "status", "objects"})
            kept[member] = record.value(member, nlohmann::json());
        all.push_back(kept.dump());
    }
    return all;
}

TEST_F(Quotas, TheEndOfAWorkerChangesNothingOfAnothersResults) {
    constexpr size_t frames = 200;
    ASSERT_NO_FATAL_FAILURE(
        shell("gst-launch-1.0 -q videotestsrc num-buffers=" + std::to_string(frames) +
              " pattern=ball ! video/x-raw,format=I420,width=64,height=64,framerate=25/1 ! x264enc"
              " speed-preset=ultrafast ! mp4mux ! filesink location=/tmp/fleet/film.mp4"));
    const std::string more = R"(, "model": ")" + variable("VARTML_VM_MODELS") + R"(/boxes.rai")";
    const auto publish = [](const std::string& name) {
        return "--publish 'method=file add-empty=true location=/tmp/fleet/" + name + "'";
    };
    add_cameras(1, "file:///tmp/fleet/film.mp4", more);
    start_in(b_, "b", publish("alone"));
    wait_until([&] { return found_in("/tmp/fleet/alone").size() == frames; });
    b_.stop(SIGTERM);
    const auto alone = found_in("/tmp/fleet/alone");
    EXPECT_NE(alone.back().find("\"box\""), std::string::npos) << alone.back();

    add_cameras(2, "file:///tmp/fleet/film.mp4", more);  // c0 anew, and another
    start_in(a_, "a", publish("of-a"));
    start_in(b_, "b", publish("of-b"));
    wait_until([&] {
        return found_in("/tmp/fleet/of-a").size() > 5 && found_in("/tmp/fleet/of-b").size() > 5;
    });
    a_.stop(SIGKILL);
    const size_t at_the_end = found_in("/tmp/fleet/of-b").size();
    EXPECT_LT(at_the_end, frames);
    wait_until([&] { return found_in("/tmp/fleet/of-b").size() >= frames; });
    b_.stop(SIGKILL);
    const auto beside = found_in("/tmp/fleet/of-b");
    std::printf("killed after %zu of %zu frames of the other\n", at_the_end, frames);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), beside.begin()));
    expect_one_owner();
}

}  // namespace
