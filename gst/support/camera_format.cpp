// SPDX-License-Identifier: Apache-2.0
// given: v4l2src of AMD's boards hands out V4L2_PIX_FMT_HCWNC4_8_4_4 and its kin as RGBx; names,
// fixed point and order of the controls of their pre-processor.
#include "gst/support/camera_format.h"

#include <fcntl.h>
#include <linux/media.h>
#include <linux/videodev2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "gst/support/upstream.h"

namespace vartml::gst {
namespace {

constexpr int most_media_devices = 64;

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

// The V4L2 device whose frames reach the element as they are, or -1.
int camera_of(GstElement* element) {
    for (const ElementRef& one : elements_before(element)) {
        if (!hands_on(one.get())) return device_of(one.get());
    }
    return -1;
}

// A file of the system, closed at the end.
class File {
public:
    explicit File(const std::string& path, int flags)
        : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK)) {}
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

// What a media device says of the entities behind it.
struct Topology {
    std::vector<media_v2_entity> entities;
    std::vector<media_v2_interface> interfaces;
    std::vector<media_v2_pad> pads;
    std::vector<media_v2_link> links;
};

std::optional<Topology> topology_of(int media) {
    media_v2_topology request = {};
    if (ioctl(media, MEDIA_IOC_G_TOPOLOGY, &request) != 0) return std::nullopt;
    Topology all;
    all.entities.resize(request.num_entities);
    all.interfaces.resize(request.num_interfaces);
    all.pads.resize(request.num_pads);
    all.links.resize(request.num_links);
    request.ptr_entities = reinterpret_cast<uintptr_t>(all.entities.data());
    request.ptr_interfaces = reinterpret_cast<uintptr_t>(all.interfaces.data());
    request.ptr_pads = reinterpret_cast<uintptr_t>(all.pads.data());
    request.ptr_links = reinterpret_cast<uintptr_t>(all.links.data());
    // Fails where something was plugged in meanwhile.
    if (ioctl(media, MEDIA_IOC_G_TOPOLOGY, &request) != 0) return std::nullopt;
    return all;
}

bool is_interface_link(const media_v2_link& link) {
    return (link.flags & MEDIA_LNK_FL_LINK_TYPE) == MEDIA_LNK_FL_INTERFACE_LINK;
}

// The entity behind a device file; 0: there is none.
uint32_t entity_of(const Topology& all, dev_t device) {
    for (const media_v2_interface& one : all.interfaces) {
        if (makedev(one.devnode.major, one.devnode.minor) != device) continue;
        for (const media_v2_link& link : all.links)
            if (is_interface_link(link) && link.source_id == one.id) return link.sink_id;
    }
    return 0;
}

const media_v2_pad* pad_of(const Topology& all, uint32_t id) {
    const auto found = std::ranges::find(all.pads, id, &media_v2_pad::id);
    return found == all.pads.end() ? nullptr : &*found;
}

// The entities whose data flow to this one, the nearest first.
std::vector<uint32_t> entities_upstream(const Topology& all, uint32_t entity) {
    std::vector<uint32_t> found = {entity};
    for (size_t i = 0; i < found.size(); ++i) {
        for (const media_v2_link& link : all.links) {
            if (is_interface_link(link) || !(link.flags & MEDIA_LNK_FL_ENABLED)) continue;
            const media_v2_pad *source = pad_of(all, link.source_id),
                               *sink = pad_of(all, link.sink_id);
            if (source && sink && sink->entity_id == found[i] &&
                std::ranges::find(found, source->entity_id) == found.end())
                found.push_back(source->entity_id);
        }
    }
    found.erase(found.begin());
    return found;
}

// The file of an entity's sub-device, by the kernel's name of it; "" where it has none.
std::string subdevice_of(const Topology& all, uint32_t entity) {
    for (const media_v2_link& link : all.links) {
        if (!is_interface_link(link) || link.sink_id != entity) continue;
        const auto one = std::ranges::find(all.interfaces, link.source_id, &media_v2_interface::id);
        if (one == all.interfaces.end() || one->intf_type != MEDIA_INTF_T_V4L_SUBDEV) continue;
        const std::string place = "/sys/dev/char/" + std::to_string(one->devnode.major) + ":" +
                                  std::to_string(one->devnode.minor);
        char target[256];
        const ssize_t length = ::readlink(place.c_str(), target, sizeof target);
        const std::string_view text(target, length > 0 ? size_t(length) : 0);
        const size_t slash = text.rfind('/');
        if (slash != text.npos) return "/dev/" + std::string(text.substr(slash + 1));
    }
    return {};
}

constexpr const char* code_controls[] = {"preprocess_param_alpha_1", "preprocess_param_alpha_2",
                                         "preprocess_param_alpha_3", "preprocess_param_beta_1",
                                         "preprocess_param_beta_2",  "preprocess_param_beta_3",
                                         "preprocess_int8_out_ibits"};
constexpr size_t num_controls = std::size(code_controls);

// The values of `code_controls`. Nothing where the device lacks one.
std::optional<std::array<int32_t, num_controls>> read_controls(int device) {
    std::array<v4l2_ext_control, num_controls> values = {};
    v4l2_query_ext_ctrl query = {};
    for (query.id = V4L2_CTRL_FLAG_NEXT_CTRL; ioctl(device, VIDIOC_QUERY_EXT_CTRL, &query) == 0;) {
        for (size_t i = 0; i < num_controls; ++i)
            if (std::strncmp(query.name, code_controls[i], sizeof query.name) == 0)
                values[i].id = query.id;
        const uint32_t last = query.id;
        query = {};
        query.id = last | V4L2_CTRL_FLAG_NEXT_CTRL;
    }
    if (std::ranges::find(values, 0u, &v4l2_ext_control::id) != values.end()) return std::nullopt;
    v4l2_ext_controls request = {};
    request.which = V4L2_CTRL_WHICH_CUR_VAL;
    request.count = num_controls;
    request.controls = values.data();
    if (ioctl(device, VIDIOC_G_EXT_CTRLS, &request) != 0) return std::nullopt;
    std::array<int32_t, num_controls> result;
    for (size_t i = 0; i < num_controls; ++i) result[i] = values[i].value;
    return result;
}

std::array<ColourCodes, 3> codes_of(const std::array<int32_t, num_controls>& controls) {
    constexpr double unit = 1 << 23;       // 1 in the fixed point of means and scales
    constexpr size_t slots[] = {2, 0, 1};  // red, green, blue: the controls begin with green
    const int fraction = 8 - controls[6];  // bits of a code behind the point
    std::array<ColourCodes, 3> codes;
    for (size_t colour = 0; colour < 3; ++colour) {
        const size_t slot = slots[colour];
        codes[colour] = {controls[slot] / unit, std::ldexp(controls[slot + 3] / unit, fraction)};
    }
    return codes;
}

}  // namespace

