// SPDX-License-Identifier: Apache-2.0
#include <vartml/gallery.h>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "tests/support/comma_locale.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml;
using vartml::test::TempDir;

std::vector<float> unit(std::vector<float> v) {
    double squares = 0;
    for (const float x : v) squares += double{x} * x;
    for (float& x : v) x = static_cast<float>(x / std::sqrt(squares));
    return v;
}

std::vector<float> random_unit(size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> value;
    std::vector<float> v(size);
    for (float& x : v) x = value(random);
    return unit(v);
}

Gallery of_three() {
    Gallery gallery;
    EXPECT_TRUE(gallery.enrol("ann", "hash", unit({1, 0, 0})));
    EXPECT_TRUE(gallery.enrol("bob", "hash", unit({0, 1, 0})));
    EXPECT_TRUE(gallery.enrol("ann", "hash", unit({0, 0, 1})));
    return gallery;
}

TEST(Gallery, GivesTheNameOfTheMostSimilarVector) {
    const Gallery gallery = of_three();
    const struct {
        std::vector<float> asked;
        const char* name;
        float similarity;
    } cases[] = {{{1, 0, 0}, "ann", 1},
                 {{0.1f, 3, 0}, "bob", 0.99944f},
                 {{0.1f, 0.2f, 2}, "ann", 0.99375f},
                 {{-1, -1, -1}, "ann", -0.57735f}};
    for (const auto& c : cases) {
        const auto found = gallery.nearest(unit(c.asked));
        ASSERT_TRUE(found);
        EXPECT_EQ(found->name, c.name);
        EXPECT_NEAR(found->similarity, c.similarity, 1e-4);
    }
    EXPECT_EQ(gallery.names(), (std::vector<std::string>{"ann", "bob"}));
    EXPECT_EQ(gallery.vectors(), 3u);
}

TEST(Gallery, AgreesWithSumsOfDoubles) {
    for (const size_t size : {1, 7, 8, 9, 128, 513}) {
        Gallery gallery;
        std::vector<std::vector<float>> vectors;
        for (unsigned i = 0; i < 40; ++i) {
            vectors.push_back(random_unit(size, i));
            ASSERT_TRUE(gallery.enrol("p" + std::to_string(i), "", vectors.back()));
        }
        for (unsigned q = 100; q < 120; ++q) {
            const auto asked = random_unit(size, q);
            double best = -2;
            size_t who = 0;
            for (size_t i = 0; i < vectors.size(); ++i) {
                double product = 0;
                for (size_t k = 0; k < size; ++k) product += double{asked[k]} * vectors[i][k];
                if (product > best + 1e-6) best = product, who = i;
            }
            const auto found = gallery.nearest(asked);
            ASSERT_TRUE(found);
            EXPECT_NEAR(found->similarity, best, 1e-5);
            if (size > 8) {
                EXPECT_EQ(found->name, "p" + std::to_string(who));
            }
        }
    }
}

TEST(Gallery, ForgetsAllVectorsOfAName) {
    Gallery gallery = of_three();
    EXPECT_EQ(gallery.forget("ann"), 2u);
    EXPECT_EQ(gallery.forget("ann"), 0u);
    EXPECT_EQ(gallery.nearest(unit({1, 0.1f, 0}))->name, "bob");
    ASSERT_TRUE(gallery.enrol("dan", "", unit({0, 0, 1})));
    EXPECT_EQ(gallery.nearest(unit({0, 0.1f, 1}))->name, "dan");
    EXPECT_EQ(gallery.forget("dan"), 1u);
    EXPECT_EQ(gallery.forget("bob"), 1u);
    EXPECT_FALSE(gallery.nearest(unit({1, 0, 0})));
    EXPECT_TRUE(gallery.enrol("cy", "other", unit({1, 1})));  // of another model
}

TEST(Gallery, IsTheSameAfterAFileWhateverTheLocale) {
    const TempDir dir;
    const std::string file = dir / "people.txt";
    Gallery gallery;
    for (unsigned i = 0; i < 5; ++i)
        ASSERT_TRUE(gallery.enrol("Zoë " + std::to_string(i % 3), "abc", random_unit(64, i)));
    {
        const vartml::test::CommaLocale comma;
        ASSERT_TRUE(gallery.save(file));
        auto again = Gallery::load(file);
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_EQ(again->names(), gallery.names());
        EXPECT_EQ(again->vectors(), 5u);
        const auto asked = random_unit(64, 50);
        EXPECT_EQ(again->nearest(asked)->similarity, gallery.nearest(asked)->similarity);
        EXPECT_FALSE(again->check("abd", 64));
        EXPECT_TRUE(again->check("abc", 64));
        EXPECT_TRUE(again->check("", 64));
    }
    // Nothing enrolled is a gallery, too.
    ASSERT_TRUE(Gallery().save(file));
    auto none = Gallery::load(file);
    ASSERT_TRUE(none) << none.error().message;
    EXPECT_EQ(none->vectors(), 0u);
}

TEST(Gallery, RefusesWhatCannotBeCompared) {
    Gallery gallery = of_three();
    const struct {
        const char *name, *model;
        std::vector<float> vector;
        const char* words;
    } cases[] = {{"", "hash", {1, 0, 0}, "no name"},
                 {"a\tb", "hash", {1, 0, 0}, "no name"},
                 {"\xff", "hash", {1, 0, 0}, "name '\\xff' is no name"},
                 {"a\x1b", "hash", {1, 0, 0}, "name 'a\\x1b' is no name"},
                 {"cy", "hash", {}, "length 1"},
                 {"cy", "hash", {1, 1, 1}, "length 1"},
                 {"cy", "hash", {NAN, 0, 0}, "length 1"},
                 {"cy", "hash", {1, 0}, "have 2 numbers, those of the gallery 3"},
                 {"cy", "other", {1, 0, 0}, "hash other, those of the gallery of hash"}};
    for (const auto& c : cases) {
        const auto done = gallery.enrol(c.name, c.model, c.vector);
        ASSERT_FALSE(done) << c.words;
        EXPECT_NE(done.error().message.find(c.words), std::string::npos) << done.error().message;
    }
    EXPECT_EQ(gallery.vectors(), 3u);
    EXPECT_FALSE(gallery.nearest(unit({1, 0})));
}

TEST(Gallery, NamesTheLineOfAFileThatIsNone) {
    const TempDir dir;
    const std::string file = dir / "people.txt";
    const struct {
        const char *text, *words;
    } cases[] = {{"", "line 1: expected vartml.gallery/1"},
                 {"vartml.gallery/2\t\t3\n", "line 1: expected vartml.gallery/1"},
                 {"vartml.gallery/1\tabc\t2\nann 1 0\n", "line 2: expected a name"},
                 {"vartml.gallery/1\tabc\t2\nann\t1 0\nbob\t1 x\n", "line 3: expected a name"},
                 {"vartml.gallery/1\tabc\t2\nann\t1 0\nbob\t1 0 0\n", "line 3: embeddings have 3"},
                 {"vartml.gallery/1\tabc\t2\nann\t1 1\n", "line 2: the vector of 'ann'"}};
    for (const auto& c : cases) {
        std::ofstream(file) << c.text;
        const auto loaded = Gallery::load(file);
        ASSERT_FALSE(loaded) << c.text;
        EXPECT_NE(loaded.error().message.find(file), std::string::npos);
        EXPECT_NE(loaded.error().message.find(c.words), std::string::npos)
            << loaded.error().message;
    }
    EXPECT_EQ(Gallery::load(dir / "none").error().code, ErrorCode::not_found);
}

}  // namespace
