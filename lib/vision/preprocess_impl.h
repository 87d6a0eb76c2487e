// SPDX-License-Identifier: Apache-2.0
// A prepared Preprocessor: what preprocess_create.cpp fills and preprocess.cpp runs.
//
// The output is done in tiles of columns, so that all scratch memory fits on the stack and stays in
// the first-level cache; within a tile, rows of the frame are converted once and kept while two
// output rows need them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <vartml/preprocess.h>

#include "kernels/layout/cast.h"
#include "kernels/preprocess/read_row.h"
#include "kernels/preprocess/resample.h"
#include "lib/vision/preprocess_plan.h"

namespace vartml {

constexpr uint32_t preprocess_tile_columns = 1024;  // of the frame
constexpr uint32_t preprocess_tile_pixels = 512;    // of the model

// Columns of the frame that make some columns of the model. Tiles of area resizing whose one pixel
// has more than preprocess_tile_columns under it have several parts.
struct PreprocessPart {
    uint32_t first = 0, count = 0;  // columns of the frame
    uint32_t spans = 0;             // area: index of the first span
};
struct PreprocessTile {
    uint32_t first = 0, count = 0;  // pixels of the model, from the left edge of the picture in it
    PreprocessPart part;
    uint32_t num_parts = 1, more_parts = 0;  // further parts lie in Plan::parts
    bool plain = false;  // neighbouring columns without weights: nothing to sample
};

struct PreprocessScratch {
    int16_t planes[2][3][preprocess_tile_columns + kernels::row_slack];
    int16_t dropped[preprocess_tile_columns + kernels::row_slack];
    int16_t quads[4 * (preprocess_tile_columns + kernels::row_slack)];
    int16_t sampled[4 * preprocess_tile_pixels];
    float values[4 * preprocess_tile_pixels];
    uint32_t typed[4 * preprocess_tile_pixels];  // quads of the tensor's type
};
struct PreprocessAreaScratch {
    float sums[4 * preprocess_tile_columns];
    float pixels[4 * preprocess_tile_pixels];
};

struct Preprocessor::Plan {
    PictureInfo picture;
    Interpolation interpolation = Interpolation::bilinear;
    Geometry geometry;

    // Reading.
    kernels::RowFormat format;
    unsigned num_planes = 1, chroma_rows_shift = 0;
    size_t colour_planes = 3;  // that read_row writes
    size_t copies = 1;         // values of a quad that are made of one plane

    // Resizing.
    std::vector<Tap> rows;
    AreaTaps area_rows;
    std::vector<PreprocessTile> tiles;
    std::vector<PreprocessPart> parts;  // beyond the first, see PreprocessTile
    std::vector<uint32_t> offsets;      // per model column, from the first column of its tile
    std::vector<int16_t> weights;       // per model column, four times
    std::vector<kernels::Span> spans;
    std::vector<float> span_weights;

    // Writing.
    DataType type = DataType::unknown;
    Layout layout = Layout::unknown;
    size_t word = 0, channels = 0, block = 0, padded_width = 0;
    uint32_t width = 0, height = 0;
    float mean[4] = {}, scale[4] = {};
    kernels::Cast cast;
    std::vector<std::byte> pad_quads;  // one row of pad colour in the tensor's type

    Result<void> set_picture(const PictureInfo& info, ChannelOrder order);
    Result<void> set_tensor(const TensorView& cpu, const TensorView& tensor);
    Result<void> set_values(const TensorView& tensor, const PreprocessOptions& options);
    void set_columns();
    void set_area_columns();

    void run_tile(const Picture& frame, std::byte* dst, const PreprocessTile& tile, uint32_t first,
                  uint32_t last) const;
    void run_area_tile(const Picture& frame, std::byte* dst, const PreprocessTile& tile,
                       uint32_t first, uint32_t last) const;
    void read(const Picture& frame, uint32_t y, const PreprocessPart& part, PreprocessScratch& s,
              size_t slot) const;
    void finish(const int16_t* quads, uint32_t x, uint32_t y, size_t count, std::byte* dst,
                PreprocessScratch& s) const;
    void clear_padding(std::byte* quads, size_t count) const;
    std::byte* dense_target(std::byte* dst, uint32_t x, uint32_t y) const;
    void place(const std::byte* quads, uint32_t x, uint32_t y, size_t count, std::byte* dst) const;
    void pad(std::byte* dst, uint32_t first, uint32_t last) const;
};

}  // namespace vartml
