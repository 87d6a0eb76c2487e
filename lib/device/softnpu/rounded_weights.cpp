// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/rounded_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/ops/rows.h"
#include "lib/device/softnpu/conv_step.h"
#include "lib/device/softnpu/float_types.h"
#include "lib/device/softnpu/lane.h"

namespace vartml::softnpu {
namespace {

using kernels::bf16;

// Adds up the channels of a value as it lies when the step runs.
class MeansStep final : public Step {
public:
    MeansStep(View src, std::vector<double>& means) : src_(std::move(src)), means_(means) {}
    void share_among(unsigned) override {}
    std::string describe() const override { return "means of channels"; }

    void run(const Bases& bases, size_t) noexcept override {
        std::ranges::fill(means_, 0.0);
        add(address(bases, src_), 0, 0);
        const double positions =
            static_cast<double>(src_.elements()) / static_cast<double>(means_.size());
        for (double& mean : means_) mean /= positions;
    }

private:
    // The elements behind `at`, with dimensions before `dim` chosen.
    void add(const std::byte* base, size_t dim, int64_t at) {
        if (dim == src_.dims.size()) {
            for (size_t c = 0; c < means_.size(); ++c)
                means_[c] +=
                    element(base, src_.type, at + static_cast<int64_t>(c) * src_.strides[1]);
            return;
        }
        for (int64_t i = 0; i < (dim == 1 ? 1 : src_.dims[dim]); ++i)
            add(base, dim + 1, at + i * src_.strides[dim]);
    }

    static float element(const std::byte* base, DataType type, int64_t at) {
        float value = 0;
        with_float(type, [&]<typename T>(T) {
            kernels::copy_rows(reinterpret_cast<const T*>(base) + at, 1, &value, 1, 1, 1);
        });
        return value;
    }

    View src_;
    std::vector<double>& means_;
};

// The first convolution of an input.
const graph::Node* find_first_conv(const graph::Graph& graph) {
    const auto is_conv = [](const graph::Node& node) { return node.base() == "Conv"; };
    const auto at = std::ranges::find_if(graph.nodes, is_conv);
    return at == graph.nodes.end() ? nullptr : &*at;
}

// Up to where the numbers of the inputs reach: trained filters answer what they are made for with
// about 1, so that those of pixels of 0 to 255 are smaller than those of scaled ones. Median norms
// of models at hand: 0.01 to 0.03 and 0.5 to 20.
float input_range(Lowering& lowering) {
    const graph::Node* const conv = find_first_conv(lowering.graph());
    if (!conv || !lowering.value(conv->inputs[1]).constant) return 1;
    const std::vector<float> weights = floats(lowering, conv->inputs[1]);
    std::vector<float> squares(static_cast<size_t>(lowering.value(conv->inputs[1]).type.shape[0]),
                               0.0F);
    const size_t filter = weights.size() / squares.size();
    for (size_t i = 0; i < weights.size(); ++i) squares[i / filter] += weights[i] * weights[i];
    const auto middle = squares.begin() + static_cast<ptrdiff_t>(squares.size() / 2);
    std::ranges::nth_element(squares, middle);
    return *middle < 0.1F * 0.1F ? 255 : 1;
}

// Numbers in [0, range), always the same.
std::vector<std::byte> noise(const TensorInfo& info, float range) {
    std::vector<std::byte> bytes(info.hw->size_bytes);
    std::minstd_rand random;  // NOLINT: the same numbers each time are the point
    const auto next = [&random] { return static_cast<float>(random() % 4096) / 4096.0F; };
    const DataType type = info.hw->data_type;
    for (size_t i = 0; i < bytes.size() / size_bytes(type); ++i) {
        const float value = next() * range;
        with_float(type, [&]<typename T>(T) {
            kernels::copy_rows(&value, 1, reinterpret_cast<T*>(bytes.data()) + i, 1, 1, 1);
        });
        if (type == DataType::uint8) bytes[i] = static_cast<std::byte>(random() % 256);
    }
    return bytes;
}

bool has_fixed_shapes(const graph::Graph& graph) {
    return std::ranges::none_of(graph.values, &graph::Value::data_dependent);
}

// Whether all steps accepted the data.
bool run_once(const device::Program& program, Plan plan, float range) {
    // The program is the caller's, and outlives the lane.
    const std::shared_ptr<const device::Program> borrowed(std::shared_ptr<const void>(), &program);
    auto lane = Lane::create(borrowed, std::move(plan));
    if (!lane) return false;
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const TensorInfo& info : program.inputs)
        inputs.push_back(memory.emplace_back(noise(info, range)).data());
    for (const TensorInfo& info : program.outputs)
        outputs.push_back(memory.emplace_back(info.hw->size_bytes).data());
    (*lane)->bind(inputs, outputs);
    for (size_t s = 0; s < (*lane)->plan().steps.size(); ++s)
        for (uint32_t i = 0; i < (*lane)->plan().steps[s]->items(); ++i) (*lane)->run_item(s, i);
    return !(*lane)->state().error;
}

}  // namespace

