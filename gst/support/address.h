// SPDX-License-Identifier: Apache-2.0
// Where pictures come from, as a user writes it, with the login taken out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::gst {

enum class AddressKind { rtsp, http, file, device, other };

/// A camera's or a file's address. What may be shown is `shown` alone.
struct Address {
    AddressKind kind = AddressKind::other;
    std::string scheme;          // "rtsp", lower case
    std::string uri;             // without user and password; may hold secrets in its query
    std::string user, password;  // percent-decoded
    std::string path;            // of a file or device
    std::string shown;           // what may be printed
    std::vector<std::string> secrets;

    /// A camera sends as time passes; a file waits until it is read.
    bool live() const { return kind != AddressKind::file && kind != AddressKind::http; }
    /// `text` with `***` for every secret.
    std::string scrub(std::string text) const;
};

/// Reads a URI, a path of a file, or `/dev/video0`. Fails with a sentence that shows no secret.
Result<Address> parse_address(const std::string& text);

/// What may be printed of an address: without user and password, and with `***` for the values of
/// `password=`, `token=` and the like. Any text is taken.
std::string without_login(std::string_view text);

}  // namespace vartml::gst
