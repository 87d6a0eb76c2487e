// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/columns.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

struct User {
    uint64_t id;
    std::string device, name;
    uint32_t start, count;
    bool shared;
    Fd lock;  // its open file has the locks
};

struct Book {
    std::mutex mutex;         // guards what follows; a leaf lock
    std::vector<User> users;  // in the order of arrival
    uint64_t next_id = 1;
};

Book& book() {
    static Book* const instance = [] {
        // A child has nothing of this, and its copy of a lock's descriptor would keep it locked.
        (void)pthread_atfork([] { book().mutex.lock(); }, [] { book().mutex.unlock(); },
                             [] {
                                 book().users.clear();
                                 book().mutex.unlock();
                             });
        return new Book;
    }();
    return *instance;
}

uint32_t columns_of(std::string_view device) {
    constexpr std::pair<std::string_view, uint32_t> table[] = {
        {"ve2-xc2ve3358", 8}, {"ve2-xc2ve3558", 24}, {"ve2-xc2ve3858", 36}, {"ve2", 36}};
    for (const auto& [name, count] : table)
        if (device == name) return count;
    return 36;
}

enum class Fit { free, shared, taken };

Fit fit(const std::vector<User>& users, const ColumnRequest& request, uint64_t start) {
    Fit result = Fit::free;
    for (const User& user : users) {
        // A model of the CPU alone has no columns.
        if (user.device != request.device || user.count == 0 || request.count == 0) continue;
        if (start + request.count <= user.start || user.start + user.count <= start) continue;
        if (!request.shared || !user.shared || user.start != start || user.count != request.count)
            return Fit::taken;
        result = Fit::shared;
    }
    return result;
}

std::string range(uint64_t start, uint32_t count) {
    return std::to_string(start) + "-" + std::to_string(start + count - 1);
}

// The columns that other processes hold. Locks belong to the open file (F_OFD_SETLK), so that two
// runners of a process are as two processes, and end with its last descriptor.
class OtherProcesses {
public:
    explicit OtherProcesses(const std::string& device) : path_(columns_file(device)) {
        constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
        file_ = Fd(::open(path_.c_str(), flags));
        // Not both at once: in a sticky folder O_CREAT is refused for the file of another user.
        if (!file_ && errno == ENOENT) file_ = Fd(::open(path_.c_str(), flags | O_CREAT, 0666));
        if (!file_) {
            fail("cannot open ");
            return;
        }
        struct stat status{};
        if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
            errno = EINVAL;
            fail("no regular file: ");
            return;
        }
        (void)::fchmod(file_.get(), 0666);  // whatever the umask; refused for another user's file
    }

    // Where the file does not work nobody else is seen.
    bool take(uint64_t start, uint32_t count, bool shared) {
        // A lock of no bytes would be one of all.
        if (!file_ || count == 0) return true;
        struct flock lock = range_lock(start, count, shared);
        if (::fcntl(file_.get(), F_OFD_SETLK, &lock) == 0) {
            if (!shared) write_pid(start, count);
            return true;
        }
        if (errno == EAGAIN || errno == EACCES) return false;
        fail("cannot lock ");
        return true;
    }

    // "; other processes: 0-3 exclusive by process 17"
    std::string describe(uint32_t total) const {
        std::string text;
        for (uint64_t start = 0; file_ && start < total;) {
            struct flock lock = range_lock(start, static_cast<uint32_t>(total - start), false);
            if (::fcntl(file_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) break;
            const auto first = static_cast<uint64_t>(std::max<off_t>(lock.l_start, 0));
            const uint64_t end =
                lock.l_len > 0
                    ? std::min<uint64_t>(first + static_cast<uint64_t>(lock.l_len), total)
                    : total;
            if (end <= start) break;
            text += (text.empty() ? "; locks in " + in_quotes(path_) + ":" : ",") +
                    (" " + range(first, static_cast<uint32_t>(end - first))) +
                    (lock.l_type == F_RDLCK ? " shared" : " exclusive" + by_process(first));
            start = end;
        }
        return text;
    }

    Fd take_file() { return std::move(file_); }
    const std::string& fault() const { return fault_; }

private:
    static constexpr size_t line_bytes = 12;

    void fail(const char* what) {
        fault_ = what + in_quotes(path_) + ": " + std::strerror(errno);
        file_.reset();
    }
    static struct flock range_lock(uint64_t start, uint32_t count, bool shared) {
        struct flock lock{};
        lock.l_type = shared ? F_RDLCK : F_WRLCK;
        lock.l_whence = SEEK_SET;
        lock.l_start = static_cast<off_t>(start);
        lock.l_len = count;
        return lock;
    }
    // For people: that it fails changes nothing.
    void write_pid(uint64_t start, uint32_t count) const {
        std::array<char, line_bytes + 1> line;
        std::snprintf(line.data(), line.size(), "%11d\n", static_cast<int>(::getpid()));
        for (uint64_t column = start; column < start + count; ++column)
            (void)!::pwrite(file_.get(), line.data(), line_bytes,
                            static_cast<off_t>(column * line_bytes));
    }
    std::string by_process(uint64_t column) const {
        std::array<char, line_bytes> line{};
        const auto at = static_cast<off_t>(column * line_bytes);
        if (::pread(file_.get(), line.data(), line.size(), at) != ssize_t{line_bytes}) return "";
        const char* begin = line.data();
        while (begin != line.end() && *begin == ' ') ++begin;
        int pid = 0;
        const auto read = std::from_chars(begin, line.end(), pid);
        return read.ec == std::errc() && pid > 0 ? " by process " + std::to_string(pid) : "";
    }

    const std::string path_;
    Fd file_;
    std::string fault_;
};

