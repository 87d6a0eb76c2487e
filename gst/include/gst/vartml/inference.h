/* SPDX-License-Identifier: Apache-2.0
 * Reads from a video buffer how vartmlinfer made an inference on it. */
#ifndef GST_VARTML_INFERENCE_H
#define GST_VARTML_INFERENCE_H

#include <gst/gst.h>

G_BEGIN_DECLS

/**
 * gst_vartml_inference_get_structure:
 * @buffer: a buffer that passed through vartmlinfer
 * @index: number of the inference on this buffer, from 0
 *
 * Describes one inference as a structure named `vartml-inference`: `status` (inferred,
 * skipped-interval, skipped-late, skipped-busy, skipped-slo, skipped-flag, skipped-region,
 * skipped-still, skipped-track, failed,
 * carried: with the result of an earlier frame, pending: its own result comes on later frames),
 * `stream_id`, `frame_seq`, `infer_id`, `model`, `model_hash`, `model_epoch`, `region_x`,
 * `region_y`, `region_w`, `region_h`, `region_od`, `frame_w`, `frame_h`, `model_w`, `model_h`,
 * `resize`, `to_frame` (array of six doubles a…f: x = a·u + b·v + c, y = d·u + e·v + f from model
 * pixels to pixels of the current frame), `geometry_valid`, `tensors` (array of structures: `name`,
 * `id`, `view`, `data_type`, `layout`, `shape`, `cpu_shape`, `scale`, `zero_point`), `model_info`
 * (structure: `decoder`, `labels`, thresholds), `t_pre_us`, `t_wait_us`, `t_run_us`, `t_total_us`,
 * `batch_fill`, `fate` (what became of the frame itself: of a carried result not the status), of
 * one of the tiles of a frame `tile` and `tiles` (which, and how many there are), and where there
 * is a result `result_id` (equal on all frames that carry it), `result_seq`
 * (`frame_seq` of the frame that it was made from) and `age_ns` (how much older that frame is).
 * Fields are only ever added.
 *
 * Returns: (transfer full) (nullable): the description, or %NULL beyond the last inference
 *
 * Since: 1.0
 */
GstStructure* gst_vartml_inference_get_structure(GstBuffer* buffer, guint index);

G_END_DECLS

#endif
