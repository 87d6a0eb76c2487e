// SPDX-License-Identifier: Apache-2.0
// The shared state of a fleet: key-value buckets of NATS JetStream.
#pragma once
#include <nats/nats.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "gst/fleet/watch.h"

namespace vartml::fleet {

struct StoreSettings {
    std::string servers = "nats://127.0.0.1:4222";  // comma between them
    std::string credentials_file, ca_file, name;
    int64_t wait_ms = 1000;  // of a call
    int replicas = 1;        // of new buckets
};

struct Entry {
    uint64_t revision = 0;
    std::string value;
};

/// Of a call of libnats: what was done, and why not.
Error error_of(natsStatus status, const std::string& doing);

/// One bucket. All functions may be called by one thread at a time.
class Bucket {
public:
    Bucket(kvStore* store, int64_t wait_ms) : store_(store), wait_ms_(wait_ms) {}
    Result<std::map<std::string, Entry>> all(bool values) const;
    Result<std::optional<Entry>> get(const std::string& key) const;
    Result<uint64_t> put(const std::string& key, const std::string& value) const;
    /// Fails with `busy` where the key is there.
    Result<uint64_t> create(const std::string& key, const std::string& value) const;
    /// Fails with `busy` where the key's revision is another.
    Result<uint64_t> update(const std::string& key, const std::string& value,
                            uint64_t revision) const;
    Result<void> remove(const std::string& key) const;

private:
    struct Free {
        void operator()(kvStore* store) const { kvStore_Destroy(store); }
    };
    std::unique_ptr<kvStore, Free> store_;
    int64_t wait_ms_;
};

class Store {
public:
    /// Connects, and goes on to connect when the connection is lost.
    static Result<std::unique_ptr<Store>> open(const StoreSettings& settings);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// Makes it where it is not there. `ttl_ms`: the broker forgets an entry that was not written
    /// for so long, by its time of day; 0: entries stay. Kept in files: a broker that is restarted
    /// has them. Fails with invalid_argument where it is there with another `ttl_ms`, and warns
    /// where fewer servers keep it than were asked for.
    Result<std::unique_ptr<Bucket>> bucket(const std::string& name, int64_t ttl_ms);
    /// nullptr where it is not there.
    Result<std::unique_ptr<Bucket>> find_bucket(const std::string& name) const;
    /// It must have been made.
    Result<std::unique_ptr<Watch>> watch(const std::string& bucket) const;
    bool connected() const;
    /// How often the connection was lost and made anew.
    uint64_t reconnects() const;
    /// Messages to a subject, which may end in `>`, from now on.
    Result<void> listen(const std::string& subject);
    struct Question {
        std::string subject, reply;
    };
    /// The next that came, without waiting.
    std::optional<Question> heard() const;
    void answer(const std::string& reply, const std::string& text) const;
    /// The answer of who listens. Fails with `timeout` where nobody answers.
    Result<std::string> ask(const std::string& subject, int64_t wait_ms) const;
    /// The stream behind a bucket of objects; makes it where it is not there.
    Result<void> object_bucket(const std::string& name);
    /// The newest message of a subject in a bucket of objects; nothing where there is none.
    Result<std::optional<std::string>> last_of(const std::string& bucket,
                                               const std::string& subject) const;
    /// Until it is stored. `alone`: in place of all earlier ones of the subject.
    Result<void> publish(const std::string& subject, std::string_view bytes,
                         bool alone = false) const;
    /// So many messages of a subject, in order.
    Result<void> read_all(const std::string& bucket, const std::string& subject, size_t count,
                          const std::function<void(std::string_view)>& take) const;
    /// Every broker's machine says that no broker listens: nobody else reaches one either.
    bool all_refuse() const;

private:
    explicit Store(StoreSettings settings) : settings_(std::move(settings)) {}
    const StoreSettings settings_;
    natsConnection* connection_ = nullptr;
    jsCtx* stream_ = nullptr;
    natsSubscription* questions_ = nullptr;
};

/// A key of a bucket: letters, digits, - _ = . and /, no dot at an end.
bool is_key(const std::string& text);

}  // namespace vartml::fleet
