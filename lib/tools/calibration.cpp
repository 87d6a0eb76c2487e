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
#include "lib/tools/int8_agreement.h"
#include "lib/tools/pictures.h"
#include "lib/tools/tensor_file.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/feed.h"
#include "lib/tools/verify/reference.h"
#include "lib/vision/modelinfo.h"

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
        // Packed weights and unpacked archives are of no use to anybody else.
        auto folder = artifact::ExtractionFolder::create({});
        if (!folder) return folder.error();
        const std::unordered_map<std::string, std::any> options = {
            {"cache_path", folder->path()},
            {"input_tensor_type", std::string("CPU")},
            {"output_tensor_type", std::string("CPU")},
            {"log_level", std::string("ERROR")},
            {"name", std::string("calibrate")},
            {"vartml_numerics", std::string("f32")},
        };
        Session session;
        session.folder_ = std::make_unique<artifact::ExtractionFolder>(std::move(*folder));
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
        for (size_t i = 0; i < in_[0].size(); ++i) {
            const auto& info = in_[0][i].get_info();
            if (i >= inputs.size() || inputs[i].size() != info.size_in_bytes)
                return option_error("input '" + info.name + "' takes " +
                                    std::to_string(info.size_in_bytes) + " bytes, the sample has " +
                                    std::to_string(i < inputs.size() ? inputs[i].size() : 0));
            std::memcpy(in_[0][i].get_virtual_address(), inputs[i].data(), inputs[i].size());
        }
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
    std::unique_ptr<artifact::ExtractionFolder> folder_;  // private, gone with the session
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

// What is in a folder, sorted.
Result<std::vector<std::string>> entries_of(const std::string& folder) {
    std::vector<std::string> entries;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        entries.push_back(it->path());
    if (error) return option_error("'" + folder + "' cannot be read: " + error.message());
    std::ranges::sort(entries);
    return entries;
}

// input_0.npy, input_1.pb … of a folder.
std::vector<std::string> numbered_files(const std::string& folder) {
    std::vector<std::string> files;
    while (const auto file = find_tensor_file(folder, "input", files.size()))
        files.push_back(*file);
    return files;
}

