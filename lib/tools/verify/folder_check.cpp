// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/folder_check.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <vartml/postprocess.h>

#include "lib/base/file.h"
#include "lib/compile/onnx/import.h"
#include "lib/tools/verify/feed.h"
#include "lib/tools/verify/made_input.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/session.h"
#include "lib/tools/verify/stages.h"

namespace vartml::verify {
namespace {

namespace fs = std::filesystem;

constexpr auto measure_for = std::chrono::milliseconds(200);
constexpr int most_runs = 20;

// The outputs of all references, by the order of the model.
Result<std::vector<ExpectedOutput>> read_expected(const FolderCheck& check,
                                                  const Session& session) {
    const auto maps = onnx::map_outputs(check.model);
    if (!maps) return maps.error();
    std::vector<ExpectedOutput> expected(session.outputs().size());
    const auto add = [&](const char* reference) -> Result<void> {
        const std::string folder = check.folder + '/' + reference;
        std::error_code error;
        if (!fs::exists(folder + "/outputs", error)) return {};
        auto outputs = read_outputs(folder);
        if (!outputs) return outputs.error();
        name_numbers_of_maps(maps->numbers, *outputs);
        for (size_t i = 0; i < expected.size(); ++i) {
            const TensorInfo& info = session.outputs()[i];
            const auto it = outputs->find(info.name);
            if (it == outputs->end())
                return Error{ErrorCode::invalid_argument,
                             "ONNX Runtime gives no output '" + info.name + "'"};
            TensorData data = as_output(it->second, info);
            if (reference == reference_levels[0])
                expected[i].plain = std::move(data);
            else if (reference == rounded_reference)
                expected[i].rounded.push_back(std::move(data));
            else
                expected[i].levels.push_back(std::move(data));
        }
        return {};
    };
    for (const char* level : reference_levels)
        if (auto done = add(level); !done) return done.error();
    for (const char* further : {nudged_reference, rounded_reference})
        if (auto done = add(further); !done) return done.error();
    for (size_t i = 0; i < expected.size(); ++i) expected[i].step = session.step(i);
    return expected;
}

// The inputs of the request, in the order of the model.
Result<Sample> read_sample(const FolderCheck& check, const Session& session) {
    auto request = read_request(check.folder);
    if (!request) return request.error();
    Sample sample;
    sample.name = "the input";
    for (const TensorInfo& input : session.inputs()) {
        const auto it = std::ranges::find(*request, input.name, &NamedTensor::name);
        if (it == request->end())
            return Error{ErrorCode::invalid_argument, "the compiled model has an input '" +
                                                          input.name +
                                                          "' that ONNX Runtime does not have"};
        sample.inputs.push_back(std::move(it->data));
    }
    return sample;
}

class Check {
public:
    Check(const FolderCheck& check, Session session)
        : check_(check), session_(std::move(session)) {}

    Result<FolderVerdict> run() {
        auto sample = read_sample(check_, session_);
        if (!sample) return sample.error();
        auto expected = read_expected(check_, session_);
        if (!expected) return expected.error();
        expected_ = std::move(*expected);
        auto info = find_modelinfo("", check_.model, session_.description().modelinfo);
        if (info) info_ = std::move(*info);
        // A size that was fed is that of the frame, whose pixels boxes are in.
        feed_sizes(info_, session_.inputs());
        const Feeder feeder(session_, info_, "");
        auto fed = feeder.feed(*sample, product_stages());
        if (!fed) return fed.error();
        auto out = session_.run(fed->inputs);
        if (!out) return out.error();
        for (size_t i = 0; i < out->size(); ++i) {
            auto own =
                reference_values(session_.output_view(i), session_.outputs()[i].cpu, (*out)[i]);
            if (!own) return own.error();
            values_.push_back(std::move(*own));
        }
        judge(feeder.picture(), fed->frame);
        if (auto done = measure(fed->inputs); !done) return done.error();
        verdict_.agrees = faults_.empty();
        verdict_.is_undecided = !verdict_.agrees && is_undecided_;
        verdict_.text = faults_.empty() ? nearest_ : faults_;
        return verdict_;
    }

private:
    void judge(std::optional<size_t> picture, const Frame& frame) {
        std::optional<DecoderUse> use;
        if (picture) {
            const PictureShape shape = picture_shape(session_.inputs()[*picture].cpu);
            use.emplace(DecoderUse{info_, session_.outputs(), shape.width, shape.height, frame});
        }
        const ModelAgreement all =
            judge_model(values_, expected_, check_.rule, use ? &*use : nullptr);
        double worst = 0, least = 1;
        for (size_t i = 0; i < all.outputs.size(); ++i) {
            const OutputAgreement& a = all.outputs[i];
            worst = std::max(worst, a.of_range);
            least = std::min(least, a.cosine);
            if (a.is_good) continue;
            // What differs says more than what cannot be judged.
            const bool says_more = is_undecided_ && !a.is_undecided;
            is_undecided_ = is_undecided_ && a.is_undecided;
            if (faults_.empty() || says_more)
                faults_ = "output '" + session_.outputs()[i].name + "': " + a.text;
        }
        if (is_undecided_ && !all.objects.empty()) faults_ = all.objects;
        is_undecided_ = is_undecided_ && all.objects.empty();
        char text[80];
        std::snprintf(text, sizeof text, "cosine %.5f, largest difference %.2g of the range", least,
                      worst);
        nearest_ = text;
    }

