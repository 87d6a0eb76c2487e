// SPDX-License-Identifier: Apache-2.0
// Shows a player in browsers: the page, its pictures, its figures, and what can be changed.
//   GET  /         the page; with a token in the query, the browser keeps it as a cookie
//   GET  /video    multipart/x-mixed-replace, a JPEG per part; a slow browser misses pictures
//   GET  /events   text/event-stream, Player::status() four times a second
//   GET  /status   the same once
//   GET  /address  where other devices open the page, as text; empty where they cannot
//   GET  /address.svg    the same as a QR code
//   POST /model?index=N, POST /threshold?score=S    204, or 400 with one sentence; S may be "model"
#pragma once
#include <libsoup/soup.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "pipelines/apps/live/player.h"

namespace live {

struct SoupServerUnref {
    void operator()(SoupServer* server) const { g_object_unref(server); }
};

// Made, called and ended on the main thread, which runs the main loop.
class Server {
public:
    // Errors: invalid_argument (the address), io (the port).
    static vartml::Result<std::unique_ptr<Server>> create(const Options& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Requests that come before are told to wait.
    void serve(Player& player) { player_ = &player; }
    // Sends the newest picture to the browsers that wait for one. Any thread.
    void picture();
    // "http://127.0.0.1:8090/" for a browser of this machine, with the token where one is needed.
    std::string url() const { return url_of(local_); }
    // The same for other devices of the network, the likeliest; "" where only this machine can.
    std::string address() const { return remote_.empty() ? "" : url_of(remote_); }

private:
    // A browser that looks at the pictures.
    struct Viewer {
        Server* server;
        SoupServerMessage* message;
        uint64_t seen = 0;
        bool waits = false;  // all that it was given is on its way
    };

    explicit Server(const Options& options);
    vartml::Result<void> listen(const Options& options);
    static void handle(SoupServer*, SoupServerMessage* message, const char* path, GHashTable* query,
                       gpointer self);
    bool allowed(SoupServerMessage* message, const char* path, GHashTable* query) const;
    std::string cookie() const;
    std::string url_of(const std::string& host) const;
    void page(SoupServerMessage* message);
    void video(SoupServerMessage* message);
    void events(SoupServerMessage* message);
    void change(SoupServerMessage* message, const char* path, GHashTable* query);
    void feed(Viewer& viewer);
    void feed_waiting();
    void tell_events();

    std::string host_;            // as in a URL
    std::string local_, remote_;  // the same, as this machine and as others reach it
    bool loopback_ = true;
    std::string token_;  // "" = none
    std::unique_ptr<SoupServer, SoupServerUnref> server_;
    Player* player_ = nullptr;
    std::vector<std::unique_ptr<Viewer>> viewers_;
    std::set<SoupServerMessage*> listeners_;  // of events, that have got all they were given
    guint ticks_ = 0;
    std::shared_ptr<std::atomic<Server*>> self_;  // of callbacks that may come late
};

}  // namespace live
