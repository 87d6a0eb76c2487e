// SPDX-License-Identifier: Apache-2.0
// Frames that are inferred in overlapping tiles, for objects that the model would not see in a
// whole frame: where tiles lie, and how what was found in them becomes one list.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>

namespace vartml {

struct TileGrid {
    unsigned columns = 1, rows = 1;
    double overlap = 0;  ///< of neighbours, as part of a tile's side: 0 to 0.9
    bool operator==(const TileGrid&) const = default;
};
/// "4x3": columns and rows, each at least 1, together 2 to 256. Errors: invalid_argument, naming
/// what was found and expected.
Result<TileGrid> parse_tile_grid(std::string_view text);

/// Whole pixels of a frame.
struct Tile {
    int x = 0, y = 0, width = 0, height = 0;
    bool operator==(const Tile&) const = default;
};
/// The tiles of a frame, row by row: of one size, and together all of it. Errors: invalid_argument
/// where a tile would have a side of less than 16 pixels.
Result<std::vector<Tile>> tiles_of(const TileGrid& grid, uint32_t frame_width,
                                   uint32_t frame_height);

/// Makes one list of the boxes of all tiles of a frame, each object once:
///   - a box that reaches a border of its tile inside the frame is a fragment, any other is whole;
///   - of whole boxes of several tiles that overlap, the best stays;
///   - a fragment of which half lies in a whole box of another tile goes;
///   - fragments on both sides of a seam become the box around them, of the better score, with the
///     better of each two keypoints and both masks;
///   - of what is left of the same object, the largest stays.
/// Boxes of one tile never suppress each other: its decoder has seen to that. The whole frame may
/// be one of the tiles. Thread-safety: none.
class TileJoiner {
public:
    /// A frame begins. `iou`: overlap above which whole boxes are the same object; `per_class`:
    /// boxes of several classes never are; `off`: all boxes of all tiles stay as they are.
    void begin(uint32_t frame_width, uint32_t frame_height, double iou, Nms nms);
    /// What was decoded of a tile, in frame pixels. Its boxes are clipped to the tile, but for
    /// turned ones. `model_pixel`: a pixel of the model's input in frame pixels, the precision of
    /// borders.
    void add(const Decoded& decoded, const Tile& tile, double model_pixel);
    /// The boxes of all, score descending, with their keypoints and masks. `joined` keeps its
    /// memory; what belongs to the whole picture is empty.
    void finish(Decoded& joined);

    TileJoiner();
    TileJoiner(TileJoiner&&) noexcept;
    TileJoiner& operator=(TileJoiner&&) noexcept;
    ~TileJoiner();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace vartml
