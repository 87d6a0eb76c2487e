// SPDX-License-Identifier: Apache-2.0
// An RTSP camera on the loopback, made with gst-rtsp-server, in a process of its own.
//   rtsp_camera PORT [h264|jpeg] [tcp-only] [udp-lost] [login=USER:PASSWORD] [mounts=N]
//   [end-after=N]
// Paths are /camera, and with mounts=N /camera0 and on. Prints "ready PORT". Reads commands from
// standard input: "drop" closes all connections. Ends with its standard input.
#include <glib-unix.h>
#include <gst/rtsp-server/rtsp-server.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Options {
    std::string port = "0", codec = "jpeg", login;
    bool tcp_only = false, udp_lost = false;
    int mounts = 0, end_after = -1;
};

Options read(int argc, char** argv) {
    Options options;
    if (argc > 1) options.port = argv[1];
    for (int i = 2; i < argc; ++i) {
        const std::string word = argv[i];
        const std::string value = word.substr(word.find('=') + 1);
        if (word == "h264" || word == "jpeg") options.codec = word;
        if (word == "tcp-only") options.tcp_only = true;
        if (word == "udp-lost") options.udp_lost = true;
        if (word.starts_with("login=")) options.login = value;
        if (word.starts_with("mounts=")) options.mounts = std::atoi(value.c_str());
        if (word.starts_with("end-after=")) options.end_after = std::atoi(value.c_str());
    }
    return options;
}

// A key frame twice a second.
std::string launch_line(const Options& options) {
    const std::string encoder =
        options.codec == "jpeg" ? "jpegenc ! rtpjpegpay name=pay0"
                                : "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 "
                                  "threads=1 ! rtph264pay name=pay0 config-interval=-1";
    return "( videotestsrc is-live=true pattern=ball num-buffers=" +
           std::to_string(options.end_after) +
           " ! video/x-raw,format=I420,width=64,height=48,framerate=20/1 ! " + encoder + " )";
}

// Nothing leaves by UDP, as behind a firewall: not one packet, so a sink is shut as it comes in.
void lose_packets(GstRTSPMediaFactory*, GstRTSPMedia* media, gpointer) {
    const auto shut = [](GstBin*, GstBin*, GstElement* element, gpointer) {
        GstElementFactory* const factory = gst_element_get_factory(element);
        if (!factory || g_strcmp0(GST_OBJECT_NAME(factory), "multiudpsink") != 0) return;
        GstPad* const pad = gst_element_get_static_pad(element, "sink");
        const auto drop = [](GstPad*, GstPadProbeInfo*, gpointer) { return GST_PAD_PROBE_DROP; };
        gst_pad_add_probe(
            pad, GstPadProbeType(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST), +drop,
            nullptr, nullptr);
        gst_object_unref(pad);
    };
    GstElement* const media_bin = gst_rtsp_media_get_element(media);
    GstObject* const pipeline = gst_object_get_parent(GST_OBJECT(media_bin));
    g_signal_connect(pipeline, "deep-element-added", G_CALLBACK(+shut), nullptr);
    gst_object_unref(pipeline);
    gst_object_unref(media_bin);
}

GstRTSPMediaFactory* make_factory(const Options& options) {
    GstRTSPMediaFactory* const factory = gst_rtsp_media_factory_new();
    gst_rtsp_media_factory_set_launch(factory, launch_line(options).c_str());
    // Viewers share one picture, but where the transport is refused: the server answers 503 as long
    // as it takes down the shared one, and the other transport is asked for at once.
    gst_rtsp_media_factory_set_shared(factory, !options.tcp_only && !options.udp_lost);
    if (options.tcp_only) gst_rtsp_media_factory_set_protocols(factory, GST_RTSP_LOWER_TRANS_TCP);
    if (options.udp_lost)
        g_signal_connect(factory, "media-configure", G_CALLBACK(lose_packets), nullptr);
    if (!options.login.empty()) {
        GstRTSPPermissions* const permissions = gst_rtsp_permissions_new();
        gst_rtsp_permissions_add_role(permissions, "viewer", GST_RTSP_PERM_MEDIA_FACTORY_ACCESS,
                                      G_TYPE_BOOLEAN, TRUE, GST_RTSP_PERM_MEDIA_FACTORY_CONSTRUCT,
                                      G_TYPE_BOOLEAN, TRUE, nullptr);
        gst_rtsp_media_factory_set_permissions(factory, permissions);
        gst_rtsp_permissions_unref(permissions);
    }
    return factory;
}

void ask_for_login(GstRTSPServer* server, const std::string& login) {
    const size_t colon = login.find(':');
    GstRTSPAuth* const auth = gst_rtsp_auth_new();
    gst_rtsp_auth_set_supported_methods(auth, GST_RTSP_AUTH_DIGEST);
    GstRTSPToken* const token =
        gst_rtsp_token_new(GST_RTSP_TOKEN_MEDIA_FACTORY_ROLE, G_TYPE_STRING, "viewer", nullptr);
    gst_rtsp_auth_add_digest(auth, login.substr(0, colon).c_str(), login.substr(colon + 1).c_str(),
                             token);
    gst_rtsp_token_unref(token);
    gst_rtsp_server_set_auth(server, auth);
    g_object_unref(auth);
}

gboolean command(GIOChannel* channel, GIOCondition, gpointer server) {
    gchar* line = nullptr;
    if (g_io_channel_read_line(channel, &line, nullptr, nullptr, nullptr) != G_IO_STATUS_NORMAL)
        std::exit(0);
    if (g_str_has_prefix(line, "drop")) {
        const auto remove = [](GstRTSPServer*, GstRTSPClient*, gpointer) {
            return GST_RTSP_FILTER_REMOVE;
        };
        GList* const removed =
            gst_rtsp_server_client_filter(static_cast<GstRTSPServer*>(server), +remove, nullptr);
        g_list_free_full(removed, g_object_unref);
    }
    g_free(line);
    return G_SOURCE_CONTINUE;
}

}  // namespace

int main(int argc, char** argv) {
    gst_init(&argc, &argv);
    const Options options = read(argc, argv);
    GstRTSPServer* const server = gst_rtsp_server_new();
    gst_rtsp_server_set_address(server, "127.0.0.1");
    gst_rtsp_server_set_service(server, options.port.c_str());
    gst_rtsp_server_set_backlog(server, 128);  // many viewers come back at once
    if (!options.login.empty()) ask_for_login(server, options.login);
    GstRTSPMountPoints* const mounts = gst_rtsp_server_get_mount_points(server);
    gst_rtsp_mount_points_add_factory(mounts, "/camera", make_factory(options));
    for (int i = 0; i < options.mounts; ++i)
        gst_rtsp_mount_points_add_factory(mounts, ("/camera" + std::to_string(i)).c_str(),
                                          make_factory(options));
    g_object_unref(mounts);
    if (gst_rtsp_server_attach(server, nullptr) == 0) {
        std::fprintf(stderr, "rtsp_camera: port %s is taken\n", options.port.c_str());
        return 1;
    }
    GIOChannel* const input = g_io_channel_unix_new(0);
    g_io_add_watch(input, GIOCondition(G_IO_IN | G_IO_HUP), command, server);
    std::printf("ready %d\n", gst_rtsp_server_get_bound_port(server));
    std::fflush(stdout);
    g_main_loop_run(g_main_loop_new(nullptr, FALSE));
}
