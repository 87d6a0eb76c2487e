// SPDX-License-Identifier: Apache-2.0
// oneDNN descriptors and the step that executes a primitive.
#include "lib/device/softnpu/onednn.h"

namespace vartml::softnpu {
namespace {

// Streams of the CPU engine hold no state; one per thread, so that no two threads share one.
dnnl_stream_t this_thread_stream() {
    thread_local dnnl::stream stream(cpu_engine());
    return stream.get();
}

}  // namespace

const dnnl::engine& cpu_engine() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

dnnl::memory::data_type onednn_type(DataType type) {
    using T = dnnl::memory::data_type;
    switch (type) {
        case DataType::float32:
            return T::f32;
        case DataType::bf16:
            return T::bf16;
        case DataType::fp16:
            return T::f16;
        case DataType::int8:
            return T::s8;
        case DataType::uint8:
            return T::u8;
        case DataType::int32:
            return T::s32;
        default:
            return T::undef;
    }
}

dnnl::memory::desc descriptor(const View& view) {
    return dnnl::memory::desc(view.dims, onednn_type(view.type), view.strides);
}

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attr;
}

OnednnStep::OnednnStep(dnnl::primitive primitive, std::string implementation,
                       std::vector<Argument> arguments)
    : description(std::move(implementation)), primitive_(std::move(primitive)) {
    for (const Argument& a : arguments) {
        const auto width = static_cast<int64_t>(size_bytes(a.view.type));
        bound_.push_back({static_cast<size_t>(a.view.buffer), a.view.offset * width, nullptr,
                          dnnl::memory(a.desc, cpu_engine(), nullptr)});
        exec_.push_back({a.id, bound_.back().memory.get()});
    }
}

void OnednnStep::run(const Bases& bases) {
    for (Bound& b : bound_) {
        std::byte* const now = bases[b.buffer] + b.offset_bytes;
        if (now == b.last) continue;
        dnnl_memory_set_data_handle(b.memory.get(), now);
        b.last = now;
    }
    dnnl_primitive_execute(primitive_.get(), this_thread_stream(), static_cast<int>(exec_.size()),
                           exec_.data());
}

}  // namespace vartml::softnpu
