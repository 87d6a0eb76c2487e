// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/families.h"

#include <algorithm>
#include <array>
#include <string>

#include "lib/vision/custom.h"
#include "lib/vision/known_labels.h"
#include "lib/vision/maps.h"
#include "lib/vision/readers.h"

namespace vartml {

namespace vision {

namespace {

// Pre-processing of the published models; numbers in the model's channel order.
constexpr PreprocessOptions imagenet_crop = {.resize = ResizeMode::crop,
                                             .mean = {123.675f, 116.28f, 103.53f},
                                             .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f},
                                             .crop_fraction = 0.875};
constexpr PreprocessOptions imagenet_stretch = {.mean = {123.675f, 116.28f, 103.53f},
                                                .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}};
constexpr PreprocessOptions rgb_unit_letterbox = {.resize = ResizeMode::letterbox,
                                                  .scale = {1 / 255.f, 1 / 255.f, 1 / 255.f}};
constexpr PreprocessOptions bgr_raw_top_left = {.resize = ResizeMode::letterbox_top_left,
                                                .channels = ChannelOrder::bgr};
constexpr PreprocessOptions rgb_127_stretch = {.mean = {127, 127, 127},
                                               .scale = {1 / 128.f, 1 / 128.f, 1 / 128.f}};
constexpr PreprocessOptions rgb_127_top_left = {.resize = ResizeMode::letterbox_top_left,
                                                .mean = {127.5f, 127.5f, 127.5f},
                                                .scale = {1 / 128.f, 1 / 128.f, 1 / 128.f},
                                                .pad = {0, 0, 0}};
constexpr PreprocessOptions bgr_raw_stretch = {.channels = ChannelOrder::bgr};
constexpr PreprocessOptions bgr_mean_stretch = {.channels = ChannelOrder::bgr,
                                                .mean = {104, 117, 123}};
constexpr PreprocessOptions bgr_unit_area = {.interpolation = Interpolation::area,
                                             .channels = ChannelOrder::bgr,
                                             .scale = {1 / 255.f, 1 / 255.f, 1 / 255.f}};
// given: MediaPipe's graphs of face detection: the aspect is kept, with black borders.
constexpr PreprocessOptions rgb_signed_letterbox = {.resize = ResizeMode::letterbox,
                                                    .mean = {127.5f, 127.5f, 127.5f},
                                                    .scale = {1 / 127.5f, 1 / 127.5f, 1 / 127.5f},
                                                    .pad = {0, 0, 0}};
// The height of the input, and as wide as the line is; behind it is what becomes 0.
constexpr PreprocessOptions bgr_signed_top_left = {.resize = ResizeMode::letterbox_top_left,
                                                   .channels = ChannelOrder::bgr,
                                                   .mean = {127.5f, 127.5f, 127.5f},
                                                   .scale = {1 / 127.5f, 1 / 127.5f, 1 / 127.5f},
                                                   .pad = {127.5f, 127.5f, 127.5f}};
// given: the numbers of CenterNet's COCO data set, with a black border.
constexpr PreprocessOptions bgr_centernet_letterbox = {
    .resize = ResizeMode::letterbox,
    .channels = ChannelOrder::bgr,
    .mean = {104.04f, 113.985f, 119.85f},
    .scale = {1 / 73.695f, 1 / 69.87f, 1 / 70.89f},
    .pad = {0, 0, 0}};
constexpr PreprocessOptions rgb_raw_stretch = {};
constexpr PreprocessOptions rgb_unit_stretch = {.scale = {1 / 255.f, 1 / 255.f, 1 / 255.f}};
// PaddleOCR reads pictures as BGR and gives them the numbers of RGB.
constexpr PreprocessOptions bgr_imagenet_rgb_stretch = {
    .channels = ChannelOrder::bgr,
    .mean = {123.675f, 116.28f, 103.53f},
    .scale = {1 / 58.395f, 1 / 57.12f, 1 / 57.375f}};
constexpr PreprocessOptions bgr_128_letterbox = {.resize = ResizeMode::letterbox,
                                                 .channels = ChannelOrder::bgr,
                                                 .mean = {128, 128, 128},
                                                 .scale = {1 / 256.f, 1 / 256.f, 1 / 256.f},
                                                 .pad = {128, 128, 128}};
constexpr PreprocessOptions bgr_imagenet_stretch = {
    .channels = ChannelOrder::bgr,
    .mean = {103.53f, 116.28f, 123.675f},
    .scale = {1 / 57.375f, 1 / 57.12f, 1 / 58.395f}};

constexpr Family table[] = {
    {.row = {"classify", "one class of the whole picture", 0, 0, imagenet_crop},
     .ids = {"classification-generic-out", "classification-generic-softmaxed-out"},
     .has_nms = false,
     .fits = fits_classify,
     .create = create_classify,
     .shapes_tell = false,
     .of_picture = true},
    {.row = {"ssd", "SSD: lists of boxes, scores, classes, count, or boxes relative to priors", 0.3,
             0.45, rgb_raw_stretch},
     .ids = {"ssd-mobilenet-v1-variant-1-out-classes"},
     .has_nms = true,
     .fits = fits_ssd,
     .create = create_ssd,
     .finds = Finds::objects,
     .knows_pixels = knows_pixels_of_ssd},
    {.row = {"yolo-v5", "YOLO v3, v4, v5, v7: boxes, objectness, classes", 0.25, 0.45,
             rgb_unit_letterbox},
     .ids = {},
     .has_nms = true,
     .fits = fits_yolo_v5,
     .create = create_yolo_v5,
     .finds = Finds::objects,
     .knows_pixels = knows_pixels_of_yolo_v5},
    {.row = {"yolo-v8", "YOLO v8, v9, v11, v12: boxes and classes", 0.25, 0.45, rgb_unit_letterbox},
     .ids = {"yolo-v8-out"},
     .has_nms = true,
     .fits = fits_yolo_v8,
     .create = create_yolo_v8,
     .finds = Finds::objects},
    {.row = {"yolo-v8-seg", "YOLO v8, v9, v11, v12 with masks", 0.25, 0.45, rgb_unit_letterbox},
     .ids = {"yolo-v8-segmentation-out-detections"},
     .has_nms = true,
     .fits = fits_yolo_v8_seg,
     .create = create_yolo_v8_seg,
     .finds = Finds::objects},
    {.row = {"yolo-v8-pose", "YOLO v8, v9, v11, v12 with keypoints", 0.25, 0.45,
             rgb_unit_letterbox},
     .ids = {},
     .has_nms = true,
     .fits = fits_yolo_v8_pose,
     .create = create_yolo_v8_pose},
    {.row = {"yolo-v8-obb", "YOLO v8, v9, v11, v12 with turned boxes", 0.25, 0.45,
             rgb_unit_letterbox},
     .ids = {},
     .has_nms = true,
     .fits = fits_yolo_v8_obb,
     .create = create_yolo_v8_obb},
    {.row = {"yolo-end2end", "YOLO v7, v10, 26 with NMS or selection in the model: final boxes",
             0.25, 0, rgb_unit_letterbox},
     .ids = {"yolo-26-end2end-out"},
     .has_nms = false,
     .fits = fits_yolo_end2end,
     .create = create_yolo_end2end,
     .finds = Finds::objects,
     .input_of = input_of_yolo_end2end,
     .knows_pixels = knows_pixels_of_yolo_end2end},
    {.row = {"yolox", "YOLOX: raw boxes, objectness, classes", 0.3, 0.45, bgr_raw_top_left},
     .ids = {},
     .has_nms = true,
     .fits = fits_yolox,
     .create = create_yolox,
     .finds = Finds::objects,
     .input_of = input_of_yolox},
    {.row = {"nanodet", "NanoDet: class scores and distances per stride", 0.4, 0.6,
             bgr_imagenet_stretch},
     .ids = {},
     .has_nms = true,
     .fits = fits_nanodet,
     .create = create_nanodet,
     .finds = Finds::objects,
     .input_of = input_of_nanodet},
    {.row = {"fastestdet", "FastestDet: one map of objectness, boxes and classes", 0.65, 0.45,
             bgr_unit_area},
     .ids = {},
     .has_nms = true,
     .fits = fits_fastestdet,
     .create = create_fastestdet,
     .finds = Finds::objects},
    {.row = {"centernet", "CenterNet: peaks of class maps, with sizes and offsets", 0.3, 0,
             bgr_centernet_letterbox},
     .ids = {},
     .has_nms = false,
     .fits = fits_centernet,
     .create = create_centernet,
     .finds = Finds::objects},
    {.row = {"detr", "DETR line: final boxes in units of the frame", 0.4, 0, rgb_unit_stretch},
     .ids = {},
     .has_nms = false,
     .fits = fits_detr,
     .create = create_detr,
     .finds = Finds::objects,
     .knows_pixels = knows_pixels_of_detr},
    {.row = {"ultraface", "UltraFace: faces as corners, or relative to priors", 0.7, 0.3,
             rgb_127_stretch},
     .ids = {"ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores"},
     .has_nms = true,
     .fits = fits_ultraface,
     .create = create_ultraface,
     .finds = Finds::faces},
    {.row = {"scrfd", "SCRFD: faces as distances per stride, with or without five landmarks", 0.5,
             0.4, rgb_127_top_left},
     .ids = {},
     .has_nms = true,
     .fits = fits_scrfd,
     .create = create_scrfd,
     .finds = Finds::faces},
    {.row = {"yunet", "YuNet: faces with five landmarks, by stride (2023) or by priors (before)",
             0.6, 0.3, bgr_raw_stretch},
     .ids = {},
     .has_nms = true,
     .fits = fits_yunet,
     .create = create_yunet,
     .finds = Finds::faces},
    {.row = {"retinaface", "RetinaFace: faces relative to priors, with or without landmarks", 0.6,
             0.4, bgr_mean_stretch},
     .ids = {},
     .has_nms = true,
     .fits = fits_retinaface,
     .create = create_retinaface,
     .finds = Finds::faces},
    {.row = {"faceboxes", "FaceBoxes: faces relative to dense priors", 0.5, 0.3, bgr_mean_stretch},
     .ids = {},
     .has_nms = true,
     .fits = fits_faceboxes,
     .create = create_faceboxes,
     .finds = Finds::faces},
    {.row = {"yolo-face", "YOLOv5-Face: faces with five landmarks", 0.3, 0.5, rgb_unit_letterbox},
     .ids = {},
     .has_nms = true,
     .fits = fits_yolo_face,
     .create = create_yolo_face,
     .finds = Finds::faces},
    {.row = {"blazeface", "BlazeFace and BlazePalm: faces with six points, palms with seven", 0.75,
             0.3, rgb_signed_letterbox},
     .ids = {},
     .has_nms = true,
     .fits = fits_blazeface,
     .create = create_blazeface,
     .weighted_nms = true,
     .input_of = input_of_blazeface},
    {.row = {"segment", "class of each pixel", 0, 0, rgb_unit_stretch},
     .ids = {},
     .has_nms = false,
     .fits = fits_segment,
     .create = create_segment,
     .shapes_tell = false,
     .of_picture = true},
    {.row = {"db-text", "DBNet, PaddleOCR detectors: lines of text, turned, from a map", 0.6, 0,
             bgr_imagenet_rgb_stretch},
     .ids = {},
     .has_nms = false,
     .fits = fits_db_text,
     .create = create_db_text,
     .shapes_tell = false},
    {.row = {"ctc-text", "CRNN, PaddleOCR recognisers: a line of text, a character per step", 0.5,
             0, bgr_signed_top_left},
     .ids = {},
     .has_nms = false,
     .fits = fits_ctc_text,
     .create = create_ctc_text,
     .of_picture = true},
    {.row = {"heatmap", "keypoints as peaks of maps", 0.3, 0, imagenet_stretch},
     .ids = {},
     .has_nms = false,
     .fits = fits_heatmap,
     .create = create_heatmap,
     .shapes_tell = false,
     .of_picture = true},
    {.row = {"openpose", "OpenPose: persons with 18 points, from heat maps and part fields", 0.25,
             0, bgr_128_letterbox},
     .ids = {},
     .has_nms = false,
     .fits = fits_openpose,
     .create = create_openpose},
    {.row = {"landmarks", "keypoints as a list of coordinates", 0.5, 0, rgb_unit_stretch},
     .ids = {},
     .has_nms = false,
     .fits = fits_landmarks,
     .create = create_landmarks,
     .shapes_tell = false,
     .of_picture = true},
    {.row = {"embedding", "what the picture looks like, as a vector", 0, 0, rgb_unit_stretch},
     .ids = {},
     .has_nms = false,
     .fits = fits_embedding,
     .create = create_embedding,
     .shapes_tell = false,
     .of_picture = true},
    {.row = {"custom", "a shared object of one's own, named by the property decoder-library", 0.25,
             0.45, rgb_unit_stretch},
     .ids = {},
     .has_nms = true,
     .fits = [](const HeadRequest&) { return false; },
     .create = create_custom,
     .shapes_tell = false},
};

constexpr auto public_rows = [] {
    std::array<DecoderFamily, std::size(table)> rows{};
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = table[i].row;
    return rows;
}();

// Names of models that are not the nick of their family, as `plain` makes them.
constexpr struct {
    std::string_view name, nick;
} aliases[] = {
    {"classification", "classify"},
    {"classifier", "classify"},
    {"deim", "detr"},
    {"dfine", "detr"},
    {"rtdetr", "detr"},
    {"segmentation", "segment"},
    {"yolo3", "yolo-v5"},
    {"yolo4", "yolo-v5"},
    {"yolo7", "yolo-v5"},
    {"yolo5face", "yolo-face"},
    {"yolo10", "yolo-end2end"},
    {"yolo26", "yolo-end2end"},
};
// The versions of Ultralytics whose heads are those of version 8.
constexpr std::string_view like_yolo8[] = {"yolo8", "yolo9", "yolo11", "yolo12"};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// "YOLOv8n-seg" and "yolo_v8 seg" as "yolo8seg".
std::string plain(std::string_view name) {
    constexpr std::string_view yolo = "yolo", sizes = "nsmlx";
    std::string text;
    for (const char c : name) {
        if (c >= 'A' && c <= 'Z')
            text += static_cast<char>(c - 'A' + 'a');
        else if ((c >= 'a' && c <= 'z') || is_digit(c))
            text += c;
        else if (c != '-' && c != '_' && c != ' ')
            return {};
    }
    if (!text.starts_with(yolo)) return text;
    size_t at = yolo.size();
    if (at + 1 < text.size() && text[at] == 'v' && is_digit(text[at + 1])) text.erase(at, 1);
    const size_t version = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    if (at == version || at == text.size() || sizes.find(text[at]) == sizes.npos) return text;
    const std::string_view rest = std::string_view(text).substr(at + 1);
    for (const std::string_view task : {"", "seg", "pose", "obb", "cls", "face"})
        if (rest == task) return text.erase(at, 1);
    return text;
}

std::string_view nick_of(std::string_view name) {
    for (const Family& family : table)
        if (family.row.nick == name) return family.row.nick;
    std::string text = plain(name);
    if (text.empty()) return {};
    for (const std::string_view version : like_yolo8) {
        if (!text.starts_with(version)) continue;
        const std::string rest = text.substr(version.size());
        if (rest == "cls") return "classify";
        if (!rest.empty() && is_digit(rest[0])) continue;
        text = std::string(like_yolo8[0]) + rest;
        break;
    }
    for (const auto& alias : aliases)
        if (alias.name == text) return alias.nick;
    for (const Family& family : table)
        if (plain(family.row.nick) == text) return family.row.nick;
    return {};
}

}  // namespace

