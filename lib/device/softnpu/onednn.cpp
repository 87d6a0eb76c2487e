// SPDX-License-Identifier: Apache-2.0
// oneDNN descriptors and the step that executes a primitive.
#include "lib/device/softnpu/onednn.h"

#include <omp.h>

namespace vartml::softnpu {
namespace {

// Streams of the CPU engine hold no state; one per thread, so that no two threads share one.
dnnl_stream_t this_thread_stream() {
    thread_local const dnnl::stream stream(cpu_engine());
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

OnednnStep::OnednnStep(std::string description, const std::vector<OnednnCall>& calls)
    : description_(std::move(description)) {
    for (const OnednnCall& from : calls) {
        Call call{from.primitive, {}, {}};
        for (const OnednnCall::Argument& a : from.arguments) {
            const auto width = static_cast<int64_t>(size_bytes(a.view.type));
            call.bound.push_back({static_cast<size_t>(a.view.buffer), a.view.offset * width,
                                  nullptr, dnnl::memory(a.desc, cpu_engine(), nullptr)});
            call.exec.push_back({a.id, call.bound.back().memory.get()});
        }
        calls_.push_back(std::move(call));
    }
    set_items(static_cast<uint32_t>(calls_.size()));
}

void OnednnStep::run(const Bases& bases, size_t item) noexcept {
    const OneThread one;
    Call& call = calls_[item];
    for (Bound& b : call.bound) {
        std::byte* const now = bases[b.buffer] + b.offset_bytes;
        if (now == b.last) continue;
        dnnl_memory_set_data_handle(b.memory.get(), now);
        b.last = now;
    }
    dnnl_primitive_execute(call.primitive.get(), this_thread_stream(),
                           static_cast<int>(call.exec.size()), call.exec.data());
}

// The primitives are the same, what they are called with is not.
std::shared_ptr<Step> OnednnStep::for_another_run(RunState&) const {
    std::shared_ptr<OnednnStep> other(new OnednnStep(*this));
    for (Call& call : other->calls_) {
        for (size_t i = 0; i < call.bound.size(); ++i) {
            Bound& b = call.bound[i];
            b.memory = dnnl::memory(b.memory.get_desc(), cpu_engine(), nullptr);
            b.last = nullptr;
            call.exec[i].memory = b.memory.get();
        }
    }
    return other;
}

OneThread::OneThread() : before_(omp_get_max_threads()) {
    omp_set_num_threads(1);
}

OneThread::~OneThread() {
    omp_set_num_threads(before_);
}

}  // namespace vartml::softnpu
