// SPDX-License-Identifier: Apache-2.0
// What sinks over a descriptor share: whole lines, written as far as the descriptor takes them.
#pragma once
#include <string>

#include <vartml/publish.h>

#include "lib/common/file.h"

namespace vartml::publish {

// How a line leaves through a descriptor.
enum class WriteMode {
    non_blocking,  // the descriptor is ours and O_NONBLOCK
    polled,        // it may block: only so much is written as a pipe that polls writable takes
    blocking       // a regular file, which is waited for
};

class StreamSink : public PublishSink {
public:
    explicit StreamSink(std::string name) : name_(std::move(name)) {}
    ~StreamSink() override { leave(); }
    bool connected() const override { return fd() >= 0; }
    Result<bool> send(const PublishLine& line) override;
    Result<void> work() override;
    Wait wait() const override;
    size_t take_delivered() override;
    void disconnect() override;
    bool disk_full() const override { return disk_full_; }

protected:
    virtual int fd() const { return fd_.get(); }
    virtual WriteMode mode() const = 0;
    const std::string& name() const { return name_; }
    Fd fd_;

private:
    Result<void> write_rest();
    bool enter();  // false: another sink is in the middle of a line
    void leave();
    Error write_error(int error_number);

    std::string name_;    // for messages
    std::string rest_;    // of a line that the descriptor has in part
    size_t written_ = 0;  // of it
    size_t delivered_ = 0;
    bool disk_full_ = false;
};

}  // namespace vartml::publish
