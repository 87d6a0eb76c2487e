/* SPDX-License-Identifier: Apache-2.0
 * A decoder of one's own for vartmldecode: boxes of an output [1,4+C,N] with centre, size and a
 * score per class. cc -shared -fPIC -O2 decoder.c -o decoder.so $(pkg-config --cflags vartml) … !
 * vartmlinfer model=MODEL ! vartmldecode decoder-library=./decoder.so ! … */
#include <stdio.h>
#include <stdlib.h>
#include <vartml/decoder.h>

struct decoder {
    uint32_t classes, positions;
};

static void* open_decoder(const VartmlModel* model, char* error, size_t error_bytes) {
    const VartmlOutput* out = model->outputs;
    if (model->num_outputs != 1 || out->rank != 3 || out->shape[1] < 5) {
        snprintf(error, error_bytes, "expected one output [1,4+C,N]");
        return NULL;
    }
    struct decoder* d = malloc(sizeof *d);
    if (d) *d = (struct decoder){out->shape[1] - 4, out->shape[2]};
    return d;
}

static int decode(void* decoder, const float* const* values, float threshold,
                  VartmlResults* results) {
    const struct decoder* d = decoder;
    const size_t n = d->positions;
    for (size_t i = 0; i < n; ++i) {
        const float* v = values[0] + i;
        uint32_t best = 0;
        for (uint32_t c = 1; c < d->classes; ++c)
            if (v[(4 + c) * n] > v[(4 + best) * n]) best = c;
        const float score = v[(4 + best) * n], w = v[2 * n] / 2, h = v[3 * n] / 2;
        if (!(score >= threshold)) continue;
        const VartmlBox box = {v[0] - w, v[n] - h, v[0] + w, v[n] + h, score, (int32_t)best, 0};
        results->add_box(results, &box);
    }
    return 0;
}

const VartmlDecoder* vartml_decoder(uint32_t interface_version) {
    static const VartmlDecoder decoder = {VARTML_DECODER_INTERFACE, open_decoder, decode, free};
    (void)interface_version;
    return &decoder;
}
