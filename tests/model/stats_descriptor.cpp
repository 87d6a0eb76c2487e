// SPDX-License-Identifier: Apache-2.0
// Stats descriptors that contradict themselves, and damaged ones.
#include "lib/model/stats_descriptor.h"

#include <gtest/gtest.h>

#include <functional>

#include "lib/base/text.h"
#include "tests/model/descriptors.h"

namespace vartml::artifact {
namespace {

using profiling::Descriptor;

Result<Descriptor> read_back(const Descriptor& d) {
    const std::string bytes = write_descriptor(d);
    return read_descriptor(as_bytes(bytes), "m");
}

TEST(StatsDescriptorBytes, ComeBackAsTheyWere) {
    const Descriptor d = test::small_descriptor();
    const auto read = read_back(d);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(write_descriptor(*read), write_descriptor(d));
    EXPECT_EQ(read->cores[0].groups[0].ops[1].name, "conv");
    EXPECT_EQ(read->tensors[0].shape, (std::vector<int64_t>{1, 3, 8, 8}));
    EXPECT_EQ(read->edges[1].to, 2u);
    EXPECT_FALSE(read->edges[1].data);
}

struct Fault {
    const char* part;
    std::function<void(Descriptor&)> make;
};

TEST(StatsDescriptorBytes, ContradictionsAreNamed) {
    const Fault faults[] = {
        {"stats descriptor of version 2", [](Descriptor& d) { d.version_major = 2; }},
        {"stats level 101", [](Descriptor& d) { d.compiled_level = 101; }},
        {"batch size of 0", [](Descriptor& d) { d.batch = 0; }},
        {"batch size of 0", [](Descriptor& d) { d.stats_batchsize = 0; }},
        {"9 PMU events", [](Descriptor& d) { d.pmu.events.resize(9); }},
        {"the network's name", [](Descriptor& d) { d.network = "a\nb"; }},
        {"a kind of operators", [](Descriptor& d) { d.kinds[0] = "\xff"; }},
        {"tensor 0 has data type 14", [](Descriptor& d) { d.tensors[0].dtype = 14; }},
        {"tensor 1 has data type", [](Descriptor& d) { d.tensors[1].layout = 20; }},
        {"more than 8 dimensions", [](Descriptor& d) { d.tensors[0].shape.assign(9, 1); }},
        {"or a negative one", [](Descriptor& d) { d.tensors[0].shape = {-1}; }},
        {"core 0 occurs twice", [](Descriptor& d) { d.cores.push_back({}); }},
        {"core 0 has engine 3", [](Descriptor& d) { d.cores[0].groups[0].engine = 3; }},
        {"operator 1 has kind 9", [](Descriptor& d) { test::conv_of(d).kind = 9; }},
        {"operator 1 has memory 1", [](Descriptor& d) { test::conv_of(d).memory = 1; }},
        {"operator 1 has partition 1", [](Descriptor& d) { test::conv_of(d).partition = 1; }},
        {"operator 1 has data type 7", [](Descriptor& d) { test::conv_of(d).dtypes = {0, 7}; }},
        {"operator 1 has tensor 2", [](Descriptor& d) { test::conv_of(d).inputs = {2}; }},
        {"operator 1 has tensor 4294967295",
         [](Descriptor& d) { test::conv_of(d).outputs = {4294967295u}; }},
        {"operator 1 has layer -2", [](Descriptor& d) { test::conv_of(d).layer = -2; }},
        {"operator 0 occurs twice", [](Descriptor& d) { test::conv_of(d).id = 0; }},
        {"an ONNX node of operator 1", [](Descriptor& d) { test::conv_of(d).onnx_nodes = {"\n"}; }},
        {"edge 2 ends at operator 77", [](Descriptor& d) { d.edges.push_back({0, 77, true}); }},
    };
    for (const Fault& fault : faults) {
        Descriptor d = test::small_descriptor();
        fault.make(d);
        const auto read = read_back(d);
        ASSERT_FALSE(read) << fault.part;
        EXPECT_TRUE(read.error().message.starts_with("m: ")) << read.error().message;
        EXPECT_NE(read.error().message.find(fault.part), std::string::npos)
            << read.error().message << "\nexpected: " << fault.part;
    }
}

TEST(StatsDescriptorBytes, EveryTruncationAndEveryDamagedByteIsHarmless) {
    const std::string bytes = write_descriptor(test::small_descriptor());
    for (size_t size = 0; size < bytes.size(); ++size) {
        const std::vector<std::byte> part(as_bytes(bytes).begin(),
                                          as_bytes(bytes).begin() + static_cast<ptrdiff_t>(size));
        const auto read = read_descriptor(part, "m");
        EXPECT_TRUE(size >= 16 || !read) << size;
    }
    for (size_t i = 0; i < bytes.size(); ++i)
        for (const unsigned flip : {1u, 0x80u, 0xffu}) {
            std::string damaged = bytes;
            damaged[i] = static_cast<char>(static_cast<unsigned char>(damaged[i]) ^ flip);
            const auto read = read_descriptor(as_bytes(damaged), "m");
            EXPECT_TRUE(read || is_plain_text(read.error().message));
        }
    std::string foreign = bytes;
    foreign[4] = 'X';
    const auto read = read_descriptor(as_bytes(foreign), "m");
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find("'VMOD'"), std::string::npos);
}

}  // namespace
}  // namespace vartml::artifact
