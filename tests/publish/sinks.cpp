// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "lib/base/file.h"
#include "tests/publish/lines.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml;
using namespace vartml::test;

constexpr unsigned forever = 3600000;

// Reads whole lines from a pipe or socket, waiting for them.
class LineReader {
public:
    explicit LineReader(Fd fd, bool waits_for_writer = false)
        : fd_(std::move(fd)), waits_for_writer_(waits_for_writer) {}
    std::vector<std::string> lines(size_t count) {
        std::vector<std::string> lines = split();
        while (lines.size() < count) {
            char chunk[65536];
            const ssize_t n = ::read(fd_.get(), chunk, sizeof chunk);
            if (n < 0 && errno == EAGAIN) {
                pollfd entry{fd_.get(), POLLIN, 0};
                ::poll(&entry, 1, -1);
                continue;
            }
            if (n == 0 && waits_for_writer_) {
                std::this_thread::yield();
                continue;
            }
            if (n <= 0) break;
            text_.append(chunk, static_cast<size_t>(n));
            lines = split();
        }
        return lines;
    }
    void shut() { fd_.reset(); }

private:
    std::vector<std::string> split() const {
        return split_lines(text_.substr(0, text_.rfind('\n') + 1));
    }
    Fd fd_;
    bool waits_for_writer_;  // a FIFO has none yet
    std::string text_;
};

class Sinks : public testing::Test {
protected:
    void open(Result<std::unique_ptr<PublishSink>> sink, PublishOptions options = {}) {
        ASSERT_TRUE(sink) << sink.error().message;
        (*sink)->backoff = {.first_ms = 1, .most_ms = 1};
        PublishEvents events;
        events.failed = [this](const Error& error, bool disk_full) {
            failure_ = error.message;
            disk_full_ = disk_full;
        };
        auto opened = Publisher::open(std::move(*sink), options, std::move(events));
        ASSERT_TRUE(opened) << opened.error().message;
        publisher_ = std::move(*opened);
    }
    void put(int count, size_t label_bytes = 3) {
        for (int i = 0; i < count; ++i)
            publisher_->put(a_record(*publisher_, next_++, label_bytes));
    }
    LineReader fifo_reader() {
        return LineReader(Fd(::open(fifo_.c_str(), O_RDONLY | O_NONBLOCK)), true);
    }
    Fd listening() {
        Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
        ::unlink(socket_.c_str());
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(fd.get(), 4), 0);
        return fd;
    }
    static LineReader accepted(const Fd& fd) {
        return LineReader(Fd(::accept(fd.get(), nullptr, nullptr)));
    }

    TempDir temp_;
    const std::string file_ = temp_ / "out.jsonl", fifo_ = temp_ / "fifo", socket_ = temp_ / "sock";
    std::string failure_;  // written by the publisher's thread, read after close()
    bool disk_full_ = false;
    std::unique_ptr<Publisher> publisher_;
    uint64_t next_ = 0;
};

TEST_F(Sinks, AFileIsReplacedOrAddedTo) {
    spill(file_, "old\n");
    for (const bool append : {false, true}) {
        open(make_file_sink(file_, append));
        put(3);
        publisher_->close(forever);
    }
    const auto lines = split_lines(slurp(file_));
    ASSERT_EQ(lines.size(), 6u);
    EXPECT_EQ(expect_in_order({lines.begin() + 3, lines.end()}, publisher_->run()), 3u);
}

TEST_F(Sinks, WhatIsAddedBehindHalfALineIsALineOfItsOwn) {
    spill(file_, "whole\nha");
    open(make_file_sink(file_, true));
    put(1);
    publisher_->close(forever);
    const auto lines = split_lines(slurp(file_));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[1], "ha");
    EXPECT_EQ(expect_in_order({lines[2]}, publisher_->run()), 1u);
}

TEST_F(Sinks, AFileIsForOnePublisherOrForThoseThatAddToIt) {
    for (const bool first : {false, true}) {
        const auto sink = make_file_sink(file_, first);
        ASSERT_TRUE(sink);
        for (const bool second : {false, true}) {
            const auto another = make_file_sink(file_, second);
            EXPECT_EQ(bool(another), first && second) << first << second;
            if (another) continue;
            EXPECT_EQ(another.error().code, ErrorCode::busy);
            EXPECT_NE(another.error().message.find("another publisher writes this file"),
                      std::string::npos);
        }
    }
    EXPECT_TRUE(make_file_sink(file_, false));
}

