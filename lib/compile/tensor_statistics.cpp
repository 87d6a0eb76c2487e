// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/tensor_statistics.h"

#include <algorithm>
#include <cmath>

namespace vartml::compiler {
namespace {

void extend(Range& range, const Range& other) {
    range.low = std::min(range.low, other.low);
    range.high = std::max(range.high, other.high);
}

// Candidates for an end of the range: fine steps down to a quarter of the extreme, coarse ones
// down to a hundredth.
std::vector<double> candidates(double extreme) {
    std::vector<double> ends;
    for (int i = 64; i > 16; --i) ends.push_back(extreme * i / 64);
    for (double part = 0.25; part > 0.01; part *= 0.9) ends.push_back(extreme * part);
    return ends;
}

}  // namespace

void TensorStatistics::widen(double size) {
    if (limit_ == 0) {
        limit_ = std::exp2(std::ceil(std::log2(size)));
        bins_.assign(num_bins, 0);
    }
    while (limit_ < size) {
        std::vector<double> wider(num_bins, 0);
        for (size_t i = 0; i < num_bins; ++i) wider[num_bins / 4 + i / 2] += bins_[i];
        bins_ = std::move(wider);
        limit_ *= 2;
    }
}

void TensorStatistics::add(std::span<const float> elements, size_t channels, size_t inner) {
    float size = 0;
    for (const float v : elements)
        if (std::isfinite(v)) size = std::max(size, std::fabs(v));
    if (size > 0) widen(static_cast<double>(size));
    if (channels == 0 || inner == 0 || elements.size() % (channels * inner) != 0) channels = 0;
    if (per_channel_ == 0) {
        channel_ranges_.assign(channels, {});
        channel_sums_.assign(channels, 0);
        channel_squares_.assign(channels, 0);
    }
    if (channels != channel_sums_.size()) {
        channel_ranges_.clear();
        channel_sums_.clear();
        channel_squares_.clear();
        channels = 0;
    }
    const double per_bin = num_bins / 2 / (limit_ > 0 ? limit_ : 1);
    for (size_t i = 0; i < elements.size(); ++i) {
        const float v = elements[i];
        if (!std::isfinite(v)) continue;
        if (v != 0) {
            const auto at = static_cast<size_t>((static_cast<double>(v) + limit_) * per_bin);
            bins_[std::min(at, num_bins - 1)] += 1;
        }
        extend(extremes_, {v, v});
        if (channels == 0) continue;
        const size_t channel = i / inner % channels;
        extend(channel_ranges_[channel], {v, v});
        channel_sums_[channel] += static_cast<double>(v);
        channel_squares_[channel] += static_cast<double>(v) * static_cast<double>(v);
    }
    per_channel_ +=
        static_cast<double>(elements.size()) / static_cast<double>(std::max<size_t>(channels, 1));
}

void TensorStatistics::join(const TensorStatistics& other) {
    if (other.limit_ > 0) {
        widen(other.limit_);
        // Both limits are powers of two: a bin of the other lies in one of ours.
        const double ratio = other.limit_ / limit_;
        for (size_t i = 0; i < num_bins; ++i) {
            const double middle = (static_cast<double>(i) + 0.5 - num_bins / 2) * ratio;
            bins_[static_cast<size_t>(middle + num_bins / 2)] += other.bins_[i];
        }
    }
    extend(extremes_, other.extremes_);
    if (channel_sums_.size() == other.channel_sums_.size()) {
        for (size_t i = 0; i < channel_sums_.size(); ++i) {
            extend(channel_ranges_[i], other.channel_ranges_[i]);
            channel_sums_[i] += other.channel_sums_[i];
            channel_squares_[i] += other.channel_squares_[i];
        }
        per_channel_ += other.per_channel_;
    }
}

std::vector<double> TensorStatistics::channel_means() const {
    std::vector<double> means = channel_sums_;
    for (double& mean : means) mean /= std::max(per_channel_, 1.0);
    return means;
}

std::vector<double> TensorStatistics::channel_squares() const {
    std::vector<double> squares = channel_squares_;
    for (double& square : squares) square /= std::max(per_channel_, 1.0);
    return squares;
}

Range TensorStatistics::best_range() const {
    if (limit_ == 0) return extremes_;
    // Sums of the elements below each bin: how many, their values, their squares.
    struct Sums {
        double count = 0, values = 0, squares = 0;
    };
    std::vector<Sums> below(num_bins + 1);
    const double width = 2 * limit_ / num_bins;
    for (size_t i = 0; i < num_bins; ++i) {
        const double value = (static_cast<double>(i) + 0.5) * width - limit_;
        below[i + 1] = {below[i].count + bins_[i], below[i].values + bins_[i] * value,
                        below[i].squares + bins_[i] * value * value};
    }
    const auto at = [&](double end) {
        return below[std::min(static_cast<size_t>((end + limit_) / width), num_bins)];
    };
    const Sums& all = below.back();
    // What is cut off, as the squared distance from the end.
    const auto distance = [](const Sums& sums, double end) {
        return sums.squares - 2 * end * sums.values + end * end * sums.count;
    };
    Range best = extremes_;
    double least = INFINITY;
    for (const double low : candidates(static_cast<double>(extremes_.low))) {
        const Sums under = at(low);
        for (const double high : candidates(static_cast<double>(extremes_.high))) {
            const Sums until = at(high);
            const Sums over = {all.count - until.count, all.values - until.values,
                               all.squares - until.squares};
            const double step = (high - low) / 255;
            const double error = distance(under, low) + distance(over, high) +
                                 (until.count - under.count) * step * step / 12;
            if (error < least) {
                least = error;
                best = {static_cast<float>(low), static_cast<float>(high)};
            }
            if (extremes_.high == 0) break;
        }
        if (extremes_.low == 0) break;
    }
    return best;
}

void TensorStatistics::write(Writer& writer) const {
    writer.number(limit_);
    writer.list(bins_);
    writer.number(extremes_);
    writer.list(channel_ranges_);
    writer.list(channel_sums_);
    writer.list(channel_squares_);
    writer.number(per_channel_);
}

TensorStatistics TensorStatistics::read(Reader& reader) {
    TensorStatistics s;
    s.limit_ = reader.number<double>();
    s.bins_ = reader.list<double>();
    s.extremes_ = reader.number<Range>();
    s.channel_ranges_ = reader.list<Range>();
    s.channel_sums_ = reader.list<double>();
    s.channel_squares_ = reader.list<double>();
    s.per_channel_ = reader.number<double>();
    return s;
}

void write(Writer& writer, const Statistics& statistics) {
    writer.number(uint64_t{statistics.size()});
    for (const auto& [name, tensor] : statistics) {
        writer.text(name);
        tensor.write(writer);
    }
}

Statistics read_statistics(Reader& reader) {
    Statistics statistics;
    const auto count = reader.number<uint64_t>();
    for (uint64_t i = 0; i < count && reader.is_good(); ++i) {
        std::string name = reader.text();
        statistics.insert_or_assign(std::move(name), TensorStatistics::read(reader));
    }
    return statistics;
}

}  // namespace vartml::compiler
