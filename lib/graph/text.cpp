// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/graph/graph.h"
#include "lib/graph/numbers.h"

namespace vartml::graph {

// What printing and parsing share; private to lib/graph.

// Constants up to this size are written out, larger ones as a hash.
inline constexpr size_t max_listed_elements = 16;

inline bool is_name_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == ':' || c == '-';
}
bool is_listable(const Value& value);
// Name of the first output: what a node is called when its line does not say.
std::string default_node_name(const Graph& graph, const Node& node);

namespace {

// Reads one text from left to right. The first failure is kept; after it everything reads as empty.
class Parser {
public:
    Parser(std::string_view text, const Graph* constants) : rest_(text) {
        if (!constants) return;
        for (const Value& value : constants->values) {
            if (value.constant)
                hashes_.emplace(to_hex(sha256(value.constant->bytes)), *value.constant);
        }
    }

    Result<Graph> run() {
        while (!rest_.empty() && !error_) {
            ++line_;
            skip();
            if (at_end() || peek() == '#')
                skip_line();
            else
                read_line();
            if (!error_ && !at_end()) fail("the end of the line");
            if (!rest_.empty()) rest_.remove_prefix(1);
        }
        if (error_) return *error_;
        return std::move(graph_);
    }

private:
    // ---- characters
    // ------------------------------------------------------------------------------------------------
    void fail(const std::string& expected) {
        if (error_) return;
        const std::string_view here = rest_.substr(0, rest_.find('\n')).substr(0, 30);
        error_ = Error{ErrorCode::bad_model, "line " + std::to_string(line_) + ": found '" +
                                                 printable(here) + "', expected " +
                                                 printable(expected, std::string::npos)};
    }
    bool at_end() const { return rest_.empty() || rest_[0] == '\n'; }
    char peek() const { return rest_.empty() ? '\n' : rest_[0]; }
    void skip() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
    }
    void skip_line() { rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size())); }
    // Takes the text if it comes next; white space around it does not count.
    bool take(std::string_view text) {
        if (error_) return false;
        skip();
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        skip();
        return true;
    }
    void expect(std::string_view text) {
        if (!take(text)) fail("'" + std::string(text) + "'");
    }
    template <typename F>
    std::string_view take_while(F matches) {
        size_t n = 0;
        while (n < rest_.size() && matches(rest_[n])) ++n;
        const auto text = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return text;
    }

    // ---- words
    // -----------------------------------------------------------------------------------------------------
    std::string string() {
        std::string text;
        if (peek() != '"') return fail("a quoted string"), text;
        rest_.remove_prefix(1);
        while (!at_end() && peek() != '"') {
            char c = peek();
            rest_.remove_prefix(1);
            if (c == '\\' && !at_end()) {
                c = peek() == 'n' ? '\n' : peek();
                rest_.remove_prefix(1);
            }
            text += c;
        }
        if (peek() != '"') return fail("the end of a quoted string"), text;
        rest_.remove_prefix(1);
        return text;
    }
    std::string name() {
        if (error_) return {};
        if (peek() == '"') return string();
        std::string text(take_while(is_name_character));
        if (text.empty()) fail("a name");
        return text;
    }
    template <typename T>
    T number() {
        T value{};
        const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (ec != std::errc()) return fail("a number"), T{};
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return value;
    }
    // Reads items and commas up to the closing character.
    template <typename F>
    void list(char close, F item) {
        skip();
        if (take(std::string_view(&close, 1))) return;
        do {
            skip();
            item();
        } while (!error_ && take(","));
        expect(std::string_view(&close, 1));
    }
    Type type(bool& data_dependent) {
        Type type;
        const auto word =
            take_while([](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
        const auto data_type = parse_short_name(word);
        if (!data_type)
            return fail("a type such as f32[1,3] instead of '" + std::string(word) + "'"), type;
        type.data_type = *data_type;
        expect("[");
        list(']', [&] {
            const auto size = number<int64_t>();
            if (size < 0 || size > (int64_t{1} << 40)) fail("sizes from 0 to 2^40");
            type.shape.push_back(size);
        });
        data_dependent = take("?");
        if (!error_ && !fits(type)) fail("at most 2^40 elements");
        return type;
    }
    static bool fits(const Type& type) {
        int64_t elements = 1;
        for (const int64_t size : type.shape) {
            if (size && elements > (int64_t{1} << 40) / size) return false;
            elements *= size;
        }
        return true;
    }
    Attribute attribute() {
        const char c = peek();
        if (c == '"') return string();
        if (take("f[")) {
            std::vector<float> items;
            list(']', [&] { items.push_back(number<float>()); });
            return items;
        }
        if (take("s[")) {
            Strings items;
            list(']', [&] { items.push_back(string()); });
            return items;
        }
        if (take("[")) {
            std::vector<int64_t> items;
            list(']', [&] { items.push_back(number<int64_t>()); });
            return items;
        }
        // A point, an exponent or a name makes a float.
        const auto word = rest_.substr(0, rest_.find_first_of(",} \n"));
        if (word.find_first_of(".einf") != word.npos) return number<float>();
        return number<int64_t>();
    }

    // ---- values
    // ----------------------------------------------------------------------------------------------------
    ValueId reference() {
        if (take("_")) return none;
        if (!take("%")) return fail("a value such as %x, or _"), none;
        const std::string text = name();
        const auto found = ids_.find(text);
        if (error_ || found != ids_.end()) return error_ ? none : found->second;
        fail("a value that an earlier line names instead of '" + text + "'");
        return none;
    }
    ValueId define(std::string text) {
        if (error_) return none;
        if (ids_.contains(text)) return fail("a new name instead of '" + text + "'"), none;
        const ValueId id = graph_.add_value(text, {});
        ids_.emplace(std::move(text), id);
        return id;
    }
    ValueId typed_value() {
        expect("%");
        const ValueId id = define(name());
        expect(":");
        bool data_dependent = false;
        Type read = type(data_dependent);
        if (error_) return none;
        graph_.value(id).type = std::move(read);
        graph_.value(id).data_dependent = data_dependent;
        return id;
    }

    // ---- lines
    // -----------------------------------------------------------------------------------------------------
    void read_line() {
        if (take("graph ")) {
            graph_.name = name();
        } else if (take("input ")) {
            graph_.inputs.push_back(typed_value());
        } else if (take("const ")) {
            read_constant();
        } else if (take("output ")) {
            graph_.outputs.push_back(reference());
        } else {
            read_node();
        }
        skip();
    }
    void read_constant() {
        const ValueId id = typed_value();
        expect("=");
        if (error_) return;
        const Type& type = graph_.value(id).type;
        if (take("#")) {
            const std::string hash(take_while(
                [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }));
            const auto found = hashes_.find(hash);
            if (found != hashes_.end() && found->second.bytes.size() == type.size_bytes()) {
                graph_.value(id).constant = found->second;
            } else if (type.size_bytes() > (size_t{1} << 30)) {
                fail("at most 1 GiB for a constant that is not known");
            } else {
                graph_.value(id).constant =
                    make_constant(std::vector<std::byte>(type.size_bytes()));
            }
            return;
        }
        expect("{");
        if (is_integral(type.data_type))
            listed<int64_t>(id);
        else if (type.data_type == DataType::float64)
            listed<double>(id);
        else
            listed<float>(id);
    }
    template <typename T>
    void listed(ValueId id) {
        std::vector<T> numbers;
        list('}', [&] { numbers.push_back(number<T>()); });
        const Type& type = graph_.value(id).type;
        // One number stands for all elements.
        if (numbers.size() == 1 && type.elements() > 1 && type.elements() < (1 << 24)) {
            numbers.resize(static_cast<size_t>(type.elements()), numbers[0]);
        }
        if (static_cast<int64_t>(numbers.size()) != type.elements()) {
            return fail(std::to_string(type.elements()) + " numbers instead of " +
                        std::to_string(numbers.size()));
        }
        graph_.value(id).constant = write_numbers<T>(type.data_type, numbers);
    }
    void read_node() {
        Node node;
        std::vector<std::string>
            outputs;  // named only behind the inputs, so that a node cannot read itself
        do {
            if (take("_")) {
                outputs.emplace_back();
                continue;
            }
            expect("%");
            outputs.push_back(name());
        } while (!error_ && take(","));
        expect("=");
        read_kind(node);
        if (!error_ && (peek() == '%' || peek() == '_')) {
            do {
                node.inputs.push_back(reference());
            } while (!error_ && take(","));
        }
        if (take("{")) {
            list('}', [&] {
                const auto key = take_while([](char c) { return is_name_character(c); });
                expect("=");
                node.attributes.insert_or_assign(std::string(key), attribute());
            });
        }
        expect(":");
        for (size_t i = 0; i < outputs.size() && !error_; ++i) {
            if (i) expect(",");
            if (outputs[i].empty()) {
                expect("_");
                node.outputs.push_back(none);
                continue;
            }
            bool data_dependent = false;
            Type read = type(data_dependent);
            const ValueId id = define(outputs[i]);
            if (error_) return;
            graph_.value(id).type = std::move(read);
            graph_.value(id).data_dependent = data_dependent;
            node.outputs.push_back(id);
        }
        take_apart(node);
        node.name = default_node_name(graph_, node);
        if (take("@")) node.name = name();
        node.sources = {node.name};
        if (take("from")) {
            node.sources.clear();
            while (!error_ && peek() == '"') {
                node.sources.push_back(string());
                if (!take(",")) break;
            }
        }
        graph_.nodes.push_back(std::move(node));
    }
    void read_kind(Node& node) {
        skip();
        std::string word(take_while([](char c) { return is_name_character(c) || c == '+'; }));
        const size_t colons = word.find("::");
        if (colons != word.npos) {
            node.domain = word.substr(0, colons);
            word.erase(0, colons + 2);
        }
        if (word.empty()) fail("an operator");
        node.kind = std::move(word);
        skip();
    }

    std::string_view rest_;
    int line_ = 0;
    std::optional<Error> error_;
    Graph graph_;
    std::unordered_map<std::string, ValueId> ids_;
    std::unordered_map<std::string, Constant> hashes_;
};

}  // namespace

