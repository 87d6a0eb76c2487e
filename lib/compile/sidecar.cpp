// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/sidecar.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include <vartml/postprocess.h>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/vision/families.h"
#include "lib/vision/head.h"
#include "lib/vision/modelinfo.h"
#include "lib/vision/modelinfo_keys.h"

namespace vartml::compiler {
namespace {

constexpr size_t max_file_bytes = size_t{16} << 20;

struct SideFile {
    std::string path, text;
};

// The sidecar beside the model by the names that elements look for too.
Result<std::optional<SideFile>> find_side_file(const std::string& model) {
    std::vector<std::string> paths = {model + ".modelinfo"};
    const size_t dot = model.rfind('.');
    if (dot != std::string::npos && model.find('/', dot) == std::string::npos)
        paths.push_back(model.substr(0, dot) + ".modelinfo");
    for (const std::string& path : paths) {
        auto text = read_file(path, max_file_bytes);
        if (text) return std::optional(SideFile{path, std::move(*text)});
        if (text.error().code != ErrorCode::not_found) return text.error();
    }
    return std::optional<SideFile>();
}

Error as_argument(Error error) {
    if (error.code == ErrorCode::bad_model || error.code == ErrorCode::unsupported)
        error.code = ErrorCode::invalid_argument;
    return error;
}

// Height and width of the first 4-D input, the picture.
std::pair<uint32_t, uint32_t> picture_size(std::span<const TensorInfo> inputs) {
    for (const TensorInfo& input : inputs)
        if (input.cpu.shape.size() == 4)
            return input.cpu.layout == Layout::NHWC
                       ? std::pair(input.cpu.shape[1], input.cpu.shape[2])
                       : std::pair(input.cpu.shape[2], input.cpu.shape[3]);
    return {0, 0};
}

// Whether the decoder can be made for these outputs: label and position counts fit.
Result<void> check_decoder(const ModelInfo& info, const SidecarRequest& request) {
    const auto [height, width] = picture_size(request.inputs);
    auto decoder = Decoder::create(info, request.outputs, width, height, {});
    if (!decoder) return as_argument(decoder.error());
    return {};
}

// ---- Ultralytics
// ---------------------------------------------------------------------------------------------------

// Whether the export says that the model selects its boxes: in a key of its own, or among the
// arguments of the export, a dictionary of Python's.
bool says_selection(const std::map<std::string, std::string>& metadata) {
    const auto args = metadata.find("args");
    for (const std::string key : {"nms", "end2end"}) {
        const auto said = metadata.find(key);
        if (said != metadata.end() && said->second == "True") return true;
        if (args != metadata.end() && args->second.find("'" + key + "': True") != std::string::npos)
            return true;
    }
    return false;
}

// Whether so many positions are those of YOLO v5's strides, of three or four levels.
bool is_grid_of_v5(size_t positions, std::span<const TensorInfo> inputs) {
    constexpr int strides[] = {8, 16, 32, 64};
    const auto [height, width] = picture_size(inputs);
    for (const size_t levels : {3, 4})
        if (vision::make_grid(width, height, std::span(strides).first(levels), 3).positions ==
            positions)
            return true;
    return false;
}

// The families that task and columns of the head allow, the likeliest first: with one class, six
// columns are YOLO v5, or boxes that the model selected: where it says so, or has other positions
// and names a task, which YOLO v5 and its tiny YOLO v3 do not.
std::vector<std::string> families_of(std::string_view task, std::span<const TensorInfo> outputs,
                                     size_t num_classes, const SidecarRequest& request) {
    if (task == "classify") return {"classify"};
    if (task == "segment") return {"yolo-v8-seg"};
    if (task == "pose") return {"yolo-v8-pose"};
    std::vector<std::string> families;
    const bool is_table = !outputs.empty() && outputs[0].cpu.shape.size() == 3;
    if (task == "obb") families.push_back("yolo-v8-obb");
    if (task == "obb" && is_table && outputs[0].cpu.shape[2] == 7)
        families.push_back("yolo-end2end");
    if (task != "detect" || !is_table) return families;
    const std::vector<uint32_t>& shape = outputs[0].cpu.shape;
    if (shape[1] == 4 + num_classes) families.push_back("yolo-v8");
    // The tool's RT-DETR: a row per query, and no cells. YOLO has more. A number of a class never
    // came out of a sigmoid, as all of its columns do.
    constexpr uint32_t most_queries = 1000;  // ours
    const bool queries = shape[2] == 4 + num_classes && shape[1] <= most_queries;
    const auto meaning =
        std::ranges::find(request.meanings, outputs[0].name, &ModelInfo::Output::name);
    if (queries && meaning != request.meanings.end() && meaning->ends_in == "sigmoid")
        return {"ssd"};
    const bool selected =
        shape[2] == 6 &&
        (says_selection(request.metadata) ||
         (request.metadata.contains("task") && !is_grid_of_v5(shape[1], request.inputs)));
    if (selected) families.push_back("yolo-end2end");
    if (shape[2] == 5 + num_classes) families.push_back("yolo-v5");
    if (shape[2] == 6 && !selected) families.push_back("yolo-end2end");
    if (queries) families.push_back("ssd");
    return families;
}

// Of several tables of the same form the last one: given, YOLOv9's export.py writes that of its
// auxiliary branch first (DualDDetect in models/yolo.py). Null where the first has no equal.
const TensorInfo* last_of_equals(std::span<const TensorInfo> outputs) {
    const TensorInfo* last = nullptr;
    for (const TensorInfo& output : outputs.subspan(std::min<size_t>(1, outputs.size())))
        if (output.cpu.shape.size() == 3 && output.cpu.shape == outputs[0].cpu.shape)
            last = &output;
    return last;
}

// How many keypoints a box has, and values of each; empty where the metadata does not say it.
std::vector<int> keypoints_of(const SidecarRequest& request, std::vector<std::string>& warnings) {
    const auto shape = request.metadata.find("kpt_shape");
    if (shape == request.metadata.end()) return {};
    if (const auto numbers = parse_python_ints(shape->second)) {
        std::vector<int> keypoints(numbers->begin(), numbers->end());
        ModelInfo info;
        const auto* const key = vision::find_key(vision::general_keys(), "x-vartml-keypoints");
        info.keypoints = keypoints;
        if (key->set(info, key->get(info))) return keypoints;
    }
    warnings.push_back(request.model + ": the metadata 'kpt_shape' is '" +
                       printable(shape->second, 40) +
                       "', expected a count and 2 or 3, and is not used; a sidecar says it by "
                       "x-vartml-keypoints");
    return {};
}

// All of the tool's models take RGB in 0…1, or grey where they have one channel; classifiers a
// centre crop, the others a letterbox.
ModelInfo::Input ultralytics_input(const TensorInfo& input, bool classify) {
    ModelInfo::Input out;
    out.name = input.name;
    out.resize = classify ? ResizeMode::crop : ResizeMode::letterbox;
    out.channels = vision::has_one_channel(input) ? ChannelOrder::gray : ChannelOrder::rgb;
    out.mean = {0};
    out.scale = {1 / 255.0f};
    if (classify) out.crop_fraction = 1.0;
    return out;
}

std::optional<ModelInfo> from_metadata(const SidecarRequest& request,
                                       std::vector<std::string>& warnings) {
    const auto names = request.metadata.find("names");
    const auto said = request.metadata.find("task");
    // YOLO v5 says its strides and no task.
    const bool says_task = said != request.metadata.end();
    if (names == request.metadata.end() || request.inputs.empty() ||
        (!says_task && !request.metadata.contains("stride")))
        return std::nullopt;
    const std::string task = says_task ? said->second : "detect";
    auto labels = parse_python_names(names->second);
    if (!labels) {
        warnings.push_back(
            request.model +
            ": the metadata 'names' is no list of class names and is not used; give --labels FILE");
        return std::nullopt;
    }
    ModelInfo info;
    info.labels = std::move(*labels);
    info.inputs = {ultralytics_input(request.inputs[0], task == "classify")};
    if (task == "classify") info.activation = "none";  // the export ends in Softmax
    if (task == "pose") info.keypoints = keypoints_of(request, warnings);
    std::string why;  // of the likeliest
    for (const std::string& family :
         families_of(task, request.outputs, info.labels.size(), request)) {
        info.decoder = family;
        // How the tool writes turned boxes that the model selected.
        const bool selected = task == "obb" && family == "yolo-end2end";
        info.columns = selected ? "cxcywh,score,class,angle" : "";
        // How it writes those of RT-DETR, which it feeds pictures without their aspect.
        const bool queries = family == "ssd";
        info.box_order = queries ? "cxcywh" : "";
        if (queries) {
            info.outputs = {{.name = request.outputs[0].name, .id = "", .role = "boxes"}};
            info.inputs[0].resize = ResizeMode::stretch;
        } else if (const TensorInfo* const last = last_of_equals(request.outputs)) {
            info.outputs = {{.name = last->name, .id = "", .role = "boxes"}};
        }
        const auto fits = check_decoder(info, request);
        if (fits) return info;
        if (why.empty()) why = fits.error().message;
    }
    if (!says_task) return std::nullopt;
    // Boxes have many tasks, whose outputs may look alike: the shapes may choose among those alone.
    const auto likeliest = families_of(task, {}, 0, request);
    info.decoder = likeliest.empty() ? "" : likeliest.front();
    info.columns.clear();
    warnings.push_back(
        why.empty() ? request.model + ": no decoder for the task '" + task +
                          "' and these outputs; labels and input are recorded without one"
                    : request.model + ": the metadata names task '" + task + "', but " + why);
    return info;
}

// ---- embedded pre-process
// ---------------------------------------------------------------------------------------------------

bool is_picture(const TensorInfo& input) {
    return !input.picture.empty();
}

// The program itself makes numbers of the bytes: whoever fills the input leaves them as they are.
void keep_pixels(ModelInfo& info, std::span<const TensorInfo> inputs) {
    for (const TensorInfo& input : inputs) {
        if (!is_picture(input)) continue;
        auto found = std::ranges::find(info.inputs, input.name, &ModelInfo::Input::name);
        if (found == info.inputs.end()) {
            info.inputs.emplace_back().name = input.name;
            found = info.inputs.end() - 1;
        }
        found->mean = {0};
        found->scale = {1};
        found->channels = input.picture.starts_with("bgr") ? ChannelOrder::bgr
                          : input.picture == "gray"        ? ChannelOrder::gray
                                                           : ChannelOrder::rgb;
    }
}

// Pixels that nobody vouches for are recorded all the same, and told.
void warn_of_pixels(const ModelInfo& info, const SidecarRequest& request,
                    std::vector<std::string>& warnings) {
    const auto picture = std::ranges::find_if(
        request.inputs, [](const TensorInfo& input) { return input.cpu.shape.size() == 4; });
    if (picture == request.inputs.end()) return;
    const auto [height, width] = picture_size(request.inputs);
    const PixelChoice choice = choose_pixels(info, request.outputs, *picture, width, height);
    if (choice.source.empty())
        warnings.push_back(request.model + ": " + choice.sentence() +
                           "; they are recorded so: where that is wrong, give --mean, --scale and "
                           "--channels");
}

// ---- --mean, --scale, --channels
// ---------------------------------------------------------------------------------------------------

// An option and the key that says the same.
struct PixelWord {
    const char* option;
    const char* key;
    std::string text(const ModelInfo::Input& input) const {  // "" where it says nothing
        return vision::find_key(vision::input_keys(), key)->get(input);
    }
};
constexpr PixelWord pixel_words[] = {
    {"--mean", "x-vartml-mean"},
    {"--scale", "x-vartml-scale"},
    {"--channels", "x-vartml-channels"},
};

// The first option that is given, "" for none.
std::string first_pixel_option(const ModelInfo::Input& pixels) {
    for (const PixelWord& word : pixel_words)
        if (!word.text(pixels).empty()) return word.option;
    return {};
}

ModelInfo::Input* find_input(ModelInfo& info, const std::string& name) {
    const auto it = std::ranges::find(info.inputs, name, &ModelInfo::Input::name);
    return it == info.inputs.end() ? nullptr : &*it;
}

// The input that the options are about. Errors: invalid_argument where there is none, or where the
// file says otherwise.
Result<std::string> pixel_input(ModelInfo& info, const SidecarRequest& request) {
    const TensorInfo* const picture = vision::find_picture_input(info, request.inputs);
    if (!picture)
        return Error{ErrorCode::invalid_argument,
                     first_pixel_option(request.pixels) + ": " + request.model +
                         " has no input that is a picture, expected one of [1, 1 or 3, height, "
                         "width] or [1, height, width, 1 or 3]; leave the option out"};
    if (const auto channels = request.pixels.channels;
        channels && *channels != ChannelOrder::gray && vision::has_one_channel(*picture))
        return Error{ErrorCode::invalid_argument,
                     "--channels: is " + std::string(vision::to_string(*channels)) +
                         ", but input '" + picture->name + "' of " + request.model +
                         " has one channel; give --channels gray, or leave the option out"};
    const ModelInfo::Input* const said = find_input(info, picture->name);
    for (const PixelWord& word : pixel_words) {
        const std::string own = word.text(request.pixels);
        const std::string other = said ? word.text(*said) : "";
        if (info.file.empty() || own.empty() || other.empty() || own == other) continue;
        return Error{ErrorCode::invalid_argument,
                     std::string(word.option) + ": is " + own + ", but " + info.file + " says " +
                         word.key + "=" + other + " of input '" + picture->name +
                         "'; leave the option out, or correct the file"};
    }
    return picture->name;
}

void take_pixels(ModelInfo& info, const std::string& name, const ModelInfo::Input& pixels) {
    ModelInfo::Input* input = find_input(info, name);
    if (!input) {
        input = &info.inputs.emplace_back();
        input->name = name;
    }
    if (!pixels.mean.empty()) input->mean = pixels.mean;
    if (!pixels.scale.empty()) input->scale = pixels.scale;
    if (pixels.channels) input->channels = pixels.channels;
}

// The keys that a file leaves open: a section that occurs twice is joined.
std::string pixel_section(ModelInfo& info, const std::string& name,
                          const ModelInfo::Input& pixels) {
    const ModelInfo::Input* const said = find_input(info, name);
    std::string keys;
    for (const PixelWord& word : pixel_words)
        if (const std::string own = word.text(pixels);
            !own.empty() && (!said || word.text(*said).empty()))
            keys += std::string(word.key) + "=" + own + "\n";
    return keys.empty() ? "" : "\n[" + name + "]\ndir=input\n" + keys;
}

Result<ModelInfo> read_side_file(const SideFile& file, const SidecarRequest& request) {
    auto parsed = parse_modelinfo(file.text, file.path);
    if (!parsed) return as_argument(parsed.error());
    if (auto fits = check_modelinfo(*parsed, request.inputs, request.outputs); !fits)
        return as_argument(fits.error());
    return parsed;
}

// Without what the graph shows.
Result<std::string> known_modelinfo(const SidecarRequest& request,
                                    std::vector<std::string>& warnings) {
    ModelInfo info;
    const bool embedded = std::ranges::any_of(request.inputs, is_picture);
    const bool has_pixels = !first_pixel_option(request.pixels).empty();
    std::string pictured;  // the input that `pixels` is about
    auto file = find_side_file(request.model);
    if (!file && (request.decoder.empty() || has_pixels)) return file.error();
    const SideFile* const beside = file && *file ? &**file : nullptr;
    ModelInfo said;
    if (beside && (request.decoder.empty() || has_pixels)) {
        auto read = read_side_file(*beside, request);
        if (!read) return read.error();
        said = std::move(*read);
    }
    if (has_pixels) {
        auto name = pixel_input(said, request);
        if (!name) return name;
        pictured = std::move(*name);
    }
    if (!request.decoder.empty()) {
        const DecoderFamily* const family = find_decoder_family(request.decoder);
        if (!family)
            return Error{
                ErrorCode::invalid_argument,
                "--decoder: '" + request.decoder + "' is not a decoder; known: " + decoder_nicks()};
        info.decoder = family->nick;
    } else if (beside) {
        // A list of labels in a file of its own cannot come along: then the entry is written
        // anew with the labels in it.
        const auto alone = parse_modelinfo(beside->text, "");
        if (request.labels.empty() && !embedded && alone && alone->labels == said.labels)
            return beside->text + (has_pixels ? pixel_section(said, pictured, request.pixels) : "");
        info = std::move(said);
    } else if (auto known = from_metadata(request, warnings)) {
        info = std::move(*known);
    } else if (request.labels.empty() && !embedded && !has_pixels) {
        return std::string();
    }
    if (has_pixels) take_pixels(info, pictured, request.pixels);
    if (!request.labels.empty()) {
        auto labels = read_labels(request.labels);
        if (!labels) return as_argument(labels.error());
        info.labels = std::move(*labels);
    }
    if (!info.decoder.empty() && (!request.decoder.empty() || !request.labels.empty()))
        if (auto fits = check_decoder(info, request); !fits) return fits.error();
    if (!request.decoder.empty()) warn_of_pixels(info, request, warnings);
    keep_pixels(info, request.inputs);
    return print_modelinfo(info, request.inputs, request.outputs);
}

// What an input of two numbers that is no picture gets by the name that exporters give it; "" where
// the name says nothing. given: RT-DETR, D-FINE and DEIM, export_onnx.py, [width, height] of the
// frame; PaddleDetection, export_model.py, [height, width] of the picture after its resize, and how
// much it was resized, so that 1 asks for boxes in its pixels; the YOLO v3 of ONNX's model zoo,
// [height, width] of the picture that boxes are for.
std::string usual_feed(const TensorInfo& input, const SidecarRequest& request) {
    if (input.cpu.size != 2) return {};
    if (input.name == "orig_target_sizes") return "frame-size";
    const auto [height, width] = picture_size(request.inputs);
    if ((input.name == "im_shape" || input.name == "image_shape") && width != 0)
        return "const:" + std::to_string(height) + "," + std::to_string(width);
    return input.name == "scale_factor" ? "const:1" : "";
}

// The columns of a table of boxes beside the count of its rows, by the name of an input. given:
// PaddleDetection, whose models with such an input select their boxes so (`bbox` and `bbox_num`),
// whatever the converter to ONNX calls them.
std::string usual_columns(const SidecarRequest& request) {
    const auto is_scale = [](const TensorInfo& input) {
        return input.name == "scale_factor" && input.cpu.size == 2;
    };
    const auto is_table = [](const TensorInfo& output) {
        const auto& shape = output.cpu.shape;
        return shape.size() >= 2 && shape.back() == 6 && output.cpu.size > 6 &&
               output.cpu.size == size_t{6} * shape[shape.size() - 2];
    };
    const auto is_count = [](const TensorInfo& output) { return output.cpu.size == 1; };
    const bool listed = request.outputs.size() == 2 &&
                        std::ranges::any_of(request.outputs, is_table) &&
                        std::ranges::any_of(request.outputs, is_count);
    return listed && std::ranges::any_of(request.inputs, is_scale) ? "class,score,x0y0x1y1" : "";
}

// Whether a decoder that may read the outputs takes other pixels for what the weights show.
bool asks_for_weights(const ModelInfo& info, const SidecarRequest& request) {
    if (request.weights.empty()) return false;
    const auto [height, width] = picture_size(request.inputs);
    ModelInfo more = info;
    more.inputs.insert(more.inputs.end(), request.weights.begin(), request.weights.end());
    const vision::HeadRequest without{info, request.outputs, width, height, nullptr},
        with{more, request.outputs, width, height, nullptr};
    const vision::Family* const said = vision::find_family(info.decoder);
    return std::ranges::any_of(vision::families(), [&](const vision::Family& family) {
        return family.input_of && (said ? said == &family : family.fits(without)) &&
               family.input_of(with) != family.input_of(without);
    });
}

// What `text` leaves open of the inputs beside the picture, of the outputs and the number of
// classes: a section that occurs twice is joined.
std::string with_meanings(std::string text, const SidecarRequest& request) {
    const auto info = parse_modelinfo(text, "");
    std::string more;
    if (const std::string columns = usual_columns(request);
        !columns.empty() && info && info->columns.empty())
        more += "\n[modelinfo]\nx-vartml-columns=" + columns + "\n";
    if (request.class_count && info && info->labels.empty() && !info->num_classes)
        more +=
            "\n[modelinfo]\nx-vartml-num-classes=" + std::to_string(*request.class_count) + "\n";
    const bool asks = asks_for_weights(info ? *info : ModelInfo{}, request);
    for (const TensorInfo& input : request.inputs) {
        ModelInfo::Input open;
        open.feed = usual_feed(input, request);
        const auto weights =
            std::ranges::find(request.weights, input.name, &ModelInfo::Input::name);
        if (asks && weights != request.weights.end()) open.weights_for = weights->weights_for;
        if (info)
            for (const ModelInfo::Input& said : info->inputs) {
                if (said.name != input.name) continue;
                if (!said.feed.empty()) open.feed.clear();
                if (!said.weights_for.empty()) open.weights_for.clear();
            }
        if (!open.feed.empty() || !open.weights_for.empty())
            more += "\n[" + input.name + "]\ndir=input\n" +
                    vision::key_lines(vision::input_keys(), open);
    }
    for (const ModelInfo::Output& meaning : request.meanings) {
        ModelInfo::Output said;
        if (info)
            for (const ModelInfo::Output& output : info->outputs)
                if (output.name == meaning.name) said = output;
        ModelInfo::Output open;
        if (said.ends_in.empty()) open.ends_in = meaning.ends_in;
        if (!said.quant_scale && !said.zero_point && meaning.quant_scale) {
            open.quant_scale = meaning.quant_scale;
            open.zero_point = meaning.zero_point.value_or(0);
        }
        const std::string keys = vision::key_lines(vision::output_keys(), open);
        if (!keys.empty()) more += "\n[" + meaning.name + "]\ndir=output\n" + keys;
    }
    if (more.empty()) return text;
    if (text.empty()) text = "[modelinfo]\nversion=1.0\nx-vartml-version=1\n";
    return text + more;
}

}  // namespace

std::string decoder_nicks() {
    std::string text;
    for (const DecoderFamily& family : decoder_families())
        text += (text.empty() ? "" : ", ") + std::string(family.nick);
    return text;
}

Result<std::string> make_modelinfo(const SidecarRequest& request,
                                   std::vector<std::string>& warnings) {
    auto known = known_modelinfo(request, warnings);
    if (!known) return known;
    return with_meanings(*std::move(known), request);
}

Result<std::string> sidecar_inputs(const std::string& model, const std::string& labels) {
    std::string bytes;
    auto file = find_side_file(model);
    if (!file) return file.error();
    if (*file) {
        bytes += (*file)->path.substr((*file)->path.rfind('/') + 1) + '\n' + (*file)->text;
        // Its labels may be in a file of their own. What is wrong with them is told where they are
        // read.
        const auto said = parse_modelinfo((*file)->text, (*file)->path);
        if (said && !said->labels_file.empty())
            for (const std::string& label : said->labels) bytes += '\n' + label;
    }
    bytes += '\0';
    if (!labels.empty()) {
        auto text = read_file(labels, max_file_bytes);
        if (!text) return text.error();
        bytes += *text;
    }
    return bytes;
}

namespace {

constexpr size_t max_entries = 65536;

void append_utf8(std::string& text, uint32_t code) {
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xc0 | code >> 6);
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        text += static_cast<char>(0xe0 | code >> 12);
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else {
        text += static_cast<char>(0xf0 | code >> 18);
        text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    }
}

class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    bool take(char c) {
        skip_blanks();
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool at_end() {
        skip_blanks();
        return rest_.empty();
    }

