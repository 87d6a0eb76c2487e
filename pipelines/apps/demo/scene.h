// SPDX-License-Identifier: Apache-2.0
// A moving scene with QR codes whose places are known: what the demo plays when it is given no
// video.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "pipelines/apps/demo/canvas.h"

namespace demo {

// A code in one frame: the bounding box of the symbol without its quiet zone.
struct KnownCode {
    Box box;
    // Wholly in the picture and not covered. Others are neither expected nor counted as false
    // alarms when found.
    bool counted = false;
};

struct Frame {
    Picture picture;
    std::vector<KnownCode> codes;
};

// Frames are a function of their number alone. Thread-safety: one thread at a time.
class Scene {
public:
    static constexpr int kWidth = 1280, kHeight = 720, kFramesPerSecond = 30;

    // `backdrop` replaces the drawn background where it is not empty.
    // Fails (internal) when libqrencode makes no code.
    static vartml::Result<Scene> create(Picture backdrop);

    // Renders frame `number` into `frame`, whose memory is reused.
    void render(unsigned number, Frame& frame) const;

    // Size that a backdrop must have: larger than a frame, because it moves.
    static constexpr int kBackdropWidth = kWidth * 5 / 4, kBackdropHeight = kHeight * 5 / 4;

private:
    // Something flat that flies through the picture.
    struct Body {
        Texture texture;
        double quiet = 0;         // quiet zone as a share of the side; of codes only
        Point centre{}, swing{};  // shares of the picture
        double speed_x = 0, speed_y = 0, phase = 0;
        double smallest = 0, largest = 0;  // pixels of the longer side
        double angle = 0, turn = 0, tilt = 0;

        Quad quad(double seconds) const;
    };

    explicit Scene(Picture backdrop) : backdrop_(std::move(backdrop)) {}

    Picture backdrop_;
    std::vector<Body> decoys_, codes_;
};

}  // namespace demo
