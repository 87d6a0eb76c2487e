// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/columns.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {
namespace {

struct User {
    uint64_t id;
    std::string device, name;
    uint32_t start, count;
    bool shared;
};

struct Book {
    std::mutex mutex;         // guards what follows; a leaf lock
    std::vector<User> users;  // in the order of arrival
    uint64_t next_id = 1;
};

Book& book() {
    static Book* const instance = new Book;
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
        if (user.device != request.device) continue;
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

Error no_fit(const std::vector<User>& users, const ColumnRequest& request, uint32_t total) {
    std::string text = "create_runner: ";
    text += request.start ? "columns " + range(*request.start, request.count) + " are not free"
                          : "no " + std::to_string(request.count) + " free columns";
    text += " of the " + std::to_string(total) + " of " + in_quotes(request.device) + " for " +
            (request.shared ? "shared" : "exclusive") + " use; in use:";
    for (const User& user : users)
        if (user.device == request.device)
            text += " " + range(user.start, user.count) + (user.shared ? " shared" : " exclusive") +
                    " by " + in_quotes(user.name) + ",";
    text.pop_back();
    return {ErrorCode::busy, text};
}

}  // namespace

Result<ColumnReservation> ColumnReservation::acquire(const ColumnRequest& request) {
    const uint32_t total = columns_of(request.device);
    if (request.count > total || (request.start && *request.start > total - request.count))
        return Error{ErrorCode::invalid_argument,
                     "create_runner: columns " + range(request.start.value_or(0), request.count) +
                         " do not exist, " + in_quotes(request.device) + " has columns " +
                         range(0, total) + "; leave out start_column"};
    const std::lock_guard lock(book().mutex);
    auto& users = book().users;
    std::optional<uint64_t> chosen;
    if (request.start) {
        if (fit(users, request, *request.start) != Fit::taken) chosen = request.start;
    } else {
        for (const Fit wanted : {Fit::free, Fit::shared})
            for (uint64_t s = 0; !chosen && s + request.count <= total; ++s)
                if (fit(users, request, s) == wanted) chosen = s;
    }
    if (!chosen) return no_fit(users, request, total);
    const uint64_t id = book().next_id++;
    const auto start = static_cast<uint32_t>(*chosen);
    users.push_back({id, request.device, request.user, start, request.count, request.shared});
    return ColumnReservation(id, start, request.count);
}

ColumnReservation::ColumnReservation(ColumnReservation&& other) noexcept
    : id_(std::exchange(other.id_, 0)), start_(other.start_), count_(other.count_) {}

ColumnReservation::~ColumnReservation() {
    if (id_ == 0) return;
    const std::lock_guard lock(book().mutex);
    std::erase_if(book().users, [this](const User& user) { return user.id == id_; });
}

}  // namespace vartml::runtime