Result<Graph> parse(std::string_view text, const Graph* constants) {
    return Parser(text, constants).run();
}

namespace {

// Shortest text that reads back as the same number; a float always has a point, an exponent or a
// name (inf, nan).
template <typename T>
std::string number_text(T number) {
    char buffer[32];
    const auto end = std::to_chars(std::begin(buffer), std::end(buffer), number).ptr;
    std::string text(buffer, end);
    if constexpr (std::is_floating_point_v<T>) {
        if (text.find_first_of(".einf") == text.npos) text += ".0";
    }
    return text;
}

std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (c == '\n')
            result += "\\n";
        else
            result += c;
    }
    return result + '"';
}

std::string name_text(std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, is_name_character) ? std::string(name)
                                                                         : quoted(name);
}

std::string attribute_text(const Attribute& value) {
    const auto list = [](const auto& items, auto text_of) {
        std::string text = "[";
        for (const auto& item : items) {
            if (text.size() > 1) text += ',';
            text += text_of(item);
        }
        return text + ']';
    };
    struct Visitor {
        decltype(list)& list_of;
        std::string operator()(int64_t v) const { return number_text(v); }
        std::string operator()(float v) const { return number_text(v); }
        std::string operator()(const std::string& v) const { return quoted(v); }
        std::string operator()(const std::vector<int64_t>& v) const {
            return list_of(v, number_text<int64_t>);
        }
        // The letter keeps an empty list apart from one of integers.
        std::string operator()(const std::vector<float>& v) const {
            return 'f' + list_of(v, number_text<float>);
        }
        std::string operator()(const std::vector<std::string>& v) const {
            return 's' + list_of(v, quoted);
        }
    };
    return std::visit(Visitor{list}, value);
}

