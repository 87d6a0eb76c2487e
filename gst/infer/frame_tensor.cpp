// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/frame_tensor.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <mutex>

#include <gst/allocators/gstdmabuf.h>

#include "gst/infer/lane.h"
#include "gst/support/guarded.h"

namespace vartml::gst::infer {
namespace {

// The property wins over all that is known of the model.
void apply(ResizeChoice choice, vartml::ResizeMode& resize) {
    switch (choice) {
        case ResizeChoice::automatic:
            break;
        case ResizeChoice::stretch:
            resize = vartml::ResizeMode::stretch;
            break;
        case ResizeChoice::letterbox:
            resize = vartml::ResizeMode::letterbox;
            break;
        case ResizeChoice::letterbox_top_left:
            resize = vartml::ResizeMode::letterbox_top_left;
            break;
        case ResizeChoice::crop:
            resize = vartml::ResizeMode::crop;
            break;
    }
}

std::string named(const DecoderWish& wish, const vartml::PixelChoice& choice) {
    const std::string family = choice.family ? std::string(choice.family->nick) : "no decoder";
    return "vartmldecode '" + wish.element + "' takes " + family + " (" + choice.words() + ")";
}

}  // namespace

std::optional<PictureExtent> picture_extent(const vartml::TensorView& cpu, bool four_channels) {
    const auto& s = cpu.shape;
    PictureExtent e;
    switch (cpu.layout) {
        case vartml::Layout::NCHW:
            e = {s[1], s[2], s[3]};
            break;
        case vartml::Layout::NHWC:
            e = {s[3], s[1], s[2]};
            break;
        case vartml::Layout::NHW:
            e = {1, s[1], s[2]};
            break;
        default:
            return std::nullopt;
    }
    const bool fits = e.channels == 1 || e.channels == 3 || (four_channels && e.channels == 4);
    if (s[0] != 1 || !fits) return std::nullopt;
    return e;
}

const vartml::ModelInfo::Input* sidecar_input(const vartml::ModelInfo& info,
                                              const std::string& name) {
    for (const vartml::ModelInfo::Input& input : info.inputs) {
        if (input.name == name) return &input;
    }
    return nullptr;
}

bool choose_picture_pixels(const Settings& settings, const vartml::ModelInfo& info,
                           const vartml::ModelDescription& description, size_t picture,
                           std::span<const DecoderWish> wishes, vartml::PixelChoice& choice,
                           Failure& failure) {
    const vartml::TensorInfo& input = description.inputs[picture];
    const PictureExtent extent = *picture_extent(input.cpu, true);
    const auto choose = [&](const vartml::ModelInfo& known, const std::string& decoder) {
        auto made = vartml::choose_pixels(known, description.outputs, input, extent.width,
                                          extent.height, decoder);
        apply(settings.resize, made.options.resize);
        return made;
    };
    if (wishes.empty()) {
        choice = choose(info, "");
        return true;
    }
    for (size_t i = 0; i < wishes.size(); ++i) {
        auto made = choose(info_for_decoder(info, wishes[i]), wishes[i].decoder);
        if (i > 0 && made.options != choice.options) {
            failure = {{vartml::ErrorCode::invalid_argument,
                        named(wishes[0], choice) + " and " + named(wishes[i], made) +
                            ", but a frame becomes one tensor for both; set the same decoder in "
                            "both, or say with property 'preprocess' what the model takes"},
                       "infer-decoders",
                       "preprocess"};
            return false;
        }
        if (i == 0 || choice.source.empty()) choice = std::move(made);
    }
    return true;
}

Failure pixels_doubt(const vartml::PixelChoice& choice, const std::string& input) {
    std::string keys = choice.words();
    Failure failure = {{vartml::ErrorCode::not_found,
                        choice.sentence() +
                            "; say it with property preprocess='channels=… resize=… mean=… "
                            "scale=…', or in the sidecar with x-vartml-mean, x-vartml-scale and "
                            "x-vartml-channels in section [" +
                            input + "]"},
                       "infer-pixels",
                       "preprocess"};
    failure.found = std::move(keys);
    failure.fix = choice.section(input);
    return failure;
}

namespace {

using vartml::ChannelOrder;
using vartml::Layout;

struct Row {
    Layout layout;
    uint32_t channels;
    ChannelOrder order;
    GstVideoFormat format;
    unsigned planes, bytes_per_pixel;
};
// Formats whose bytes are those of a tensor. The fourth byte of three channels in HCWNC4 may hold
// anything.
constexpr Row rows[] = {
    {Layout::HCWNC4, 3, ChannelOrder::rgb, GST_VIDEO_FORMAT_RGBx, 1, 4},
    {Layout::HCWNC4, 3, ChannelOrder::rgb, GST_VIDEO_FORMAT_RGBA, 1, 4},
    {Layout::HCWNC4, 3, ChannelOrder::bgr, GST_VIDEO_FORMAT_BGRx, 1, 4},
    {Layout::HCWNC4, 3, ChannelOrder::bgr, GST_VIDEO_FORMAT_BGRA, 1, 4},
    {Layout::HCWNC4, 4, ChannelOrder::rgb, GST_VIDEO_FORMAT_RGBA, 1, 4},
    {Layout::HCWNC4, 4, ChannelOrder::bgr, GST_VIDEO_FORMAT_BGRA, 1, 4},
    {Layout::NHWC, 3, ChannelOrder::rgb, GST_VIDEO_FORMAT_RGB, 1, 3},
    {Layout::NHWC, 3, ChannelOrder::bgr, GST_VIDEO_FORMAT_BGR, 1, 3},
    {Layout::NHWC, 4, ChannelOrder::rgb, GST_VIDEO_FORMAT_RGBA, 1, 4},
    {Layout::NHWC, 4, ChannelOrder::bgr, GST_VIDEO_FORMAT_BGRA, 1, 4},
    {Layout::NHWC, 1, ChannelOrder::gray, GST_VIDEO_FORMAT_GRAY8, 1, 1},
    {Layout::NCHW, 3, ChannelOrder::rgb, GST_VIDEO_FORMAT_RGBP, 3, 1},
    {Layout::NCHW, 3, ChannelOrder::bgr, GST_VIDEO_FORMAT_BGRP, 3, 1},
    {Layout::NCHW, 1, ChannelOrder::gray, GST_VIDEO_FORMAT_GRAY8, 1, 1},
    {Layout::NHW, 1, ChannelOrder::gray, GST_VIDEO_FORMAT_GRAY8, 1, 1},
};

constexpr std::string_view order_names[] = {"rgb", "bgr", "gray"};
std::string order_name(ChannelOrder order) {
    return std::string(order_names[size_t(order)]);
}

std::string number(double value) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    return g_ascii_formatd(text, sizeof text, "%.9g", value);
}

// (pixel - mean) * scale / step + zero point, by colour. Without a step the sidecar's numbers make
// the codes themselves.
std::optional<std::array<ColourCodes, 3>> codes_of(const vartml::TensorView& view,
                                                   const vartml::PreprocessOptions& pixels) {
    const vartml::Quantisation q = view.quantisation.value_or(vartml::Quantisation{});
    if (view.data_type != DataType::int8 || !(q.scale > 0) || pixels.channels == ChannelOrder::gray)
        return std::nullopt;
    std::array<ColourCodes, 3> codes;
    for (size_t colour = 0; colour < 3; ++colour) {
        const size_t channel = pixels.channels == ChannelOrder::bgr ? 2 - colour : colour;
        const double scale = double(pixels.scale[channel]);
        if (scale == 0) return std::nullopt;
        codes[colour] = {double(pixels.mean[channel]) - q.zero_point * q.scale / scale,
                         scale / q.scale};
    }
    return codes;
}

std::string text_of(const ColourCodes& codes) {
    char mean[G_ASCII_DTOSTR_BUF_SIZE], gain[G_ASCII_DTOSTR_BUF_SIZE];
    return "(pixel - " + std::string(g_ascii_formatd(mean, sizeof mean, "%.6g", codes.mean)) +
           ") * " + g_ascii_formatd(gain, sizeof gain, "%.6g", codes.gain);
}

std::string words_of(const vartml::TensorView& view) {
    return "tensors of " + std::string(vartml::to_string(view.data_type)) + " in " +
           std::string(vartml::to_string(view.layout));
}

// Imports of a GstMemory, which die with it: numbers of descriptors are used again. One per tensor
// that the memory was read as.
using Imports = std::vector<vart::NpuTensor>;

bool same_tensor(const vart::NpuTensorInfo& a, const vart::NpuTensorInfo& b) {
    return a.size_in_bytes == b.size_in_bytes && a.memory_layout == b.memory_layout &&
           a.data_type == b.data_type && a.shape == b.shape && a.name == b.name;
}

GQuark imports_quark() {
    static const GQuark quark = g_quark_from_static_string("vartml-frame-imports");
    return quark;
}

void free_imports(gpointer imports) {
    delete static_cast<Imports*>(imports);
}

// Two branches of a tee may look at one memory at once.
std::mutex& imports_mutex() {
    static std::mutex mutex;
    return mutex;
}

// The device may still be writing. Whatever signals come; false where it does not end.
bool wait_for_fences(int fd) {
    constexpr gint64 longest_us = G_USEC_PER_SEC;  // ours
    const gint64 end = g_get_monotonic_time() + longest_us;
    while (true) {
        pollfd wait = {fd, POLLIN, 0};
        const gint64 left_ms = std::max<gint64>((end - g_get_monotonic_time()) / 1000, 0);
        const int ready = poll(&wait, 1, static_cast<int>(left_ms));
        if (ready >= 0 || errno != EINTR) return ready > 0;
    }
}

// The tensor that reads the memory, or nothing where the device refuses it.
std::optional<vart::NpuTensor> import_memory(GstMemory* memory, const vart::NpuTensorInfo& info,
                                             bool& fresh) {
    if (memory->parent) memory = memory->parent;
    const std::lock_guard lock(imports_mutex());
    auto* object = GST_MINI_OBJECT_CAST(memory);
    auto* imports = static_cast<Imports*>(gst_mini_object_get_qdata(object, imports_quark()));
    if (!imports) {
        imports = new Imports;
        gst_mini_object_set_qdata(object, imports_quark(), imports, free_imports);
    }
    for (const vart::NpuTensor& one : *imports) {
        if (same_tensor(one.get_info(), info)) return one;
    }
    int fd = gst_dmabuf_memory_get_fd(memory);
    auto made = guarded([&] { return vart::NpuTensor(info, &fd, vart::MemoryType::DMA_FD); });
    if (!made) return std::nullopt;
    fresh = true;
    if (imports->size() >= 4) imports->erase(imports->begin());  // of models that were swapped out
    imports->push_back(*std::move(made));
    return imports->back();
}

struct Place {
    GstMemory* memory = nullptr;  // nullptr: for `reason`
    CopyReason reason = CopyReason::not_device_memory;
};

// Where a frame of dense rows lies, if the device can read it there.
Place find_memory(GstBuffer* buffer, const size_t (&offset)[GST_VIDEO_MAX_PLANES], size_t size) {
    guint index, length;
    gsize skip;
    if (!gst_buffer_find_memory(buffer, offset[0], size, &index, &length, &skip) || length != 1) {
        const bool dmabuf = gst_buffer_n_memory(buffer) > 0 &&
                            gst_is_dmabuf_memory(gst_buffer_peek_memory(buffer, 0));
        return {nullptr, dmabuf ? CopyReason::split_memory : CopyReason::not_device_memory};
    }
    GstMemory* memory = gst_buffer_peek_memory(buffer, index);
    if (!gst_is_dmabuf_memory(memory)) return {nullptr, CopyReason::not_device_memory};
    if (skip + memory->offset != 0) return {nullptr, CopyReason::unaligned};
    return {memory, {}};
}

}  // namespace

