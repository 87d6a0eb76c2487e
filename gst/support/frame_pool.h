// SPDX-License-Identifier: Apache-2.0
// What an element tells the source of its frames of the memory that it likes, and the pool that it
// offers.
#pragma once
#include <gst/gst.h>

namespace vartml::gst {

// Adds to downstream's answer of an ALLOCATION query: strides and offsets are allowed, `depth`
// frames wait here, and where downstream has no pool there is one of ours, in dma-bufs where this
// process can make them. `dense`: rows without padding are best, else such of 64 bytes.
void answer_allocation(GstQuery* query, guint depth, bool dense);

}  // namespace vartml::gst
