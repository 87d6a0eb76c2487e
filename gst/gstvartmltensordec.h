// SPDX-License-Identifier: Apache-2.0
// vartmltensordec: vartmldecode as tensordecodebin finds it.
#pragma once
#include "gst/gstvartmldecode.h"

G_BEGIN_DECLS

#define GST_TYPE_VARTML_TENSOR_DEC (gst_vartml_tensor_dec_get_type())
GType gst_vartml_tensor_dec_get_type(void);

GST_ELEMENT_REGISTER_DECLARE(vartmltensordec);

G_END_DECLS