std::span<const Family> families() {
    return table;
}

const Family* find_family(std::string_view name) {
    const std::string_view nick = nick_of(name);
    for (const Family& family : table) {
        if (family.row.nick == nick) return &family;
    }
    return nullptr;
}

DecoderFamily row_of(const Family& family, const HeadRequest& request) {
    DecoderFamily row = family.row;
    const PreprocessOptions* const input = family.input_of ? family.input_of(request) : nullptr;
    if (input) row.input = *input;
    return row;
}

namespace {

constexpr std::string_view picture_element = "vartmlpicture";
constexpr std::string_view picture_way_out = "put vartmlpicture in the place of vartmldecode";

}  // namespace

Result<ChosenFamily> choose_family(const HeadRequest& request, const std::string& wanted) {
    if (is_library(wanted)) return ChosenFamily{find_family("custom"), "property"};
    if (!wanted.empty() && wanted != "auto") {
        if (const Family* family = find_family(wanted)) return ChosenFamily{family, "property"};
        std::string nicks;
        for (const Family& family : families()) {
            if (!nicks.empty()) nicks += ", ";
            nicks += family.row.nick;
        }
        return Error{ErrorCode::invalid_argument,
                     "decoder is '" + wanted + "', expected auto or one of " + nicks};
    }
    if (!request.info.decoder.empty()) {
        if (const Family* family = find_family(request.info.decoder))
            return ChosenFamily{family, "sidecar"};
    }
    for (const Family& family : families()) {
        for (const TensorInfo& output : request.outputs) {
            const std::string_view id = tensor_id(request, output);
            if (!id.empty() && std::ranges::find(family.ids, id) != family.ids.end())
                return ChosenFamily{&family, "ids"};
        }
    }
    std::string fitting;
    const Family* only = nullptr;
    unsigned count = 0;
    bool finds_objects = false;  // one that fits
    for (const Family& family : families()) {
        if (!family.fits(request)) continue;
        only = &family;
        finds_objects |= family.finds == Finds::objects;
        if (count++) fitting += ", ";
        fitting += family.row.nick;
    }
    if (count == 1) return ChosenFamily{only, "shapes"};
    const std::string found = outputs_text(request.outputs);
    const std::string first = fitting.substr(0, fitting.find(','));
    const std::string in_need = count && !finds_objects ? readers_in_need(request) : std::string();
    const std::string fix =
        count && in_need.empty() ? "x-vartml-decoder=" + first : "x-vartml-decoder=…";
    if (request.fault) *request.fault = {"dec-unknown", found, fitting, fix};
    const std::string input = std::to_string(request.width) + "x" + std::to_string(request.height);
    if (const unsigned times = count ? 0 : times_the_picture(request)) {
        if (request.fault)
            *request.fault = {"dec-unknown", found, "", std::string(picture_element)};
        return Error{ErrorCode::not_found,
                     "the output (" + found + ") is a picture " + std::to_string(times) +
                         " times as large as the input of " + input + ", which no decoder reads; " +
                         std::string(picture_way_out)};
    }
    const bool objects = !count && may_be_objects(request);
    if (objects || (!count && may_be_picture(request))) {
        const std::string line = "x-vartml-decoder=segment";
        if (request.fault) *request.fault = {"dec-unknown", found, "segment", line};
        const std::string doubt =
            objects ? "maps of two channels that are not as large as the input may be a class "
                      "of pixels each, or scores and places of a detector, which no decoder reads"
                    : "the channels may be classes of pixels, or colours or motion, which no "
                      "decoder reads";
        return Error{ErrorCode::not_found,
                     "the output shapes (" + found + ") of an input of " + input +
                         " fit no decoder for certain: " + doubt +
                         "; if they are classes, choose segment with the property decoder or the "
                         "sidecar line " +
                         line + " in section [modelinfo]" +
                         (objects ? "" : ", else " + std::string(picture_way_out))};
    }
    const std::string partly = count ? std::string() : partial_readers(request);
    if (!partly.empty()) {
        return Error{ErrorCode::not_found, "the output shapes (" + found + ") of an input of " +
                                               input + " fit no decoder as a whole" + partly};
    }
    return Error{
        ErrorCode::not_found,
        (count ? "the output shapes (" + found + ") of an input of " + input +
                     " fit several decoders: " + fitting + in_need
               : "the output shapes (" + found + ") of an input of " + input + " fit no decoder") +
            "; choose one with the property decoder or the sidecar line " + fix +
            " in section [modelinfo]"};
}

