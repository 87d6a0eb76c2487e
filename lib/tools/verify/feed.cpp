// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/feed.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/tools/verify/made_input.h"
#include "lib/tools/verify/reference.h"
#include "lib/vision/modelinfo.h"

namespace vartml::verify {

std::vector<std::string> feed_sizes(ModelInfo& info, const std::vector<TensorInfo>& inputs) {
    std::vector<std::string> names;
    for (const TensorInfo& input : inputs) {
        if (!is_size(input.name, input.cpu.size)) continue;
        auto said = std::ranges::find(info.inputs, input.name, &ModelInfo::Input::name);
        if (said == info.inputs.end()) {
            said = info.inputs.insert(info.inputs.end(), ModelInfo::Input());
            said->name = input.name;
        }
        if (!said->feed.empty()) continue;
        said->feed = "frame-size";
        names.push_back(input.name);
    }
    return names;
}

namespace {

const ModelInfo::Input* said_of(const ModelInfo& info, const std::string& name) {
    const auto it = std::ranges::find(info.inputs, name, &ModelInfo::Input::name);
    return it == info.inputs.end() ? nullptr : &*it;
}

}  // namespace

Result<TensorData> beside_picture(const TensorInfo& input, const ModelInfo& info, uint32_t width,
                                  uint32_t height) {
    const ModelInfo::Input* said = said_of(info, input.name);
    const std::string text = said ? said->feed : "";
    std::vector<float> values;
    if (text == "frame-size") values = {static_cast<float>(width), static_cast<float>(height)};
    const bool good =
        !values.empty() || (text.starts_with("const:") &&
                            vision::parse_numbers(std::string_view(text).substr(6), values));
    if (!good || (values.size() != 1 && values.size() != input.cpu.size))
        return Error{ErrorCode::invalid_argument,
                     "input '" + input.name +
                         "' is not the picture and nothing feeds it; say in the sidecar what it "
                         "gets, with the lines dir=input and x-vartml-feed=" +
                         (input.cpu.size == 2 ? "frame-size (its width, height) or const:<values>"
                                              : "const:<values>") +
                         " in section [" + input.name + "], or give --inputs with tensors"};
    std::vector<double> numbers(input.cpu.size, values[0]);
    if (values.size() == input.cpu.size) numbers.assign(values.begin(), values.end());
    return tensor_of(input.cpu.data_type, input.cpu.shape, numbers);
}

const ModelInfo::Input* Feeder::sidecar_input(const std::string& name) const {
    return said_of(info_, name);
}

Feeder::Feeder(const Session& session, const ModelInfo& info, const std::string& decoder,
               const std::string& pixels_from)
    : session_(session), info_(info) {
    for (size_t i = 0; i < session_.inputs().size() && !picture_; ++i) {
        const TensorInfo& input = session_.inputs()[i];
        const ModelInfo::Input* said = sidecar_input(input.name);
        if (picture_shape(input.cpu).width != 0 && (!said || said->feed.empty())) picture_ = i;
    }
    if (!picture_) return;
    const TensorInfo& input = session_.inputs()[*picture_];
    const PictureShape shape = picture_shape(input.cpu);
    pixels_ = choose_pixels(info_, session_.outputs(), input, shape.width, shape.height, decoder);
    if (!pixels_from.empty() && pixels_.source == "the sidecar") pixels_.source = pixels_from;
}

// What nobody can check: whether the model was trained so.
std::string Feeder::words() const {
    const bool said = !pixels_.source.empty();
    return pixels_.sentence() + (said ? "" : "; --mean, --scale and --channels change it");
}

Result<Fed> Feeder::feed_picture(const Sample& sample, const Stages& stages) const {
    if (!picture_)
        return Error{ErrorCode::invalid_argument,
                     sample.name +
                         ": is a picture, but no input of the model is one: expected "
                         "[1, 1 or 3, height, width] or [1, height, width, 1 or 3]"};
    const PictureData& picture = *sample.picture;
    Fed fed;
    for (size_t i = 0; i < session_.inputs().size(); ++i) {
        const TensorInfo& info = session_.inputs()[i];
        if (i != *picture_) {
            auto values = beside_picture(info, info_, picture.width, picture.height);
            if (!values) return values.error();
            fed.reference.push_back(std::move(*values));
        } else {
            const ReferenceInput wanted = reference_preprocess(picture, info.cpu, pixels_.options);
            const TensorView& view = session_.input_view(i);
            auto made = stages.preprocess(picture, info.cpu, view, pixels_.options);
            if (!made) return made.error();
            auto judged = judge_preprocess(*made, wanted, view, info.cpu, pixels_.options);
            if (!judged) return judged.error();
            fed.preprocess = std::move(*judged);
            fed.reference.push_back(tensor_of(info.cpu.data_type, info.cpu.shape, wanted.numbers));
            fed.frame = {picture.width, picture.height, wanted.to_frame};
            fed.own_frame = {picture.width, picture.height, made->to_frame};
            fed.own.resize(session_.inputs().size());
            fed.own[i] = std::move(made->tensor);
        }
    }
    return fed;
}

// Boxes stay in pixels of the model's input, or of the frame that a tensor tells the model.
void Feeder::frame_of_tensors(Fed& fed) const {
    if (!picture_) return;
    const PictureShape shape = picture_shape(session_.inputs()[*picture_].cpu);
    fed.frame = {shape.width, shape.height, {}};
    for (size_t i = 0; i < session_.inputs().size(); ++i) {
        const ModelInfo::Input* said = sidecar_input(session_.inputs()[i].name);
        if (!said || said->feed != "frame-size") continue;
        std::vector<double> size = numbers_of(fed.reference[i]);
        if (size.empty() && fed.reference[i].bytes.size() == 16) {  // two int64
            size = {0, 0};
            for (size_t k = 0; k < 2; ++k)
                for (size_t b = 4; b-- > 0;)
                    size[k] =
                        size[k] * 256 + std::to_integer<int>(fed.reference[i].bytes[8 * k + b]);
        }
        if (size.size() != 2 || !(size[0] >= 1) || !(size[1] >= 1)) continue;
        fed.frame = {static_cast<uint32_t>(size[0]),
                     static_cast<uint32_t>(size[1]),
                     {.a = size[0] / shape.width, .e = size[1] / shape.height}};
    }
    fed.own_frame = fed.frame;
}

Result<Fed> Feeder::feed_tensors(const Sample& sample) const {
    if (sample.inputs.size() != session_.inputs().size())
        return Error{ErrorCode::invalid_argument,
                     sample.name + ": has " + std::to_string(sample.inputs.size()) +
                         " inputs, the model " + std::to_string(session_.inputs().size())};
    Fed fed;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
        const TensorInfo& info = session_.inputs()[i];
        const TensorData& given = sample.inputs[i];
        if (!fits(given, info.cpu.data_type, info.cpu.shape))
            return Error{ErrorCode::invalid_argument,
                         sample.name + ": holds " + describe(given.type, given.shape) +
                             " for input '" + info.name + "', which is " +
                             describe(info.cpu.data_type, info.cpu.shape)};
        fed.reference.push_back(given);
    }
    frame_of_tensors(fed);
    return fed;
}

Result<Fed> Feeder::feed(const Sample& sample, const Stages& stages) const {
    auto fed = sample.picture ? feed_picture(sample, stages) : feed_tensors(sample);
    if (!fed) return fed;
    for (size_t i = 0; i < fed->reference.size(); ++i) {
        auto bytes = session_.to_input(i, fed->reference[i].bytes);
        if (!bytes) return bytes.error();
        fed->inputs.push_back(std::move(*bytes));
    }
    return fed;
}

}  // namespace vartml::verify
