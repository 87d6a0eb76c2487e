// SPDX-License-Identifier: Apache-2.0
// Holds our default arithmetic to that of an ideal bf16 device: ONNX Runtime, with every float
// tensor of the model rounded to bf16 (lib/compile/onnx/rounded.h) and everything else in f32. Both
// are compared with ONNX Runtime in f32, and ours may err 1.5 times as much, in the mean over an
// output.
//
// usage: ideal_bf16 [--picture FILE]... [--numerics auto|f32|bf16] [--all] MODEL.onnx|FOLDER...
//
// A folder is looked through. Inputs are those of test_data_set_0 beside the model, else the
// pictures (each as 0 to 255, as 0 to 1 and with the mean and deviation of ImageNet, as nobody
// knows what the model wants), and numbers of a normal distribution for what is no picture. Prints
// a row per output that misses the bound or, with --all, per output; then the verdict. Exit status:
// 0 all within the bound, 1 not, 77 where there is no model or no ONNX Runtime.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lib/compile/compile.h"
#include "lib/compile/onnx/model_file.h"
#include "lib/compile/onnx/rounded.h"
#include "lib/tools/pictures.h"
#include "lib/tools/verify/onnxruntime.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/session.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tensor_proto.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;
namespace pb = onnx::pb;

constexpr int skipped = 77;
constexpr double most_ratio = 1.5;
// What f32 itself may lose, as a part of the rms of the output, and what is nothing; a ratio to
// less says nothing.
constexpr double f32_noise = 1e-5, nothing = 1e-6;

struct Options {
    std::string numerics = "auto";
    bool all = false;
    std::vector<std::string> pictures, places;
};

// What one run of the model reads.
struct Feed {
    std::vector<TensorData> inputs;
};

// An output over all feeds; errors as parts of the rms of what is right.
struct Row {
    std::string output;
    double ours = 0, ideal = 0;                       // sums of squares
    double cosine = 1, ideal_cosine = 1;              // lowest
    bool other_top = false, ideal_other_top = false;  // class, or integers

    void add(const Row& other) {
        ours += other.ours;
        ideal += other.ideal;
        cosine = std::min(cosine, other.cosine);
        ideal_cosine = std::min(ideal_cosine, other.ideal_cosine);
        other_top = other_top || other.other_top;
        ideal_other_top = ideal_other_top || other.ideal_other_top;
    }
    double ratio() const { return std::sqrt(ours) / std::max(std::sqrt(ideal), f32_noise); }
    bool within_bound() const { return ratio() <= most_ratio; }
    bool agrees() const {
        const double least = ideal_cosine < 0.999 ? 0.99 : 0.999;
        return cosine >= least && (!other_top || ideal_other_top);
    }
};

std::vector<std::string> find_models(const std::vector<std::string>& places) {
    std::vector<std::string> models;
    for (const std::string& place : places) {
        std::error_code error;
        if (!fs::is_directory(place, error)) {
            if (fs::exists(place, error)) models.push_back(place);
            continue;
        }
        for (const auto& entry : fs::recursive_directory_iterator(place, error))
            if (entry.path().extension() == ".onnx") models.push_back(entry.path().string());
    }
    std::ranges::sort(models);
    return models;
}

// ---- inputs

// Shapes for what the model leaves open: one frame of 320 by 320.
std::map<std::string, std::vector<int64_t>> open_shapes(const pb::ModelProto& model) {
    std::set<std::string> constants;
    for (const auto& tensor : model.graph().initializer()) constants.insert(tensor.name());
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const auto& input : model.graph().input()) {
        if (constants.contains(input.name())) continue;
        const auto& dims = input.type().tensor_type().shape().dim();
        std::vector<int64_t> shape;
        bool open = false;
        for (int i = 0; i < dims.size(); ++i) {
            const bool known = dims[i].dim_value() > 0;
            open = open || !known;
            const bool side = dims.size() == 4 && i > 0;
            const bool last = dims.size() == 4 && dims[3].dim_value() == 3;
            const int64_t guess = !side ? 1 : (i == 1 && !last) ? 3 : 320;
            shape.push_back(known ? dims[i].dim_value() : guess);
        }
        if (open) shapes[input.name()] = shape;
    }
    return shapes;
}

std::optional<Feed> stored_feed(const std::string& model, const Session& session) {
    Feed feed;
    const std::string folder = fs::path(model).parent_path().string() + "/test_data_set_0/input_";
    for (size_t i = 0; i < session.inputs().size(); ++i) {
        const auto proto = test::read_tensor_proto(folder + std::to_string(i) + ".pb");
        if (!proto || proto->raw.size() != session.inputs()[i].cpu.size_bytes) return std::nullopt;
        TensorData data{session.inputs()[i].cpu.data_type, proto->dims, {}};
        data.bytes.resize(proto->raw.size());
        std::memcpy(data.bytes.data(), proto->raw.data(), proto->raw.size());
        feed.inputs.push_back(std::move(data));
    }
    return feed;
}

