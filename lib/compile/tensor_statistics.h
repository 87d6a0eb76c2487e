// SPDX-License-Identifier: Apache-2.0
// What a tensor holds over a calibration set, and the range of codes that keeps most of it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/compile/stored.h"

namespace vartml::compiler {

struct Range {
    float low = 0, high = 0;
    bool operator==(const Range&) const = default;
};

class TensorStatistics {
public:
    // The elements of one sample: `channels` of them behind each other, `inner` elements in each,
    // as often as it takes. What is not finite counts nowhere.
    void add(std::span<const float> elements, size_t channels, size_t inner);
    // As if the samples of both had been added; channels are kept where both have as many.
    void join(const TensorStatistics& other);

    Range extremes() const { return extremes_; }
    // The range whose 256 codes, zero among them, have the least squared error. A few large
    // elements may lie outside: they are cut off, and all others get finer steps.
    Range best_range() const;
    // Per channel.
    const std::vector<Range>& channel_ranges() const { return channel_ranges_; }
    std::vector<double> channel_means() const;
    std::vector<double> channel_squares() const;  // their means

    void write(Writer& writer) const;
    static TensorStatistics read(Reader& reader);

private:
    void widen(double size);

    // Counts of elements other than zero between -limit_ and limit_, which is a power of two.
    static constexpr size_t num_bins = 8192;
    double limit_ = 0;
    std::vector<double> bins_;
    Range extremes_;
    std::vector<Range> channel_ranges_;
    std::vector<double> channel_sums_, channel_squares_;
    double per_channel_ = 0;  // elements of each channel so far
};

using Statistics = std::map<std::string, TensorStatistics>;  // by the name of the value
void write(Writer& writer, const Statistics& statistics);
Statistics read_statistics(Reader& reader);

}  // namespace vartml::compiler
