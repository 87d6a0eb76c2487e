// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/onnx/bind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include "lib/compile/onnx/model_file.h"

namespace vartml::onnx {
namespace {

// Exporters also write -1 for a dimension without a number.
bool is_open(const pb::TensorShapeProto::Dimension& d) {
    return !d.has_dim_value() || d.dim_value() < 0;
}

// What exporters write for an axis that has no name: "?" and "*", Python's None, TensorFlow's -1.
bool is_name(const std::string& text) {
    const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
    return std::ranges::any_of(text, is_letter) && text != "None";
}

std::string join(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

// a, b and c
std::string enumerate(const std::vector<std::string>& words) {
    if (words.size() < 2) return join(words, "");
    return join({words.begin(), words.end() - 1}, ", ") + " and " + words.back();
}

bool is_channels(int64_t number) {
    return number == 1 || number == 3 || number == 4;
}

struct Axis {
    int64_t number = -1;  // -1: open
    std::string symbol;   // of an open axis; unique where the file has no name
    std::string name;     // as the file has it
};

struct Input {
    const pb::ValueInfoProto* proto = nullptr;
    std::vector<Axis> axes;
    bool has_shape = true;
    // Axes of a picture's height and width, and of its channels; -1 where it is no picture.
    int row = -1, column = -1, channels = -1;

    bool is_spatial(size_t axis) const {
        return static_cast<int>(axis) == row || static_cast<int>(axis) == column;
    }
};

void set_picture(Input& input, int row, int column, int channels) {
    input.row = row;
    input.column = column;
    input.channels = channels;
}

bool is_batch_name(std::string name) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name == "n" || name == "b" || name == "bs" || name.find("batch") != name.npos;
}

// The convolution that reads an input of four axes, through what turns or converts it.
struct FirstConv {
    std::array<int, 4> axes;  // of the input, which it takes for batch, channels, height and width
    int64_t channels = 0;     // 0: its weights do not tell
};
std::optional<FirstConv> first_convolution(const pb::GraphProto& graph, std::string name) {
    FirstConv found{.axes = {0, 1, 2, 3}};
    for (const auto& node : graph.node()) {  // in the order of execution
        if (node.input_size() == 0 || node.input(0) != name || node.output_size() == 0) continue;
        if (node.op_type() == "Transpose") {
            for (const auto& attribute : node.attribute()) {
                if (attribute.name() != "perm" || attribute.ints_size() != 4) continue;
                const std::array<int, 4> before = found.axes;
                for (int i = 0; i < 4; ++i) {
                    if (attribute.ints(i) < 0 || attribute.ints(i) > 3) return std::nullopt;
                    found.axes[static_cast<size_t>(i)] =
                        before[static_cast<size_t>(attribute.ints(i))];
                }
            }
        }
        if (node.op_type() == "Transpose" || node.op_type() == "Cast") name = node.output(0);
        if (node.op_type() != "Conv" || node.input_size() < 2) continue;
        int64_t group = 1;
        for (const auto& attribute : node.attribute())
            if (attribute.name() == "group") group = attribute.i();
        for (const auto& tensor : graph.initializer())
            if (tensor.name() == node.input(1) && tensor.dims_size() == 4)
                found.channels = tensor.dims(1) * group;
        return found;
    }
    return std::nullopt;
}

// NCHW, NHWC, or HWC without a batch; where the numbers do not tell, as the first convolution has
// it. A first axis that is named after a batch is none of a picture.
void find_picture(Input& input, const pb::GraphProto& graph) {
    const auto number = [&](size_t i) { return input.axes[i].number; };
    const DataType type = data_type(input.proto->type().tensor_type().elem_type());
    const bool pixels = type == DataType::float32 || type == DataType::fp16 ||
                        type == DataType::bf16 || type == DataType::uint8;
    if (!pixels) return;
    if (input.axes.size() == 4) {
        const bool first = is_channels(number(1)), last = is_channels(number(3));
        const auto conv = number(1) < 0 && number(3) < 0
                              ? first_convolution(graph, input.proto->name())
                              : std::nullopt;
        if (conv) return set_picture(input, conv->axes[2], conv->axes[3], conv->axes[1]);
        const bool is_last = last != first ? last : number(3) >= 0 && number(1) < 0;
        return is_last ? set_picture(input, 1, 2, 3) : set_picture(input, 2, 3, 1);
    }
    if (input.axes.size() != 3 || !is_channels(number(2)) || number(0) >= 0 || number(1) >= 0)
        return;
    if (!is_batch_name(input.axes[0].name)) set_picture(input, 0, 1, 2);
}

// Of an open axis without a name. No name has a NUL: it would end there in the tools that write
// models.
std::string symbol_of(const pb::ValueInfoProto& input, size_t axis) {
    return input.name() + '\0' + std::to_string(axis);
}

std::vector<Input> read_inputs(const pb::GraphProto& graph) {
    std::set<std::string> initialisers;
    for (const auto& tensor : graph.initializer()) initialisers.insert(tensor.name());
    std::vector<Input> inputs;
    for (const auto& proto : graph.input()) {
        if (initialisers.contains(proto.name())) continue;
        Input& input = inputs.emplace_back();
        input.proto = &proto;
        const auto& tensor = proto.type().tensor_type();
        input.has_shape = tensor.has_shape() || !proto.type().has_tensor_type();
        for (const auto& d : tensor.shape().dim()) {
            Axis& axis = input.axes.emplace_back();
            if (!is_open(d)) {
                axis.number = d.dim_value();
                continue;
            }
            if (is_name(d.dim_param())) axis.name = d.dim_param();
            axis.symbol = !axis.name.empty() ? axis.name : symbol_of(proto, input.axes.size() - 1);
        }
        find_picture(input, graph);
    }
    return inputs;
}

// "[640, 480]" or "640": height and width.
std::optional<std::pair<int64_t, int64_t>> picture_size(const pb::ModelProto& model) {
    constexpr int64_t largest = 65536;
    for (const auto& entry : model.metadata_props()) {
        if (entry.key() != "imgsz") continue;
        std::vector<int64_t> numbers;
        bool in_number = false;
        for (const char c : entry.value()) {
            const bool digit = c >= '0' && c <= '9';
            if (digit && !in_number) numbers.push_back(0);
            if (digit) numbers.back() = std::min(numbers.back() * 10 + (c - '0'), largest + 1);
            in_number = digit;
        }
        const auto fits = [](int64_t n) { return n >= 1 && n <= largest; };
        if (numbers.empty() || numbers.size() > 2 || !std::ranges::all_of(numbers, fits))
            return std::nullopt;
        return std::pair(numbers.front(), numbers.back());
    }
    return std::nullopt;
}

// Channels that the first convolution on the input wants, or those of RGB.
int64_t likely_channels(const pb::GraphProto& graph, const std::string& input) {
    const auto conv = first_convolution(graph, input);
    return conv && conv->channels != 0 ? conv->channels : 3;
}

class Binder {
public:
    Binder(const std::string& file, const pb::ModelProto& model, const BindOptions& options)
        : file_(file), model_(model), options_(options), inputs_(read_inputs(model.graph())) {}

