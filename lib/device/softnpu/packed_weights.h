// SPDX-License-Identifier: Apache-2.0
// Weights in the layout that a oneDNN primitive asks for, packed once per process and shared by all
// executables of a model.
#pragma once
#include <cstddef>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "lib/device/softnpu/bytes.h"

namespace vartml::softnpu {

struct Packed {
    std::shared_ptr<const Bytes> bytes;
    bool fresh = false;  // packed by this call, not shared with an earlier one
};

// `source` are the bytes that `from` describes. With `shareable` the bytes must belong to the model
// itself (its mapping or import buffer), which every executable that holds a result also keeps
// alive: the address then stands for the content. Thread-safety: may be called concurrently.
Packed pack(const std::byte* source, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
            bool shareable);

}  // namespace vartml::softnpu