    std::optional<int64_t> integer() {
        skip_blanks();
        int64_t value = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (error != std::errc()) return std::nullopt;
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return value;
    }

    std::optional<std::string> string() {
        skip_blanks();
        if (rest_.starts_with('u')) rest_.remove_prefix(1);  // Python 2 wrote u'…'
        if (!rest_.starts_with('\'') && !rest_.starts_with('"')) return std::nullopt;
        const char quote = rest_[0];
        rest_.remove_prefix(1);
        std::string out;
        while (!rest_.empty() && rest_[0] != quote) {
            if (rest_[0] != '\\') {
                out += rest_[0];
                rest_.remove_prefix(1);
            } else if (!escape(out)) {
                return std::nullopt;
            }
        }
        if (rest_.empty()) return std::nullopt;
        rest_.remove_prefix(1);
        return out;
    }

private:
    void skip_blanks() {
        while (!rest_.empty() &&
               (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n' || rest_[0] == '\r'))
            rest_.remove_prefix(1);
    }

    // A backslash and what follows it; an unknown escape stays as it is, as in Python.
    bool escape(std::string& out) {
        rest_.remove_prefix(1);
        if (rest_.empty()) return false;
        const char c = rest_[0];
        rest_.remove_prefix(1);
        switch (c) {
            case 'n':
                out += '\n';
                return true;
            case 't':
                out += '\t';
                return true;
            case 'r':
                out += '\r';
                return true;
            case '\\':
            case '\'':
            case '"':
                out += c;
                return true;
            case 'x':
                return code_point(2, out);
            case 'u':
                return code_point(4, out);
            case 'U':
                return code_point(8, out);
            default:
                (out += '\\') += c;
                return true;
        }
    }

    bool code_point(size_t digits, std::string& out) {
        uint32_t code = 0;
        if (rest_.size() < digits) return false;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + digits, code, 16);
        if (error != std::errc() || end != rest_.data() + digits || code > 0x10ffff ||
            (code >= 0xd800 && code < 0xe000))
            return false;
        rest_.remove_prefix(digits);
        append_utf8(out, code);
        return true;
    }

    std::string_view rest_;
};

std::optional<std::vector<std::string>> parse_list(Scanner& scan) {
    std::vector<std::string> names;
    while (!scan.take(']')) {
        auto name = scan.string();
        if (!name || names.size() == max_entries) return std::nullopt;
        names.push_back(std::move(*name));
        if (scan.take(',')) continue;
        if (!scan.take(']')) return std::nullopt;
        break;
    }
    return names;
}

std::optional<std::vector<std::string>> parse_dict(Scanner& scan) {
    std::map<int64_t, std::string> entries;
    while (!scan.take('}')) {
        const auto key = scan.integer();
        if (!key || !scan.take(':') || entries.size() == max_entries) return std::nullopt;
        auto name = scan.string();
        if (!name || !entries.emplace(*key, std::move(*name)).second) return std::nullopt;
        if (scan.take(',')) continue;
        if (!scan.take('}')) return std::nullopt;
        break;
    }
    std::vector<std::string> names;
    for (auto& [index, name] : entries) {
        if (index != static_cast<int64_t>(names.size())) return std::nullopt;
        names.push_back(std::move(name));
    }
    return names;
}

}  // namespace

std::optional<std::vector<std::string>> parse_python_names(std::string_view text) {
    Scanner scan(text);
    std::optional<std::vector<std::string>> names;
    if (scan.take('{')) {
        names = parse_dict(scan);
    } else if (scan.take('[')) {
        names = parse_list(scan);
    }
    return names && scan.at_end() ? names : std::nullopt;
}

std::optional<std::vector<int64_t>> parse_python_ints(std::string_view text) {
    Scanner scan(text);
    const char close = scan.take('[') ? ']' : scan.take('(') ? ')' : '\0';
    std::vector<int64_t> numbers;
    while (close == '\0' || !scan.take(close)) {
        const auto number = scan.integer();
        if (!number || numbers.size() == max_entries) return std::nullopt;
        numbers.push_back(*number);
        if (close == '\0') break;
        if (scan.take(',')) continue;
        if (!scan.take(close)) return std::nullopt;
        break;
    }
    return scan.at_end() ? std::optional(numbers) : std::nullopt;
}

}  // namespace vartml::compiler
