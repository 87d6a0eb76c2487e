// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/constants.h"

#include <cassert>
#include <set>
#include <utility>

#include "lib/common/crc32c.h"
#include "lib/common/file.h"

namespace vartml::softnpu {

void Constants::add(int32_t buffer, size_t size_bytes, std::string_view layout, Make make) {
    constants_.emplace(buffer,
                       Constant{size_bytes, crc32c(as_bytes(layout)), std::move(make), nullptr});
}

const std::byte* Constants::data(int32_t buffer) {
    Constant& constant = constants_.at(buffer);
    if (!constant.bytes) {
        constant.bytes = std::make_shared<const Bytes>(constant.make());
        assert(constant.bytes->size() == constant.size_bytes);
        constant.make = nullptr;
    }
    return constant.bytes->data();
}

void Constants::settle(Plan& plan, const WeightCache* cache) {
    std::set<int32_t> read;
    for (const auto& step : plan.steps)
        for (const int32_t buffer : step->buffers)
            if (holds(buffer)) read.insert(buffer);
    if (read.empty()) return;
    WeightTable table;
    for (const int32_t buffer : read)
        table.push_back({constants_.at(buffer).size_bytes, constants_.at(buffer).layout});

    std::optional<StoredWeights> stored;
    if (cache) stored = cache->open(table);
    if (!stored) {
        std::vector<std::span<const std::byte>> pieces;
        for (const int32_t buffer : read)
            pieces.emplace_back(data(buffer), constants_.at(buffer).size_bytes);
        if (cache) stored = cache->build(table, pieces);
    }
    size_t i = 0;
    for (const int32_t buffer : read) {
        Constant& constant = constants_.at(buffer);
        Buffer& place = plan.buffers[static_cast<size_t>(buffer)];
        if (stored) {
            place.data = stored->pieces[i++];
            continue;
        }
        place.data = constant.bytes->data();
        plan.private_bytes += constant.size_bytes;
        plan.owners.push_back(constant.bytes);
    }
    if (stored) plan.owners.push_back(stored->owner);
}

}  // namespace vartml::softnpu
