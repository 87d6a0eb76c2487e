// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/conv_step.h"

#include <algorithm>
#include <span>

#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/lower_conv.h"
#include "lib/run/softnpu/post_ops.h"

namespace vartml::softnpu {
namespace {

using kernels::Activation;
using kernels::ConvShape;
using kernels::Epilogue;

class ConvStep final : public Step {
public:
    ConvStep(const GroupedShape& shape, const kernels::Epilogue& epilogue, View src, View packed,
             View residual, View dst, CodesOfSums codes)
        : shape_(shape.shape),
          groups_(shape.groups),
          epilogue_(epilogue),
          src_(std::move(src)),
          packed_(std::move(packed)),
          residual_(std::move(residual)),
          dst_(std::move(dst)),
          codes_(std::move(codes)),
          units_(static_cast<int64_t>(kernels::conv_units(shape_))) {}

    // Units of all groups of all images.
    Extent extent() const override {
        const int64_t taps = int64_t{shape_.kernel_height} * shape_.kernel_width *
                             (shape_.depthwise ? 1 : shape_.in_channels);
        const auto work = [this, taps]() -> int64_t {  // of a result, in 1/120 ns
            switch (kernels::conv_method(shape_)) {
                case kernels::ConvMethod::bf16_pairs:
                    return (taps + 40) * 2;
                case kernels::ConvMethod::code_quads:
                    return taps / 2 + 30;
                default:
                    return (taps + 10) * 3;
            }
        };
        return {dst_.dims[0] * groups_ * units_, dst_.elements() * work() / 120};
    }

    // Scratch memory of one item lies behind that of another.
    size_t scratch_bytes(unsigned threads) const {
        return items_for(extent(), threads) * kernels::conv_scratch_size(shape_);
    }
    void set_scratch(View scratch) { scratch_ = std::move(scratch); }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        const size_t size = kernels::packed_conv_size(shape_);
        std::byte* const scratch =
            scratch_.buffer < 0
                ? nullptr
                : address(bases, scratch_) + item * kernels::conv_scratch_size(shape_);
        for (int64_t at = first; at < last;) {
            const int64_t picture = at / units_, unit = at % units_;
            const int64_t n = picture / groups_, group = picture % groups_;
            const int64_t end = std::min(units_, unit + last - at);
            const auto src = picture_of<const void>(bases, src_, n, group * shape_.in_channels);
            const auto add =
                picture_of<const void>(bases, residual_, n, group * shape_.out_channels);
            const auto dst = picture_of<void>(bases, dst_, n, group * shape_.out_channels);
            const Epilogue epilogue = epilogue_of(bases, group);
            kernels::conv(shape_, src, address(bases, packed_) + static_cast<size_t>(group) * size,
                          epilogue, add, dst, scratch, static_cast<size_t>(unit),
                          static_cast<size_t>(end));
            at += end - unit;
        }
    }

    std::string describe() const override {
        return std::string(shape_.depthwise ? "depthwise " : "conv ") +
               name_of(kernels::conv_method(shape_)) + " " + std::to_string(shape_.kernel_height) +
               "x" + std::to_string(shape_.kernel_width) +
               (groups_ > 1 ? " groups " + std::to_string(groups_) : "") + " " + text(src_) +
               " -> " + text(dst_);
    }

private:
    Epilogue epilogue_of(const Bases& bases, int64_t group) const {
        Epilogue result = epilogue_;
        if (codes_.scales.buffer < 0) return result;
        const auto* const scales = reinterpret_cast<const float*>(address(bases, codes_.scales)) +
                                   group * shape_.out_channels;
        result.codes = {scales, scales + groups_ * shape_.out_channels, codes_.zero};
        return result;
    }

    ConvShape shape_;
    int64_t groups_;
    Epilogue epilogue_;
    View src_, packed_, residual_, dst_, scratch_;
    CodesOfSums codes_;
    int64_t units_;  // of one group of one image
};

}  // namespace

std::optional<ConvParts> read_conv_parts(const graph::Node& node) {
    ConvParts result;
    for (const graph::Operation& part : node.fused) {
        const bool has_activation = result.epilogue.activation != Activation::none;
        if (part.kind == "Add") {
            if (result.residual) return std::nullopt;
            result.residual = true;
            result.epilogue.add_first = !has_activation;
            continue;
        }
        auto epilogue = find_activation(part);
        if (!epilogue || has_activation) return std::nullopt;
        epilogue->add_first = result.epilogue.add_first;
        result.epilogue = *epilogue;
    }
    return result;
}