std::string constant_text(const Value& value) {
    const Constant& constant = *value.constant;
    const DataType type = value.type.data_type;
    const auto elements = static_cast<size_t>(value.type.elements());
    if (elements > max_listed_elements || !is_listable(value))
        return '#' + to_hex(sha256(constant.bytes));
    std::string text = "{";
    const auto add = [&](const auto& numbers) {
        for (const auto number : numbers) {
            if (text.size() > 1) text += ", ";
            text += number_text(number);
        }
    };
    if (is_integral(type))
        add(read_numbers<int64_t>(value));
    else if (type == DataType::float64)
        add(read_numbers<double>(value));
    else
        add(read_numbers<float>(value));
    return text + '}';
}

std::string value_ref(const Graph& graph, ValueId id) {
    return id == none ? "_" : '%' + name_text(graph.value(id).name);
}

std::string list_text(const Graph& graph, const std::vector<ValueId>& ids) {
    std::string text;
    for (const ValueId id : ids) {
        if (!text.empty()) text += ", ";
        text += value_ref(graph, id);
    }
    return text;
}

std::string node_text(const Graph& graph, const Node& node) {
    std::string text = list_text(graph, node.outputs) + " = ";
    if (!node.domain.empty()) text += node.domain + "::";
    text += node.type();
    if (!node.inputs.empty()) text += ' ' + list_text(graph, node.inputs);
    const Attributes attributes = written_attributes(node);
    if (!attributes.empty()) text += " {" + print(attributes) + '}';
    text += " : ";
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (i) text += ", ";
        const ValueId id = node.outputs[i];
        text += id == none ? "_" : to_string(graph.value(id).type);
        if (id != none && graph.value(id).data_dependent) text += '?';
    }
    const bool own_name = node.name != default_node_name(graph, node);
    const bool own_sources = node.sources != std::vector<std::string>{node.name};
    if (own_name || own_sources) text += " @" + name_text(node.name);
    if (own_sources) {
        text += " from";
        for (size_t i = 0; i < node.sources.size(); ++i)
            text += (i ? ", " : " ") + quoted(node.sources[i]);
    }
    return text;
}

}  // namespace