    Result<void> measure(const std::vector<Buffer>& inputs) {
        using Clock = std::chrono::steady_clock;
        std::vector<double> seconds;
        const auto begin = Clock::now();
        while (seconds.size() < most_runs &&
               (seconds.empty() || Clock::now() - begin < measure_for)) {
            const auto from = Clock::now();
            auto out = session_.run(inputs);
            if (!out) return out.error();
            seconds.push_back(std::chrono::duration<double>(Clock::now() - from).count());
        }
        std::ranges::sort(seconds);
        verdict_.seconds = seconds[seconds.size() / 2];
        return {};
    }

    const FolderCheck& check_;
    Session session_;
    ModelInfo info_;
    std::vector<TensorData> values_;
    std::vector<ExpectedOutput> expected_;
    bool is_undecided_ = true;  // all that does not agree
    FolderVerdict verdict_;
    std::string faults_, nearest_;
};

}  // namespace

Result<FolderVerdict> check_folder(const FolderCheck& check) {
    auto session = Session::open(check.compiled, {.numerics = check.numerics});
    if (!session) return session.error();
    return Check(check, std::move(*session)).run();
}

std::string to_json(const FolderVerdict& verdict) {
    return nlohmann::json{{"agrees", verdict.agrees},
                          {"undecided", verdict.is_undecided},
                          {"text", verdict.text},
                          {"seconds", verdict.seconds}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<FolderVerdict> verdict_of_json(const std::string& text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("agrees"))
        return Error{ErrorCode::bad_model, "the verdict of the child is no JSON"};
    FolderVerdict verdict;
    verdict.agrees = json.value("agrees", false);
    verdict.is_undecided = json.value("undecided", false);
    verdict.text = json.value("text", "");
    verdict.seconds = json.value("seconds", 0.0);
    return verdict;
}

namespace {

constexpr size_t max_file_bytes = size_t{8} << 30;

// By the numbers of ONNX's TensorProto.DataType.
constexpr DataType onnx_types[] = {
    DataType::unknown, DataType::float32, DataType::uint8,  DataType::int8,    DataType::uint16,
    DataType::int16,   DataType::int32,   DataType::int64,  DataType::unknown, DataType::boolean,
    DataType::fp16,    DataType::float64, DataType::uint32, DataType::uint64,  DataType::unknown,
    DataType::unknown, DataType::bf16};

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text;
    for (const int64_t d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
    return text.empty() ? "-" : text;
}

Result<void> write(const std::string& path, Bytes bytes) {
    return write_new_file(path, std::span(&bytes, 1));
}

// The tensors that the lines of `list` tell, with the bytes of `stem`<i>.
Result<std::vector<NamedTensor>> read_tensors(const std::string& folder, const std::string& list,
                                              const std::string& stem) {
    auto lines = read_file(folder + '/' + list, max_file_bytes);
    if (!lines) return lines.error();
    std::vector<NamedTensor> tensors;
    size_t index = 0;
    for (std::string_view rest = *lines; !rest.empty(); ++index) {
        const size_t end = rest.find('\n');
        NamedTensor tensor;
        if (parse_tensor_line(rest.substr(0, end), tensor)) {
            auto bytes = read_file(folder + '/' + stem + std::to_string(index), max_file_bytes);
            if (!bytes) return bytes.error();
            tensor.data.bytes.resize(bytes->size());
            if (!bytes->empty())
                std::memcpy(tensor.data.bytes.data(), bytes->data(), bytes->size());
            tensors.push_back(std::move(tensor));
        }
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
    return tensors;
}

}  // namespace

bool parse_tensor_line(std::string_view line, NamedTensor& tensor) {
    const size_t first = line.find(' '), second = line.find(' ', first + 1);
    if (first == line.npos || second == line.npos) return false;
    size_t type = 0;
    std::from_chars(line.data(), line.data() + first, type);
    if (type >= std::size(onnx_types) || onnx_types[type] == DataType::unknown) return false;
    tensor.data.type = onnx_types[type];
    const std::string_view dims = line.substr(first + 1, second - first - 1);
    const char* at = dims.data();
    const char* const end = at + dims.size();
    while (dims != "-" && at < end) {
        int64_t d = 0;
        const auto [next, error] = std::from_chars(at, end, d);
        if (error != std::errc()) return false;
        tensor.data.shape.push_back(d);
        at = next < end ? next + 1 : next;
    }
    tensor.name = line.substr(second + 1);
    return true;
}

Result<void> write_request(const std::string& folder, const std::vector<NamedTensor>& inputs,
                           const std::vector<std::string>& keep) {
    std::string lines;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const auto type = std::ranges::find(onnx_types, inputs[i].data.type);
        lines += std::to_string(type - std::begin(onnx_types)) + ' ' +
                 shape_text(inputs[i].data.shape) + ' ' + inputs[i].name + '\n';
        if (auto done = write(folder + "/input_" + std::to_string(i), inputs[i].data.bytes); !done)
            return done;
    }
    for (const std::string& name : keep) lines += "keep " + name + '\n';
    return write(folder + "/request", as_bytes(lines));
}

Result<std::vector<NamedTensor>> read_request(const std::string& folder) {
    return read_tensors(folder, "request", "input_");
}

Result<std::map<std::string, TensorData>> read_outputs(const std::string& folder) {
    auto tensors = read_tensors(folder, "outputs", "output_");
    if (!tensors) return tensors.error();
    std::map<std::string, TensorData> outputs;
    for (NamedTensor& tensor : *tensors)
        outputs.emplace(std::move(tensor.name), std::move(tensor.data));
    return outputs;
}

void name_numbers_of_maps(const std::map<std::string, std::string>& maps,
                          std::map<std::string, TensorData>& outputs) {
    for (const auto& [output, numbers] : maps)
        if (const auto it = outputs.find(numbers); it != outputs.end())
            outputs.emplace(output, it->second);
}

}  // namespace vartml::verify
