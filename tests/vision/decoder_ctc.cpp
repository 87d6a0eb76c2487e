// SPDX-License-Identifier: Apache-2.0
// Lines of text from scores of characters per step, against the definition: the best path, without
// repetitions, without blanks.
#include <gtest/gtest.h>

#include <map>

#include "tests/vision/face_heads.h"
#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 320, height = 32, steps = 40;
constexpr char letters[] = "abcdefghijklmnopqrstuvwxyz";

// Words of several bytes too: a character is a label, whatever its bytes.
std::vector<std::string> dictionary() {
    std::vector<std::string> texts = {"ä", "京", "0"};
    for (const char* c = letters; *c; ++c) texts.emplace_back(1, *c);
    return texts;
}

// Probabilities, each step a different mixture; the odd steps often repeat the even ones' winner.
RefTensor random_steps(size_t classes, unsigned seed, size_t blank) {
    Random random(seed);
    RefTensor t{{}, steps, classes, false};
    size_t winner = 0;
    for (size_t step = 0; step < steps; ++step) {
        const double kind = random.between(0, 1);
        if (kind < 0.4)
            winner = blank;
        else if (kind < 0.7)
            winner = static_cast<size_t>(random.between(0, double(classes) - 0.001));
        std::vector<double> values(classes);
        double sum = 0;
        for (size_t c = 0; c < classes; ++c)
            sum += values[c] = c == winner ? random.between(1, 9) : random.between(0, 0.1);
        for (const double value : values) t.data.push_back(static_cast<float>(value / sum));
    }
    return t;
}

struct Line {
    std::string text;
    double score = 0;
};
// `names`: the text of each class but the blank.
Line reference(const RefTensor& t, const std::map<size_t, std::string>& names) {
    std::vector<std::pair<size_t, double>> path;  // class and probability
    for (size_t step = 0; step < t.positions; ++step) {
        std::pair<size_t, double> best{0, t.at(step, 0)};
        for (size_t c = 1; c < t.attributes; ++c)
            if (t.at(step, c) > best.second) best = {c, t.at(step, c)};
        path.push_back(best);
    }
    const auto repeated = [](const auto& a, const auto& b) { return a.first == b.first; };
    path.erase(std::unique(path.begin(), path.end(), repeated), path.end());
    std::erase_if(path, [&](const auto& step) { return !names.contains(step.first); });
    Line line;
    for (const auto& [c, score] : path) {
        line.text += names.at(c);
        line.score += score / static_cast<double>(path.size());
    }
    return line;
}

struct Case {
    const char* why;
    int added;                 // classes beside the dictionary's
    std::optional<int> blank;  // as the sidecar says it
    bool steps_first = false;  // [T,1,C]
    bool logits = false;
};
const Case cases[] = {
    {"a dictionary without blank, which comes first", 1, {}},
    {"and a space behind the dictionary", 2, {}},
    {"the blank behind the dictionary", 1, -1},
    {"a blank in the dictionary", 0, {}},
    {"a blank in the middle of the classes", 1, 7},
    {"steps before the batch", 1, {}, true},
    {"logits", 1, {}, false, true},
    {"logits with steps before the batch", 2, {}, true, true},
};
ModelInfo info_of(const Case& c) {
    ModelInfo info;
    info.labels = dictionary();
    info.blank = c.blank;
    return info;
}
StoredTensor stored(const Case& c, RefTensor t) {
    if (c.logits)
        for (float& value : t.data) value = std::log(value) + 3;
    StoredTensor tensor = stored_cpu(t, "out");
    if (c.steps_first) {
        const auto classes = static_cast<uint32_t>(t.attributes);
        tensor.info.cpu = make_view(DataType::float32, Layout::NHW, {steps, 1, classes});
    }
    return tensor;
}

