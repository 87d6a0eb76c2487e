// SPDX-License-Identifier: Apache-2.0
// The table of decoder families: what a family is called, assumes, looks like and is made by.
#pragma once
#include <array>

#include "lib/vision/head.h"

namespace vartml::vision {

// What the published models of a family are trained to find: it names the classes where nothing
// else does (known_labels.h).
enum class Finds { something_else, objects, faces };

// A family as the library sees it; users see `row`.
struct Family {
    DecoderFamily row;
    std::array<std::string_view, 2>
        ids;       // tensor ids of upstream's registry that only this family has
    bool has_nms;  // false: the model did it, or there are no boxes
    bool (*fits)(const HeadRequest&);  // by the shapes of the outputs alone
    Result<std::unique_ptr<Head>> (*create)(const HeadRequest&);
    // False: too many other models have such outputs to know from them what the picture looks like.
    bool shapes_tell = true;
    bool weighted_nms = false;  // boxes that overlap become their mean
    bool of_picture = false;    // what it finds is of the whole picture and no list of boxes
    Finds finds = Finds::something_else;
    // The pixels of the form that the outputs have, where these differ; null: those of the row.
    const PreprocessOptions* (*input_of)(const HeadRequest&) = nullptr;
    // Whether models with outputs of this form take the same pixels, where the shapes tell whose
    // the outputs are; null: they do.
    bool (*knows_pixels)(const HeadRequest&) = nullptr;
};

std::span<const Family> families();
const Family* find_family(std::string_view name);  // as find_decoder_family

// What users see of the family, with the pixels of the form that the outputs have.
DecoderFamily row_of(const Family& family, const HeadRequest& request);

// The IoU from which boxes suppress each other where nobody asks for another. Families without NMS
// of their own have none; 0.45 is what their relatives use.
double iou_threshold_of(const Family& family, const ModelInfo& info);

struct ChosenFamily {
    const Family* family;
    std::string_view reason;  // "property", "sidecar", "ids", "shapes"
};
// The one choice of a family, of decoders and of whoever makes pictures into the model's input:
// what the user `wanted` ("" or "auto": nothing); then the sidecar; then the ids of the tensors;
// then their shapes, where exactly one family fits. Errors: invalid_argument (`wanted` is no
// family); not_found (none fits, or several do), which fills request.fault.
Result<ChosenFamily> choose_family(const HeadRequest& request, const std::string& wanted);

// Whether the outputs are the family's that was named, where they tell whose they are: no other
// family may read them with more right, which is the layout that it publishes, and a number of
// classes or points of a known data set. A number of classes that labels or the sidecar have
// confirms any. Errors: dec-unfit, which names those.
Result<void> check_named(const HeadRequest& request, const Family& family, const Head& head);

bool fits_blazeface(const HeadRequest& request);
bool fits_centernet(const HeadRequest& request);
bool fits_classify(const HeadRequest& request);
bool fits_ctc_text(const HeadRequest& request);
bool fits_db_text(const HeadRequest& request);
bool fits_detr(const HeadRequest& request);
bool fits_embedding(const HeadRequest& request);
bool fits_faceboxes(const HeadRequest& request);
bool fits_fastestdet(const HeadRequest& request);
bool fits_heatmap(const HeadRequest& request);
bool fits_landmarks(const HeadRequest& request);
bool fits_nanodet(const HeadRequest& request);
bool fits_openpose(const HeadRequest& request);
bool fits_retinaface(const HeadRequest& request);
bool fits_scrfd(const HeadRequest& request);
bool fits_segment(const HeadRequest& request);
bool fits_ssd(const HeadRequest& request);
bool fits_ultraface(const HeadRequest& request);
bool fits_yolo_end2end(const HeadRequest& request);
bool fits_yolo_face(const HeadRequest& request);
bool fits_yolo_v5(const HeadRequest& request);
bool fits_yolo_v8(const HeadRequest& request);
bool fits_yolo_v8_obb(const HeadRequest& request);
bool fits_yolo_v8_pose(const HeadRequest& request);
bool fits_yolo_v8_seg(const HeadRequest& request);
bool fits_yolox(const HeadRequest& request);
bool fits_yunet(const HeadRequest& request);
const PreprocessOptions* input_of_blazeface(const HeadRequest& request);
const PreprocessOptions* input_of_yolo_end2end(const HeadRequest& request);
bool knows_pixels_of_detr(const HeadRequest& request);
bool knows_pixels_of_ssd(const HeadRequest& request);
bool knows_pixels_of_yolo_v5(const HeadRequest& request);
bool knows_pixels_of_yolo_end2end(const HeadRequest& request);
const PreprocessOptions* input_of_yolox(const HeadRequest& request);
const PreprocessOptions* input_of_nanodet(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_blazeface(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_centernet(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_classify(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_ctc_text(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_custom(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_db_text(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_detr(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_embedding(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_faceboxes(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_fastestdet(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_heatmap(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_landmarks(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_nanodet(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_openpose(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_retinaface(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_scrfd(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_segment(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_ssd(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_ultraface(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_end2end(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_face(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_v5(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_v8(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_v8_obb(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_v8_pose(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolo_v8_seg(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yolox(const HeadRequest& request);
Result<std::unique_ptr<Head>> create_yunet(const HeadRequest& request);

// The forms of ssd whose model lists its boxes.
bool fits_ssd_listed(const HeadRequest& request);
bool is_of_selection(const HeadRequest& request);  // by other hands than TensorFlow's
Result<std::unique_ptr<Head>> create_ssd_listed(const HeadRequest& request);

}  // namespace vartml::vision
