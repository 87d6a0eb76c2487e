// SPDX-License-Identifier: Apache-2.0
#include "lib/doctor/calibrate.h"

#include "lib/device/softnpu/product_rate.h"
#include "lib/doctor/triad.h"

namespace vartml::doctor {

Result<Peaks> measure_peaks(unsigned threads, const Workload& workload,
                            const std::function<void(const std::string&)>& progress) {
    using softnpu::ProductType;
    struct Step {
        const char* name;
        ProductType type;
        std::optional<double> Peaks::* rate;
    };
    constexpr Step steps[] = {{"fp32", ProductType::f32, &Peaks::f32},
                              {"bf16", ProductType::bf16, &Peaks::bf16},
                              {"int8", ProductType::int8, &Peaks::int8}};
    const std::string on = threads == 1 ? "1 thread" : std::to_string(threads) + " threads";
    Peaks peaks{.key = peaks_key(threads)};
    for (const Step& step : steps) {
        progress(std::string("matrix products in ") + step.name + ", " + on);
        const auto rate =
            softnpu::product_rate(step.type, threads, workload.product_size, workload.repeats);
        if (rate) peaks.*step.rate = *rate;
        if (!rate && rate.error().code != ErrorCode::unsupported) return rate.error();
    }
    progress("memory bandwidth, " + on);
    const size_t bytes = workload.array_bytes ? workload.array_bytes : 4 * last_level_cache_bytes();
    const auto rate = triad_rate(threads, bytes, workload.repeats);
    if (!rate) return rate.error();
    peaks.bytes_per_second = *rate;
    return peaks;
}

}  // namespace vartml::doctor
