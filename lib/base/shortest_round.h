// SPDX-License-Identifier: Apache-2.0
// How long several threads need for a task that they begin together.
#pragma once
#include <algorithm>
#include <barrier>
#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

namespace vartml {

// The shortest of `rounds` rounds, after one that warms up, in the unit of `now()`. In each round
// thread t of `threads` calls work(t); before the first one it calls prepare(t). The clock is read
// before any of them may begin and when all have ended: however late this thread is, a round is
// never shorter than its work.
template <typename Prepare, typename Work, typename Now>
double shortest_round(unsigned threads, unsigned rounds, Prepare prepare, Work work, Now now) {
    std::barrier gate(static_cast<std::ptrdiff_t>(threads) + 1);
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
            prepare(t);
            for (unsigned i = 0; i <= rounds; ++i) {
                gate.arrive_and_wait();
                work(t);
                gate.arrive_and_wait();
            }
        });
    double best = std::numeric_limits<double>::max();
    for (unsigned i = 0; i <= rounds; ++i) {
        const double start = now();
        gate.arrive_and_wait();
        gate.arrive_and_wait();
        if (i > 0) best = std::min(best, now() - start);
    }
    for (std::thread& worker : workers) worker.join();
    return best;
}

}  // namespace vartml
