// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/cameras.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <vartml/log.h>

#include "gst/fleet/fleet.h"
#include "gst/fleet/models.h"
#include "gst/fleet/page.h"
#include "gst/support/address.h"

namespace vartml::fleet {
namespace {

using nlohmann::json;

constexpr unsigned watch_s = 1;

std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

int fail(const Error& error) {
    log(LogLevel::error, "cameras", error.message, true);
    return error.code == ErrorCode::invalid_argument ? 2 : 1;
}

Error wrong(const std::string& sentence) {
    return {ErrorCode::invalid_argument, sentence};
}

Result<void> check(const std::string& camera, const json& value, const std::string& where) {
    if (!is_key(camera))
        return wrong(where + "camera name '" + camera +
                     "' is not made of letters, digits, '-', '_', '.', '=' and '/'");
    const auto uri = value.is_object() ? value.find("uri") : value.end();
    if (!value.is_object() || uri == value.end() || !uri->is_string())
        return wrong(where + "camera " + camera + " has no \"uri\"; write {\"uri\": \"rtsp://…\"}");
    const auto address = gst::parse_address(uri->get<std::string>());
    if (!address) return wrong(where + "camera " + camera + ": " + address.error().message);
    return {};
}

// A line of JSON each: {"camera": NAME, "uri": …}; "-": standard input.
Result<std::vector<std::pair<std::string, json>>> read_list(const std::string& file) {
    std::ifstream opened(file == "-" ? "/dev/stdin" : file);
    if (!opened.is_open()) return wrong(file + ": cannot be read");
    std::vector<std::pair<std::string, json>> list;
    size_t number = 0;
    for (std::string line; std::getline(opened, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == line.npos) continue;
        const std::string where = file + ", line " + std::to_string(number) + ": ";
        json value = json::parse(line, nullptr, false);
        if (!value.is_object() || !value.contains("camera") || !value["camera"].is_string())
            return wrong(where + "is not {\"camera\": NAME, \"uri\": ADDRESS}");
        const std::string camera = value["camera"];
        value.erase("camera");
        if (auto good = check(camera, value, where); !good) return good.error();
        list.emplace_back(camera, std::move(value));
    }
    if (opened.bad()) return wrong(file + ": cannot be read to its end, nothing is stored");
    return list;
}

// One line, whatever was written into a bucket; C1 controls are 0xc2 and a byte below 0xa0.
std::string plain(std::string text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool c1 =
            byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
        if (byte < 0x20 || byte == 0x7f || c1) text[i] = ' ';
        if (c1) text[i + 1] = ' ';
    }
    return text;
}

std::string column(const std::string& text, size_t width) {
    std::string padded = plain(text);
    padded.append(width - std::min(width, padded.size()), ' ');
    return padded + ' ';
}

// Of each camera: who has it, and how it is; of each worker: what it has.
std::string table(const FleetState& fleet, bool as_json) {
    std::string text;
    if (!as_json)
        text =
            "camera            worker            state     frames/s   p95 ms    cpu  address  "
            "reason\n";
    for (const CameraState& c : fleet.cameras) {
        if (as_json) {
            text += dump({{"camera", c.camera},
                          {"worker", c.worker},
                          {"state", c.state},
                          {"uri", c.uri},
                          {"frames_per_s", c.frames_per_s},
                          {"p95_ms", c.p95_ms},
                          {"cpu", c.cpu},
                          {"reason", c.reason}}) +
                    "\n";
            continue;
        }
        char figures[64];
        std::snprintf(figures, sizeof figures, "%8.1f %8.1f %6.2f  ", c.frames_per_s, c.p95_ms,
                      c.cpu);
        text += column(c.camera, 17) + column(c.worker.empty() ? "-" : c.worker, 17) +
                column(c.state, 9) + figures + plain(c.uri) + "  " + plain(c.reason) + '\n';
    }
    if (as_json || fleet.workers.empty()) return text;
    text += "\nworker            cameras  capacity  frames/s   p95 ms    cpu\n";
    for (const WorkerState& w : fleet.workers) {
        char figures[96];
        std::snprintf(figures, sizeof figures, "%7zu %9zu %9.1f %8.1f %6.2f\n", w.cameras,
                      w.capacity, w.frames_per_s, w.p95_ms, w.cpu);
        text += column(w.worker, 17) + figures;
    }
    return text;
}

int show(Buckets& buckets, bool as_json, bool again) {
    const bool terminal = ::isatty(STDOUT_FILENO);
    std::string before;
    do {
        if (auto done = buckets.look(); !done) return fail(done.error());
        const auto fleet = read_fleet(buckets);
        if (!fleet) return fail(fleet.error());
        const std::string text = table(*fleet, as_json);
        if (text != before) {
            if (again && terminal) std::fputs("\033[H\033[2J", stdout);
            std::fputs(text.c_str(), stdout);
            std::fflush(stdout);
            if (std::ferror(stdout))  // nobody reads it any more, or there is no room
                return fail({vartml::ErrorCode::io, "standard output cannot be written"});
            before = text;
        }
        if (again) ::sleep(watch_s);
    } while (again);
    return 0;
}

int remove(const Buckets& buckets, const std::string& camera) {
    const auto found =
        buckets.cameras ? buckets.cameras->get(camera) : Result<std::optional<Entry>>(std::nullopt);
    if (!found) return fail(found.error());
    if (!*found)
        return fail({ErrorCode::not_found,
                     "camera " + camera + " is not in the list; see vartml cameras list"});
    if (auto done = buckets.cameras->remove(camera); !done) return fail(done.error());
    if (buckets.status) {
        [[maybe_unused]] const auto forgotten = buckets.status->remove(camera);
    }
    return 0;
}

}  // namespace

int run_cameras(const StoreSettings& settings, const std::string& text) {
    const json request = json::parse(text, nullptr, false);
    const std::string action = request.value("action", ""), name = request.value("name", "");
    if (action == "page") return serve_page(settings, name);
    std::vector<std::pair<std::string, json>> list;
    if (action == "add") {
        json value = request.value("value", json::object());
        if (auto good = check(name, value, ""); !good) return fail(good.error());
        if (const std::string file = request.value("upload", ""); !file.empty()) {
            auto stored = store_model(settings, file);
            if (!stored) return fail(stored.error());
            value["model"] = *stored;
        }
        list.emplace_back(name, value);
    } else if (action == "import") {
        auto read = read_list(name);
        if (!read) return fail(read.error());
        list = std::move(*read);
    } else if (action == "remove" && !is_key(name)) {
        return fail(wrong("camera name '" + name + "' is none"));
    }
    auto buckets = Buckets::open(settings);
    if (!buckets) return fail(buckets.error());
    if (action == "list" || action == "watch")
        return show(*buckets, request.value("json", false), action == "watch");
    if (action == "remove") return remove(*buckets, name);
    if (auto done = buckets->make(); !done) return fail(done.error());
    for (const auto& [camera, value] : list)
        if (auto put = buckets->cameras->put(camera, dump(value)); !put) return fail(put.error());
    return 0;
}

}  // namespace vartml::fleet