Dims conv_strides(const graph::Node& node, const Dims& positions) {
    Dims strides = node.get("strides", Dims(positions.size() - 2, 1));
    for (size_t axis = 0; axis < strides.size(); ++axis)
        if (positions[axis + 2] == 1) strides[axis] = 1;
    return strides;
}

// The kernels step forward through rows and columns.
static bool has_channels_last(const View& view) {
    return (view.strides[1] == 1 || view.dims[1] == 1) &&
           std::ranges::all_of(view.strides, [](int64_t stride) { return stride >= 0; });
}

bool is_conv_picture(const View& view) {
    return (view.type == DataType::float32 || view.type == DataType::bf16) &&
           has_channels_last(view);
}

bool is_code_picture(const View& view) {
    return view.type == DataType::uint8 && has_channels_last(view);
}

kernels::Element element_of(const View& view) {
    if (view.type == DataType::uint8) return kernels::Element::u8;
    return view.type == DataType::bf16 ? kernels::Element::bf16 : kernels::Element::f32;
}

View conv_source(Lowering& lowering, graph::ValueId id, DataType type) {
    const View& view = lowering.view(id);
    if (is_conv_picture(view)) return view;
    const auto padded = lowering.is_whole_input(view) ? with_padding_channels(view) : std::nullopt;
    if (!padded) return lowering.dense(id, channels_last(4), type);
    const View copy = lowering.dense(*padded, channels_last(4), type, lowering.value(id).name);
    return slice(copy, 1, 0, view.dims[1], 1);
}

View conv_destination(Lowering& lowering, graph::ValueId out) {
    View dst = lowering.destination(out, channels_last(4), true);
    if (is_conv_picture(dst)) return dst;
    const DataType stored = lowering.stored_type(out);
    return lowering.new_buffer(stored == DataType::bf16 ? stored : DataType::float32,
                               lowering.value(out).type.shape, channels_last(4));
}

void finish_conv(Lowering& lowering, const graph::Node& node, const View& dst) {
    const graph::ValueId out = node.outputs[0];
    View stored = dst;
    if (dst.type != lowering.stored_type(out)) {
        stored = lowering.destination(out, channels_last(4), true);
        lowering.copy(dst, stored, node.name);
    }
    lowering.finish(out, stored);
}

CodesOfSums codes_of_sums(Lowering& lowering, const std::vector<float>& scales,
                          const std::vector<float>& factors, int64_t outputs, uint8_t zero) {
    std::vector<float> both;
    for (const std::vector<float>* numbers : {&scales, &factors})
        for (size_t i = 0; i < static_cast<size_t>(outputs); ++i)
            both.push_back(numbers->size() == 1 ? numbers->front() : (*numbers)[i]);
    const auto bytes = std::as_bytes(std::span(both));
    return {lowering.add_constant(DataType::float32, {2 * outputs}, row_major(1),
                                  Bytes(bytes.begin(), bytes.end())),
            zero};
}

void emit_direct_conv(Lowering& lowering, const graph::Node& node, const GroupedShape& shape,
                      const kernels::Epilogue& epilogue, const View& src, const View& weights,
                      const View& residual, const View& dst, const CodesOfSums& codes) {
    GroupedShape own = shape;
    own.shape.source = element_of(src);
    own.shape.result = element_of(dst);
    auto step = std::make_unique<ConvStep>(own, epilogue, src, weights, residual, dst, codes);
    View scratch;
    if (const size_t size = step->scratch_bytes(lowering.threads()); size > 0) {
        scratch = lowering.scratch_view(size);
        step->set_scratch(scratch);
    }
    lowering.emit(std::move(step), node.name,
                  {&src, &weights, &dst, residual.buffer >= 0 ? &residual : nullptr,
                   scratch.buffer >= 0 ? &scratch : nullptr,
                   codes.scales.buffer >= 0 ? &codes.scales : nullptr});
}

std::vector<float> floats(Lowering& lowering, graph::ValueId id) {
    if (id < 0) return {};
    const auto* first =
        reinterpret_cast<const float*>(lowering.constant_bytes(id, DataType::float32));
    return {first, first + lowering.value(id).type.elements()};
}

