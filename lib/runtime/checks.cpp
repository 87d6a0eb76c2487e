// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/checks.h"

#include "lib/runtime/tensor_info.h"
#include "lib/runtime/tensor_priv.h"
#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

using vart::NpuTensor;
using vart::NpuTensorInfo;
using vart::NpuTensorPriv;
using vart::NpuTensorPrivAccess;
using vart::StatusCode;
using vart::TensorDirection;

StatusCode refusal(TensorDirection direction) {
    return direction == TensorDirection::INPUT ? StatusCode::INVALID_INPUT
                                               : StatusCode::INVALID_OUTPUT;
}

const char* noun(TensorDirection direction) {
    return direction == TensorDirection::INPUT ? "input" : "output";
}

std::string list(const std::vector<uint32_t>& values) {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i) text += (i ? "," : "") + std::to_string(values[i]);
    return text + "]";
}

// The first difference between what is there and what the model has, or "".
std::string difference(const NpuTensorInfo& found, const NpuTensorInfo& wanted) {
    const auto differs = [](const char* what, std::string_view is, std::string_view expected) {
        return std::string(what) + " is " + clean(is) + ", expected " + clean(expected);
    };
    if (found.direction != wanted.direction)
        return differs("direction", to_string(found.direction), to_string(wanted.direction));
    if (found.name != wanted.name)
        return differs("name", in_quotes(found.name), in_quotes(wanted.name));
    if (found.tensor_type != wanted.tensor_type)
        return differs(
            "tensor_type", to_string(found.tensor_type),
            std::string(to_string(wanted.tensor_type)) + " as the options of the runner say");
    if (found.data_type != wanted.data_type)
        return differs("data_type", to_string(found.data_type), to_string(wanted.data_type));
    if (found.memory_layout != wanted.memory_layout)
        return differs("memory_layout", to_string(found.memory_layout),
                       to_string(wanted.memory_layout));
    if (wanted.memory_layout == vart::MemoryLayout::GENERIC &&
        found.memory_layout_order != wanted.memory_layout_order)
        return differs("memory_layout_order", list(found.memory_layout_order),
                       list(wanted.memory_layout_order));
    if (found.shape != wanted.shape) return differs("shape", list(found.shape), list(wanted.shape));
    if (found.strides != wanted.strides)
        return differs("strides", list(found.strides), list(wanted.strides));
    if (found.size_in_bytes < wanted.size_in_bytes)
        return differs("size_in_bytes", std::to_string(found.size_in_bytes),
                       std::to_string(wanted.size_in_bytes));
    return {};
}

Verdict check_tensor(const NpuTensor& tensor, const NpuTensorInfo& wanted, size_t batch) {
    const auto fault = [&](const std::string& text) {
        return Verdict{refusal(wanted.direction),
                       std::string(noun(wanted.direction)) + " " + in_quotes(wanted.name) +
                           " of batch element " + std::to_string(batch) + ": " + text};
    };
    NpuTensorPriv* const priv = NpuTensorPrivAccess::get(tensor);
    if (!priv) return fault("the NpuTensor is empty");
    const std::string text = difference(priv->info, wanted);
    if (!text.empty()) return fault(text);
    if (priv->is_const && wanted.direction == TensorDirection::OUTPUT)
        return fault("the NpuTensor was made from a const buffer");
    if (const auto mapped = priv->map(); !mapped) return fault(mapped.error().message);
    return {};
}

Verdict check_list(const Expected& expected, TensorDirection direction, const Tensors& batch) {
    const auto& wanted = expected.tables->infos(direction, direction == TensorDirection::INPUT
                                                               ? expected.input_type
                                                               : expected.output_type);
    for (size_t b = 0; b < batch.size(); ++b) {
        if (batch[b].size() != wanted.size())
            return {refusal(direction), "batch element " + std::to_string(b) + " has " +
                                            std::to_string(batch[b].size()) + " " +
                                            noun(direction) + " tensors, the model has " +
                                            std::to_string(wanted.size())};
        for (size_t i = 0; i < wanted.size(); ++i)
            if (Verdict verdict = check_tensor(batch[b][i], wanted[i], b); !verdict) return verdict;
    }
    return {};
}

// Do two tensors of a call share a byte? One memory may be mapped twice: where both are known by
// their files, the places in there count, else the addresses.
bool overlap(const NpuTensor& a, size_t size_a, const NpuTensor& b, size_t size_b) {
    NpuTensorPriv* const pa = NpuTensorPrivAccess::get(a);
    NpuTensorPriv* const pb = NpuTensorPrivAccess::get(b);
    const auto share = [&](uintptr_t start_a, uintptr_t start_b) {
        return start_a < start_b + size_b && start_b < start_a + size_a;
    };
    if (pa->identity.is_known() && pb->identity.is_known()) {
        const auto offset = [](const NpuTensorPriv* p) {
            return p->object ? p->object->offset : 0;
        };
        return pa->identity == pb->identity && share(offset(pa), offset(pb));
    }
    if (pa->fd >= 0 && pa->fd == pb->fd) return true;
    return share(reinterpret_cast<uintptr_t>(*pa->map()), reinterpret_cast<uintptr_t>(*pb->map()));
}

Verdict check_overlap(const Expected& expected, const Tensors& inputs, const Tensors& outputs) {
    const auto& in = expected.tables->infos(TensorDirection::INPUT, expected.input_type);
    const auto& out = expected.tables->infos(TensorDirection::OUTPUT, expected.output_type);
    for (size_t b = 0; b < outputs.size(); ++b)
        for (size_t i = 0; i < out.size(); ++i) {
            const auto fault = [&](const NpuTensorInfo& other, size_t other_batch) {
                return Verdict{StatusCode::INVALID_OUTPUT,
                               "output " + in_quotes(out[i].name) + " of batch element " +
                                   std::to_string(b) + " shares memory with " +
                                   noun(other.direction) + " " + in_quotes(other.name) +
                                   " of batch element " + std::to_string(other_batch)};
            };
            for (size_t c = 0; c < inputs.size(); ++c)
                for (size_t j = 0; j < in.size(); ++j)
                    if (overlap(outputs[b][i], out[i].size_in_bytes, inputs[c][j],
                                in[j].size_in_bytes))
                        return fault(in[j], c);
            for (size_t c = 0; c <= b; ++c)
                for (size_t j = 0; j < (c == b ? i : out.size()); ++j)
                    if (overlap(outputs[b][i], out[i].size_in_bytes, outputs[c][j],
                                out[j].size_in_bytes))
                        return fault(out[j], c);
        }
    return {};
}

}  // namespace

Verdict check_tensors(const Expected& expected, const Tensors& inputs, const Tensors& outputs) {
    if (inputs.empty() || inputs.size() > expected.batch_size)
        return {StatusCode::INVALID_INPUT, "inputs hold " + std::to_string(inputs.size()) +
                                               " batch elements, expected 1 to " +
                                               std::to_string(expected.batch_size)};
    if (outputs.size() != inputs.size())
        return {StatusCode::INVALID_OUTPUT, "outputs hold " + std::to_string(outputs.size()) +
                                                " batch elements, the inputs " +
                                                std::to_string(inputs.size())};
    if (Verdict v = check_list(expected, TensorDirection::INPUT, inputs); !v) return v;
    if (Verdict v = check_list(expected, TensorDirection::OUTPUT, outputs); !v) return v;
    return check_overlap(expected, inputs, outputs);
}

}  // namespace vartml::runtime
