// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/calibration.h"

#include <algorithm>
#include <any>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unordered_map>

#include <vartml/log.h>
#include <vartml/postprocess.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/base/sha256.h"
#include "lib/compile/stored.h"
#include "lib/model/entries.h"
#include "lib/tools/pictures.h"
#include "lib/tools/tensor_file.h"
#include "lib/tools/verify/compare.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;
using vart::TensorDirection;
using vart::TensorType;

Error option_error(const std::string& text) {
    return {ErrorCode::invalid_argument, "--quantize: " + text};
}

// A model on its CPU views, in float32.
class Session {
public:
    static Result<Session> open(const std::string& path) {
        // Packed weights of a trial are of no use to anybody else: they go with its file.
        const std::unordered_map<std::string, std::any> options = {
            {"cache_path", fs::path(path).parent_path().string()},
            {"input_tensor_type", std::string("CPU")},
            {"output_tensor_type", std::string("CPU")},
            {"log_level", std::string("ERROR")},
            {"name", std::string("calibrate")},
            {"vartml_numerics", std::string("f32")},
        };
        Session session;
        try {
            session.runner_ =
                vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path, options);
        } catch (const std::exception& e) {
            return option_error(e.what());
        }
        for (const auto direction : {TensorDirection::INPUT, TensorDirection::OUTPUT}) {
            auto& tensors = direction == TensorDirection::INPUT ? session.in_ : session.out_;
            tensors.resize(1);
            for (const auto& info : session.runner_->get_tensors_info(direction, TensorType::CPU))
                tensors[0].push_back(session.runner_->allocate_npu_tensor(info));
        }
        return session;
    }

    Result<void> run(const std::vector<std::vector<std::byte>>& inputs) {
        for (size_t i = 0; i < in_[0].size() && i < inputs.size(); ++i)
            std::memcpy(in_[0][i].get_virtual_address(), inputs[i].data(),
                        std::min(inputs[i].size(), size_t{in_[0][i].get_info().size_in_bytes}));
        if (runner_->execute(in_, out_) == vart::StatusCode::SUCCESS) return {};
        return option_error(std::any_cast<std::string>(runner_->get_property("last_error")));
    }

    size_t num_outputs() const { return out_[0].size(); }
    std::string name(size_t i) const { return out_[0][i].get_info().name; }
    std::vector<uint32_t> shape(size_t i) const { return out_[0][i].get_info().shape; }
    // Empty for outputs that are not float32.
    std::span<const float> floats(size_t i) const {
        const auto& info = out_[0][i].get_info();
        if (info.data_type != vart::DataType::FLOAT32) return {};
        return {static_cast<const float*>(out_[0][i].get_virtual_address()),
                info.size_in_bytes / sizeof(float)};
    }
    // Of an output of that type; whole numbers beyond 2^24 are rounded.
    std::vector<float> numbers(size_t i, DataType type) const {
        const auto* const bytes = static_cast<const std::byte*>(out_[0][i].get_virtual_address());
        const auto wide =
            verify::numbers_of({type, {}, {bytes, bytes + out_[0][i].get_info().size_in_bytes}});
        return {wide.begin(), wide.end()};
    }

private:
    std::shared_ptr<vart::Runner> runner_;
    std::vector<std::vector<vart::NpuTensor>> in_, out_;
};

Result<std::string> digest_of(const std::string& path) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    return to_hex(sha256((*file)->bytes()));
}

