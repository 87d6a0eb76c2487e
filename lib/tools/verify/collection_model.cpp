// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/collection.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include "lib/base/file.h"
#include "lib/base/process.h"
#include "lib/compile/onnx/import.h"
#include "lib/model/entries.h"
#include "lib/tools/verify/folder_check.h"
#include "lib/tools/verify/made_input.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

using Shapes = std::vector<NamedTensor>;  // without bytes

constexpr size_t most_input_bytes = size_t{1} << 30;
// Sides of pictures that models are made for, tried after the one asked for until ONNX Runtime runs
// the model.
constexpr int64_t usual_sides[] = {640, 224, 416, 512, 256, 128, 112, 96, 64, 48, 32};
constexpr const char* option_word = "--input-shape ";

// What a child said of itself: its errors, without the prefix of the log.
std::vector<std::string> errors_of(const std::string& text) {
    constexpr std::string_view prefix = "[vartml] ERROR: ";
    std::vector<std::string> lines;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line(text.data() + begin, end - begin);
        if (line.starts_with(prefix)) lines.emplace_back(line.substr(prefix.size()));
        begin = end + 1;
    }
    return lines;
}

int64_t to_number(std::string_view text) {
    int64_t value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// "x:1,3,<height>,640" as name and dimensions, -1 for what is not a number.
NamedTensor parse_shape(const std::string& text) {
    NamedTensor shape;
    const size_t colon = text.rfind(':');
    shape.name = text.substr(0, colon);
    for (std::string_view rest = std::string_view(text).substr(colon + 1);;) {
        const size_t comma = rest.find(',');
        shape.data.shape.push_back(to_number(rest.substr(0, comma)));
        if (comma == rest.npos) break;
        rest.remove_prefix(comma + 1);
    }
    return shape;
}

std::string option_of(const NamedTensor& shape) {
    std::string text;
    for (const int64_t d : shape.data.shape) text += (text.empty() ? "" : ",") + std::to_string(d);
    return shape.name + ':' + text;
}

bool is_open(const std::vector<int64_t>& shape) {
    return std::ranges::any_of(shape, [](int64_t d) { return d < 0; });
}

// Numbers for what the model leaves open: the batch is 1, a picture has that side, anything else is
// 1.
void settle(std::vector<int64_t>& shape, int64_t side) {
    const PictureAxes axes = picture_axes(shape);
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] >= 0) continue;
        const bool is_side = axes.height != 0 && (i == axes.height || i == axes.width);
        shape[i] = is_side ? side : axes.height != 0 && i == axes.channels ? 3 : 1;
    }
}

class ModelSteps {
public:
    ModelSteps(const CollectionRequest& request, const OnnxRuntime& reference, std::string model,
               std::string folder, ModelRow& row)
        : request_(request),
          reference_(reference),
          model_(std::move(model)),
          folder_(std::move(folder)),
          row_(row) {}

    Result<void> run();

private:
    enum class Numerics { standard, f32 };
    static std::string compiled_name(Numerics n) {
        return n == Numerics::f32 ? "f32.rai" : "standard.rai";
    }

    Result<ChildResult> run_vartml(std::vector<std::string> arguments) const;
    Result<bool> compile(Numerics numerics, std::vector<std::string>* errors);
    Result<void> compile_as_user();
    Result<bool> run_reference(Shapes shapes);
    std::vector<std::string> numbers_of_maps() const;
    bool reference_has_nan() const;
    bool may_lie_with_inputs(const std::string& refusal) const;
    Result<bool> settle_and_run(const Shapes& open);
    Result<void> look_at_compiled_shapes();
    bool graph_takes_bytes(const ModelDescription& description, const std::string& input) const;
    Pixels pixels_of(const ModelDescription& description) const;
    Result<void> check(Numerics numerics, Verdict& verdict);
    Result<void> compile_f32();
    Result<void> check_picture();
    Result<bool> next_picture();
    Result<void> add_levels();
    Result<void> add_nudged();
    Result<void> add_rounded();
    std::string short_text(std::string text) const;

