// SPDX-License-Identifier: Apache-2.0
// What vartml detect prints of a frame.
#include "gst/detect/lines.h"

#include <gtest/gtest.h>

#include <functional>
#include <numbers>

#include "gst/detect/pipeline.h"

namespace vartml::gst::detect {
namespace {

using Record = vartml::FrameRecord;

Record box(std::string_view label, const std::function<void(Record&)>& add = {}) {
    Record record;
    vartml::RecordObject& object = record.objects.emplace_back();
    object.label = label;
    object.score = 0.926f;
    object.box = {131, 219, 178, 326};
    if (add) add(record);
    return record;
}

struct Case {
    const char* name;
    Record record;
    const char* lines;
    const char* tally;
};

std::vector<Case> cases() {
    const auto first = [](Record& r) -> vartml::RecordObject& { return r.objects[0]; };
    std::vector<Case> all;
    all.push_back({"nothing", Record(), "", "nothing found"});
    all.push_back({"a box", box("dog"), "> dog               0.93  at 131,219  size 178x326\n",
                   "1 object: dog 1"});
    all.push_back({"a name of two columns more bytes", box("Tür"),
                   "> Tür               0.93  at 131,219  size 178x326\n", "1 object: Tür 1"});
    all.push_back({"a name that would move the cursor", box("a\n\x1b[2J"),
                   "> a  [2J            0.93  at 131,219  size 178x326\n", "1 object: a  [2J 1"});
    all.push_back({"a turned box",
                   box("ship", [&](Record& r) { first(r).angle = std::numbers::pi_v<float> / 6; }),
                   "> ship              0.93  at 131,219  size 178x326, turned by 30°\n",
                   "1 object: ship 1"});
    all.push_back({"a person with joints and a mask",
                   box("person",
                       [&](Record& r) {
                           r.points.resize(17);
                           first(r).keypoints = {0, 17};
                           r.runs = {30, 10};
                           first(r).mask.emplace();
                           first(r).mask->runs = {0, 2};
                       }),
                   "> person            0.93  at 131,219  size 178x326, mask in 25 % of it, 17 "
                   "points\n",
                   "1 object: person 1"});
    all.push_back({"a sign that was read",
                   box("sign",
                       [&](Record& r) {
                           r.chars = "xSTOPx";
                           first(r).text = {{1, 4}, 0.9f};
                           r.labels.push_back({"red", 0.75f, ""});
                           first(r).attributes = {0, 1};
                       }),
                   "> sign              0.93  at 131,219  size 178x326, text \"STOP\", red 0.75\n",
                   "1 object: sign 1"});
    Record classes;
    classes.classes = {{"goldfish", 0.9f, ""}, {"tench", 0.05f, ""}, {"puffer", 0.001f, ""}};
    all.push_back({"classes", classes, "> goldfish          0.90\n> tench             0.05\n",
                   "1 class: goldfish 1"});
    Record map;
    map.labels = {{"road", 0, ""}, {"car", 0, ""}};
    map.runs = {3, 60, 7, 30, 255, 10, /* regions */ 7, 3};
    vartml::RecordMask& whole = map.masks.emplace_back();
    whole.runs = {0, 6}, whole.labels = {0, 2}, whole.regions = {6, 2};
    all.push_back({"a map of classes", map,
                   "> car               60.0 % of the picture\n"
                   "> road              30.0 % of the picture\n",
                   "2 areas: car 1, road 1"});
    Record hand;
    hand.points = {{10, 20, 1}, {30.4f, 60, 0.5f}};
    hand.keypoints = {{0, 2}};
    all.push_back({"a hand", hand, "> keypoints         0.75  at 10,20  size 20x40, 2 points\n",
                   "1 set of keypoints"});
    Record others;
    others.chars = "abc";
    others.texts = {{{0, 3}, 0.5f}};
    others.numbers = {0.5f, -0.25f, 0, 0, 1};
    others.embeddings = {{0, 5}};
    all.push_back({"a text and a vector", others,
                   "> text              0.50  \"abc\"\n"
                   "> embedding         5 numbers: 0.500 -0.250 0.000 0.000 …\n",
                   "1 text; 1 vector"});
    return all;
}

TEST(DetectLines, SayWhatIsOnAFrame) {
    for (const Case& c : cases()) {
        EXPECT_EQ(lines_of(c.record, "> "), c.lines) << c.name;
        Tally tally;
        tally.add(c.record);
        EXPECT_EQ(tally.text(), c.tally) << c.name;
    }
}

TEST(DetectLines, CountTheCommonestFirst) {
    Tally tally;
    for (const char* label : {"cat", "dog", "dog"}) tally.add(box(label));
    EXPECT_EQ(tally.text(), "3 objects: dog 2, cat 1");
}

TEST(DetectWords, NameOptionsInPlaceOfProperties) {
    EXPECT_EQ(with_options("say it with property preprocess='channels=…'"),
              "say it with --preprocess 'channels=…'");
    EXPECT_EQ(with_options("choose one with the property decoder or the sidecar"),
              "choose one with --decoder or the sidecar");
    EXPECT_EQ(with_options("label-file or x-vartml-labels"), "--labels or x-vartml-labels");
}

}  // namespace
}  // namespace vartml::gst::detect
