// SPDX-License-Identifier: Apache-2.0
// Numbers and lists as bytes that this program keeps for itself, and back. In the host's order:
// what they are kept in says for which version and machine they are.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace vartml::compiler {

class Writer {
public:
    template <typename T>
    void number(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <typename T>
    void list(const std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        number(uint64_t{values.size()});
        bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }
    void text(std::string_view value) { list(std::vector<char>(value.begin(), value.end())); }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

// Beyond the end everything is zero and empty, and is_good() is false.
class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    template <typename T>
    T number() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        if (const char* from = next(1, sizeof value)) std::memcpy(&value, from, sizeof value);
        return value;
    }
    template <typename T>
    std::vector<T> list() {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto count = number<uint64_t>();
        const char* from = next(count, sizeof(T));
        if (!from) return {};
        std::vector<T> values(static_cast<size_t>(count));
        if (count != 0) std::memcpy(values.data(), from, static_cast<size_t>(count) * sizeof(T));
        return values;
    }
    std::string text() {
        const std::vector<char> value = list<char>();
        return {value.begin(), value.end()};
    }
    // All that was asked for was there.
    bool is_good() const { return good_; }
    // And nothing is left.
    bool is_done() const { return good_ && bytes_.empty(); }

private:
    const char* next(uint64_t count, size_t size) {
        good_ = good_ && count <= bytes_.size() / size;
        if (!good_) return nullptr;
        const char* from = bytes_.data();
        bytes_.remove_prefix(static_cast<size_t>(count) * size);
        return from;
    }

    std::string_view bytes_;
    bool good_ = true;
};

}  // namespace vartml::compiler
