// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/worker.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <vartml/log.h>
#include <vartml/processors.h>

#include "gst/fleet/share.h"
#include "gst/fleet/values.h"

namespace vartml::fleet {

volatile std::sig_atomic_t drain = 0;

namespace {

// A lease is renewed three times within its life, and its owner stops a tenth of it before another
// may take it: two clocks that count seconds differ by less.
constexpr int64_t renewals = 3, safety_part = 10, waits = 6, looks = 30;
constexpr int64_t reopen_after = 10;  // leases: what was missed, whatever the cause, is told then
constexpr int most_tries = 3;
constexpr unsigned most_failures = 3;
constexpr int64_t avoid_ms = 60000, look_ms = 50;
constexpr size_t longest_said = 1 << 20;  // a picture
constexpr int64_t note_every_ms = 1000;   // of a camera whose program prints much

std::string dump(const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void complain(const Error& error) {
    log(LogLevel::error, "worker", error.message, true);
}

}  // namespace

Worker::Worker(WorkerSettings settings)
    : settings_(std::move(settings)),
      capacity_(settings_.capacity, settings_.p95_ms),
      models_(settings_.store) {}

Result<std::unique_ptr<Worker>> Worker::open(WorkerSettings settings) {
    settings.store.name = "vartml worker " + settings.name;
    settings.store.wait_ms = settings.ttl_ms / waits;
    std::unique_ptr<Worker> self(new Worker(std::move(settings)));
    const WorkerSettings& s = self->settings_;
    if (!s.health.empty()) {
        auto health = Health::open(s.health);
        if (!health) return health.error();
        self->health_ = std::move(*health);
    }
    auto store = Store::open(s.store);
    if (!store) return store.error();
    self->store_ = std::move(*store);
    struct Row {
        const char* name;
        int64_t ttl_ms;
        std::unique_ptr<Bucket>* bucket;
        std::unique_ptr<Watch>* watch;
    };
    std::unique_ptr<Bucket> only_read;
    for (const Row& row : {Row{"cameras", 0, &only_read, &self->cameras_},
                           Row{"leases", 0, &self->leases_, &self->known_leases_},
                           Row{"workers", s.ttl_ms, &self->workers_, &self->known_workers_},
                           Row{"status", 0, &self->status_, nullptr}}) {
        auto bucket = self->store_->bucket(row.name, row.ttl_ms);
        if (!bucket) return bucket.error();
        *row.bucket = std::move(*bucket);
        if (!row.watch) continue;
        auto watch = self->store_->watch(row.name);
        if (!watch) return watch.error();
        *row.watch = std::move(*watch);
    }
    self->reopen_ms_ = boot_ms() + reopen_after * s.ttl_ms;
    if (s.talks)
        if (auto done = self->store_->listen(std::string(picture_subject) + '>'); !done)
            return done.error();
    return self;
}

void Worker::note(const std::string& camera, const char* state, const std::string& reason) {
    const auto owned = own_.find(camera);
    const nlohmann::json value = {{"worker", settings_.name},
                                  {"state", state},
                                  {"reason", reason},
                                  {"epoch", owned == own_.end() ? 0 : owned->second.epoch}};
    [[maybe_unused]] const auto put = status_->put(camera, dump(value));  // only shown
}

void Worker::announce() {
    double worst_ms = 0;
    const int64_t now_ms = boot_ms();
    const double seconds = double(std::max<int64_t>(now_ms - announced_ms_, 1)) / 1000;
    announced_ms_ = now_ms;
    nlohmann::json load = nlohmann::json::object();
    for (auto& [camera, owned] : own_) {
        // A frame that is skipped has its result never.
        worst_ms = std::max(worst_ms,
                            owned.skips ? std::numeric_limits<double>::infinity() : owned.p95_ms);
        const double cpu_s = owned.guard.cpu_s();
        load[camera] = {{"cpu", (cpu_s - std::exchange(owned.cpu_s, cpu_s)) / seconds}};
        if (settings_.talks)
            load[camera].update({{"frames_per_s", owned.frames_per_s}, {"p95_ms", owned.p95_ms}});
    }
    const double cpu_s = this->cpu_s();
    const double cpu = (cpu_s - std::exchange(announced_cpu_s_, cpu_s)) / seconds;
    const size_t before = capacity_.now();
    capacity_.report(own_.size(), worst_ms, boot_ms());
    if (capacity_.now() != before)
        log_event(settings_.name, "capacity", "", 0, std::to_string(capacity_.now()));
    const nlohmann::json line = {{"capacity", capacity_.now()},
                                 {"cameras", own_.size()},
                                 {"cpu", cpu},
                                 {"load", load},
                                 {"version", VARTML_PLUGIN_VERSION}};
    announced_ = workers_->put(settings_.name, dump(line));
    ready_ = announced_.has_value();
}

// The lease again, for as long as it lasts from now on. `busy`: it is lost.
Result<void> Worker::renew_one(const std::string& camera, Owned& owned) {
    int64_t sent_ms = boot_ms();
    auto renewed = leases_->update(camera, settings_.name, owned.revision);
    // More than once: a broker of several may answer with what it had a moment ago.
    for (int i = 0; i < most_tries && !renewed && renewed.error().code == ErrorCode::busy; ++i) {
        const auto now = leases_->get(camera);
        if (!now) return now.error();
        sent_ms = boot_ms();
        if (!*now)  // somebody removed it, and nobody else has it yet
            renewed = leases_->create(camera, settings_.name);
        else if ((*now)->value == settings_.name)  // our own renewal, whose answer was lost
            renewed = leases_->update(camera, settings_.name, (*now)->revision);
        else
            break;
    }
    if (!renewed) return renewed.error();
    if (boot_ms() >= owned.until_ms) {
        release(camera, *renewed);
        return Error{ErrorCode::busy, "its guard has ended the program"};
    }
    owned.revision = *renewed;
    owned.until_ms = sent_ms + settings_.ttl_ms - settings_.ttl_ms / safety_part;
    owned.guard.renew(owned.until_ms);
    return {};
}

// Renews every lease, those first that end first, or learns that it is lost. While the broker does
// not answer, nothing is known, and each guard ends its program when its lease does.
void Worker::renew() {
    std::vector<std::pair<int64_t, std::string>> order;
    for (const auto& [camera, owned] : own_) order.emplace_back(owned.until_ms, camera);
    std::ranges::sort(order);
    silent_ = false;
    for (const auto& [until_ms, camera] : order) {
        if (silent_ = !store_->connected(); silent_) break;
        const auto renewed = renew_one(camera, own_.at(camera));
        if (renewed) continue;
        if (silent_ = renewed.error().code != ErrorCode::busy; silent_) break;
        lose(camera, "another worker has it");
    }
    ready_ = ready_ && !silent_;
    if (!silent_ || own_.empty()) return;
    // No broker listens anywhere: nobody else can take a camera. What does not answer at all may be
    // on the other side of a broken network, where others take them.
    const int64_t asked_ms = boot_ms();
    if (!store_->all_refuse()) return;
    for (auto& [camera, owned] : own_) {
        if (boot_ms() >= owned.until_ms) continue;
        owned.until_ms = asked_ms + settings_.ttl_ms - settings_.ttl_ms / safety_part;
        owned.guard.renew(owned.until_ms);
    }
}

void Worker::lose(const std::string& camera, const char* why) {
    const auto owned = own_.find(camera);
    if (owned == own_.end()) return;
    ++lost_;
    log_event(settings_.name, "lost", camera, owned->second.epoch, why);
    own_.erase(owned);  // its guard sees the end of its input, and ends the program at once
}

// Does not wait: many at once must not keep the others' leases waiting.
void Worker::give_back(Owned& owned, const char* why) {
    if (!std::exchange(owned.given_back, why)) owned.guard.stop();
}

bool Worker::avoids(const std::string& camera, uint64_t revision) const {
    const auto found = avoided_.find(camera);
    return found != avoided_.end() && found->second.camera == revision &&
           boot_ms() < found->second.until_ms;
}

// What a camera's program wrote.
void Worker::hear(Owned& owned, const std::string& line) {
    const auto said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) return;
    if (said.contains("picture"))
        for (const std::string& reply : std::exchange(owned.asked, {})) store_->answer(reply, line);
    owned.frames_per_s = said.value("frames_per_s", owned.frames_per_s);
    owned.p95_ms = said.value("p95_ms", owned.p95_ms);
    owned.skips = said.value("skips", owned.skips);
    if (const std::string state = said.value("state", ""), why = said.value("reason", "");
        !state.empty())
        owned.line = owned.last_line = state + (why.empty() ? "" : ": " + why);
}

void Worker::serve_pictures() {
    while (const auto question = store_->heard()) {
        const auto owned =
            own_.find(question->subject.substr(std::string_view(picture_subject).size()));
        if (owned == own_.end()) continue;  // another worker answers
        owned->second.asked.push_back(question->reply);
        owned->second.guard.say(dump({{"picture", true}}));
    }
}

void Worker::listen(Owned& owned) {
    if (settings_.talks) {
        for (const std::string& line : owned.guard.lines(longest_said)) hear(owned, line);
    } else if (auto line = owned.guard.last_line()) {
        owned.last_line = *line;
        owned.line = std::move(line);
    }
}

void Worker::reap() {
    std::vector<std::pair<std::string, int>> ended;
    for (auto& [camera, owned] : own_) {
        listen(owned);
        // A broker that is away costs a wait for each line, which the leases do not have.
        if (owned.line && boot_ms() >= owned.note_from_ms && store_->connected()) {
            note(camera, "running", *std::exchange(owned.line, std::nullopt));
            owned.note_from_ms = boot_ms() + note_every_ms;
        }
        if (const auto status = owned.guard.ended()) {
            listen(owned);  // what it said at its end
            ended.emplace_back(camera, *status);
        }
    }
    for (const auto& [camera, status] : ended) {
        const uint64_t revision = own_.at(camera).camera, lease = own_.at(camera).revision;
        // Not its own end: the guard's, because the lease is over.
        if (boot_ms() >= own_.at(camera).until_ms) {
            lose(camera, "the lease ended");
            continue;
        }
        if (const char* why = own_.at(camera).given_back) {
            // Free only now: the next one starts after this one has stopped.
            release(camera, lease);
            note(camera, "free", why);
            own_.erase(camera);
            continue;
        }
        Avoided& avoided = avoided_[camera];
        if (avoided.camera != revision) avoided = {revision, 0, 0};
        std::string why = "its program ended with status " + std::to_string(status);
        if (const std::string& said = own_.at(camera).last_line; !said.empty())
            why += "; it said '" + said + "'";
        if (status == 0) {  // a file: it is done until it is changed
            avoided.until_ms = INT64_MAX;
            note(camera, "ended", std::to_string(revision));
        } else {
            ++failed_;
            const bool often = ++avoided.failures >= most_failures;
            avoided.until_ms = often ? boot_ms() + avoid_ms : 0;
            if (often) avoided.failures = 0;
            note(camera, often ? "failed" : "free", why);
        }
        release(camera, lease);
        own_.erase(camera);
    }
}

// Never deletes: between looking and deleting the lease could have become another worker's.
void Worker::release(const std::string& camera, uint64_t revision) {
    [[maybe_unused]] const auto freed = leases_->update(camera, "", revision);
}

std::optional<std::string> Worker::input_of(const std::string& camera, const Watch::Seen& entry) {
    auto json = nlohmann::json::parse(entry.value, nullptr, false);
    if (!json.is_object()) json = nlohmann::json::object();
    json["camera"] = camera;
    const auto model = json.find("model");
    if (model == json.end() || !model->is_string()) return dump(json);
    const auto path = models_.find(model->get<std::string>());
    if (!path) return std::nullopt;
    if (*path) {
        *model = **path;
        return dump(json);
    }
    Avoided& avoided = avoided_[camera];
    avoided = {entry.revision, 0, boot_ms() + avoid_ms};
    complain(path->error());
    const auto owned = own_.find(camera);
    if (owned != own_.end())
        owned->second.line = "the model before runs: " + path->error().message;
    else
        note(camera, "free", path->error().message);
    return std::nullopt;
}

// Whether its model alone is another, and its program goes on with the new one, or as it was until
// the new one is here.
bool Worker::swap_model(const std::string& camera, Owned& owned, const Watch::Seen& now) {
    if (!settings_.talks) return false;
    auto before = nlohmann::json::parse(owned.value, nullptr, false);
    auto after = nlohmann::json::parse(now.value, nullptr, false);
    if (!before.is_object() || !after.is_object() || !before.contains("model") ||
        !after.contains("model"))
        return false;
    before.erase("model");
    after.erase("model");
    if (after != before) return false;
    if (avoids(camera, now.revision)) return true;  // the new one cannot be had; the old one runs
    const auto input = input_of(camera, now);
    if (!input) return true;
    owned.guard.say(dump({{"model", nlohmann::json::parse(*input)["model"]}}));
    owned.camera = now.revision;
    owned.value = now.value;
    log_event(settings_.name, "swap", camera, owned.epoch);
    return true;
}

// An owner renews its lease before it is over. So one whose revision has been the same for its
// whole life, by the clock of the worker that looks, is nobody's any more, whatever the broker's
// time of day is. While a worker was not connected it saw no renewal, and one that finds no broker
// anywhere goes on without: from a new connection on all count anew.
std::optional<uint64_t> Worker::open_lease(const std::string& camera) const {
    const auto found = known_leases_->entries().find(camera);
    const int64_t now_ms = boot_ms();
    if (found == known_leases_->entries().end()) {  // or its broker has forgotten all
        if (connected_ms_ && now_ms < connected_ms_ + settings_.ttl_ms) return std::nullopt;
        return 0;
    }
    const Watch::Seen& lease = found->second;
    const bool over = now_ms >= std::max(lease.since_ms, connected_ms_) + settings_.ttl_ms;
    if (!lease.value.empty() && !over) return std::nullopt;
    return lease.revision;
}

bool Worker::take(const std::string& camera, const Watch::Seen& entry, uint64_t lease_before) {
    const auto status = status_->get(camera);
    if (status && *status) {
        const std::string& said = (*status)->value;
        if (text_of(said, "state") == "ended" &&
            text_of(said, "reason") == std::to_string(entry.revision)) {
            avoided_[camera] = {entry.revision, 0, INT64_MAX};
            return false;
        }
    }
    const auto input = input_of(camera, entry);
    if (!input) return false;
    if (!store_->connected() || store_->reconnects() != reconnects_) return false;
    const int64_t sent_ms = boot_ms();
    const auto lease = lease_before ? leases_->update(camera, settings_.name, lease_before)
                                    : leases_->create(camera, settings_.name);
    if (!lease) {
        // Another was faster, of which the broker tells at once. Or it has not told for long.
        if (lease.error().code == ErrorCode::busy)
            reopen_ms_ = std::min(reopen_ms_, boot_ms() + settings_.ttl_ms);
        return false;
    }
    auto json = nlohmann::json::parse(*input, nullptr, false);
    json["epoch"] = *lease;
    const int64_t until_ms = sent_ms + settings_.ttl_ms - settings_.ttl_ms / safety_part;
    auto guard = Guard::start({.worker = settings_.name,
                               .camera = camera,
                               .epoch = *lease,
                               .until_ms = until_ms,
                               .program = settings_.program,
                               .input = dump(json),
                               .talks = settings_.talks});
    if (!guard) {
        complain(guard.error());
        release(camera, *lease);
        avoided_[camera] = {entry.revision, 0, boot_ms() + avoid_ms};
        return false;
    }
    ++taken_;
    own_.emplace(camera,
                 Owned{*lease, *lease, entry.revision, until_ms, std::move(*guard), entry.value});
    note(camera, "running", "");
    return true;
}

// Takes in what the broker told.
void Worker::follow() {
    const uint64_t count = store_->reconnects();
    const bool anew = count != std::exchange(reconnects_, count);
    if (anew) connected_ms_ = boot_ms();
    const bool reopen = store_->connected() && (anew || boot_ms() >= reopen_ms_);
    bool opened = true;
    for (Watch* const watch : {cameras_.get(), known_leases_.get(), known_workers_.get()}) {
        if (reopen && opened) opened = bool(watch->reopen());
        watch->update();
    }
    if (reopen)
        reopen_ms_ =
            boot_ms() + (opened ? reopen_after * settings_.ttl_ms : settings_.ttl_ms / renewals);
}

void Worker::look() {
    follow();
    if (ready_) balance();
}

// What lies in the broker's lists, of which it tells one after another.
bool Worker::knows_all() const {
    return cameras_->complete() && known_leases_->complete() && known_workers_->complete();
}

void Worker::balance() {
    if (!knows_all()) return;
    const auto& cameras = cameras_->entries();
    std::vector<std::string> names{settings_.name};
    std::vector<size_t> capacities{capacity_.now()};
    for (const auto& [name, entry] : known_workers_->entries()) {
        if (name == settings_.name) continue;
        if (boot_ms() >= std::max(entry.since_ms, connected_ms_) + settings_.ttl_ms) continue;
        names.push_back(name);
        capacities.push_back(count_of(entry.value, "capacity"));
    }
    fleet_workers_ = names.size();
    share_ = std::min(capacity_.now(), fair_share(cameras.size(), capacities));
    std::set<std::string> mine;
    for (auto& [camera, owned] : own_) {
        const auto now = cameras.find(camera);
        if (owned.given_back)
            continue;
        else if (now == cameras.end())
            give_back(owned, "it was removed");
        else if (now->second.revision != owned.camera && !swap_model(camera, owned, now->second))
            give_back(owned, "it was changed");
        else
            mine.insert(camera);
    }
    if (!settings_.once)
        for (const std::string& camera : surplus(settings_.name, mine, share_))
            give_back(own_.at(camera), "another worker has more room");
    if (own_.size() >= share_) return;
    std::vector<std::string> free;
    for (const auto& [camera, entry] : cameras)
        if (!own_.contains(camera) && !avoids(camera, entry.revision) && open_lease(camera))
            free.push_back(camera);
    // A renewal must not wait for many new cameras.
    const int64_t enough_ms = boot_ms() + settings_.ttl_ms / renewals;
    for (const std::string& camera : order_to_take(settings_.name, names, free)) {
        if (own_.size() >= share_ || boot_ms() > enough_ms || drain) break;
        if (const auto lease = open_lease(camera)) take(camera, cameras.at(camera), *lease);
    }
}

void Worker::tick() {
    reap();
    renew();
    ready_ = !silent_ && store_->connected();
    if (ready_) announce();
    look();
    publish_health();
}

// Of this process, its guards and their programs.
double Worker::cpu_s() const {
    double sum = cpu_s_of(RUSAGE_SELF) + cpu_s_of(RUSAGE_CHILDREN);
    for (const auto& [camera, owned] : own_) sum += owned.guard.cpu_s();
    return sum;
}

void Worker::publish_health() {
    if (!health_) return;
    const auto type = [](const std::string& name, const char* type) {
        return "# TYPE vartml_worker_" + name + ' ' + type + '\n';
    };
    const auto line = [&](const std::string& name, const char* of_type, const auto& value) {
        return type(name, of_type) + "vartml_worker_" + name + ' ' + std::to_string(value) + '\n';
    };
    std::string by_camera = type("camera_cpu_seconds_total", "counter");
    for (const auto& [camera, owned] : own_)  // a key has no character that would be escaped
        by_camera += "vartml_worker_camera_cpu_seconds_total{camera=\"" + camera + "\"} " +
                     std::to_string(owned.guard.cpu_s()) + '\n';
    health_->publish(
        ready_,
        line("cameras", "gauge", own_.size()) + line("capacity", "gauge", capacity_.now()) +
            line("share", "gauge", share_) +
            line("fleet_cameras", "gauge", cameras_->entries().size()) +
            line("fleet_workers", "gauge", fleet_workers_) +
            line("taken_total", "counter", taken_) + line("lost_total", "counter", lost_) +
            line("failed_total", "counter", failed_) +
            line("reconnects_total", "counter", reconnects_) +
            line("cpu_seconds_total", "counter", cpu_s()) + by_camera +
            line("cpu_quota", "gauge", processor_quota()) +
            line("cpu_throttled_seconds_total", "counter", processor_throttled_s()),
        3 * settings_.ttl_ms);
}

void Worker::drain_all() {
    [[maybe_unused]] const auto gone = workers_->remove(settings_.name);
    int64_t renewed_ms = boot_ms();
    for (auto& [camera, owned] : own_) give_back(owned, "its worker was drained");
    for (reap(); !own_.empty(); reap()) {
        if (boot_ms() - renewed_ms > settings_.ttl_ms / renewals) {
            renew();
            renewed_ms = boot_ms();
        }
        ::poll(nullptr, 0, look_ms);
    }
}

int Worker::run() {
    log_event(settings_.name, "begin", "", 0);
    int64_t ready_ms = boot_ms();  // the last time it was
    while (!drain) {
        const int64_t begun_ms = boot_ms();
        tick();
        if (ready_) ready_ms = boot_ms();
        int64_t look_at_ms = boot_ms() + settings_.ttl_ms / looks;
        // Brokers that choose a new one among them are silent for a moment, in which leases run
        // out.
        const int64_t next_ms =
            silent_ ? boot_ms() + settings_.ttl_ms / looks : begun_ms + settings_.ttl_ms / renewals;
        if (settings_.once && own_.empty() &&
            (ready_ ? knows_all() && !models_.take_awaited()
                    : taken_ > 0 || boot_ms() - ready_ms > settings_.ttl_ms))
            break;
        while (!drain && boot_ms() < next_ms) {
            const size_t before = own_.size();
            ::poll(nullptr, 0, look_ms);
            reap();
            serve_pictures();
            if (own_.size() < before) break;  // its place is free
            if (boot_ms() < look_at_ms) continue;
            look();
            look_at_ms = boot_ms() + settings_.ttl_ms / looks;
        }
    }
    drain_all();
    // Their ends cost processor time too, which the last line counts.
    for (auto* const watch : {&cameras_, &known_leases_, &known_workers_}) watch->reset();
    for (auto* const bucket : {&leases_, &workers_, &status_}) bucket->reset();
    store_.reset();
    health_.reset();
    log_event(settings_.name, "end", "", 0, "", cpu_s());
    if (!settings_.once || taken_ > 0) return 0;
    if (!drain && !ready_)
        complain(announced_ ? Error{ErrorCode::io, "the broker went away"} : announced_.error());
    else if (!drain)
        complain({ErrorCode::not_found,
                  "--once: found no camera that is free; vartml cameras list shows them"});
    return 1;
}

}  // namespace vartml::fleet
