// SPDX-License-Identifier: Apache-2.0
// Whether something moves in the pictures of a stream.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <vartml/preprocess.h>

namespace vartml {

/// Compares pictures with one that was kept, cell by cell of 16x16 pixels (at the right and lower
/// border up to 31): the mean of the samples
/// of every fourth row, luma of YUV and all colours of RGB. What moves slowly is seen as well,
/// since the kept picture does not follow it. Thread-safety: none.
class MotionDetector {
public:
    /// Pictures from here on; nothing is kept.
    void begin(const PictureInfo& picture);
    /// Whether a cell differs from the kept picture by more than `threshold` of 255, or none is
    /// kept. Allocates nothing.
    bool moved(const Picture& picture, unsigned threshold);
    /// The picture of the last moved() is kept.
    void keep();
    void forget() { kept_.clear(); }

private:
    // Samples `step` bytes apart, from byte `first` of a row; `weight` in quarters.
    struct Channel {
        unsigned plane = 0, first = 0, step = 1, weight = 4;
    };
    static std::span<const Channel> channels_of(PixelFormat format);
    void look(const Picture& picture);

    PictureInfo picture_;
    std::span<const Channel> channels_;
    unsigned columns_ = 0, rows_ = 0;
    std::vector<uint16_t> now_, kept_;  // means in sixteenths; the second is empty: none
    std::vector<uint32_t> sums_;        // of a row of cells
};

}  // namespace vartml
