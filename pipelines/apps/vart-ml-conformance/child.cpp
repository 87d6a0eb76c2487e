// SPDX-License-Identifier: Apache-2.0
// The process that the runtime is in: it executes this program again, so that it inherits nothing
// but a pipe, and says on it which check begins and what it saw.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "child.h"

namespace conformance {
namespace {

using Clock = std::chrono::steady_clock;

// One line of text, as the pipe and the tables have it.
std::string one_line(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    if (text.size() > 600) text = text.substr(0, 597) + "...";
    return text;
}

std::string last_lines(const std::string& text, size_t count) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        if (!line.empty()) lines.push_back(line);
    std::string last;
    for (size_t i = lines.size() - std::min(count, lines.size()); i < lines.size(); ++i)
        last += (last.empty() ? "" : " | ") + lines[i];
    return one_line(last);
}

struct Started {
    pid_t pid = -1;
    int fd = -1;  // what the child writes
};

// Both streams of the child go to `log`, or to the pipe where there is none.
Started start(const std::vector<std::string>& command, FILE* log) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (pid == 0) {
        setpgid(0, 0);  // so that its own children end with it
        const int streams = log ? fileno(log) : ends[1];
        dup2(streams, STDOUT_FILENO);
        dup2(streams, STDERR_FILENO);
        if (log && ends[1] != 3) dup2(ends[1], 3);
        if (log) fcntl(3, F_SETFD, 0);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    close(ends[1]);
    return {pid, ends[0]};
}

// Whether something can be read, or the end of it.
bool readable(int fd, Clock::time_point end) {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
        pollfd one{fd, POLLIN, 0};
        const int count = poll(&one, 1, int(std::max<long>(0, long(left.count()))));
        if (count > 0) return true;
        if (count == 0 || errno != EINTR) return false;
    }
}

int finish(pid_t pid, bool kill_it) {
    if (kill_it) kill(-pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// Libraries of the runtime in this process, and where it comes from.
void say_facts(int fd) {
    Dl_info info{};
    using Create =
        std::shared_ptr<vart::Runner> (*)(vart::RunnerType, const std::string&, const Options&);
    Create create = &vart::RunnerFactory::create_runner;
    void* address;
    static_assert(sizeof address == sizeof create);
    std::memcpy(&address, &create, sizeof address);
    if (dladdr(address, &info) && info.dli_fname)
        dprintf(fd, "fact\tlibrary of the runtime\t%s\n", info.dli_fname);
    std::ifstream maps("/proc/self/maps");
    std::set<std::string> libraries;
    for (std::string line; std::getline(maps, line);) {
        const size_t path = line.find('/');
        if (path == std::string::npos) continue;
        const std::string name = line.substr(line.rfind('/') + 1);
        for (const char* part : {"vart", "xrt", "vai", "xaie", "xdna", "aie"})
            if (name.starts_with("lib") && name.find(part) != std::string::npos)
                libraries.insert(line.substr(path));
    }
    std::string all;
    for (const std::string& library : libraries) all += (all.empty() ? "" : ", ") + library;
    dprintf(fd, "fact\tlibraries loaded\t%s\n", all.c_str());
}

Seen run_one(const Check& check, Model& model) {
    try {
        return check.run(model);
    } catch (const std::exception& error) {
        return refused(kind_of(error));
    } catch (...) {
        return refused("an exception of an unknown type");
    }
}

Verdict verdict_of(const std::string& name) {
    for (const Verdict verdict :
         {Verdict::same, Verdict::differs, Verdict::refused, Verdict::not_shown})
        if (name == name_of(verdict)) return verdict;
    return Verdict::crashed;
}

std::vector<std::string> fields(const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, '\t');) parts.push_back(part);
    parts.resize(4);
    return parts;
}

}  // namespace

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return "ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
               strsignal(WTERMSIG(status)) + ")";
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

