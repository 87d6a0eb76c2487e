// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include <nlohmann/json.hpp>

namespace vartml::fleet {
namespace {

constexpr int64_t grace_ms = 2000;  // from SIGTERM to SIGKILL
constexpr const char* stop_word = "stop";
constexpr const char* say_word = "say ";
constexpr size_t longest_line = 4096;
constexpr int most_chunks = 64;  // of 4096 bytes, per call

// Of a process that runs, with all its threads; 0 where it is gone.
double cpu_s_of_process(pid_t pid) {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
    return double(used.tv_sec) + double(used.tv_nsec) / 1e9;
}

// Runs in the guard's process; ends it.
class Watchman {
public:
    Watchman(const GuardSettings& settings, int commands, int output, std::atomic<double>& cpu_s)
        : settings_(settings),
          commands_(commands),
          output_(output),
          cpu_s_(cpu_s),
          until_(settings.until_ms) {}

    [[noreturn]] void run() {
        ::signal(SIGTERM, SIG_IGN);  // of a terminal's group: the worker says when
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGPIPE, SIG_IGN);
        int in[2];
        if (::pipe2(in, O_CLOEXEC) != 0) ::_exit(1);
        child_ = ::fork();
        if (child_ == 0) become_program(in[0]);
        if (child_ > 0) ::setpgid(child_, child_);  // as it does itself: whoever comes first
        ::close(in[0]);
        ::close(output_);
        if (child_ < 0) ::_exit(1);
        log_event(settings_.worker, "start", settings_.camera, settings_.epoch);
        input_ = in[1];
        unread_ = settings_.input + "\n";
        ::fcntl(input_, F_SETFL, O_NONBLOCK);
        for (;;) step();
    }

private:
    [[noreturn]] void become_program(int in) const {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (const int number : {SIGTERM, SIGINT, SIGPIPE}) ::signal(number, SIG_DFL);
        ::dup2(in, 0);
        ::dup2(output_, 1);
        std::vector<char*> argv;
        for (const std::string& word : settings_.program)
            argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        std::fprintf(stderr, "vartml worker: %s: cannot be run\n", argv[0]);
        ::_exit(127);
    }

    void step() {
        // The program is counted here until it is waited for, and then with the children.
        const double used_s = cpu_s_of_process(child_);
        int status = 0;
        if (::waitpid(child_, &status, WNOHANG) == child_) end(status, "its program ended");
        cpu_s_ = cpu_s_of(RUSAGE_SELF) + used_s;
        const int64_t now = boot_ms();
        if (now >= until_) end_by_force("the lease ended");
        if (stop_at_ && now >= stop_at_) end_by_force("it did not stop in time");
        // The program's end is looked for ten times a second.
        pollfd ready[] = {{commands_, POLLIN, 0}, {unread_.empty() ? -1 : input_, POLLOUT, 0}};
        ::poll(ready, 2, int(std::min<int64_t>(until_ - now, 100)));
        if (ready[1].revents) give_input();
        if (!(ready[0].revents & (POLLIN | POLLHUP))) return;
        char chunk[4096];
        const ssize_t n = ::read(commands_, chunk, sizeof chunk);
        if (n <= 0) end_by_force("the worker ended");
        text_.append(chunk, size_t(n));
        for (size_t line = text_.find('\n'); line != text_.npos; line = text_.find('\n')) {
            obey(text_.substr(0, line));
            text_.erase(0, line + 1);
        }
    }

    // As far as the program reads it: the lease does not wait for that.
    void give_input() {
        const ssize_t n = ::write(input_, unread_.data(), unread_.size());
        if (n > 0) unread_.erase(0, size_t(n));
        const bool failed = n < 0 && errno != EAGAIN && errno != EINTR;
        if (failed || (unread_.empty() && !settings_.talks)) {
            ::close(std::exchange(input_, -1));
            unread_.clear();
        }
    }

    void obey(const std::string& word) {
        if (word == stop_word) {
            if (!stop_at_) stop_at_ = boot_ms() + grace_ms;
            ::kill(-child_, SIGTERM);
        } else if (word.starts_with(say_word)) {
            if (input_ >= 0 && unread_.size() < longest_line)  // it may hang
                unread_ += word.substr(std::string_view(say_word).size()) + "\n";
        } else if (boot_ms() < until_) {  // what is over is over: another may have it
            until_ = std::max<int64_t>(until_, std::strtoll(word.c_str(), nullptr, 10));
        }
    }

    [[noreturn]] void end_by_force(const char* why) {
        ::kill(-child_, SIGKILL);
        ::kill(child_, SIGKILL);
        int status = 0;
        ::waitpid(child_, &status, 0);
        end(status, why);
    }

