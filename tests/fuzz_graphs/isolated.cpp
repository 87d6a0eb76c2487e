// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz_graphs/isolated.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace vartml::fuzz_graphs {

Isolated run_isolated(const std::function<void(const Tell&)>& work, unsigned seconds) {
    Isolated result;
    int ends[2];
    std::fflush(nullptr);
    if (::pipe(ends) != 0) return {{}, "has no pipe"};
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        ::alarm(seconds);
        work([&](std::string line) {
            std::ranges::replace(line, '\n', ' ');
            line += '\n';
            if (::write(ends[1], line.data(), line.size()) < 0) ::_exit(2);
        });
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string text;
    char block[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], block, sizeof block)) > 0;)
        text.append(block, static_cast<size_t>(n));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
        result.lines.push_back(text.substr(at, end - at));
    if (WIFSIGNALED(status))
        result.end = WTERMSIG(status) == SIGALRM
                         ? "hangs"
                         : "crashes (signal " + std::to_string(WTERMSIG(status)) + ")";
    else if (WEXITSTATUS(status) != 0)
        result.end = "ends with status " + std::to_string(WEXITSTATUS(status));
    return result;
}

}  // namespace vartml::fuzz_graphs
