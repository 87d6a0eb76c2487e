// SPDX-License-Identifier: Apache-2.0
// Tiles of a frame: where they lie, and that an object which several of them show is one box.
#include <vartml/tiles.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace {

using namespace vartml;

TEST(TileGrid, IsReadFromColumnsAndRows) {
    for (const auto& [text, want] : {std::pair("3x2", TileGrid{3, 2}),
                                     {"1x2", TileGrid{1, 2}},
                                     {"16x16", TileGrid{16, 16}},
                                     {"256x1", TileGrid{256, 1}}}) {
        const auto grid = parse_tile_grid(text);
        ASSERT_TRUE(grid) << text;
        EXPECT_EQ(*grid, want) << text;
    }
    for (const char* text :
         {"", "3", "x", "3x", "x2", "1x1", "0x2", "-3x2", "3x2x1", "3 x 2", "3X2", "17x16", "257x1",
          "4294967297x2", "65536x65536", "3,2", "3x2 "}) {
        const auto grid = parse_tile_grid(text);
        ASSERT_FALSE(grid) << text;
        EXPECT_EQ(
            grid.error().message,
            "'" + std::string(text) +
                "' is no grid of tiles: expected COLUMNSxROWS of 2 to 256 tiles, such as 3x2");
    }
}

TEST(Tiles, CoverTheFrameAndShareWhatWasAsked) {
    for (const TileGrid& grid : {TileGrid{2, 2, 0.2}, TileGrid{3, 2, 0}, TileGrid{7, 5, 0.35},
                                 TileGrid{1, 4, 0.5}, TileGrid{2, 1, 0.9}}) {
        for (const auto& [w, h] : {std::pair(640u, 480u), {1920u, 1080u}, {641u, 479u}}) {
            SCOPED_TRACE(std::to_string(grid.columns) + "x" + std::to_string(grid.rows) + " of " +
                         std::to_string(w) + "x" + std::to_string(h));
            const auto tiles = tiles_of(grid, w, h);
            ASSERT_TRUE(tiles);
            ASSERT_EQ(tiles->size(), size_t(grid.columns) * grid.rows);
            EXPECT_EQ(tiles->front().x, 0);
            EXPECT_EQ(tiles->front().y, 0);
            EXPECT_EQ(tiles->back().x + tiles->back().width, int(w));
            EXPECT_EQ(tiles->back().y + tiles->back().height, int(h));
            for (size_t i = 0; i < tiles->size(); ++i) {
                const Tile& tile = (*tiles)[i];
                EXPECT_EQ(tile.width, tiles->front().width);
                EXPECT_EQ(tile.height, tiles->front().height);
                if (i % grid.columns == 0) continue;
                const Tile& before = (*tiles)[i - 1];
                EXPECT_EQ(tile.y, before.y);
                // To a pixel, by which tiles are rounded.
                EXPECT_NEAR(before.x + before.width - tile.x, grid.overlap * tile.width, 2);
                EXPECT_GE(before.x + before.width, tile.x) << "no gap";
            }
        }
    }
}

TEST(Tiles, OfFewPixelsAreRefused) {
    const auto tiles = tiles_of({8, 2, 0}, 120, 100);
    ASSERT_FALSE(tiles);
    EXPECT_EQ(tiles.error().message,
              "8x2 tiles of frames of 120x100 would be of 15x50 pixels, expected sides of at least "
              "16");
    EXPECT_TRUE(tiles_of({8, 2, 0}, 128, 100));
}

// ---- joining ----

// Two tiles of 120x100 beside each other that share 40 columns, and the whole frame of 200x100.
constexpr Tile left = {0, 0, 120, 100}, right = {80, 0, 120, 100}, whole = {0, 0, 200, 100};
// Four of 120x120 of a frame of 200x200.
constexpr Tile corners[] = {
    {0, 0, 120, 120}, {80, 0, 120, 120}, {0, 80, 120, 120}, {80, 80, 120, 120}};

struct InTile {
    Tile tile;
    std::vector<Detection> boxes;
};

Detection box(float x0, float y0, float x1, float y1, float score = 0.8f, int32_t class_id = 0) {
    return {x0, y0, x1, y1, score, class_id};
}

std::string text(const std::vector<Detection>& boxes) {
    std::string all;
    for (const Detection& d : boxes) {
        for (const float v : {d.x0, d.y0, d.x1, d.y1}) all += std::to_string(std::lround(v)) + " ";
        all += std::to_string(std::lround(100 * d.score)) + "%" +
               (d.class_id ? " class " + std::to_string(d.class_id) : "") + "; ";
    }
    return all;
}