    const CollectionRequest& request_;
    const OnnxRuntime& reference_;
    const std::string model_, folder_;
    ModelRow& row_;
    std::vector<std::string> options_;  // values of --input-shape
    Shapes inputs_;                     // as ONNX Runtime tells them
    Shapes settled_;                    // what it ran with
    Pixels pixels_;                     // as somebody says that the model takes them
    bool is_positive_ = false;          // numbers that are no pixels
    size_t picture_ = 0;                // of the request's
    bool has_levels_ = false, has_rounded_ = false;
    std::string why_no_rounded_;
};

// Without the path of the model, which the row has, too; with the limit that it came to.
std::string ModelSteps::short_text(std::string text) const {
    const std::string refusal = "ONNX Runtime " + reference_.version() + " does not run it: ";
    if (const size_t at = text.find(refusal); at != text.npos) text.erase(at, refusal.size());
    for (size_t at; (at = text.find(model_ + ": ")) != text.npos;)
        text.erase(at, model_.size() + 2);
    for (size_t at; (at = text.find(folder_ + '/')) != text.npos;)
        text.erase(at, folder_.size() + 1);
    return with_limits(std::move(text), request_.limits);
}

Result<ChildResult> ModelSteps::run_vartml(std::vector<std::string> arguments) const {
    Child child;
    child.arguments = std::move(arguments);
    child.arguments.insert(child.arguments.begin(), request_.program);
    child.time_limit = request_.limits.time;
    child.memory_limit = request_.limits.memory;
    child.cancel = request_.cancel;
    return run_child(child);
}

// False: it does not compile, and why. `errors` gets the lines of a refusal.
Result<bool> ModelSteps::compile(Numerics numerics, std::vector<std::string>* errors) {
    std::vector<std::string> arguments = {"compile", model_, "-o",
                                          folder_ + '/' + compiled_name(numerics), "--quiet"};
    if (numerics == Numerics::f32) arguments.insert(arguments.end(), {"--numerics", "f32"});
    for (const std::string& option : options_)
        arguments.insert(arguments.end(), {"--input-shape", option});
    const auto begin = std::chrono::steady_clock::now();
    const auto ended = run_vartml(std::move(arguments));
    if (!ended) return ended.error();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (ended->exit_status == 0) {
        if (numerics == Numerics::standard) row_.compile_seconds = took.count();
        return true;
    }
    const std::vector<std::string> lines = errors_of(ended->stderr_tail);
    const bool refused = ended->exit_status > 0 && !lines.empty();
    std::string why = lines.empty() || ended->exit_status < 0
                          ? why_it_ended(*ended, request_.limits)
                          : lines.front();
    if (lines.size() > 1) why += " (and more)";
    if (numerics == Numerics::standard) {
        row_.is_refused = refused;
        row_.compile_text = short_text(why);
    }
    if (errors) *errors = lines;
    return false;
}

// Tensors to ask for beside outputs that are none.
std::vector<std::string> ModelSteps::numbers_of_maps() const {
    const auto maps = onnx::map_outputs(model_);
    return maps ? maps->inside : std::vector<std::string>{};
}

bool ModelSteps::reference_has_nan() const {
    const auto outputs = read_outputs(folder_ + '/' + reference_levels[0]);
    return outputs && std::ranges::any_of(*outputs, [](const auto& output) {
               return is_float(output.second.type) &&
                      std::ranges::any_of(numbers_of(output.second),
                                          [](double v) { return std::isnan(v); });
           });
}

// Whether a run failed in a node, and of an input shape or numbers were made without knowing what
// they are.
bool ModelSteps::may_lie_with_inputs(const std::string& refusal) const {
    const bool ran = refusal.find("returned while running") != refusal.npos;
    return ran && std::ranges::any_of(inputs_, [](const NamedTensor& input) {
               return is_open(input.data.shape) || picture_axes(input.data.shape).height == 0;
           });
}

