// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/broker.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include <vartml/log.h>

#include "lib/base/text.h"

namespace vartml {
namespace publish {

Error broker_error(const BrokerOptions& options, const std::string& text, ErrorCode code) {
    const bool list = options.address.find(',') != std::string::npos;
    return {code, "broker " + options.address + (list ? "" : ":" + std::to_string(options.port)) +
                      ": " + text};
}

void log_lost(const BrokerOptions& options, const PublishLine& line, const std::string& topic,
              const std::string& why) {
    log(LogLevel::warning, "",
        broker_error(options, "a record of " + std::to_string(line.text.size()) +
                                  " bytes for topic '" + topic +
                                  "' cannot be sent and is lost: " + why)
            .message);
}

std::vector<std::string> servers_of(const std::string& address) {
    std::vector<std::string> servers;
    for (size_t at = 0; at <= address.size();) {
        const size_t end = std::min(address.find(',', at), address.size());
        std::string server = address.substr(at, end - at);
        at = end + 1;
        std::erase(server, ' ');
        if (!server.empty()) servers.push_back(std::move(server));
    }
    return servers;
}

std::string_view payload_of(const PublishLine& line) {
    return std::string_view(line.text).substr(0, line.text.size() - 1);
}

}  // namespace publish

namespace {

// given: MQTT 3.1.1, 1.5.3 and 4.7: wildcards, U+0000; control characters "should not" be there
bool is_of_mqtt(unsigned char c) {
    return c >= 0x20 && c != 0x7f && c != '+' && c != '#';
}
bool is_of_redis(unsigned char) {
    return true;
}
// given: Kafka's TopicValidation
bool is_of_kafka(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}
// Of a word of a subject; what is put in for a name is one word. given: NATS's documentation of
// subjects: no white space, wildcards or empty words
bool is_of_nats(unsigned char c) {
    return c > 0x20 && c != 0x7f && c != '*' && c != '>' && c != '.' && c != '/';
}

struct Row {
    const char* title;
    const char* method;   // of vartmlpublish, and the build's option
    const char* library;  // that it needs
    unsigned port;
    bool tls;
    bool lone_password;  // may be sent without a user's name
    bool lone_username;  // may be sent without a password
    bool utf8;           // in topics
    bool words;          // topics are words with dots between them; a slash of the pattern is one
    size_t longest_topic;
    bool (*allows)(unsigned char);
    std::unique_ptr<PublishSink> (*make)(const BrokerOptions&);  // nullptr: not in this build
};
#if VARTML_MQTT
constexpr auto make_mqtt = publish::make_mqtt_sink;
#else
constexpr std::nullptr_t make_mqtt = nullptr;
#endif
#if VARTML_REDIS
constexpr auto make_redis = publish::make_redis_sink;
#else
constexpr std::nullptr_t make_redis = nullptr;
#endif
#if VARTML_KAFKA
constexpr auto make_kafka = publish::make_kafka_sink;
#else
constexpr std::nullptr_t make_kafka = nullptr;
#endif
#if VARTML_NATS
constexpr auto make_nats = publish::make_nats_sink;
#else
constexpr std::nullptr_t make_nats = nullptr;
#endif
// By BrokerKind.
constexpr Row rows[] = {
    {"MQTT", "mqtt", "libmosquitto", 1883, true, false, true, true, false, 65535, is_of_mqtt,
     make_mqtt},
    {"Redis", "redis", "hiredis", 6379, false, true, false, false, false, 65535, is_of_redis,
     make_redis},
    {"Kafka", "kafka", "librdkafka", 9092, true, false, false, true, false, 249, is_of_kafka,
     make_kafka},
    // The longest is ours: a line of its protocol has 4096 bytes, and two subjects.
    {"NATS", "nats", "libnats", 4222, true, false, true, true, true, 1024, is_of_nats, make_nats},
};
const Row& row_of(BrokerKind kind) {
    return rows[static_cast<size_t>(kind)];
}

void append_clean(std::string& topic, const std::string& text, const Row& row) {
    const bool valid = !row.utf8 || is_utf8(text);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        topic += row.allows(byte) && (valid || byte < 0x80) ? c : '_';
    }
}

// What the pattern itself says.
void append_literal(std::string& topic, std::string text, const Row& row) {
    for (size_t at = 0; row.words && at < text.size();) {
        const size_t end = std::min(text.find_first_of("/.", at), text.size());
        append_clean(topic, text.substr(at, end - at), row);
        if (end < text.size()) topic += '.';
        at = end + 1;
    }
    if (!row.words) append_clean(topic, text, row);
}

// A word that is empty becomes `_`.
void fill_words(std::string& topic) {
    for (size_t at = 0; at <= topic.size(); ++at)
        if ((at == 0 || topic[at - 1] == '.') && (at == topic.size() || topic[at] == '.'))
            topic.insert(at, 1, '_');
}

using Option = std::string BrokerOptions::*;
using Fault = std::optional<BrokerFault>;

Fault fault(Option option, std::string message, ErrorCode code = ErrorCode::invalid_argument) {
    return BrokerFault{{code, std::move(message)}, option};
}

// That a file of TLS is one; what is in it shows when a connection is made.
Fault check_pem(const BrokerOptions& options, Option option) {
    const std::string& path = options.*option;
    if (path.empty()) return {};
    errno = 0;
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open()) {
        return fault(option, path + ": cannot be opened: " + std::strerror(errno),
                     errno == ENOENT ? ErrorCode::not_found : ErrorCode::io);
    }
    if (text.find("-----BEGIN ") == std::string::npos) {
        return fault(option, path +
                                 ": has no PEM block, expected a certificate or key that begins "
                                 "with -----BEGIN");
    }
    return {};
}

