// SPDX-License-Identifier: Apache-2.0
// Answers GET of one path over HTTP, all clients on a thread of its own.
#pragma once
#include <gio/gio.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <vartml/result.h>

namespace vartml::gst {

class MetricsServer {
public:
    // `text` is called on the server's thread, with no lock held. Errors: invalid_argument for what
    // is no numeric address, busy and io where nothing can listen there.
    static Result<std::unique_ptr<MetricsServer>> start(const std::string& address, unsigned port,
                                                        std::function<std::string()> text);
    // Ends the thread.
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

private:
    struct Unref {
        void operator()(gpointer object) const { g_object_unref(object); }
    };
    using Socket = std::unique_ptr<GSocket, Unref>;
    struct Client;
    MetricsServer() = default;
    void run();
    // False when it has ended, or has failed.
    bool serve(Client& client) const;
    std::string reply_to(const std::string& request) const;

    Socket socket_;
    std::unique_ptr<GCancellable, Unref> end_{g_cancellable_new()};
    GPollFD ends_{-1, 0, 0};  // of end_
    std::function<std::string()> text_;
    std::thread thread_;
};

}  // namespace vartml::gst
