// SPDX-License-Identifier: Apache-2.0
#include "lib/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "lib/base/file.h"

namespace vartml {
namespace {

constexpr size_t tail_bytes = 16 * 1024;
// No line of ours is that long: one with a latency of each frame of an hour of many streams.
constexpr size_t most_line_bytes = size_t{256} << 20;

// The process groups of the children that live, for a signal that ends this process: they get none
// of a terminal, since they are not in its foreground.
struct Living {
    std::mutex mutex;
    std::vector<pid_t> groups;  // held while one starts
};
Living& living() {
    static Living* const kept = new Living;  // others may end while the process exits
    return *kept;
}

void no_longer_living(pid_t pid) {
    Living& all = living();
    const std::lock_guard lock(all.mutex);
    std::erase(all.groups, pid);
}
constexpr int look_at_cancel_every_ms = 20;

struct Pipe {
    Fd read, write;
    bool open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return false;
        // Above the numbers that the child gets, whatever the application has closed.
        const Fd low_read(ends[0]), low_write(ends[1]);
        read = Fd(::fcntl(ends[0], F_DUPFD_CLOEXEC, child_lines_fd + 1));
        write = Fd(::fcntl(ends[1], F_DUPFD_CLOEXEC, child_lines_fd + 1));
        return read && write && ::fcntl(read.get(), F_SETFL, O_NONBLOCK) == 0;
    }
};

struct SpawnSetup {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    SpawnSetup() {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
    }
    SpawnSetup(const SpawnSetup&) = delete;
    SpawnSetup& operator=(const SpawnSetup&) = delete;
    ~SpawnSetup() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }
};

