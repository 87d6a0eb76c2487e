// SPDX-License-Identifier: Apache-2.0
// The floor of a model: its convolutions alone in oneDNN, each with its activation fused, in the
// type of float work of this machine, on an OpenMP team of THREADS, in the layouts that oneDNN
// likes best and hot in the cache. Obeys lines on standard input:
//   run N      N times the sum over the convolutions of the best time of each, in nanoseconds
//   macs       multiply-adds of all convolutions
// usage: conv_floor MODEL.rai THREADS [f32]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/model/compiled_model.h"
#include "lib/run/softnpu/openmp.h"
#include "lib/run/softnpu/post_ops.h"
#include "lib/run/softnpu/processor.h"

namespace {

using namespace vartml;
using dnnl::memory;
using Dims = memory::dims;

constexpr int repeats = 9;

struct Convolution {
    Dims src, weights, dst, strides, dilations, begin, end;
    std::optional<softnpu::Eltwise> activation;
    bool is_transposed = false, has_bias = false;
    double macs = 0;
};

std::optional<Convolution> convolution(const graph::Graph& graph, const graph::Node& node) {
    if (node.kind != "Conv" && node.kind != "ConvTranspose") return std::nullopt;
    const auto shape = [&](graph::ValueId id) { return graph.value(id).type.shape; };
    Convolution c;
    c.is_transposed = node.kind == "ConvTranspose";
    c.src = shape(node.inputs[0]), c.dst = shape(node.outputs[0]);
    const Dims w = shape(node.inputs[1]);
    c.has_bias = node.inputs.size() > 2 && node.inputs[2] != graph::none;
    const size_t n = c.src.size() - 2;
    const int64_t groups = node.get("group", int64_t{1});
    c.strides = node.get("strides", Dims(n, 1));
    c.dilations = node.get("dilations", Dims(n, 1));
    for (int64_t& d : c.dilations) d -= 1;  // oneDNN counts the gaps
    const Dims pads = node.get("pads", Dims(2 * n, 0));
    c.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
    for (size_t i = 0; i < n; ++i) {  // as much at the end as the shape of the result needs
        const int64_t kernel = (w[2 + i] - 1) * (c.dilations[i] + 1) + 1;
        const int64_t from = c.is_transposed ? c.dst[2 + i] : c.src[2 + i];
        const int64_t to = c.is_transposed ? c.src[2 + i] : c.dst[2 + i];
        c.end.push_back((to - 1) * c.strides[i] + kernel - from - c.begin[i]);
    }
    c.weights = w;
    if (c.is_transposed) std::swap(c.weights[0], c.weights[1]);
    if (groups > 1) {
        c.weights[c.is_transposed ? 1 : 0] /= groups;
        c.weights.insert(c.weights.begin(), groups);
    }
    const Dims& at = c.is_transposed ? c.src : c.dst;
    c.macs = 1;
    for (const int64_t d : at) c.macs *= static_cast<double>(d);
    for (size_t i = 1; i < w.size(); ++i) c.macs *= static_cast<double>(w[i]);
    for (const graph::Operation& part : node.fused)
        if (!c.activation) c.activation = softnpu::find_eltwise(part);
    return c;
}

class Layer {
public:
    Layer(const Convolution& c, memory::data_type type, const dnnl::engine& engine)
        : stream_(engine) {
        if (c.is_transposed)
            make<dnnl::deconvolution_forward>(c, type, engine,
                                              dnnl::algorithm::deconvolution_direct);
        else
            make<dnnl::convolution_forward>(c, type, engine, dnnl::algorithm::convolution_direct);
    }

    double best_ns() {
        using Clock = std::chrono::steady_clock;
        double best = 1e30;
        for (int i = 0; i < repeats; ++i) {
            const auto start = Clock::now();
            primitive_.execute(stream_, arguments_);
            stream_.wait();
            const std::chrono::duration<double, std::nano> time = Clock::now() - start;
            best = std::min(best, time.count());
        }
        return best;
    }

private:
    template <typename Primitive>
    void make(const Convolution& c, memory::data_type type, const dnnl::engine& engine,
              dnnl::algorithm algorithm) {
        const auto any = [&](const Dims& dims) {
            return memory::desc(dims, type, memory::format_tag::any);
        };
        dnnl::primitive_attr attributes;
        if (c.activation) {
            dnnl::post_ops post;
            post.append_eltwise(c.activation->algorithm, c.activation->alpha, c.activation->beta);
            attributes.set_post_ops(post);
        }
        const memory::desc bias =
            c.has_bias ? memory::desc({c.dst[1]}, memory::data_type::f32, memory::format_tag::a)
                       : memory::desc();
        const typename Primitive::primitive_desc pd(
            engine, dnnl::prop_kind::forward_inference, algorithm, any(c.src), any(c.weights), bias,
            any(c.dst), c.strides, c.dilations, c.begin, c.end, attributes);
        primitive_ = Primitive(pd);
        const auto add = [&](int id, const memory::desc& desc) {
            const memory m(desc, engine);
            std::memset(m.get_data_handle(), 0x3c, desc.get_size());  // small normal numbers
            arguments_.emplace(id, m);
        };
        add(DNNL_ARG_SRC, pd.src_desc());
        add(DNNL_ARG_WEIGHTS, pd.weights_desc());
        add(DNNL_ARG_DST, pd.dst_desc());
        if (c.has_bias) add(DNNL_ARG_BIAS, pd.bias_desc());
    }

    dnnl::stream stream_;
    dnnl::primitive primitive_;
    std::unordered_map<int, memory> arguments_;
};

void obey(std::vector<Layer>& layers, double macs) {
    std::puts("ready");
    std::fflush(stdout);
    for (std::string word; std::cin >> word;) {
        long runs = 0;
        if (word == "macs")
            std::printf("%.0f", macs);
        else
            std::cin >> runs;
        for (long r = 0; r < runs; ++r) {
            double sum = 0;
            for (Layer& layer : layers) sum += layer.best_ns();
            std::printf("%.0f ", sum);
        }
        std::puts("");
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const auto model = artifact::read(argv[1]);
    if (!model) {
        std::fprintf(stderr, "conv_floor: %s\n", model.error().message.c_str());
        return 1;
    }
    omp_set_num_threads(std::atoi(argv[2]));
    const bool f32 = argc > 3 || !softnpu::prefers_bf16();
    try {
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        std::vector<Layer> layers;
        double macs = 0;
        for (const artifact::Partition& partition : model->partitions)
            for (const graph::Node& node : partition.graph.nodes)
                if (const auto c = convolution(partition.graph, node)) {
                    layers.emplace_back(*c, f32 ? memory::data_type::f32 : memory::data_type::bf16,
                                        engine);
                    macs += c->macs;
                }
        obey(layers, macs);
    } catch (const dnnl::error& e) {
        std::fprintf(stderr, "conv_floor: oneDNN: %s\n", e.what());
        return 1;
    }
    return 0;
}
