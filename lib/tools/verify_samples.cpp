// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify_samples.h"

#include <algorithm>
#include <filesystem>

#include "lib/tools/pictures.h"
#include "lib/tools/random_data.h"
#include "lib/tools/tensor_file.h"

namespace vartml::tools {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> numbered(const std::string& folder, const std::string& stem) {
    std::vector<std::string> files;
    while (const auto file = find_tensor_file(folder, stem, files.size())) files.push_back(*file);
    return files;
}

std::string short_name(const std::string& path) {
    const fs::path p = fs::path(path).lexically_normal();
    return (p.has_filename() ? p.filename() : p.parent_path().filename()).string();
}

Result<std::vector<verify::TensorData>> read_all(const std::vector<std::string>& files) {
    std::vector<verify::TensorData> tensors;
    for (const std::string& file : files) {
        auto tensor = read_tensor(file);
        if (!tensor) return tensor.error();
        tensors.push_back(std::move(*tensor));
    }
    return tensors;
}

}  // namespace

Result<void> SampleList::add(const std::string& place) {
    std::error_code error;
    if (is_picture_file(place) && fs::is_regular_file(place, error)) {
        sources_.push_back({short_name(place), place, {}, {}});
        return {};
    }
    if (!fs::exists(place, error))
        return Error{ErrorCode::not_found, place + ": no such file or folder"};
    if (!fs::is_directory(place, error))
        return Error{ErrorCode::invalid_argument,
                     place + ": is no picture (.png, .jpg) and no folder"};
    if (auto inputs = numbered(place, "input"); !inputs.empty()) {
        sources_.push_back({short_name(place), {}, std::move(inputs), numbered(place, "output")});
        return {};
    }
    std::vector<fs::path> entries(fs::directory_iterator(place, error), fs::directory_iterator{});
    std::ranges::sort(entries);
    const size_t before = sources_.size();
    for (const fs::path& entry : entries) {
        const std::string name = entry.string();
        const bool tensors = fs::is_directory(entry, error) && find_tensor_file(name, "input", 0);
        if (!tensors && !is_picture_file(name)) continue;
        if (auto done = add(name); !done) return done;
    }
    if (sources_.size() == before)
        return Error{ErrorCode::invalid_argument,
                     place +
                         ": holds no frame; expected .png or .jpg files, or input_<i>.npy or "
                         ".pb, here or in a folder of its own"};
    return {};
}

Result<SampleList> SampleList::open(const std::vector<std::string>& places) {
    SampleList list;
    for (const std::string& place : places)
        if (auto done = list.add(place); !done) return done.error();
    if (places.empty()) {
        list.random_ = true;
        list.sources_.push_back({"random numbers", {}, {}, {}});
    }
    return list;
}

std::string SampleList::kind() const {
    if (random_) return "frame of random numbers";
    const auto is_picture = [](const Source& s) { return !s.picture.empty(); };
    if (std::ranges::all_of(sources_, is_picture)) return "picture";
    return std::ranges::none_of(sources_, is_picture) ? "stored input" : "frame";
}

Result<verify::Sample> SampleList::load(size_t i, const ModelDescription& model) const {
    const Source& source = sources_[i];
    verify::Sample sample;
    sample.name = source.name;
    if (random_) {
        unsigned seed = 1;
        for (const TensorInfo& info : model.inputs)
            sample.inputs.push_back(
                {info.cpu.data_type,
                 {info.cpu.shape.begin(), info.cpu.shape.end()},
                 random_bytes(info.cpu.data_type, info.cpu.size_bytes, seed++)});
        return sample;
    }
    if (!source.picture.empty()) {
        auto picture = load_picture(source.picture);
        if (!picture) return picture.error();
        sample.picture = {picture->width, picture->height, std::move(picture->rgb)};
        return sample;
    }
    auto inputs = read_all(source.inputs), outputs = read_all(source.outputs);
    if (!inputs) return inputs.error();
    if (!outputs) return outputs.error();
    sample.inputs = std::move(*inputs);
    sample.expected = std::move(*outputs);
    return sample;
}

}  // namespace vartml::tools