// A tensor with its channels, which are its second axis.
template <typename Size>
void add(compiler::TensorStatistics& statistics, std::span<const float> values,
         const std::vector<Size>& shape) {
    size_t inner = 1;
    for (size_t i = 2; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
    statistics.add(values, shape.size() < 2 ? 0 : static_cast<size_t>(shape[1]), inner);
}

bool is_sample_file(const std::string& name) {
    return name.ends_with(".npy") || name.ends_with(".pb") || is_picture_file(name);
}

// Values that are no numbers would spoil every range and every comparison.
Result<void> expect_finite(std::span<const float> values, const std::string& tensor,
                           const std::string& sample) {
    const auto found = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (found == values.end()) return {};
    return option_error("'" + sample + "': " + tensor + " has " + std::to_string(*found) +
                        " at element " + std::to_string(found - values.begin()) +
                        ", expected finite numbers; leave the sample out, or mend it");
}

// input_0.npy, input_1.pb … of a folder.
std::vector<std::string> numbered_files(const std::string& folder) {
    std::vector<std::string> files;
    while (const auto file = find_tensor_file(folder, "input", files.size()))
        files.push_back(*file);
    return files;
}

// Outputs of an int8 model that does what the float model does.
constexpr double usual_cosine = 0.99, usual_boxes = 0.9, usual_elements = 0.9;
// What is asked for without --quantize-target.
constexpr double wanted_correlation = 0.9995, wanted_boxes = 0.97, wanted_elements = 0.97;

// Boxes that int8 finds again as the float model does; what an application may not notice.
constexpr float least_iou = 0.9F, most_difference = 0.1F;
// Trials are judged on so many samples at most, spread over the set.
constexpr size_t judged_samples = 64;
constexpr size_t most_loaded_bytes = size_t{512} << 20;
// A second of a clip is one picture, so many at most, spread over the clip.
constexpr size_t pictures_of_clip = 32;

struct Agreement {
    double dot = 0, found = 0, expected = 0, error = 0;
    double found_sum = 0, expected_sum = 0, elements = 0;
    size_t same_top = 0, samples = 0;
    double same = 0;        // elements
    bool is_whole = false;  // classes, places: a little off is as wrong as far off
    double part_that_is_same() const { return elements > 0 ? same / elements : 1; }
};

void add(Agreement& a, std::span<const float> found, std::span<const float> expected) {
    for (size_t i = 0; i < found.size(); ++i) {
        const double x = found[i], y = expected[i];
        a.dot += x * y;
        a.found += x * x;
        a.expected += y * y;
        a.error += (x - y) * (x - y);
        a.found_sum += x;
        a.expected_sum += y;
        a.same += x == y ? 1 : 0;
    }
    a.elements += static_cast<double>(found.size());
    const auto top = [](std::span<const float> v) {
        return std::ranges::max_element(v) - v.begin();
    };
    a.same_top += top(found) == top(expected) ? 1 : 0;
    ++a.samples;
}

double cosine_of(const Agreement& a) {
    const double length = std::sqrt(a.found) * std::sqrt(a.expected);
    return length > 0 ? a.dot / length : a.error == 0 ? 1.0 : 0.0;
}

// The cosine of what differs from the mean; of an output that hardly does, of all.
double correlation_of(const Agreement& a) {
    const double dot = a.dot - a.found_sum * a.expected_sum / a.elements;
    const double found = a.found - a.found_sum * a.found_sum / a.elements;
    const double expected = a.expected - a.expected_sum * a.expected_sum / a.elements;
    if (!(expected > 1e-3 * a.expected) || !(found > 0)) return cosine_of(a);
    return dot / std::sqrt(found * expected);
}

float iou(const Detection& a, const Detection& b) {
    const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (width <= 0 || height <= 0) return 0;
    const auto area = [](const Detection& d) { return (d.x1 - d.x0) * (d.y1 - d.y0); };
    return width * height / (area(a) + area(b) - width * height);
}

struct Boxes {
    size_t same = 0, all = 0;
};

// Each of `these` that is well above the threshold is to be among `those`.
void add(Boxes& boxes, const std::vector<Detection>& these, const std::vector<Detection>& those,
         float threshold) {
    for (const Detection& box : these) {
        if (box.score < threshold + most_difference) continue;
        ++boxes.all;
        const auto is_it = [&](const Detection& other) {
            return other.class_id == box.class_id && iou(box, other) >= least_iou &&
                   std::fabs(box.score - other.score) <= most_difference;
        };
        if (std::ranges::any_of(those, is_it)) ++boxes.same;
    }
}

// How much of an output is the float model's.
double agreement_of(const Agreement& a) {
    return a.is_whole ? a.part_that_is_same() : correlation_of(a);
}

std::string describe(const std::string& name, const Agreement& a, bool is_list) {
    if (a.is_whole) {
        char text[80];
        std::snprintf(text, sizeof text, "': %.2f %% of the elements are the same\n",
                      100 * a.part_that_is_same());
        return "output '" + name + text;
    }
    const double decibels =
        a.error == 0 ? 99 : 10 * std::log10(a.expected / a.error);  // 99: no difference at all
    char text[160];
    std::snprintf(text, sizeof text, "cosine %.5f, signal to error %.1f dB", cosine_of(a),
                  std::min(decibels, 99.0));
    std::string line = "output '" + name + "': " + text;
    if (is_list)
        line +=
            ", same top class " + std::to_string(a.same_top) + " of " + std::to_string(a.samples);
    return line + '\n';
}

bool is_clip_file(const std::string& name) {
    constexpr std::string_view endings[] = {".avi", ".mkv", ".mov", ".mp4", ".webm"};
    return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
}

// Pictures of a clip as files of `folder`, in its order.
Result<std::vector<std::string>> decode_clip(const std::string& clip, const std::string& folder) {
    const auto quoted = [](const std::string& text) {
        std::string result = "\"";
        for (const char c : text) result += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
        return result + '"';
    };
    Child child;
    child.arguments = {"gst-launch-1.0",
                       "-q",
                       "filesrc",
                       "location=" + quoted(clip),
                       "!",
                       "decodebin",
                       "!",
                       "videorate",
                       "drop-only=true",
                       "!",
                       "video/x-raw,framerate=1/1",
                       "!",
                       "videoconvert",
                       "!",
                       "pngenc",
                       "!",
                       "multifilesink",
                       "location=" + quoted(folder + "/%06d.png")};
    auto ended = run_child(child);
    if (!ended) return option_error("'" + clip + "' needs GStreamer: " + ended.error().message);
    std::vector<std::string> pictures;
    for (const auto& entry : fs::directory_iterator(folder)) pictures.push_back(entry.path());
    if (ended->exit_status != 0 || pictures.empty())
        return option_error("'" + clip + "' is no clip that GStreamer decodes: " +
                            ended->stderr_tail.substr(0, ended->stderr_tail.find('\n')));
    std::ranges::sort(pictures);
    std::vector<std::string> some;
    const size_t count = std::min(pictures.size(), pictures_of_clip);
    for (size_t i = 0; i < count; ++i) some.push_back(pictures[i * pictures.size() / count]);
    return some;
}

}  // namespace

