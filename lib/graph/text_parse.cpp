// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>
#include <unordered_map>

#include "lib/common/sha256.h"
#include "lib/graph/numbers.h"
#include "lib/graph/text.h"
#include "lib/graph/text_rules.h"

namespace vartml::graph {

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
                                                 std::string(here) + "', expected " + expected};
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
            std::vector<std::string> items;
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

}  // namespace vartml::graph