std::optional<FrameTensor> FrameTensor::create(const Lane& lane, std::string& why) {
    const RunnerTensor& input = lane.picture_tensor();
    FrameTensor result;
    result.input_ = input;
    const auto extent = picture_extent(input.cpu, true);
    const bool bytes = vartml::size_bytes(input.view.data_type) == 1;
    // Pixels of four bytes that the program itself takes three of lie as HCWNC4 has them.
    const bool padded = extent && extent->channels == 4 && lane.takes_pictures() &&
                        input.view.layout == Layout::NHWC;
    const Layout layout = padded ? Layout::HCWNC4 : input.view.layout;
    for (const Row& row : rows) {
        if (!extent || !bytes || row.layout != layout ||
            row.channels != (padded ? 3 : extent->channels))
            continue;
        if (row.channels > 1 && row.order != lane.preprocess().channels) continue;
        result.row_bytes_ = size_t(extent->width) * row.bytes_per_pixel;
        result.planes_ = row.planes;
        if (result.row_bytes_ * row.planes * extent->height != input.view.size_bytes) continue;
        result.formats_.push_back(row.format);
    }
    if (extent) {
        result.channels_ = extent->channels;
        result.width_ = extent->width;
        result.height_ = extent->height;
        if (lane.knows_pixels()) {
            result.order_ = lane.preprocess().channels;
            if (extent->channels == 3) result.codes_ = codes_of(input.view, lane.preprocess());
        }
    }
    GstCaps* tensors = result.tensor_caps();
    const bool named = !gst_caps_is_empty(tensors);
    gst_caps_unref(tensors);
    if (result.formats_.empty() && !named) {
        why = "input '" + input.info.name + "' is " +
              std::string(vartml::to_string(input.view.data_type)) + " in layout " +
              std::string(vartml::to_string(input.view.layout)) + " with " +
              std::to_string(extent ? extent->channels : 0) +
              " channels, and no caps name such bytes: expected a picture's 8 bits, bf16, fp16 or "
              "fp32 in HCWNC4, HCWNC8, HCWNC16, NHWC, NCHW or NHW";
        return std::nullopt;
    }
    return result;
}