View pack_conv_weights(Lowering& lowering, const GroupedShape& grouped,
                       std::function<ConvWeights()> make) {
    const ConvShape& shape = grouped.shape;
    const kernels::ConvMethod method = kernels::conv_method(shape);
    std::string layout = name_of(method);
    for (const uint32_t part :
         {shape.in_channels, shape.out_channels, shape.kernel_height, shape.kernel_width,
          shape.stride_width, shape.dilation_width, static_cast<uint32_t>(shape.depthwise),
          grouped.groups, uint32_t{shape.source_zero}, static_cast<uint32_t>(shape.exact)})
        layout += ' ' + std::to_string(part);
    const size_t size = kernels::packed_conv_size(shape), groups = grouped.groups;
    return lowering.add_packed(
        size * groups, layout, [shape, method, size, groups, make = std::move(make)] {
            ConvWeights from = make();
            if (method == kernels::ConvMethod::bf16_pairs)
                from.weights = round_filters(std::move(from.weights), groups * shape.out_channels);
            Bytes bytes(size * groups);
            const size_t of_group = from.weights.size() / groups;
            for (size_t g = 0; g < groups; ++g)
                kernels::pack_conv(
                    shape, from.weights.data() + g * of_group,
                    from.biases.empty() ? nullptr : from.biases.data() + g * shape.out_channels,
                    bytes.data() + g * size);
            return bytes;
        });
}

namespace {

// `p` for a band of the output: the rows of the input that it needs, and the padding that is left.
// `first`…`last` are the input rows that the band reaches for, outside the picture too.
Convolution band_of(const Convolution& p, const Band& band, int64_t first, int64_t last) {
    Convolution part = p;
    part.dst = cut(p.dst, band);
    part.src = cut(p.src, 0, band.images);
    const int64_t from = std::max<int64_t>(first, 0), to = std::min(last, p.src.dims[2] - 1);
    part.src = slice(part.src, 2, from, to - from + 1, 1);
    for (PostOp& op : part.post) {
        if (op.operand.buffer >= 0) op.operand = cut(op.operand, band);
    }
    return part;
}

}  // namespace

Dims grouped(const Dims& dims, int64_t groups) {
    Dims result{groups, dims[0] / groups};
    result.insert(result.end(), dims.begin() + 1, dims.end());
    return result;
}

int64_t cost_ns(const Convolution& p, int64_t positions) {
    const int64_t groups = p.weights.dims.size() > p.dst.dims.size() ? p.weights.dims[0] : 1;
    return p.weights.elements() * positions / groups / 40 + p.dst.elements() / 4;
}

// Convolution: output row y reads input rows y·stride - pad + [0, reach).
Convolution forward_band(const Convolution& p, const Band& band) {
    const int64_t stride = p.strides[0],
                  kernel = p.weights.dims[p.weights.dims.size() - p.strides.size()];
    const int64_t reach = (kernel - 1) * (p.dilations[0] + 1) + 1;
    const int64_t first = band.rows.first * stride - p.pads_begin[0];
    const int64_t last =
        (band.rows.first + band.rows.size - 1) * stride - p.pads_begin[0] + reach - 1;
    Convolution part = band_of(p, band, first, last);
    part.pads_begin[0] = std::max<int64_t>(-first, 0);
    part.pads_end[0] = std::max<int64_t>(last - (p.src.dims[2] - 1), 0);
    return part;
}

// Transposed convolution: input row i reaches output rows i·stride - pad + [0, reach); what falls
// outside the band is cropped as padding is.
Convolution transposed_band(const Convolution& p, const Band& band) {
    const int64_t stride = p.strides[0],
                  kernel = p.weights.dims[p.weights.dims.size() - p.strides.size()];
    const int64_t reach = (kernel - 1) * (p.dilations[0] + 1) + 1;
    const int64_t low = band.rows.first + p.pads_begin[0] - (reach - 1);
    const int64_t first = low <= 0 ? 0 : (low + stride - 1) / stride;
    const int64_t last = (band.rows.first + band.rows.size - 1 + p.pads_begin[0]) / stride;
    Convolution part = band_of(p, band, first, last);
    part.pads_begin[0] = p.pads_begin[0] + band.rows.first - first * stride;
    part.pads_end[0] =
        (part.src.dims[2] - 1) * stride + reach - part.dst.dims[2] - part.pads_begin[0];
    return part;
}

bool reads_rows(const std::vector<Convolution>& parts) {
    return std::ranges::all_of(parts, [](const Convolution& p) { return p.src.dims[2] > 0; });
}

}  // namespace vartml::softnpu