Fault check_tls(const BrokerOptions& options, const Row& row) {
    const std::string &ca = options.tls_ca_file, &cert = options.tls_cert_file,
                      &key = options.tls_key_file;
    for (const Option option : {&BrokerOptions::tls_ca_file, &BrokerOptions::tls_cert_file,
                                &BrokerOptions::tls_key_file}) {
        if (!(options.*option).empty() && !row.tls) {
            return fault(option, options.*option +
                                     ": is a file for TLS, which method=" + row.method +
                                     " does not speak; set none, and reach the server through a "
                                     "tunnel");
        }
        if (auto found = check_pem(options, option)) return found;
    }
    if (ca.empty() && !cert.empty()) {
        return fault(&BrokerOptions::tls_cert_file,
                     cert + ": is a certificate for TLS, which needs the file of a CA too");
    }
    if (cert.empty() && !key.empty()) {
        return fault(&BrokerOptions::tls_key_file,
                     key + ": is a key without certificate; name both files");
    }
    if (key.empty() && !cert.empty()) {
        return fault(&BrokerOptions::tls_cert_file,
                     cert + ": is a certificate without key; name both files");
    }
    return {};
}

// Whether it is HOST, or where ports may be in it HOST:PORT or [IPv6]:PORT.
bool is_server(std::string_view text, bool ports) {
    const size_t colon = text.rfind(':');
    const bool bracket = text.starts_with('[');
    const bool port =
        ports && colon != text.npos && (bracket ? text[colon - 1] == ']' : text.find(':') == colon);
    if (port) {
        const std::string_view digits = text.substr(colon + 1);
        unsigned number = 0;
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error != std::errc() || end != digits.data() + digits.size() || number < 1 ||
            number > 65535)
            return false;
        text = text.substr(0, colon);
    }
    if (bracket) {
        if (!ports || text.size() < 3 || !text.ends_with(']')) return false;
        text = text.substr(1, text.size() - 2);
    }
    const bool literal = std::ranges::count(text, ':') > 1;  // IPv6
    return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
        return c > 0x20 && c != 0x7f && !std::strchr("/@[],", c) && (c != ':' || literal);
    });
}