// Trials are judged on so many samples at most, spread over the set.
constexpr size_t judged_samples = 64;
constexpr size_t most_loaded_bytes = size_t{512} << 20;
// Of outputs of the float model; below what the cache keeps of one file.
constexpr size_t most_compared_bytes = size_t{384} << 20;
// A second of a clip is one picture, so many at most, spread over the clip, or over its beginning
// where it is longer than so many seconds.
constexpr size_t pictures_of_clip = 32, seconds_of_clip = 256;

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
    const auto as_format = [](std::string text) {
        for (size_t at = 0; (at = text.find('%', at)) != text.npos; at += 2) text.insert(at, "%");
        return text;
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
                       "identity",
                       "eos-after=" + std::to_string(seconds_of_clip + 1),
                       "!",
                       "videoconvert",
                       "!",
                       "videoflip",  // as the camera was held, which is how it runs
                       "video-direction=auto",
                       "!",
                       "videoconvert",
                       "!",
                       "pngenc",
                       "!",
                       "multifilesink",
                       "location=" + quoted(as_format(folder) + "/%06d.png")};
    auto ended = run_child(child);
    if (!ended) return option_error("'" + clip + "' needs GStreamer: " + ended.error().message);
    std::vector<std::string> pictures;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        pictures.push_back(entry.path());
    if (error)
        return option_error("'" + clip + "' has no folder to be decoded to: " + folder + ": " +
                            error.message());
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
    std::vector<OutputAgreement> outputs;
    ObjectAgreement objects;
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
    std::vector<std::string> entries{dir};
    if (!is_file) {
        auto inside = entries_of(dir);
        if (!inside) return inside.error();
        entries = std::move(*inside);
    }
    size_t left_out = 0;
    std::string first_left_out;
    const auto leave_out = [&](const std::string& entry) {
        if (left_out++ == 0) first_left_out = entry;
    };
    if (auto files = numbered_files(dir); !files.empty()) {
        for (const std::string& entry : entries)
            if (is_sample_file(entry) && std::ranges::find(files, entry) == files.end())
                leave_out(entry);
        set.samples_.push_back({dir, std::move(files)});
    } else {
        for (const std::string& entry : entries) {
            if (fs::is_directory(entry, error)) {
                auto inside = entries_of(entry);
                if (!inside) return inside.error();
                auto own = numbered_files(entry);
                if (own.empty())
                    leave_out(entry);
                else
                    set.samples_.push_back({entry, std::move(own)});
            } else if (is_sample_file(entry)) {
                set.samples_.push_back({entry, {entry}});
            } else if (is_clip_file(entry)) {
                if (auto done = set.add_clip(entry); !done) return done.error();
            } else {
                leave_out(entry);
            }
        }
    }
    if (left_out != 0 && !set.samples_.empty())
        log(LogLevel::warning, "",
            "--quantize: " + std::to_string(left_out) + " of what is in '" + dir +
                "' is no sample, '" + first_left_out +
                "' to begin with; samples are .npy, .pb, .png and .jpg files, clips, and folders "
                "with input_0.npy …");
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
    const std::string* entry = model.find_file("modelinfo");
    ModelInfo info;
    if (entry) {
        auto parsed = parse_modelinfo(*entry, "modelinfo");
        if (!parsed) return parsed.error();
        info = *std::move(parsed);
    }
    info_ = info;
    verify::feed_sizes(info_, inputs_);
    const auto is_fed = [&](const TensorInfo& input) {
        const auto said = std::ranges::find(info_.inputs, input.name, &ModelInfo::Input::name);
        return said != info_.inputs.end() && !said->feed.empty();
    };
    picture_ = 0;
    while (picture_ < inputs_.size() &&
           (verify::picture_shape(inputs_[picture_].cpu).width == 0 || is_fed(inputs_[picture_])))
        ++picture_;
    if (picture_ == inputs_.size()) picture_ = 0;
    if (std::ranges::none_of(samples_, is_picture)) return {};
    const std::string& name = inputs_[picture_].name;
    const auto input = std::ranges::find(info.inputs, name, &ModelInfo::Input::name);
    const bool said = !info.decoder.empty() ||
                      (input != info.inputs.end() && vision::says_more_than_graph(*input));
    if (!said)
        return option_error(
            "'" + samples_[0].name +
            "' is a picture and the model has no sidecar that says how it becomes "
            "a tensor; give --decoder, which knows it for a family, or --mean, --scale "
            "and --channels");
    preprocess_ = preprocess_options(info, find_decoder_family(info.decoder), name);
    return {};
}

// Only where somebody said which, and only one of boxes.
void CalibrationSet::choose_decoder(const artifact::CompiledModel& model, size_t own_outputs) {
    outputs_.assign(model.outputs.begin(),
                    model.outputs.begin() +
                        static_cast<ptrdiff_t>(std::min(own_outputs, model.outputs.size())));
    const verify::PictureShape shape = verify::picture_shape(inputs_[picture_].cpu);
    if (info_.decoder.empty() || shape.width == 0) return;
    height_ = shape.height;
    width_ = shape.width;
    auto decoder = Decoder::create(info_, outputs_, width_, height_, {});
    if (decoder) decoder_ = std::make_shared<Decoder>(std::move(*decoder));
}

// None where the outputs are not the decoder's.
Decoded CalibrationSet::decode(std::span<const std::span<const float>> outputs) {
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
    return decoded;
}

// The samples whose outputs are kept to be compared with: as many as memory may take, one at
// least, spread over the set.
void CalibrationSet::choose_compared() {
    size_t bytes = 1;
    for (const TensorInfo& output : outputs_) bytes += output.cpu.size * sizeof(float);
    const size_t count = std::clamp<size_t>(most_compared_bytes / bytes, 1, samples_.size());
    compared_.clear();
    for (size_t n = 0; n < count; ++n) compared_.push_back(n * samples_.size() / count);
}

// Each trial reads all samples: decoding a picture takes longer than running a small model.
Result<std::shared_ptr<const CalibrationSet::Inputs>> CalibrationSet::load(size_t sample) {
    loaded_.resize(samples_.size());
    if (loaded_[sample]) return loaded_[sample];
    auto shared = read_shared(sample, inputs_);
    if (!shared) return shared.error();
    size_t bytes = 0;
    for (const auto& input : **shared) bytes += input.size();
    if (loaded_bytes_ + bytes <= most_loaded_bytes) {
        loaded_bytes_ += bytes;
        loaded_[sample] = *shared;
    }
    return shared;
}