// Runs the model in ONNX Runtime, with inputs of these shapes; false: it refuses. Where numbers of
// both signs lead to what is no number, as in the root of a score, positive ones are tried.
Result<bool> ModelSteps::run_reference(Shapes shapes) {
    std::error_code error;
    for (const char* place : {"request", "outputs"}) fs::remove(folder_ + '/' + place, error);
    for (size_t i = 0; i < shapes.size(); ++i)
        fs::remove(folder_ + "/input_" + std::to_string(i), error);
    fs::remove_all(folder_ + '/' + reference_levels[0], error);
    fs::create_directory(folder_ + '/' + reference_levels[0], error);
    settled_ = shapes;
    const PictureData* const picture =
        request_.pictures.empty() ? nullptr : &request_.pictures[picture_].data;
    const InputMaker maker{picture, pixels_, request_.picture_side, is_positive_};
    const Shapes without_bytes = shapes;
    for (NamedTensor& input : shapes) {
        size_t bytes = size_bytes(input.data.type);
        for (const int64_t d : input.data.shape)
            bytes *= static_cast<size_t>(std::max<int64_t>(d, 0));
        if (bytes > most_input_bytes) {
            row_.reference_text =
                "input '" + input.name + "' has " + std::to_string(bytes) + " bytes";
            return false;
        }
        input.data = maker.make(input.name, input.data.type, input.data.shape);
    }
    if (auto done = write_request(folder_, shapes, numbers_of_maps()); !done) return done.error();
    auto ran = reference_.run_folder(model_, folder_, reference_levels[0],
                                     folder_ + '/' + reference_levels[0]);
    if (!ran && ran.error().code != ErrorCode::device) return ran.error();
    row_.reference_text = ran ? "" : short_text(ran.error().message);
    row_.reference_runs = ran.has_value();
    row_.is_unfed = !ran && may_lie_with_inputs(ran.error().message);
    if (ran && !is_positive_ && reference_has_nan()) {
        is_positive_ = true;
        return run_reference(without_bytes);
    }
    return ran.has_value();
}

// Tries sides of pictures until ONNX Runtime runs the model.
Result<bool> ModelSteps::settle_and_run(const Shapes& open) {
    std::vector<int64_t> sides = {request_.picture_side};
    const bool has_open_picture = std::ranges::any_of(open, [](const NamedTensor& t) {
        return is_open(t.data.shape) && picture_axes(t.data.shape).height != 0;
    });
    if (has_open_picture) sides.insert(sides.end(), std::begin(usual_sides), std::end(usual_sides));
    std::string first_text;
    bool first_is_unfed = false;
    for (const int64_t side : sides) {
        Shapes shapes = open;
        for (NamedTensor& t : shapes) settle(t.data.shape, side);
        auto ran = run_reference(std::move(shapes));
        if (!ran || *ran) return ran;
        if (first_text.empty()) {
            first_text = row_.reference_text;
            first_is_unfed = row_.is_unfed;
        }
    }
    row_.reference_text = first_text;
    row_.is_unfed = first_is_unfed;
    return false;
}

// As a user does it: without an option, then with what the refusal recommends.
Result<void> ModelSteps::compile_as_user() {
    std::vector<std::string> errors;
    auto compiled = compile(Numerics::standard, &errors);
    if (!compiled) return compiled.error();
    if (*compiled) {
        row_.compiled = ModelRow::Compiled::at_once;
        return {};
    }
    // A refusal names one input; a model may have several.
    for (size_t i = 0; i < inputs_.size() && row_.reference_runs; ++i) {
        const std::string shape = errors.empty() ? "" : recommended_shape(errors.front());
        if (shape.empty()) return {};
        NamedTensor wanted = parse_shape(shape);
        const auto known = std::ranges::find(settled_, wanted.name, &NamedTensor::name);
        if (known == settled_.end()) return {};
        // The words between < and > are for the user to fill in, who knows what the model is for.
        if (wanted.data.shape.size() != known->data.shape.size())
            wanted.data.shape = known->data.shape;
        for (size_t d = 0; d < wanted.data.shape.size(); ++d)
            if (wanted.data.shape[d] < 0) wanted.data.shape[d] = known->data.shape[d];
        options_.push_back(option_of(wanted));
        row_.option += (row_.option.empty() ? "" : " ") + (option_word + options_.back());
        compiled = compile(Numerics::standard, &errors);
        if (!compiled) return compiled.error();
        if (!*compiled) continue;
        row_.compiled = ModelRow::Compiled::followed;
        row_.compile_text.clear();
        row_.is_refused = false;
        return {};
    }
    return {};
}

