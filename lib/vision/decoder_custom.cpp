// SPDX-License-Identifier: Apache-2.0
// Decoders of others: a shared object with the C interface <vartml/decoder.h>. Whatever it gives is
// checked before it is used.
#include <dlfcn.h>
#include <vartml/decoder.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "lib/base/text.h"
#include "lib/vision/custom.h"
#include "lib/vision/families.h"
#include "lib/vision/maps.h"

namespace vartml::vision {

namespace {

// ours: what no picture has; a library that gives more is at fault
constexpr size_t most_items = 1'000'000, most_text = 65536;

struct Unload {
    void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Unload>;

// What a run of the library gives. Its pointer is that of `calls`, which comes first.
struct Collector {
    VartmlResults calls{};
    Candidates* out = nullptr;
    std::vector<Keypoint>* points = nullptr;  // of boxes, in their order
    std::vector<uint32_t>* first_points = nullptr;
    size_t num_labels = 0;
    std::string fault;

    static Collector& of(VartmlResults* results) { return *reinterpret_cast<Collector*>(results); }

    bool is_class(int32_t class_id) {
        if (class_id >= 0 && (!num_labels || static_cast<size_t>(class_id) < num_labels))
            return true;
        if (fault.empty())
            fault = "it gave class " + std::to_string(class_id) + ", expected 0 to " +
                    (num_labels ? std::to_string(num_labels - 1) : "2147483647");
        return false;
    }
    bool has_room(size_t items, size_t most = most_items) {
        if (items < most) return true;
        if (fault.empty()) fault = "it gave more than " + std::to_string(most) + " results";
        return false;
    }

    void add(const VartmlBox& box) {
        if (!has_room(first_points->size()) || !is_class(box.class_id)) return;
        const auto position = static_cast<uint32_t>(first_points->size());
        first_points->push_back(static_cast<uint32_t>(points->size()));
        const float angle = std::isfinite(box.angle) ? box.angle : 0;
        out->add({box.x0, box.y0, box.x1, box.y1, box.score, box.class_id, position, angle});
    }
    void add(const Keypoint& point) {
        std::vector<Keypoint>& to = first_points->empty() ? out->picture.keypoints : *points;
        if (!has_room(to.size())) return;
        const bool good =
            std::isfinite(point.x) && std::isfinite(point.y) && std::isfinite(point.score);
        out->not_finite += !good;
        to.push_back(good ? point : Keypoint{0, 0, 0, false});  // those behind it keep their number
    }
    void add(const Classification& c) {
        if (!has_room(out->classes.size()) || !is_class(c.class_id)) return;
        if (std::isfinite(c.score))
            out->classes.push_back(c);
        else
            ++out->not_finite;
    }
    void set_text(const char* text, float score) {
        const size_t size = text ? strnlen(text, most_text) : 0;
        if (!has_room(size, most_text)) return;
        if (text && !is_utf8({text, size})) {
            if (fault.empty()) fault = "it gave a text that is not UTF-8";
            return;
        }
        out->picture.text.assign(text ? text : "", size);
        out->picture.text_score = std::isfinite(score) ? score : 0;
    }
    // A vector of length 1 in its direction; without one, none.
    void set_embedding(const float* values, uint32_t count) {
        if (!values || !has_room(count)) return;
        double squares = 0;
        for (uint32_t i = 0; i < count; ++i) squares += double{values[i]} * values[i];
        if (!std::isfinite(squares)) ++out->not_finite;
        if (!std::isfinite(squares) || squares == 0) return;
        const double scale = 1 / std::sqrt(squares);
        out->picture.embedding.resize(count);
        std::transform(values, values + count, out->picture.embedding.begin(),
                       [scale](float v) { return static_cast<float>(v * scale); });
    }
};

constexpr VartmlResults calls = {
    .add_box =
        [](VartmlResults* r, const VartmlBox* box) {
            if (box) Collector::of(r).add(*box);
        },
    .add_keypoint = [](VartmlResults* r, float x, float y,
                       float score) { Collector::of(r).add(Keypoint{x, y, score, true}); },
    .add_class = [](VartmlResults* r, int32_t class_id,
                    float score) { Collector::of(r).add(Classification{class_id, score}); },
    .set_text = [](VartmlResults* r, const char* text,
                   float score) { Collector::of(r).set_text(text, score); },
    .set_embedding = [](VartmlResults* r, const float* values,
                        uint32_t count) { Collector::of(r).set_embedding(values, count); },
};

class Custom final : public Head {
public:
    Custom(Library library, std::string file, const VartmlDecoder& interface, void* decoder,
           size_t outputs, size_t num_labels)
        : library_(std::move(library)),
          file_(std::move(file)),
          interface_(interface),
          decoder_(decoder),
          views_(outputs),
          values_(outputs),
          num_labels_(num_labels) {}
    ~Custom() override { interface_.close(decoder_); }