// What is no picture: features in f32, small integers.
TensorData numbers_for(const TensorView& view, unsigned seed) {
    std::minstd_rand random(seed);  // NOLINT: the same numbers each time are the point
    std::normal_distribution<double> normal;
    std::vector<double> numbers(view.size);
    for (double& n : numbers) n = is_float(view.data_type) ? normal(random) : 1;
    return tensor_of(view.data_type, view.shape, numbers);
}

// Pixels of 0 to 255, of 0 to 1, by mean and deviation of ImageNet.
struct Scaling {
    std::array<float, 3> mean, scale;
};
constexpr Scaling scalings[] = {
    {{0, 0, 0}, {1, 1, 1}},
    {{0, 0, 0}, {1 / 255.0F, 1 / 255.0F, 1 / 255.0F}},
    {{123.7F, 116.3F, 103.5F}, {1 / 58.4F, 1 / 57.1F, 1 / 57.4F}},
};

std::vector<Feed> make_feeds(const std::string& model, const Session& session,
                             const std::vector<PictureData>& pictures) {
    if (auto stored = stored_feed(model, session)) return {*stored};
    std::optional<size_t> picture;
    for (size_t i = 0; i < session.inputs().size() && !picture; ++i)
        if (picture_shape(session.inputs()[i].cpu).width != 0) picture = i;
    const auto rest = [&](Feed& feed, size_t i) {
        feed.inputs.push_back(numbers_for(session.inputs()[i].cpu, static_cast<unsigned>(i + 1)));
    };
    std::vector<Feed> feeds;
    if (!picture || pictures.empty()) {
        Feed& feed = feeds.emplace_back();
        for (size_t i = 0; i < session.inputs().size(); ++i) rest(feed, i);
        return feeds;
    }
    for (const PictureData& data : pictures) {
        for (const Scaling& s : scalings) {
            const TensorView& view = session.inputs()[*picture].cpu;
            if (!is_float(view.data_type) && &s != scalings) continue;
            Feed& feed = feeds.emplace_back();
            PreprocessOptions options;
            options.mean = s.mean;
            options.scale = s.scale;
            for (size_t i = 0; i < session.inputs().size(); ++i) {
                if (i != *picture) {
                    rest(feed, i);
                    continue;
                }
                const ReferenceInput made = reference_preprocess(data, view, options);
                feed.inputs.push_back(tensor_of(view.data_type, view.shape, made.numbers));
            }
        }
    }
    return feeds;
}

// ---- comparison

double rms(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v * v;
    return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

double rms_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> difference(a.size());
    for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] == b[i] ? 0 : a[i] - b[i];
    return rms(difference);
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
    if (aa == 0 || bb == 0) return aa == bb ? 1 : 0;
    return ab / std::sqrt(aa) / std::sqrt(bb);
}

