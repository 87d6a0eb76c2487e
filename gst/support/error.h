// SPDX-License-Identifier: Apache-2.0
// Failures as messages on the bus: one table from the library's codes and our ids to GStreamer's
// domains and codes.
#pragma once
#include <gst/gst.h>

#include <optional>
#include <string>

#include <vartml/result.h>

namespace vartml::gst {

// A library error with what the message's details say beyond the sentence. Empty fields are left
// out.
struct Failure {
    vartml::Error error;
    const char* id = "";  // stable name, such as "infer-model-missing"
    const char* property = nullptr;
    std::string file = {}, found = {}, expected = {}, fix = {};
    std::optional<bool> recoverable = {};  // of a lost device
};

struct MessageCode {
    GQuark domain;
    int code;
};
// Follows the library's code, unless the id has a row of its own.
MessageCode message_code(vartml::ErrorCode code, const char* id);

// Posts "Could not <doing>: <sentence>" with structure `vartml-error` (id, code, property, file,
// found, expected, fix, recoverable) as an ERROR. Call it with no lock held. Returns FALSE, so that
// a virtual method can end with it.
gboolean post_error(gpointer element, const char* doing, const Failure& failure);
// The same as a WARNING.
void post_warning(gpointer element, const char* doing, const Failure& failure);

}  // namespace vartml::gst
