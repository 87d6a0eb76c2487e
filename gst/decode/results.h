// SPDX-License-Identifier: Apache-2.0
// Decoded boxes and classes as upstream's analytics metadata.
#pragma once
#include <vector>

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <vartml/postprocess.h>

namespace vartml::gst {

// Labels as quarks, looked up once per class.
class LabelQuarks {
public:
    explicit LabelQuarks(const vartml::Decoder& decoder) : decoder_(&decoder) {}
    GQuark operator[](int32_t class_id);

private:
    const vartml::Decoder* decoder_;
    std::vector<GQuark> quarks_;
};

// Where results belong.
struct ResultContext {
    guint inference_id = 0;  // Mtd of the inference; only if has_inference
    bool has_inference = false;
    int region_od = -1;   // OD of the region that was inferred, or -1
    GQuark skeleton = 0;  // of keypoints; 0 = not known
};

// Adds to the buffer's relation meta (made if absent)
//   per box: an OD in whole pixels, corners rounded to nearest, and a class; OD -> class and OD ->
//   inference are RELATE_TO,
//            OD -> region's OD is IS_PART_OF; a box without a whole pixel is left out
//   per box also, where there are: keypoints and a mask (a segmentation of one region, id 1); OD ->
//   them is RELATE_TO
//   of the whole picture or region: one ClsMtd with all classes; per class map a segmentation with
//   a region per class that occurs and a ClsMtd of their labels in the order of the regions, levels
//   -1 (not known, as upstream has it); keypoints; an embedding; a line of text. Each -> inference,
//   and the region's OD -> each, are RELATE_TO
// Returns the number of boxes added. The buffer must be writable.
unsigned add_results(GstBuffer* buffer, const vartml::Decoded& decoded, LabelQuarks& quarks,
                     const ResultContext& context);

}  // namespace vartml::gst
