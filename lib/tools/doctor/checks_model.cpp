// SPDX-License-Identifier: Apache-2.0
// The model: readable, for which device, whether it fits, which device answers, which views it has.
#include <algorithm>
#include <any>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <vartml/compile.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/model/compiled_model.h"
#include "lib/model/target.h"
#include "lib/tools/doctor/checks.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/vision/modelinfo.h"

namespace vartml::doctor {

// What a model needs beside its program: sidecar, picture input, feeds of the others, decoder.

// `asked` is the path that the user named, beside which a sidecar may lie; `path` is compiled.
void check_sidecar(Examination& e, const std::string& asked, const std::string& path,
                   const artifact::CompiledModel& model);

// The input of a model that takes the picture, and the size of that.
struct PictureInput {
    const TensorInfo* input;
    uint32_t width, height;
};
// Runs the model once and looks at the numbers that `decoder` gets.
void check_numbers(Examination& e, const std::string& path, const artifact::CompiledModel& model,
                   const ModelInfo& info, const PictureInput& picture, Decoder decoder);

namespace {

std::string mib(uint64_t bytes) {
    return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

// The compiled model of an ONNX file; "" after a problem.
std::string compiled(Examination& e, const std::string& model) {
    if (!model.ends_with(".onnx")) return model;
    CompileOptions options;
    options.cache_dir = e.request.surroundings.cache_folder;
    options.compiler = e.request.surroundings.compiler;
    e.request.progress("compiling " + model);
    const auto result = compile_onnx(model, options);
    if (result) return result->path;
    e.problem("cannot be compiled: " + result.error().message,
              way_out(result.error().message, model));
    return {};
}

std::string change_for(const Error& error, const std::string& model) {
    return error.code == ErrorCode::not_found || error.code == ErrorCode::io
               ? "ls -ld " + shell_word(model)
               : "vartml compile MODEL.onnx -o MODEL.rai";
}

// Weights and arenas of all partitions, or of those on the NPU.
uint64_t bytes_needed(const artifact::CompiledModel& model, bool npu_only = false) {
    uint64_t bytes = 0;
    for (const artifact::Partition& p : model.partitions) {
        if (npu_only && p.kind != artifact::PartitionKind::npu) continue;
        bytes += p.arena_size_bytes;
        for (const graph::Value& v : p.graph.values)
            if (v.constant) bytes += v.constant->bytes.size();
    }
    return bytes;
}

void check_size(Examination& e, const artifact::CompiledModel& model) {
    const uint64_t needed = bytes_needed(model), free = available_memory_bytes();
    const device::Target* const target = device::find_target(model.device);
    const uint64_t limit = target ? target->memory_bytes : 0;
    const std::string what = "weights and intermediate tensors take " + mib(needed);
    const uint64_t on_npu = bytes_needed(model, true);
    if (limit && on_npu > limit)
        return e.problem("does not fit: weights and intermediate tensors take " + mib(on_npu) +
                             " on the NPU, and " + model.device + " has " + mib(limit),
                         "vartml compile MODEL.onnx --device softnpu --quantize FOLDER");
    if (free && needed > free)
        return e.problem("does not fit: " + what + ", and this machine has " + mib(free) + " free",
                         "ps -eo rss,pid,comm --sort=-rss | head");
    e.fine("fits: " + what +
           (limit ? ", of it " + mib(on_npu) + " of " + mib(limit) + " on the NPU" : ""));
}

void check_views(Examination& e, const std::vector<TensorInfo>& tensors, const char* direction) {
    for (const TensorInfo& tensor : tensors)
        if (!tensor.hw)
            e.note(std::string(direction) + " '" + tensor.name +
                       "' has a CPU view only, because a CPU partition has it: it is copied",
                   std::string(direction) == "output" ? "vartmlinfer output-tensor-type=auto" : "");
}

void check_partitions(Examination& e, const artifact::CompiledModel& model,
                      const std::string& path) {
    const artifact::Summary& s = model.summary;
    const uint32_t others = s.total.operators - s.offloaded.operators;
    if (others == 0) return e.fine("all operators run on the NPU");
    std::string first;
    if (!s.fallbacks.empty())
        first = ", the first " + s.fallbacks[0].op_type + " '" + s.fallbacks[0].node +
                "': " + s.fallbacks[0].text;
    e.note(std::to_string(others) + " of " + std::to_string(s.total.operators) +
               " operators run on the CPU" + first,
           "vartml inspect --summary " + shell_word(path));
}

void check_batch(Examination& e, const artifact::CompiledModel& model, const std::string& path) {
    const std::string got = std::to_string(model.actual_batch_size);
    if (model.actual_batch_size >= model.desired_batch_size)
        return e.fine("batch " + got + ", the most frames of a run");
    const std::string wanted = std::to_string(model.desired_batch_size);
    e.note("batch " + wanted + " was asked for and " + got + " compiled, so frames run in " + got +
               "s",
           "vartml inspect " + shell_word(path));
}

// The runtime has the last word.
void check_runner(Examination& e, const std::string& asked, const std::string& path,
                  const artifact::CompiledModel& model) {
    const auto view = [](const std::vector<TensorInfo>& tensors) {
        const bool all =
            std::ranges::all_of(tensors, [](const auto& t) { return t.hw.has_value(); });
        return std::any(std::string(all ? "HW" : "CPU"));
    };
    try {
        const auto runner =
            vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path,
                                               {{"input_tensor_type", view(model.inputs)},
                                                {"output_tensor_type", view(model.outputs)},
                                                {"log_level", std::any(std::string("WARNING"))}});
        const auto text = [&](const char* key) {
            return std::any_cast<std::string>(runner->get_property(key));
        };
        e.report.facts["model_compute_type"] = text("compute_type");
        e.fine("device " + text("backend") + " answers and runs it, float work in " +
               text("compute_type"));
    } catch (const std::exception& error) {
        const bool lacks_onnxruntime =
            std::string_view(error.what()).find("needs ONNX Runtime") != std::string_view::npos;
        e.problem(std::string("no device runs it: ") + error.what(),
                  lacks_onnxruntime          ? "apt install libonnxruntime1.21"
                  : asked.ends_with(".onnx") ? "vartml compile " + asked
                                             : "vartml compile MODEL.onnx -o MODEL.rai");
    }
}

void check_one(Examination& e, const std::string& asked) {
    const std::string path = compiled(e, asked);
    if (path.empty()) return;
    const auto model = artifact::read(path);
    if (!model) return e.problem(model.error().message, change_for(model.error(), path));
    e.report.facts["model"] = model->model_name;
    e.report.facts["model_device"] = model->device;
    e.report.facts["model_target"] = model->target;
    e.fine(path + " is a valid compiled model of '" + model->model_name + "' (" + model->format +
           ") for " + model->device + " (program target " + model->target + "), by " +
           model->tool_version);
    check_runner(e, asked, path, *model);
    check_size(e, *model);
    check_partitions(e, *model, path);
    check_batch(e, *model, path);
    const size_t before = e.report.findings.size();
    check_views(e, model->inputs, "input");
    check_views(e, model->outputs, "output");
    if (e.report.findings.size() == before) e.fine("every input and output has a HW view");
    check_sidecar(e, asked, path, *model);
}

}  // namespace

void check_model(Examination& e) {
    for (const std::string& model : e.request.models) {
        const size_t before = e.report.findings.size();
        check_one(e, model);
        if (e.request.models.size() == 1) continue;
        for (size_t i = before; i < e.report.findings.size(); ++i)
            e.report.findings[i].text.insert(0, model + ": ");
    }
}

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
std::optional<PictureInput> check_inputs(Examination& e, const std::string& path,
                                         const artifact::CompiledModel& model,
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
            "vartml run " + shell_word(path));
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
    if (const std::string presumption = decoder->presumption(); !presumption.empty())
        e.note("vartmldecode: " + presumption, "x-vartml-decoder=…", "dec-unnamed");
    if (classes > 1 && labels == 0)
        e.note("no labels: classes are called class-0 to class-" + std::to_string(classes - 1),
               "vartmldecode label-file=FILE   (a file of " + std::to_string(classes) + " lines)");
    check_numbers(e, path, model, info, picture, *std::move(decoder));
}

