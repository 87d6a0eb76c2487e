// SPDX-License-Identifier: Apache-2.0
// Records as ONVIF metadata, read by a parser of XML that is not ours.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <vartml/publish.h>

#include "tests/publish/lines.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml;
using namespace vartml::test;

std::string line_of(const FrameRecord& record) {
    PublishLine line;
    format_frame(record, "00000000000000ab", line);
    return onvif_line(line.text);
}

FrameRecord a_frame() {
    FrameRecord r;
    r.stream = "cam";
    r.frame_seq = 4;
    r.utc_ns = 1500000000;
    r.width = 200, r.height = 100;
    return r;
}

// What Python's parser makes of it: an element per line, by its depth, with its attributes.
std::string outline(const std::string& xml) {
    const TempDir dir;
    spill(dir / "xml", xml);
    const std::string script =
        "import sys, xml.etree.ElementTree as e\n"
        "def show(n, d):\n"
        "    print('  ' * d + n.tag.replace('{http://www.onvif.org/ver10/schema}', ''),\n"
        "          *(f'{k}={v}' for k, v in n.attrib.items()), *([n.text] if n.text else []))\n"
        "    for c in n: show(c, d + 1)\n"
        "show(e.parse(sys.argv[1]).getroot(), 0)\n";
    spill(dir / "py", script);
    const std::string command =
        "python3 " + (dir / "py") + " " + (dir / "xml") + " > " + (dir / "out") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << xml;
    std::ifstream out(dir / "out");
    return {std::istreambuf_iterator<char>(out), {}};
}

TEST(Onvif, AFrameHasItsObjectsInTheCoordinatesOfTheStandard) {
    FrameRecord r = a_frame();
    RecordInference& inference = r.inferences.emplace_back();
    inference.model = "yolo <n>";
    r.num_inferences = 1;
    r.labels = {{"red", 0.5f, "colour"}};
    RecordObject& car = r.objects.emplace_back();
    car.id = 0, car.label = "car", car.score = 0.75f, car.box = {0, 0, 100, 50}, car.track = 7;
    car.attributes = {0, 1};
    RecordObject& plate = r.objects.emplace_back();
    plate.id = 1, plate.label = "plate & \"more\"", plate.score = 1, plate.box = {50, 25, 100, 50};
    plate.parent = 0;
    const std::string line = line_of(r);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(outline(line), R"(MetadataStream
  VideoAnalytics
    Frame UtcTime=1970-01-01T00:00:01.500000000Z Source=yolo <n>
      Object ObjectId=7
        Appearance
          Shape
            BoundingBox left=-1.000000 top=1.000000 right=0.000000 bottom=0.000000
            CenterOfGravity x=-0.500000 y=0.500000
          Class
            Type Likelihood=0.750000 car
            Type Likelihood=0.500000 red
      Object ObjectId=327681 Parent=7
        Appearance
          Shape
            BoundingBox left=-0.500000 top=0.500000 right=0.500000 bottom=-0.500000
            CenterOfGravity x=0.000000 y=0.000000
          Class
            Type Likelihood=1.000000 plate & "more"
)");
}

TEST(Onvif, ATurnedBoxHasItsCorners) {
    FrameRecord r = a_frame();
    RecordObject& ship = r.objects.emplace_back();
    ship.label = "ship", ship.score = 1, ship.box = {80, 40, 40, 20};
    ship.angle = static_cast<float>(M_PI / 2), ship.track = 1;
    EXPECT_NE(outline(line_of(r))
                  .find("BoundingBox left=-0.100000 top=0.400000 right=0.100000 bottom=-0.400000\n"
                        "            CenterOfGravity x=0.000000 y=0.000000\n"
                        "            Polygon\n"
                        "              Point x=0.100000 y=0.400000\n"
                        "              Point x=0.100000 y=-0.400000\n"
                        "              Point x=-0.100000 y=-0.400000\n"
                        "              Point x=-0.100000 y=0.400000\n"),
              std::string::npos)
        << outline(line_of(r));
}

TEST(Onvif, WhatIsNoFrameIsAnEmptyStream) {
    PublishLine gap;
    gap.run = "ab", gap.first = 3, gap.last = 5, gap.count = 3, gap.gap = true;
    format_gap(gap);
    for (const std::string& text : {gap.text, std::string("{}"), std::string("no json")})
        EXPECT_EQ(outline(onvif_line(text)), "MetadataStream\n  VideoAnalytics\n") << text;
}

TEST(Onvif, OddTextIsXmlToo) {
    FrameRecord r = a_frame();
    r.utc_ns.reset();
    r.objects.emplace_back().label = "a\x01\t\nb\xff<![CDATA[日本\xef\xbf\xbe\xef\xbf\xbf";
    EXPECT_NE(outline(line_of(r)).find("日本??\n"), std::string::npos);
    EXPECT_NE(outline(line_of(r)).find("UtcTime=1970-01-01T00:00:00Z"), std::string::npos);
}

// The spool and the counts are those of the publisher: only what leaves is another text.
TEST(Onvif, RecordsGoToAnySink) {
    const TempDir dir;
    auto file = make_file_sink(dir / "out.xml", false);
    ASSERT_TRUE(file);
    auto publisher = Publisher::open(make_onvif_sink(std::move(*file)), {}, {});
    ASSERT_TRUE(publisher);
    for (uint64_t i = 0; i < 20; ++i) (*publisher)->put(a_record(**publisher, i));
    EXPECT_TRUE((*publisher)->drain(3600000));
    EXPECT_EQ((*publisher)->counts().sent, 20u);
    (*publisher)->close(3600000);
    std::ifstream in(dir / "out.xml");
    const auto lines = split_lines({std::istreambuf_iterator<char>(in), {}});
    ASSERT_EQ(lines.size(), 20u);
    for (const std::string& line : lines) {
        EXPECT_TRUE(line.starts_with("<?xml version=\"1.0\"")) << line;
        EXPECT_TRUE(line.ends_with("</tt:MetadataStream>")) << line;
    }
}

}  // namespace
