// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/pictures.h"

#include <gdk-pixbuf/gdk-pixbuf.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "lib/base/text.h"

namespace vartml::tools {
namespace {

struct Unref {
    void operator()(GdkPixbuf* pixbuf) const { g_object_unref(pixbuf); }
};

}  // namespace

bool is_picture_file(std::string_view path) {
    constexpr std::string_view endings[] = {".jpeg", ".jpg", ".png", ".JPG", ".JPEG", ".PNG"};
    return std::ranges::any_of(endings, [&](auto ending) { return path.ends_with(ending); });
}

Result<LoadedPicture> load_picture(const std::string& path) {
    // A small file may say that it is of any size, and is unpacked before it says otherwise.
    constexpr int64_t most_pixels = int64_t{1} << 28;
    int width = 0, height = 0;
    if (gdk_pixbuf_get_file_info(path.c_str(), &width, &height) &&
        int64_t{width} * height > most_pixels)
        return Error{ErrorCode::invalid_argument,
                     path + ": is a picture of " + std::to_string(width) + "x" +
                         std::to_string(height) + " pixels, expected at most " +
                         with_commas(most_pixels) + "; make it smaller"};
    GError* error = nullptr;
    std::unique_ptr<GdkPixbuf, Unref> pixbuf(gdk_pixbuf_new_from_file(path.c_str(), &error));
    if (!pixbuf) {
        const std::string reason = error ? error->message : "unknown reason";
        g_clear_error(&error);
        return Error{ErrorCode::invalid_argument,
                     path + ": is no picture that can be read: " + reason};
    }
    pixbuf.reset(gdk_pixbuf_apply_embedded_orientation(pixbuf.get()));
    LoadedPicture picture;
    picture.width = static_cast<uint32_t>(gdk_pixbuf_get_width(pixbuf.get()));
    picture.height = static_cast<uint32_t>(gdk_pixbuf_get_height(pixbuf.get()));
    const auto channels = static_cast<size_t>(gdk_pixbuf_get_n_channels(pixbuf.get()));
    const auto stride = static_cast<size_t>(gdk_pixbuf_get_rowstride(pixbuf.get()));
    const guint8* pixels = gdk_pixbuf_read_pixels(pixbuf.get());
    picture.rgb.resize(size_t{3} * picture.width * picture.height);
    uint8_t* to = picture.rgb.data();
    for (size_t y = 0; y < picture.height; ++y)
        for (size_t x = 0; x < picture.width; ++x, to += 3)
            std::memcpy(to, pixels + y * stride + x * channels, 3);
    return picture;
}

}  // namespace vartml::tools
