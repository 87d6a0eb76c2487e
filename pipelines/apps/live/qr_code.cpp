// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/qr_code.h"

#include <qrencode.h>

#include <memory>

namespace live {
namespace {

constexpr int quiet = 4;  // modules around it; the standard wants so many

struct QrFree {
    void operator()(QRcode* code) const { QRcode_free(code); }
};
using Code = std::unique_ptr<QRcode, QrFree>;

Code encode(const std::string& text) {
    return Code(QRcode_encodeString8bit(text.c_str(), 0, QR_ECLEVEL_M));
}

// Whether the module is black; around the code all are white.
bool is_black(const QRcode& code, int x, int y) {
    const bool inside = x >= 0 && y >= 0 && x < code.width && y < code.width;
    return inside && (code.data[y * code.width + x] & 1);
}

}  // namespace

std::string qr_text(const std::string& text) {
    const Code code = encode(text);
    if (!code) return {};
    std::string out;
    for (int y = -quiet; y < code->width + quiet; y += 2) {
        out += "\033[30;107m";  // black on white, whatever the terminal's colours are
        for (int x = -quiet; x < code->width + quiet; ++x) {
            const bool above = is_black(*code, x, y), below = is_black(*code, x, y + 1);
            out += above && below ? "█" : above ? "▀" : below ? "▄" : " ";
        }
        out += "\033[0m\n";
    }
    return out;
}

std::string qr_svg(const std::string& text) {
    const Code code = encode(text);
    if (!code) return {};
    const std::string side = std::to_string(code->width + 2 * quiet);
    std::string path;
    for (int y = 0; y < code->width; ++y)
        for (int x = 0; x < code->width; ++x)
            if (is_black(*code, x, y))
                path +=
                    "M" + std::to_string(x + quiet) + " " + std::to_string(y + quiet) + "h1v1h-1z";
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + side + " " + side +
           "\" shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0 0h" + side + "v" + side +
           "H0z\"/><path d=\"" + path + "\"/></svg>\n";
}

}  // namespace live