    unsigned classes() const override { return static_cast<unsigned>(num_labels_); }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext& context,
                     Candidates& out) override {
        for (size_t i = 0; i < views_.size(); ++i) {
            auto values = views_[i].read(tensors[i]);
            if (!values) return std::move(values).error();
            values_[i] = *values;
        }
        points_.clear();
        first_points_.clear();
        Collector collector{calls, &out, &points_, &first_points_, num_labels_, {}};
        const int failed = decode(collector, context.threshold);
        if (collector.fault.empty() && failed)
            collector.fault = "it refused a run with " + std::to_string(failed);
        if (!collector.fault.empty())
            return Error{ErrorCode::bad_model,
                         "decoder library '" + file_ + "': " + collector.fault +
                             "; correct the library, or give the model's labels"};
        std::erase_if(out.boxes,
                      [&](const Candidate& box) { return !(box.score >= context.threshold); });
        return {};
    }

    Result<void> add_details(std::span<const OutputTensor>, const RunContext&, const Candidate& box,
                             BoxDetails& details) override {
        const size_t next = box.position + 1;
        const size_t end = next < first_points_.size() ? first_points_[next] : points_.size();
        for (size_t i = first_points_[box.position]; i < end; ++i)
            details.keypoints.push_back(points_[i]);
        return {};
    }

private:
    int decode(Collector& collector, float threshold) const {
        try {
            return interface_.decode(decoder_, values_.data(), threshold, &collector.calls);
        } catch (...) {  // a library in C++
            if (collector.fault.empty()) collector.fault = "it threw an exception";
            return 0;
        }
    }

    Library library_;
    std::string file_;
    const VartmlDecoder& interface_;
    void* decoder_;
    std::vector<FloatView> views_;
    std::vector<const float*> values_;
    size_t num_labels_;
    std::vector<Keypoint> points_;
    std::vector<uint32_t> first_points_;  // of each box
};

Error library_error(const HeadRequest& request, const std::string& file, const std::string& what,
                    const std::string& found = "", const std::string& expected = "") {
    if (request.fault) *request.fault = {"dec-library", found, expected, "decoder-library=FILE.so"};
    return {ErrorCode::invalid_argument, "decoder library '" + file + "' " + what};
}

// What a library is told of the model. Points into it.
struct Description {
    std::vector<VartmlOutput> outputs;
    std::vector<const char*> labels;
    VartmlModel model{};

    explicit Description(const HeadRequest& request) {
        for (const TensorInfo& output : request.outputs)
            outputs.push_back({output.name.c_str(), output.cpu.shape.data(),
                               static_cast<uint32_t>(output.cpu.shape.size()), output.cpu.size});
        for (const std::string& label : request.info.labels) labels.push_back(label.c_str());
        model = {request.width,
                 request.height,
                 static_cast<uint32_t>(outputs.size()),
                 outputs.data(),
                 static_cast<uint32_t>(labels.size()),
                 labels.data()};
    }
    Description(const Description&) = delete;
    Description& operator=(const Description&) = delete;
};

}  // namespace

Result<std::unique_ptr<Head>> create_custom(const HeadRequest& request) {
    return head_error(request, "dec-library",
                      "its decoder is in a shared object of yours; name that by the property "
                      "decoder-library of vartmldecode",
                      "", "a shared object", "decoder-library=FILE.so");
}

Result<std::unique_ptr<Head>> open_library(const HeadRequest& request, const std::string& file) {
    Library library(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!library) {
        const char* const why = dlerror();
        return library_error(request, file,
                             "cannot be loaded: " + std::string(why ? why : "unknown error"));
    }
    using Function = const VartmlDecoder* (*)(uint32_t);
    const auto make = reinterpret_cast<Function>(dlsym(library.get(), "vartml_decoder"));
    if (!make)
        return library_error(request, file,
                             "exports no function vartml_decoder(); build it with "
                             "<vartml/decoder.h>");
    const VartmlDecoder* const interface = make(VARTML_DECODER_INTERFACE);
    if (!interface)
        return library_error(
            request, file,
            "has no decoder for interface version " + std::to_string(VARTML_DECODER_INTERFACE));
    if (interface->interface_version != VARTML_DECODER_INTERFACE) {
        const std::string found = std::to_string(interface->interface_version);
        const std::string expected = std::to_string(VARTML_DECODER_INTERFACE);
        return library_error(request, file,
                             "has interface version " + found + ", expected " + expected +
                                 "; build it with the <vartml/decoder.h> of this version",
                             found, expected);
    }
    if (!interface->open || !interface->decode || !interface->close)
        return library_error(request, file, "lacks one of the functions open, decode and close");
    const Description description(request);
    std::array<char, 512> why{};
    void* decoder = nullptr;
    try {
        decoder = interface->open(&description.model, why.data(), why.size());
    } catch (...) {
        std::strcpy(why.data(), "it threw an exception");
    }
    why.back() = 0;
    if (!decoder)
        return library_error(
            request, file,
            "does not take " + outputs_text(request.outputs) + ": " +
                (why[0] && is_utf8(why.data()) ? why.data() : "it does not say why"));
    return std::unique_ptr<Head>(std::make_unique<Custom>(std::move(library), file, *interface,
                                                          decoder, request.outputs.size(),
                                                          request.info.labels.size()));
}

}  // namespace vartml::vision