Decoded join(const std::vector<InTile>& tiles, Nms nms = Nms::automatic, uint32_t height = 100) {
    TileJoiner joiner;
    Decoded joined;
    for (int time = 0; time < 2; ++time) {  // it forgets what was before
        joiner.begin(200, height, 0.45, nms);
        for (const InTile& one : tiles) {
            Decoded decoded;
            decoded.detections = one.boxes;
            joiner.add(decoded, one.tile, 1);
        }
        joiner.finish(joined);
    }
    return joined;
}

struct JoinCase {
    const char* why;
    std::vector<InTile> tiles;
    const char* want;
    Nms nms = Nms::automatic;
    uint32_t height = 100;
};

TEST(TileJoiner, ReportsEachObjectOnce) {
    const JoinCase cases[] = {
        {"nothing", {{left, {}}, {right, {}}}, ""},
        {"objects of one tile each, best first",
         {{left, {box(10, 10, 30, 30, 0.5f)}}, {right, {box(150, 10, 170, 30, 0.9f)}}},
         "150 10 170 30 90%; 10 10 30 30 50%; "},
        {"whole in both tiles: the better one",
         {{left, {box(90, 40, 110, 60, 0.6f)}}, {right, {box(91, 41, 111, 61, 0.7f)}}},
         "91 41 111 61 70%; "},
        {"whole in one, its rest in the other, though that scores more",
         {{left, {box(70, 40, 110, 60, 0.6f)}}, {right, {box(80, 40, 110, 60, 0.9f)}}},
         "70 40 110 60 60%; "},
        {"whole in none: both parts become one",
         {{left, {box(60, 40, 120, 60, 0.6f)}}, {right, {box(80, 42, 150, 62, 0.7f)}}},
         "60 40 150 62 70%; "},
        {"two beside each other at a seam stay two",
         {{left, {box(60, 10, 120, 30)}}, {right, {box(80, 60, 150, 80, 0.7f)}}},
         "60 10 120 30 80%; 80 60 150 80 70%; "},
        {"whole in the frame, parts in both tiles",
         {{whole, {box(20, 20, 180, 90, 0.4f)}},
          {left, {box(20, 20, 120, 90, 0.9f)}},
          {right, {box(80, 20, 180, 90, 0.9f)}}},
         "20 20 180 90 40%; "},
        {"small ones in a large one stay",
         {{whole, {box(20, 20, 180, 90)}}, {left, {box(40, 40, 50, 50)}}},
         "20 20 180 90 80%; 40 40 50 50 80%; "},
        {"another class is another object",
         {{left, {box(90, 40, 110, 60, 0.6f, 1)}}, {right, {box(90, 40, 110, 60, 0.7f, 2)}}},
         "90 40 110 60 70% class 2; 90 40 110 60 60% class 1; "},
        {"unless classes do not matter",
         {{left, {box(90, 40, 110, 60, 0.6f, 1)}}, {right, {box(90, 40, 110, 60, 0.7f, 2)}}},
         "90 40 110 60 70% class 2; ",
         Nms::class_agnostic},
        {"all stay where none shall go",
         {{left, {box(70, 40, 110, 60, 0.6f)}}, {right, {box(70, 40, 110, 60, 0.7f)}}},
         "70 40 110 60 70%; 70 40 110 60 60%; ",
         Nms::off},
        {"what one tile shows twice its decoder kept",
         {{left, {box(10, 10, 30, 30, 0.6f), box(10, 10, 30, 31, 0.5f)}}},
         "10 10 30 30 60%; 10 10 30 31 50%; "},
        {"a border of the frame cuts nothing",
         {{left, {box(0, 0, 20, 100)}}, {right, {box(180, 0, 200, 100)}}},
         "0 0 20 100 80%; 180 0 200 100 80%; "},
        {"a box beyond its tile is clipped, and a part",
         {{left, {box(60, 40, 140, 60, 0.6f)}}, {right, {box(75, 40, 150, 60, 0.7f)}}},
         "60 40 150 60 70%; "},
        {"over the meeting of four tiles",
         {{corners[0], {box(60, 60, 120, 120)}},
          {corners[1], {box(80, 60, 150, 120)}},
          {corners[2], {box(60, 80, 120, 150)}},
          {corners[3], {box(80, 80, 150, 150, 0.9f)}}},
         "60 60 150 150 90%; ",
         Nms::automatic,
         200},
        {"along a seam of two rows, in both",
         {{corners[0], {box(60, 85, 120, 115)}},
          {corners[1], {box(80, 85, 150, 115)}},
          {corners[2], {box(60, 85, 120, 115)}},
          {corners[3], {box(80, 85, 150, 115)}}},
         "60 85 150 115 80%; ",
         Nms::automatic,
         200},
    };
    for (const JoinCase& c : cases) {
        SCOPED_TRACE(c.why);
        EXPECT_EQ(text(join(c.tiles, c.nms, c.height).detections), c.want);
    }
}

