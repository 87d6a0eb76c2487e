// SPDX-License-Identifier: Apache-2.0
// given: v4l2src of AMD's boards hands out V4L2_PIX_FMT_HCWNC4_8_4_4 and its kin as RGBx.
#include "gst/support/camera_format.h"

#include <linux/videodev2.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <string_view>

#include "gst/support/upstream.h"

namespace vartml::gst {
namespace {

// Elements that hand on the frames that they get.
constexpr std::string_view plain_elements[] = {"queue", "queue2", "tee", "capsfilter", "identity"};

bool hands_on(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    return factory && std::ranges::find(plain_elements,
                                        gst_plugin_feature_get_name(GST_PLUGIN_FEATURE(factory))) !=
                          std::end(plain_elements);
}

// The descriptor of a source's V4L2 device, which it keeps; -1: it has none.
int device_of(GstElement* element) {
    GParamSpec* spec = g_object_class_find_property(G_OBJECT_GET_CLASS(element), "device-fd");
    if (element->numsinkpads > 0 || !spec || spec->value_type != G_TYPE_INT) return -1;
    int fd = -1;
    g_object_get(element, "device-fd", &fd, nullptr);
    return fd;
}

struct DeviceFormat {
    uint32_t fourcc, width, height;
};
std::optional<DeviceFormat> format_of(int fd) {
    v4l2_format format = {};
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (ioctl(fd, VIDIOC_G_FMT, &format) == 0)
        return DeviceFormat{format.fmt.pix.pixelformat, format.fmt.pix.width,
                            format.fmt.pix.height};
    format = {};
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE;
    if (ioctl(fd, VIDIOC_G_FMT, &format) == 0)
        return DeviceFormat{format.fmt.pix_mp.pixelformat, format.fmt.pix_mp.width,
                            format.fmt.pix_mp.height};
    return std::nullopt;
}

}  // namespace

std::optional<TensorFrame> camera_tensor(GstElement* element, const FrameFormat& format) {
    for (const ElementRef& one : elements_before(element)) {
        if (hands_on(one.get())) continue;
        const int fd = device_of(one.get());
        const auto given = fd < 0 ? std::nullopt : format_of(fd);
        if (!given || given->width != format.picture.width ||
            given->height != format.picture.height)
            return std::nullopt;
        auto tensor = tensor_of_fourcc(given->fourcc, given->width, given->height);
        // Else the caps are those of another camera format.
        const int pixel_bytes = GST_VIDEO_INFO_COMP_PSTRIDE(&format.info, 0);
        if (!tensor || tensor->row_bytes != uint32_t(pixel_bytes) * given->width)
            return std::nullopt;
        return tensor;
    }
    return std::nullopt;
}

}  // namespace vartml::gst
