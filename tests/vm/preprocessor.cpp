// SPDX-License-Identifier: Apache-2.0
// Loaded into a program (LD_PRELOAD), it shows it a camera of vivid as a board's pre-processor:
// vivid's controls by the other names, and two pads, of which the second is as large as the frames.
// Values and sizes are the kernel's.
#include "tests/vm/preprocessor.h"

#include <dlfcn.h>
#include <linux/v4l2-subdev.h>
#include <linux/videodev2.h>

#include <cstdarg>
#include <cstring>

namespace {

using Ioctl = int (*)(int, unsigned long, ...);

// The first pad takes what it is given: vivid has no picture before its frames.
int pad_format(Ioctl next, int fd, bool set, v4l2_subdev_format& pad) {
    if (pad.pad == 0) return 0;
    v4l2_format format{};
    format.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (const int result = next(fd, VIDIOC_G_FMT, &format); result != 0) return result;
    if (set) {
        format.fmt.pix.width = pad.format.width;
        format.fmt.pix.height = pad.format.height;
        if (const int result = next(fd, VIDIOC_S_FMT, &format); result != 0) return result;
    }
    pad.format.width = format.fmt.pix.width;
    pad.format.height = format.fmt.pix.height;
    return 0;
}

}  // namespace

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
    static const auto next = reinterpret_cast<Ioctl>(dlsym(RTLD_NEXT, "ioctl"));
    va_list more;
    va_start(more, request);
    void* data = va_arg(more, void*);
    va_end(more);
    if (request == VIDIOC_SUBDEV_G_FMT || request == VIDIOC_SUBDEV_S_FMT)
        return pad_format(next, fd, request == VIDIOC_SUBDEV_S_FMT,
                          *static_cast<v4l2_subdev_format*>(data));
    const int result = next(fd, request, data);
    if (result != 0 || request != VIDIOC_QUERY_EXT_CTRL) return result;
    auto& query = *static_cast<v4l2_query_ext_ctrl*>(data);
    for (const auto& one : vartml::test::stand_ins)
        if (std::strcmp(query.name, one.vivid) == 0)
            std::strncpy(query.name, one.preprocessor, sizeof query.name - 1);
    return result;
}
