// SPDX-License-Identifier: Apache-2.0
// A fleet in the guest: a real nats-server, and workers that are started as a user starts them.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/child.h"
#include "tests/vm/cameras.h"

namespace vartml::test {

// Everything that these tests need is made by root in a machine that nobody else uses.
#define VARTML_GUEST_ONLY() \
    if (!vartml::test::in_guest()) GTEST_SKIP() << "./dev vm-test runs this in a guest"

inline std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

inline void shell(const std::string& command) {
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

class Fleet : public testing::Test {
protected:
    void SetUp() override {
        VARTML_GUEST_ONLY();
        shell("rm -rf /tmp/fleet; mkdir /tmp/fleet; : > " + log_);
        shell("ip link set lo up");
        broker_.start({variable("VARTML_NATS_SERVER"), "-js", "-sd", "/tmp/fleet/nats", "-l",
                       "/tmp/fleet/broker.log"});
        wait_until([&] {
            return std::system((vartml_ + " cameras list > /tmp/fleet/list 2>&1").c_str()) == 0;
        });
    }

    // A worker with a prefix, such as what enters a namespace; its log is that of all.
    void start(Child& worker, const std::string& prefix, const std::string& name,
               const std::string& options) {
        worker.start({"sh", "-c",
                      prefix + ' ' + vartml_ + " worker --name " + name + ' ' + options + " >> " +
                          log_ + " 2>> /tmp/fleet/errors"});
    }

    void add_cameras(int count, const std::string& uri, const std::string& more = "") {
        std::ofstream list("/tmp/fleet/cameras");
        for (int i = 0; i < count; ++i)
            list << R"({"camera": "c)" << i << R"(", "uri": ")" << uri << '"' << more << "}\n";
        list.close();
        shell(vartml_ + " cameras import /tmp/fleet/cameras");
    }

    static void wait_until(const std::function<bool()>& reached) {
        while (!reached()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }

    std::vector<nlohmann::json> events() const {
        std::vector<nlohmann::json> all;
        std::ifstream file(log_);
        for (std::string line; std::getline(file, line);)
            if (auto event = nlohmann::json::parse(line, nullptr, false); event.is_object())
                all.push_back(std::move(event));
        return all;
    }

    // Worker: cameras whose programs run, as the guards saw it.
    std::map<std::string, size_t> shares() const {
        std::map<std::string, size_t> running;
        for (const auto& e : events()) {
            if (e["event"] == "start") ++running[e["worker"].get<std::string>()];
            if (e["event"] == "stop") --running[e["worker"].get<std::string>()];
        }
        std::erase_if(running, [](const auto& row) { return row.second == 0; });
        return running;
    }

    // At each moment of the log a camera has one owner at most, and epochs grow.
    void expect_one_owner() const {
        auto all = events();
        std::ranges::stable_sort(all, {}, [](const nlohmann::json& e) {
            return std::make_tuple(e["boot_ms"].get<int64_t>(), e["epoch"].get<uint64_t>(),
                                   e["event"] == "stop");
        });
        std::map<std::string, std::string> owner;
        std::map<std::string, uint64_t> epoch;
        for (const auto& e : all) {
            const std::string camera = e["camera"];
            if (e["event"] == "start") {
                EXPECT_EQ(owner[camera], "") << e;
                EXPECT_GT(e["epoch"].get<uint64_t>(), epoch[camera]) << e;
                owner[camera] = e["worker"];
                epoch[camera] = e["epoch"];
            } else if (e["event"] == "stop") {
                EXPECT_EQ(owner[camera], e["worker"].get<std::string>()) << e;
                owner[camera].clear();
            }
        }
    }

    const std::string vartml_ = variable("VARTML_PROGRAM"), log_ = "/tmp/fleet/log";
    Child broker_;
};

}  // namespace vartml::test
