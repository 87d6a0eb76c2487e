// SPDX-License-Identifier: Apache-2.0
// An address as a QR code, for a terminal and for a page.
#pragma once
#include <string>

namespace live {

// Half blocks, two modules of a column in each, black on white with the quiet zone, by the escape
// sequences of terminals; "" where the text is too long for a code.
std::string qr_text(const std::string& text);
// A square <svg> of one black path on white, with the quiet zone; "" as above.
std::string qr_svg(const std::string& text);

}  // namespace live
