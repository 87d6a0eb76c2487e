/* SPDX-License-Identifier: Apache-2.0
 * Decoder libraries that are wrong in one way each, and one that gives all kinds of results:
 * LIBRARY says which. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <vartml/decoder.h>

#define GOOD 0
#define OTHER_VERSION 1
#define NO_FUNCTION 2
#define NO_DECODER 3
#define NO_SYMBOL 4

#if LIBRARY == NO_SYMBOL
int something_else(void);
int something_else(void) {
    return 0;
}
#else

/* What decode() does is the first value of the first output. */
enum { all_kinds, wrong_class, refuses, bad_text, too_many, odd_numbers, null_pointers };

static void* open_decoder(const VartmlModel* model, char* error, size_t error_bytes) {
    if (model->num_outputs == 2) {
        memset(error, 'x', error_bytes); /* no final 0 */
        return NULL;
    }
    if (model->outputs[0].count != 4) return NULL;
    return (void*)model; /* never read again */
}

static int decode(void* decoder, const float* const* values, float threshold, VartmlResults* r) {
    (void)decoder;
    (void)threshold;
    const VartmlBox box = {8, 8, 24, 16, 0.9f, 1, 0}, other = {40, 40, 56, 56, 0.8f, 0, 0};
    const VartmlBox low = {0, 0, 9, 9, 0.01f, 0, 0};
    const float vector[] = {3, 4, 12}; /* two of them */
    switch ((int)values[0][0]) {
        case all_kinds:
            r->add_keypoint(r, 1, 2, 0.5f);
            r->add_box(r, &box);
            r->add_keypoint(r, 10, 12, 0.7f);
            r->add_keypoint(r, 20, 14, 0.6f);
            r->add_box(r, &low);
            r->add_box(r, &other);
            r->add_keypoint(r, 50, 50, 1);
            r->add_class(r, 1, 0.25f);
            r->set_text(r, "plate \xc3\xa4", 0.5f);
            r->set_embedding(r, vector, 2);
            break;
        case wrong_class:
            r->add_class(r, 2, 0.5f);
            break;
        case refuses:
            return 7;
        case bad_text:
            r->set_text(r, "\xff", 1);
            break;
        case too_many:
            for (int i = 0; i < 1000001; ++i) r->add_box(r, &box);
            break;
        case odd_numbers: {
            const VartmlBox odd = {NAN, 0, 4, 4, 0.5f, 0, 0};
            r->add_box(r, &odd);
            r->add_keypoint(r, INFINITY, 0, 1);
            r->add_class(r, 0, NAN);
            const float nothing[] = {NAN};
            r->set_embedding(r, nothing, 1);
            break;
        }
        case null_pointers:
            r->add_box(r, NULL);
            r->set_text(r, NULL, 1);
            r->set_embedding(r, NULL, 4);
            break;
    }
    return 0;
}

static void close_decoder(void* decoder) {
    (void)decoder;
}

const VartmlDecoder* vartml_decoder(uint32_t interface_version) {
    static const VartmlDecoder d = {VARTML_DECODER_INTERFACE + (LIBRARY == OTHER_VERSION ? 6 : 0),
                                    open_decoder, LIBRARY == NO_FUNCTION ? NULL : decode,
                                    close_decoder};
    (void)interface_version;
    return LIBRARY == NO_DECODER ? NULL : &d;
}
#endif
