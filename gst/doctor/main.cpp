// SPDX-License-Identifier: Apache-2.0
// The program vartml-pipeline, a child of `vartml doctor`: parses a line of gst-launch and tries
// the part of it that infers, in a process of its own, so that neither GStreamer nor a fault of a
// plugin gets into the doctor.
//
// usage: vartml-pipeline LINE      JSON objects on descriptor 3, a line each; see lines.h
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gst/doctor/lines.h"
#include "gst/doctor/parse.h"
#include "gst/doctor/trial.h"

int main(int argc, char** argv) {
    using namespace vartml::gst::doctor;
    if (argc != 2) {
        std::fputs("usage: vartml-pipeline LINE\n", stderr);
        return 2;
    }
    ::setenv("LC_ALL", "C", 1);  // the names are read out of GStreamer's sentences
    ::unsetenv("LANGUAGE");
    gst_init(nullptr, nullptr);
    GstElement* bin = parse_line(argv[1]);
    if (!bin) {
        write_end("none");
        return 0;
    }
    for (GList* l = g_list_last(GST_BIN_CHILDREN(bin)); l; l = l->prev)
        write_element(GST_ELEMENT(l->data));
    try_inference(bin);
    // Without the destructors of whatever the elements loaded: all is said.
    ::_exit(0);
}
