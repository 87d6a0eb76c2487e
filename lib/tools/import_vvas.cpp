// SPDX-License-Identifier: Apache-2.0
// `vartml import-vvas`: a configuration of VVAS's vvas_xinfer as launch line and sidecar.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <vartml/log.h>
#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/compile/onnx/import.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/vvas_config.h"

namespace vartml::tools {

// A configuration of vvas_xinfer as properties of our elements and a sidecar.

struct VvasImportOptions {
    std::string model;    // instead of the configuration's
    std::string labels;   // file, instead of the configuration's
    std::string input;    // name of the picture input; "" = the model's own, if it is there
    std::string sidecar;  // where the sidecar goes
};

struct VvasImport {
    std::string launch;  // one line
    std::string sidecar;
    std::vector<std::string> warnings;
};

// Errors: invalid_argument naming the file and the key; those of read_labels.
Result<VvasImport> import_vvas_config(const VvasConfig& config, const VvasImportOptions& options);

namespace {

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

// x.json becomes x.modelinfo.
std::string default_sidecar(const std::string& file) {
    return (file.ends_with(".json") ? file.substr(0, file.size() - 5) : file) + ".modelinfo";
}

}  // namespace

int import_vvas(int argc, const char* const* argv) {
    CLI::App app(
        "Prints the launch line that does what an element vvas_xinfer with this configuration "
        "does, "
        "and writes the model's sidecar. Keys without counterpart are named on standard error; an "
        "unknown key is an error.",
        "vartml import-vvas");
    std::string file, preprocess_file;
    VvasImportOptions options;
    app.add_option("FILE", file,
                   "config-file (VVAS 6) or infer-config (VVAS 1 to 3) of vvas_xinfer")
        ->required();
    app.add_option("--preprocess-config", preprocess_file, "the second file of VVAS 1 to 3")
        ->type_name("FILE");
    app.add_option("-o,--output", options.sidecar, "the sidecar [FILE with the ending .modelinfo]")
        ->type_name("FILE");
    app.add_option("--model", options.model, "the model, instead of the configuration's")
        ->type_name("FILE");
    app.add_option("--labels", options.labels,
                   "labels, one per line, instead of the configuration's")
        ->type_name("FILE");
    app.add_option("--input", options.input, "name of the model's picture input [the model's own]")
        ->type_name("NAME");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    const bool is_default = options.sidecar.empty();
    if (is_default) options.sidecar = default_sidecar(file);

    const auto config = read_vvas_config(file, preprocess_file);
    if (!config) return fail(config.error());
    const auto imported = import_vvas_config(*config, options);
    if (!imported) return fail(imported.error());
    const std::string read[] = {file,           preprocess_file,    options.model,
                                options.labels, config->onnx_model, config->vart_model,
                                config->labels};
    if (auto good = check_output("-o", options.sidecar, read); !good) return fail(good.error());
    if (is_default) {
        constexpr size_t most_bytes = size_t{1} << 20;
        const auto there = read_file(options.sidecar, most_bytes);
        if (there ? *there != imported->sidecar : there.error().code != ErrorCode::not_found)
            return fail({ErrorCode::invalid_argument,
                         options.sidecar +
                             ": is there and says something else; name the new one with -o, or "
                             "remove it"});
    }
    if (auto written = write_output(options.sidecar, imported->sidecar); !written)
        return fail(written.error());
    for (const std::string& warning : imported->warnings) log(LogLevel::warning, "", warning);
    std::printf("%s\n", imported->launch.c_str());
    return exit_done;
}

namespace {

using Properties = std::vector<std::pair<std::string, std::string>>;

// Most of properties batch-size and async-depth of vartmlinfer.
constexpr int64_t most_frames = 64;

class Importer {
public:
    Importer(const VvasConfig& config, const VvasImportOptions& options)
        : config_(config), options_(options) {}