TEST_F(Sinks, AFileThatCannotBeOpenedIsAnErrorAtOnce) {
    const std::pair<std::string, ErrorCode> cases[] = {
        {temp_ / "none/out.jsonl", ErrorCode::not_found},
        {temp_.path(), ErrorCode::io},  // a folder
        {"", ErrorCode::invalid_argument},
    };
    for (const auto& [path, code] : cases) {
        const auto sink = make_file_sink(path, false);
        ASSERT_FALSE(sink) << path;
        EXPECT_EQ(sink.error().code, code) << path;
        EXPECT_NE(sink.error().message.find(path), std::string::npos);
    }
}

TEST_F(Sinks, AFullDiskNamesTheFileAndWhatIsFree) {
    open(make_file_sink("/dev/full", false));
    put(3);
    EXPECT_TRUE(publisher_->drain(forever));
    publisher_->close(0);
    EXPECT_TRUE(disk_full_);
    EXPECT_TRUE(failure_.starts_with("/dev/full: cannot be written, ")) << failure_;
    EXPECT_NE(failure_.find(" bytes are free there"), std::string::npos) << failure_;
    EXPECT_EQ(publisher_->counts().dropped, 3u);
}

TEST_F(Sinks, AFileThatMayNotGrowIsAnErrorAndNoSignal) {
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit tight{1000, old.rlim_max};
    open(make_file_sink(file_, false));
    setrlimit(RLIMIT_FSIZE, &tight);
    put(100);
    EXPECT_TRUE(publisher_->drain(forever));
    setrlimit(RLIMIT_FSIZE, &old);
    publisher_->close(0);
    EXPECT_TRUE(failure_.starts_with(file_ + ": cannot write: ")) << failure_;
    EXPECT_FALSE(disk_full_);
    const std::string text = slurp(file_);  // what did not fit is not there in part
    EXPECT_TRUE(text.ends_with('\n')) << text;
    EXPECT_GT(expect_in_order(split_lines(text), publisher_->run()), 0u);
}

TEST_F(Sinks, AFileKeepsWhatItHasWhenTheStartFails) {
    std::ofstream(file_) << "kept\n";
    ASSERT_TRUE(make_file_sink(file_, false));  // goes before it connects
    std::string line;
    std::getline(std::ifstream(file_) >> std::ws, line);
    EXPECT_EQ(line, "kept");
}

TEST_F(Sinks, AFifoWithoutReaderHoldsNobodyUpAndItsReaderGetsTheLatest) {
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    open(make_file_sink(fifo_, false), {.queue_size = 8});
    put(100);
    EXPECT_EQ(publisher_->counts().dropped, 92u);
    EXPECT_FALSE(publisher_->counts().connected);
    LineReader reader = fifo_reader();
    const auto lines = reader.lines(9);
    EXPECT_EQ(seen(lines[0]), (Seen{publisher_->run(), 0, 91, true}));
    EXPECT_EQ(expect_in_order(lines, publisher_->run()), 100u);
}

TEST_F(Sinks, ASlowReaderOfAFifoGetsWholeLines) {
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    open(make_file_sink(fifo_, false), {.queue_size = 4});
    LineReader reader = fifo_reader();
    put(1);
    reader.lines(1);
    put(400, 5000);  // more than the pipe and the queue take
    const PublishCounts full = publisher_->counts();
    EXPECT_GT(full.dropped, 0u);
    put(1);
    std::vector<std::string> lines;
    do {
        lines = reader.lines(lines.size() + 1);
    } while (seen(lines.back()).last != 401);
    EXPECT_EQ(expect_in_order(lines, publisher_->run()), 402u);
}

TEST_F(Sinks, AReaderOfAFifoMayGoAndComeBack) {
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    open(make_file_sink(fifo_, false));
    {
        LineReader reader = fifo_reader();
        put(5);
        EXPECT_EQ(reader.lines(5).size(), 5u);
        EXPECT_TRUE(publisher_->drain(forever));
    }
    while (publisher_->counts().connected) std::this_thread::yield();
    put(5);
    LineReader reader = fifo_reader();
    EXPECT_EQ(expect_in_order(reader.lines(5), publisher_->run(), 5), 10u);
    EXPECT_EQ(publisher_->counts().reconnects, 1u);
}

TEST_F(Sinks, ASocketMayComeLateGoAndComeBack) {
    open(make_socket_sink(socket_));
    put(5);
    Fd server = listening();
    {
        LineReader reader = accepted(server);
        EXPECT_EQ(expect_in_order(reader.lines(5), publisher_->run()), 5u);
        EXPECT_TRUE(publisher_->drain(forever));
        server.reset();
    }
    while (publisher_->counts().connected) std::this_thread::yield();
    put(5);
    server = listening();
    LineReader reader = accepted(server);
    EXPECT_EQ(expect_in_order(reader.lines(5), publisher_->run(), 5), 10u);
}

