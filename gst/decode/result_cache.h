// SPDX-License-Identifier: Apache-2.0
// What the last results were decoded to, for the frames that carry one again.
#pragma once
#include <gst/gst.h>

#include <array>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

namespace vartml::gst {

// A result, and where its boxes go.
struct ResultKey {
    guint64 result_id = 0;  // 0: one that never comes again
    vartml::Affine to_frame;
    unsigned width = 0, height = 0;
    bool operator==(const ResultKey&) const = default;
};

// Keeps its memory. Thread-safety: none.
class ResultCache {
public:
    // nullptr where it was not decoded, or too long ago.
    const vartml::Decoded* find(const ResultKey& key) const;
    // Where to decode it to, in the place of the oldest; keep() says that it worked.
    vartml::Decoded& next();
    void keep(const ResultKey& key) { slots_[next_++ % slots_.size()].key = key; }
    void clear();

private:
    struct Slot {
        ResultKey key;
        vartml::Decoded decoded;
    };
    std::array<Slot, 4> slots_;  // ours: elements that infer, one after another
    size_t next_ = 0;
};

}  // namespace vartml::gst