    Result<VvasImport> run() {
        for (auto step :
             {&Importer::choose_model, &Importer::choose_decoder, &Importer::read_labels,
              &Importer::set_preprocess, &Importer::set_regions})
            if (auto done = (this->*step)(); !done) return done.error();
        // A name that a section cannot have, say.
        if (auto parsed = parse_modelinfo(sidecar_, ""); !parsed)
            return fault("makes no sidecar: " + parsed.error().message);
        set_frames();
        name_left_out();
        auto launch = launch_line();
        if (!launch) return launch.error();
        return VvasImport{*std::move(launch), sidecar_, std::move(warnings_)};
    }

private:
    Error fault(const std::string& what) const {
        return {ErrorCode::invalid_argument, config_.file + ": " + what};
    }
    void warn(const std::string& what) { warnings_.push_back(config_.file + ": " + what); }
    void infer(const char* name, std::string value) { infer_.emplace_back(name, std::move(value)); }

    Result<void> choose_model();
    Result<void> choose_decoder();
    Result<void> choose_yolo();
    Result<void> choose_by_type();
    Result<void> choose_by_head();
    void choose_class();
    Result<void> read_labels();
    Result<void> set_preprocess();
    Result<void> set_scaler(ModelInfo::Input& input);
    Result<void> set_normalisation(ModelInfo::Input& input);
    Result<void> set_regions();
    void set_frames();
    void take_frames_as_tensors();
    void name_left_out();
    Result<std::string> launch_line();
    void find_picture_input();

