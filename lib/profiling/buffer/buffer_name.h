// SPDX-License-Identifier: Apache-2.0
// Names of raw stats buffers:
//     aic-profiling-program-<P>-activation-<A>-inf-<I>-<NetworkName>-aiccyclecounts.bin
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vartml::profiling {

inline constexpr std::string_view buffer_suffix = "-aiccyclecounts.bin";
inline constexpr const char* buffer_scheme =
    "aic-profiling-program-<P>-activation-<A>-inf-<I>-<NetworkName>-aiccyclecounts.bin";

struct BufferName {
    uint64_t program = 0, activation = 0, inference = 0;
    std::string network;  // as in the file's name
    auto operator<=>(const BufferName&) const = default;
};

// The name without the suffix; characters of `network` outside A-Za-z0-9._+ become '_'.
std::string buffer_stem(uint64_t program, uint64_t activation, uint64_t inference,
                        std::string_view network);
// nullopt unless the whole name follows the scheme.
std::optional<BufferName> parse_buffer_name(std::string_view file_name);

}  // namespace vartml::profiling
