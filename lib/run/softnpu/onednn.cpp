// SPDX-License-Identifier: Apache-2.0
// oneDNN descriptors and the step that executes a primitive.
#include "lib/run/softnpu/onednn.h"

#include <dlfcn.h>

#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "lib/run/softnpu/openmp.h"

namespace vartml::softnpu {

namespace {

// Streams of the CPU engine hold no state; one per thread, so that no two threads share one.
// nullptr: there is no memory for one.
dnnl_stream_t this_thread_stream() {
    struct Stream {
        dnnl_stream_t stream = nullptr;
        Stream() {
            if (dnnl_stream_create(&stream, cpu_engine().get(), dnnl_stream_default_flags) !=
                dnnl_success)
                stream = nullptr;
        }
        Stream(const Stream&) = delete;
        ~Stream() {
            if (stream) dnnl_stream_destroy(stream);
        }
    };
    thread_local const Stream own;
    return own.stream;
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

OnednnStep::OnednnStep(std::string description, const std::vector<OnednnCall>& calls,
                       RunState& state)
    : description_(std::move(description)), state_(&state) {
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
    const dnnl_stream_t stream = this_thread_stream();
    const dnnl_status_t status =
        stream ? dnnl_primitive_execute(call.primitive.get(), stream,
                                        static_cast<int>(call.exec.size()), call.exec.data())
               : dnnl_out_of_memory;
    if (status != dnnl_success) state_->onednn_status.store(status, std::memory_order_relaxed);
}

// The primitives are the same, what they are called with is not.
std::shared_ptr<Step> OnednnStep::for_another_run(RunState& state) const {
    std::shared_ptr<OnednnStep> other(new OnednnStep(*this));
    other->state_ = &state;
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

namespace {

using Attr = const_dnnl_primitive_attr_t;
using Desc = const_dnnl_memory_desc_t;
using PrimitiveDesc = const_dnnl_primitive_desc_t;
using Engine = dnnl_engine_t;
using Dims = dnnl_dims_t;
using Alg = dnnl_alg_kind_t;
using Prop = dnnl_prop_kind_t;
using Query = dnnl_query_t;

// Its name upstream and in Debian, for the version whose header is used.
#define VARTML_TEXT(x) #x
#define VARTML_NAME(version) "libdnnl.so." VARTML_TEXT(version)
constexpr const char* upstream = VARTML_NAME(DNNL_VERSION_MAJOR);
#define VARTML_MINOR_NAME(major, minor) VARTML_NAME(major) "." VARTML_TEXT(minor)
constexpr const char* debian = VARTML_MINOR_NAME(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR);

// Never closed: code that it generated may run until the process ends.
void* handle() {
    static void* const opened = [] {
        void* const first = ::dlopen(debian, RTLD_NOW | RTLD_LOCAL);
        return first ? first : ::dlopen(upstream, RTLD_NOW | RTLD_LOCAL);
    }();
    return opened;
}

void* find(const char* name) {
    void* const found = handle() ? ::dlsym(handle(), name) : nullptr;
    if (found) return found;
    const std::string fault =
        handle() ? std::string("has no function ") + name : "cannot be loaded";
    static const std::string text =  // dnnl::error keeps the address
        std::string(debian) + " (or " + upstream + ") " + fault + "; install oneDNN";
    throw dnnl::error(dnnl_runtime_error, text.c_str());
}

}  // namespace

#define VARTML_ONEDNN(result, name, parameters, arguments)                            \
    extern "C" result DNNL_API name parameters {                                      \
        static auto* const function = reinterpret_cast<decltype(&name)>(find(#name)); \
        return function arguments;                                                    \
    }
#define VARTML_STATUS(name, parameters, arguments) \
    VARTML_ONEDNN(dnnl_status_t, name, parameters, arguments)

VARTML_ONEDNN(Desc, dnnl_primitive_desc_query_md, (PrimitiveDesc a, Query b, int c), (a, b, c))
VARTML_ONEDNN(const dnnl_version_t*, dnnl_version, (), ())
VARTML_ONEDNN(dnnl_cpu_isa_t, dnnl_get_effective_cpu_isa, (), ())
VARTML_ONEDNN(int, dnnl_memory_desc_equal, (Desc a, Desc b), (a, b))
VARTML_ONEDNN(size_t, dnnl_data_type_size, (dnnl_data_type_t a), (a))
VARTML_ONEDNN(size_t, dnnl_memory_desc_get_size_v2, (Desc a, int b), (a, b))
VARTML_STATUS(dnnl_convolution_forward_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Prop c, Alg d, Desc e, Desc f, Desc g, Desc h,
               const Dims i, const Dims j, const Dims k, const Dims l, Attr m),
              (a, b, c, d, e, f, g, h, i, j, k, l, m))
VARTML_STATUS(dnnl_deconvolution_forward_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Prop c, Alg d, Desc e, Desc f, Desc g, Desc h,
               const Dims i, const Dims j, const Dims k, const Dims l, Attr m),
              (a, b, c, d, e, f, g, h, i, j, k, l, m))
VARTML_STATUS(dnnl_eltwise_forward_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Prop c, Alg d, Desc e, Desc f, float g, float h,
               Attr i),
              (a, b, c, d, e, f, g, h, i))
VARTML_STATUS(dnnl_engine_create, (Engine * a, dnnl_engine_kind_t b, size_t c), (a, b, c))
VARTML_STATUS(dnnl_engine_destroy, (Engine a), (a))
VARTML_STATUS(dnnl_matmul_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Desc c, Desc d, Desc e, Desc f, Attr g),
              (a, b, c, d, e, f, g))
VARTML_STATUS(dnnl_memory_create_v2, (dnnl_memory_t * a, Desc b, Engine c, int d, void** e),
              (a, b, c, d, e))
VARTML_STATUS(dnnl_memory_desc_clone, (dnnl_memory_desc_t * a, Desc b), (a, b))
VARTML_STATUS(dnnl_memory_desc_create_with_strides,
              (dnnl_memory_desc_t * a, int b, const Dims c, dnnl_data_type_t d, const Dims e),
              (a, b, c, d, e))
VARTML_STATUS(dnnl_memory_desc_create_with_tag,
              (dnnl_memory_desc_t * a, int b, const Dims c, dnnl_data_type_t d,
               dnnl_format_tag_t e),
              (a, b, c, d, e))
VARTML_STATUS(dnnl_memory_desc_destroy, (dnnl_memory_desc_t a), (a))
VARTML_STATUS(dnnl_memory_desc_get_blob, (uint8_t* a, size_t* b, Desc c), (a, b, c))
VARTML_STATUS(dnnl_memory_desc_query, (Desc a, Query b, void* c), (a, b, c))
VARTML_STATUS(dnnl_memory_desc_query_v2, (Desc a, Query b, int c, void* d), (a, b, c, d))
VARTML_STATUS(dnnl_memory_destroy, (dnnl_memory_t a), (a))
VARTML_STATUS(dnnl_memory_get_data_handle_v2, (const_dnnl_memory_t a, void** b, int c), (a, b, c))
VARTML_STATUS(dnnl_memory_get_engine, (const_dnnl_memory_t a, Engine* b), (a, b))
VARTML_STATUS(dnnl_memory_get_memory_desc, (const_dnnl_memory_t a, Desc* b), (a, b))
VARTML_STATUS(dnnl_memory_set_data_handle, (dnnl_memory_t a, void* b), (a, b))
VARTML_STATUS(dnnl_pooling_forward_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Prop c, Alg d, Desc e, Desc f, const Dims g,
               const Dims h, const Dims i, const Dims j, const Dims k, Attr l),
              (a, b, c, d, e, f, g, h, i, j, k, l))
VARTML_STATUS(dnnl_post_ops_append_binary, (dnnl_post_ops_t a, Alg b, Desc c), (a, b, c))
VARTML_STATUS(dnnl_post_ops_append_sum, (dnnl_post_ops_t a, float b, int32_t c, dnnl_data_type_t d),
              (a, b, c, d))
VARTML_STATUS(dnnl_post_ops_append_eltwise, (dnnl_post_ops_t a, Alg b, float c, float d),
              (a, b, c, d))
VARTML_STATUS(dnnl_post_ops_create, (dnnl_post_ops_t * a), (a))
VARTML_STATUS(dnnl_post_ops_destroy, (dnnl_post_ops_t a), (a))
VARTML_STATUS(dnnl_primitive_attr_create, (dnnl_primitive_attr_t * a), (a))
VARTML_STATUS(dnnl_primitive_attr_destroy, (dnnl_primitive_attr_t a), (a))
VARTML_STATUS(dnnl_primitive_attr_set_post_ops, (dnnl_primitive_attr_t a, const_dnnl_post_ops_t b),
              (a, b))
VARTML_STATUS(dnnl_primitive_attr_set_scales_mask, (dnnl_primitive_attr_t a, int b, int c),
              (a, b, c))
VARTML_STATUS(dnnl_primitive_attr_set_scratchpad_mode,
              (dnnl_primitive_attr_t a, dnnl_scratchpad_mode_t b), (a, b))
VARTML_STATUS(dnnl_primitive_attr_set_zero_points_mask, (dnnl_primitive_attr_t a, int b, int c),
              (a, b, c))
VARTML_STATUS(dnnl_primitive_create, (dnnl_primitive_t * a, PrimitiveDesc b), (a, b))
VARTML_STATUS(dnnl_primitive_desc_destroy, (dnnl_primitive_desc_t a), (a))
VARTML_STATUS(dnnl_primitive_desc_query, (PrimitiveDesc a, Query b, int c, void* d), (a, b, c, d))
VARTML_STATUS(dnnl_primitive_destroy, (dnnl_primitive_t a), (a))
VARTML_STATUS(dnnl_primitive_execute,
              (const_dnnl_primitive_t a, dnnl_stream_t b, int c, const dnnl_exec_arg_t* d),
              (a, b, c, d))
VARTML_STATUS(dnnl_reduction_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Alg c, Desc d, Desc e, float f, float g,
               Attr h),
              (a, b, c, d, e, f, g, h))
VARTML_STATUS(dnnl_reorder_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Desc b, Engine c, Desc d, Engine e, Attr f),
              (a, b, c, d, e, f))
VARTML_STATUS(dnnl_softmax_forward_primitive_desc_create,
              (dnnl_primitive_desc_t * a, Engine b, Prop c, Alg d, Desc e, Desc f, int g, Attr h),
              (a, b, c, d, e, f, g, h))
VARTML_STATUS(dnnl_stream_create, (dnnl_stream_t * a, Engine b, unsigned c), (a, b, c))
VARTML_STATUS(dnnl_stream_destroy, (dnnl_stream_t a), (a))
VARTML_STATUS(dnnl_stream_wait, (dnnl_stream_t a), (a))
