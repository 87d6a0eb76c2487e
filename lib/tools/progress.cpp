// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "lib/base/text.h"

namespace vartml::tools {
namespace {

constexpr int bar_width = 20;
// ours: columns that fit into every terminal, so that the line is not wrapped
constexpr size_t most_columns = 36;

}  // namespace

Progress::Progress(std::string what)
    : what_(printable(what, most_columns)), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
    clear();
}

void Progress::clear() {
    if (std::exchange(is_shown_, false)) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(int percent, std::string_view stage) {
    if (!is_terminal_) return;
    is_shown_ = true;
    percent = std::clamp(percent, 0, 100);
    std::string bar(static_cast<size_t>(percent * bar_width / 100), '#');
    bar.resize(bar_width, ' ');
    std::fprintf(stderr, "\r%s  [%s] %d %% %.*s\x1b[K", what_.c_str(), bar.c_str(), percent,
                 static_cast<int>(std::min<size_t>(stage.size(), 12)), stage.data());
    std::fflush(stderr);
}

void Progress::show(size_t done, size_t all) {
    show(all ? static_cast<int>(100 * done / all) : 100,
         std::to_string(done) + " of " + std::to_string(all));
}

}  // namespace vartml::tools
