// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/vart_errors.h"

#include <cstdio>
#include <stdexcept>

namespace vartml::runtime {

std::string clean(std::string_view text) {
    constexpr size_t limit = 600;
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte != 0x7f) {
            out += c;
            continue;
        }
        char escaped[5];
        std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
        out += escaped;
    }
    if (out.size() > limit) {
        size_t end = limit - 3;
        while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80)
            --end;  // not inside a character
        out.resize(end);
        out += "...";
    }
    return out;
}

std::string in_quotes(std::string_view text) {
    return "'" + clean(text) + "'";
}

void throw_runtime(const Error& error) {
    throw std::runtime_error(clean(error.message));
}

void throw_invalid_argument(const Error& error) {
    throw std::invalid_argument(clean(error.message));
}

vart::StatusCode to_status(const Error& error) {
    using vart::StatusCode;
    switch (error.code) {
        case ErrorCode::out_of_memory:
            return StatusCode::OUT_OF_MEMORY;
        case ErrorCode::busy:
            return StatusCode::RESOURCE_UNAVAILABLE;
        case ErrorCode::timeout:
            return StatusCode::JOB_PENDING;
        case ErrorCode::unsupported:
            return StatusCode::UNSUPPORTED;
        case ErrorCode::device:
        case ErrorCode::io:
        case ErrorCode::internal:
            return StatusCode::RUNTIME_ERROR;
        // Inside a run the arguments were checked: what is left is data that an operator rejects.
        case ErrorCode::invalid_argument:
        case ErrorCode::not_found:
        case ErrorCode::bad_model:
            return StatusCode::FAILURE;
    }
    return StatusCode::RUNTIME_ERROR;
}

}  // namespace vartml::runtime
