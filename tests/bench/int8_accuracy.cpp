// SPDX-License-Identifier: Apache-2.0
// What int8 costs in the end: results of a model compiled with --quantize against those of the same
// model in fp32. usage: int8_accuracy FP32 INT8 boxes|mask|points|values FILE...
// Files are pictures, or tensors for `values`. Prints one line: good, all, the worst case and the
// mean: boxes   found again at IoU 0.9 and score 0.1, from either side; the lowest IoU mask
// pictures whose masks (over 0.5) have IoU 0.97; the lowest IoU points  landmarks (x, y, z of
// output 0) within 2 % of their box; the largest distance in percent values  tensors of 35 dB of
// signal to error; the lowest ratio in dB
#include <vartml/model.h>
#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vart/vart_runner_factory.hpp>

#include "lib/tools/pictures.h"
#include "lib/tools/tensor_file.h"

namespace vartml {
namespace {

constexpr float least_box_iou = 0.9F, most_difference = 0.1F, least_mask_iou = 0.97F;
constexpr float most_distance_percent = 2, least_decibels = 35;

void must(bool good, const std::string& what) {
    if (good) return;
    std::fprintf(stderr, "int8_accuracy: %s\n", what.c_str());
    std::exit(1);
}

// A compiled model from a picture or a tensor to its outputs.
class Model {
public:
    explicit Model(const std::string& path) : model_(*open_model(path)) {
        info_ = *parse_modelinfo(model_.modelinfo, "");
        runner_ = vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path,
                                                     {{"vartml_numerics", std::string("f32")},
                                                      {"input_tensor_type", std::string("CPU")},
                                                      {"output_tensor_type", std::string("CPU")},
                                                      {"log_level", std::string("ERROR")}});
        for (auto [direction, tensors] : {std::pair(vart::TensorDirection::INPUT, &inputs_),
                                          std::pair(vart::TensorDirection::OUTPUT, &outputs_)}) {
            auto& list = tensors->emplace_back();
            for (const auto& info : runner_->get_tensors_info(direction, vart::TensorType::CPU))
                list.push_back(runner_->allocate_npu_tensor(info));
        }
    }

    void run_tensor(const std::string& file) {
        const auto tensor = tools::read_tensor(file);
        must(bool(tensor), tensor ? "" : tensor.error().message);
        must(tensor->bytes.size() == model_.inputs[0].cpu.size_bytes, file + " has another size");
        std::memcpy(inputs_[0][0].get_virtual_address(), tensor->bytes.data(),
                    tensor->bytes.size());
        run();
    }

    // The boxes, where `boxes` are asked for.
    std::vector<Detection> run_picture(const std::string& file, bool boxes) {
        const auto loaded = tools::load_picture(file);
        must(bool(loaded), loaded ? "" : loaded.error().message);
        const TensorInfo& input = model_.inputs[0];
        const DecoderFamily* family = find_decoder_family(info_.decoder);
        const PreprocessOptions options = preprocess_options(info_, family, input.name);
        const PictureInfo format{PixelFormat::RGB, loaded->width, loaded->height};
        auto preprocessor = Preprocessor::create(format, {}, input.cpu, input.cpu, options);
        must(bool(preprocessor), preprocessor ? "" : preprocessor.error().message);
        Picture picture;
        picture.planes[0] = loaded->rgb.data();
        picture.stride_bytes[0] = loaded->width * 3;
        preprocessor->run(picture, inputs_[0][0].get_virtual_address());
        run();
        if (!boxes) return {};
        if (!decoder_) {
            const auto& shape = input.cpu.shape;
            auto made = Decoder::create(info_, model_.outputs, static_cast<uint32_t>(shape[3]),
                                        static_cast<uint32_t>(shape[2]), {});
            must(bool(made), made ? "" : made.error().message);
            decoder_ = std::make_unique<Decoder>(std::move(*made));
        }
        std::vector<OutputTensor> tensors;
        for (size_t i = 0; i < model_.outputs.size(); ++i) {
            const TensorInfo& output = model_.outputs[i];
            tensors.push_back(
                {outputs_[0][i].get_virtual_address(), output.name, &output.cpu, &output.cpu});
        }
        Decoded decoded;
        must(bool(decoder_->decode(tensors, preprocessor->to_frame(), format.width, format.height,
                                   decoded)),
             "decoding failed");
        return decoded.detections;
    }

    float score_threshold() const {
        const DecoderFamily* family = find_decoder_family(info_.decoder);
        return static_cast<float>(
            info_.score_threshold.value_or(family ? family->score_threshold : 0));
    }
    std::span<const float> output(size_t i) const {
        const auto& info = outputs_[0][i].get_info();
        return {static_cast<const float*>(outputs_[0][i].get_virtual_address()),
                info.size_in_bytes / sizeof(float)};
    }

private:
    void run() {
        must(runner_->execute(inputs_, outputs_) == vart::StatusCode::SUCCESS, "a run failed");
    }

