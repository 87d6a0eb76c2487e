// SPDX-License-Identifier: Apache-2.0
// Words and digits as bitmaps, made once each: a score that changes with every frame costs nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vartml::gst::overlay {

// Thread-safety: one thread at a time.
class Text {
public:
    // A word, or a single digit or sign.
    struct Piece {
        int width = 0, height = 0;
        std::vector<uint8_t> coverage;  // rows dense
        uint64_t last_use = 0;
    };

    Text();
    ~Text();
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;

    // Pixels per em. Another size forgets all bitmaps; the first text makes those of the digits.
    void set_size(int pixels);
    int line_height();
    int width(std::string_view text);

    // Calls `place(x, piece)` for the pieces of one line of UTF-8, from left to right from x = 0.
    template <typename Place>
    void lay_out(std::string_view text, Place&& place);

    // Forgets bitmaps that were long not used, when there are many.
    void end_frame();
    // Bitmaps made since the object was.
    uint64_t made() const { return made_; }

private:
    struct Font;
    struct Equal : std::equal_to<> {
        using is_transparent = void;
    };
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };

    // The length of the first piece of the text.
    static size_t piece_size(std::string_view text);
    const Piece& piece(std::string_view text);
    void make_digits();

    std::unique_ptr<Font> font_;
    int size_ = 0, line_height_ = 0;  // height 0: there are no digits of this size yet
    uint64_t frame_ = 0, made_ = 0;
    std::unordered_map<std::string, Piece, Hash, Equal> pieces_;
};

template <typename Place>
void Text::lay_out(std::string_view text, Place&& place) {
    int x = 0;
    while (!text.empty()) {
        const size_t size = piece_size(text);
        const Piece& p = piece(text.substr(0, size));
        place(x, p);
        x += p.width;
        text.remove_prefix(size);
    }
}

}  // namespace vartml::gst::overlay
