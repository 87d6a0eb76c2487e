// SPDX-License-Identifier: Apache-2.0
// The side cache: packed weights of one program for this processor and library, in a file that all
// processes map.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/run/exec/device.h"

namespace vartml::softnpu {

// What a file holds, in order: sizes, and checksums of what decides the layout.
struct WeightPiece {
    uint64_t size_bytes;
    uint32_t layout;
    bool operator==(const WeightPiece&) const = default;
};
using WeightTable = std::vector<WeightPiece>;

// A mapped file; the pieces start at cache lines.
struct StoredWeights {
    std::vector<const std::byte*> pieces;
    std::shared_ptr<const void> owner;
};

// Thread-safety: all members may be called concurrently, in several processes too.
class WeightCache {
public:
    // What the packed weights of a program depend on; nullopt where that cannot be told: a program
    // that came from no file, a library without a build id.
    struct Key {
        std::string program;  // which weights: 32 hex digits
        std::string build;    // for which processor, library and options: 32 hex digits
    };
    // `uses_onednn`: oneDNN runs steps of it, and packs weights for them.
    static std::optional<Key> key(const device::Program& program, DataType compute,
                                  unsigned threads, bool uses_onednn);

    // `note` gets one line for the log where a file cannot be written.
    WeightCache(std::string folder, Key key, std::function<void(const std::string&)> note);

    // The file, if it is whole and holds exactly this.
    std::optional<StoredWeights> open(const WeightTable& table) const;
    // Writes the file and opens it. Removes files that are of no more use: of the same program for
    // other libraries, processors or options where no load has used them for two days, of other
    // programs for a month, and the oldest beyond 256 files or 1 GiB.
    std::optional<StoredWeights> build(const WeightTable& table,
                                       std::span<const std::span<const std::byte>> pieces) const;

    const std::string& path() const { return path_; }

private:
    void remove_old_files() const;

    const std::string folder_;
    const Key key_;
    const std::string path_;
    const std::function<void(const std::string&)> note_;
};

}  // namespace vartml::softnpu