    ModelDescription model_;
    ModelInfo info_;
    std::shared_ptr<vart::Runner> runner_;
    std::vector<std::vector<vart::NpuTensor>> inputs_, outputs_;
    std::unique_ptr<Decoder> decoder_;
};

float iou(const Detection& a, const Detection& b) {
    const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    if (width <= 0 || height <= 0) return 0;
    const auto area = [](const Detection& d) { return (d.x1 - d.x0) * (d.y1 - d.y0); };
    return width * height / (area(a) + area(b) - width * height);
}

// What all kinds count.
struct Tally {
    size_t good = 0, all = 0;
    float worst = 0;
    double sum = 0;
    void add(bool is_good, float figure, bool less_is_worse) {
        const bool worse = less_is_worse ? figure < worst : figure > worst;
        if (all == 0 || worse) worst = figure;
        ++all;
        sum += static_cast<double>(figure);
        good += is_good ? 1 : 0;
    }
};

void add_boxes(Model& exact, Model& coarse, const std::string& file, Tally& tally) {
    const auto a = exact.run_picture(file, true), b = coarse.run_picture(file, true);
    for (const auto& [these, those] : {std::pair(&a, &b), std::pair(&b, &a)})
        for (const Detection& box : *these) {
            // A box at the threshold may be below it in the other type.
            if (box.score < exact.score_threshold() + most_difference) continue;
            float best = 0, difference = 1;
            for (const Detection& other : *those)
                if (other.class_id == box.class_id && iou(box, other) > best) {
                    best = iou(box, other);
                    difference = std::abs(box.score - other.score);
                }
            tally.add(best >= least_box_iou && difference <= most_difference, best, true);
        }
}

void add_mask(Model& exact, Model& coarse, const std::string& file, Tally& tally) {
    exact.run_picture(file, false);
    coarse.run_picture(file, false);
    const auto a = exact.output(0), b = coarse.output(0);
    size_t both = 0, either = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        const bool x = a[i] > 0.5F, y = b[i] > 0.5F;
        both += x && y ? 1 : 0;
        either += x || y ? 1 : 0;
    }
    if (either < a.size() / 100) return;  // nobody is there
    const float found = static_cast<float>(both) / static_cast<float>(either);
    tally.add(found >= least_mask_iou, found, true);
}

void add_points(Model& exact, Model& coarse, const std::string& file, Tally& tally) {
    exact.run_picture(file, false);
    coarse.run_picture(file, false);
    const auto a = exact.output(0), b = coarse.output(0);
    float low[2] = {a[0], a[1]}, high[2] = {a[0], a[1]};
    for (size_t i = 0; i < a.size(); ++i)
        if (i % 3 != 2) {
            low[i % 3] = std::min(low[i % 3], a[i]);
            high[i % 3] = std::max(high[i % 3], a[i]);
        }
    const float box = std::max(high[0] - low[0], high[1] - low[1]);
    for (size_t i = 0; i + 2 < a.size(); i += 3) {
        const float percent = 100 * std::hypot(a[i] - b[i], a[i + 1] - b[i + 1]) / box;
        tally.add(percent <= most_distance_percent, percent, false);
    }
}

void add_values(Model& exact, Model& coarse, const std::string& file, Tally& tally) {
    exact.run_tensor(file);
    coarse.run_tensor(file);
    const auto a = exact.output(0), b = coarse.output(0);
    double signal = 0, error = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        signal += double{a[i]} * double{a[i]};
        error += (double{a[i]} - double{b[i]}) * (double{a[i]} - double{b[i]});
    }
    const auto decibels = static_cast<float>(10 * std::log10(signal / error));
    tally.add(decibels >= least_decibels, decibels, true);
}

struct Kind {
    std::string_view name;
    void (*add)(Model& exact, Model& coarse, const std::string& file, Tally& tally);
};
constexpr Kind kinds[] = {
    {"boxes", add_boxes}, {"mask", add_mask}, {"points", add_points}, {"values", add_values}};

}  // namespace
}  // namespace vartml

int main(int argc, char** argv) {
    using namespace vartml;
    if (argc < 5) return 2;
    const auto* kind = std::ranges::find(kinds, std::string_view(argv[3]), &Kind::name);
    if (kind == std::end(kinds)) return 2;
    Model exact(argv[1]), coarse(argv[2]);
    Tally tally;
    for (int i = 4; i < argc; ++i) kind->add(exact, coarse, argv[i], tally);
    std::printf("%zu %zu %.4f %.4f\n", tally.good, tally.all, static_cast<double>(tally.worst),
                tally.sum / static_cast<double>(std::max<size_t>(tally.all, 1)));
    return 0;
}
