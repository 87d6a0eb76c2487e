// SPDX-License-Identifier: Apache-2.0
// What leads to indices, comparisons and coordinates is found, and nothing else is.
#include "lib/graph/coordinates.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

// %f: features; %c: a convolution of them to one channel.
constexpr const char* head =
    "graph g\ninput %x : f32[1,64,16,16]\nconst %w : f32[64,64,1,1] = {0}\n"
    "const %one : f32[1,64,1,1] = {0}\nconst %back : f32[64,1,1,1] = {0}\n"
    "const %half : f32[] = {0}\nconst %none : f32[] = {0}\n"
    "const %grid : f32[1,1,1,16] = {0}\nconst %learnt : f32[1,1,1,16] = {0}\n"
    "const %bins : f32[1,16,1,1] = {0}\n"
    "%f = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
    "f32[1,64,16,16]\n"
    "%c = Conv %f, %one {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
    "f32[1,1,16,16]\n";

std::string conv(const std::string& out, const std::string& in, const std::string& weights,
                 int channels) {
    return "%" + out + " = Conv %" + in + ", %" + weights +
           " {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1," +
           std::to_string(channels) + ",16,16]\n";
}

struct Case {
    const char* why;
    std::string text;
    std::set<std::string> values, products;
};

const Case cases[] = {
    {"a plain network keeps nothing",
     "%s = Sigmoid %c : f32[1,1,16,16]\n" + conv("y", "s", "back", 64) + "output %y\n",
     {},
     {}},
    {"what TopK orders, although a convolution reads it too",
     "%s = Sigmoid %c : f32[1,1,16,16]\n"
     "%v, %i = TopK %s {axis=3, k=2, largest=1, sorted=1} : f32[1,1,16,2], i64[1,1,16,2]\n" +
         conv("y", "s", "back", 64) + "output %y\noutput %i\n",
     {"c", "s"},
     {}},
    {"what TopK orders, however many of them are asked for",
     "input %k : i64[1]\n%s = Sigmoid %c : f32[1,1,16,16]\n"
     "%v, %i = Late %s, %k {axis=3, largest=1, op=\"TopK\", sorted=1} : f32[1,1,16,16]?, "
     "i64[1,1,16,16]?\n" +
         conv("y", "s", "back", 64) + "output %y\noutput %i\n",
     {"c", "s"},
     {}},
    {"what the largest is marked of",
     "%m = Hardmax %c {axis=3} : f32[1,1,16,16]\n" + conv("y", "c", "back", 64) +
         "output %y\noutput %m\n",
     {"c"},
     {}},
    {"what is compared with a number",
     "%b = Greater %c, %half : bool[1,1,16,16]\n" + conv("y", "c", "back", 64) +
         "output %y\noutput %b\n",
     {"c"},
     {}},
    {"not what is compared with 0: rounding keeps the sign",
     "%b = Greater %c, %none : bool[1,1,16,16]\n" + conv("y", "c", "back", 64) +
         "output %y\noutput %b\n",
     {},
     {}},
    {"what becomes an integer",
     "%b = Cast %c {to=\"i64\"} : i64[1,1,16,16]\n" + conv("y", "c", "back", 64) +
         "output %y\noutput %b\n",
     {"c"},
     {}},
    {"what is added to a grid of pixels, and what is made of the sum",
     "%p = Add %c, %grid : f32[1,1,16,16]\n%q = Mul %p, %half : f32[1,1,16,16]\n" +
         conv("y", "q", "back", 64) + "output %y\n",
     {"c", "p", "q"},
     {}},
    {"not what is added to numbers that do not count",
     "%p = Add %c, %learnt : f32[1,1,16,16]\n" + conv("y", "p", "back", 64) + "output %y\n",
     {},
     {}},
    {"not features of which there are many",
     "%i = ArgMax %f {axis=1, keepdims=1, select_last_index=0} : i64[1,1,16,16]\n" +
         conv("y", "f", "w", 64) + "output %y\noutput %i\n",
     {},
     {}},
};

Graph graph_of(const std::string& text) {
    Graph graph = must_parse(head + text);
    for (Value& value : graph.values) {
        if (!value.constant) continue;
        std::vector<float> numbers(static_cast<size_t>(value.type.elements()), 0.0F);
        for (size_t i = 0; i < numbers.size(); ++i) {
            if (value.name == "grid" || value.name == "bins")
                numbers[i] = static_cast<float>(i) + 0.5F;
            else if (value.name != "none")
                numbers[i] = static_cast<float>(i * i * 7 % 31) - 15.5F;
        }
        value.constant = make_constant<float>(numbers);
    }
    return graph;
}

TEST(Coordinates, AreFoundByWhatReadsThem) {
    for (const Case& c : cases) {
        SCOPED_TRACE(c.why);
        const Graph graph = graph_of(c.text);
        const Coordinates found = find_coordinates(graph);
        std::set<std::string> values, products;
        for (size_t i = 0; i < graph.values.size(); ++i)
            if (found.values[i]) values.insert(graph.values[i].name);
        for (size_t i = 0; i < graph.nodes.size(); ++i)
            if (found.products[i]) products.insert(graph.nodes[i].name);
        EXPECT_EQ(values, c.values);
        EXPECT_EQ(products, c.products);
    }
}

TEST(Coordinates, AreTheExpectationOverBins) {
    const Graph graph = must_parse(
        "graph g\ninput %x : f32[1,64,16,16]\nconst %w : f32[64,64,3,3] = {0}\n"
        "const %m : f32[16,64,1,1] = {0}\nconst %bins : f32[1,16,1,1] = {0,1,2,3,4,5,6,7,8,9,10,11,"
        "12,13,14,15}\n"
        "%f = Conv %x, %w {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : "
        "f32[1,64,16,16]\n" +
        conv("d", "f", "m", 16) + "%p = Softmax %d {axis=1} : f32[1,16,16,16]\n" +
        conv("y", "p", "bins", 1) + "output %y\n");
    const Coordinates found = find_coordinates(graph);
    std::vector<std::string> kept;
    for (size_t i = 0; i < graph.values.size(); ++i)
        if (found.values[i]) kept.push_back(graph.values[i].name);
    EXPECT_EQ(kept, (std::vector<std::string>{"d", "p", "y"}));
    EXPECT_EQ(found.products, (std::vector<bool>{false, false, false, true}));
    EXPECT_EQ(found.reasons, (std::vector<std::string>{"Conv 'y'"}));
}

}  // namespace
}  // namespace vartml::graph