// The model compiled before, so its file is good to read here, too.
bool ModelSteps::graph_takes_bytes(const ModelDescription& description,
                                   const std::string& input) const {
    onnx::ImportOptions options;
    options.foreign.allowed = true;
    for (const TensorInfo& info : description.inputs)
        options.input_shapes[info.name].assign(info.cpu.shape.begin(), info.cpu.shape.end());
    const auto imported = onnx::import_onnx(model_, options);
    if (!imported) return false;
    const graph::Graph& graph = imported->graph;
    const auto id = std::ranges::find(graph.inputs, input, [&](graph::ValueId in) {
        return std::string_view(graph.value(in).name);
    });
    return id != graph.inputs.end() && takes_bytes(graph, *id);
}

// By sidecar, decoder family or the graph itself; from 0 to 1 where none of them says anything.
Pixels ModelSteps::pixels_of(const ModelDescription& description) const {
    const auto info = find_modelinfo("", model_, description.modelinfo);
    for (const TensorInfo& input : description.inputs) {
        const PictureShape shape = picture_shape(input.cpu);
        if (!info || shape.width == 0) continue;
        const PixelChoice choice =
            choose_pixels(*info, description.outputs, input, shape.width, shape.height);
        if (choice.source.empty()) {
            Pixels pixels;
            if (graph_takes_bytes(description, input.name)) pixels.scale = {1, 1, 1};
            return pixels;
        }
        const PreprocessOptions& o = choice.options;
        return {o.mean, o.scale, o.channels == ChannelOrder::bgr};
    }
    return {};
}

// The shapes of the compiled model are those that are compared. One that we made of a dimension
// without a number may be one that ONNX Runtime cannot run.
Result<void> ModelSteps::look_at_compiled_shapes() {
    const auto description = open_model(folder_ + '/' + compiled_name(Numerics::standard));
    if (!description) return description.error();
    Shapes shapes = settled_;
    bool same = true;
    for (NamedTensor& t : shapes) {
        const auto it = std::ranges::find(description->inputs, t.name, &TensorInfo::name);
        if (it == description->inputs.end()) continue;
        const std::vector<int64_t> compiled(it->cpu.shape.begin(), it->cpu.shape.end());
        const auto open = std::ranges::find(inputs_, t.name, &NamedTensor::name);
        const PictureAxes axes = picture_axes(open->data.shape);
        if (axes.height != 0 && compiled.size() == 4 &&
            (compiled[axes.height] == 1 || compiled[axes.width] == 1)) {
            row_.compiled = ModelRow::Compiled::no;
            row_.compile_text = "compiled without a word for a picture of " +
                                std::to_string(compiled[axes.width]) + "x" +
                                std::to_string(compiled[axes.height]) + " pixels";
            return {};
        }
        same = same && compiled == t.data.shape;
        t.data.shape = compiled;
    }
    if (const Pixels pixels = pixels_of(*description); pixels != pixels_) {
        pixels_ = pixels;
        same = false;
    }
    if (same) return {};
    const Shapes before = settled_;
    const bool ran_before = row_.reference_runs;
    auto ran = run_reference(std::move(shapes));
    if (!ran) return ran.error();
    if (*ran || !ran_before) return {};
    std::string chosen, good;
    for (const NamedTensor& t : settled_) chosen += (chosen.empty() ? "" : " ") + option_of(t);
    for (const NamedTensor& t : before) good += (good.empty() ? "" : " ") + option_of(t);
    row_.compiled = ModelRow::Compiled::no;
    row_.compile_text =
        "compiled for " + chosen + ", which ONNX Runtime does not run; it runs " + good;
    row_.reference_runs = true;
    row_.reference_text.clear();
    return {};
}

// What ONNX Runtime makes of the model at its other levels; where it does not run it there,
// nothing.
Result<void> ModelSteps::add_levels() {
    if (std::exchange(has_levels_, true)) return {};
    for (const char* level : reference_levels) {
        if (level == reference_levels[0]) continue;
        const std::string out = folder_ + '/' + level;
        std::error_code error;
        fs::create_directory(out, error);
        auto ran = reference_.run_folder(model_, folder_, level, out);
        if (!ran && ran.error().code != ErrorCode::device) return ran.error();
    }
    return add_nudged();
}