bool nearly_equal(const PreprocessOptions& a, const PreprocessOptions& b) {
    constexpr float same_mean = 1, same_scale = 0.02f;  // 127 is 127.5, 1/255 is 1/256
    for (size_t c = 0; c < a.mean.size(); ++c)
        if (std::abs(a.mean[c] - b.mean[c]) > same_mean ||
            std::abs(a.scale[c] - b.scale[c]) > same_scale * std::abs(b.scale[c]))
            return false;
    return a.channels == b.channels && a.resize == b.resize;
}

// What the models of the decoder take, where all of them take the same and `choice` is another.
std::optional<PixelChoice> other_pixels(const artifact::CompiledModel& model, ModelInfo info,
                                        const PictureInput& picture, const PixelChoice& choice) {
    if (!picture.input->picture.empty()) return std::nullopt;  // bytes as they are
    for (ModelInfo::Input& input : info.inputs)
        if (input.name == picture.input->name && input.picture.empty())
            input = vision::seen_in_graph(input);
    PixelChoice usual =
        choose_pixels(info, model.outputs, *picture.input, picture.width, picture.height);
    if (!usual.source.starts_with("decoder ") || nearly_equal(choice.options, usual.options))
        return std::nullopt;
    return usual;
}

// What vartmlinfer makes of a frame, and whether anybody says that it is what the model takes.
void check_pixels(Examination& e, const artifact::CompiledModel& model, const ModelInfo& info,
                  const PictureInput& picture) {
    const PixelChoice choice =
        choose_pixels(info, model.outputs, *picture.input, picture.width, picture.height);
    if (const auto usual = other_pixels(model, info, picture, choice))
        return e.note("pictures are fed as " + choice.words() +
                          ", as the sidecar says; models of " + usual->source + " take " +
                          usual->words() +
                          ": if this one was trained as they are, it finds less, or nothing; "
                          "correct the sidecar",
                      usual->section(picture.input->name), "infer-pixels");
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
    const auto picture = check_inputs(e, path, model, *info);
    if (!picture) return;
    check_decoder(e, path, model, *info, *picture);
    check_pixels(e, model, *info, *picture);
}