// A frame of random objects, each cut by the borders of each tile that shows it: whatever the
// tiles, every object that lies apart from the others comes back once, and as it was.
TEST(TileJoiner, GivesBackObjectsThatTilesCut) {
    uint32_t random = 1;
    const auto next = [&](uint32_t below) {
        random = random * 1664525 + 1013904223;
        return float((random >> 8) % below);
    };
    for (const TileGrid& grid : {TileGrid{2, 2, 0.2}, TileGrid{4, 3, 0.1}, TileGrid{5, 5, 0.4}}) {
        const auto tiles = tiles_of(grid, 1000, 800);
        ASSERT_TRUE(tiles);
        std::vector<Detection> objects;
        // Cells of 200x200 with an object each, which may be larger than what tiles share.
        for (float y = 0; y < 800; y += 200) {
            for (float x = 0; x < 1000; x += 200) {
                const float w = 20 + next(150), h = 20 + next(150);
                const float left = x + 5 + next(uint32_t(190 - w)),
                            top = y + 5 + next(uint32_t(190 - h));
                objects.push_back(box(left, top, left + w, top + h, 0.5f));
            }
        }
        TileJoiner joiner;
        joiner.begin(1000, 800, 0.45, Nms::automatic);
        for (const Tile& tile : *tiles) {
            Decoded decoded;
            for (Detection d : objects) {
                d.x0 = std::max(d.x0, float(tile.x)), d.y0 = std::max(d.y0, float(tile.y));
                d.x1 = std::min(d.x1, float(tile.x + tile.width));
                d.y1 = std::min(d.y1, float(tile.y + tile.height));
                // A detector sees no slivers.
                if (d.x1 - d.x0 > 4 && d.y1 - d.y0 > 4) decoded.detections.push_back(d);
            }
            joiner.add(decoded, tile, 1);
        }
        Decoded joined;
        joiner.finish(joined);
        const auto by_place = [](const Detection& a, const Detection& b) {
            return std::pair(a.y0, a.x0) < std::pair(b.y0, b.x0);
        };
        std::ranges::sort(joined.detections, by_place);
        std::ranges::sort(objects, by_place);
        EXPECT_EQ(text(joined.detections), text(objects)) << grid.columns;
    }
}

// A wall across all tiles of the finest grid, of which each tile sees its part: parts are joined
// with what was joined before, in whichever order their scores bring them. Beside it, in each tile,
// are so many parts of other objects that comparing all of them after each join took minutes.
TEST(TileJoiner, JoinsPartsAcrossTheFinestGridAmongThousandsOfOthers) {
    const TileGrid grid{16, 16, 0.1};
    const auto tiles = tiles_of(grid, 3840, 2160);
    ASSERT_TRUE(tiles);
    TileJoiner joiner;
    Decoded joined;
    joiner.begin(3840, 2160, 0.45, Nms::automatic);
    unsigned seed = 1;
    const auto score = [&] {
        seed = seed * 1664525 + 1013904223;
        return 0.2f + float(seed >> 8) / float(1 << 25);
    };
    for (size_t i = 0; i < tiles->size(); ++i) {
        const Tile& t = (*tiles)[i];
        Decoded decoded;
        const float x1 = float(t.x + t.width), y = float(t.y);
        if (i / 16 == 8)
            decoded.detections.push_back(box(float(t.x), y + 60, x1, y + 80, score(), 1));
        for (int k = 0; k < 25; ++k)  // at the right border, one above the other
            decoded.detections.push_back(
                box(x1 - 40, y + 3.f * float(k) + 10, x1, y + 3.f * float(k) + 12, score(), 2 + k));
        for (const Detection& d : std::vector(decoded.detections))
            if (d.class_id > 1 && t.x > 0)  // and what goes on to the left of it
                decoded.detections.push_back(
                    box(float(t.x), d.y0, float(t.x) + 40, d.y1, score(), d.class_id));
        joiner.add(decoded, t, 1);
    }
    joiner.finish(joined);
    const auto of = [&](auto which) { return std::ranges::count_if(joined.detections, which); };
    EXPECT_EQ(of([](const Detection& d) { return d.class_id == 1; }), 1);
    EXPECT_EQ(of([](const Detection& d) { return d.class_id == 1 && d.x0 == 0 && d.x1 == 3840; }),
              1);
    // 15 seams and the right border of the frame in each of 16 rows.
    EXPECT_EQ(of([](const Detection& d) { return d.class_id > 1; }), 16 * 16 * 25);
}

