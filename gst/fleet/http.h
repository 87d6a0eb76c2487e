// SPDX-License-Identifier: Apache-2.0
// A server for a few short answers over HTTP, on a thread of its own.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <vartml/result.h>

namespace vartml::fleet {

struct HttpRequest {
    std::string path, query;  // as they were sent, percent-encoded
    std::string host;         // of the header, with its port
};

struct HttpResponse {
    const char* status = "200 OK";
    const char* type = "text/plain; charset=utf-8";
    std::string body;
};

/// Answers GET, one request after the other.
class HttpServer {
public:
    using Handler = std::function<HttpResponse(const HttpRequest&)>;
    /// `address`: HOST:PORT of an address of this machine; `option` is named in errors. The handler
    /// is called by the server's thread.
    static Result<std::unique_ptr<HttpServer>> open(const std::string& option,
                                                    const std::string& address, Handler handler);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

private:
    HttpServer() = default;
    void serve();
    void answer(int fd) const;

    Handler handler_;
    int listen_ = -1, stop_[2] = {-1, -1};
    std::thread thread_;
};

/// `a%20b` as it was meant.
std::string percent_decoded(const std::string& text);

}  // namespace vartml::fleet