GstCaps* FrameTensor::tensor_caps() const {
    return tensor_caps_of(input_.view.data_type, input_.view.layout, channels_, width_, height_);
}

GstCaps* FrameTensor::caps() const {
    if (formats_.empty()) return tensor_caps();
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_LIST);
    GValue drm_list = G_VALUE_INIT;
    g_value_init(&drm_list, GST_TYPE_LIST);
    for (const GstVideoFormat format : formats_) {
        GValue v = G_VALUE_INIT;
        g_value_init(&v, G_TYPE_STRING);
        g_value_set_string(&v, gst_video_format_to_string(format));
        gst_value_list_append_and_take_value(&list, &v);
        const std::string fourcc = drm_fourcc(format);
        if (fourcc.empty()) continue;
        GValue drm = G_VALUE_INIT;
        g_value_init(&drm, G_TYPE_STRING);
        g_value_set_string(&drm, fourcc.c_str());
        gst_value_list_append_and_take_value(&drm_list, &drm);
    }
    GstStructure* plain =
        gst_structure_new("video/x-raw", "width", G_TYPE_INT, int(width_), "height", G_TYPE_INT,
                          int(height_), "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, "framerate",
                          GST_TYPE_FRACTION_RANGE, 0, 1, G_MAXINT, 1, nullptr);
    GstStructure* drm = gst_structure_copy(plain);
    gst_structure_set(drm, "format", G_TYPE_STRING, "DMA_DRM", nullptr);
    const bool has_drm = gst_value_list_get_size(&drm_list) > 0;
    gst_structure_take_value(drm, "drm-format", &drm_list);
    gst_structure_take_value(plain, "format", &list);

    GstCaps* caps = gst_caps_new_empty();
    const auto dmabuf = [] {
        return gst_caps_features_new_single_static_str(GST_CAPS_FEATURE_MEMORY_DMABUF);
    };
    GstStructure* old = gst_structure_copy(plain);
    if (has_drm) {
        gst_caps_append_structure_full(caps, drm, dmabuf());
    } else {
        gst_structure_free(drm);
    }
    gst_caps_append_structure(caps, plain);
    gst_caps_append_structure_full(caps, old, dmabuf());
    gst_caps_append(caps, tensor_caps());
    return caps;
}