    // Binds what has a number, in the order of the header. `messages` may be null.
    Result<void> bind(std::vector<Message>* messages);
    bool is_complete() const;
    // The sentence for what is open; `example` may have a number for it.
    Error refuse(const BindOptions& example) const;
    std::string batched_options() const;  // of inputs whose first axis is a batch
    const std::vector<Input>& inputs() const { return inputs_; }

private:
    Error option_error(const std::string& input, const std::string& text) const {
        return {ErrorCode::invalid_argument,
                file_ + ": --input-shape for input '" + input + "' " + text};
    }
    Result<void> check_names() const;
    Result<void> take_option(Input& input, const std::vector<int64_t>& dims);
    void spread();  // bound symbols to the axes that have them
    void take_picture_size(std::vector<Message>* messages);
    bool is_length(const Input& input) const;
    void take_batch(std::vector<Message>* messages);
    void take_example();
    std::string shape_option(const Input& input) const;

    const std::string& file_;
    const pb::ModelProto& model_;
    const BindOptions& options_;
    std::vector<Input> inputs_;
    std::map<std::string, int64_t> symbols_;
};

Result<void> Binder::check_names() const {
    std::vector<std::string> names;
    for (const Input& input : inputs_) names.push_back('\'' + input.proto->name() + '\'');
    for (const auto& [name, dims] : options_.shapes)
        if (std::ranges::find(names, '\'' + name + '\'') == names.end())
            return option_error(name, "names no input; the inputs are " + join(names, ", "));
    return {};
}

// The numbers that an option gives, entered under their symbols. They must agree with what the
// model fixes.
Result<void> Binder::take_option(Input& input, const std::vector<int64_t>& dims) {
    const std::string& name = input.proto->name();
    for (const int64_t d : dims)
        if (d < 1)
            return option_error(name,
                                "has the dimension " + std::to_string(d) + ", expected 1 or more");
    // Axes of which the file says nothing are as open as those that it leaves open.
    if (!input.has_shape)
        for (size_t i = 0; i < dims.size(); ++i)
            input.axes.push_back({.number = -1, .symbol = symbol_of(*input.proto, i), .name = {}});
    input.has_shape = true;
    if (dims.size() != input.axes.size())
        return option_error(name, "has " + std::to_string(dims.size()) +
                                      " dimensions, the model has " +
                                      std::to_string(input.axes.size()));
    for (size_t i = 0; i < dims.size(); ++i) {
        Axis& axis = input.axes[i];
        if (axis.number >= 0 && axis.number != dims[i])
            return option_error(name, "has " + std::to_string(dims[i]) + " at axis " +
                                          std::to_string(i) + ", the model fixes " +
                                          std::to_string(axis.number));
        axis.number = dims[i];
        if (axis.symbol.empty()) continue;
        if (const auto [entry, added] = symbols_.emplace(axis.symbol, dims[i]);
            !added && entry->second != dims[i])
            return option_error(name, "gives dimension '" + axis.name + "' the number " +
                                          std::to_string(dims[i]) + ", it is " +
                                          std::to_string(entry->second) + " already");
    }
    return {};
}

void Binder::spread() {
    for (Input& input : inputs_)
        for (Axis& axis : input.axes)
            if (const auto found = symbols_.find(axis.symbol);
                axis.number < 0 && found != symbols_.end())
                axis.number = found->second;
}

void Binder::take_picture_size(std::vector<Message>* messages) {
    const auto size = picture_size(model_);
    if (!size) return;
    for (Input& input : inputs_) {
        if (input.row < 0) continue;
        Axis& row = input.axes[static_cast<size_t>(input.row)];
        Axis& column = input.axes[static_cast<size_t>(input.column)];
        if (row.number >= 0 && column.number >= 0) continue;
        if (row.number < 0) symbols_.emplace(row.symbol, size->first);
        if (column.number < 0) symbols_.emplace(column.symbol, size->second);
        spread();
        if (messages)
            messages->push_back(
                {LogLevel::info, file_ + ": pictures of input '" + input.proto->name() + "' are " +
                                     std::to_string(column.number) + 'x' +
                                     std::to_string(row.number) +
                                     ", as its metadata say (imgsz); --input-shape gives "
                                     "another size"});
    }
}

// Whether the only axis of an input is a length: in the file another input has a batch that is a
// number.
bool Binder::is_length(const Input& input) const {
    if (input.axes.size() != 1 || is_batch_name(input.axes[0].name)) return false;
    return std::ranges::any_of(inputs_, [](const Input& other) {
        return other.axes.size() > 2 && other.axes[0].number >= 0 && other.axes[0].symbol.empty() &&
               !other.is_spatial(0);
    });
}

// An axis of a picture's height or width never is a batch, also where it bears the same name.
void Binder::take_batch(std::vector<Message>* messages) {
    std::vector<std::string> batched;
    std::set<std::string> symbols;
    for (const Input& input : inputs_) {
        if (input.axes.empty() || input.axes[0].number >= 0 || input.is_spatial(0) ||
            is_length(input))
            continue;
        batched.push_back('\'' + input.proto->name() + '\'');
        symbols.insert(input.axes[0].symbol);
    }
    for (Input& input : inputs_)
        for (size_t i = 0; i < input.axes.size(); ++i)
            if (Axis& axis = input.axes[i];
                axis.number < 0 && !input.is_spatial(i) && symbols.contains(axis.symbol))
                axis.number = options_.batch;
    if (!batched.empty() && messages)
        messages->push_back({LogLevel::info, file_ + ": the symbolic first axis of " +
                                                 (batched.size() == 1 ? "input " : "inputs ") +
                                                 join(batched, ", ") + " becomes " +
                                                 std::to_string(options_.batch)});
}

void Binder::take_example() {
    if (options_.example == 0) return;
    for (Input& input : inputs_) {
        const int64_t size = options_.example;
        if (!input.has_shape) {  // most likely a picture
            for (const int64_t number :
                 {int64_t{1}, likely_channels(model_.graph(), input.proto->name()), size, size})
                input.axes.push_back({.number = number, .symbol = {}, .name = {}});
            input.has_shape = true;
        }
        for (size_t i = 0; i < input.axes.size(); ++i) {
            Axis& axis = input.axes[i];
            if (axis.number >= 0) continue;
            const bool channels = static_cast<int>(i) == input.channels;
            const int64_t number =
                channels ? likely_channels(model_.graph(), input.proto->name()) : size;
            axis.number = symbols_.emplace(axis.symbol, number).first->second;
        }
    }
}

Result<void> Binder::bind(std::vector<Message>* messages) {
    if (auto good = check_names(); !good) return good;
    for (Input& input : inputs_)
        if (const auto option = options_.shapes.find(input.proto->name());
            option != options_.shapes.end())
            if (auto done = take_option(input, option->second); !done) return done;
    spread();
    take_picture_size(messages);
    take_batch(messages);
    take_example();
    return {};
}

bool Binder::is_complete() const {
    return std::ranges::all_of(inputs_, [](const Input& input) {
        const auto has_number = [](const Axis& axis) { return axis.number >= 0; };
        return input.has_shape && std::ranges::all_of(input.axes, has_number);
    });
}

// What to type: numbers where they are known, <name> where one is missing.
std::string Binder::shape_option(const Input& input) const {
    std::vector<std::string> words;
    for (size_t i = 0; i < input.axes.size(); ++i) {
        const Axis& axis = input.axes[i];
        words.push_back(axis.number >= 0
                            ? std::to_string(axis.number)
                            : '<' + (axis.name.empty() ? 'D' + std::to_string(i) : axis.name) +
                                  '>');
    }
    if (words.empty()) words = {"<D0>", "<D1>", "..."};
    return "--input-shape " + input.proto->name() + ':' + join(words, ",");
}

std::string Binder::batched_options() const {
    std::vector<std::string> words;
    for (const Input& input : inputs_)
        if (!input.axes.empty() && !input.axes[0].symbol.empty())
            words.push_back(shape_option(input));
    return join(words, " ");
}

Error Binder::refuse(const BindOptions& example) const {
    Binder with(file_, model_, example);
    (void)with.bind(nullptr);
    std::vector<std::string> faults, ways_out;
    for (size_t n = 0; n < inputs_.size(); ++n) {
        const Input& input = inputs_[n];
        std::vector<std::string> axes;
        for (size_t i = 0; i < input.axes.size(); ++i)
            if (const Axis& axis = input.axes[i]; axis.number < 0)
                axes.push_back((axis.name.empty() ? "" : '\'' + axis.name + "' (") + "axis " +
                               std::to_string(i) + (axis.name.empty() ? "" : ")"));
        if (axes.empty() && input.has_shape) continue;
        faults.push_back(
            "input '" + input.proto->name() +
            (axes.empty() ? "' has no shape" : "' has no number for " + enumerate(axes)));
        ways_out.push_back(with.shape_option(with.inputs_[n]));
    }
    return {ErrorCode::unsupported,
            file_ + ": " + enumerate(faults) + "; give " + join(ways_out, " ") +
                " to vartml compile" +
                (example.example ? ", or what the model was trained for" : "")};
}

}  // namespace

Result<std::vector<BoundInput>> bind_inputs(const std::string& file, const pb::ModelProto& model,
                                            const BindOptions& options,
                                            std::vector<Message>& messages, bool* open) {
    Binder binder(file, model, options);
    if (auto done = binder.bind(&messages); !done) return done.error();
    for (const Input& input : binder.inputs())
        if (!input.proto->type().has_tensor_type())
            return Error{ErrorCode::unsupported, file + ": input '" + input.proto->name() +
                                                     "' is no tensor (a sequence, map or optional "
                                                     "value); keep this part in the application"};
    if (!binder.is_complete()) {
        if (open) *open = true;
        return binder.refuse(options);
    }
    std::vector<BoundInput> bound;
    for (const Input& input : binder.inputs()) {
        const int32_t elem_type = input.proto->type().tensor_type().elem_type();
        std::vector<int64_t> dims;
        for (const Axis& axis : input.axes) dims.push_back(axis.number);
        bound.push_back({input.proto->name(), {data_type(elem_type), std::move(dims)}, elem_type});
    }
    return bound;
}

Error refuse_open_axes(const std::string& file, const pb::ModelProto& model,
                       const BindOptions& options) {
    BindOptions without = options;
    without.example = 0;
    Binder binder(file, model, without);
    if (auto done = binder.bind(nullptr); !done) return done.error();
    return binder.refuse(options);
}

std::string shape_options(const std::string& file, const pb::ModelProto& model,
                          const BindOptions& options) {
    Binder binder(file, model, options);
    (void)binder.bind(nullptr);
    return binder.batched_options();
}

std::vector<int64_t> example_sizes(const pb::ModelProto& model) {
    bool picture = false, strip = false;
    for (const Input& input : read_inputs(model.graph())) {
        if (!input.has_shape) picture = true;
        if (input.row < 0) continue;
        const int64_t row = input.axes[static_cast<size_t>(input.row)].number;
        const int64_t column = input.axes[static_cast<size_t>(input.column)].number;
        picture = picture || row < 0 || column < 0;
        strip = strip || (row > 0 && row <= 64 && column < 0);  // a line of text
    }
    if (strip) return {320, 160, 128, 100, 256, 640, 96, 64, 512, 1024};
    if (picture)
        return {640, 320, 416, 224, 256, 512, 384, 480, 608, 448, 300,  513, 321,
                257, 192, 160, 128, 112, 96,  64,  768, 800, 960, 1024, 1280};
    return {128, 64, 32, 16, 8, 256, 512, 1, 2, 4, 100, 384, 640, 1024};
}

}  // namespace vartml::onnx