    const VvasConfig& config_;
    const VvasImportOptions& options_;
    Properties infer_, decode_;
    bool decodes_ = false, is_tensor_ = false;
    ModelInfo info_;
    TensorInfo picture_;  // without name where the model is not here, without shape likewise
    std::string model_, sidecar_;
    std::vector<std::string> warnings_;
};

// ---- the model --------------------------------------------------------------------------------

Result<void> Importer::choose_model() {
    const bool vart = config_.runtime == "vart";
    model_ = !options_.model.empty() ? options_.model
             : vart                  ? config_.vart_model
                                     : config_.onnx_model;
    if (model_.empty() && config_.dpu)
        return fault("model '" + config_.dpu_folder +
                     (config_.dpu_folder.empty() || config_.dpu_folder.ends_with('/') ? "" : "/") +
                     config_.dpu_name +
                     "' is a program for a DPU; give the ONNX model that it was "
                     "made from with --model FILE");
    if (model_.empty())
        return fault(vart ? "key 'infer-config.vart-config.vart-model-path' is not set; set it, or "
                            "give --model FILE"
                          : "key 'infer-config.onnxrt-config.onnx-model-path' is not set, and "
                            "'inference-backend-runtime' is onnxrt; set one of them, or give "
                            "--model FILE");
    find_picture_input();
    infer("model", model_);
    infer("modelinfo-file", options_.sidecar);
    std::error_code error;
    const std::filesystem::path cache = config_.cache_dir;
    if (!vart && cache.is_absolute() && !std::filesystem::exists(cache, error))
        warn("cache folder '" + config_.cache_dir +
             "' is not here and left out, so compiled models go to the user's cache; property "
             "cache-dir of vartmlinfer names another");
    else if (!vart && !cache.empty())
        infer("cache-dir", config_.cache_dir);
    if (!vart) return {};
    if (!config_.output_view.empty()) infer("output-tensor-type", config_.output_view);
    std::string structure = "options";
    for (const auto& [name, value] : config_.runner_options) {
        structure += "," + name + "=" + value;
        // What a structure takes without quotes of its own.
        const auto is_plain = [](unsigned char c) {
            return std::isalnum(c) || std::string_view("_-+/:.()").find(static_cast<char>(c)) !=
                                          std::string_view::npos;
        };
        if (!std::ranges::all_of(value, is_plain))
            return fault("runner option " + name + " is '" + value +
                         "', expected letters, digits and _-+/:. only; rename the file");
    }
    if (!config_.runner_options.empty()) infer("runner-options", structure);
    return {};
}

// The input that is named, or the first with one or three channels.
void Importer::find_picture_input() {
    picture_.name = options_.input;
    const auto take = [&](const TensorInfo& tensor) {
        const auto& shape = tensor.cpu.shape;
        const bool is_picture =
            shape.size() == 4 && (shape[1] == 1 || shape[1] == 3 || shape[3] == 1 || shape[3] == 3);
        const bool wanted = options_.input.empty() ? is_picture : tensor.name == options_.input;
        if (wanted) picture_ = tensor;
        return wanted;
    };
    std::error_code error;
    if (!std::filesystem::exists(model_, error)) return;
    if (model_.ends_with(".onnx") && !std::filesystem::is_directory(model_, error)) {
        const auto imported = onnx::import_onnx(model_);
        if (!imported) return;
        for (const graph::ValueId id : imported->graph.inputs) {
            const graph::Value& value = imported->graph.value(id);
            TensorInfo tensor;
            tensor.name = value.name;
            tensor.cpu.data_type = value.type.data_type;
            tensor.cpu.layout = Layout::NCHW;
            tensor.cpu.shape.assign(value.type.shape.begin(), value.type.shape.end());
            if (take(tensor)) return;
        }
        return;
    }
    const auto description = open_model(model_);
    if (!description) return;
    for (const TensorInfo& tensor : description->inputs)
        if (take(tensor)) return;
}

// ---- post-processing --------------------------------------------------------------------------

Result<void> Importer::choose_decoder() {
    if (config_.dpu) {
        choose_class();
    } else if (config_.library.find("postprocess_resnet") != std::string::npos) {
        info_.decoder = "classify";
        info_.activation = config_.no_softmax.value_or(false) ? "none" : "softmax";
        decodes_ = true;
    } else if (config_.library.find("postprocess_yolo") != std::string::npos) {
        decodes_ = true;
        if (auto done = choose_yolo(); !done) return done;
    } else if (config_.library.find("postprocess_vart") != std::string::npos) {
        if (auto done = choose_by_type(); !done) return done;
    } else if (!config_.library.empty()) {
        warn("'postprocess-config.library-path' is '" + config_.library +
             "', which no decoder family stands for; the tensors stay on the frame, or set "
             "x-vartml-decoder in the sidecar and put vartmldecode behind vartmlinfer");
    } else {
        warn("has no 'postprocess-config', so the tensors stay on the frame");
    }
    const bool is_classifier = info_.decoder.empty() || info_.decoder == "classify";
    if (config_.top_k.value_or(1) > 1 && is_classifier)
        decode_.emplace_back("top-k", std::to_string(*config_.top_k));
    else if (config_.top_k.value_or(1) > 1)
        warn("left out: postprocess-config.library-config.topk (it concerns classifiers)");
    if (config_.class_agnostic.value_or(false)) decode_.emplace_back("nms", "class-agnostic");
    return {};
}

// given: presets and defaults of "YOLO presets" and "YOLO output tensor layout".
Result<void> Importer::choose_yolo() {
    std::optional<bool> grid, objectness;
    if (config_.preset == "x") grid = objectness = true;
    if (config_.preset == "5" || config_.preset == "7") objectness = true;
    if (config_.preset == "8" || config_.preset == "9" || config_.preset == "11" ||
        config_.preset == "12")
        objectness = false;
    if (config_.grid) grid = config_.grid;
    if (config_.objectness) objectness = config_.objectness;
    if (grid.value_or(false) && !objectness.value_or(true))
        return fault(
            "'box_grid_decode' is true and 'has_objectness_score' false, which no decoder "
            "family does; known: grid with objectness (yolox), neither grid nor "
            "objectness (yolov8), objectness alone (yolov5)");
    if (grid.value_or(false))
        info_.decoder = "yolox";
    else if (objectness)
        info_.decoder = *objectness ? "yolo-v5" : "yolo-v8";
    else
        warn(
            "says neither 'preset' nor 'has_objectness_score'; vartmldecode finds the decoder by "
            "the shapes of the tensors");
    info_.score_threshold = config_.score.value_or(0.25);
    info_.iou_threshold = config_.iou.value_or(0.45);
    info_.max_detections = static_cast<unsigned>(config_.max_detections.value_or(300));
    if (info_.decoder == "yolox") info_.strides = config_.strides;
    if (config_.sigmoid.value_or(false)) info_.activation = "sigmoid";
    return {};
}

// given: types, keys and defaults of the "postprocess-config reference" of the VEK385 design.
Result<void> Importer::choose_by_type() {
    struct Row {
        std::string_view type;
        const char *decoder, *activation;  // "" where the head of a detector decides
    };
    static constexpr Row rows[] = {
        {"SOFTMAX", "classify", "softmax"},
        {"TOPK", "classify", "none"},
        {"ARGMAX", "classify", "none"},
        {"LABEL_MAPPING", "classify", "none"},
        {"NMS", "", ""},
        {"CLASSWISE_NMS", "", ""},
        {"OBJECT_COUNT", "", ""},
        {"SOFTMAXSEG", "segment", "softmax"},
        {"ARGMAXSEG", "segment", "none"},
        {"SIGMOIDSEG", "segment", "none"},
    };
    const auto* row = std::ranges::find(rows, config_.type, &Row::type);
    if (row == std::end(rows)) {
        std::string known;
        for (const Row& one : rows) known += (known.empty() ? "" : ", ") + std::string(one.type);
        warn("'postprocess-config.library-config.type' is '" + config_.type +
             "', which no decoder family stands for; known: " + known +
             "; the tensors stay on the frame");
        return {};
    }
    decodes_ = true;
    if (!*row->decoder) return choose_by_head();
    info_.decoder = row->decoder;
    info_.activation = row->activation;
    return {};
}

// The stride of each output, smallest first, where both sides of every grid have the same.
std::vector<int> strides_of(const std::vector<std::pair<int, int>>& grids,
                            const TensorInfo& input) {
    const auto& shape = input.cpu.shape;
    if (shape.size() != 4) return {};
    const bool last = shape[3] == 1 || shape[3] == 3;
    const auto height = static_cast<int>(shape[last ? 1 : 2]),
               width = static_cast<int>(shape[last ? 2 : 3]);
    std::vector<int> strides;
    for (const auto& [rows, columns] : grids) {
        const int stride = height / rows;
        if (stride * rows != height || stride * columns != width) return {};
        strides.push_back(stride);
    }
    std::ranges::sort(strides);
    return strides;
}

Result<void> Importer::choose_by_head() {
    const std::string head = "'postprocess-config.library-config.model-params.";
    const bool objectness = config_.objectness.value_or(false);
    if (!objectness && !config_.anchors.empty())
        return fault(head +
                     "anchors' has boxes and 'is-obj-score-included' is not true, which no decoder "
                     "family does; known: anchors with it (yolo-v5), it alone (yolo-v5, yolox), "
                     "neither (yolo-v8)");
    const bool has_boxes =
        !config_.anchors.empty() ||
        std::ranges::any_of(config_.anchors_per_cell, [](int n) { return n > 1; });
    // Boxes that the graph leaves in cells of the grid, one in each, are YOLOX's.
    const bool is_yolox = objectness && !has_boxes && config_.scaled.value_or(false);
    info_.decoder = is_yolox ? "yolox" : objectness ? "yolo-v5" : "yolo-v8";
    info_.anchors = config_.anchors;
    if (is_yolox) info_.strides = strides_of(config_.grids, picture_);
    info_.score_threshold = config_.score.value_or(0.5);
    info_.iou_threshold = config_.iou.value_or(0.4);
    if (config_.sigmoid.value_or(false)) info_.activation = "sigmoid";
    if (!config_.anchors.empty())
        warn(head + "anchors' are taken for pixels of the input, smallest grid cells first");
    return {};
}

// Classes of Vitis AI's library that a decoder family stands for.
void Importer::choose_class() {
    static constexpr std::pair<std::string_view, std::string_view> families[] = {
        {"CLASSIFICATION", "classify"},
        {"VEHICLECLASSIFICATION", "classify"},
        {"SSD", "ssd"},
        {"TFSSD", "ssd"},
        {"YOLOV3", "yolo-v5"},
    };
    const auto* row = std::ranges::find(families, config_.dpu_class,
                                        &std::pair<std::string_view, std::string_view>::first);
    if (config_.max_detections.value_or(0) > 0)
        info_.max_detections = static_cast<unsigned>(*config_.max_detections);
    if (row == std::end(families)) {
        warn("'kernel.config.model-class' is '" + config_.dpu_class +
             "', which no decoder family stands for; the tensors stay on the frame");
        return;
    }
    info_.decoder = row->second;
    decodes_ = true;
}

Result<void> Importer::read_labels() {
    const std::string& file = options_.labels.empty() ? config_.labels : options_.labels;
    if (file.empty()) {
        if (config_.library.find("postprocess_yolo") != std::string::npos)
            warn(
                "has no 'class_label_file', for which VVAS takes the 80 names of COCO; give them "
                "with --labels FILE, or boxes are called class-<n>");
        return {};
    }
    auto labels = vartml::read_labels(file);
    // A file of the board, where the labels are not asked for by name.
    if (!labels && labels.error().code == ErrorCode::not_found && options_.labels.empty() &&
        std::filesystem::path(file).is_absolute()) {
        warn("label file '" + file +
             "' is not here, so the sidecar has no labels; give them with --labels FILE, or "
             "classes are called by their numbers");
        return {};
    }
    if (!labels)
        return Error{labels.error().code,
                     config_.file + ": " + labels.error().message +
                         (options_.labels.empty() ? "; give the labels with --labels FILE" : "")};
    info_.labels = *std::move(labels);
    return {};
}

// ---- pre-processing ---------------------------------------------------------------------------

Result<void> Importer::set_normalisation(ModelInfo::Input& input) {
    constexpr std::string_view colours[] = {"r", "g", "b"};
    for (size_t i = 0; i < 3; ++i) {
        for (const auto* list : {&config_.mean, &config_.scale})
            if (!(*list)[i])
                return fault("key 'preprocess-config." +
                             std::string(list == &config_.mean ? "mean-" : "scale-") +
                             std::string(colours[i]) + "' is not set, expected a number");
        input.mean.push_back(static_cast<float>(*config_.mean[i]));
        input.scale.push_back(static_cast<float>(*config_.scale[i]));
    }
    if (config_.model_format != "BGR") return {};
    // The sidecar's numbers are in the model's order.
    std::ranges::reverse(input.mean);
    std::ranges::reverse(input.scale);
    return {};
}

Result<void> Importer::set_scaler(ModelInfo::Input& input) {
    input.resize = ResizeMode::stretch;
    if (!config_.dpu && config_.keep_aspect.value_or(false))
        input.resize = config_.symmetric.value_or(false) ? ResizeMode::letterbox
                                                         : ResizeMode::letterbox_top_left;
    if (config_.scaler == "envelope_cropped") input.resize = ResizeMode::crop;
    if (config_.scaler == "letterbox") {
        const std::string horizontal = config_.horizontal.empty() ? "left" : config_.horizontal;
        const std::string vertical = config_.vertical.empty() ? "top" : config_.vertical;
        if (horizontal == "center" && vertical == "center")
            input.resize = ResizeMode::letterbox;
        else if (horizontal == "left" && vertical == "top")
            input.resize = ResizeMode::letterbox_top_left;
        else
            return fault("'scaler-horz-align' is " + horizontal + " and 'scaler-vert-align' " +
                         vertical + ", expected left and top, or center and center");
    }
    const bool borders =
        input.resize == ResizeMode::letterbox || input.resize == ResizeMode::letterbox_top_left;
    if (borders) input.pad = {static_cast<float>(config_.pad.value_or(0))};
    return {};
}

// VVAS 6 without pre-processing takes what comes for the model's input.
void Importer::take_frames_as_tensors() {
    if (config_.dpu || config_.has_preprocess || config_.level > 1) return;
    const TensorView& view = picture_.hw ? *picture_.hw : picture_.cpu;
    const DataType type = view.data_type;
    if (type != DataType::unknown && size_bytes(type) != 1) {
        warn("has no 'preprocess-config', so frames are the input tensor there; here input '" +
             picture_.name + "' is " + std::string(to_string(type)) +
             " and no video format has such bytes, so vartmlinfer converts pictures");
        return;
    }
    is_tensor_ = true;
    infer("input-is-tensor", "yes");
    warn(
        "has no 'preprocess-config', so a frame is the input tensor already: put the source that "
        "makes it, such as v4l2src io-mode=dmabuf-import, in place of videotestsrc");
}

// Sets the sidecar, and where the name of the input is not known property `preprocess`.
Result<void> Importer::set_preprocess() {
    if (!config_.dpu && config_.model_format.empty())
        return fault("key 'infer-config.model-format' is not set, expected \"RGB\" or \"BGR\"");
    ModelInfo::Input input;
    const std::string format = config_.model_format.empty() ? "BGR" : config_.model_format;
    input.channels = format == "RGB"   ? ChannelOrder::rgb
                     : format == "BGR" ? ChannelOrder::bgr
                                       : ChannelOrder::gray;
    if (config_.has_preprocess) {
        if (auto done = set_scaler(input); !done) return done;
    }
    take_frames_as_tensors();
    if (config_.has_preprocess && !config_.dpu) {
        if (auto done = set_normalisation(input); !done) return done;
    } else if (!is_tensor_) {
        warn(
            "has no mean and scale (VVAS takes them from the model's own files or from the element "
            "in front of it); those of the decoder family hold, else 0 and 1");
    }
    input.name = picture_.name;
    const bool is_known = !input.name.empty();
    if (!is_known) input.name = "input";
    info_.inputs = {input};
    TensorInfo tensor;
    tensor.name = input.name;
    const std::string general = print_modelinfo(info_, {}, {});
    sidecar_ = print_modelinfo(info_, {&tensor, 1}, {});
    if (is_known) return {};
    constexpr std::string_view prefix = "x-vartml-";
    std::string words;
    for (size_t at = sidecar_.find(prefix, general.size()); at != std::string::npos;
         at = sidecar_.find(prefix, at)) {
        at += prefix.size();
        const size_t end = sidecar_.find('\n', at);
        words += (words.empty() ? "" : " ") + sidecar_.substr(at, end - at);
    }
    sidecar_ = general;
    infer("preprocess", words);
    warn("model '" + model_ +
         "' is not here or cannot be read, so the name of its input is not "
         "known and the pre-processing stands in the launch line; --input NAME puts it into the "
         "sidecar");
    return {};
}

// ---- regions and frames -----------------------------------------------------------------------

Result<void> Importer::set_regions() {
    const auto joined = [](const std::vector<std::string>& labels) {
        std::string list;
        for (const std::string& label : labels) list += (list.empty() ? "" : ",") + label;
        return list;
    };
    for (const auto* labels : {&config_.input_classes, &config_.output_classes})
        for (const std::string& label : *labels)
            if (label.empty() || label.find(',') != std::string::npos)
                return fault("label '" + label +
                             "' cannot stand in a list of labels, expected one "
                             "without comma");
    if (!config_.output_classes.empty())
        decode_.emplace_back("classes", joined(config_.output_classes));
    if (config_.level == 1) {
        if (!config_.input_classes.empty() || config_.min_width || config_.min_height)
            warn(
                "'input-class-filters' and 'input-obj-min-…' are left out: they concern "
                "'inference-level' 2 and it is 1");
        return {};
    }
    infer("inference-region", "roi");
    warn("'inference-level' is " + std::to_string(config_.level) +
         ": put the elements of the level before it in front of this vartmlinfer");
    if (!config_.input_classes.empty()) infer("roi-classes", joined(config_.input_classes));
    if (!config_.min_width && !config_.min_height) return {};
    const int64_t width = config_.min_width.value_or(*config_.min_height),
                  height = config_.min_height.value_or(*config_.min_width);
    infer("roi-min-size", std::to_string(std::min(width, height)));
    if (width != height)
        warn("the least width " + std::to_string(width) + " and height " + std::to_string(height) +
             " of an object differ; roi-min-size takes the smaller for its smallest side");
    return {};
}

void Importer::set_frames() {
    if (config_.batch_size > 0) infer("batch-size", std::to_string(config_.batch_size));
    // VVAS raises a queue that is shorter than the batch.
    const int64_t queue =
        config_.max_queue > 0 ? std::max(config_.max_queue, config_.batch_size) : 0;
    if (queue > most_frames)
        warn("'inference-max-queue' is " + std::to_string(queue) + "; async-depth takes at most " +
             std::to_string(most_frames));
    if (queue > 0) infer("async-depth", std::to_string(std::min(queue, most_frames)));
}

// One line per reason.
void Importer::name_left_out() {
    std::vector<std::pair<std::string, std::string>> reasons;
    for (const auto& [key, why] : config_.left_out) {
        const auto same =
            std::ranges::find(reasons, why, &std::pair<std::string, std::string>::first);
        if (same == reasons.end())
            reasons.emplace_back(why, key);
        else
            same->second += ", " + key;
    }
    for (const auto& [why, keys] : reasons) warn("left out: " + keys + " (" + why + ")");
}

// ---- the launch line --------------------------------------------------------------------------

// What a shell and the parser of launch lines both leave as it is, within double quotes where
// needed.
Result<std::string> quoted(const std::string& value) {
    constexpr std::string_view plain = "_-./,=+:@%";
    const auto is_plain = [&](unsigned char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               plain.find(static_cast<char>(c)) != plain.npos;
    };
    for (const unsigned char c : value)
        if (c < ' ' ||
            std::string_view("\"\\$`!").find(static_cast<char>(c)) != std::string_view::npos)
            return Error{ErrorCode::invalid_argument,
                         "'" + value +
                             "' has a character that a launch line cannot hold, expected "
                             "none of \" \\ $ ` ! and no control character; rename it"};
    if (!value.empty() && std::ranges::all_of(value, is_plain)) return value;
    return '"' + value + '"';
}

Result<std::string> Importer::launch_line() {
    std::string line = "gst-launch-1.0 videotestsrc";
    const auto add = [&](const char* element, const Properties& properties) -> Result<void> {
        line += std::string(" ! ") + element;
        for (const auto& [name, value] : properties) {
            auto text = quoted(value);
            if (!text) return fault(text.error().message);
            line += " " + name + "=" + *text;
        }
        return {};
    };
    if (auto done = add("vartmlinfer", infer_); !done) return done.error();
    if (!decodes_) return line + " ! fakesink";
    if (auto done = add("vartmldecode", decode_); !done) return done.error();
    return line + " ! vartmloverlay ! videoconvert ! autovideosink";
}

}  // namespace

Result<VvasImport> import_vvas_config(const VvasConfig& config, const VvasImportOptions& options) {
    return Importer(config, options).run();
}

}  // namespace vartml::tools