// What every child of ours gets: no signals blocked or handled, a process group of its own, and
// `from` as the descriptors from `first` on. 0 or the error number.
int spawn(const std::vector<std::string>& arguments, SpawnSetup& setup, std::span<const int> from,
          int first, pid_t& pid) {
    int error = 0;
    int to = first;
    for (size_t i = 0; i < from.size() && !error; ++i)
        error = ::posix_spawn_file_actions_adddup2(&setup.actions, from[i], to++);
    if (!error) error = ::posix_spawn_file_actions_addclosefrom_np(&setup.actions, to);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    ::posix_spawnattr_setsigmask(&setup.attributes, &none);
    ::posix_spawnattr_setsigdefault(&setup.attributes, &defaults);
    ::posix_spawnattr_setpgroup(&setup.attributes, 0);
    ::posix_spawnattr_setflags(
        &setup.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    if (error) return error;
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    Living& all = living();
    const std::lock_guard lock(all.mutex);
    all.groups.reserve(all.groups.size() + 1);
    error = ::posix_spawnp(&pid, argv[0], &setup.actions, &setup.attributes, argv.data(), environ);
    if (!error) all.groups.push_back(pid);
    return error;
}

// Descriptors up to `last` lead to /dev/null. 0 or the error number.
int close_standard_streams(SpawnSetup& setup, int last) {
    int error = 0;
    for (int fd = 0; fd <= last && !error; ++fd)
        error = ::posix_spawn_file_actions_addopen(&setup.actions, fd, "/dev/null",
                                                   fd == 0 ? O_RDONLY : O_WRONLY, 0);
    return error;
}

// Appends what is there; false at the end of the pipe.
bool drain(const Fd& fd, std::string& to) {
    for (;;) {
        char chunk[4096];
        const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
        if (n > 0) {
            to.append(chunk, static_cast<size_t>(n));
            continue;
        }
        if (n < 0 && errno == EINTR) continue;
        return n < 0 && errno == EAGAIN;
    }
}

class Watch {
public:
    Watch(const Child& child, Fd stderr_end, Fd lines_end)
        : child_(child), stderr_(std::move(stderr_end)), lines_(std::move(lines_end)) {}

    void read() {
        if (stderr_ && !drain(stderr_, tail_)) stderr_.reset();
        if (tail_.size() > 2 * tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
        if (lines_ && !drain(lines_, partial_)) lines_.reset();
        size_t begin = 0;
        for (size_t end; (end = partial_.find('\n', begin)) != partial_.npos; begin = end + 1)
            if (child_.on_line)
                child_.on_line(std::string_view(partial_).substr(begin, end - begin));
        partial_.erase(0, begin);
        if (partial_.size() > most_line_bytes) partial_.clear();
    }
    // Until a pipe has news or the child has ended.
    void wait(const Fd& pidfd) {
        pollfd fds[] = {
            {stderr_.get(), POLLIN, 0}, {lines_.get(), POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
        ::poll(fds, 3, look_at_cancel_every_ms);
    }
    std::string tail() {
        if (tail_.size() > tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
        return std::move(tail_);
    }

private:
    const Child& child_;
    Fd stderr_, lines_;
    std::string tail_, partial_;
};

// Kills the group, should the owner leave by an exception of on_line, and reaps the child.
class Reaper {
public:
    explicit Reaper(pid_t pid) : pid_(pid) {}
    Reaper(const Reaper&) = delete;
    Reaper& operator=(const Reaper&) = delete;
    ~Reaper() {
        if (pid_ <= 0) return;
        no_longer_living(pid_);
        kill();
        int status;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
    }
    void kill() const {
        // The group exists from before exec; the second call covers a child that has left it.
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
    }
    bool ended(int& status) {
        siginfo_t info{};
        const int r = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
        if (r != 0 && errno == EINTR) return false;
        if (r == 0 && info.si_pid == 0) return false;
        no_longer_living(pid_);
        // What the child left behind holds our pipes. Until it is reaped its number is not used
        // again.
        ::kill(-pid_, SIGKILL);
        // As a shell reports it, where somebody else took the status.
        if (::waitpid(pid_, &status, 0) < 0) status = 127 << 8;
        pid_ = 0;
        return true;
    }

private:
    pid_t pid_;
};

}  // namespace

std::unique_lock<std::mutex> end_children() noexcept {
    std::unique_lock lock(living().mutex);
    for (const pid_t group : living().groups) ::kill(-group, SIGTERM);
    return lock;
}

Result<ChildResult> run_child(const Child& child) {
    const std::string& program = child.arguments.at(0);
    Pipe stderr_pipe, lines_pipe;
    if (!stderr_pipe.open() || !lines_pipe.open())
        return system_error(program, "make a pipe", errno);
    pid_t pid = 0;
    SpawnSetup setup;
    const int ends[] = {stderr_pipe.write.get(), lines_pipe.write.get()};  // become 2 and 3
    int error = close_standard_streams(setup, 1);
    if (!error) error = spawn(child.arguments, setup, ends, 2, pid);
    if (error) return system_error(program, "run", error);
    Reaper reaper(pid);
    // The program has been started but has hardly run: what it allocates later is limited.
    if (const rlimit limit{child.memory_limit, child.memory_limit};
        can_limit_memory && child.memory_limit != 0)
        ::prlimit(pid, RLIMIT_AS, &limit, nullptr);
    const auto end = std::chrono::steady_clock::now() + child.time_limit;
    const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    stderr_pipe.write.reset();
    lines_pipe.write.reset();

    ChildResult result;
    Watch watch(child, std::move(stderr_pipe.read), std::move(lines_pipe.read));
    int status = 0;
    while (!reaper.ended(status)) {
        if (!result.cancelled && child.cancel && child.cancel->load(std::memory_order_relaxed)) {
            result.cancelled = true;
            reaper.kill();
        }
        if (!result.timed_out && child.time_limit.count() != 0 &&
            std::chrono::steady_clock::now() >= end) {
            result.timed_out = true;
            reaper.kill();
        }
        watch.wait(pidfd);
        watch.read();
    }
    watch.read();
    result.stderr_tail = watch.tail();
    if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
}

Result<ServingChild> ServingChild::start(const std::vector<std::string>& arguments,
                                         std::span<const int> descriptors) {
    // Above the numbers that the child gets.
    std::vector<Fd> high;
    std::vector<int> numbers;
    const int first = child_lines_fd, above = first + static_cast<int>(descriptors.size());
    for (const int fd : descriptors) {
        high.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
        if (!high.back()) return system_error(arguments.at(0), "make a descriptor for", errno);
        numbers.push_back(high.back().get());
    }
    SpawnSetup setup;
    pid_t pid = 0;
    int error = close_standard_streams(setup, 2);
    if (!error) error = spawn(arguments, setup, numbers, first, pid);
    if (error) return system_error(arguments.at(0), "run", error);
    return ServingChild(pid);
}

ServingChild::~ServingChild() {
    if (pid_ > 0) {
        const Reaper reaper(pid_);
    }
}

std::string ServingChild::end_text() {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0)
        if (errno != EINTR) return "ended";
    if (info.si_code == CLD_EXITED) return "ended with status " + std::to_string(info.si_status);
    return "was killed by signal " + std::to_string(info.si_status);
}

}  // namespace vartml
