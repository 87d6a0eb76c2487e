// SPDX-License-Identifier: Apache-2.0
// The table of decoder families: what a family is called, assumes, looks like and is made by.
#pragma once
#include <vartml/postprocess.h>

namespace vartml::vision {

// A family as the library sees it; users see `row`.
struct Family {
    DecoderFamily row;
    bool has_nms = true;  // false: the model did it
};

std::span<const Family> families();
const Family* find_family(std::string_view nick);

}  // namespace vartml::vision