CapsDifference FrameTensor::compare(const GstVideoInfo& info) const {
    const GstVideoFormat format = GST_VIDEO_INFO_FORMAT(&info);
    if (std::ranges::find(formats_, format) == formats_.end()) {
        std::string wanted = formats_.empty() ? words_of(input_.view) : "";
        for (const GstVideoFormat one : formats_)
            wanted += (wanted.empty() ? "" : " or ") + std::string(gst_video_format_to_string(one));
        return {"format", gst_video_format_to_string(format), wanted};
    }
    const auto number = [](int have, uint32_t want, const char* field) {
        return CapsDifference{uint32_t(have) == want ? "" : field, std::to_string(have),
                              std::to_string(want)};
    };
    if (auto d = number(GST_VIDEO_INFO_WIDTH(&info), width_, "width"); !d.field.empty()) return d;
    if (auto d = number(GST_VIDEO_INFO_HEIGHT(&info), height_, "height"); !d.field.empty())
        return d;
    if (GST_VIDEO_INFO_PAR_N(&info) != GST_VIDEO_INFO_PAR_D(&info)) {
        return {"pixel-aspect-ratio",
                std::to_string(GST_VIDEO_INFO_PAR_N(&info)) + "/" +
                    std::to_string(GST_VIDEO_INFO_PAR_D(&info)),
                "1/1"};
    }
    return {};
}

