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
#include "lib/base/sha256.h"
#include "lib/model/entries.h"
#include "lib/tools/pictures.h"
#include "lib/tools/tensor_file.h"

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
        const std::unordered_map<std::string, std::any> options = {
            {"input_tensor_type", std::string("CPU")}, {"output_tensor_type", std::string("CPU")},
            {"log_level", std::string("ERROR")},       {"name", std::string("calibrate")},
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

private:
    std::shared_ptr<vart::Runner> runner_;
    std::vector<std::vector<vart::NpuTensor>> in_, out_;
};

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

// input_0.npy, input_1.pb … of a folder.
std::vector<std::string> numbered_files(const std::string& folder) {
    std::vector<std::string> files;
    while (const auto file = find_tensor_file(folder, "input", files.size()))
        files.push_back(*file);
    return files;
}

// Outputs of an int8 model that does what the float model does.
constexpr double usual_cosine = 0.99;

struct Agreement {
    double dot = 0, found = 0, expected = 0, error = 0;
    size_t same_top = 0, samples = 0;
};

void add(Agreement& a, std::span<const float> found, std::span<const float> expected) {
    for (size_t i = 0; i < found.size(); ++i) {
        const double x = found[i], y = expected[i];
        a.dot += x * y;
        a.found += x * x;
        a.expected += y * y;
        a.error += (x - y) * (x - y);
    }
    const auto top = [](std::span<const float> v) {
        return std::ranges::max_element(v) - v.begin();
    };
    a.same_top += top(found) == top(expected) ? 1 : 0;
    ++a.samples;
}

double cosine_of(const Agreement& a) {
    const double length = std::sqrt(a.found) * std::sqrt(a.expected);
    return length > 0 ? a.dot / length : a.error > 0 ? 0.0 : 1.0;
}

std::string describe(const std::string& name, const Agreement& a, bool is_list) {
    const double decibels =
        a.error > 0 ? 10 * std::log10(a.expected / a.error) : 99;  // no difference at all
    char text[160];
    std::snprintf(text, sizeof text, "cosine %.5f, signal to error %.1f dB", cosine_of(a),
                  std::min(decibels, 99.0));
    std::string line = "output '" + name + "': " + text;
    if (is_list)
        line +=
            ", same top class " + std::to_string(a.same_top) + " of " + std::to_string(a.samples);
    return line + '\n';
}

}  // namespace

Result<CalibrationSet> CalibrationSet::open(const std::string& dir) {
    std::error_code error;
    if (!fs::is_directory(dir, error)) return option_error("'" + dir + "' is no folder");
    CalibrationSet set;
    set.dir_ = dir;
    std::vector<fs::path> entries(fs::directory_iterator(dir), fs::directory_iterator{});
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
            }
        }
    }
    if (set.samples_.empty())
        return option_error("'" + dir +
                            "' holds no sample; expected .npy, .pb, .png or .jpg files, or "
                            "folders with input_0.npy …");
    Sha256 hash;
    for (const Sample& sample : set.samples_)
        for (const std::string& file : sample.files) {
            auto mapped = MappedFile::open(file);
            if (!mapped) return mapped.error();
            const std::string name = fs::path(file).lexically_relative(dir).string();
            hash.update(as_bytes(name + '\n' + std::to_string((*mapped)->bytes().size()) + '\n'));
            hash.update((*mapped)->bytes());
        }
    set.key_ = to_hex(hash.finish());
    return set;
}

// The input keys of the probe's sidecar, which also has those of the command line.
Result<void> CalibrationSet::choose_preprocess(const artifact::CompiledModel& model) {
    const auto is_picture = [](const Sample& s) {
        return s.files.size() == 1 && is_picture_file(s.files[0]);
    };
    if (std::ranges::none_of(samples_, is_picture)) return {};
    const std::string* entry = model.find_file("modelinfo");
    ModelInfo info;
    if (entry) {
        auto parsed = parse_modelinfo(*entry, "modelinfo");
        if (!parsed) return parsed.error();
        info = *std::move(parsed);
    }
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

Result<std::vector<std::vector<std::byte>>> CalibrationSet::load(
    const Sample& sample, const std::vector<TensorInfo>& inputs) const {
    if (sample.files.size() != inputs.size())
        return option_error("'" + sample.name + "' has " + std::to_string(sample.files.size()) +
                            " inputs, the model " + std::to_string(inputs.size()));
    std::vector<std::vector<std::byte>> result;
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
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/probe.rai";
    if (auto written = artifact::write_rai(probe, path); !written) return written.error();
    auto session = Session::open(path);
    if (!session) return session.error();
    names_.clear();
    floats_.clear();
    for (size_t i = 0; i < own_outputs; ++i) names_.push_back(session->name(i));
    compiler::Statistics statistics;
    for (const Sample& sample : samples_) {
        auto inputs = load(sample, inputs_);
        if (!inputs) return inputs.error();
        if (auto done = session->run(*inputs); !done) return done.error();
        for (size_t i = 0; i < inputs_.size(); ++i)
            if (inputs_[i].cpu.data_type == DataType::float32)
                add(statistics[inputs_[i].name],
                    {reinterpret_cast<const float*>((*inputs)[i].data()),
                     (*inputs)[i].size() / sizeof(float)},
                    inputs_[i].cpu.shape);
        auto& own = floats_.emplace_back();
        for (size_t i = 0; i < session->num_outputs(); ++i) {
            const std::span<const float> values = session->floats(i);
            if (i < own_outputs) own.emplace_back(values.begin(), values.end());
            if (!values.empty()) add(statistics[session->name(i)], values, session->shape(i));
        }
    }
    return statistics;
}

Result<std::string> CalibrationSet::cost(const std::string& compiled) const {
    if (floats_.empty()) return std::string();  // the result was up to date, nothing was measured
    auto session = Session::open(compiled);
    if (!session) return session.error();
    std::vector<Agreement> agreements(session->num_outputs());
    for (size_t s = 0; s < samples_.size(); ++s) {
        auto inputs = load(samples_[s], inputs_);
        if (!inputs) return inputs.error();
        if (auto done = session->run(*inputs); !done) return done.error();
        for (size_t i = 0; i < agreements.size() && i < names_.size(); ++i) {
            const std::span<const float> found = session->floats(i);
            if (!found.empty() && found.size() == floats_[s][i].size())
                add(agreements[i], found, floats_[s][i]);
        }
    }
    std::string text = "int8 against float32 on " + std::to_string(samples_.size()) + " samples:\n";
    for (size_t i = 0; i < agreements.size(); ++i) {
        const auto shape = session->shape(i);
        const bool is_list = shape.size() == 2 && shape[0] == 1 && shape[1] > 1;
        if (agreements[i].samples == 0) continue;
        text += describe(session->name(i), agreements[i], is_list);
        if (cosine_of(agreements[i]) < usual_cosine)
            log(LogLevel::warning, "",
                "--quantize: output '" + session->name(i) +
                    "' of the int8 model is not that of the float model, its cosine is below 0.99; "
                    "give more samples of what the model will see than these " +
                    std::to_string(samples_.size()) + ", or compile without --quantize");
    }
    return text;
}

}  // namespace vartml::tools
