// SPDX-License-Identifier: Apache-2.0
// A GstBufferPool whose buffers are output tensors of a runner: the device writes them, downstream
// reads them, and they come back when the last reference goes. It grows while downstream holds them
// and never blocks.
#pragma once
#include <gst/gst.h>

#include <atomic>
#include <memory>

#include "gst/support/vart_runner.h"

namespace vartml::gst {

// The pool holds the runner, because the memory belongs to it, and counts its buffers in `count`.
// Active on return; the caller owns the reference and sets it inactive when done.
GstBufferPool* output_pool_new(std::shared_ptr<vart::Runner> runner, const RunnerTensor& tensor,
                               std::shared_ptr<std::atomic<unsigned>> count);

// A pool of plain memory for CPU views that the element makes itself; owned as above.
GstBufferPool* plain_pool_new(gsize size_bytes);

// The tensor object of a buffer of an output pool.
const vart::NpuTensor& output_buffer_tensor(GstBuffer* buffer);

}  // namespace vartml::gst
