// SPDX-License-Identifier: Apache-2.0
// The devices of this build. An explicit table: no device registers itself.
#include <vector>

#include "lib/base/test_seams.h"
#include "lib/run/exec/device.h"
#include "lib/run/onnxruntime/onnxruntime.h"
#include "lib/run/softnpu/softnpu.h"

namespace vartml::device {
namespace {

std::vector<Device*> devices() {
    std::vector<Device*> all = {&softnpu_device()};
    if (Device* const device = test_seams.device.load()) all.push_back(device);
    return all;
}

std::string names(const std::vector<Device*>& all) {
    std::string text;
    for (const Device* device : all) text += (text.empty() ? "'" : ", '") + device->name() + "'";
    return text;
}

}  // namespace

Result<Device*> find_device(const std::string& name, const std::string& target) {
    const std::vector<Device*> all = devices();
    if (name == "auto" && onnxruntime_device().supports_target(target))
        return &onnxruntime_device();
    if (name == "xrt")
        return Error{ErrorCode::unsupported,
                     "device 'xrt' runs no programs here, XRT is memory only: set vartml_memory to "
                     "\"xrt\" for its buffers, or use AMD's VART-ML runtime for inference"};
    for (Device* device : all) {
        if (name != "auto" && name != device->name()) continue;
        if (device->supports_target(target)) return device;
        if (name != "auto")
            return Error{ErrorCode::unsupported, "device '" + name +
                                                     "' cannot run programs of "
                                                     "target '" +
                                                     target + "'; compile the model for it"};
    }
    if (name != "auto")
        return Error{ErrorCode::invalid_argument, "option 'vartml_device': device '" + name +
                                                      "' is not in this build; there is " +
                                                      names(all) + " (and \"auto\")"};
    return Error{ErrorCode::unsupported,
                 "no device runs programs of target '" + target + "'; there is " + names(all) +
                     ", for other targets: compile the model again with 'vartml compile'"};
}

}  // namespace vartml::device
