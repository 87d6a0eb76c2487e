// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/numbers.h"

#include <algorithm>
#include <cstring>

namespace vartml::graph {

bool is_float(DataType type) {
    return type == DataType::float32 || type == DataType::float64 || type == DataType::fp16 ||
           type == DataType::bf16;
}
bool is_integral(DataType type) {
    return type != DataType::unknown && !is_float(type);
}

template <typename T>
std::vector<T> read_numbers(const Value& value) {
    std::vector<T> numbers;
    if (!value.constant) return numbers;
    with_type(value.type.data_type, [&]<typename From>(From element) {
        const auto bytes = value.constant->bytes;
        numbers.resize(bytes.size() / sizeof(From));
        for (size_t i = 0; i < numbers.size(); ++i) {
            std::memcpy(&element, bytes.data() + i * sizeof(From), sizeof(From));
            numbers[i] = convert<T>(element);
        }
    });
    return numbers;
}

template <typename T>
Constant write_numbers(DataType type, std::span<const T> numbers) {
    std::vector<std::byte> bytes;
    with_type(type, [&]<typename To>(To element) {
        bytes.resize(numbers.size() * sizeof(To));
        for (size_t i = 0; i < numbers.size(); ++i) {
            element = convert<To>(numbers[i]);
            std::memcpy(bytes.data() + i * sizeof(To), &element, sizeof(To));
        }
    });
    return make_constant(std::move(bytes));
}

template std::vector<double> read_numbers(const Value&);
template std::vector<float> read_numbers(const Value&);
template std::vector<int64_t> read_numbers(const Value&);
template Constant write_numbers(DataType, std::span<const double>);
template Constant write_numbers(DataType, std::span<const float>);
template Constant write_numbers(DataType, std::span<const int64_t>);

std::optional<double> uniform_number(const Value& value) {
    if (!value.constant) return std::nullopt;
    const auto numbers = read_numbers<double>(value);
    if (numbers.empty() ||
        std::ranges::any_of(numbers, [&](double v) { return v != numbers[0]; })) {
        return std::nullopt;
    }
    return numbers[0];
}

}  // namespace vartml::graph
