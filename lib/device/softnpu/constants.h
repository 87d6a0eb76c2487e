// SPDX-License-Identifier: Apache-2.0
// Constants that are derived from those of the model at load: packed weights, weights of another
// type, scales. Each is made when somebody reads it, and not at all where the side cache has what
// the steps read.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "lib/device/softnpu/bytes.h"
#include "lib/device/softnpu/plan.h"
#include "lib/device/softnpu/weight_cache.h"

namespace vartml::softnpu {

class Constants {
public:
    using Make = std::function<Bytes()>;

    // The constant of a buffer of the plan. What decides the bytes, beside program, processor and
    // library, is in `layout`.
    void add(int32_t buffer, size_t size_bytes, std::string_view layout, Make make);
    bool holds(int32_t buffer) const { return constants_.contains(buffer); }
    // Its bytes, made now if they are not yet there.
    const std::byte* data(int32_t buffer);

    // Sets the data of all buffers that steps of the plan read: from the cache (nullptr: none),
    // which is built where it does not have them, else from private memory. What only the making
    // of others needed goes.
    void settle(Plan& plan, const WeightCache* cache);

private:
    struct Constant {
        size_t size_bytes;
        uint32_t layout;
        Make make;
        std::shared_ptr<const Bytes> bytes;
    };
    std::map<int32_t, Constant> constants_;  // by buffer
};

}  // namespace vartml::softnpu