TEST(CtcText, IsTheBestPathWithoutRepetitionsAndBlanks) {
    for (const Case& c : cases) {
        const auto known = dictionary();
        const size_t classes = known.size() + static_cast<size_t>(c.added);
        const int said = c.blank.value_or(0);
        const size_t blank = said < 0 ? classes - 1 : static_cast<size_t>(said);
        std::map<size_t, std::string> names;
        size_t next = c.added == 0 ? 1 : 0;  // the dictionary's own blank
        for (size_t i = 0; i < classes; ++i) {
            if (i == blank) continue;
            names[i] = next < known.size() ? known[next] : " ";
            ++next;
        }
        for (unsigned seed = 1; seed <= 5; ++seed) {
            const RefTensor t = random_steps(classes, seed, blank);
            const Line want = reference(t, names);
            ASSERT_GT(want.text.size(), 3u);
            const Decoded found = decode_tensors({stored(c, t)}, info_of(c), width, height,
                                                 {.decoder = "ctc-text", .score_threshold = 0});
            EXPECT_EQ(found.text, want.text) << c.why << ", seed " << seed;
            EXPECT_NEAR(found.text_score, want.score, 1e-5) << c.why;
            EXPECT_TRUE(found.detections.empty() && found.classes.empty());
        }
    }
}

TEST(CtcText, IsTheSameFromTheNpusView) {
    const size_t classes = dictionary().size() + 1;
    RefTensor t = random_steps(classes, 9, 0);
    const StoredTensor hw = stored_hw(t, "out", DataType::bf16);
    const DecodeOptions options{.decoder = "ctc-text", .score_threshold = 0};
    const Decoded a = decode_tensors({hw}, info_of(cases[0]), width, height, options);
    const Decoded b =
        decode_tensors({stored_cpu(t, "out")}, info_of(cases[0]), width, height, options);
    EXPECT_FALSE(a.text.empty());
    EXPECT_EQ(a.text, b.text);
    EXPECT_EQ(a.text_score, b.text_score);
}

TEST(CtcText, BelowTheThresholdAndOfBlanksAloneIsNone) {
    const size_t classes = dictionary().size() + 1;
    const RefTensor t = random_steps(classes, 3, 0);
    const Decoded all = decode_tensors({stored(cases[0], t)}, info_of(cases[0]), width, height,
                                       {.decoder = "ctc-text", .score_threshold = 0});
    const auto with = [&](double threshold) {
        return decode_tensors({stored(cases[0], t)}, info_of(cases[0]), width, height,
                              {.decoder = "ctc-text", .score_threshold = threshold});
    };
    EXPECT_EQ(with(double{all.text_score} - 1e-3).text, all.text);
    EXPECT_EQ(with(double{all.text_score} + 1e-3).text, "");
    EXPECT_EQ(with(double{all.text_score} + 1e-3).text_score, 0);
    RefTensor blanks{std::vector<float>(steps * classes, 0.f), steps, classes, false};
    for (size_t step = 0; step < steps; ++step) blanks.data[step * classes] = 1;
    EXPECT_EQ(decode_tensors({stored(cases[0], blanks)}, info_of(cases[0]), width, height,
                             {.decoder = "ctc-text", .score_threshold = 0})
                  .text,
              "");
}

TEST(CtcText, CountsStepsThatAreNotFinite) {
    const size_t classes = dictionary().size() + 1;
    RefTensor t = random_steps(classes, 3, 0);
    t.data[5 * classes + 2] = std::numeric_limits<float>::quiet_NaN();
    const Decoded found = decode_tensors({stored(cases[0], t)}, info_of(cases[0]), width, height,
                                         {.decoder = "ctc-text", .score_threshold = 0});
    EXPECT_EQ(found.not_finite, 1u);
    EXPECT_TRUE(std::isfinite(found.text_score));
}

