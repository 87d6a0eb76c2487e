// SPDX-License-Identifier: Apache-2.0
// Answers GET of one path over HTTP, a client after the other, on a thread of its own.
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
    MetricsServer() = default;
    void run();
    void answer(GSocket* client);

    Socket socket_;
    std::unique_ptr<GCancellable, Unref> end_{g_cancellable_new()};
    std::function<std::string()> text_;
    std::thread thread_;
};

}  // namespace vartml::gst
