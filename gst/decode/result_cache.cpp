// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/result_cache.h"

namespace vartml::gst {

const vartml::Decoded* ResultCache::find(const ResultKey& key) const {
    for (const Slot& slot : slots_) {
        if (key.result_id != 0 && slot.key == key) return &slot.decoded;
    }
    return nullptr;
}

vartml::Decoded& ResultCache::next() {
    Slot& slot = slots_[next_ % slots_.size()];
    slot.key = {};
    return slot.decoded;
}

void ResultCache::clear() {
    for (Slot& slot : slots_) slot.key = {};
}

}  // namespace vartml::gst
