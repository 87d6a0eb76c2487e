// SPDX-License-Identifier: Apache-2.0
// Files and folders that this process made for a while, so that a program can take them away when
// a signal ends it. Thread-safe; not for signal handlers.
#pragma once
#include <mutex>
#include <string>

namespace vartml {

// Held while one is made: nothing is taken away meanwhile.
class MakingTemporary {
public:
    MakingTemporary();
    // From now on `path` is ours to remove. Where there is no memory to remember it, it is not.
    void made(const std::string& path) noexcept;

private:
    std::unique_lock<std::mutex> lock_;
};

// It is gone, or was put in place.
void forget_temporary(const std::string& path) noexcept;

// Removes all that are remembered, whatever other threads do with them: what one of them has put
// in place meanwhile stays whole, and what is taken away here can no longer be put in place. None
// is made while the caller keeps what is returned.
[[nodiscard]] std::unique_lock<std::mutex> remove_temporaries() noexcept;

}  // namespace vartml
