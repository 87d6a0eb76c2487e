// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/scene.h"

#include <qrencode.h>

#include <memory>
#include <numbers>
#include <random>
#include <utility>

namespace demo {
namespace {

using Random = std::mt19937;

// std distributions differ between libraries; the scene must not.
double uniform(Random& random, double low, double high) {
    return low + (high - low) * (random() / 4294967296.0);
}
int below(Random& random, int count) {
    return static_cast<int>(uniform(random, 0, count));
}
Colour any_colour(Random& random, int low, int high) {
    auto part = [&] { return static_cast<uint8_t>(low + below(random, high - low)); };
    return {part(), part(), part()};
}

// ---- textures -----------------------------------------------------------------------------------

struct Symbol {
    Picture picture;
    double quiet;
};

vartml::Result<Symbol> qr_symbol(const char* text, QRecLevel level, Colour dark, Colour light) {
    std::unique_ptr<QRcode, decltype(&QRcode_free)> code(QRcode_encodeString8bit(text, 0, level),
                                                         &QRcode_free);
    if (!code) {
        return vartml::Error{vartml::ErrorCode::internal,
                             std::string("libqrencode makes no code of '") + text + "'"};
    }
    constexpr int kPitch = 12, kQuiet = 4;  // pixels and modules; 4 is what the standard wants
    const int side = code->width + 2 * kQuiet;
    Picture picture(side * kPitch, side * kPitch, light);
    for (int y = 0; y < code->width; ++y) {
        for (int x = 0; x < code->width; ++x) {
            if ((code->data[y * code->width + x] & 1) == 0) continue;
            const int px = (x + kQuiet) * kPitch, py = (y + kQuiet) * kPitch;
            picture.fill(px, py, px + kPitch, py + kPitch, dark);
        }
    }
    return Symbol{std::move(picture), static_cast<double>(kQuiet) / side};
}

Picture checkerboard(Random& random) {
    const Colour a = any_colour(random, 0, 70), b = any_colour(random, 180, 256);
    Picture picture(256, 256, b);
    for (int y = 0; y < 8; ++y) {
        for (int x = y % 2; x < 8; x += 2) {
            picture.fill(x * 32, y * 32, x * 32 + 32, y * 32 + 32, a);
        }
    }
    return picture;
}

Picture bar_code(Random& random) {
    Picture picture(360, 200, any_colour(random, 215, 256));
    for (int x = 24; x < 330;) {
        const int bar = 3 * (1 + below(random, 4));
        picture.fill(x, 16, x + bar, 184, {20, 20, 24});
        x += bar + 3 * (1 + below(random, 4));
    }
    return picture;
}

// Lines of letters of an unknown script.
Picture page(Random& random) {
    Picture picture(320, 240, any_colour(random, 200, 256));
    const Colour ink = any_colour(random, 0, 80);
    for (int y = 14; y < 220; y += 26) {
        for (int x = 14; x < 295; x += 14) {
            if (below(random, 6) == 0) continue;
            for (int bit = 0; bit < 15; ++bit) {
                if (below(random, 2) == 0) continue;
                const int px = x + bit % 3 * 3, py = y + bit / 3 * 3;
                picture.fill(px, py, px + 3, py + 3, ink);
            }
        }
    }
    return picture;
}

// Smooth noise, one colour channel: random values on a grid, in between by cosine.
void add_cloud(Random& random, Picture& picture, int channel, int cell, double weight) {
    const int columns = picture.width / cell + 2, rows = picture.height / cell + 2;
    std::vector<double> grid(static_cast<size_t>(columns) * rows);
    for (double& value : grid) value = uniform(random, -weight, weight);
    auto ease = [](double t) { return (1 - std::cos(t * std::numbers::pi)) / 2; };
    for (int y = 0; y < picture.height; ++y) {
        const double v = ease(static_cast<double>(y % cell) / cell);
        for (int x = 0; x < picture.width; ++x) {
            const double u = ease(static_cast<double>(x % cell) / cell);
            const double* g = &grid[static_cast<size_t>(y / cell) * columns + x / cell];
            const double value = (g[0] * (1 - u) + g[1] * u) * (1 - v) +
                                 (g[columns] * (1 - u) + g[columns + 1] * u) * v;
            uint8_t& out = picture.at(x, y)[channel];
            out = static_cast<uint8_t>(std::clamp(out + value, 0.0, 255.0));
        }
    }
}

Picture drawn_backdrop() {
    Random random(11);
    Picture picture(Scene::kBackdropWidth, Scene::kBackdropHeight, {110, 118, 108});
    for (int channel = 0; channel < 3; ++channel) {
        add_cloud(random, picture, channel, 240, 60);
        add_cloud(random, picture, channel, 60, 28);
        add_cloud(random, picture, channel, 9, 16);
    }
    for (int i = 0; i < 60; ++i) {  // tiles, walls of windows, posts
        const int x = below(random, picture.width), y = below(random, picture.height);
        const Colour colour = any_colour(random, 30, 225);
        const int kind = below(random, 3);
        if (kind == 0) {
            picture.fill(x, y, x + 10 + below(random, 170), y + 10 + below(random, 120), colour);
        } else if (kind == 1) {
            picture.fill(x, y, x + 4 + below(random, 10), y + 60 + below(random, 300), colour);
        } else {
            const int step = 12 + below(random, 22), columns = 2 + below(random, 7);
            for (int k = 0; k < columns * (2 + columns / 2); ++k) {
                const int px = x + k % columns * step, py = y + k / columns * step;
                picture.fill(px, py, px + step * 2 / 3, py + step * 2 / 3, colour);
            }
        }
    }
    return picture;
}

bool covered(const Box& box, const Quad& by) {
    return intersection(box, bounds(by)).area() > 0.02 * box.area();
}

}  // namespace

Quad Scene::Body::quad(double seconds) const {
    const double t = seconds + phase;
    const Point middle{kWidth * (centre.x + swing.x * std::sin(speed_x * t)),
                       kHeight * (centre.y + swing.y * std::sin(speed_y * t + 1))};
    const double growth = 0.5 + 0.5 * std::sin(0.83 * t + 2 * phase);
    const double side = smallest * std::pow(largest / smallest, growth);
    const double aspect = static_cast<double>(texture.height()) / texture.width();
    const double spin = angle + turn * t, lean = tilt * std::sin(0.9 * t), axis = phase + 0.4 * t;
    const double ax = std::cos(axis), ay = std::sin(axis);
    constexpr Point kCorners[4] = {{-0.5, -0.5}, {0.5, -0.5}, {0.5, 0.5}, {-0.5, 0.5}};
    Quad quad;
    for (size_t i = 0; i < 4; ++i) {
        const double u = kCorners[i].x, v = kCorners[i].y * aspect;
        const Point p{u * std::cos(spin) - v * std::sin(spin),
                      u * std::sin(spin) + v * std::cos(spin)};
        const double along = p.x * ax + p.y * ay;  // turned about the line across `axis`
        const double near = 1 / (1 + 0.5 * along * std::sin(lean));
        const double less = along * (1 - std::cos(lean));
        quad[i] = {middle.x + side * (p.x - less * ax) * near,
                   middle.y + side * (p.y - less * ay) * near};
    }
    return quad;
}

vartml::Result<Scene> Scene::create(Picture backdrop) {
    Scene scene(backdrop.width > 0 ? std::move(backdrop) : drawn_backdrop());
    Random random(5);
    auto place = [&](Body& body, Point centre, double smallest, double largest) {
        body.centre = centre;
        body.swing = {uniform(random, 0.1, 0.22), uniform(random, 0.08, 0.22)};
        body.speed_x = uniform(random, 0.5, 1.1);
        body.speed_y = uniform(random, 0.5, 1.1);
        body.phase = uniform(random, 0, 9);
        body.smallest = smallest, body.largest = largest;
        body.angle = uniform(random, 0, 6.28);
        body.turn = uniform(random, -1.1, 1.1);
        body.tilt = uniform(random, 0.3, 0.75);
    };
    for (int i = 0; i < 7; ++i) {
        Picture picture = i % 3 == 0   ? checkerboard(random)
                          : i % 3 == 1 ? bar_code(random)
                                       : page(random);
        Body body{.texture = Texture(std::move(picture))};
        place(body, {uniform(random, 0.1, 0.9), uniform(random, 0.1, 0.9)}, 100, 260);
        scene.decoys_.push_back(std::move(body));
    }
    struct Row {
        const char* text;
        QRecLevel level;
        Colour dark, light;
        Point centre;
        double smallest, largest;
    };
    const Row rows[] = {
        {"gst-vartml", QR_ECLEVEL_M, {0, 0, 0}, {255, 255, 255}, {0.2, 0.28}, 110, 330},
        {"the same pipeline on an NPU and on a laptop",
         QR_ECLEVEL_M,
         {20, 24, 60},
         {238, 240, 246},
         {0.5, 0.3},
         120,
         300},
        {"ONNX in, boxes out", QR_ECLEVEL_H, {10, 40, 20}, {250, 246, 220}, {0.8, 0.3}, 110, 280},
        {"one command compiles a vision model, one element runs it on video, and no copy or "
         "fallback stays hidden",
         QR_ECLEVEL_L,
         {40, 12, 10},
         {244, 236, 230},
         {0.3, 0.72},
         140,
         340},
        {"0123456789", QR_ECLEVEL_Q, {0, 0, 0}, {206, 210, 214}, {0.72, 0.72}, 110, 360},
    };
    for (const Row& row : rows) {
        auto symbol = qr_symbol(row.text, row.level, row.dark, row.light);
        if (!symbol) return symbol.error();
        Body body{.texture = Texture(std::move(symbol->picture)), .quiet = symbol->quiet};
        place(body, row.centre, row.smallest, row.largest);
        scene.codes_.push_back(std::move(body));
    }
    return scene;
}

void Scene::render(unsigned number, Frame& frame) const {
    const double seconds = static_cast<double>(number) / kFramesPerSecond;
    if (frame.picture.width != kWidth) frame.picture = Picture(kWidth, kHeight);
    const double room_x = backdrop_.width - kWidth, room_y = backdrop_.height - kHeight;
    copy_window(backdrop_, static_cast<int>(room_x * (0.5 + 0.5 * std::sin(0.7 * seconds))),
                static_cast<int>(room_y * (0.5 + 0.5 * std::cos(0.5 * seconds))), frame.picture);
    for (const Body& decoy : decoys_) decoy.texture.draw(frame.picture, decoy.quad(seconds), 0.95);

    std::vector<Quad> cards;
    for (const Body& code : codes_) {
        cards.push_back(code.quad(seconds));
        const double gain = 0.85 + 0.15 * std::sin(0.6 * (seconds + code.phase));
        code.texture.draw(frame.picture, cards.back(), gain);
    }
    frame.codes.clear();
    for (size_t i = 0; i < codes_.size(); ++i) {
        const Homography map = unit_square_to(cards[i]);
        const double lo = codes_[i].quiet, hi = 1 - lo;
        const Box whole = bounds(Quad{map({lo, lo}), map({hi, lo}), map({hi, hi}), map({lo, hi})});
        const Box seen = intersection(whole, {0, 0, kWidth, kHeight});
        if (seen.area() <= 0) continue;
        bool counted = seen.area() > 0.98 * whole.area();
        for (size_t k = i + 1; k < codes_.size(); ++k) {
            counted = counted && !covered(seen, cards[k]);  // later codes lie in front
        }
        frame.codes.push_back({seen, counted});
    }
}

}  // namespace demo
