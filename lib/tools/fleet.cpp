// SPDX-License-Identifier: Apache-2.0
// `vartml worker` and `vartml cameras`: check the command line, and become vartml-worker, which
// links libnats.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <vartml/processors.h>

#include "lib/base/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/doctor/doctor.h"

namespace vartml::tools {
namespace {

struct Broker {
    std::string servers = "nats://127.0.0.1:4222", credentials, ca;
    int replicas = 1;
};

void add_broker(CLI::App& app, Broker& broker) {
    // given: the environment variables of NATS's own command line
    app.add_option("--nats", broker.servers, "servers of NATS, with commas between them")
        ->type_name("URL")
        ->envname("NATS_URL")
        ->capture_default_str();
    app.add_option("--credentials", broker.credentials, "the user's credentials (.creds)")
        ->type_name("FILE")
        ->envname("NATS_CREDS");
    app.add_option("--tls-ca", broker.ca, "certificates (PEM) that the servers are checked by")
        ->type_name("FILE")
        ->envname("NATS_CA");
    app.add_option("--replicas", broker.replicas, "servers that keep a bucket that is made anew")
        ->type_name("N")
        ->check(within(1, 5))
        ->capture_default_str();
}

nlohmann::json request_of(const Broker& broker) {
    return {{"credentials", broker.credentials}, {"ca", broker.ca}, {"replicas", broker.replicas}};
}

int fail(const Error& error) {
    print_error(error);
    return error.code == ErrorCode::invalid_argument ? exit_usage : exit_fault;
}

// What the programs of the fleet are built with, from libnats-dev.
constexpr char with_nats[] = "-Dgst=enabled -Dnats=enabled";

// This process goes on as the child, which has its terminal, its signals and its standard streams.
// The broker's address goes in its environment: it may hold a password, and other users see command
// lines.
int become(const Broker& broker, const nlohmann::json& request) {
    const std::string program = doctor::find_gst_program("vartml-worker");
    if (program.empty())
        return fail({ErrorCode::not_found,
                     "the program vartml-worker is not beside " + doctor::own_program() + "; " +
                         doctor::how_to_get_gst_program("vartml-worker", with_nats)});
    ::setenv("VARTML_COMPILER", doctor::own_program().c_str(), 0);
    ::setenv("NATS_URL", broker.servers.c_str(), 1);
    std::fflush(nullptr);
    const std::string text = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    ::execl(program.c_str(), program.c_str(), text.c_str(), nullptr);
    return fail(system_error(program, "run", errno));
}

std::string host_name() {
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    return name;
}

struct Capacity {
    size_t most = 0;
    double p95_ms = 0;  // 0: it stays
};

Result<Capacity> capacity_of(const std::string& text, const std::string& file) {
    constexpr size_t most_bytes = size_t{16} << 20;
    const auto wrong = [](const std::string& sentence) {
        return Error{ErrorCode::invalid_argument, sentence + "; see vartml worker --help"};
    };
    if (text != "auto") {
        size_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || end != text.data() + text.size() || number < 1 ||
            number > 100000)
            return wrong("--capacity: is '" + text + "', expected 1 to 100000, or auto");
        if (!file.empty()) return wrong("--density is for --capacity auto");
        return Capacity{number};
    }
    if (file.empty())
        return wrong("--capacity auto needs --density, which vartml density --apart --json writes");
    auto content = read_file(file, most_bytes);
    if (!content) return content.error();
    const auto json = nlohmann::json::parse(*content, nullptr, false);
    Capacity capacity;
    bool is_apart = false;
    unsigned threads = 0;
    try {
        capacity = {json.at("density").get<size_t>(), json.at("p95_limit_ms").get<double>()};
        is_apart = json.value("apart", false);
        threads = json.value("machine", nlohmann::json::object()).value("threads", 0u);
    } catch (const nlohmann::json::exception&) {  // of somebody else
        return wrong("--density: " + file + " is not what vartml density --json writes");
    }
    if (!is_apart)
        return wrong("--density: " + file +
                     " is of streams that share a model; measure with --apart, because each camera "
                     "has a process of its own");
    // A quota of control groups counts: what a whole machine carries, a part of it does not.
    if (threads != usable_processors())
        return wrong("--density: " + file + " is of " + std::to_string(threads) +
                     " processors, and this process may use " +
                     std::to_string(usable_processors()) + "; measure where the worker runs");
    if (capacity.most == 0)
        return wrong("--density: " + file +
                     " says that this machine carries no stream; let --p95 "
                     "be longer, or take a smaller model");
    return capacity;
}

}  // namespace