// A login in an address would be shown with it, so it is not repeated.
Fault check_address(const BrokerOptions& options, const Row& row) {
    if (!row.words) {
        if (is_server(options.address, false)) return {};
        return fault(&BrokerOptions::address,
                     "the address is not the name or number of a host; leave out scheme, port and "
                     "login, which have properties of their own");
    }
    const std::vector<std::string> servers = publish::servers_of(options.address);
    if (!servers.empty() &&
        std::ranges::all_of(servers, [](const std::string& s) { return is_server(s, true); }))
        return {};
    return fault(&BrokerOptions::address,
                 "the address is not made of HOST or HOST:PORT with commas between them; leave out "
                 "nats:// and the login, which username and password or a file of credentials "
                 "tell");
}

Fault check_login(const BrokerOptions& options, const Row& row) {
    const bool username = !options.username.empty(), password = !options.password.empty();
    if (password && !username && !row.lone_password) {
        return fault(&BrokerOptions::username,
                     std::string("a password is set without username, which ") + row.title +
                         " does not send; set username too, or no password");
    }
    if (username && !password && !row.lone_username) {
        return fault(&BrokerOptions::password,
                     std::string("a username is set without password, which ") + row.title +
                         " does not send; set password too, or no username");
    }
    return {};
}

// A login of NATS with its key. What is in it is not repeated.
Fault check_credentials(const BrokerOptions& options, const Row& row) {
    const std::string& path = options.credentials_file;
    if (path.empty()) return {};
    if (!row.words)
        return fault(&BrokerOptions::credentials_file,
                     path + ": is a file of credentials, which method=" + row.method +
                         " does not have; set username and password instead");
    return check_pem(options, &BrokerOptions::credentials_file);
}

}  // namespace

std::optional<BrokerFault> check_broker(BrokerKind kind, const BrokerOptions& options) {
    const Row& row = row_of(kind);
    for (const auto check : {check_login, check_tls, check_address, check_credentials})
        if (auto found = check(options, row)) return found;
    return {};
}

Result<std::unique_ptr<PublishSink>> make_broker_sink(BrokerKind kind,
                                                      const BrokerOptions& options) {
    const Row& row = row_of(kind);
    if (!row.make) {
        return Error{ErrorCode::unsupported, std::string("this build has no ") + row.title +
                                                 "; build with -D" + row.method +
                                                 "=enabled, which needs " + row.library +
                                                 ", or choose another method"};
    }
    if (auto found = check_broker(kind, options)) return found->error;
    BrokerOptions complete = options;
    if (!complete.port) complete.port = row.port;
    auto sink = row.make(complete);
    sink->backoff = publish::broker_backoff;
    return sink;
}

std::string broker_topic(BrokerKind kind, const std::string& pattern, const std::string& stream,
                         const std::string& model) {
    const Row& row = row_of(kind);
    std::string topic;
    for (size_t at = 0; at < pattern.size();) {
        const std::string_view rest = std::string_view(pattern).substr(at);
        if (rest.starts_with("{stream}")) {
            append_clean(topic, stream, row);
            at += 8;
        } else if (rest.starts_with("{model}")) {
            append_clean(topic, model, row);
            at += 7;
        } else {
            const size_t end = std::min(pattern.find('{', at + 1), pattern.size());
            append_literal(topic, pattern.substr(at, end - at), row);
            at = end;
        }
    }
    if (row.words) fill_words(topic);
    if (topic.size() > row.longest_topic) {
        size_t end = row.longest_topic;  // not in the middle of a character
        while (end > 0 && (static_cast<unsigned char>(topic[end]) & 0xc0) == 0x80) --end;
        topic.resize(end);
    }
    return topic.empty() ? "_" : topic;
}

}  // namespace vartml