std::optional<TensorFrame> camera_tensor(GstElement* element, const FrameFormat& format) {
    const int fd = camera_of(element);
    const auto given = fd < 0 ? std::nullopt : format_of(fd);
    if (!given || given->width != format.picture.width || given->height != format.picture.height)
        return std::nullopt;
    auto tensor = tensor_of_fourcc(given->fourcc, given->width, given->height);
    // Else the caps are those of another camera format.
    const int pixel_bytes = GST_VIDEO_INFO_COMP_PSTRIDE(&format.info, 0);
    if (!tensor || tensor->row_bytes != uint32_t(pixel_bytes) * given->width) return std::nullopt;
    return tensor;
}

std::vector<std::string> subdevices_before(int video_device) {
    struct stat status;
    if (fstat(video_device, &status) != 0) return {};
    for (int number = 0; number < most_media_devices; ++number) {
        const File media("/dev/media" + std::to_string(number), O_RDONLY);
        const auto all = media.get() < 0 ? std::nullopt : topology_of(media.get());
        const uint32_t entity = all ? entity_of(*all, status.st_rdev) : 0;
        if (entity == 0) continue;
        std::vector<std::string> files;
        for (const uint32_t one : entities_upstream(*all, entity))
            if (std::string file = subdevice_of(*all, one); !file.empty())
                files.push_back(std::move(file));
        return files;
    }
    return {};
}

std::optional<std::array<ColourCodes, 3>> camera_codes(GstElement* element) {
    const int fd = camera_of(element);
    if (fd < 0) return std::nullopt;
    auto controls = read_controls(fd);
    for (const std::string& path : subdevices_before(fd)) {
        if (controls) break;
        const File device(path, O_RDONLY);
        if (device.get() >= 0) controls = read_controls(device.get());
    }
    if (!controls) return std::nullopt;
    return codes_of(*controls);
}

}  // namespace vartml::gst
