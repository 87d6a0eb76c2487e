// SPDX-License-Identifier: Apache-2.0
// Failures as messages on the bus: one table from the library's codes and our ids to GStreamer's
// domains and codes.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include <gst/gst.h>

#include <vartml/result.h>

namespace vartml::gst {

// The library's log in GStreamer's debug category `vartml`.

// From now on lines of the library go to the category `vartml` and no longer to standard error.
// Safe to call often.
void install_log();

// A line of ours in the same category.
void log_warning(const std::string& text);

// GStreamer's category GST_PERFORMANCE.
GstDebugCategory* performance_log();

// What the user chose: the element's own properties that are not as by default, as
// `name=value name=value`; those that cannot be read back (passwords) are left out.
std::string settings_text(gpointer element);

// A library error with what the message's details say beyond the sentence. Empty fields are left
// out.
struct Failure {
    vartml::Error error;
    const char* id = "";  // stable name, such as "infer-model-missing"
    const char* property = nullptr;
    std::string file = {}, found = {}, expected = {}, fix = {};
    std::optional<bool> recoverable = {};  // of a lost device
};

// Fills a failure; false.
inline bool fail(Failure& failure, const char* id, vartml::Error error, const char* property,
                 const std::string& file = {}) {
    failure = Failure{std::move(error), id, property, file};
    return false;
}

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
// An element message; takes the structure.
void post_structure(gpointer element, GstStructure* structure);

std::string name_of(gpointer element);
// The WARNING prop-fixed where a property was written in a state in which its flags say that it is
// not taken over. Call it with no lock held; objects that are no elements have no state.
void warn_if_fixed(GObject* object, const GParamSpec* property);

}  // namespace vartml::gst