// One run on a picture of nothing in particular: whether the decoder that the shapes chose can mean
// these numbers. Shapes alone do not tell regressions from boxes.
namespace {

using vart::TensorDirection;
using vart::TensorType;
using Tensors = std::vector<vart::NpuTensor>;

Tensors allocate(const vart::Runner& runner, TensorDirection direction) {
    Tensors tensors;
    for (const auto& info : runner.get_tensors_info(direction, TensorType::CPU))
        tensors.push_back(const_cast<vart::Runner&>(runner).allocate_npu_tensor(info));
    return tensors;
}

// Coloured areas, a slope and a little texture.
std::vector<uint8_t> some_picture(uint32_t width, uint32_t height) {
    std::vector<uint8_t> pixels(size_t{width} * height * 3);
    for (uint32_t y = 0; y < height; ++y) {
        for (uint32_t x = 0; x < width; ++x) {
            uint8_t* pixel = &pixels[(size_t{y} * width + x) * 3];
            const bool inside = x > width / 4 && x < width / 2 && y > height / 4;
            pixel[0] = static_cast<uint8_t>(inside ? 200 : 60 + 120 * x / width);
            pixel[1] = static_cast<uint8_t>(inside ? 150 : 90 + 100 * y / height);
            pixel[2] = static_cast<uint8_t>(110 + (x * 7 + y * 13) % 32);
        }
    }
    return pixels;
}

// Fills the picture; the others as the sidecar says, for a frame of the picture's size. False where
// one of them cannot be filled here.
bool fill_inputs(const Tensors& tensors, const artifact::CompiledModel& model,
                 const ModelInfo& info, const PictureInput& picture) {
    for (size_t i = 0; i < tensors.size(); ++i) {
        const TensorInfo& input = model.inputs[i];
        void* memory = const_cast<void*>(tensors[i].get_virtual_address());
        if (&input == picture.input) {
            const PixelChoice choice =
                choose_pixels(info, model.outputs, input, picture.width, picture.height);
            const PictureInfo frame{
                .format = PixelFormat::RGB, .width = picture.width, .height = picture.height};
            auto preprocessor =
                Preprocessor::create(frame, {}, input.cpu, input.cpu, choice.options);
            if (!preprocessor) return false;
            const auto pixels = some_picture(picture.width, picture.height);
            preprocessor->run({.planes = {pixels.data()}, .stride_bytes = {picture.width * 3}},
                              memory);
            continue;
        }
        const auto said = std::ranges::find(info.inputs, input.name, &ModelInfo::Input::name);
        std::vector<float> values;
        if (said == info.inputs.end()) return false;
        if (said->feed == "frame-size")
            values = {static_cast<float>(picture.width), static_cast<float>(picture.height)};
        else if (!said->feed.starts_with("const:") ||
                 !vision::parse_numbers(std::string_view(said->feed).substr(6), values))
            return false;
        for (size_t k = 0; k < input.cpu.size; ++k) {
            const float value = values[values.size() == 1 ? 0 : std::min(k, values.size() - 1)];
            const auto whole = static_cast<int64_t>(value);
            if (input.cpu.data_type == DataType::float32)
                std::memcpy(static_cast<float*>(memory) + k, &value, sizeof value);
            else if (input.cpu.data_type == DataType::int64)
                std::memcpy(static_cast<int64_t*>(memory) + k, &whole, sizeof whole);
            else
                return false;
        }
    }
    return true;
}

// What the decoder says after the run; nothing where the model could not be run like this.
std::optional<std::string> doubt_after_run(Decoder& decoder, const std::string& path,
                                           const artifact::CompiledModel& model,
                                           const ModelInfo& info, const PictureInput& picture) {
    const auto runner =
        vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path,
                                           {{"input_tensor_type", std::any(std::string("CPU"))},
                                            {"output_tensor_type", std::any(std::string("CPU"))},
                                            {"log_level", std::any(std::string("WARNING"))}});
    std::vector<Tensors> in{allocate(*runner, TensorDirection::INPUT)};
    std::vector<Tensors> out{allocate(*runner, TensorDirection::OUTPUT)};
    if (in[0].size() != model.inputs.size() || out[0].size() != model.outputs.size() ||
        !fill_inputs(in[0], model, info, picture) ||
        runner->execute(in, out) != vart::StatusCode::SUCCESS)
        return std::nullopt;
    std::vector<OutputTensor> tensors;
    for (size_t i = 0; i < model.outputs.size(); ++i) {
        const TensorInfo& output = model.outputs[i];
        tensors.push_back({out[0][i].get_virtual_address(), output.name, &output.cpu, &output.cpu});
    }
    Decoded decoded;
    const auto done = decoder.decode(tensors, {}, picture.width, picture.height, decoded);
    return done ? decoder.doubt() : done.error().message;
}

}  // namespace

void check_numbers(Examination& e, const std::string& path, const artifact::CompiledModel& model,
                   const ModelInfo& info, const PictureInput& picture, Decoder decoder) {
    std::optional<std::string> doubt;
    try {
        doubt = doubt_after_run(decoder, path, model, info, picture);
    } catch (const std::exception&) {
        return;  // the check of the device says why
    }
    if (!doubt) return;
    if (const std::string suspicion = decoder.suspicion(); doubt->empty() && !suspicion.empty())
        return e.note("vartmldecode: " + suspicion,
                      "vartmldecode decoder=…   (or x-vartml-decoder=…)", "dec-full");
    if (doubt->empty()) return e.fine("the numbers of a run are what that decoder reads");
    e.problem("vartmldecode: " + *doubt, "vartmldecode decoder=…   (or x-vartml-decoder=…)",
              "dec-implausible");
}

}  // namespace vartml::doctor
