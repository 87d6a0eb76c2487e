// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/store.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <vartml/log.h>

#include "gst/support/address.h"

namespace vartml::fleet {
namespace {

// The server says "wrong last sequence"; libnats has a status for it where it knows the code.
bool is_wrong_revision(natsStatus status) {
    natsStatus last = NATS_OK;
    const char* const text = nats_GetLastError(&last);
    return status == last && text &&
           std::string_view(text).find("wrong last sequence") != std::string_view::npos;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        if (end > at) parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

// How a bucket was made.
struct Making {
    int64_t ttl_ms = 0;  // of its entries
    int replicas = 1;
};
Result<Making> making_of(kvStore* store) {
    kvStatus* state = nullptr;
    const natsStatus status = kvStore_Status(&state, store);
    if (status != NATS_OK) return error_of(status, std::string("bucket ") + kvStore_Bucket(store));
    const Making making = {kvStatus_TTL(state) / 1000000, int(kvStatus_Replicas(state))};
    kvStatus_Destroy(state);
    return making;
}

std::string seconds(int64_t ms) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", static_cast<double>(ms) / 1000);
    return text;
}

// Nobody listens there, and the machine says so.
bool refuses(const std::string& server) {
    std::string host =
        server.substr(server.find("://") == server.npos ? 0 : server.find("://") + 3);
    if (const size_t login = host.rfind('@'); login != host.npos) host.erase(0, login + 1);
    std::string port = "4222";
    if (const size_t colon = host.rfind(':'); colon != host.npos && !host.ends_with(']')) {
        port = host.substr(colon + 1);
        host.erase(colon);
    }
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
    bool all = found != nullptr;
    for (const addrinfo* a = found; a && all; a = a->ai_next) {
        const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int code = ::connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
        if (code == EINPROGRESS) {
            pollfd ready{fd, POLLOUT, 0};
            socklen_t size = sizeof code;
            if (::poll(&ready, 1, 200) == 1) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
        }
        all = code == ECONNREFUSED;
        if (fd >= 0) ::close(fd);
    }
    if (found) ::freeaddrinfo(found);
    return all;
}

}  // namespace

Error error_of(natsStatus status, const std::string& doing) {
    const bool silent = status == NATS_TIMEOUT || status == NATS_CONNECTION_CLOSED ||
                        status == NATS_CONNECTION_DISCONNECTED || status == NATS_NO_SERVER ||
                        status == NATS_NO_RESPONDERS || status == NATS_IO_ERROR;
    natsStatus last = NATS_OK;
    const char* const said = nats_GetLastError(&last);  // such as the server's own words
    const bool of_this = !silent && last == status && said && *said;
    return {silent ? ErrorCode::timeout : ErrorCode::io,
            doing + ": " + (of_this ? said : natsStatus_GetText(status)) +
                (silent ? "; see that a NATS server with JetStream is reachable (--nats)" : "")};
}

bool is_key(const std::string& text) {
    return !text.empty() && text.front() != '.' && text.back() != '.' &&
           std::ranges::all_of(text, [](unsigned char c) {
               return std::isalnum(c) || c == '-' || c == '_' || c == '=' || c == '.' || c == '/';
           });
}

Result<std::map<std::string, Entry>> Bucket::all(bool values) const {
    kvWatchOptions options;
    kvWatchOptions_Init(&options);
    options.IgnoreDeletes = true;
    options.MetaOnly = !values;
    kvWatcher* watcher = nullptr;
    natsStatus status = kvStore_WatchAll(&watcher, store_.get(), &options);
    std::map<std::string, Entry> found;
    while (status == NATS_OK) {
        kvEntry* entry = nullptr;
        status = kvWatcher_Next(&entry, watcher, wait_ms_);
        if (status != NATS_OK || !entry) break;  // no entry: that was all
        const char* const value = values ? kvEntry_ValueString(entry) : "";
        found[kvEntry_Key(entry)] = {kvEntry_Revision(entry), value ? value : ""};
        kvEntry_Destroy(entry);
    }
    kvWatcher_Destroy(watcher);
    if (status != NATS_OK)
        return error_of(status, std::string("bucket ") + kvStore_Bucket(store_.get()));
    return found;
}

Result<std::optional<Entry>> Bucket::get(const std::string& key) const {
    kvEntry* entry = nullptr;
    const natsStatus status = kvStore_Get(&entry, store_.get(), key.c_str());
    if (status == NATS_NOT_FOUND) return std::optional<Entry>();
    if (status != NATS_OK) return error_of(status, key);
    const char* const value = kvEntry_ValueString(entry);
    std::optional<Entry> found(Entry{kvEntry_Revision(entry), value ? value : ""});
    kvEntry_Destroy(entry);
    return found;
}

Result<uint64_t> Bucket::put(const std::string& key, const std::string& value) const {
    uint64_t revision = 0;
    const natsStatus status =
        kvStore_PutString(&revision, store_.get(), key.c_str(), value.c_str());
    if (status != NATS_OK) return error_of(status, key);
    return revision;
}

Result<uint64_t> Bucket::create(const std::string& key, const std::string& value) const {
    uint64_t revision = 0;
    const natsStatus status =
        kvStore_CreateString(&revision, store_.get(), key.c_str(), value.c_str());
    if (status == NATS_OK) return revision;
    if (is_wrong_revision(status)) return Error{ErrorCode::busy, key + " is taken"};
    return error_of(status, key);
}

Result<uint64_t> Bucket::update(const std::string& key, const std::string& value,
                                uint64_t revision) const {
    uint64_t next = 0;
    const natsStatus status =
        kvStore_UpdateString(&next, store_.get(), key.c_str(), value.c_str(), revision);
    if (status == NATS_OK) return next;
    if (is_wrong_revision(status)) return Error{ErrorCode::busy, key + " has another revision"};
    return error_of(status, key);
}

Result<void> Bucket::remove(const std::string& key) const {
    const natsStatus status = kvStore_Delete(store_.get(), key.c_str());
    if (status != NATS_OK) return error_of(status, key);
    return {};
}

Result<std::unique_ptr<Store>> Store::open(const StoreSettings& settings) {
    std::unique_ptr<Store> self(new Store(settings));
    std::vector<std::string> servers = split(settings.servers);
    std::vector<const char*> names;
    for (const std::string& server : servers) names.push_back(server.c_str());
    natsOptions* options = nullptr;
    natsStatus status = natsOptions_Create(&options);
    if (status == NATS_OK)
        status = natsOptions_SetServers(options, names.data(), int(names.size()));
    if (status == NATS_OK) status = natsOptions_SetName(options, settings.name.c_str());
    if (status == NATS_OK) status = natsOptions_SetTimeout(options, settings.wait_ms);
    if (status == NATS_OK) status = natsOptions_SetMaxReconnect(options, -1);
    if (status == NATS_OK) status = natsOptions_SetReconnectWait(options, 100);
    if (status == NATS_OK) status = natsOptions_SetPingInterval(options, 2000);
    // The library mends what it tells here, and writes it to standard error else.
    if (status == NATS_OK)
        status = natsOptions_SetErrorHandler(
            options, [](natsConnection*, natsSubscription*, natsStatus, void*) {}, nullptr);
    if (status == NATS_OK && !settings.credentials_file.empty())
        status = natsOptions_SetUserCredentialsFromFiles(options, settings.credentials_file.c_str(),
                                                         nullptr);
    if (status == NATS_OK && !settings.ca_file.empty()) {
        status = natsOptions_SetSecure(options, true);
        if (status == NATS_OK)
            status = natsOptions_LoadCATrustedCertificates(options, settings.ca_file.c_str());
    }
    if (status == NATS_OK) status = natsConnection_Connect(&self->connection_, options);
    natsOptions_Destroy(options);
    jsOptions js;
    jsOptions_Init(&js);
    js.Wait = settings.wait_ms;
    if (status == NATS_OK)
        status = natsConnection_JetStream(&self->stream_, self->connection_, &js);
    if (status != NATS_OK) {
        std::string shown;
        for (const std::string& server : servers)
            shown += (shown.empty() ? "" : ",") + gst::without_login(server);
        return error_of(status, shown);
    }
    return self;
}

Store::~Store() {
    natsSubscription_Destroy(questions_);
    jsCtx_Destroy(stream_);
    natsConnection_Destroy(connection_);
}

Result<std::unique_ptr<Bucket>> Store::bucket(const std::string& name, int64_t ttl_ms) {
    kvStore* store = nullptr;
    natsStatus status = js_KeyValue(&store, stream_, name.c_str());
    if (status != NATS_OK) {
        kvConfig config;
        kvConfig_Init(&config);
        config.Bucket = name.c_str();
        config.History = 1;
        config.TTL = ttl_ms * 1000000;
        config.StorageType = js_FileStorage;
        config.Replicas = settings_.replicas;
        status = js_CreateKeyValue(&store, stream_, &config);
        if (status != NATS_OK) {
            const Error why = error_of(status, "bucket " + name);
            // Another worker may have made it meanwhile.
            status = js_KeyValue(&store, stream_, name.c_str());
            if (status != NATS_OK) return why;
        }
    }
    auto bucket = std::make_unique<Bucket>(store, settings_.wait_ms);
    const auto made = making_of(store);
    if (!made) return made.error();
    if (made->replicas < settings_.replicas)
        log(LogLevel::warning, "fleet",
            "bucket " + name + " is kept by " + std::to_string(made->replicas) + " of the " +
                std::to_string(settings_.replicas) +
                " servers that --replicas asks for, as it was made; nats stream edit KV_" + name +
                " --replicas " + std::to_string(settings_.replicas) + " has it kept by as many",
            true);
    if (made->ttl_ms && !ttl_ms)
        return Error{ErrorCode::invalid_argument,
                     "bucket " + name + " was made to forget its entries after " +
                         seconds(made->ttl_ms) +
                         " s, and they must stay; stop all workers and remove it (nats kv del " +
                         name + ")"};
    if (made->ttl_ms != ttl_ms) {
        return Error{ErrorCode::invalid_argument,
                     "bucket " + name + " was made with --ttl " + seconds(made->ttl_ms) +
                         ", and this worker has --ttl " + seconds(ttl_ms) +
                         ": two would have a camera; give all workers the same, or stop them and "
                         "remove the bucket (nats kv del " +
                         name + ")"};
    }
    return bucket;
}

Result<std::unique_ptr<Bucket>> Store::find_bucket(const std::string& name) const {
    kvStore* store = nullptr;
    const natsStatus status = js_KeyValue(&store, stream_, name.c_str());
    if (status == NATS_NOT_FOUND) return std::unique_ptr<Bucket>();
    if (status != NATS_OK) return error_of(status, "bucket " + name);
    return std::make_unique<Bucket>(store, settings_.wait_ms);
}

Result<std::unique_ptr<Watch>> Store::watch(const std::string& bucket) const {
    return Watch::open(stream_, bucket);
}

bool Store::connected() const {
    return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
}

uint64_t Store::reconnects() const {
    natsStatistics* statistics = nullptr;
    uint64_t count = 0;
    if (natsStatistics_Create(&statistics) == NATS_OK &&
        natsConnection_GetStats(connection_, statistics) == NATS_OK)
        natsStatistics_GetCounts(statistics, nullptr, nullptr, nullptr, nullptr, &count);
    natsStatistics_Destroy(statistics);
    return count;
}

Result<void> Store::listen(const std::string& subject) {
    const natsStatus status =
        natsConnection_SubscribeSync(&questions_, connection_, subject.c_str());
    if (status != NATS_OK) return error_of(status, subject);
    return {};
}

std::optional<Store::Question> Store::heard() const {
    natsMsg* message = nullptr;
    if (!questions_ || natsSubscription_NextMsg(&message, questions_, 0) != NATS_OK)
        return std::nullopt;
    const char* const reply = natsMsg_GetReply(message);
    Question question{natsMsg_GetSubject(message), reply ? reply : ""};
    natsMsg_Destroy(message);
    return question;
}

void Store::answer(const std::string& reply, const std::string& text) const {
    if (!reply.empty()) natsConnection_PublishString(connection_, reply.c_str(), text.c_str());
}

Result<std::string> Store::ask(const std::string& subject, int64_t wait_ms) const {
    natsMsg* message = nullptr;
    const natsStatus status =
        natsConnection_RequestString(&message, connection_, subject.c_str(), "", wait_ms);
    if (status != NATS_OK) return error_of(status, subject);
    std::string text(natsMsg_GetData(message), size_t(natsMsg_GetDataLength(message)));
    natsMsg_Destroy(message);
    return text;
}

Result<void> Store::object_bucket(const std::string& name) {
    const std::string stream = "OBJ_" + name, parts = "$O." + name + ".C.>",
                      names = "$O." + name + ".M.>";
    jsStreamInfo* info = nullptr;
    natsStatus status = js_GetStreamInfo(&info, stream_, stream.c_str(), nullptr, nullptr);
    jsStreamInfo_Destroy(info);
    if (status == NATS_OK) return {};
    const char* subjects[] = {parts.c_str(), names.c_str()};
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream.c_str();
    config.Subjects = subjects;
    config.SubjectsLen = 2;
    config.Storage = js_FileStorage;
    config.Replicas = settings_.replicas;
    config.Discard = js_DiscardNew;
    config.AllowRollup = true;
    config.AllowDirect = true;
    status = js_AddStream(nullptr, stream_, &config, nullptr, nullptr);
    if (status != NATS_OK) return error_of(status, "bucket " + name);
    return {};
}

Result<std::optional<std::string>> Store::last_of(const std::string& bucket,
                                                  const std::string& subject) const {
    natsMsg* message = nullptr;
    jsErrCode why{};
    const natsStatus status =
        js_GetLastMsg(&message, stream_, ("OBJ_" + bucket).c_str(), subject.c_str(), nullptr, &why);
    if (status == NATS_NOT_FOUND || why == JSStreamNotFoundErr) return std::optional<std::string>();
    if (status != NATS_OK) return error_of(status, "bucket " + bucket);
    std::optional<std::string> text(
        std::string(natsMsg_GetData(message), size_t(natsMsg_GetDataLength(message))));
    natsMsg_Destroy(message);
    return text;
}

Result<void> Store::publish(const std::string& subject, std::string_view bytes, bool alone) const {
    natsMsg* message = nullptr;
    natsStatus status =
        natsMsg_Create(&message, subject.c_str(), nullptr, bytes.data(), int(bytes.size()));
    if (status == NATS_OK && alone) status = natsMsgHeader_Set(message, "Nats-Rollup", "sub");
    if (status == NATS_OK) status = js_PublishMsg(nullptr, stream_, message, nullptr, nullptr);
    natsMsg_Destroy(message);
    if (status != NATS_OK) return error_of(status, subject);
    return {};
}

Result<void> Store::read_all(const std::string& bucket, const std::string& subject, size_t count,
                             const std::function<void(std::string_view)>& take) const {
    const std::string stream = "OBJ_" + bucket;
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Ordered = true;
    options.Stream = stream.c_str();
    natsSubscription* parts = nullptr;
    natsStatus status =
        js_SubscribeSync(&parts, stream_, subject.c_str(), nullptr, &options, nullptr);
    for (size_t n = 0; status == NATS_OK && n < count; ++n) {
        natsMsg* message = nullptr;
        status = natsSubscription_NextMsg(&message, parts, settings_.wait_ms);
        if (status != NATS_OK) break;
        take({natsMsg_GetData(message), size_t(natsMsg_GetDataLength(message))});
        natsMsg_Destroy(message);
    }
    natsSubscription_Destroy(parts);
    if (status != NATS_OK) return error_of(status, "bucket " + bucket);
    return {};
}

// Those of a cluster that the broker told of count, too: others may see them.
bool Store::all_refuse() const {
    auto servers = split(settings_.servers);
    char** known = nullptr;
    int count = 0;
    if (natsConnection_GetServers(connection_, &known, &count) != NATS_OK) return false;
    for (int i = 0; i < count; ++i) {
        servers.emplace_back(known[i]);
        std::free(known[i]);
    }
    std::free(known);
    return std::ranges::all_of(servers, refuses);
}

}  // namespace vartml::fleet
