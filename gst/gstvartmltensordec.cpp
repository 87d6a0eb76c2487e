// SPDX-License-Identifier: Apache-2.0
/**
 * SECTION:element-vartmltensordec
 * @title: vartmltensordec
 * @short_description: vartmldecode for tensordecodebin
 *
 * Reads the tensors that caps have in the group `vartml-out`, as vartmldecode does, and leaves them
 * on the frame for decoders behind it. tensordecodebin of GStreamer 1.28 chooses it; by hand,
 * vartmldecode is what to take, which reads any tensors.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=10 ! vartmlinfer model=model.onnx ! tensordecodebin !
 * fakesink
 * ]|
 *
 * Since: 1.0
 */
#include "gst/gstvartmltensordec.h"

#include <utility>

#include "gst/support/tensor_groups.h"

// It chooses by the groups in pad templates, and puts all that match into a row: those of ours name
// a group that no other decoder has.
GST_ELEMENT_REGISTER_DEFINE(vartmltensordec, "vartmltensordec", GST_RANK_PRIMARY,
                            GST_TYPE_VARTML_TENSOR_DEC)

static void gst_vartml_tensor_dec_init(GTypeInstance* instance, gpointer) {
    gst_vartml_decode_read_own_group(GST_VARTML_DECODE(instance));
}

static void gst_vartml_tensor_dec_class_init(gpointer klass, gpointer) {
    auto* element = GST_ELEMENT_CLASS(klass);
    gst_element_class_set_static_metadata(
        element, "VART-ML tensor decoder for tensordecodebin", "Tensordecoder/Video",
        "Turns tensors of the group vartml-out into boxes, classes, masks and keypoints",
        "The gst-vartml authors");
    GstCaps* caps = vartml::gst::own_group_caps();
    for (const auto& [name, direction] : {std::pair{"sink", GST_PAD_SINK}, {"src", GST_PAD_SRC}})
        gst_element_class_add_pad_template(
            element, gst_pad_template_new(name, direction, GST_PAD_ALWAYS,
                                          direction == GST_PAD_SINK ? caps : GST_CAPS_ANY));
    gst_caps_unref(caps);
}

GType gst_vartml_tensor_dec_get_type() {
    static const GType type = [] {
        GTypeQuery parent;
        g_type_query(GST_TYPE_VARTML_DECODE, &parent);
        return g_type_register_static_simple(GST_TYPE_VARTML_DECODE, "GstVartmlTensorDec",
                                             parent.class_size, gst_vartml_tensor_dec_class_init,
                                             parent.instance_size, gst_vartml_tensor_dec_init,
                                             GTypeFlags(0));
    }();
    return type;
}