// What came out of a model beside what comes out of the float one.
struct CalibrationSet::Comparison {
    std::vector<Agreement> outputs;
    std::vector<std::vector<uint32_t>> shapes;
    Boxes boxes;
};

Result<CalibrationSet> CalibrationSet::open(const std::string& dir) {
    std::error_code error;
    const bool is_file = fs::is_regular_file(dir, error);
    if (!fs::is_directory(dir, error) && !(is_file && (is_sample_file(dir) || is_clip_file(dir))))
        return option_error("'" + dir + "' is no folder, and no picture, tensor or clip");
    CalibrationSet set;
    if (const std::string cache = user_cache_folder(); !cache.empty())
        set.cache_ = CalibrationCache(cache + "/calibration");
    set.dir_ = dir;
    std::vector<fs::path> entries{dir};
    if (!is_file) entries.assign(fs::directory_iterator(dir), fs::directory_iterator{});
    std::ranges::sort(entries);
    if (auto files = numbered_files(dir); !files.empty()) {
        set.samples_.push_back({dir, std::move(files)});
    } else {
        for (const fs::path& entry : entries) {
            if (fs::is_directory(entry)) {
                if (auto own = numbered_files(entry.string()); !own.empty())
                    set.samples_.push_back({entry.string(), std::move(own)});
            } else if (is_sample_file(entry.string())) {
                set.samples_.push_back({entry.string(), {entry.string()}});
            } else if (is_clip_file(entry.string())) {
                if (auto done = set.add_clip(entry.string()); !done) return done.error();
            }
        }
    }
    if (set.samples_.empty())
        return option_error("'" + dir +
                            "' holds no sample; expected .npy, .pb, .png or .jpg files, clips, "
                            "or folders with input_0.npy …");
    Sha256 hash;
    for (const Sample& sample : set.samples_)
        for (const std::string& file : sample.files) {
            auto mapped = MappedFile::open(file);
            if (!mapped) return mapped.error();
            const bool own = !set.frames_ || !file.starts_with(set.frames_->path());
            const std::string name =
                fs::path(file).lexically_relative(own ? dir : set.frames_->path()).string();
            hash.update(as_bytes(name + '\n' + std::to_string((*mapped)->bytes().size()) + '\n'));
            hash.update((*mapped)->bytes());
        }
    set.key_ = to_hex(hash.finish());
    return set;
}

