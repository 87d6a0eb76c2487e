// SPDX-License-Identifier: Apache-2.0
// Weights in the layout that a kernel asks for, packed once per process and shared by all
// executables of a model.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "lib/device/softnpu/bytes.h"

namespace vartml::softnpu {

struct Packed {
    std::shared_ptr<const Bytes> bytes;
    bool fresh = false;  // packed by this call, not shared with an earlier one
};

// What `make` gives for the weights at `source` in a layout that `layout` names completely. With
// `shareable` the weights must belong to the model itself (its mapping or import buffer), which
// every executable that holds a result also keeps alive: the address then stands for the content.
// Thread-safety: may be called concurrently.
Packed pack(const std::byte* source, const std::string& layout, bool shareable,
            const std::function<Bytes()>& make);

// The same for oneDNN: from the layout of the one descriptor to that of the other.
Packed pack(const std::byte* source, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
            bool shareable);

}  // namespace vartml::softnpu