size_t top_of(const std::vector<double>& values) {
    return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

size_t differing_bytes(const TensorData& a, const TensorData& b) {
    size_t count = 0;
    for (size_t i = 0; i < std::min(a.bytes.size(), b.bytes.size()); ++i)
        count += a.bytes[i] != b.bytes[i];
    return count + (a.bytes.size() != b.bytes.size());
}

// Nothing where there is nothing to compare: no numbers, or shapes that depend on the data.
std::optional<Row> row_of(const std::string& output, const TensorData& ours,
                          const TensorData& ideal, const TensorData& right) {
    Row row{.output = output};
    const std::vector<double> a = numbers_of(ours), b = numbers_of(ideal), c = numbers_of(right);
    if (c.empty() || !is_float(right.type)) {
        row.other_top = differing_bytes(ours, right) != 0;
        row.ideal_other_top = differing_bytes(ideal, right) != 0;
        return row;
    }
    const double size = rms(c);
    if (a.size() != c.size() || b.size() != c.size() || size < nothing) return std::nullopt;
    row.ours = std::pow(rms_of_difference(a, c) / size, 2);
    row.ideal = std::pow(rms_of_difference(b, c) / size, 2);
    row.cosine = cosine(a, c);
    row.ideal_cosine = cosine(b, c);
    const auto& shape = right.shape;
    if (shape.size() == 2 && shape[0] == 1 && shape[1] > 1) {
        row.other_top = top_of(a) != top_of(c);
        row.ideal_other_top = top_of(b) != top_of(c);
    }
    return row;
}

// ---- models

class Check {
public:
    Check(const Options& options, const OnnxRuntime& runtime) : options_(options), ort_(runtime) {
        for (const std::string& file : options.pictures)
            if (auto picture = tools::load_picture(file))
                pictures_.push_back({picture->width, picture->height, std::move(picture->rgb)});
    }

    // Whether the model is within the bound.
    bool run(const std::string& model) {
        const auto rows = rows_of(model);
        if (!rows) {
            std::printf("-      %s: %s\n", model.c_str(), rows.error().message.c_str());
            std::fflush(stdout);
            return true;
        }
        const auto worst = std::ranges::max_element(*rows, {}, &Row::ratio);
        const auto least = std::ranges::min_element(*rows, {}, &Row::cosine);
        const bool good = std::ranges::all_of(*rows, &Row::within_bound);
        const bool agrees = std::ranges::all_of(*rows, &Row::agrees);
        for (const Row& row : *rows)
            if (options_.all || !row.within_bound() || !row.agrees())
                std::printf(
                    "       %-40s rms %.3g, ideal %.3g: %.2f; cosine %.6f, ideal %.6f%s%s\n",
                    row.output.c_str(), std::sqrt(row.ours), std::sqrt(row.ideal), row.ratio(),
                    row.cosine, row.ideal_cosine, row.other_top ? ", other top" : "",
                    row.ideal_other_top ? ", ideal has another top" : "");
        std::printf("%-6s %s: %.2f times the rms of an ideal device; cosine %.6f, ideal %.6f, %s\n",
                    good ? "good" : "BEYOND", model.c_str(), worst->ratio(), least->cosine,
                    least->ideal_cosine, agrees ? "agrees" : "DISAGREES");
        std::fflush(stdout);
        ++seen_;
        good_ += good;
        agree_ += agrees;
        return good;
    }

    void print_sum() const {
        std::printf("%zu models: %zu within the bound, %zu agree\n", seen_, good_, agree_);
    }

private:
    Result<std::vector<Row>> rows_of(const std::string& model) const {
        pb::ModelProto proto;
        std::ifstream file(model, std::ios::binary);
        if (!proto.ParseFromIstream(&file)) return Error{ErrorCode::bad_model, "cannot be parsed"};
        const test::TempDir folder;
        compiler::CompileRequest request;
        request.model = model;
        request.output = folder / "model.rai";
        request.input_shapes = open_shapes(proto);
        request.convert_floats = options_.numerics != "f32";
        if (auto compiled = compiler::compile(request); !compiled) return compiled.error();
        auto session =
            Session::open(request.output, {.numerics = options_.numerics, .cpu_views = true});
        if (!session) return session.error();
        const std::string rounded = folder / "rounded.onnx";
        if (auto done = onnx::write_rounded(model, rounded); !done) return done.error();

        std::vector<Row> rows;
        for (const Feed& feed : make_feeds(model, *session, pictures_))
            if (auto done = add_rows(model, rounded, *session, feed, rows); !done)
                return done.error();
        if (rows.empty())
            return Error{ErrorCode::unsupported, "no output of the same shape in all three"};
        return rows;
    }

    Result<void> add_rows(const std::string& model, const std::string& rounded, Session& session,
                          const Feed& feed, std::vector<Row>& rows) const {
        std::vector<OnnxRuntime::Named> named;
        std::vector<Buffer> buffers;
        for (size_t i = 0; i < feed.inputs.size(); ++i) {
            named.push_back({session.inputs()[i].name, feed.inputs[i]});
            auto buffer = session.to_input(i, feed.inputs[i].bytes);
            if (!buffer) return buffer.error();
            buffers.push_back(std::move(*buffer));
        }
        const auto right = ort_.run(model, named);
        if (!right) return right.error();
        const auto ideal = ort_.run(rounded, named);
        if (!ideal) return ideal.error();
        const auto ours = session.run(buffers);
        if (!ours) return ours.error();
        for (size_t i = 0; i < session.outputs().size(); ++i) {
            const TensorInfo& info = session.outputs()[i];
            const auto from = right->find(info.name), beside = ideal->find(info.name);
            if (from == right->end() || beside == ideal->end()) continue;
            const TensorData expected = as_output(from->second, info);
            const TensorData found{info.cpu.data_type, expected.shape, (*ours)[i]};
            const auto row = row_of(info.name, found, as_output(beside->second, info), expected);
            if (!row) continue;
            const auto at = std::ranges::find(rows, info.name, &Row::output);
            at == rows.end() ? rows.push_back(*row) : at->add(*row);
        }
        return {};
    }

    const Options& options_;
    const OnnxRuntime& ort_;
    std::vector<PictureData> pictures_;
    size_t seen_ = 0, good_ = 0, agree_ = 0;
};

Options read_options(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--picture" && i + 1 < argc) {
            options.pictures.emplace_back(argv[++i]);
        } else if (word == "--numerics" && i + 1 < argc) {
            options.numerics = argv[++i];
        } else if (word == "--all") {
            options.all = true;
        } else {
            options.places.push_back(word);
        }
    }
    return options;
}

int check_all(const Options& options) {
    const auto models = find_models(options.places);
    const auto runtime = OnnxRuntime::find();
    if (models.empty() || !runtime) {
        std::printf("skipped: %s\n",
                    models.empty() ? "no model is there" : runtime.error().message.c_str());
        return skipped;
    }
    Check check(options, *runtime);
    bool good = true;
    for (const std::string& model : models) good = check.run(model) && good;
    check.print_sum();
    return good ? 0 : 1;
}

}  // namespace
}  // namespace vartml::verify

int main(int argc, char** argv) {
    return vartml::verify::check_all(vartml::verify::read_options(argc, argv));
}
