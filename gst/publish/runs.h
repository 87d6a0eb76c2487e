// SPDX-License-Identifier: Apache-2.0
// Masks as lengths of runs.
#pragma once
#include <gst/gst.h>

#include <optional>

#include <vartml/publish.h>

namespace vartml::gst {

// Adds a mask picture (GRAY8 or GRAY16_LE with GstVideoMeta) to the record's runs: `regions` writes
// pairs of region and length, else pixels of 0 and others by turns. Nothing where the picture
// cannot be read.
std::optional<vartml::RecordMask> add_runs(GstBuffer* picture, bool regions,
                                           vartml::FrameRecord& record);

}  // namespace vartml::gst