Failure tensor_caps_failure(const CapsDifference& d) {
    Failure failure = {{vartml::ErrorCode::unsupported,
                        "property 'input-is-tensor' is yes and the caps have " + d.field + " " +
                            d.offered + ", but the model takes " + d.wanted +
                            "; change what comes before the element, or set input-is-tensor=auto "
                            "to convert frames"},
                       "infer-caps",
                       "input-is-tensor"};
    failure.found = d.offered;
    failure.expected = d.wanted;
    // Of several formats the first. No element converts to tensors.
    if (!d.wanted.starts_with("tensors"))
        failure.fix = "videoconvertscale ! video/x-raw," + d.field + "=" +
                      d.wanted.substr(0, d.wanted.find(' '));
    return failure;
}

CapsDifference FrameTensor::compare(const TensorFrame& frame) const {
    const vartml::TensorView& view = input_.view;
    const auto text = [](auto value) { return std::string(vartml::to_string(value)); };
    if (frame.type != view.data_type) return {"type", text(frame.type), text(view.data_type)};
    if (frame.layout != view.layout) return {"layout", text(frame.layout), text(view.layout)};
    // A slot of a block that no channel needs may hold anything.
    const bool blocks = view.layout == Layout::HCWNC4 || view.layout == Layout::HCWNC8 ||
                        view.layout == Layout::HCWNC16;
    if (blocks ? frame.channels < channels_ : frame.channels != channels_)
        return {"channels", std::to_string(frame.channels), std::to_string(channels_)};
    if (frame.width != width_)
        return {"width", std::to_string(frame.width), std::to_string(width_)};
    if (frame.height != height_)
        return {"height", std::to_string(frame.height), std::to_string(height_)};
    if (channels_ > 1 && frame.order && order_ && *frame.order != *order_)
        return {"channel-order", order_name(*frame.order), order_name(*order_)};
    // A view of the CPU has rows of its own length, where those of the caps are padded.
    if (size_t{frame.row_bytes} * frame.rows != view.size_bytes)
        return {"rows of bytes", std::to_string(frame.row_bytes),
                std::to_string(view.size_bytes / std::max(frame.rows, 1u))};
    if (!view.quantisation) return {};  // what the codes mean is the model's own matter
    const vartml::Quantisation& codes = *view.quantisation;
    if (frame.scale && std::abs(*frame.scale - codes.scale) > 1e-6 * codes.scale)
        return {"scale", number(*frame.scale), number(codes.scale)};
    if (frame.zero_point && *frame.zero_point != codes.zero_point)
        return {"zero-point", std::to_string(*frame.zero_point), std::to_string(codes.zero_point)};
    return {};
}

