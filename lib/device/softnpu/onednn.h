// SPDX-License-Identifier: Apache-2.0
// The only place where steps meet oneDNN: descriptors from views, and a step that executes one
// primitive.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lib/device/softnpu/plan.h"

namespace vartml::softnpu {

const dnnl::engine& cpu_engine();

dnnl::memory::data_type onednn_type(DataType type);
dnnl::memory::desc descriptor(const View& view);

// Executes one primitive; the arguments are views, scratch included.
class OnednnStep final : public Step {
public:
    struct Argument {
        int id;  // DNNL_ARG_…
        View view;
        dnnl::memory::desc desc;
    };
    OnednnStep(dnnl::primitive primitive, std::string implementation,
               std::vector<Argument> arguments);
    void run(const Bases& bases) override;
    std::string describe() const override { return description; }

    std::string description;

private:
    struct Bound {
        size_t buffer;
        int64_t offset_bytes;
        std::byte* last;
        dnnl::memory memory;
    };
    dnnl::primitive primitive_;
    std::vector<Bound> bound_;
    std::vector<dnnl_exec_arg_t> exec_;
};

// An attribute with a user-provided scratchpad.
dnnl::primitive_attr user_scratchpad();

}  // namespace vartml::softnpu
