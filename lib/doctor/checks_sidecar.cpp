// SPDX-License-Identifier: Apache-2.0
#include "lib/doctor/checks_sidecar.h"

#include <algorithm>
#include <optional>

#include <vartml/postprocess.h>

namespace vartml::doctor {
namespace {

struct Extent {
    uint32_t width = 0, height = 0;
};

// As vartmlinfer chooses its picture.
std::optional<Extent> picture_extent(const TensorInfo& input) {
    const TensorView& cpu = input.cpu;
    const auto& s = cpu.shape;
    if (s.empty() || s[0] != 1) return std::nullopt;
    const bool padded = !input.picture.empty();
    const auto is_picture = [&](uint32_t channels) {
        return channels == 1 || channels == 3 || (padded && channels == 4);
    };
    if (cpu.layout == Layout::NCHW && is_picture(s[1])) return Extent{s[3], s[2]};
    if (cpu.layout == Layout::NHWC && is_picture(s[3])) return Extent{s[2], s[1]};
    if (cpu.layout == Layout::NHW) return Extent{s[2], s[1]};
    return std::nullopt;
}

std::string feed_of(const ModelInfo& info, const std::string& input) {
    const auto said = std::ranges::find(info.inputs, input, &ModelInfo::Input::name);
    return said == info.inputs.end() ? std::string() : said->feed;
}

// The picture; nothing after a finding that there is none, or that another input has no feed.
std::optional<PictureInput> check_inputs(Examination& e, const artifact::CompiledModel& model,
                                         const ModelInfo& info) {
    std::optional<PictureInput> picture;
    bool all = true;
    for (const TensorInfo& input : model.inputs) {
        const std::string feed = feed_of(info, input.name);
        const auto extent = picture_extent(input);
        if (feed.empty() && extent && !picture) {
            picture = PictureInput{&input, extent->width, extent->height};
            e.fine("input '" + input.name + "' is the picture, " + std::to_string(extent->width) +
                   "x" + std::to_string(extent->height));
        } else if (!feed.empty()) {
            e.fine("input '" + input.name + "' is fed " + feed);
        } else if (picture || model.inputs.size() > 1) {
            all = false;
            e.problem("input '" + input.name +
                          "' is not the picture and nothing feeds it, so vartmlinfer refuses the "
                          "model; add to the sidecar",
                      "[" + input.name + "]\ndir=input\nx-vartml-feed=const:0   (or frame-size)",
                      "infer-inputs");
        }
    }
    if (!picture && all)
        e.note(
            "no input is a picture ([1, 1 or 3, height, width] or [1, height, width, 1 or 3]), "
            "so it runs in applications and not in vartmlinfer",
            "vartml run " + model.model_name);
    return all ? picture : std::nullopt;
}

void check_decoder(Examination& e, const std::string& path, const artifact::CompiledModel& model,
                   const ModelInfo& info, const PictureInput& picture) {
    DecodeFault fault;
    auto decoder = Decoder::create(info, model.outputs, picture.width, picture.height, {}, &fault);
    if (!decoder) {
        const std::string text = "vartmldecode: " + decoder.error().message;
        // Not every model finds things; a sidecar that contradicts its model is wrong, though.
        if (fault.id == "dec-unknown" && info.decoder.empty())
            return e.note(text, fault.fix, fault.id);
        return e.problem(text, fault.fix, fault.id);
    }
    const std::string family(decoder->family()), reason(decoder->reason());
    e.report.facts["model_decoder"] = family;
    const size_t labels = decoder->labels().size();
    const unsigned classes = decoder->classes();
    e.fine(
        "vartmldecode takes decoder " + family + ", by the " +
        (reason == "shapes" ? "shapes of the outputs" : reason) +
        (classes ? ", " + std::to_string(classes) + (classes == 1 ? " class" : " classes") : "") +
        (labels ? " with labels" : "") +
        (decoder->labels_source().empty() ? ""
                                          : ", which nothing names: they get the names of " +
                                                std::string(decoder->labels_source()) +
                                                ", unless label-file or the sidecar "
                                                "gives others"));
    if (classes > 1 && labels == 0)
        e.note("no labels: classes are called class-0 to class-" + std::to_string(classes - 1),
               "vartmldecode label-file=FILE   (a file of " + std::to_string(classes) + " lines)");
    check_numbers(e, path, model, info, picture, *std::move(decoder));
}

// What vartmlinfer makes of a frame, and whether anybody says that it is what the model takes.
void check_pixels(Examination& e, const artifact::CompiledModel& model, const ModelInfo& info,
                  const PictureInput& picture) {
    const PixelChoice choice =
        choose_pixels(info, model.outputs, *picture.input, picture.width, picture.height);
    if (!choice.source.empty()) return e.fine(choice.sentence());
    e.note(choice.sentence() + "; say what the model takes, in the sidecar",
           choice.section(picture.input->name) + "(or vartmlinfer preprocess='mean=… scale=…')",
           "infer-pixels");
}

}  // namespace

void check_sidecar(Examination& e, const std::string& asked, const std::string& path,
                   const artifact::CompiledModel& model) {
    const std::string* entry = model.find_file("modelinfo");
    const auto info = find_modelinfo("", asked, entry ? *entry : "");
    if (!info)
        return e.problem("sidecar: " + info.error().message, "correct the line of the sidecar",
                         "infer-sidecar");
    if (auto fits = check_modelinfo(*info, model.inputs, model.outputs); !fits)
        return e.problem(fits.error().message, "correct the line of the sidecar", "infer-sidecar");
    if (!info->file.empty())
        e.fine("the sidecar is " + info->file);
    else
        e.fine(entry ? "the sidecar is the entry 'modelinfo' of the compiled model" : "no sidecar");
    const auto picture = check_inputs(e, model, *info);
    if (!picture) return;
    check_decoder(e, path, model, *info, *picture);
    check_pixels(e, model, *info, *picture);
}

}  // namespace vartml::doctor
