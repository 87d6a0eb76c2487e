// SPDX-License-Identifier: Apache-2.0
// No attribute has a value that nobody looks at: each text is one of a list, each number is either
// a number or a switch.
#include "lib/graph/attribute_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/graph/ops.h"
#include "tests/support/graphs.h"

namespace vartml::graph {
namespace {

struct Known {
    std::string_view kind, attribute, type;
};
// All attributes of the table of operators, by its kinds of attributes.
std::vector<Known> attributes_of_kind(std::initializer_list<std::string_view> wanted) {
    std::vector<Known> found;
    for (const OpInfo& op : all_ops())
        for (const AttributeRule& rule : attribute_rules(op))
            if (std::ranges::find(wanted, rule.kind) != wanted.end() && rule.is_canonical)
                found.push_back({op.kind, rule.name, rule.kind});
    return found;
}

Result<void> check(std::string_view kind, std::string_view attribute, Attribute value,
                   Form form = Form::canonical) {
    Node node;
    node.name = "n";
    node.kind = std::string(kind);
    node.attributes[std::string(attribute)] = std::move(value);
    take_apart(node);
    return check_attribute_values(node, form);
}

// Not a choice: a type, which inference parses, the equation of Einsum, and what a node that ONNX
// Runtime computes says of itself.
bool is_free_text(std::string_view attribute) {
    constexpr std::string_view names[] = {"dtype", "equation", "output_dtype",
                                          "to",    "types",    "why"};
    return std::ranges::find(names, attribute) != std::end(names);
}

TEST(AttributeValues, OfEveryTextAreListedAndOthersRefused) {
    for (const auto& [kind, attribute, type] : attributes_of_kind({"s", "ss"})) {
        SCOPED_TRACE(std::string(kind) + " " + std::string(attribute));
        if (is_free_text(attribute)) continue;
        std::string list(choices_of(kind, attribute));
        ASSERT_FALSE(list.empty());
        const auto value = [&](const std::string& text) {
            if (type == "ss") return Attribute(Strings{text});
            return Attribute(text);
        };
        for (size_t at; !list.empty(); list.erase(0, at == list.npos ? at : at + 1)) {
            at = list.find('|');
            EXPECT_TRUE(check(kind, attribute, value(list.substr(0, at))));
        }
        const auto refused = check(kind, attribute, value("frobnicate"));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
        EXPECT_TRUE(refused.error().message.starts_with(
            "node 'n' (" + std::string(kind) + ") has the attribute '" + std::string(attribute) +
            "' with the value 'frobnicate', known are "))
            << refused.error().message;
    }
}

// Numbers of any value; what is too small or too large for its tensor, inference says.
bool is_number(std::string_view attribute) {
    constexpr std::string_view names[] = {"axis",
                                          "batch_axis",
                                          "batch_dims",
                                          "block_size",
                                          "blocksize",
                                          "depth",
                                          "group",
                                          "hidden_size",
                                          "k",
                                          "num_groups",
                                          "num_heads",
                                          "offset_group",
                                          "output_height",
                                          "output_width",
                                          "p",
                                          "rotary_embedding_dim",
                                          "sampling_ratio",
                                          "size",
                                          "time_axis",
                                          "max_output_boxes_per_class",
                                          "start",
                                          "end"};
    return std::ranges::find(names, attribute) != std::end(names);
}

TEST(AttributeValues, OfEverySwitchAreZeroAndOne) {
    for (const auto& [kind, attribute, type] : attributes_of_kind({"i"})) {
        SCOPED_TRACE(std::string(kind) + " " + std::string(attribute));
        if (is_number(attribute)) continue;
        EXPECT_TRUE(check(kind, attribute, int64_t{0}));
        EXPECT_TRUE(check(kind, attribute, int64_t{1}));
        for (const int64_t other : {-1, 2}) {
            const auto refused = check(kind, attribute, other);
            ASSERT_FALSE(refused);
            EXPECT_NE(refused.error().message.find("with the value " + std::to_string(other) +
                                                   ", known are 0 and 1"),
                      std::string::npos);
        }
    }
}

// ONNX spells some otherwise, and has some that end up in other attributes.
TEST(AttributeValues, OfOnnxAreKnownAsOnnxSpellsThem) {
    const std::vector<Known> rows = {{"Conv", "auto_pad", "SAME_UPPER"},
                                     {"Conv", "auto_pad", ""},
                                     {"MaxPool", "auto_pad", "VALID"},
                                     {"GridSample", "mode", "bilinear"},
                                     {"Resize", "keep_aspect_ratio_policy", "not_larger"},
                                     {"Upsample", "mode", "bilinear"}};
    for (const auto& [kind, attribute, value] : rows) {
        SCOPED_TRACE(std::string(kind) + " " + std::string(attribute));
        EXPECT_TRUE(check(kind, attribute, std::string(value), Form::onnx));
        EXPECT_FALSE(check(kind, attribute, std::string("frobnicate"), Form::onnx));
    }
    EXPECT_FALSE(check("GridSample", "mode", std::string("bilinear"), Form::canonical));
}

TEST(AttributeValues, OfFusedPartsAreThoseOfTheirOperators) {
    EXPECT_TRUE(check("Conv+Gelu", "Gelu.approximate", std::string("tanh")));
    EXPECT_FALSE(check("Conv+Gelu", "Gelu.approximate", std::string("sigmoid")));
}

// A file that was damaged, or made by another version, is refused where it is read.
TEST(AttributeValues, AreCheckedByTheVerifier) {
    const auto graph = parse(
        "graph g\ninput %x : f32[1,4,2,2]\n%y = DepthToSpace %x {blocksize=2, mode=\"RCD\"} : "
        "f32[1,1,4,4]\noutput %y\n");
    ASSERT_TRUE(graph) << graph.error().message;
    const auto ok = verify(*graph);
    ASSERT_FALSE(ok);
    EXPECT_NE(ok.error().message.find("known are DCR, CRD"), std::string::npos)
        << ok.error().message;
}

}  // namespace
}  // namespace vartml::graph