    [[noreturn]] void end(int status, const char* why) {
        ::kill(-child_, SIGKILL);  // what it has started
        cpu_s_ = cpu_s_of(RUSAGE_SELF) + cpu_s_of(RUSAGE_CHILDREN);
        log_event(settings_.worker, "stop", settings_.camera, settings_.epoch,
                  stop_at_ ? "the worker gave it back" : why, cpu_s_);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }

    const GuardSettings& settings_;
    const int commands_, output_;
    std::atomic<double>& cpu_s_;
    int child_ = 0, input_ = -1;  // -1: the program has it all
    int64_t until_, stop_at_ = 0;
    std::string text_, unread_;
};

void tell(int fd, const std::string& word) {
    const std::string line = word + "\n";
    // A guard that is gone has ended its program.
    [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

int status_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int64_t boot_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

void log_event(const std::string& worker, const char* event, const std::string& camera,
               uint64_t epoch, const std::string& reason, std::optional<double> cpu_s) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    nlohmann::json line = {
        {"utc_ms", int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000},
        {"boot_ms", boot_ms()},
        {"worker", worker},
        {"event", event},
        {"camera", camera},
        {"epoch", epoch},
        {"reason", reason},
    };
    if (cpu_s) line["cpu_s"] = *cpu_s;
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    // Who watches cameras does not wait for whom nobody reads: such a line is lost.
    constexpr int patience_ms = 100;
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    if (::poll(&output, 1, patience_ms) == 0) return;
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
}

double cpu_s_of(int who) {
    rusage used{};
    ::getrusage(who, &used);
    return double(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           double(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

struct Guard::Account {
    std::atomic<double> cpu_s{0};
};

void Guard::Unmap::operator()(Account* account) const {
    ::munmap(account, sizeof *account);
}

Result<Guard> Guard::start(const GuardSettings& settings) {
    // A page that the process of the guard has, too.
    void* const page =
        ::mmap(nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return Error{ErrorCode::io, "no memory for camera " + settings.camera};
    std::unique_ptr<Account, Unmap> account(new (page) Account);
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    const auto refused = [&](const std::string& why) {
        for (const int fd : {in[0], in[1], out[0], out[1]})
            if (fd >= 0) ::close(fd);
        return Error{ErrorCode::io, why};
    };
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0)
        return refused("no pipe for camera " + settings.camera);
    const pid_t pid = ::fork();
    if (pid < 0)
        return refused("no process for camera " + settings.camera +
                       "; see the limit of processes, or lower --capacity");
    if (pid == 0) {
        // Other cameras' pipes must not stay open here: their guards wait for their end.
        const int commands = ::fcntl(in[0], F_DUPFD, 0), output = ::fcntl(out[1], F_DUPFD, 0);
        const int keep = std::max(commands, output);
        for (int fd = 3; fd <= keep; ++fd)
            if (fd != commands && fd != output) ::close(fd);
        ::close_range(unsigned(keep) + 1, ~0U, 0);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        Watchman(settings, commands, output, account->cpu_s).run();
    }
    ::close(in[0]);
    ::close(out[1]);
    ::fcntl(out[0], F_SETFL, O_NONBLOCK);
    Guard guard;
    guard.pid_ = pid;
    guard.input_ = in[1];
    guard.output_ = out[0];
    guard.account_ = std::move(account);
    return guard;
}

Guard::Guard(Guard&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      account_(std::move(other.account_)),
      text_(std::move(other.text_)) {}

Guard::~Guard() {
    if (input_ >= 0) ::close(input_);
    if (output_ >= 0) ::close(output_);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

void Guard::renew(int64_t until_ms) const {
    tell(input_, std::to_string(until_ms));
}

void Guard::say(const std::string& line) const {
    tell(input_, say_word + line);
}

void Guard::stop() const {
    tell(input_, stop_word);
}

std::optional<int> Guard::ended() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = 0;
    return status_of(status);
}

double Guard::cpu_s() const {
    return account_->cpu_s;
}

std::vector<std::string> Guard::lines(size_t longest) {
    std::vector<std::string> all;
    read_lines(longest, [&](std::string line) { all.push_back(std::move(line)); });
    return all;
}

std::optional<std::string> Guard::last_line() {
    std::optional<std::string> last;
    read_lines(longest_line, [&](std::string line) { last = std::move(line); });
    return last;
}

void Guard::read_lines(size_t longest, const std::function<void(std::string)>& take) {
    char chunk[4096];
    for (int i = 0; i < most_chunks; ++i) {
        const ssize_t n = ::read(output_, chunk, sizeof chunk);
        if (n <= 0) break;
        for (const char c : std::string_view(chunk, size_t(n))) {
            if (c == '\n')
                take(std::exchange(text_, {}));
            else if (text_.size() < longest)
                text_ += c;
        }
    }
}

}  // namespace vartml::fleet