CapsDifference FrameTensor::compare(const std::array<ColourCodes, 3>& codes) const {
    constexpr double one_code = 1;  // what rounding and values typed by hand may cost
    constexpr const char* colours[] = {"red", "green", "blue"};
    for (size_t colour = 0; codes_ && colour < 3; ++colour) {
        const ColourCodes &have = codes[colour], &want = (*codes_)[colour];
        for (const double pixel : {0., 255.}) {
            const double distance =
                (pixel - have.mean) * have.gain - (pixel - want.mean) * want.gain;
            if (!(std::abs(distance) <= one_code))
                return {colours[colour], text_of(have), text_of(want)};
        }
    }
    return {};
}

namespace {

// "frames … are the tensor that …" for another model.
void refuse_model(const std::string& frames, const CapsDifference& d, const Settings& settings,
                  const Lane& lane, Failure& failure) {
    failure = {{vartml::ErrorCode::unsupported,
                frames + " for another model: their " + d.field + " is " + d.offered +
                    ", and model '" + lane.record()->model + "' takes " + d.wanted +
                    "; program the camera for this one with `vartml camera`, or choose its model"},
               "infer-camera",
               "model"};
    failure.found = d.offered;
    failure.expected = d.wanted;
    failure.fix = "vartml camera " + settings.model + " --subdev DEVICE --set";
}

}  // namespace

bool suits_camera(const Settings& settings, const Lane& lane, const FrameTensor& tensor,
                  const std::array<ColourCodes, 3>& codes, Failure& failure) {
    const CapsDifference d = tensor.compare(codes);
    if (d.field.empty()) return true;
    refuse_model("frames are the tensor that a camera's pre-processing made", d, settings, lane,
                 failure);
    return false;
}

bool suits_tensor(const Settings& settings, const Lane& lane, const TensorFrame& frame,
                  Failure& failure) {
    const std::string frames =
        "frames of '" + frame.name + "' are the tensor that a camera's pre-processing made";
    const auto refuse = [&](const std::string& why, const char* property) {
        failure = {{vartml::ErrorCode::unsupported, frames + why}, "infer-camera", property};
        return false;
    };
    if (settings.input_is_tensor == InputIsTensor::no)
        return refuse(
            ", and input-is-tensor=no would pre-process them a second time; set "
            "input-is-tensor=auto, or take the camera's picture",
            "input-is-tensor");
    if (settings.region != InferenceRegion::full_frame)
        return refuse(std::string(", and inference-region=") + region_nick(settings.region) +
                          " would pre-process parts of them a second time; set "
                          "inference-region=full-frame, or take the camera's picture",
                      "inference-region");
    if (settings.motion_threshold > 0)
        return refuse(", in which nobody can see what moves; set motion-threshold=0",
                      "motion-threshold");
    const std::string model = "model '" + lane.record()->model + "'";
    if (lane.takes_pictures() && frame.type != DataType::uint8)
        return refuse(", and " + model +
                          " has its own, which would pre-process them a second time; take the "
                          "camera's picture, or compile without --embed-preprocess",
                      nullptr);
    std::string why;
    const auto tensor = FrameTensor::create(lane, why);
    const CapsDifference d = tensor ? tensor->compare(frame) : CapsDifference{"type", "", why};
    if (d.field.empty()) return true;
    refuse_model(frames, d, settings, lane, failure);
    return false;
}

