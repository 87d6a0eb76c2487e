// SPDX-License-Identifier: Apache-2.0
// The only place where steps meet oneDNN: descriptors from views, and a step that executes one
// primitive.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "lib/run/softnpu/plan.h"

namespace vartml::softnpu {

const dnnl::engine& cpu_engine();

dnnl::memory::data_type onednn_type(DataType type);
dnnl::memory::desc descriptor(const View& view);

// A primitive, made for one thread, and what it works on.
struct OnednnCall {
    struct Argument {
        int id;  // DNNL_ARG_…
        View view;
        dnnl::memory::desc desc;
    };
    dnnl::primitive primitive;
    std::string implementation;
    std::vector<Argument> arguments;
    dnnl::memory::desc scratchpad;
};

// With a source and a destination, as most begin.
template <typename Primitive>
OnednnCall onednn_call(const typename Primitive::primitive_desc& desc, const View& src,
                       const View& dst) {
    return {Primitive(desc),
            desc.impl_info_str(),
            {{DNNL_ARG_SRC, src, desc.src_desc()}, {DNNL_ARG_DST, dst, desc.dst_desc()}},
            desc.scratchpad_desc()};
}

// Executes primitives, one per item.
class OnednnStep final : public Step {
public:
    OnednnStep(std::string description, const std::vector<OnednnCall>& calls, RunState& state);
    void run(const Bases& bases, size_t item) noexcept override;
    void share_among(unsigned) override {}
    std::shared_ptr<Step> for_another_run(RunState&) const override;
    std::string describe() const override { return description_; }

private:
    OnednnStep(const OnednnStep& other) = default;
    struct Bound {
        size_t buffer;
        int64_t offset_bytes;
        std::byte* last;
        dnnl::memory memory;
    };
    // By one thread at a time; a cache line of its own.
    struct alignas(64) Call {
        dnnl::primitive primitive;
        std::vector<Bound> bound;
        std::vector<dnnl_exec_arg_t> exec;
    };
    std::string description_;
    std::vector<Call> calls_;
    RunState* state_;
};

// oneDNN, and what uses OpenMP beside it, works on the calling thread alone while this object
// lives: primitives are made for one thread and run on one.
class OneThread {
public:
    OneThread();
    ~OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

private:
    int before_;
};

}  // namespace vartml::softnpu
