// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/vart_errors.h"

#include <limits>
#include <stdexcept>

#include "lib/base/text.h"

namespace vartml::runtime {

namespace {

bool is_inside_character(const std::string& text, size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

}  // namespace

std::string clean(std::string_view text) {
    constexpr size_t limit = 600;
    std::string out = printable(text, limit);
    if (out.size() <= limit) return out;
    size_t end = limit - 3;
    while (end > 0 && is_inside_character(out, end)) --end;
    out.resize(end);
    return out += "...";
}

std::string in_quotes(std::string_view text) {
    // The beginning and the end tell names and paths apart.
    constexpr size_t limit = 200, kept_head = 100, kept_tail = 97;
    std::string name = printable(text, std::numeric_limits<size_t>::max());
    if (name.size() > limit) {
        size_t head = kept_head, tail = name.size() - kept_tail;
        while (is_inside_character(name, head)) --head;
        while (is_inside_character(name, tail)) ++tail;
        name.replace(head, tail - head, "...");
    }
    return "'" + name + "'";
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