TEST(TileJoiner, TurnedPartsBecomeOneTurnedBox) {
    // A bar of 100x20 at 30 degrees about (100, 50), of which each tile shows a bit more than half.
    const float angle = 0.5235988f, c = std::cos(angle), s = std::sin(angle);
    const auto part = [&](float from, float to) {
        const float m = (from + to) / 2, x = 100 + c * m, y = 50 + s * m, half = (to - from) / 2;
        return Detection{x - half, y - 10, x + half, y + 10, 0.8f, 0, angle};
    };
    const Decoded joined = join({{left, {part(-50, 25)}}, {right, {part(-25, 50)}}});
    ASSERT_EQ(joined.detections.size(), 1u);
    const Detection& d = joined.detections[0];
    EXPECT_NEAR(d.x0, 50, 0.01);
    EXPECT_NEAR(d.x1, 150, 0.01);
    EXPECT_NEAR(d.y0, 40, 0.01);
    EXPECT_NEAR(d.y1, 60, 0.01);
    EXPECT_FLOAT_EQ(d.angle, angle);
}

TEST(TileJoiner, KeypointsGoWithTheirBoxAndThoseOfPartsAreTheBetterOnes) {
    TileJoiner joiner;
    joiner.begin(200, 100, 0.45, Nms::automatic);
    const auto decoded = [](Detection d, std::vector<Keypoint> points) {
        Decoded all;
        d.keypoints = uint32_t(points.size());
        all.detections = {d};
        all.keypoints = std::move(points);
        return all;
    };
    joiner.add(decoded(box(60, 40, 120, 60, 0.6f), {{65, 45, 0.9f}, {119, 50, 0.2f}}), left, 1);
    joiner.add(decoded(box(80, 40, 150, 60, 0.7f), {{81, 45, 0.3f}, {145, 50, 0.8f}}), right, 1);
    joiner.add(decoded(box(20, 70, 30, 80, 0.9f), {{21, 71, 1}, {29, 79, 1}}), left, 1);
    Decoded joined;
    joiner.finish(joined);
    ASSERT_EQ(joined.detections.size(), 2u);
    ASSERT_EQ(joined.keypoints.size(), 4u);
    const float x[] = {21, 29, 65, 145};
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(joined.keypoints[i].x, x[i]) << i;
    EXPECT_EQ(joined.detections[1].first_keypoint, 2u);
}

TEST(TileJoiner, MasksOfPartsBecomeOneOverBoth) {
    TileJoiner joiner;
    joiner.begin(200, 100, 0.45, Nms::automatic);
    // The left half of each part is the object, in cells of 10 pixels.
    const auto decoded = [](Detection d) {
        Decoded all;
        d.mask = 0;
        all.detections = {d};
        const auto w = uint32_t(d.x1 - d.x0) / 10, h = uint32_t(d.y1 - d.y0) / 10;
        all.masks = {{d.x0, d.y0, d.x1, d.y1, w, h}};
        for (uint32_t i = 0; i < w * h; ++i) all.mask_pixels.push_back(i % w < w / 2);
        return all;
    };
    joiner.add(decoded(box(60, 40, 120, 60)), left, 1);   // 60 to 90
    joiner.add(decoded(box(80, 40, 160, 60)), right, 1);  // 80 to 120
    joiner.add(decoded(box(10, 70, 30, 90, 0.9f)), left, 1);
    Decoded joined;
    joiner.finish(joined);
    ASSERT_EQ(joined.detections.size(), 2u);
    ASSERT_EQ(joined.masks.size(), 2u);
    EXPECT_EQ(joined.detections[0].mask, 0);  // the one that was whole
    EXPECT_EQ(joined.masks[0].first, 0u);
    const Mask& mask = joined.masks[size_t(joined.detections[1].mask)];
    EXPECT_EQ(mask.x0, 60);
    EXPECT_EQ(mask.x1, 160);
    ASSERT_EQ(mask.width, 10u);
    ASSERT_EQ(mask.height, 2u);
    for (uint32_t i = 0; i < 20; ++i)
        EXPECT_EQ(joined.mask_pixels[mask.first + i], i % 10 < 6) << i;
}

}  // namespace
