// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/pictures.h"

#include <gdk-pixbuf/gdk-pixbuf.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/temp_dir.h"

namespace vartml::tools {
namespace {

// 16 wide, 8 high: the left half is white, the right black.
std::string jpeg() {
    GdkPixbuf* const pixbuf = gdk_pixbuf_new(GDK_COLORSPACE_RGB, FALSE, 8, 16, 8);
    gdk_pixbuf_fill(pixbuf, 0x000000ff);
    GdkPixbuf* const left = gdk_pixbuf_new_subpixbuf(pixbuf, 0, 0, 8, 8);
    gdk_pixbuf_fill(left, 0xffffffff);
    gchar* bytes = nullptr;
    gsize size = 0;
    EXPECT_TRUE(gdk_pixbuf_save_to_buffer(pixbuf, &bytes, &size, "jpeg", nullptr, nullptr));
    std::string text(bytes, size);
    g_free(bytes);
    g_object_unref(left);
    g_object_unref(pixbuf);
    return text;
}

// The field Orientation of EXIF, in the first segment of the file.
std::string with_orientation(const std::string& jpeg, char orientation) {
    std::string segment("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 24);
    segment += orientation;
    segment.append(7, '\0');
    const char length = static_cast<char>(segment.size() + 2);
    return jpeg.substr(0, 2) + "\xff\xe1" + std::string(1, '\0') + length + segment +
           jpeg.substr(2);
}

TEST(Pictures, AreUprightAsTheCameraWasHeld) {
    const test::TempDir folder;
    const struct {
        char orientation;
        uint32_t width, height, x, y;  // where it is white
    } rows[] = {{1, 16, 8, 2, 4}, {3, 16, 8, 13, 4}, {6, 8, 16, 4, 2}, {8, 8, 16, 4, 13}};
    for (const auto& row : rows) {
        test::spill(folder / "a.jpg", with_orientation(jpeg(), row.orientation));
        const auto picture = load_picture(folder / "a.jpg");
        ASSERT_TRUE(picture) << picture.error().message;
        ASSERT_EQ(picture->width, row.width) << int{row.orientation};
        ASSERT_EQ(picture->height, row.height) << int{row.orientation};
        const auto at = [&](uint32_t x, uint32_t y) {
            return int{picture->rgb[3 * (y * picture->width + x)]};
        };
        EXPECT_GT(at(row.x, row.y), 200) << int{row.orientation};
        EXPECT_LT(at(picture->width - 1 - row.x, picture->height - 1 - row.y), 50)
            << int{row.orientation};
    }
}

}  // namespace
}  // namespace vartml::tools