Result<void> CalibrationSet::add_clip(const std::string& clip) {
    if (!frames_) {
        auto folder = artifact::ExtractionFolder::create({});
        if (!folder) return folder.error();
        frames_ = std::make_shared<artifact::ExtractionFolder>(std::move(*folder));
    }
    const std::string own = frames_->path() + '/' + std::to_string(samples_.size());
    std::error_code error;
    fs::create_directory(own, error);
    auto pictures = decode_clip(clip, own);
    if (!pictures) return pictures.error();
    for (const std::string& picture : *pictures) samples_.push_back({picture, {picture}});
    return {};
}

// The input keys of the probe's sidecar, which also has those of the command line.
Result<void> CalibrationSet::choose_preprocess(const artifact::CompiledModel& model) {
    const auto is_picture = [](const Sample& s) {
        return s.files.size() == 1 && is_picture_file(s.files[0]);
    };
    const std::string* entry = model.find_file("modelinfo");
    ModelInfo info;
    if (entry) {
        auto parsed = parse_modelinfo(*entry, "modelinfo");
        if (!parsed) return parsed.error();
        info = *std::move(parsed);
    }
    info_ = info;
    if (std::ranges::none_of(samples_, is_picture)) return {};
    const auto input = std::ranges::find(info.inputs, inputs_[0].name, &ModelInfo::Input::name);
    const bool said = !info.decoder.empty() || input != info.inputs.end();
    if (!said)
        return option_error(
            "'" + samples_[0].name +
            "' is a picture and the model has no sidecar that says how it becomes "
            "a tensor; give --decoder, which knows it for a family, or --mean, --scale "
            "and --channels");
    preprocess_ = preprocess_options(info, find_decoder_family(info.decoder), inputs_[0].name);
    return {};
}

// Only where somebody said which, and only one of boxes.
void CalibrationSet::choose_decoder(const artifact::CompiledModel& model, size_t own_outputs) {
    outputs_.assign(model.outputs.begin(),
                    model.outputs.begin() +
                        static_cast<ptrdiff_t>(std::min(own_outputs, model.outputs.size())));
    const std::vector<int64_t> shape(inputs_[0].cpu.shape.begin(), inputs_[0].cpu.shape.end());
    if (info_.decoder.empty() || shape.size() != 4) return;
    const bool channels_first = shape[1] <= 4;
    height_ = static_cast<uint32_t>(shape[channels_first ? 2 : 1]);
    width_ = static_cast<uint32_t>(shape[channels_first ? 3 : 2]);
    auto decoder = Decoder::create(info_, outputs_, width_, height_, {});
    if (decoder) decoder_ = std::make_shared<Decoder>(std::move(*decoder));
}

// None where the outputs are not the decoder's.
std::vector<Detection> CalibrationSet::decode(const std::vector<std::vector<float>>& outputs) {
    std::vector<OutputTensor> tensors;
    std::vector<TensorView> views;
    for (const TensorInfo& output : outputs_) {
        views.push_back(output.cpu);
        views.back().data_type = DataType::float32;
        views.back().size_bytes = uint64_t{views.back().size} * sizeof(float);
    }
    for (size_t i = 0; i < outputs_.size() && i < outputs.size(); ++i)
        tensors.push_back({outputs[i].data(), outputs_[i].name, &views[i], &views[i]});
    Decoded decoded;
    if (!decoder_ || !decoder_->decode(tensors, {}, width_, height_, decoded)) return {};
    return decoded.detections;
}

