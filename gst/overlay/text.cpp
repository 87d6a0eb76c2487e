// SPDX-License-Identifier: Apache-2.0
#include "gst/overlay/text.h"

#include <pango/pangocairo.h>

#include <algorithm>
#include <cstring>
#include <mutex>

namespace vartml::gst::overlay {
namespace {

// ours: a scene of several hundred labels fits
constexpr size_t most_pieces = 1024;
constexpr uint64_t old_frames = 300;

constexpr std::string_view alone = "0123456789.,#%: ";

// All threads of a process share the fonts of Pango, fontconfig and cairo, which are not made by
// several at once: cairo 1.18 puts a face among the others before it is complete.
std::mutex& fonts() {
    static auto* const mutex = new std::mutex;  // a leaf lock
    return *mutex;
}

template <typename T>
using Object = std::unique_ptr<T, decltype(&g_object_unref)>;

}  // namespace

// A font map of its own: that of Pango's belongs to the thread and is never given back. All under
// fonts().
struct Text::Font {
    Object<PangoFontMap> map{pango_cairo_font_map_new(), g_object_unref};
    Object<PangoContext> context{pango_font_map_create_context(map.get()), g_object_unref};

    Font() {
        // Metrics in whole pixels, so that digits stand side by side as in one word.
        cairo_font_options_t* options = cairo_font_options_create();
        cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
        cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_ON);
        pango_cairo_context_set_font_options(context.get(), options);
        cairo_font_options_destroy(options);
    }
    void set_size(int pixels) {
        PangoFontDescription* font = pango_font_description_from_string("Sans Bold");
        pango_font_description_set_absolute_size(font, pixels * double(PANGO_SCALE));
        pango_context_set_font_description(context.get(), font);
        pango_font_description_free(font);
    }
    Piece draw(std::string_view text) const;
};

Text::Piece Text::Font::draw(std::string_view text) const {
    const Object<PangoLayout> layout(pango_layout_new(context.get()), g_object_unref);
    gchar* const valid = g_utf8_make_valid(text.data(), static_cast<gssize>(text.size()));
    pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
    pango_layout_set_text(layout.get(), valid, -1);
    g_free(valid);
    PangoRectangle logical;
    pango_layout_get_pixel_extents(layout.get(), nullptr, &logical);

    Piece piece;
    piece.width = std::max(logical.width, 1);
    piece.height = std::max(logical.height, 1);
    cairo_surface_t* surface =
        cairo_image_surface_create(CAIRO_FORMAT_A8, piece.width, piece.height);
    cairo_t* cairo = cairo_create(surface);
    cairo_move_to(cairo, -logical.x, -logical.y);
    pango_cairo_show_layout(cairo, layout.get());
    cairo_destroy(cairo);
    cairo_surface_flush(surface);
    const auto width = static_cast<size_t>(piece.width);
    piece.coverage.resize(width * static_cast<size_t>(piece.height));
    const uint8_t* const pixels = cairo_image_surface_get_data(surface);
    const int stride = cairo_image_surface_get_stride(surface);
    for (int y = 0; pixels && y < piece.height; ++y) {
        std::memcpy(piece.coverage.data() + static_cast<size_t>(y) * width,
                    pixels + static_cast<ptrdiff_t>(y) * stride, width);
    }
    cairo_surface_destroy(surface);
    return piece;
}

Text::Text() = default;

Text::~Text() {
    const std::lock_guard lock(fonts());
    font_.reset();
}

void Text::set_size(int pixels) {
    if (pixels == size_) return;
    size_ = pixels;
    pieces_.clear();
    line_height_ = 0;
}

int Text::line_height() {
    if (line_height_ == 0) make_digits();
    return line_height_;
}

void Text::make_digits() {
    {
        const std::lock_guard lock(fonts());
        if (!font_) font_ = std::make_unique<Font>();
        font_->set_size(size_);
    }
    line_height_ = 1;
    for (size_t i = 0; i < alone.size(); ++i) {
        line_height_ = std::max(line_height_, piece(alone.substr(i, 1)).height);
    }
}

size_t Text::piece_size(std::string_view text) {
    const size_t end = text.find_first_of(alone);
    return end == 0 ? 1 : std::min(end, text.size());
}

const Text::Piece& Text::piece(std::string_view text) {
    if (line_height_ == 0) make_digits();
    auto found = pieces_.find(text);
    if (found == pieces_.end()) {
        ++made_;
        const std::lock_guard lock(fonts());
        found = pieces_.emplace(std::string(text), font_->draw(text)).first;
    }
    found->second.last_use = frame_;
    return found->second;
}

int Text::width(std::string_view text) {
    int width = 0;
    lay_out(text, [&](int x, const Piece& p) { width = x + p.width; });
    return width;
}

void Text::end_frame() {
    ++frame_;
    if (pieces_.size() <= most_pieces || frame_ % old_frames) return;
    std::erase_if(
        pieces_, [this](const auto& entry) { return entry.second.last_use + old_frames < frame_; });
}

}  // namespace vartml::gst::overlay