std::string default_node_name(const Graph& graph, const Node& node) {
    for (const ValueId id : node.outputs) {
        if (id != none) return graph.value(id).name;
    }
    return {};
}

// Whether listing the numbers gives the same bytes back: no NaN with a payload, no bool but 0
// and 1.
bool is_listable(const Value& value) {
    const Constant& constant = *value.constant;
    if (value.type.data_type == DataType::uint64) return false;
    if (value.type.data_type == DataType::boolean) {
        return std::ranges::all_of(constant.bytes, [](std::byte b) { return b <= std::byte{1}; });
    }
    if (is_integral(value.type.data_type)) return true;
    const auto numbers = read_numbers<double>(value);
    return std::ranges::none_of(numbers, [](double v) { return std::isnan(v); });
}

std::string print(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes)
        text += (text.empty() ? "" : ", ") + key + '=' + attribute_text(value);
    return text;
}

std::string print(const Graph& graph) {
    std::string text = "graph " + name_text(graph.name) + '\n';
    for (const ValueId id : graph.inputs) {
        const Value& value = graph.value(id);
        text += "input " + value_ref(graph, id) + " : " + to_string(value.type) +
                (value.data_dependent ? "?" : "") + '\n';
    }
    for (size_t i = 0; i < graph.values.size(); ++i) {
        const Value& value = graph.values[i];
        if (!value.constant) continue;
        text += "const " + value_ref(graph, static_cast<ValueId>(i)) + " : " +
                to_string(value.type) + " = " + constant_text(value) + '\n';
    }
    for (const Node& node : graph.nodes) text += node_text(graph, node) + '\n';
    for (const ValueId id : graph.outputs) text += "output " + value_ref(graph, id) + '\n';
    return text;
}

}  // namespace vartml::graph