// Each trial reads all samples: decoding a picture takes longer than running a small model.
Result<std::shared_ptr<const CalibrationSet::Inputs>> CalibrationSet::load(size_t sample) {
    loaded_.resize(samples_.size());
    if (loaded_[sample]) return loaded_[sample];
    auto inputs = read(samples_[sample]);
    if (!inputs) return inputs.error();
    auto shared = std::make_shared<const Inputs>(*std::move(inputs));
    size_t bytes = 0;
    for (const auto& input : *shared) bytes += input.size();
    if (loaded_bytes_ + bytes <= most_loaded_bytes) {
        loaded_bytes_ += bytes;
        loaded_[sample] = shared;
    }
    return shared;
}

Result<CalibrationSet::Inputs> CalibrationSet::read(const Sample& sample) const {
    const std::vector<TensorInfo>& inputs = inputs_;
    if (sample.files.size() != inputs.size())
        return option_error("'" + sample.name + "' has " + std::to_string(sample.files.size()) +
                            " inputs, the model " + std::to_string(inputs.size()));
    Inputs result;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorView& view = inputs[i].cpu;
        if (is_picture_file(sample.files[i])) {
            auto picture = load_picture(sample.files[i]);
            if (!picture) return picture.error();
            auto preprocessor = Preprocessor::create(
                {.format = PixelFormat::RGB, .width = picture->width, .height = picture->height},
                {}, view, view, preprocess_);
            if (!preprocessor) return option_error(preprocessor.error().message);
            Picture planes;
            planes.planes[0] = picture->rgb.data();
            planes.stride_bytes[0] = picture->width * 3;
            preprocessor->run(planes, result.emplace_back(view.size_bytes).data());
            continue;
        }
        auto tensor = read_tensor(sample.files[i]);
        if (!tensor) return tensor.error();
        if (tensor->type != view.data_type || tensor->bytes.size() != view.size_bytes)
            return option_error("'" + sample.files[i] + "' holds " +
                                std::to_string(tensor->bytes.size()) + " bytes of " +
                                std::string(to_string(tensor->type)) + ", input '" +
                                inputs[i].name + "' has " + std::to_string(view.size_bytes) +
                                " of " + std::string(to_string(view.data_type)));
        result.push_back(std::move(tensor->bytes));
    }
    return result;
}

Result<compiler::Statistics> CalibrationSet::measure(const artifact::CompiledModel& probe,
                                                     size_t own_outputs) {
    inputs_ = probe.inputs;
    if (auto done = choose_preprocess(probe); !done) return done.error();
    choose_decoder(probe, own_outputs);
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/probe.rai";
    if (auto written = artifact::write_rai(probe, path); !written) return written.error();
    const auto run = [&] { return run_probe(path, own_outputs); };
    auto digest = digest_of(path);
    if (!digest) return digest.error();
    auto bytes = cache_.get("statistics 2\n" + key_ + '\n' + *digest, run);
    compiler::Statistics statistics;
    if (!bytes) return bytes.error();
    if (take_measured(*bytes, statistics)) return statistics;
    bytes = run();  // another build of this version kept something else
    if (!bytes) return bytes.error();
    take_measured(*bytes, statistics);
    return statistics;
}