// As PP-OCR's recognisers of English give a line: 97 classes (blank, 95 characters, a space behind
// them), a character on two or three steps, blanks between, and never quite certain.
TEST(CtcText, ReadsALineAsARecogniserGivesIt) {
    ModelInfo info;
    for (char c = '!'; c <= '~'; ++c) info.labels.emplace_back(1, c);
    info.labels.emplace_back("°");
    const size_t classes = info.labels.size() + 2, space = classes - 1;
    const std::string line = "Oooh!  20:24";
    const auto class_of = [&](char c) {
        return c == ' ' ? space : static_cast<size_t>(c - '!') + 1;
    };
    std::vector<std::pair<size_t, double>> path;  // class and probability of each step
    Random random(7);
    for (const char c : line) {
        path.emplace_back(class_of(c), random.between(0.55, 0.8));  // its edge
        path.emplace_back(class_of(c), random.between(0.8, 0.99));
        path.emplace_back(0, random.between(0.6, 0.999));
    }
    while (path.size() < steps) path.emplace_back(0, 0.999);  // right of the line
    RefTensor t{{}, path.size(), classes, false};
    double sum = 0;
    for (size_t step = 0; step < path.size(); ++step) {
        const auto& [winner, score] = path[step];
        // What it is mistaken for gets most of the rest.
        for (size_t c = 0; c < classes; ++c)
            t.data.push_back(static_cast<float>(c == winner ? score
                                                : c == winner % (classes - 1) + 1
                                                    ? (1 - score) * 0.7
                                                    : (1 - score) * 0.3 / double(classes - 2)));
        if (winner != 0 && step % 3 == 0) sum += score;
    }
    for (const char* end : {"softmax", "linear"}) {
        RefTensor given = t;
        if (std::string_view(end) == "linear")
            for (float& value : given.data) value = 2 + std::log(value);
        info.outputs = {{.name = "out", .id = "", .role = "", .ends_in = end}};
        const Decoded found = decode_tensors({stored_cpu(given, "out")}, info, 320, 48, {});
        EXPECT_EQ(found.text, line) << end;
        EXPECT_NEAR(found.text_score, sum / double(line.size()), 1e-4) << end;
        EXPECT_TRUE(found.detections.empty() && found.classes.empty());
    }
}

// What says that scores along a wide picture are characters is what the graph ends in.
TEST(CtcText, IsChosenByShapesWhereTheGraphEndsInScores) {
    const size_t classes = dictionary().size() + 1;
    const StoredTensor tensor = stored(cases[0], random_steps(classes, 1, 0));
    const auto family = [&](std::string_view end, uint32_t w, uint32_t h) {
        ModelInfo info = info_of(cases[0]);
        info.outputs.push_back({.name = "out", .id = "", .role = "", .ends_in = std::string(end)});
        const auto decoder = Decoder::create(info, {&tensor.info, 1}, w, h, {});
        return decoder ? std::string(decoder->family()) : "";
    };
    for (const char* end : {"softmax", "log-softmax", "product", "linear"})
        EXPECT_EQ(family(end, width, height), "ctc-text") << end;
    EXPECT_NE(family("", width, height), "ctc-text");
    EXPECT_NE(family("softmax", 320, 320), "ctc-text");
}

// As many steps as a text has characters, whatever the width, are those of an attention.
TEST(CtcText, IsNoDecoderOfModelsWithAttention) {
    const auto family = [](uint32_t count, uint32_t w, uint32_t h) {
        TensorInfo output;
        output.name = "out";
        output.cpu = make_view(DataType::float32, Layout::NHW, {1, count, 95});
        ModelInfo info;
        info.labels.assign(94, "x");
        info.outputs.push_back({.name = "out", .id = "", .role = "", .ends_in = "linear"});
        const auto decoder = Decoder::create(info, {&output, 1}, w, h, {});
        return decoder ? std::string(decoder->family()) : "";
    };
    EXPECT_EQ(family(26, 128, 32), "");          // PARSeq
    EXPECT_EQ(family(26, 100, 32), "ctc-text");  // CRNN
    EXPECT_EQ(family(18, 94, 24), "ctc-text");   // LPRNet
    EXPECT_EQ(family(48, 200, 31), "ctc-text");  // keras-ocr
}

TEST(CtcText, IsRefusedWithoutItsDictionary) {
    const size_t classes = dictionary().size() + 5;
    const StoredTensor tensor = stored(cases[0], random_steps(classes, 1, 0));
    const auto message = [&](const ModelInfo& info) {
        DecodeFault fault;
        const auto decoder = Decoder::create(info, {&tensor.info, 1}, width, height,
                                             {.decoder = "ctc-text"}, &fault);
        EXPECT_FALSE(decoder);
        EXPECT_EQ(fault.id, "dec-classes");
        return decoder ? std::string() : decoder.error().message;
    };
    EXPECT_NE(message({}).find("label-file"), std::string::npos) << message({});
    const std::string other = message(info_of(cases[0]));
    for (const char* part : {"34 characters", "29 lines", "33 lines", "32 (without"})
        EXPECT_NE(other.find(part), std::string::npos) << other;
    ModelInfo beyond = info_of(cases[0]);
    beyond.blank = 34;
    EXPECT_NE(message(beyond).find("x-vartml-blank=34"), std::string::npos) << message(beyond);
}

}  // namespace
