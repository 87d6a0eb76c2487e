// SPDX-License-Identifier: Apache-2.0
#include "gst/support/address.h"

#include <glib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>

namespace vartml::gst {
namespace {

struct Scheme {
    std::string_view name;
    AddressKind kind;
};
// given: the protocols of rtspsrc, souphttpsrc, filesrc and v4l2src; any other is looked up in the
// registry when the source is made.
constexpr Scheme schemes[] = {
    {"rtsp", AddressKind::rtsp},   {"rtsps", AddressKind::rtsp},  {"rtspu", AddressKind::rtsp},
    {"rtspt", AddressKind::rtsp},  {"rtsph", AddressKind::rtsp},  {"rtspsu", AddressKind::rtsp},
    {"rtspst", AddressKind::rtsp}, {"rtspsh", AddressKind::rtsp}, {"http", AddressKind::http},
    {"https", AddressKind::http},  {"file", AddressKind::file},   {"v4l2", AddressKind::device},
};

// Ends of words before `=` whose value is a secret; cameras take them in the path, too. Those of
// cameras' own pages (loginpas, psw), SRT (passphrase) and signed addresses (sig) among them.
constexpr std::string_view secret_keys[] = {
    "auth", "credential", "key", "pas", "pass",      "passphrase", "passwd", "password",
    "psw",  "pw",         "pwd", "sig", "signature", "secret",     "token"};
// ours: what is shorter is a flag, and taken out of sentences it would make them unreadable
constexpr size_t least_secret = 3;

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](unsigned char c) { return char(std::tolower(c)); });
    return result;
}

std::string decoded(const std::string& text) {
    gchar* const plain = g_uri_unescape_string(text.c_str(), nullptr);
    std::string result = plain ? plain : text;
    g_free(plain);
    return result;
}

struct Range {
    size_t begin, size;
};

// Where the login with its `@` stands. Passwords with an `@` or `/` of their own are common, so it
// ends at the last `@` that can be its end.
std::optional<Range> login_of(std::string_view text) {
    const size_t colon = text.find("://");
    if (colon == text.npos) return std::nullopt;
    const size_t begin = colon + 3;
    const std::string_view rest = text.substr(begin);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
    size_t end = authority.rfind('@');
    if (end == authority.npos) {
        const size_t port = authority.rfind(':');
        const bool is_port = port == authority.npos || authority.ends_with(']') ||
                             std::ranges::all_of(authority.substr(port + 1), [](unsigned char c) {
                                 return std::isdigit(c) != 0;
                             });
        if (!is_port) end = rest.rfind('@');
        if (is_port || end == rest.npos) return std::nullopt;
    }
    return Range{begin, end + 1};
}

std::vector<Range> secret_values(std::string_view text) {
    std::vector<Range> all;
    const std::string plain = lower(text);
    for (size_t equals = plain.find('='); equals != plain.npos;
         equals = plain.find('=', equals + 1)) {
        const std::string_view before = std::string_view(plain).substr(0, equals);
        if (std::ranges::none_of(secret_keys, [&](auto key) { return before.ends_with(key); }))
            continue;
        const size_t end = std::min(plain.find_first_of("&?/#;", equals), plain.size());
        if (end > equals + 1) all.push_back({equals + 1, end - equals - 1});
    }
    return all;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
    if (what.empty()) return;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
}

}  // namespace

std::string without_login(std::string_view text) {
    std::string result(text);
    if (const auto login = login_of(text)) result.erase(login->begin, login->size);
    const auto values = secret_values(result);
    for (auto value = values.rbegin(); value != values.rend(); ++value)
        result.replace(value->begin, value->size, "***");
    return result;
}

std::string Address::scrub(std::string text) const {
    replace_all(text, uri, shown);
    for (const std::string& secret : secrets) replace_all(text, secret, "***");
    return text;
}

Result<Address> parse_address(const std::string& text) {
    Address address;
    address.shown = without_login(text);
    const size_t colon = text.find("://");
    if (text.empty())
        return Error{ErrorCode::invalid_argument,
                     "property 'uri' is not set; set it to rtsp://…, http://…, a file or a camera "
                     "such as /dev/video0"};
    if (colon == text.npos) {
        std::error_code error;
        // A camera that is not there has no kind of its own.
        const bool device =
            text.starts_with("/dev/video") || std::filesystem::is_character_file(text, error);
        address.kind = device ? AddressKind::device : AddressKind::file;
        address.scheme = address.kind == AddressKind::device ? "v4l2" : "file";
        address.path = address.uri = std::filesystem::absolute(text, error).string();
        return address;
    }
    address.scheme = lower(std::string_view(text).substr(0, colon));
    const auto* row = std::ranges::find(schemes, address.scheme, &Scheme::name);
    if (row != std::end(schemes)) address.kind = row->kind;
    address.uri = text;
    for (const Range& value : secret_values(text))
        if (value.size >= least_secret)
            address.secrets.push_back(text.substr(value.begin, value.size));
    if (const auto login = login_of(text)) {
        const std::string both = text.substr(login->begin, login->size - 1);
        const size_t split = std::min(both.find(':'), both.size());
        address.uri.erase(login->begin, login->size);
        address.user = decoded(both.substr(0, split));
        if (split < both.size()) address.password = decoded(both.substr(split + 1));
        address.secrets.push_back(both + '@');
        if (address.password.size() >= least_secret) {
            address.secrets.push_back(both.substr(split + 1));
            address.secrets.push_back(address.password);
        }
    }
    if (address.kind == AddressKind::file || address.kind == AddressKind::device)
        address.path = decoded(address.uri.substr(colon + 3));
    constexpr std::string_view here = "localhost";  // given: RFC 8089
    if (address.kind == AddressKind::file && address.path.starts_with(std::string(here) + '/'))
        address.path.erase(0, here.size());
    if (address.kind == AddressKind::rtsp || address.kind == AddressKind::http) {
        const std::string_view rest = std::string_view(address.uri).substr(colon + 3);
        if (rest.empty() || std::string_view("/?#:").find(rest.front()) != std::string_view::npos)
            return Error{ErrorCode::invalid_argument, "property 'uri' is '" + address.shown +
                                                          "', which names no host; write " +
                                                          address.scheme + "://HOST/PATH"};
    }
    return address;
}

}  // namespace vartml::gst
