// SPDX-License-Identifier: Apache-2.0
// vartml-live: the annotated pictures of a pipeline in a browser, with its figures, while it runs.
#include <glib-unix.h>
#include <gst/gst.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "pipelines/apps/demo/own_scene.h"
#include "pipelines/apps/live/options.h"
#include "pipelines/apps/live/player.h"
#include "pipelines/apps/live/qr_code.h"
#include "pipelines/apps/live/server.h"

namespace live {
namespace {

using vartml::Result;

// What is played and run where the command line does not say.
Result<void> fill_in(Options& options) {
    if (options.models.empty()) options.models.push_back(demo::own_model());
    if (options.input == Input::camera) return demo::check_camera(options.source);
    if (options.input != Input::scene) return {};
    options.source = options.out + "/scene.mp4";
    auto made = demo::record_scene({}, 10, options.source);
    if (!made) return made.error();
    if (made->interrupted)
        return vartml::Error{vartml::ErrorCode::io, "interrupted while the scene was made"};
    return {};
}

Result<void> run(Options options) {
    if (auto filled = fill_in(options); !filled) return filled;
    auto server = Server::create(options);
    if (!server) return server.error();
    const std::unique_ptr<GMainLoop, decltype(&g_main_loop_unref)> loop(
        g_main_loop_new(nullptr, FALSE), &g_main_loop_unref);
    std::string failure;
    auto player = Player::create(options, {.picture = [&] { (*server)->picture(); },
                                           .stopped =
                                               [&](std::string error) {
                                                   failure = std::move(error);
                                                   g_main_loop_quit(loop.get());
                                               }});
    if (!player) return player.error();
    (*server)->serve(**player);
    std::printf("open %s in a browser; Ctrl-C ends it\n", (*server)->url().c_str());
    if (const std::string address = (*server)->address(); !address.empty())
        std::printf("other devices: %s\n%s", address.c_str(),
                    isatty(STDOUT_FILENO) ? qr_text(address).c_str() : "");
    std::fflush(stdout);
    const guint interrupts[] = {g_unix_signal_add(SIGINT, GSourceFunc(+[](gpointer l) -> gboolean {
                                                      g_main_loop_quit(static_cast<GMainLoop*>(l));
                                                      return G_SOURCE_CONTINUE;
                                                  }),
                                                  loop.get()),
                                g_unix_signal_add(SIGTERM, GSourceFunc(+[](gpointer l) -> gboolean {
                                                      g_main_loop_quit(static_cast<GMainLoop*>(l));
                                                      return G_SOURCE_CONTINUE;
                                                  }),
                                                  loop.get())};
    auto playing = (*player)->play();
    if (playing) g_main_loop_run(loop.get());
    for (const guint id : interrupts) g_source_remove(id);
    if (!playing) return playing;
    if (failure.empty()) return {};
    // Our elements name what they speak of; others do not know which file or camera it is.
    const bool ours = failure.starts_with("Could not ");
    return vartml::Error{vartml::ErrorCode::io, ours ? failure : options.source + ": " + failure};
}

}  // namespace
}  // namespace live

int main(int argc, char** argv) {
    live::Options options;
    if (const int status = live::parse_options(argc, argv, options); status >= 0) return status;
    gst_init(nullptr, nullptr);
    if (auto done = live::run(std::move(options)); !done) {
        std::fprintf(stderr, "vartml-live: %s\n", done.error().message.c_str());
        return 1;
    }
    return 0;
}