Ended run_program(const std::vector<std::string>& command, std::chrono::seconds limit) {
    const Started child = start(command, nullptr);
    const auto end = Clock::now() + limit;
    Ended ended;
    char bytes[4096];
    for (;;) {
        ended.in_time = readable(child.fd, end);
        if (!ended.in_time) break;
        const ssize_t count = read(child.fd, bytes, sizeof bytes);
        if (count <= 0) break;
        ended.output.append(bytes, size_t(count));
        if (ended.output.size() > 1 << 20) ended.output.erase(0, 1 << 19);
    }
    close(child.fd);
    ended.status = finish(child.pid, !ended.in_time);
    return ended;
}

int run_in_child(const std::string& path, const std::vector<Check>& checks, size_t first, int fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    {
        Model model(path);
        for (size_t i = first; i < checks.size(); ++i) {
            dprintf(fd, "begin\t%zu\n", i);
            const Seen seen = run_one(checks[i], model);
            dprintf(fd, "end\t%zu\t%s\t%s\n", i, name_of(seen.verdict).c_str(),
                    one_line(seen.text).c_str());
            if (checks[i].damages) _exit(0);
        }
        say_facts(fd);
        dprintf(fd, "begin\t%zu\n", checks.size());
    }
    return 0;
}

std::vector<Outcome> run_checks(const std::string& model, const std::vector<Check>& checks,
                                const std::string& only, std::chrono::seconds limit, Facts& facts) {
    std::vector<Outcome> outcomes;
    const auto add = [&](const Outcome& outcome) {
        print_outcome(outcome);
        outcomes.push_back(outcome);
    };
    const Outcome at_end{"process/end", "the runtime ends with the process", false, {}};
    // What begins and is not ended is what the child died of.
    for (size_t next = 0; next <= checks.size();) {
        FILE* log = tmpfile();
        if (!log)
            throw std::runtime_error(std::string("a temporary file: ") + std::strerror(errno));
        const Started child =
            start({"/proc/self/exe", "--child", std::to_string(next), only, model}, log);
        size_t begun = next;
        bool in_time = true;
        std::string text;
        char bytes[4096];
        while ((in_time = readable(child.fd, Clock::now() + limit))) {
            const ssize_t count = read(child.fd, bytes, sizeof bytes);
            if (count <= 0) break;
            text.append(bytes, size_t(count));
            for (size_t line; (line = text.find('\n')) != std::string::npos;
                 text.erase(0, line + 1)) {
                const auto parts = fields(text.substr(0, line));
                if (parts[0] == "fact") facts.push_back({parts[1], parts[2]});
                if (parts[0] == "begin") begun = std::stoul(parts[1]);
                if (parts[0] != "end") continue;
                next = std::stoul(parts[1]) + 1;
                const Check& check = checks[next - 1];
                add({check.name,
                     check.expected,
                     check.documented,
                     {verdict_of(parts[2]), parts[3]}});
            }
        }
        close(child.fd);
        const int status = finish(child.pid, !in_time);
        std::string output(1 << 14, '\0');
        const long size = (std::fseek(log, 0, SEEK_END), std::ftell(log));
        std::fseek(log, std::max(0L, size - long(output.size())), SEEK_SET);
        output.resize(std::fread(output.data(), 1, output.size(), log));
        std::fclose(log);
        const bool ended_well = in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (begun == checks.size() && ended_well) {
            add({at_end.name, at_end.expected, at_end.documented, same("ended with status 0")});
            break;
        }
        if (ended_well && next > begun) continue;  // after a check that may damage the process
        const std::string last = last_lines(output, 2);
        const std::string what =
            (in_time ? how_it_ended(status)
                     : "no answer within " + std::to_string(limit.count()) + " s") +
            (last.empty() ? "" : ": " + last);
        // A child can also end between checks: of what the one before left behind.
        next = std::max(begun, next);
        const bool last_one = next >= checks.size();
        add({last_one ? at_end.name : checks[next].name,
             last_one ? at_end.expected : checks[next].expected,
             last_one ? at_end.documented : checks[next].documented,
             {Verdict::crashed, what}});
        ++next;
    }
    return outcomes;
}

}  // namespace conformance