Result<std::shared_ptr<const CalibrationSet::Inputs>> CalibrationSet::read_shared(
    size_t sample, const std::vector<TensorInfo>& inputs) const {
    auto read_inputs = read(samples_[sample], inputs);
    if (!read_inputs) return read_inputs.error();
    return std::make_shared<const Inputs>(*std::move(read_inputs));
}

bool CalibrationSet::is_picture(const Sample& sample) {
    return sample.files.size() == 1 && is_picture_file(sample.files[0]);
}

// The picture, and what the sidecar feeds beside it.
Result<CalibrationSet::Inputs> CalibrationSet::read_picture(
    const std::string& file, const std::vector<TensorInfo>& inputs) const {
    auto picture = load_picture(file);
    if (!picture) return Error{picture.error().code, "--quantize: " + picture.error().message};
    Inputs result;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorView& view = inputs[i].cpu;
        if (i != picture_) {
            auto fed = verify::beside_picture(inputs[i], info_, picture->width, picture->height);
            if (!fed) return option_error("'" + file + "': " + fed.error().message);
            result.push_back(std::move(fed->bytes));
            continue;
        }
        PreprocessOptions how = preprocess_;
        if (const std::string& order = inputs[i].picture; !order.empty()) {  // pixels as they are
            how.mean = {0, 0, 0};
            how.scale = {1, 1, 1};
            how.channels = order.starts_with("bgr")    ? ChannelOrder::bgr
                           : order.starts_with("gray") ? ChannelOrder::gray
                                                       : ChannelOrder::rgb;
        }
        auto preprocessor = Preprocessor::create(
            {.format = PixelFormat::RGB, .width = picture->width, .height = picture->height}, {},
            view, view, how);
        if (!preprocessor) return option_error(preprocessor.error().message);
        Picture planes;
        planes.planes[0] = picture->rgb.data();
        planes.stride_bytes[0] = picture->width * 3;
        preprocessor->run(planes, result.emplace_back(view.size_bytes).data());
    }
    return result;
}

Result<CalibrationSet::Inputs> CalibrationSet::read(const Sample& sample,
                                                    const std::vector<TensorInfo>& inputs) const {
    if (is_picture(sample)) return read_picture(sample.files[0], inputs);
    if (sample.files.size() != inputs.size())
        return option_error(
            "'" + sample.name + "' has " + std::to_string(sample.files.size()) +
            " inputs, the model " + std::to_string(inputs.size()) +
            "; a sample is a folder with input_0.npy and so on, or of a model with one input any "
            "file that is not called input_0");
    Inputs result;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const TensorView& view = inputs[i].cpu;
        auto tensor = read_tensor(sample.files[i]);
        if (!tensor) return tensor.error();
        if (!verify::fits(*tensor, view.data_type, view.shape))
            return option_error("'" + sample.files[i] + "' holds " +
                                verify::describe(tensor->type, tensor->shape) + ", input '" +
                                inputs[i].name + "' is " +
                                verify::describe(view.data_type, view.shape));
        result.push_back(std::move(tensor->bytes));
    }
    return result;
}