TEST_F(Sinks, ASocketThatNobodyReadsHoldsNobodyUp) {
    Fd server = listening();
    open(make_socket_sink(socket_), {.queue_size = 4});
    LineReader reader = accepted(server);
    put(1000, 5000);
    EXPECT_GT(publisher_->counts().dropped, 0u);
    std::vector<std::string> lines;
    do {
        lines = reader.lines(lines.size() + 1);
    } while (seen(lines.back()).last != 999);
    EXPECT_EQ(expect_in_order(lines, publisher_->run()), 1000u);
}

TEST_F(Sinks, ALineThatAReaderGotInPartComesAgain) {
    Fd server = listening();
    open(make_socket_sink(socket_), {.queue_size = 100});
    {
        LineReader reader = accepted(server);
        put(20, 100000);  // more than the socket's buffer: the last that it has is cut
        EXPECT_GE(reader.lines(1).size(), 1u);
    }
    LineReader reader = accepted(server);
    std::vector<std::string> lines;
    do {
        lines = reader.lines(lines.size() + 1);
        EXPECT_TRUE(nlohmann::json::accept(lines.back()));
    } while (seen(lines.back()).last != 19);
    const uint64_t first = seen(lines[0]).first;
    EXPECT_EQ(expect_in_order(lines, publisher_->run(), first), 20u);
}

TEST_F(Sinks, ASocketsPathHasALimit) {
    // The address ends with a zero byte.
    constexpr size_t most = sizeof sockaddr_un{}.sun_path - 1;
    for (const std::string& path :
         {std::string(), std::string(most + 1, 'x'), std::string(200, 'x')}) {
        const auto sink = make_socket_sink(path);
        ASSERT_FALSE(sink) << path.size();
        EXPECT_EQ(sink.error().code, ErrorCode::invalid_argument);
    }
    EXPECT_TRUE(make_socket_sink(std::string(most, 'x')));
}

// Standard output of a child, whose other end the test has.
TEST_F(Sinks, StandardOutputMayBlockOrCloseWithoutHoldingAnybodyUp) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const int before = ::dup(STDOUT_FILENO);
    std::fflush(stdout);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    open(make_stdout_sink(), {.queue_size = 4});
    LineReader reader{Fd(ends[0])};
    put(1);
    const bool first = reader.lines(1).size() == 1;
    put(400, 5000);
    const uint64_t dropped = publisher_->counts().dropped;
    const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
    // Full to the last page, so that the end of the reader is all that poll() has to tell.
    ::fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
    const std::string page(4096, '\n');
    while (::write(STDOUT_FILENO, page.data(), page.size()) > 0) continue;
    ::fcntl(STDOUT_FILENO, F_SETFL, flags);
    reader.shut();
    put(1);
    const bool drained = publisher_->drain(forever);
    publisher_->close(0);
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    EXPECT_TRUE(first);
    EXPECT_GT(dropped, 0u);
    EXPECT_FALSE(flags & O_NONBLOCK);
    EXPECT_TRUE(drained);
    EXPECT_EQ(failure_, "standard output: nobody reads it any more");
}

// Several publishers of one process share its standard output: lines that a pipe takes in parts
// must stay whole.
TEST_F(Sinks, TwoOnStandardOutputDoNotMixTheirLines) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const int before = ::dup(STDOUT_FILENO);
    std::fflush(stdout);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    const Fd reader(ends[0]);
    const auto sinks = {make_stdout_sink(), make_stdout_sink()};
    constexpr size_t size = 100000;  // more than the pipe holds
    for (const auto& sink : sinks) ASSERT_TRUE(sink->connect().has_value());
    char letter = 'a';
    for (const auto& sink : sinks) {
        PublishLine line;
        line.text = std::string(size - 1, letter++) + '\n';
        EXPECT_TRUE(sink->send(line).value());
    }
    std::string all(2 * size, '\0');
    for (size_t at = 0; at < all.size();) {
        for (const auto& sink : sinks) EXPECT_TRUE(sink->work().has_value());
        pollfd entry{reader.get(), POLLIN, 0};
        if (::poll(&entry, 1, 0) != 1) continue;
        const ssize_t n = ::read(reader.get(), all.data() + at, all.size() - at);
        ASSERT_GT(n, 0);
        at += static_cast<size_t>(n);
    }
    ::dup2(before, STDOUT_FILENO);
    ::close(before);
    EXPECT_EQ(all, std::string(size - 1, 'a') + '\n' + std::string(size - 1, 'b') + '\n');
}

}  // namespace
