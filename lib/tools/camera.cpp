// SPDX-License-Identifier: Apache-2.0
// `vartml camera`: the settings of a board's pre-processor whose frames are a model's input.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include <vartml/log.h>
#include <vartml/model.h>
#include <vartml/postprocess.h>

#include "lib/base/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/camera_plan.h"
#include "lib/tools/commands.h"

namespace vartml::tools {
namespace {

struct Request {
    std::string model, sidecar, input, size = "1920x1080";
    CameraPlaces places = {.media = "/dev/media0", .entity = {}, .subdev = {}};
    bool set = false;
};

Result<std::pair<uint32_t, uint32_t>> parse_size(const std::string& text) {
    unsigned width = 0, height = 0;
    char more = 0;
    if (text.size() > 11 || std::sscanf(text.c_str(), "%ux%u%c", &width, &height, &more) != 2)
        return Error{ErrorCode::invalid_argument,
                     "--size: is '" + text + "', expected WIDTHxHEIGHT such as 1920x1080"};
    return std::pair<uint32_t, uint32_t>{width, height};
}

Result<TensorInfo> find_input(const Request& request, const ModelDescription& model) {
    std::string names;
    for (const TensorInfo& tensor : model.inputs) {
        const bool is_picture = tensor.cpu.shape.size() == 4;
        if (request.input.empty() ? is_picture : tensor.name == request.input) return tensor;
        names += (names.empty() ? "'" : ", '") + tensor.name + "'";
    }
    return Error{ErrorCode::unsupported,
                 "model '" + request.model + "': has no input " +
                     (request.input.empty() ? "of four dimensions" : "'" + request.input + "'") +
                     ", only " + names + "; name the picture with --input"};
}

Result<CameraPlan> make_plan(const Request& request) {
    const auto size = parse_size(request.size);
    if (!size) return size.error();
    const auto model = open_model(request.model);
    if (!model) return model.error();
    const auto info = find_modelinfo(request.sidecar, request.model, model->modelinfo);
    if (!info) return info.error();
    if (auto fits = check_modelinfo(*info, model->inputs, model->outputs); !fits)
        return fits.error();
    const auto input = find_input(request, *model);
    if (!input) return input.error();
    const auto& shape = input->cpu.shape;
    const bool last = input->cpu.layout == Layout::NHWC;
    const PixelChoice pixels = shape.size() != 4
                                   ? PixelChoice{}
                                   : choose_pixels(*info, model->outputs, *input,
                                                   shape[last ? 2 : 3], shape[last ? 1 : 2]);
    return plan_camera(request.model, *input, pixels, size->first, size->second);
}

// The kernel's name of a sub-device, which is also its entity's. "" where there is none.
std::string entity_of(const std::string& subdev) {
    const std::string device = std::filesystem::path(subdev).filename().string();
    auto text = read_file("/sys/class/video4linux/" + device + "/name", 4096);
    if (!text || device.empty()) return {};
    return text->substr(0, text->find('\n'));
}

Result<void> set(const CameraPlan& plan, const std::string& device) {
    const Fd file(::open(device.c_str(), O_RDWR | O_CLOEXEC));
    if (!file) return system_error(device, "open it as the sub-device of a camera", errno);
    return set_camera(plan, device, [&](unsigned long request, void* data) {
        return ::ioctl(file.get(), request, data);
    });
}

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

}  // namespace

int camera(int argc, const char* const* argv) {
    Request r;
    CLI::App app(
        "Prints the lines that set a board's camera pre-processor so that its frames are the input "
        "of a compiled model: sizes, mean, scale and position of the point.",
        "vartml camera");
    app.add_option("MODEL", r.model, "a compiled model whose input is int8")
        ->required()
        ->type_name("");
    app.add_option("--subdev", r.places.subdev, "the pre-processor, such as /dev/v4l-subdev3")
        ->type_name("DEVICE");
    app.add_flag("--set", r.set, "set it too, on the sub-device");
    app.add_option("--size", r.size, "of the camera's picture")
        ->type_name("WxH")
        ->capture_default_str();
    app.add_option("--media", r.places.media, "the media device of the pre-processor")
        ->type_name("DEVICE")
        ->capture_default_str();
    app.add_option("--entity", r.places.entity,
                   "name of the pre-processor in it [the sub-device's own name]")
        ->type_name("NAME");
    app.add_option("--input", r.input, "name of the picture input [the first of four dimensions]")
        ->type_name("NAME");
    app.add_option("--modelinfo", r.sidecar, "a sidecar, instead of the model's own")
        ->type_name("FILE");
    app.footer(
        "SUBDEV and ENTITY stand in the lines for what is not known. The pipeline behind such a\n"
        "camera has vartmlinfer input-is-tensor=yes. Exit status: 0 done, 1 fault of files or\n"
        "devices, 2 usage, 4 the pre-processor cannot make this model's input.");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    if (r.set && r.places.subdev.empty())
        return fail({ErrorCode::invalid_argument,
                     "--set: needs the sub-device of the pre-processor; give it with --subdev "
                     "DEVICE, such as /dev/v4l-subdev3"});

    const auto plan = make_plan(r);
    if (!plan) return fail(plan.error());
    if (r.places.entity.empty()) r.places.entity = entity_of(r.places.subdev);
    if (r.set)
        if (auto done = set(*plan, r.places.subdev); !done) return fail(done.error());
    for (const std::string& warning : plan->warnings)
        log(LogLevel::warning, "", r.model + ": " + warning);
    if (r.places.entity.empty()) r.places.entity = "ENTITY";
    if (r.places.subdev.empty()) r.places.subdev = "SUBDEV";
    std::fputs(camera_lines(*plan, r.places).c_str(), stdout);
    return exit_done;
}

}  // namespace vartml::tools
