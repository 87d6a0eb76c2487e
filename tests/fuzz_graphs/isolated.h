// SPDX-License-Identifier: Apache-2.0
// Work in a process of its own: a crash or a hang is a result like others.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace vartml::fuzz_graphs {

struct Isolated {
    std::vector<std::string> lines;  // that the work told
    std::string end;                 // "" or "crashes (signal 11)", "hangs"
};
using Tell = std::function<void(std::string line)>;  // line breaks become spaces

// Runs `work` in a copy of this process, which must have no other thread.
Isolated run_isolated(const std::function<void(const Tell&)>& work, unsigned seconds);

}  // namespace vartml::fuzz_graphs
