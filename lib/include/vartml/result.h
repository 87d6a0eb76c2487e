// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an error code with one sentence for a person.
#pragma once
#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace vartml {

/// What a program can act on. The sentence beside it is for a person.
enum class ErrorCode {
    invalid_argument,  ///< the caller passed something that the contract excludes
    not_found,         ///< a file, tensor, option value or device that does not exist
    unsupported,       ///< understood, but this build or device cannot do it
    bad_model,         ///< a file whose content is damaged, foreign or contradictory
    out_of_memory,     ///< an allocation the size of a tensor or frame failed
    busy,              ///< all slots or the device are taken; try again
    timeout,           ///< not finished within the time given
    io,                ///< the operating system refused to read or write
    device,            ///< the device reported a fault or is gone
    internal,          ///< a fault of ours
};

/// Name of the code as written above, for logs and tests.
constexpr const char* to_string(ErrorCode code) {
    constexpr const char* names[] = {"invalid_argument", "not_found", "unsupported", "bad_model",
                                     "out_of_memory",    "busy",      "timeout",     "io",
                                     "device",           "internal"};
    return names[static_cast<int>(code)];
}

/// One failure. `message` is one English sentence without trailing period or newline that names the
/// file, tensor, node or property, what was found, what was expected and, where there is one, the
/// way out.
struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;
};

/// A T or an Error; the members are those of std::expected, which no compiler offers in C++20.
/// Thread-safety: as for any value type.
template <typename T>
class [[nodiscard]] Result {
public:
    using value_type = T;
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    /// The value; only where has_value().
    T& value() & {
        assert(has_value());
        return *std::get_if<0>(&state_);
    }
    const T& value() const& {
        assert(has_value());
        return *std::get_if<0>(&state_);
    }
    T&& value() && {
        assert(has_value());
        return std::move(*std::get_if<0>(&state_));
    }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    /// The error; only where !has_value().
    const Error& error() const& {
        assert(!has_value());
        return *std::get_if<1>(&state_);
    }
    Error&& error() && {
        assert(!has_value());
        return std::move(*std::get_if<1>(&state_));
    }

private:
    std::variant<T, Error> state_;
};

/// Success without a value is `return {};`.
template <>
class [[nodiscard]] Result<void> {
public:
    using value_type = void;
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    bool has_value() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return has_value(); }
    const Error& error() const& {
        assert(error_);
        return *error_;
    }
    Error&& error() && {
        assert(error_);
        return std::move(*error_);
    }

private:
    std::optional<Error> error_;
};

}  // namespace vartml