// Runs all samples; what take_measured() reads.
Result<std::string> CalibrationSet::run_probe(const std::string& probe, size_t own_outputs) {
    was_known_ = false;
    auto session = Session::open(probe);
    if (!session) return session.error();
    compiler::Writer writer;
    writer.number(uint64_t{own_outputs});
    for (size_t i = 0; i < own_outputs; ++i) writer.text(session->name(i));
    compiler::Statistics statistics;
    writer.number(uint64_t{samples_.size()});
    for (size_t s = 0; s < samples_.size(); ++s) {
        auto inputs = load(s);
        if (!inputs) return inputs.error();
        if (auto done = session->run(**inputs); !done) return done.error();
        for (size_t i = 0; i < inputs_.size(); ++i) {
            if (inputs_[i].cpu.data_type != DataType::float32) continue;
            const std::span<const float> values{
                reinterpret_cast<const float*>((**inputs)[i].data()),
                (**inputs)[i].size() / sizeof(float)};
            const std::string tensor = "input '" + inputs_[i].name + "'";
            if (auto finite = expect_finite(values, tensor, samples_[s].name); !finite)
                return finite.error();
            add(statistics[inputs_[i].name], values, inputs_[i].cpu.shape);
        }
        for (size_t i = 0; i < session->num_outputs(); ++i) {
            const std::span<const float> values = session->floats(i);
            if (i < own_outputs) {
                const std::vector<float> own = session->numbers(i, outputs_[i].cpu.data_type);
                const std::string tensor = "output '" + session->name(i) + "' of the float model";
                if (auto finite = expect_finite(own, tensor, samples_[s].name); !finite)
                    return finite.error();
                writer.list(own);
            }
            if (!values.empty()) add(statistics[session->name(i)], values, session->shape(i));
        }
    }
    compiler::write(writer, statistics);
    return writer.take();
}

bool CalibrationSet::take_measured(std::string_view bytes, compiler::Statistics& statistics) {
    compiler::Reader reader(bytes);
    names_.assign(reader.number<uint64_t>() % (bytes.size() + 1), "");
    for (std::string& name : names_) name = reader.text();
    floats_.assign(reader.number<uint64_t>() % (bytes.size() + 1), {});
    for (auto& sample : floats_)
        for (size_t i = 0; i < names_.size(); ++i) sample.push_back(reader.list<float>());
    statistics = compiler::read_statistics(reader);
    return reader.is_done() && floats_.size() == samples_.size();
}

Result<void> CalibrationSet::run_both(const artifact::CompiledModel& exact,
                                      const artifact::CompiledModel& found, size_t most_samples,
                                      const compiler::Take& take) {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    std::vector<Session> sessions;
    for (const auto& [model, name] : {std::pair(&exact, "/exact.rai"), {&found, "/found.rai"}}) {
        const std::string path = folder->path() + name;
        if (auto written = artifact::write_rai(*model, path); !written) return written.error();
        auto session = Session::open(path);
        if (!session) return session.error();
        sessions.push_back(std::move(*session));
    }
    const size_t count = std::min(samples_.size(), most_samples);
    for (size_t n = 0; n < count; ++n) {
        auto inputs = load(n * samples_.size() / count);
        if (!inputs) return inputs.error();
        compiler::Outputs outputs[2];
        for (size_t m = 0; m < 2; ++m) {
            if (auto done = sessions[m].run(**inputs); !done) return done.error();
            for (size_t i = 0; i < sessions[m].num_outputs(); ++i)
                outputs[m].push_back(sessions[m].floats(i));
        }
        take(outputs[0], outputs[1], n, count);
    }
    return {};
}

Result<CalibrationSet::Comparison> CalibrationSet::compare(const std::string& compiled,
                                                           size_t most_samples) {
    auto session = Session::open(compiled);
    if (!session) return session.error();
    const DecoderFamily* family = find_decoder_family(info_.decoder);
    const auto threshold =
        static_cast<float>(info_.score_threshold.value_or(family ? family->score_threshold : 0));
    Comparison result;
    result.outputs.resize(session->num_outputs());
    for (size_t i = 0; i < session->num_outputs(); ++i) result.shapes.push_back(session->shape(i));
    const size_t count = std::min(samples_.size(), most_samples);
    for (size_t n = 0; n < count; ++n) {
        const size_t s = n * samples_.size() / count;
        auto inputs = load(s);
        if (!inputs) return inputs.error();
        if (auto done = session->run(**inputs); !done) return done.error();
        std::vector<std::vector<float>> outputs;
        for (size_t i = 0; i < result.outputs.size() && i < names_.size(); ++i) {
            const DataType type = outputs_[i].cpu.data_type;
            const std::vector<float>& found = outputs.emplace_back(session->numbers(i, type));
            result.outputs[i].is_whole = !verify::is_float(type);
            if (!found.empty() && found.size() == floats_[s][i].size())
                add(result.outputs[i], found, floats_[s][i]);
        }
        if (!decoder_) continue;
        const auto found = decode(outputs), expected = decode(floats_[s]);
        add(result.boxes, found, expected, threshold);
        add(result.boxes, expected, found, threshold);
    }
    return result;
}