// How far a difference as small as any rounding goes in this model.
Result<void> ModelSteps::add_nudged() {
    const std::string out = folder_ + '/' + nudged_reference;
    std::error_code error;
    fs::create_directory(out, error);
    auto inputs = read_request(folder_);
    if (!inputs) return inputs.error();
    bool is_other = false;
    for (NamedTensor& input : *inputs) is_other = nudge(input.data) || is_other;
    if (!is_other) return {};
    if (auto done = write_request(out, *inputs, numbers_of_maps()); !done) return done;
    auto ran = reference_.run_folder(model_, out, reference_levels[0], out);
    if (!ran && ran.error().code != ErrorCode::device) return ran.error();
    return {};
}

// What a device gives that computes exactly and rounds every tensor to bf16; where there is no such
// twin of the model, or ONNX Runtime does not run it, why.
Result<void> ModelSteps::add_rounded() {
    if (std::exchange(has_rounded_, true)) return {};
    why_no_rounded_.clear();
    const std::string twin = folder_ + "/rounded.onnx", out = folder_ + '/' + rounded_reference;
    std::error_code error;
    fs::create_directory(out, error);
    const auto ended = run_vartml({"verify", model_, "--rounded-twin", twin});
    if (!ended) return ended.error();
    if (ended->exit_status != 0) {
        const auto lines = errors_of(ended->stderr_tail);
        why_no_rounded_ = short_text(lines.empty() || ended->exit_status < 0
                                         ? why_it_ended(*ended, request_.limits)
                                         : lines.back());
        return {};
    }
    auto ran = reference_.run_folder(twin, folder_, reference_levels[0], out);
    if (!ran && ran.error().code != ErrorCode::device) return ran.error();
    if (!ran) why_no_rounded_ = "ONNX Runtime refuses it: " + short_text(ran.error().message);
    return {};
}

Result<void> ModelSteps::check(Numerics numerics, Verdict& verdict) {
    const bool f32 = numerics == Numerics::f32;
    const std::string place = folder_ + "/verdict";
    std::error_code error;
    fs::remove(place, error);
    const auto ended =
        run_vartml({"verify", model_, "--compiled", folder_ + '/' + compiled_name(numerics),
                    "--numerics", f32 ? "f32" : "auto", "--check-folder", folder_});
    if (!ended) return ended.error();
    const auto text = read_file(place, size_t{1} << 20);
    if (ended->exit_status != 0 || !text) {
        const auto lines = errors_of(ended->stderr_tail);
        verdict.state = Verdict::State::fails;
        verdict.text = short_text(lines.empty() || ended->exit_status < 0
                                      ? why_it_ended(*ended, request_.limits)
                                      : lines.back());
        return {};
    }
    const auto found = verdict_of_json(*text);
    if (!found) return found.error();
    verdict.state = found->agrees         ? Verdict::State::agrees
                    : found->is_undecided ? Verdict::State::unclear
                                          : Verdict::State::differs;
    verdict.text = found->text;
    verdict.seconds = found->seconds;
    // Only now is it worth to look at how far the reference is from itself.
    const bool had_all = has_levels_ && (f32 || has_rounded_);
    if (!found->agrees && had_all && !f32 && !why_no_rounded_.empty())
        verdict.text +=
            " (without the limits of an ideal bf16 device, whose twin of the model is "
            "not there: " +
            why_no_rounded_ + ')';
    if (found->agrees || had_all) return {};
    if (auto done = add_levels(); !done) return done;
    if (!f32)
        if (auto done = add_rounded(); !done) return done;
    return check(numerics, verdict);
}

Result<void> ModelSteps::run() {
    auto inputs = reference_.inputs(model_);
    if (!inputs && inputs.error().code != ErrorCode::device) return inputs.error();
    if (inputs) {
        inputs_ = std::move(*inputs);
        if (auto ran = settle_and_run(inputs_); !ran) return ran.error();
    } else {
        row_.reference_text = short_text(inputs.error().message);
    }
    if (auto done = compile_as_user(); !done) return done;
    if (row_.compiled == ModelRow::Compiled::no || !inputs) return {};
    if (auto done = look_at_compiled_shapes(); !done) return done;
    if (row_.compiled == ModelRow::Compiled::no || !row_.reference_runs) return {};
    if (auto done = compile_f32(); !done) return done;
    for (;;) {
        if (auto done = check_picture(); !done) return done;
        const auto more = next_picture();
        if (!more) return more.error();
        if (!*more) return {};
    }
}