int worker(int argc, const char* const* argv) {
    Broker broker;
    std::string name, health, publish;
    std::vector<std::string> program;
    std::string capacity_text, density_file;
    double ttl_s = 10;
    bool once = false;
    CLI::App app("Takes cameras of a fleet by leases, and runs a pipeline for each.",
                 "vartml worker");
    app.add_option("--capacity", capacity_text,
                   "most cameras that this worker takes; auto: as many as --density says, fewer "
                   "while they are later than that")
        ->type_name("N|auto")
        ->required();
    app.add_option("--density", density_file,
                   "for --capacity auto: what vartml density --apart --json wrote on this machine")
        ->type_name("FILE");
    add_broker(app, broker);
    app.add_option("--name", name, "of this worker, which no other has [HOST-PID]")
        ->type_name("NAME");
    app.add_option(
           "--ttl", ttl_s,
           "seconds after which a camera of a worker that is gone is free; the same for all "
           "workers, taken when the buckets are made")
        ->type_name("S")
        ->check(within(1., 3600.))
        ->capture_default_str();
    app.add_option("--publish", publish,
                   "properties of vartmlpublish, such as 'method=mqtt address=broker'")
        ->type_name("PROPERTIES");
    app.add_option("--health", health,
                   "answer /healthz, /readyz and /metrics there, such as 127.0.0.1:9090")
        ->type_name("HOST:PORT");
    app.add_flag("--once", once, "take cameras once, and end when their programs have ended");
    app.add_option(
           "--run", program,
           "a program for each camera in place of the pipeline; the rest of the line is its "
           "arguments; it reads the camera as a line of JSON")
        ->type_name("PROGRAM ...");
    app.footer(
        "Each camera's program is a process of its own, which ends when its lease does. A line of\n"
        "JSON for each start and stop goes to standard output. SIGTERM gives all cameras back.\n"
        "Exit status: 0 drained, or all done, 1 fault, or --once found no camera, 2 usage.");
    // Its arguments may look like ours.
    const char* const* const run = std::find(argv, argv + argc, std::string_view("--run"));
    const bool has_program = run + 1 < argv + argc;
    if (has_program) program.assign(run + 1, argv + argc);
    if (const auto status = parse_arguments(app, has_program ? int(run - argv) : argc, argv))
        return *status;
    const auto capacity = capacity_of(capacity_text, density_file);
    if (!capacity) return fail(capacity.error());
    const bool talks = program.empty();
    if (capacity->p95_ms > 0 && !talks)
        return fail({ErrorCode::invalid_argument,
                     "--capacity auto is for the pipeline, which --run takes the place of; give a "
                     "number"});
    if (name.empty()) name = host_name() + "-" + std::to_string(::getpid());
    std::ranges::replace_if(
        name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-'; }, '_');
    if (program.empty()) {
        const std::string camera = doctor::find_gst_program("vartml-camera");
        if (camera.empty())
            return fail({ErrorCode::not_found,
                         "the program vartml-camera is not beside " + doctor::own_program() + "; " +
                             doctor::how_to_get_gst_program("vartml-camera", with_nats)});
        program.push_back(camera);
        if (!publish.empty()) program.push_back(publish);
    } else if (!publish.empty()) {
        return fail(
            {ErrorCode::invalid_argument,
             "--publish is for the pipeline, which --run takes the place of; leave one out"});
    }
    nlohmann::json request = request_of(broker);
    request.update({{"command", "worker"},
                    {"name", name},
                    {"capacity", capacity->most},
                    {"p95_ms", capacity->p95_ms},
                    {"talks", talks},
                    {"ttl_ms", int64_t(ttl_s * 1000)},
                    {"once", once},
                    {"health", health},
                    {"program", program}});
    return become(broker, request);
}

int cameras(int argc, const char* const* argv) {
    Broker broker;
    std::string action, name, uri, model, upload, device;
    bool as_json = false;
    CLI::App app("Changes or shows the list of cameras of a fleet.", "vartml cameras");
    app.add_option("ACTION", action,
                   "add NAME URI, remove NAME, import FILE, list, watch or page [HOST:PORT]")
        ->type_name("ACTION")
        ->required()
        ->check(
            CLI::IsMember({"add", "remove", "import", "list", "watch", "page"}).description(""));
    app.add_option("NAME", name,
                   "the camera, or for import a file with a line {\"camera\": NAME, \"uri\": URI} "
                   "each; -: standard input; for page where a browser finds it [127.0.0.1:8420]")
        ->type_name("NAME");
    app.add_option("URI", uri, "its address")->type_name("URI");
    add_broker(app, broker);
    app.add_option("--model", model, "the model that it gets, as the workers find it")
        ->type_name("MODEL");
    app.add_option("--upload", upload,
                   "for add: a model's file (.rai, .tar.gz, .onnx), which the workers get through "
                   "the broker")
        ->type_name("FILE");
    app.add_option("--device", device, "the device that runs the model")->type_name("NAME");
    app.add_flag("--json", as_json, "list and watch: a line of JSON for each camera");
    app.footer(
        "Addresses are shown without user and password. Other users of this machine see a command\n"
        "line: addresses with a password belong into a file for import.\n"
        "Exit status: 0 done, 1 fault, 2 usage.");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    const bool shows = action == "list" || action == "watch";
    if (action == "page" && name.empty()) name = "127.0.0.1:8420";
    if (name.empty() != shows)
        return fail({ErrorCode::invalid_argument, "cameras " + action +
                                                      (shows ? " takes no name" : " needs a name") +
                                                      "; see vartml cameras --help"});
    if (uri.empty() == (action == "add"))
        return fail({ErrorCode::invalid_argument,
                     "cameras " + action +
                         (action == "add" ? " needs the address" : " takes no address") +
                         "; see vartml cameras --help"});
    if (!upload.empty() && (action != "add" || !model.empty()))
        return fail(
            {ErrorCode::invalid_argument,
             "--upload is for cameras add, in place of --model; see vartml cameras --help"});
    for (const auto& [option, text] : {std::pair{"--model", &model}, {"--device", &device}})
        if (!text->empty() && action != "add")
            return fail({ErrorCode::invalid_argument,
                         std::string(option) +
                             " is for cameras add; a line of a list to import has its own; see "
                             "vartml cameras --help"});
    if (as_json && !shows)
        return fail({ErrorCode::invalid_argument,
                     "--json is for cameras list and watch; see vartml cameras --help"});
    nlohmann::json value = {{"uri", uri}};
    if (!model.empty()) value["model"] = model;
    if (!device.empty()) value["device"] = device;
    nlohmann::json request = request_of(broker);
    request.update({{"command", "cameras"},
                    {"action", action},
                    {"name", name},
                    {"value", value},
                    {"upload", upload},
                    {"json", as_json}});
    return become(broker, request);
}

}  // namespace vartml::tools