ChannelMeans::ChannelMeans(const device::Program& program) {
    if (!has_fixed_shapes(program.graph)) return;
    Lowering exact(program, DataType::float32, 1);
    exact.before_each([this](Lowering& lowering, const graph::Node& node) {
        if (node.base() != "Conv") return;
        const View& src = lowering.view(node.inputs[0]);
        auto [at, is_new] = means_.try_emplace(node.inputs[0], src.dims[1], 0.0);
        if (is_new) lowering.emit(std::make_unique<MeansStep>(src, at->second), node.name, {&src});
    });
    const float range = input_range(exact);
    auto plan = exact.run([](bool) { return nullptr; });
    if (!plan || !run_once(program, std::move(*plan), range)) means_.clear();
    std::erase_if(means_, [](const auto& entry) {
        return !std::ranges::all_of(entry.second, [](double m) { return std::isfinite(m); });
    });
}

const std::vector<double>& ChannelMeans::of(graph::ValueId id) const {
    static const std::vector<double> none;
    const auto at = means_.find(id);
    return at == means_.end() ? none : at->second;
}

Bytes biases_for_rounded_weights(Lowering& lowering, const graph::Node& node) {
    const Dims& dims = lowering.value(node.inputs[1]).type.shape;  // [O, I / groups, k…]
    std::vector<float> biases =
        floats(lowering, node.inputs.size() > 2 ? node.inputs[2] : graph::none);
    biases.resize(static_cast<size_t>(dims[0]), 0.0F);
    const std::vector<double>& means = lowering.channel_means().of(node.inputs[0]);
    if (!means.empty()) {
        const std::vector<float> weights = floats(lowering, node.inputs[1]);
        std::vector<bf16> rounded(weights.size());
        std::vector<float> back(weights.size());
        kernels::convert_row(weights.data(), rounded.data(), weights.size());
        kernels::convert_row(rounded.data(), back.data(), weights.size());
        const auto channels = static_cast<size_t>(dims[1]);
        const size_t filter = weights.size() / biases.size(), taps = filter / channels;
        const size_t filters_of_group = biases.size() * channels / means.size();
        for (size_t o = 0; o < biases.size(); ++o) {
            const double* const mean = &means[o / filters_of_group * channels];
            double shift = 0;
            for (size_t i = 0; i < filter; ++i) {
                const size_t at = o * filter + i;
                shift += (static_cast<double>(back[at]) - static_cast<double>(weights[at])) *
                         mean[i / taps];
            }
            if (std::isfinite(shift)) biases[o] -= static_cast<float>(shift);
        }
    }
    Bytes bytes(biases.size() * sizeof(float));
    std::memcpy(bytes.data(), biases.data(), bytes.size());
    return bytes;
}

}  // namespace vartml::softnpu
