// SPDX-License-Identifier: Apache-2.0
// Pictures from PNG and JPEG files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::tools {

// Rows of RGB bytes, width * 3 to a row.
struct LoadedPicture {
    uint32_t width = 0, height = 0;
    std::vector<uint8_t> rgb;
};

// Whether the name ends like a picture's.
bool is_picture_file(std::string_view path);
// Upright: turned as its EXIF data say that the camera was held, which `vartml detect` does, too.
// Errors: invalid_argument with the reason of the loader.
Result<LoadedPicture> load_picture(const std::string& path);

}  // namespace vartml::tools
