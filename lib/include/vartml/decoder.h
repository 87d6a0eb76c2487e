/* SPDX-License-Identifier: Apache-2.0
 * A decoder of one's own: a shared object in C, or in whatever speaks it, for the property
 * decoder-library of vartmldecode. It exports one function, vartml_decoder(). */
#ifndef VARTML_DECODER_H
#define VARTML_DECODER_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of everything in this file. A library of another version is refused, by number. */
#define VARTML_DECODER_INTERFACE 1u

/* An output of the model. */
typedef struct VartmlOutput {
    const char* name;
    const uint32_t* shape; /* as the ONNX model has it */
    uint32_t rank;
    size_t count; /* values: the product of the shape */
} VartmlOutput;

/* What a decoder is made for; valid while open() runs. */
typedef struct VartmlModel {
    uint32_t width, height; /* of the picture input, pixels */
    uint32_t num_outputs;
    const VartmlOutput* outputs;
    uint32_t num_labels; /* 0: nobody says what the classes are called */
    const char* const* labels;
} VartmlModel;

/* Corners in pixels of the model's input, half-open; score 0 to 1; angle in radians, clockwise
 * about the centre, 0 = upright, the corners being those before the turn. class_id counts from 0,
 * and is less than num_labels where there are labels. */
typedef struct VartmlBox {
    float x0, y0, x1, y1;
    float score;
    int32_t class_id;
    float angle;
} VartmlBox;

/* Takes what was found; all pointers are read during the call. Boxes come out mapped to the frame,
 * after the element's NMS, thresholds and class filter. What has numbers that are not finite is
 * dropped and counted; a keypoint stays in its place, invisible at 0,0. */
typedef struct VartmlResults VartmlResults;
struct VartmlResults {
    void (*add_box)(VartmlResults*, const VartmlBox*);
    /* Of the last box; before any box, of the whole picture. */
    void (*add_keypoint)(VartmlResults*, float x, float y, float score);
    /* Of the whole picture or region, as the next two. */
    void (*add_class)(VartmlResults*, int32_t class_id, float score);
    void (*set_text)(VartmlResults*, const char* utf8, float score);
    void (*set_embedding)(VartmlResults*, const float* values, uint32_t count);
};

/* What vartml_decoder() gives; of static storage. */
typedef struct VartmlDecoder {
    uint32_t interface_version; /* VARTML_DECODER_INTERFACE */
    /* Makes a decoder. NULL: the model is not for it; `error` then has a sentence that says why, of
     * at most error_bytes with its final 0. */
    void* (*open)(const VartmlModel* model, char* error, size_t error_bytes);
    /* Decodes a run. `values` has each output of the model as floats, dense, in the order of its
     * shape. Boxes below `threshold` are dropped anyway. 0 = done; else the element ends with an
     * error. Called by one thread at a time. */
    int (*decode)(void* decoder, const float* const* values, float threshold,
                  VartmlResults* results);
    void (*close)(void* decoder);
} VartmlDecoder;

/* `interface_version` is that of the caller, for libraries that know several. */
const VartmlDecoder* vartml_decoder(uint32_t interface_version);

#ifdef __cplusplus
}
#endif
#endif
