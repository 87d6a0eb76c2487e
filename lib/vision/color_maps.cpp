// SPDX-License-Identifier: Apache-2.0
// Colours for a measure: 18 points of each published map, with cubic curves (Catmull-Rom) between
// them, at most 3 of 255 from its table of 256.
// given: van der Walt and Smith, "inferno" and "viridis" of matplotlib; Mikhailov, "turbo".
#include <vartml/output_picture.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace vartml {

namespace {

constexpr size_t points = 18, steps_per_point = 15;
static_assert((points - 1) * steps_per_point == 255);

// Red, green and blue as 0xrrggbb, in the order of ColorMap without gray.
constexpr uint32_t tables[][points] = {
    {0x30123b, 0x3f3e9c, 0x4666dd, 0x458cfd, 0x2fb2f4, 0x1ad4d0, 0x22ebaa, 0x52fa7a, 0x8bff4b,
     0xb7f735, 0xdbe236, 0xf5c53a, 0xfea130, 0xf9751d, 0xe84b0c, 0xce2d04, 0xa91601, 0x7a0403},
    {0x000004, 0x0a0722, 0x1e0c45, 0x380962, 0x510e6c, 0x69166e, 0x801f6c, 0x982766, 0xb0315b,
     0xc63d4d, 0xd94d3d, 0xe9612b, 0xf47918, 0xfa9407, 0xfcb014, 0xf8cd37, 0xf2ea69, 0xfcffa4},
    {0x440154, 0x481769, 0x472a7a, 0x433d84, 0x3d4e8a, 0x355e8d, 0x2e6d8e, 0x297b8e, 0x23898e,
     0x1f978b, 0x21a585, 0x2eb37c, 0x46c06f, 0x65cb5e, 0x89d548, 0xb0dd2f, 0xd8e219, 0xfde725},
};

using Colors = std::array<uint8_t, 768>;

Colors make_gray() {
    Colors colors;
    for (size_t i = 0; i < colors.size(); ++i) colors[i] = static_cast<uint8_t>(i / 3);
    return colors;
}

Colors make_colors(const uint32_t (&table)[points]) {
    Colors colors;
    for (size_t i = 0; i < 256; ++i) {
        const size_t k = std::min(i / steps_per_point, points - 2);
        const double t = double(i - k * steps_per_point) / steps_per_point;
        for (size_t c = 0; c < 3; ++c) {
            const auto at = [&](size_t point) {
                return double(table[point] >> (16 - 8 * c) & 0xff);
            };
            const double b = at(k), d = at(k + 1);
            const double a = k > 0 ? at(k - 1) : 2 * b - d;
            const double e = k + 2 < points ? at(k + 2) : 2 * d - b;
            const double value =
                b + t / 2 * (d - a + t * (2 * a - 5 * b + 4 * d - e + t * (3 * (b - d) + e - a)));
            colors[3 * i + c] = static_cast<uint8_t>(std::lround(std::clamp(value, 0., 255.)));
        }
    }
    return colors;
}

}  // namespace

std::span<const uint8_t, 768> colors_of(ColorMap map) {
    static const std::array<Colors, std::size(tables) + 1> all = {
        make_gray(), make_colors(tables[0]), make_colors(tables[1]), make_colors(tables[2])};
    return all[static_cast<size_t>(map)];
}

}  // namespace vartml
