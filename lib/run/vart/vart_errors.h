// SPDX-License-Identifier: Apache-2.0
// The boundary of the vart interface: where a Result becomes an exception or a status code.
#pragma once
#include <new>
#include <string>
#include <string_view>

#include <vartml/result.h>
#include <vart/vart_runner_factory.hpp>

namespace vartml::runtime {

// The text in the form of every message: one line of UTF-8, control characters and other bytes
// escaped, at most 600 bytes.
std::string clean(std::string_view text);
// A name that comes from a file or a caller, in single quotes: as clean() leaves it, and cut in the
// middle above 200 bytes, so that the sentence around it stays.
std::string in_quotes(std::string_view text);

// No `throw` is written anywhere else in the runtime.
[[noreturn]] void throw_runtime(const Error& error);
[[noreturn]] void throw_invalid_argument(const Error& error);

// The value, or the exception that the member's contract names.
template <typename T>
T value_or_throw_runtime(Result<T> result) {
    if (!result) throw_runtime(result.error());
    return std::move(*result);
}
template <typename T>
T value_or_throw_invalid_argument(Result<T> result) {
    if (!result) {
        if (result.error().code == ErrorCode::invalid_argument)
            throw_invalid_argument(result.error());
        throw_runtime(result.error());
    }
    return std::move(*result);
}

// What `work` returns; where there is no memory for it, the exception of the contract.
template <typename Work>
auto or_no_memory(const char* call, const Work& work) {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        throw_runtime({ErrorCode::out_of_memory, std::string(call) + ": not enough memory"});
    }
}

// Status of a run that failed.
vart::StatusCode to_status(const Error& error);

}  // namespace vartml::runtime