Result<compiler::Verdict> CalibrationSet::judge(const artifact::CompiledModel& trial) {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/trial.rai";
    if (auto written = artifact::write_rai(trial, path); !written) return written.error();
    auto digest = digest_of(path);
    if (!digest) return digest.error();
    auto bytes = cache_.get("verdict 2\n" + key_ + '\n' + *digest, [&]() -> Result<std::string> {
        auto verdict = judge_file(path);
        if (!verdict) return verdict.error();
        compiler::Writer writer;
        writer.number(*verdict);
        return writer.take();
    });
    if (!bytes) return bytes.error();
    return compiler::Reader(*bytes).number<compiler::Verdict>();
}

Result<compiler::Verdict> CalibrationSet::judge_file(const std::string& path) {
    auto compared = compare(path, judged_samples);
    if (!compared) return compared.error();
    double least = 1, wanted = wanted_correlation;
    for (const Agreement& output : compared->outputs) {
        if (output.samples == 0 || !(agreement_of(output) < least)) continue;
        least = agreement_of(output);
        wanted = output.is_whole ? wanted_elements : wanted_correlation;
    }
    const Boxes& boxes = compared->boxes;
    if (boxes.all == 0) return compiler::Verdict{least, 1 - least, wanted};
    return compiler::Verdict{static_cast<double>(boxes.same) / static_cast<double>(boxes.all),
                             1 - least, wanted_boxes};
}

Result<std::string> CalibrationSet::cost(const std::string& compiled) {
    if (floats_.empty()) return std::string();  // the result was up to date, nothing was measured
    auto compared = compare(compiled, samples_.size());
    if (!compared) return compared.error();
    const auto& agreements = compared->outputs;
    std::string text = "int8 against float32 on " + std::to_string(samples_.size()) + " samples" +
                       (was_known_ ? ", measured before" : "") + ":\n";
    for (size_t i = 0; i < agreements.size() && i < names_.size(); ++i) {
        const auto& shape = compared->shapes[i];
        const bool is_list = shape.size() == 2 && shape[0] == 1 && shape[1] > 1;
        if (agreements[i].samples == 0) continue;
        text += describe(names_[i], agreements[i], is_list);
        const bool is_whole = agreements[i].is_whole;
        const bool is_near = is_whole ? agreements[i].part_that_is_same() >= usual_elements
                                      : cosine_of(agreements[i]) >= usual_cosine;
        if (!is_near && compared->boxes.all == 0)
            log(LogLevel::warning, "",
                "--quantize: output '" + names_[i] +
                    "' of the int8 model is not that of the float model, " +
                    (is_whole ? "less than 90 % of its elements are the same; "
                              : "its cosine is below 0.99; ") +
                    "give more samples of what the model will see than these " +
                    std::to_string(samples_.size()) +
                    ", or a higher --quantize-target, which keeps more in floats");
    }
    if (const Boxes& boxes = compared->boxes; boxes.all != 0) {
        char line[120];
        const double percent =
            100 * static_cast<double>(boxes.same) / static_cast<double>(boxes.all);
        std::snprintf(line, sizeof line,
                      "boxes: %.1f %% of %zu are found again (IoU 0.9, score 0.1)\n", percent,
                      boxes.all);
        text += line;
        if (percent < 100 * usual_boxes)
            log(LogLevel::warning, "",
                "--quantize: of the boxes of the float model the int8 model finds " +
                    std::to_string(boxes.same) + " of " + std::to_string(boxes.all) +
                    " again; give more samples of what the model will see, or a higher "
                    "--quantize-target, which keeps more in floats");
    }
    return text;
}

}  // namespace vartml::tools