namespace {

// How much speaks for a reading of the outputs.
unsigned right_of(const Family& family, const Head& head) {
    const unsigned classes = head.classes();
    const bool counted = (classes > 1 && !known_labels(family.row.nick, classes).source.empty()) ||
                         !skeleton_of(head.keypoints()).empty();
    return unsigned{!head.exchanged()} + unsigned{counted};
}

}  // namespace

Result<void> check_named(const HeadRequest& request, const Family& family, const Head& head) {
    // Who counted the classes confirms the decoder, whose head was checked for it.
    if (!family.shapes_tell || promised_classes(request.info)) return {};
    HeadRequest silent = request;
    silent.fault = nullptr;
    const unsigned own = right_of(family, head);
    std::string better;
    for (const Family& other : families()) {
        if (&other == &family || !other.shapes_tell || !other.fits(silent)) continue;
        const auto made = other.create(silent);
        if (made && right_of(other, **made) > own)
            better += (better.empty() ? "" : ", ") + std::string(other.row.nick);
    }
    if (better.empty()) return {};
    const std::string found = outputs_text(request.outputs);
    const std::string classes = std::to_string(head.classes());
    const std::string first = better.substr(0, better.find(','));
    return head_error(request, "dec-unfit",
                      "the outputs (" + found + ") are those of " + better + "; read as those of " +
                          std::string(family.row.nick) + " they have " + classes + " classes" +
                          (head.exchanged() ? ", and rows and columns exchanged" : "") +
                          "; choose " + first + ", or say x-vartml-num-classes=" + classes +
                          " in section [modelinfo] if that is what they are",
                      found, better, "x-vartml-decoder=" + first);
}

double iou_threshold_of(const Family& family, const ModelInfo& info) {
    constexpr double usual = 0.45;
    return info.iou_threshold.value_or(family.has_nms ? family.row.iou_threshold : usual);
}

}  // namespace vision

std::span<const DecoderFamily> decoder_families() {
    return vision::public_rows;
}

const DecoderFamily* find_decoder_family(std::string_view name) {
    const vision::Family* const family = vision::find_family(name);
    return family ? &vision::public_rows[static_cast<size_t>(family - vision::table)] : nullptr;
}

}  // namespace vartml