Result<compiler::Statistics> CalibrationSet::measure(const artifact::CompiledModel& probe,
                                                     size_t own_outputs) {
    inputs_ = probe.inputs;
    if (auto done = choose_preprocess(probe); !done) return done.error();
    choose_decoder(probe, own_outputs);
    choose_compared();
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/probe.rai";
    if (auto written = artifact::write_rai(probe, path); !written) return written.error();
    const auto run = [&] { return run_probe(path, own_outputs); };
    auto digest = digest_of(path);
    if (!digest) return digest.error();
    auto bytes = cache_.get("statistics 3\n" + key_ + '\n' + *digest, run);
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
    writer.number(uint64_t{compared_.size()});
    for (size_t s = 0, next = 0; s < samples_.size(); ++s) {
        const bool is_kept = next < compared_.size() && compared_[next] == s;
        if (is_kept) ++next;
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
                if (is_kept) writer.list(own);
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
    return reader.is_done() && floats_.size() == compared_.size();
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

Result<CalibrationSet::Comparison> CalibrationSet::compare(
    const std::string& compiled, size_t most_samples, const std::vector<TensorInfo>* takes_pixels) {
    auto session = Session::open(compiled);
    if (!session) return session.error();
    const DecoderFamily* family = find_decoder_family(info_.decoder);
    Comparison result;
    result.objects = ObjectAgreement(
        static_cast<float>(info_.score_threshold.value_or(family ? family->score_threshold : 0)));
    using Lists = std::vector<std::span<const float>>;
    const auto lists_of = [](const std::vector<std::vector<float>>& outputs) {
        return Lists(outputs.begin(), outputs.end());
    };
    for (size_t i = 0; i < names_.size(); ++i) {
        Lists samples;
        for (const auto& outputs : floats_) samples.emplace_back(outputs[i]);
        result.outputs.emplace_back(outputs_[i], samples);
    }
    const size_t count = std::min(compared_.size(), most_samples);
    for (size_t n = 0; n < count; ++n) {
        const size_t at = n * compared_.size() / count;
        const auto& exact = floats_[at];
        auto inputs =
            takes_pixels ? read_shared(compared_[at], *takes_pixels) : load(compared_[at]);
        if (!inputs) return inputs.error();
        if (auto done = session->run(**inputs); !done) return done.error();
        std::vector<std::vector<float>> found;
        for (size_t i = 0; i < result.outputs.size(); ++i) {
            found.push_back(session->numbers(i, outputs_[i].cpu.data_type));
            if (!found[i].empty() && found[i].size() == exact[i].size())
                result.outputs[i].add(found[i], exact[i]);
        }
        if (decoder_) result.objects.add(decode(lists_of(found)), decode(lists_of(exact)));
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
    auto bytes = cache_.get("verdict 6\n" + key_ + '\n' + *digest, [&]() -> Result<std::string> {
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
    auto compared = compare(path, judged_samples, nullptr);
    if (!compared) return compared.error();
    return verdict_of(compared->outputs, compared->objects);
}

Result<std::string> CalibrationSet::cost(const std::string& compiled) {
    if (floats_.empty()) return std::string();  // the result was up to date, nothing was measured
    const auto model = artifact::read(compiled);
    if (!model) return model.error();
    const bool takes_pixels =
        std::ranges::any_of(model->inputs, [](const TensorInfo& i) { return !i.picture.empty(); });
    if (takes_pixels && !std::ranges::all_of(samples_, is_picture))
        return std::string(
            "int8 against float32: not measured, the samples are tensors and the model takes "
            "pixels\n");
    auto compared = compare(compiled, samples_.size(), takes_pixels ? &model->inputs : nullptr);
    if (!compared) return compared.error();
    const ObjectAgreement& objects = compared->objects;
    const std::string way_out = "give more samples of what the model will see than these " +
                                std::to_string(samples_.size()) +
                                ", or a higher --quantize-target, which keeps more in floats";
    const std::string of_all = compared_.size() < samples_.size()
                                   ? " of the " + std::to_string(samples_.size())
                                   : std::string();
    std::string text = "int8 against float32 on " + std::to_string(compared_.size()) + of_all +
                       " samples" + (was_known_ ? ", measured before" : "") + ":\n";
    for (size_t i = 0; i < compared->outputs.size(); ++i) {
        const OutputAgreement& output = compared->outputs[i];
        text += "output '" + names_[i] + "': " + output.text() + '\n';
        if (!output.is_usual() && objects.is_empty())
            log(LogLevel::warning, "",
                "--quantize: output '" + names_[i] +
                    "' of the int8 model is not that of the float model, " + output.text() + "; " +
                    way_out);
    }
    if (objects.is_empty()) return text;
    const std::string again = std::to_string(objects.found_again()) + " of " +
                              std::to_string(objects.expected()) + " are found again";
    char line[80];
    std::snprintf(line, sizeof line, "; of all that both find %.1f %% are the same\n",
                  100 * objects.value());
    text += "objects: " + again + " (IoU 0.9, score 0.1)" + line;
    if (!objects.is_usual())
        log(LogLevel::warning, "",
            "--quantize: of the objects of the float model " + again + " by the int8 model; " +
                way_out);
    return text;
}

}  // namespace vartml::tools
