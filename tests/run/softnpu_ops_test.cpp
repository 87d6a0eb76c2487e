// SPDX-License-Identifier: Apache-2.0
// Every operator of the software NPU against plain loops, in f32 and in bf16, with HW views of
// several layouts and types at the border; each also as a model of fp16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lib/graph/numbers.h"
#include "lib/graph/text.h"
#include "lib/graph/verify.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/support/reference.h"
#include "tests/support/run_once.h"

namespace vartml::device {
namespace {

struct Case {
    const char* why;
    const char* text;
};

const Case cases[] = {
    {"convolution 3x3 with bias and activation",
     "graph g\ninput %x : f32[1,3,17,23]\nconst %w : f32[8,3,3,3] = {0}\nconst %b : f32[8] = {0}\n"
     "%y = Conv+Relu %x, %w, %b {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[2,2]} : "
     "f32[1,8,9,12]\noutput %y\n"},
    {"asymmetric pads and dilation",
     "graph g\ninput %x : f32[1,5,16,15]\nconst %w : f32[6,5,3,2] = {0}\n"
     "%y = Conv %x, %w {dilations=[2,1], group=1, pads=[2,0,1,1], strides=[1,2]} : "
     "f32[1,6,15,8]\noutput %y\n"},
    {"depthwise with SiLU",
     "graph g\ninput %x : f32[1,16,13,13]\nconst %w : f32[16,1,5,5] = {0}\nconst %b : f32[16] = "
     "{0}\n"
     "%y = Conv+SiLU %x, %w, %b {dilations=[1,1], group=16, pads=[2,2,2,2], strides=[1,1]} : "
     "f32[1,16,13,13]\noutput %y\n"},
    {"grouped convolution",
     "graph g\ninput %x : f32[1,8,9,9]\nconst %w : f32[12,4,3,3] = {0}\n"
     "%y = Conv %x, %w {dilations=[1,1], group=2, pads=[1,1,1,1], strides=[1,1]} : "
     "f32[1,12,9,9]\noutput %y\n"},
    {"one-dimensional convolution",
     "graph g\ninput %x : f32[2,4,32]\nconst %w : f32[6,4,5] = {0}\n"
     "%y = Conv %x, %w {dilations=[1], group=1, pads=[2,2], strides=[1]} : f32[2,6,32]\noutput "
     "%y\n"},
    {"residual and clip in the convolution",
     "graph g\ninput %x : f32[1,8,6,7]\nconst %w : f32[8,8,1,1] = {0}\nconst %b : f32[8] = {0}\n"
     "%y = Conv+Add+Clip %x, %w, %b, %x {Clip.max=6.0, Clip.min=0.0, dilations=[1,1], group=1, "
     "pads=[0,0,0,0], strides=[1,1]} : f32[1,8,6,7]\noutput %y\n"},
    {"scale and shift per channel behind the activation",
     "graph g\ninput %x : f32[1,8,6,7]\nconst %w : f32[6,8,1,1] = {0}\nconst %b : f32[6] = {0}\n"
     "const %s : f32[1,6,1,1] = {0}\nconst %t : f32[1,6,1,1] = {0}\n"
     "%y = Conv+Relu+Mul+Add %x, %w, %b, %s, %t {dilations=[1,1], group=1, pads=[0,0,0,0], "
     "strides=[1,1]} : f32[1,6,6,7]\noutput %y\n"},
    {"shift per channel behind the activation",
     "graph g\ninput %x : f32[1,8,6,7]\nconst %w : f32[6,8,3,3] = {0}\nconst %b : f32[6] = {0}\n"
     "const %t : f32[1,6,1,1] = {0}\n"
     "%y = Conv+LeakyRelu+Add %x, %w, %b, %t {LeakyRelu.alpha=0.1, dilations=[1,1], group=1, "
     "pads=[1,1,1,1], strides=[1,1]} : f32[1,6,6,7]\noutput %y\n"},
    {"shift per channel behind the activation of a convolution by minimal filtering",
     "graph g\ninput %x : f32[1,40,17,18]\nconst %w : f32[40,40,3,3] = {0}\nconst %b : f32[40] = "
     "{0}\nconst %t : f32[1,40,1,1] = {0}\n"
     "%y = Conv+SiLU+Add %x, %w, %b, %t {dilations=[1,1], group=1, pads=[1,1,1,1], "
     "strides=[1,1]} : f32[1,40,17,18]\noutput %y\n"},
    {"transposed convolution with output padding",
     "graph g\ninput %x : f32[1,6,5,7]\nconst %w : f32[6,4,3,3] = {0}\nconst %b : f32[4] = {0}\n"
     "%y = ConvTranspose %x, %w, %b {dilations=[1,1], group=1, output_padding=[1,1], "
     "pads=[1,1,1,1], strides=[2,2]} : f32[1,4,10,14]\noutput %y\n"},
    {"transposed convolution that makes a block of few channels from every pixel",
     "graph g\ninput %x : f32[2,6,5,7]\nconst %w : f32[6,3,2,2] = {0}\nconst %b : f32[3] = {0}\n"
     "%y = ConvTranspose+Sigmoid %x, %w, %b {dilations=[1,1], group=1, output_padding=[0,0], "
     "pads=[0,0,0,0], strides=[2,2]} : f32[2,3,10,14]\noutput %y\n"},
    {"transposed convolution of many channels, stride 3, kernel 4",
     "graph g\ninput %x : f32[1,5,6,4]\nconst %w : f32[5,20,4,4] = {0}\n"
     "const %b : f32[20] = {0}\n%y = ConvTranspose+SiLU %x, %w, %b {dilations=[1,1], group=1, "
     "output_padding=[0,0], "
     "pads=[1,0,0,1], strides=[3,3]} : f32[1,20,18,12]\noutput %y\n"},
    {"transposed convolution of few channels with overlapping blocks",
     "graph g\ninput %x : f32[1,5,6,4]\nconst %w : f32[5,2,4,4] = {0}\n"
     "const %b : f32[2] = {0}\n%y = ConvTranspose+Tanh %x, %w, %b {dilations=[1,1], group=1, "
     "output_padding=[0,0], "
     "pads=[1,1,1,1], strides=[2,2]} : f32[1,2,12,8]\noutput %y\n"},
    {"mean of a picture large enough for several threads",
     "graph g\ninput %x : f32[2,20,96,96]\nconst %w : f32[20,20,1,1] = {0}\n"
     "%a = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
     "f32[2,20,96,96]\n"
     "%g = GlobalAveragePool %a : f32[2,20,1,1]\n%s = HardSigmoid %g {alpha=0.2, beta=0.5} : "
     "f32[2,20,1,1]\n"
     "%y = Mul %a, %s : f32[2,20,96,96]\noutput %y\n"},
    {"grouped transposed convolution",
     "graph g\ninput %x : f32[1,6,5,7]\nconst %w : f32[6,2,2,2] = {0}\n"
     "%y = ConvTranspose %x, %w {dilations=[1,1], group=3, output_padding=[0,0], pads=[0,0,0,0], "
     "strides=[2,2]} : f32[1,6,10,14]\noutput %y\n"},
    {"Gemm with every attribute",
     "graph g\ninput %x : f32[5,3]\nconst %w : f32[4,5] = {0}\nconst %c : f32[4] = {0}\n"
     "%y = Gemm %x, %w, %c {alpha=0.5, beta=2.0, transA=1, transB=1} : f32[3,4]\noutput %y\n"},
    {"Gemm of one column with a scalar",
     "graph g\ninput %x : f32[2,3]\nconst %w : f32[3,1] = {0}\nconst %c : f32[] = {0.5}\n"
     "%y = Gemm %x, %w, %c {alpha=1.0, beta=1.0, transA=0, transB=0} : f32[2,1]\noutput %y\n"},
    {"MatMul of a batch with one matrix and an activation",
     "graph g\ninput %x : f32[2,7,5]\nconst %w : f32[5,6] = {0}\nconst %b : f32[6] = {0}\n"
     "%y = MatMul+Tanh %x, %w, %b : f32[2,7,6]\noutput %y\n"},
    {"MatMul of two computed operands with broadcast",
     "graph g\ninput %x : f32[2,3,4,5]\ninput %z : f32[3,5,4]\n"
     "%y = MatMul %x, %z : f32[2,3,4,4]\noutput %y\n"},
    {"MatMul of the heads of an attention, turned without a copy",
     "graph g\ninput %x : f32[1,5,12]\nconst %w : f32[12,12] = {0}\nconst %v : f32[12,12] = {0}\n"
     "%q = MatMul %x, %w : f32[1,5,12]\n%k = MatMul %x, %v : f32[1,5,12]\n"
     "%a = Reshape %q {shape=[1,5,3,4]} : f32[1,5,3,4]\n"
     "%b = Transpose %a {perm=[0,2,1,3]} : f32[1,3,5,4]\n"
     "%c = Reshape %k {shape=[1,5,3,4]} : f32[1,5,3,4]\n"
     "%d = Transpose %c {perm=[0,2,3,1]} : f32[1,3,4,5]\n"
     "%y = MatMul %b, %d : f32[1,3,5,5]\noutput %y\n"},
    {"MatMul of batches that have changed places",
     "graph g\ninput %x : f32[3,2,5,3]\ninput %z : f32[2,3,12]\nconst %w : f32[12,12] = {0}\n"
     "%m = MatMul %z, %w : f32[2,3,12]\n%r = Reshape %m {shape=[2,3,3,4]} : f32[2,3,3,4]\n"
     "%t = Transpose %r {perm=[1,0,2,3]} : f32[3,2,3,4]\n"
     "%u = Transpose %r {perm=[2,0,1,3]} : f32[3,2,3,4]\n"
     "%a = MatMul %x, %t : f32[3,2,5,4]\n%b = MatMul %x, %u : f32[3,2,5,4]\n"
     "%y = Add %a, %b : f32[3,2,5,4]\noutput %y\n"},
    {"pooling with ceil, pads and dilation",
     "graph g\ninput %x : f32[1,5,13,14]\n"
     "%a = MaxPool %x {ceil_mode=1, dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], "
     "storage_order=0, strides=[2,2]} : f32[1,5,6,7]\n"
     "%y = AveragePool %a {ceil_mode=0, count_include_pad=1, dilations=[1,1], kernel_shape=[3,3], "
     "pads=[1,1,1,1], strides=[1,1]} : f32[1,5,6,7]\noutput %y\n"},
    {"largest values into a concat, of a picture that is read again",
     "graph g\ninput %x : f32[1,16,9,8]\n%r = Relu %x : f32[1,16,9,8]\n"
     "%a = MaxPool %r {ceil_mode=0, dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], "
     "storage_order=0, strides=[1,1]} : f32[1,16,9,8]\n"
     "%y = Concat %r, %a {axis=1} : f32[1,32,9,8]\noutput %y\n"},
    {"average pooling that leaves padding out",
     "graph g\ninput %x : f32[1,5,6,7]\n"
     "%y = AveragePool %x {ceil_mode=0, count_include_pad=0, dilations=[1,1], kernel_shape=[3,3], "
     "pads=[1,1,1,1], strides=[1,1]} : f32[1,5,6,7]\noutput %y\n"},
    {"squeeze and excite",
     "graph g\ninput %x : f32[1,12,7,5]\nconst %w : f32[12,12,1,1] = {0}\n"
     "%p = GlobalAveragePool %x : f32[1,12,1,1]\n"
     "%s = Conv+HardSigmoid %p, %w, _ {HardSigmoid.alpha=0.2, HardSigmoid.beta=0.5, "
     "dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,12,1,1]\n"
     "%y = Mul %x, %s : f32[1,12,7,5]\noutput %y\n"},
    {"nearest resize into a concat",
     "graph g\ninput %x : f32[1,8,4,5]\ninput %z : f32[1,6,8,10]\n"
     "%r = Resize %x {antialias=0, coordinate_transformation_mode=\"asymmetric\", "
     "cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"nearest\", "
     "nearest_mode=\"floor\", scales=f[1.0,1.0,2.0,2.0], sizes=[1,8,8,10]} : f32[1,8,8,10]\n"
     "%y = Concat %r, %z {axis=1} : f32[1,14,8,10]\noutput %y\n"},
    {"nearest resize to a part of the pixels, the way of TensorFlow 1",
     "graph g\ninput %x : f32[1,5,9,8]\n"
     "%y = Resize %x {antialias=0, coordinate_transformation_mode=\"tf_half_pixel_for_nn\", "
     "cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"nearest\", "
     "nearest_mode=\"floor\", scales=f[1.0,1.0,0.33333334,0.5], sizes=[1,5,3,4]} : f32[1,5,3,4]\n"
     "output %y\n"},
    {"linear resize, half pixel, odd factor",
     "graph g\ninput %x : f32[1,3,7,5]\n"
     "%y = Resize %x {antialias=0, coordinate_transformation_mode=\"half_pixel\", "
     "cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"linear\", "
     "nearest_mode=\"floor\", scales=f[1.0,1.0,3.0,2.0], sizes=[1,3,21,10]} : "
     "f32[1,3,21,10]\noutput %y\n"},
    {"linear resize, half pixel symmetric, by scales that leave a rest",
     "graph g\ninput %x : f32[1,3,7,5]\n"
     "%y = Resize %x {antialias=0, coordinate_transformation_mode=\"half_pixel_symmetric\", "
     "cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"linear\", "
     "nearest_mode=\"floor\", scales=f[1.0,1.0,1.7,2.3], sizes=[1,3,11,11]} : "
     "f32[1,3,11,11]\noutput %y\n"},
    {"linear resize, aligned corners, many channels",
     "graph g\ninput %x : f32[1,20,7,5]\n"
     "%y = Resize %x {antialias=0, coordinate_transformation_mode=\"align_corners\", "
     "cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"linear\", "
     "nearest_mode=\"floor\", scales=f[1.0,1.0,2.0,2.0], sizes=[1,20,14,10]} : "
     "f32[1,20,14,10]\noutput %y\n"},
    {"linear resize, aligned corners, to a part of the pixels",
     "graph g\ninput %x : f32[1,4,13,7]\n"
     "%y = Resize %x {antialias=0, coordinate_transformation_mode=\"align_corners\", "
     "cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode=\"linear\", "
     "nearest_mode=\"floor\", scales=f[1.0,1.0,0.5,0.5], sizes=[1,4,6,3]} : f32[1,4,6,3]\n"
     "output %y\n"},
    {"a detection head: concat, reshape, concat, transpose",
     "graph g\ninput %a : f32[1,8,4,4]\ninput %b : f32[1,8,2,2]\nconst %w : f32[5,8,1,1] = "
     "{0}\nconst %v : f32[3,8,1,1] = {0}\n"
     "%a1 = Conv %a, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,5,4,4]\n"
     "%a2 = Conv+Sigmoid %a, %v, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
     "f32[1,3,4,4]\n"
     "%ac = Concat %a1, %a2 {axis=1} : f32[1,8,4,4]\n%ar = Reshape %ac {shape=[1,8,16]} : "
     "f32[1,8,16]\n"
     "%b1 = Conv %b, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,5,2,2]\n"
     "%b2 = Conv+Sigmoid %b, %v, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
     "f32[1,3,2,2]\n"
     "%bc = Concat %b1, %b2 {axis=1} : f32[1,8,2,2]\n%br = Reshape %bc {shape=[1,8,4]} : "
     "f32[1,8,4]\n"
     "%c = Concat %ar, %br {axis=2} : f32[1,8,20]\n%y = Transpose %c {perm=[0,2,1]} : "
     "f32[1,20,8]\noutput %y\n"},
    {"the distribution of a YOLOv8 head: split, softmax, convolution over bins",
     "graph g\ninput %x : f32[1,19,12]\nconst %w : f32[1,4,1,1] = {0}\nconst %k : f32[1,1,12] = "
     "{0}\n"
     "%d, %s = Split %x {axis=1, split=[16,3]} : f32[1,16,12], f32[1,3,12]\n"
     "%r = Reshape %d {shape=[1,4,4,12]} : f32[1,4,4,12]\n%t = Transpose %r {perm=[0,2,1,3]} : "
     "f32[1,4,4,12]\n"
     "%m = Softmax %t {axis=1} : f32[1,4,4,12]\n"
     "%c = Conv %m, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,1,4,12]\n"
     "%q = Reshape %c {shape=[1,4,12]} : f32[1,4,12]\n%o = Mul %q, %k : f32[1,4,12]\n"
     "%p = Sigmoid %s : f32[1,3,12]\n%y = Concat %o, %p {axis=1} : f32[1,7,12]\noutput %y\n"},
    {"a split of which nobody reads the first and the third part",
     "graph g\ninput %x : f32[1,9,4]\n"
     "_, %b, _, %d = Split %x {axis=1, split=[2,3,1,3]} : _, f32[1,3,4], _, f32[1,3,4]\n"
     "%y = Sub %b, %d : f32[1,3,4]\noutput %y\n"},
    {"box arithmetic with slices and broadcasts",
     "graph g\ninput %x : f32[1,20,4]\nconst %p : f32[1,20,2] = {0}\nconst %h : f32[1] = {0}\n"
     "%a = Slice %x {axes=[2], ends=[2], starts=[0], steps=[1]} : f32[1,20,2]\n"
     "%b = Slice %x {axes=[2], ends=[4], starts=[2], steps=[1]} : f32[1,20,2]\n"
     "%c = Mul %a, %h : f32[1,20,2]\n%d = Add %c, %p : f32[1,20,2]\n%e = Exp %b : f32[1,20,2]\n"
     "%f = Div %e, %h : f32[1,20,2]\n%i = Sub %d, %f : f32[1,20,2]\n%j = Add %d, %f : f32[1,20,2]\n"
     "%y = Concat %i, %j {axis=2} : f32[1,20,4]\noutput %y\n"},
    {"a value for each of three channels, in more rows than fit at once",
     "graph g\ninput %x : f32[1,3,40,41]\nconst %m : f32[1,3,1,1] = {0}\n"
     "const %t : f32[40,1] = {0}\n%a = Sub %x, %m : f32[1,3,40,41]\n"
     "%b = Mul %a, %t : f32[1,3,40,41]\n%y = Max %b, %x : f32[1,3,40,41]\noutput %y\n"},
    {"rows longer than fit at once, beside a column",
     "graph g\ninput %x : f32[1,2,3,1500]\ninput %z : f32[1,2,3,1]\n"
     "%a = Relu %x : f32[1,2,3,1500]\n%b = Add %a, %z : f32[1,2,3,1500]\n"
     "%c = Slice %b {axes=[3], ends=[1500], starts=[1], steps=[3]} : f32[1,2,3,500]\n"
     "%y = Sub %c, %z : f32[1,2,3,500]\noutput %y\n"},
    {"channels shuffled",
     "graph g\ninput %x : f32[1,38,5,7]\n%a = Relu %x : f32[1,38,5,7]\n"
     "%b = Reshape %a {shape=[1,2,19,5,7]} : f32[1,2,19,5,7]\n"
     "%c = Transpose %b {perm=[0,2,1,3,4]} : f32[1,19,2,5,7]\n"
     "%y = Reshape %c {shape=[1,38,5,7]} : f32[1,38,5,7]\noutput %y\n"},
    {"slices with steps, also backwards",
     "graph g\ninput %x : f32[1,4,9,8]\n"
     "%a = Slice %x {axes=[2,3], ends=[9,8], starts=[1,0], steps=[2,2]} : f32[1,4,4,4]\n"
     "%y = Slice %a {axes=[1], ends=[-1], starts=[3], steps=[-1]} : f32[1,4,4,4]\noutput %y\n"},
    {"axes from the last one and no steps, as another compiler may write them",
     "graph g\ninput %x : f32[1,4,9,8]\n"
     "%a = Slice %x {axes=[2], ends=[9], starts=[1]} : f32[1,4,8,8]\n"
     "%b, %c = Split %a {axis=-3, split=[3,1]} : f32[1,3,8,8], f32[1,1,8,8]\n"
     "%y = Concat %c, %b {axis=-3} : f32[1,4,8,8]\noutput %y\n"},
    {"pixel shuffle in both modes and back",
     "graph g\ninput %x : f32[1,18,5,4]\n"
     "%a = DepthToSpace %x {blocksize=3, mode=\"CRD\"} : f32[1,2,15,12]\n"
     "%b = SpaceToDepth %a {blocksize=3} : f32[1,18,5,4]\n"
     "%y = DepthToSpace %b {blocksize=3, mode=\"DCR\"} : f32[1,2,15,12]\noutput %y\n"},
    {"reductions over inner and outer axes",
     "graph g\ninput %x : f32[2,6,5,4]\n"
     "%a = ReduceMean %x {axes=[2,3], keepdims=1} : f32[2,6,1,1]\n%b = ReduceMax %x {axes=[1], "
     "keepdims=0} : f32[2,5,4]\n"
     "%c = Reshape %a {shape=[2,6,1]} : f32[2,6,1]\noutput %b\noutput %c\n"},
    {"padding and a second use of the input",
     "graph g\ninput %x : f32[1,3,4,5]\n"
     "%a = Pad %x {mode=\"constant\", pads=[0,0,1,2,0,1,0,1], value=0.0} : f32[1,4,5,8]\n"
     "%y = Relu %a : f32[1,4,5,8]\noutput %y\noutput %a\n"},
    {"an output that is read again inside",
     "graph g\ninput %x : f32[1,6,5,5]\nconst %w : f32[6,6,1,1] = {0}\n"
     "%a = Conv %x, %w {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,6,5,5]\n"
     "%y = Sigmoid %a : f32[1,6,5,5]\noutput %a\noutput %y\n"},
    {"an input that is an output",
     "graph g\ninput %x : f32[1,3,4,4]\n%y = Relu %x : f32[1,3,4,4]\noutput %x\noutput %y\n"},
    {"one value twice in a concat",
     "graph g\ninput %x : f32[1,3,4,4]\n%a = Relu %x : f32[1,3,4,4]\n"
     "%y = Concat %a, %a, %x {axis=1} : f32[1,9,4,4]\noutput %y\n"},
    {"leaky, parametric and exponential units",
     "graph g\ninput %x : f32[1,6,4,4]\nconst %s : f32[6,1,1] = {0}\n"
     "%a = LeakyRelu %x {alpha=0.1} : f32[1,6,4,4]\n%b = PRelu %a, %s : f32[1,6,4,4]\n"
     "%c = Elu %b {alpha=0.5} : f32[1,6,4,4]\n%d = HardSwish %c : f32[1,6,4,4]\n"
     "%y = Max %d, %x : f32[1,6,4,4]\noutput %y\n"},
    {"a flattened picture into a matrix product",
     "graph g\ninput %x : f32[1,6,3,4]\nconst %w : f32[72,5] = {0}\n"
     "%a = Relu %x : f32[1,6,3,4]\n%b = Reshape %a {shape=[1,72]} : f32[1,72]\n%y = MatMul %b, %w "
     ": f32[1,5]\noutput %y\n"},
    // Beside its channel lie other channels, and no padding.
    {"conv_of_the_last_channel",
     "graph g\ninput %x : f32[1,4,16,16]\nconst %w : f32[8,1,3,3] = {0}\n"
     "%a, %b = Split %x {axis=1, split=[3,1]} : f32[1,3,16,16], f32[1,1,16,16]\n"
     "%y = Conv %b, %w {pads=[1,1,1,1]} : f32[1,8,16,16]\noutput %y\noutput %a\n"},
    {"conv_of_a_mirrored_picture",
     "graph g\ninput %x : f32[1,4,16,16]\nconst %w : f32[8,4,3,3] = {0}\n"
     "%m = Slice %x {axes=[3], ends=[-1], starts=[15], steps=[-1]} : f32[1,4,16,16]\n"
     "%y = Conv %m, %w {pads=[1,1,1,1], strides=[2,2]} : f32[1,8,8,8]\noutput %y\n"},
    {"resize_of_channels_that_stay_as_many",
     "graph g\ninput %x : f32[1,3,4,4]\n"
     "%y = Resize %x {coordinate_transformation_mode=\"asymmetric\", mode=\"nearest\", "
     "antialias=0, cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, "
     "nearest_mode=\"floor\", scales=f[1.0,1.2,2.0,2.0], sizes=[1,3,8,8]} : f32[1,3,8,8]\noutput "
     "%y\n"},
    {"expand",
     "graph g\ninput %x : f32[1,3,1,5]\n%y = Expand %x {shape=[2,3,4,5]} : f32[2,3,4,5]\noutput "
     "%y\n"},
};

// The HW view that the compiler would choose, in `type`.
TensorInfo border(const graph::Value& value, DataType type) {
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
    const size_t rank = shape.size();
    const Layout cpu_layout = rank == 4 ? Layout::NCHW : rank == 3 ? Layout::NHW : Layout::GENERIC;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; cpu_layout == Layout::GENERIC && i < rank; ++i) order.push_back(i);
    const TensorView cpu = make_view(value.type.data_type, cpu_layout, shape, order);
    Layout hw = cpu_layout;
    if (rank == 4) {
        hw = shape[0] > 1 || shape[1] == 1 ? Layout::NHWC
             : shape[1] <= 4               ? Layout::HCWNC4
                                           : Layout::HCWNC8;
    }
    return {value.name, cpu, hw_view(cpu, hw, type), false, {}};
}

// Element of the HW view where CPU element `index` (row-major) lies; given: "Address rule".
size_t hw_index(const TensorInfo& info, size_t index) {
    const auto& s = info.cpu.shape;
    std::vector<size_t> at(s.size());
    for (size_t d = s.size(); d-- > 0; index /= s[d]) at[d] = index % s[d];
    const TensorView& hw = *info.hw;
    if (hw.layout == Layout::HCWNC4 || hw.layout == Layout::HCWNC8) {
        const size_t block = hw.shape[4], groups = hw.shape[1];
        return (((at[2] * groups + at[1] / block) * s[3] + at[3]) * s[0] + at[0]) * block +
               at[1] % block;
    }
    if (hw.layout == Layout::NHWC) return ((at[0] * s[2] + at[2]) * s[3] + at[3]) * s[1] + at[1];
    size_t result = 0;
    for (size_t d = 0; d < s.size(); ++d) result += at[d] * hw.strides[d];
    return result;
}

float to_float(const std::byte* p, DataType type) {
    float value = 0;
    graph::with_type(type, [&]<typename T>(T element) {
        std::memcpy(&element, p, sizeof element);
        value = graph::convert<float>(element);
    });
    return value;
}
void from_float(float value, DataType type, std::byte* p) {
    graph::with_type(type, [&]<typename T>(T element) {
        element = graph::convert<T>(value);
        std::memcpy(p, &element, sizeof element);
    });
}

// Values that bf16 and fp16 hold exactly, so that inputs and weights are the same in all types.
float exact(std::mt19937& random) {
    return static_cast<float>(static_cast<int>(random() % 255) - 127) / 64;
}

void randomise_constants(graph::Graph& graph, std::mt19937& random) {
    for (graph::Value& v : graph.values) {
        if (!v.constant) continue;
        std::vector<float> values(static_cast<size_t>(v.type.elements()));
        for (float& x : values) x = exact(random);
        v.constant = graph::make_constant<float>(values);
    }
}

// The same graph with tensors of another float type.
std::string with_floats_of(DataType type, std::string text) {
    const std::string other = std::string(graph::short_name(type)) + '[';
    for (size_t at = 0; (at = text.find("f32[", at)) != text.npos; at += other.size())
        text.replace(at, 4, other);
    return text;
}
graph::Graph with_exact_floats(graph::Graph graph) {
    for (graph::Value& v : graph.values) v.type.data_type = DataType::float32;
    return graph;
}
void convert_constants(graph::Graph& graph) {
    for (graph::Value& v : graph.values) {
        if (!v.constant || v.type.data_type == DataType::float32) continue;
        const auto floats = v.constant->as<float>();
        std::vector<std::byte> bytes(floats.size() * size_bytes(v.type.data_type));
        for (size_t i = 0; i < floats.size(); ++i)
            from_float(floats[i], v.type.data_type, &bytes[i * size_bytes(v.type.data_type)]);
        v.constant = graph::make_constant<std::byte>(bytes);
    }
}

// What the results may differ by, of the largest: half a step of the coarsest type on the way.
float tolerance(DataType compute, DataType border) {
    if (compute == DataType::bf16) return 0.03F;
    if (border == DataType::bf16) return 0.005F;
    return border == DataType::fp16 ? 0.001F : 1e-5F;
}

struct Types {
    DataType model, compute, border;
};
class SoftNpu : public testing::TestWithParam<std::tuple<size_t, Types>> {};

TEST_P(SoftNpu, EqualsPlainLoops) {
    const auto& [index, types] = GetParam();
    const auto [model, compute, border_type] = types;
    SCOPED_TRACE(cases[index].why);
    auto parsed = graph::parse(with_floats_of(model, cases[index].text));
    ASSERT_TRUE(parsed) << parsed.error().message;
    if (const auto ok = graph::verify(*parsed); !ok) FAIL() << ok.error().message;
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = std::move(*parsed);
    std::mt19937 random(static_cast<unsigned>(index) + 1);
    randomise_constants(program->graph, random);
    const graph::Graph exact_graph = with_exact_floats(program->graph);
    convert_constants(program->graph);
    for (const auto id : program->graph.inputs)
        program->inputs.push_back(border(program->graph.value(id), border_type));
    for (const auto id : program->graph.outputs)
        program->outputs.push_back(border(program->graph.value(id), border_type));

    std::vector<test::Tensor> inputs;
    std::vector<std::vector<std::byte>> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t i = 0; i < program->inputs.size(); ++i) {
        const TensorInfo& info = program->inputs[i];
        test::Tensor values(info.cpu.size);
        // Padding holds finite rubbish: it must not matter.
        memory.emplace_back(info.hw->size_bytes, std::byte{0x3F});
        for (size_t k = 0; k < values.size(); ++k) {
            values[k] = exact(random);
            from_float(values[k], border_type,
                       memory.back().data() + hw_index(info, k) * size_bytes(border_type));
        }
        inputs.push_back(std::move(values));
    }
    for (const TensorInfo& info : program->outputs)
        memory.emplace_back(info.hw->size_bytes, std::byte{0xFF});
    for (size_t i = 0; i < memory.size(); ++i) {
        if (i < program->inputs.size())
            in.push_back(memory[i].data());
        else
            out.push_back(memory[i].data());
    }
    const Numerics numerics = compute == DataType::bf16 ? Numerics::bf16 : Numerics::f32;
    auto executable = softnpu_device().load(program, {.numerics = numerics, .threads = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    const auto want = test::run_reference(exact_graph, inputs);
    for (int run = 0; run < 2; ++run) {  // the second run finds the arena used
        ASSERT_TRUE(test::run_once(**executable, in, out));
        for (size_t o = 0; o < want.size(); ++o) {
            const TensorInfo& info = program->outputs[o];
            const std::byte* bytes = memory[program->inputs.size() + o].data();
            const size_t width = size_bytes(border_type);
            float range = 1e-3F, worst = 0;
            for (const float v : want[o]) range = std::max(range, std::abs(v));
            for (size_t k = 0; k < want[o].size(); ++k) {
                const float got = to_float(bytes + hw_index(info, k) * width, border_type);
                worst = std::max(worst, std::isfinite(got) ? std::abs(got - want[o][k]) : 1e30F);
            }
            EXPECT_LE(worst, tolerance(compute, border_type) * range)
                << "output " << o << " run " << run << "\n"
                << (*executable)->describe();
            std::vector<bool> used(info.hw->size);
            for (size_t k = 0; k < want[o].size(); ++k) used[hw_index(info, k)] = true;
            for (size_t k = 0; k < used.size(); ++k) {
                if (used[k]) continue;
                ASSERT_EQ(to_float(bytes + k * width, border_type), 0) << "padding element " << k;
            }
        }
    }
}

std::string name(const testing::TestParamInfo<SoftNpu::ParamType>& info) {
    std::string text = cases[std::get<0>(info.param)].why;
    for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    const auto [model, compute, border] = std::get<1>(info.param);
    text += "_" + std::string(to_string(compute)) + "_border_" + std::string(to_string(border));
    return model == DataType::float32 ? text : text + "_model_" + std::string(to_string(model));
}

// A border of fp16 belongs to a model of fp16, whose other borders are those that a user may ask
// for.
constexpr DataType f32 = DataType::float32, bf16 = DataType::bf16, fp16 = DataType::fp16;
constexpr Types combinations[] = {
    {f32, f32, f32},   {f32, f32, bf16},  {f32, bf16, f32},   {f32, bf16, bf16},
    {f32, f32, fp16},  {fp16, f32, fp16}, {fp16, bf16, fp16}, {fp16, f32, f32},
    {fp16, bf16, f32}, {fp16, f32, bf16}, {fp16, bf16, bf16}, {bf16, f32, bf16},
};
INSTANTIATE_TEST_SUITE_P(Operators, SoftNpu,
                         testing::Combine(testing::Range<size_t>(0, std::size(cases)),
                                          testing::ValuesIn(combinations)),
                         name);

// What the compiler places before a product is computed in bf16, whatever oneDNN has in bf16.
constexpr const char* before_a_product[] = {
    "%b = Abs %a",
    "%b = Clip %a {max=0.75, min=0.25}",
    "%b = Elu %a {alpha=0.5}",
    "%b = Exp %a",
    "%b = Gelu %a {approximate=\"none\"}",
    "%b = HardSigmoid %a {alpha=0.2, beta=0.5}",
    "%b = HardSwish %a",
    "%b = LeakyRelu %a {alpha=0.1}",
    "%b = Log %a",
    "%b = Mish %a",
    "%b = Neg %a",
    "%b = Pow %a, %a",
    "%b = Reciprocal %a",
    "%b = Relu %a",
    "%b = Round %a",
    "%b = SiLU %a",
    "%b = Softmax %a {axis=1}",
    "%b = Softplus %a",
    "%b = Sqrt %a",
    "%b = Tanh %a",
};

class BeforeAProduct : public testing::TestWithParam<std::tuple<size_t, DataType>> {};
TEST_P(BeforeAProduct, EveryOperatorLoadsAndComputes) {
    const auto [index, model] = GetParam();
    const std::string text =
        "graph g\ninput %x : f32[4,6]\nconst %w : f32[6,5] = {0}\n%a = Sigmoid %x : f32[4,6]\n" +
        std::string(before_a_product[index]) + " : f32[4,6]\n%y = MatMul %b, %w : f32[4,5]\n" +
        "output %y\n";
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    auto parsed = graph::parse(with_floats_of(model, text));
    ASSERT_TRUE(parsed) << parsed.error().message;
    program->graph = std::move(*parsed);
    std::mt19937 random(5);
    randomise_constants(program->graph, random);
    const graph::Graph exact_graph = with_exact_floats(program->graph);
    convert_constants(program->graph);
    program->inputs.push_back(border(program->graph.value(program->graph.inputs[0]), model));
    program->outputs.push_back(border(program->graph.value(program->graph.outputs[0]), f32));
    test::Tensor values(24);
    std::vector<std::byte> input(24 * size_bytes(model)), output(20 * sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = exact(random);
        from_float(values[i], model, &input[i * size_bytes(model)]);
    }
    auto executable = softnpu_device().load(program, {.numerics = Numerics::bf16, .threads = 1});
    ASSERT_TRUE(executable) << executable.error().message;
    const void* const in[] = {input.data()};
    void* const out[] = {output.data()};
    ASSERT_TRUE(test::run_once(**executable, in, out));
    const auto want = test::run_reference(exact_graph, {values})[0];
    float range = 1e-3F;
    for (const float v : want) range = std::max(range, std::abs(v));
    for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(to_float(&output[i * sizeof(float)], f32), want[i], 0.03F * range)
            << (*executable)->describe();
}
INSTANTIATE_TEST_SUITE_P(Operators, BeforeAProduct,
                         testing::Combine(testing::Range<size_t>(0, std::size(before_a_product)),
                                          testing::Values(f32, fp16)));

// Batches of 1 beside, in and around others, as one head of several pictures is, and operands that
// the other one is repeated for.
class Batches : public testing::TestWithParam<unsigned> {};
TEST_P(Batches, OfProductsMayBeOneAnywhere) {
    constexpr int64_t sides[][3] = {{4, 4, 4}, {1, 5, 3}, {3, 1, 5}, {5, 3, 1}, {40, 8, 36}};
    const auto batch = [](unsigned bits, std::array<int64_t, 3> sizes) {
        for (unsigned d = 0; d < 3; ++d)
            if ((bits >> d & 1) == 0) sizes[d] = 1;
        return sizes;
    };
    const auto type = [](const std::array<int64_t, 3>& batch, int64_t rows, int64_t columns) {
        return graph::to_string(graph::Type{f32, {batch[0], batch[1], batch[2], rows, columns}});
    };
    std::mt19937 random(1);
    for (const auto& [m, k, n] : sides) {
        for (unsigned both = 0; both < 64; ++both) {
            const auto a = batch(both % 8, {2, 3, 2}), b = batch(both / 8, {2, 3, 2});
            const auto y = batch(both % 8 | both / 8, {2, 3, 2});
            const std::string text = "graph g\ninput %a : " + type(a, m, k) +
                                     "\ninput %b : " + type(b, k, n) +
                                     "\n%y = MatMul %a, %b : " + type(y, m, n) + "\noutput %y\n";
            SCOPED_TRACE(text);
            auto program = std::make_shared<Program>();
            program->name = "test";
            program->target = "softnpu-1";
            auto parsed = graph::parse(text);
            ASSERT_TRUE(parsed) << parsed.error().message;
            program->graph = std::move(*parsed);
            std::vector<test::Tensor> values;
            for (const auto id : program->graph.inputs) {
                program->inputs.push_back(border(program->graph.value(id), f32));
                values.emplace_back(program->inputs.back().cpu.size);
                for (float& value : values.back()) value = exact(random);
            }
            program->outputs.push_back(
                border(program->graph.value(program->graph.outputs[0]), f32));
            const auto want = test::run_reference(program->graph, values)[0];
            auto executable =
                softnpu_device().load(program, {.numerics = Numerics::f32, .threads = GetParam()});
            ASSERT_TRUE(executable) << executable.error().message;
            test::Tensor got(want.size());
            const void* const in[] = {values[0].data(), values[1].data()};
            void* const out[] = {got.data()};
            ASSERT_TRUE(test::run_once(**executable, in, out));
            for (size_t i = 0; i < want.size(); ++i)
                ASSERT_NEAR(got[i], want[i], 1e-4F * float(k)) << i << (*executable)->describe();
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Threads, Batches, testing::Values(1U, 2U, 4U));

}  // namespace
}  // namespace vartml::device
