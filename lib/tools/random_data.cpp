// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/random_data.h"

#include <cstring>
#include <random>

namespace vartml::tools {

std::vector<std::byte> random_bytes(DataType type, size_t size_bytes, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::vector<std::byte> bytes(size_bytes);
    const auto fill = [&]<typename T>(T, auto next) {
        for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
            const T value = static_cast<T>(next());
            std::memcpy(bytes.data() + i, &value, sizeof value);
        }
    };
    const auto unit = [&] { return static_cast<float>(engine() >> 40) * 0x1p-24f; };
    const auto bit = [&] { return engine() & 1; };
    switch (type) {
        case DataType::float32:
            fill(float{}, unit);
            break;
        case DataType::bf16:
            fill(uint16_t{}, [&] {
                const float f = unit();
                uint32_t bits;
                std::memcpy(&bits, &f, sizeof bits);
                return bits >> 16;
            });
            break;
        case DataType::fp16:
            fill(uint16_t{}, [&] { return 0x3800 | (engine() & 0x3ff); });
            break;
        case DataType::int8:
        case DataType::uint8:
            fill(uint8_t{}, [&] { return engine(); });
            break;
        case DataType::int16:
        case DataType::uint16:
            fill(uint16_t{}, bit);
            break;
        case DataType::int32:
        case DataType::uint32:
            fill(uint32_t{}, bit);
            break;
        case DataType::int64:
        case DataType::uint64:
            fill(uint64_t{}, bit);
            break;
        default:
            fill(uint8_t{}, bit);
    }
    return bytes;
}

}  // namespace vartml::tools
