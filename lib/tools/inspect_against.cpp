// SPDX-License-Identifier: Apache-2.0
// vartml inspect --against: the tensors of a model and those of a model-info dump.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/model/checks.h"
#include "lib/tools/inspect.h"

namespace vartml::tools {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

const Json& member(const Json& j, const char* key) {
    static const Json absent;
    if (!j.is_object()) return absent;
    const auto at = j.find(key);
    return at == j.end() ? absent : *at;
}

std::optional<double> number_of(const Json& j) {
    if (j.is_number()) return j.get<double>();
    if (!j.is_string() || j.get_ref<const std::string&>().empty()) return std::nullopt;
    const std::string& text = j.get_ref<const std::string&>();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end == text.c_str() + text.size() ? std::optional(value) : std::nullopt;
}

// Numbers and their texts are the same; 0.0078125 and "7.8125e-03" too.
bool same_value(const Json& a, const Json& b) {
    if (a.is_array() && b.is_array())
        return a.size() == b.size() && std::ranges::equal(a, b, same_value);
    const auto x = number_of(a), y = number_of(b);
    // A dump prints a float; its text may have lost the last digits.
    if (x && y) return std::abs(*x - *y) <= 1e-6 * std::max(std::abs(*x), std::abs(*y));
    return a == b;
}

std::string text_of(const Json& j) {
    if (j.is_null()) return "absent";
    if (j.is_string()) return printable(j.get<std::string>());
    if (!j.is_array()) return printable(j.dump(-1, ' ', false, Json::error_handler_t::replace));
    std::string text;
    for (const Json& item : j) text += (text.empty() ? "" : ",") + text_of(item);
    return '[' + text + ']';
}

// "HCWNC4 [8,1,8,1,4] of int8"
std::string view_text(const Json& view) {
    if (view.is_null()) return "absent";
    return text_of(member(view, "memory_layout")) + ' ' + text_of(member(view, "shape")) + " of " +
           text_of(member(view, "dtype"));
}

void compare_views(const std::string& what, const Json& found, const Json& expected, Lines& lines) {
    const auto compare = [&](const std::string& field, const Json& a, const Json& b) {
        if (!same_value(a, b))
            lines.push_back(what + ' ' + field + ": is " + text_of(a) + ", expected " + text_of(b));
    };
    for (const char* key : {"shape", "memory_layout", "memory_layout_order", "dtype"})
        compare(key, member(found, key), member(expected, key));
    for (const char* key : {"scale", "zero_point", "rounding_mode"})
        compare(std::string("quantization.") + key, member(member(found, "quantization"), key),
                member(member(expected, "quantization"), key));
}

// "'a', 'b'"
std::string names_of(const Json& tensors) {
    std::string text;
    for (const Json& t : tensors)
        text += (text.empty() ? "'" : ", '") + text_of(member(t, "name")) + '\'';
    return text.empty() ? "none" : text;
}

void compare_tensors(const std::string& direction, const Json& found, const Json& expected,
                     Lines& lines) {
    const auto find = [](const Json& list, const Json& name) -> const Json* {
        const auto at =
            std::ranges::find(list, name, [](const Json& t) -> const Json& { return t["name"]; });
        return at == list.end() ? nullptr : &*at;
    };
    for (const Json& theirs : expected) {
        const std::string what = direction + " '" + text_of(theirs["name"]) + '\'';
        const Json* ours = find(found, theirs["name"]);
        if (!ours) {
            lines.push_back(what + ": is in the dump, the model has " + names_of(found));
            continue;
        }
        for (const char* view : {"cpu", "hw"}) {
            const Json &a = member(*ours, view), &b = member(theirs, view);
            if (a.is_null() == b.is_null())
                compare_views(what + ' ' + view, a, b, lines);
            else
                lines.push_back(what + ' ' + view + ": is " + view_text(a) + ", expected " +
                                view_text(b));
        }
    }
    for (const Json& ours : found)
        if (!find(expected, ours["name"]))
            lines.push_back(direction + " '" + text_of(ours["name"]) +
                            "': is in the model, the dump has " + names_of(expected));
}

// "" or what the lists of a dump are not.
std::string fault_in(const Json& dump) {
    if (!dump.is_object()) return "is no object";
    for (const char* key : {"inputs", "outputs"}) {
        const Json& list = member(dump, key);
        if (!list.is_array()) return std::string(key) + " is missing or no array";
        for (size_t i = 0; i < list.size(); ++i) {
            const std::string what = std::string(key) + '[' + std::to_string(i) + ']';
            if (!member(list[i], "name").is_string()) return what + " has no name";
            if (!member(list[i], "cpu").is_object()) return what + " has no object 'cpu'";
            const Json& hw = member(list[i], "hw");
            if (!hw.is_null() && !hw.is_object()) return what + ": 'hw' is no object";
            for (size_t k = 0; k < i; ++k)
                if (list[k]["name"] == list[i]["name"])
                    return what + " has the name of " + key + '[' + std::to_string(k) + ']';
        }
    }
    return {};
}

Result<Json> read_dump(const std::string& file) {
    const auto text = read_file(file, artifact::max_json_bytes);
    if (!text) return text.error();
    std::string fault = artifact::json_fault(*text);
    Json dump;
    if (fault.empty()) {
        dump = Json::parse(*text, nullptr, false);
        fault = fault_in(dump);
    }
    if (fault.empty()) return dump;
    return Error{ErrorCode::invalid_argument, file + ": " + fault +
                                                  "; expected a model-info dump, as 'vartml "
                                                  "inspect --json=compat' prints it"};
}

}  // namespace

Result<std::vector<std::string>> inspect_differences(const artifact::CompiledModel& model,
                                                     const std::string& dump_file) {
    const auto expected = read_dump(dump_file);
    if (!expected) return expected.error();
    const Json found = Json::parse(inspect_json(model, "", JsonForm::compat));
    Lines lines;
    const Json& batch = member(*expected, "batch_size");
    if (!batch.is_null() && !same_value(found["batch_size"], batch))
        lines.push_back("batch_size: is " + text_of(found["batch_size"]) + ", expected " +
                        text_of(batch));
    compare_tensors("input", found["inputs"], member(*expected, "inputs"), lines);
    compare_tensors("output", found["outputs"], member(*expected, "outputs"), lines);
    return lines;
}

}  // namespace vartml::tools