// Says in the row where it fails.
Result<void> ModelSteps::compile_f32() {
    std::vector<std::string> errors;
    const auto compiled = compile(Numerics::f32, &errors);
    if (!compiled) return compiled.error();
    if (!*compiled)
        row_.f32 = {Verdict::State::fails,
                    "does not compile with --numerics f32" +
                        (errors.empty() ? "" : ": " + short_text(errors.front()))};
    return {};
}

// Both ways to compute on the picture at hand, as long as they agree on those before.
Result<void> ModelSteps::check_picture() {
    const std::pair<Numerics, Verdict*> ways[] = {{Numerics::standard, &row_.standard},
                                                  {Numerics::f32, &row_.f32}};
    for (const auto& [numerics, verdict] : ways) {
        if (verdict->state == Verdict::State::differs || verdict->state == Verdict::State::fails)
            continue;
        const Verdict before = *verdict;
        if (auto done = check(numerics, *verdict); !done) return done;
        // A picture by which nothing can be judged says nothing of those before.
        if (verdict->state == Verdict::State::unclear && before.state == Verdict::State::agrees)
            *verdict = before;
        if (verdict->state != Verdict::State::agrees && request_.pictures.size() > 1)
            verdict->text = request_.pictures[picture_].name + ": " + verdict->text;
    }
    return {};
}

// Whether there is another one that the model is to see, and ONNX Runtime has seen it.
Result<bool> ModelSteps::next_picture() {
    const bool sees = std::ranges::any_of(settled_, [](const NamedTensor& input) {
        return picture_axes(input.data.shape).height != 0;
    });
    const auto may_go_on = [](const Verdict& v) {
        return v.state == Verdict::State::agrees || v.state == Verdict::State::unclear;
    };
    const bool open = may_go_on(row_.standard) || may_go_on(row_.f32);
    if (!sees || !open || picture_ + 1 >= request_.pictures.size()) return false;
    ++picture_;
    has_levels_ = has_rounded_ = false;
    std::error_code error;
    for (const char* level : reference_levels) fs::remove_all(folder_ + '/' + level, error);
    for (const char* further : {nudged_reference, rounded_reference})
        fs::remove_all(folder_ + '/' + further, error);
    fs::remove(folder_ + "/rounded.onnx", error);
    const auto ran = run_reference(settled_);
    if (!ran || *ran) return ran;
    row_.standard = {Verdict::State::fails,
                     request_.pictures[picture_].name + ": ONNX Runtime: " + row_.reference_text};
    row_.reference_runs = true;
    row_.reference_text.clear();
    return false;
}

}  // namespace

std::string recommended_shape(const std::string& refusal) {
    const size_t begin = refusal.find(option_word);
    if (begin == refusal.npos) return {};
    const std::string rest = refusal.substr(begin + std::string_view(option_word).size());
    // The name may hold blanks; what follows its colon are numbers and words in brackets.
    for (size_t colon = rest.find(':'); colon != rest.npos; colon = rest.find(':', colon + 1)) {
        size_t at = colon + 1;
        while (at < rest.size()) {
            if (rest[at] == '<') {
                const size_t close = rest.find('>', at);
                if (close == rest.npos) break;
                at = close + 1;
            } else if ((rest[at] >= '0' && rest[at] <= '9') || rest[at] == ',') {
                ++at;
            } else {
                break;
            }
        }
        if (at < rest.size() && rest[at] == ':') continue;  // still in the name
        while (at > colon + 1 && rest[at - 1] == ',') --at;
        if (at > colon + 1) return rest.substr(0, at);
    }
    return {};
}

Result<void> verify_model(const CollectionRequest& request, const OnnxRuntime& reference,
                          const std::string& model, ModelRow& row) {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    return ModelSteps(request, reference, model, folder->path(), row).run();
}

}  // namespace vartml::verify
