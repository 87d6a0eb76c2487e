// SPDX-License-Identifier: Apache-2.0
#include "lib/doctor/way_out.h"

#include <algorithm>
#include <string_view>

namespace vartml::doctor {

std::string way_out(const std::string& sentence, const std::string& model) {
    const std::string_view line = std::string_view(sentence).substr(0, sentence.find('\n'));
    // "…; give --input-shape images:1,3,<H>,<W> to vartml compile"
    if (const size_t option = line.find("--"); option != line.npos) {
        std::string_view words = line.substr(option);
        for (const std::string_view end : {" to vartml compile", "; ", ", "})
            words = words.substr(0, words.find(end));
        if (words.find(' ') != words.npos)
            return "vartml compile " + model + ' ' + std::string(words);
    }
    const size_t last = line.rfind("; ");
    if (last != line.npos) return std::string(line.substr(last + 2));
    return "ls -l " + model;
}

}  // namespace vartml::doctor
