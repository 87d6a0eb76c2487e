// SPDX-License-Identifier: Apache-2.0
// Pools of buffers: of output tensors that the device writes, and of frames that are offered to
// their source.
#pragma once
#include <gst/gst.h>

#include <atomic>
#include <memory>

#include "gst/support/vart_runner.h"

namespace vartml::gst {

// A pool whose buffers are output tensors of a runner: downstream reads them, and they come back
// when the last reference goes. It grows while downstream holds them and never blocks, and counts
// its buffers in `count`. Active on return; the caller owns the reference and sets it inactive when
// done: it lets go of the runner then, whose tensors stay valid without it.
GstBufferPool* output_pool_new(std::shared_ptr<vart::Runner> runner, const RunnerTensor& tensor,
                               std::shared_ptr<std::atomic<unsigned>> count);

// A pool of plain memory for CPU views that the element makes itself; owned as above.
GstBufferPool* plain_pool_new(gsize size_bytes);

// The tensor object of a buffer of an output pool.
const vart::NpuTensor& output_buffer_tensor(GstBuffer* buffer);

// Adds to downstream's answer of an ALLOCATION query: strides and offsets are allowed, `depth`
// frames wait here, and where downstream has no pool there is one of ours, in dma-bufs where this
// process can make them. `dense`: rows without padding are best, else such of 64 bytes.
void answer_allocation(GstQuery* query, guint depth, bool dense);

}  // namespace vartml::gst