Error no_fit(const std::vector<User>& users, const ColumnRequest& request, uint32_t total,
             const OtherProcesses& others) {
    std::string text = "create_runner: ";
    text += request.start ? "columns " + range(*request.start, request.count) + " are not free"
                          : "no " + std::to_string(request.count) + " free columns";
    text += " of the " + std::to_string(total) + " of " + in_quotes(request.device) + " for " +
            (request.shared ? "shared" : "exclusive") + " use; in use:";
    for (const User& user : users)
        if (user.device == request.device && user.count != 0)
            text += " " + range(user.start, user.count) + (user.shared ? " shared" : " exclusive") +
                    " by " + in_quotes(user.name) + ",";
    if (text.back() == ',')
        text.pop_back();
    else
        text += " nothing by this process";
    return {ErrorCode::busy, text + others.describe(total)};
}

}  // namespace

Result<ColumnReservation> ColumnReservation::acquire(const ColumnRequest& request) {
    const uint32_t total = columns_of(request.device);
    const bool too_many = request.count > total;
    if (too_many || (request.start && *request.start > total - request.count))
        return Error{too_many ? ErrorCode::bad_model : ErrorCode::invalid_argument,
                     "create_runner: columns " + range(request.start.value_or(0), request.count) +
                         " do not exist, " + in_quotes(request.device) + " has columns " +
                         range(0, total) +
                         (too_many ? "; compile for a device with more columns"
                                   : "; leave out start_column")};
    const std::lock_guard lock(book().mutex);
    auto& users = book().users;
    OtherProcesses others(request.device);
    const auto take = [&](uint64_t start) {
        return others.take(start, request.count, request.shared);
    };
    std::optional<uint64_t> chosen;
    if (request.start) {
        if (fit(users, request, *request.start) != Fit::taken && take(*request.start))
            chosen = request.start;
    } else {
        for (const Fit wanted : {Fit::free, Fit::shared})
            for (uint64_t s = 0; !chosen && s + request.count <= total; ++s)
                if (fit(users, request, s) == wanted && take(s)) chosen = s;
    }
    if (!chosen) return no_fit(users, request, total, others);
    const uint64_t id = book().next_id++;
    const auto start = static_cast<uint32_t>(*chosen);
    users.push_back({id, request.device, request.user, start, request.count, request.shared,
                     others.take_file()});
    ColumnReservation reservation(id, start, request.count);
    reservation.fault_ = others.fault();
    return reservation;
}

std::string columns_file(const std::string& device) {
    const char* const named = std::getenv("XDG_RUNTIME_DIR");
    std::string path = named && *named == '/' ? named : "/tmp";
    path += "/vartml-columns-";
    // The name is the model's: what it says is no path.
    for (const char c : device.substr(0, 64)) {
        const bool is_plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        path += is_plain ? c : '_';
    }
    return path;
}

ColumnReservation::ColumnReservation(ColumnReservation&& other) noexcept
    : id_(std::exchange(other.id_, 0)),
      start_(other.start_),
      count_(other.count_),
      fault_(std::move(other.fault_)) {}

ColumnReservation::~ColumnReservation() {
    if (id_ == 0) return;
    const std::lock_guard lock(book().mutex);
    std::erase_if(book().users, [this](const User& user) { return user.id == id_; });
}

}  // namespace vartml::runtime