FrameTensor::Rows FrameTensor::rows_of(const FrameFormat& format) const {
    if (format.tensor) return {1, format.tensor->row_bytes, format.tensor->rows};
    return {planes_, row_bytes_, height_};
}

namespace {

// A frame whose rows the metadata describes, if any, whatever its format is called.
bool copy_rows(GstBuffer* buffer, const TensorFrame& frame, uint8_t* to) {
    const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    const size_t offset = meta ? meta->offset[0] : 0;
    const size_t stride = meta ? size_t(std::max(meta->stride[0], 0)) : frame.row_bytes;
    GstMapInfo map;
    if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) return false;
    const bool fits = stride >= frame.row_bytes &&
                      offset + stride * (frame.rows - 1) + frame.row_bytes <= map.size;
    for (uint32_t y = 0; fits && y < frame.rows; ++y, to += frame.row_bytes)
        std::memcpy(to, map.data + offset + y * stride, frame.row_bytes);
    gst_buffer_unmap(buffer, &map);
    return fits;
}

}  // namespace

bool FrameTensor::copy(GstBuffer* buffer, const FrameFormat& format, void* tensor) const {
    if (format.tensor) return copy_rows(buffer, *format.tensor, static_cast<uint8_t*>(tensor));
    GstVideoFrame frame;
    if (!map_frame(&frame, format.info, buffer, GST_MAP_READ)) return false;
    auto* to = static_cast<uint8_t*>(tensor);
    for (unsigned plane = 0; plane < planes_; ++plane) {
        const auto* from = static_cast<const uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, plane));
        for (uint32_t y = 0; y < height_; ++y, to += row_bytes_) {
            std::memcpy(to, from, row_bytes_);
            from += GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane);
        }
    }
    gst_video_frame_unmap(&frame);
    return true;
}

FrameTensor::Result FrameTensor::put(GstBuffer* buffer, const FrameFormat& format, const Lane& lane,
                                     Request* request, bool may_import) const {
    const auto [planes, row_bytes, rows] = rows_of(format);
    size_t offset[GST_VIDEO_MAX_PLANES];
    int stride[GST_VIDEO_MAX_PLANES];
    const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    for (unsigned i = 0; i < planes; ++i) {
        offset[i] = meta ? meta->offset[i] : format.info.offset[i];
        stride[i] = meta ? meta->stride[i] : format.info.stride[i];
    }
    bool dense = true;
    for (unsigned i = 0; i < planes; ++i) {
        dense = dense && size_t(stride[i]) == row_bytes &&
                offset[i] == offset[0] + i * row_bytes * rows;
    }
    Result result;
    const size_t picture = lane.picture();
    const Place place = find_memory(buffer, offset, size_bytes());
    result.reason = place.reason;
    if (place.memory || place.reason != CopyReason::not_device_memory) {
        if (!dense) {
            result.reason = CopyReason::strided;
        } else if (place.memory && may_import) {
            if (auto tensor = import_memory(place.memory, input_.info, result.new_import)) {
                if (!wait_for_fences(gst_dmabuf_memory_get_fd(place.memory))) {
                    result.failed = result.unfinished = true;
                    return result;
                }
                request->inputs[picture] = *std::move(tensor);
                request->frame = gst_buffer_ref(buffer);
                result.imported = true;
                return result;
            }
            result.reason = CopyReason::import_refused;
        } else if (place.memory) {
            result.reason = CopyReason::import_refused;
        }
    }
    request->inputs[picture] = request->memory[picture].tensor;
    result.failed = !copy(buffer, format, request->memory[picture].data);
    return result;
}

}  // namespace vartml::gst::infer
