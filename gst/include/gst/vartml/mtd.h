/* SPDX-License-Identifier: Apache-2.0
 * Reads what vartmldecode and vartmlzones write on frames beside GstAnalytics' own types:
 * keypoints, embeddings, lines of text, zones and what happens in them.
 *
 * They lie in the GstAnalyticsRelationMeta of a buffer, where
 * gst_analytics_relation_meta_iterate(), gst_analytics_relation_meta_get_mtd() and
 * gst_analytics_relation_meta_get_direct_related() find them by their types. A detection relates
 * (%GST_ANALYTICS_REL_TYPE_RELATE_TO) to its keypoints, embedding, text and visits; where a whole
 * frame was inferred, they stand alone. Whoever uses this header also asks pkg-config for
 * gstreamer-analytics-1.0.
 *
 * A handle of another type gives %NULL, %FALSE or 0. What is not copied is valid until something is
 * added to the meta. Pixels are those of the frame that the current caps describe. Functions are
 * only ever added. */
#ifndef GST_VARTML_MTD_H
#define GST_VARTML_MTD_H

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

G_BEGIN_DECLS

/**
 * gst_vartml_inference_mtd_get_mtd_type:
 *
 * Returns: the type of the records of inferences, to which what was decoded of one relates
 *
 * Since: 1.0
 */
GstAnalyticsMtdType gst_vartml_inference_mtd_get_mtd_type(void);

/**
 * gst_vartml_inference_mtd_get_structure:
 * @mtd: a handle
 *
 * Returns: (transfer full) (nullable): what gst_vartml_inference_get_structure() describes
 *
 * Since: 1.0
 */
GstStructure* gst_vartml_inference_mtd_get_structure(const GstAnalyticsMtd* mtd);

/**
 * gst_vartml_keypoints_mtd_get_mtd_type:
 *
 * Returns: the type of the joints or landmarks of an object or a frame
 *
 * Since: 1.0
 */
GstAnalyticsMtdType gst_vartml_keypoints_mtd_get_mtd_type(void);

/**
 * gst_vartml_keypoints_mtd_get_skeleton:
 * @mtd: a handle
 *
 * Returns: (transfer none) (nullable): the name of a skeleton, such as `coco17`, or pairs
 *   `0-1;1-2;…` of points that belong together; %NULL where it is not known
 *
 * Since: 1.0
 */
const gchar* gst_vartml_keypoints_mtd_get_skeleton(const GstAnalyticsMtd* mtd);

/**
 * gst_vartml_keypoints_mtd_get_length:
 * @mtd: a handle
 *
 * Returns: the number of points
 *
 * Since: 1.0
 */
gsize gst_vartml_keypoints_mtd_get_length(const GstAnalyticsMtd* mtd);

/**
 * gst_vartml_keypoints_mtd_get_point:
 * @mtd: a handle
 * @index: number of the point, from 0
 * @x: (out) (optional): pixels from the left
 * @y: (out) (optional): pixels from the top
 * @score: (out) (optional): 0 to 1; 1 where the model gives none
 * @visible: (out) (optional): whether the score reaches the threshold
 *
 * Returns: whether there is such a point
 *
 * Since: 1.0
 */
gboolean gst_vartml_keypoints_mtd_get_point(const GstAnalyticsMtd* mtd, gsize index, gfloat* x,
                                            gfloat* y, gfloat* score, gboolean* visible);

/**
 * gst_vartml_embedding_mtd_get_mtd_type:
 *
 * Returns: the type of what says what an object or a frame looks like
 *
 * Since: 1.0
 */
GstAnalyticsMtdType gst_vartml_embedding_mtd_get_mtd_type(void);

/**
 * gst_vartml_embedding_mtd_get_vector:
 * @mtd: a handle
 * @length: (out) (optional): how many numbers there are
 *
 * Returns: (array length=length) (transfer none) (nullable): a vector of length 1; the product of
 *   two is the cosine of their angle
 *
 * Since: 1.0
 */
const gfloat* gst_vartml_embedding_mtd_get_vector(const GstAnalyticsMtd* mtd, gsize* length);

/**
 * gst_vartml_text_mtd_get_mtd_type:
 *
 * Returns: the type of a line of text that was read
 *
 * Since: 1.0
 */
GstAnalyticsMtdType gst_vartml_text_mtd_get_mtd_type(void);

/**
 * gst_vartml_text_mtd_get_text:
 * @mtd: a handle
 * @score: (out) (optional): 0 to 1
 *
 * Returns: (transfer full) (nullable): the line in UTF-8
 *
 * Since: 1.0
 */
gchar* gst_vartml_text_mtd_get_text(const GstAnalyticsMtd* mtd, gfloat* score);

/**
 * gst_vartml_zone_mtd_get_mtd_type:
 *
 * Returns: the type of a zone or a line of the picture, with its counts so far
 *
 * Since: 1.0
 */
GstAnalyticsMtdType gst_vartml_zone_mtd_get_mtd_type(void);

/**
 * gst_vartml_zone_mtd_get_info:
 * @mtd: a handle
 * @name: (out) (optional) (transfer none): its name
 * @line: (out) (optional): whether it is a line
 * @inside: (out) (optional): tracks in a zone now
 * @in: (out) (optional): tracks that entered, or crossings from the left of the line to its right
 * @out: (out) (optional): tracks that left, or crossings the other way
 * @longest: (out) (optional): the longest stay in a zone so far
 *
 * Returns: whether it is a zone or a line
 *
 * Since: 1.0
 */
gboolean gst_vartml_zone_mtd_get_info(const GstAnalyticsMtd* mtd, const gchar** name,
                                      gboolean* line, guint64* inside, guint64* in, guint64* out,
                                      GstClockTime* longest);

/**
 * gst_vartml_zone_mtd_get_length:
 * @mtd: a handle
 *
 * Returns: the number of points of its shape
 *
 * Since: 1.0
 */
gsize gst_vartml_zone_mtd_get_length(const GstAnalyticsMtd* mtd);

/**
 * gst_vartml_zone_mtd_get_point:
 * @mtd: a handle
 * @index: number of the point, from 0
 * @x: (out) (optional): pixels from the left
 * @y: (out) (optional): pixels from the top
 *
 * Returns: whether there is such a point
 *
 * Since: 1.0
 */
gboolean gst_vartml_zone_mtd_get_point(const GstAnalyticsMtd* mtd, gsize index, gfloat* x,
                                       gfloat* y);

/**
 * gst_vartml_zone_visit_mtd_get_mtd_type:
 *
 * Returns: the type of what a tracked object does in a zone or at a line on this frame
 *
 * Since: 1.0
 */
GstAnalyticsMtdType gst_vartml_zone_visit_mtd_get_mtd_type(void);

/**
 * gst_vartml_zone_visit_mtd_get_info:
 * @mtd: a handle
 * @zone: (out) (optional) (transfer none): the name of the zone or line
 * @event: (out) (optional) (transfer none): `inside` (was there before and is now), `enter`,
 *   `leave`, `in` (went over a line from its left to its right) or `out` (the other way)
 * @label: (out) (optional) (nullable) (transfer none): of the object; %NULL where it is not known
 * @track: (out) (optional): its track
 * @dwell: (out) (optional): of `inside` and `leave`: how long it is or was there
 *
 * Returns: whether it is such an event
 *
 * Since: 1.0
 */
gboolean gst_vartml_zone_visit_mtd_get_info(const GstAnalyticsMtd* mtd, const gchar** zone,
                                            const gchar** event, const gchar** label,
                                            guint64* track, GstClockTime* dwell);

G_END_DECLS

#endif
