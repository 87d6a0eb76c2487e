// SPDX-License-Identifier: Apache-2.0
// Graphs of one operator or a few that the software NPU has steps for: what its tests compute
// beside plain loops, and what the fuzzer begins with.
#pragma once
#include <ostream>

namespace vartml::test {

struct GraphCase {
    const char* why;
    const char* text;
};
inline void PrintTo(const GraphCase& c, std::ostream* os) {
    *os << c.why;
}

inline const GraphCase graphs_of_floats[] = {
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
    {"residual of one channel, and a number for each column",
     "graph g\ninput %x : f32[1,8,6,7]\ninput %r : f32[1,1,6,7]\nconst %w : f32[8,8,1,1] = {0}\n"
     "const %b : f32[8] = {0}\nconst %s : f32[1,1,1,7] = {0}\n"
     "%y = Conv+Add+Mul %x, %w, %b, %r, %s {dilations=[1,1], group=1, pads=[0,0,0,0], "
     "strides=[1,1]} : f32[1,8,6,7]\noutput %y\n"},
    {"operands of lower rank",
     "graph g\ninput %x : f32[1,8,6,7]\ninput %r : f32[7]\nconst %w : f32[8,8,1,1] = {0}\n"
     "%y = Conv+Mul %x, %w, _, %r {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
     "f32[1,8,6,7]\noutput %y\n"},
    {"parts behind what is no product",
     "graph g\ninput %x : f32[2,3]\ninput %z : f32[2,3]\ninput %s : f32[2,3]\n"
     "%y = Add+Relu+Mul %x, %z, %s : f32[2,3]\noutput %y\n"},
    {"nearest neighbours of a picture whose ratio is no whole number",
     "graph g\ninput %x : f32[1,3,28,14]\n%y = Resize %x {coordinate_transformation_mode="
     "\"asymmetric\", mode=\"nearest\", nearest_mode=\"floor\", "
     "scales=f[1.0,1.0,1.2857143,1.2857143], sizes=[1,3,36,18]} : f32[1,3,36,18]\noutput %y\n"},
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

// Scales and zero points that the rows share.
#define U8                                                                                    \
    "const %xs : f32[] = {0.02}\nconst %xz : u8[] = {117}\nconst %ys : f32[] = {0.6}\nconst " \
    "%yz : u8[] = {130}\n"
#define S8                                                                                       \
    "const %xs : f32[] = {0.02}\nconst %xz : i8[] = {-9}\nconst %ys : f32[] = {0.6}\nconst %yz " \
    ": i8[] = {4}\n"
#define SYMMETRIC                                                                               \
    "const %xs : f32[] = {0.02}\nconst %xz : i8[] = {0}\nconst %ys : f32[] = {0.6}\nconst %yz " \
    ": i8[] = {0}\n"
#define CHANNELS(n) \
    "const %ws : f32[" n "] = {0}\nconst %zeros : i8[" n "] = {0}\nconst %b : i32[" n "] = {0}\n"
#define WINDOW "{dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]}"

inline const GraphCase graphs_of_codes[] = {
    {"Conv3x3PerChannel", U8 CHANNELS("16") R"(
        input %x : u8[1,8,17,15]
        const %w : i8[16,8,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : u8[1,16,17,15]
        output %y)"},
    // Padding must count as zero, which is not the code 0; stride; no bias; one scale.
    {"ConvSignedPerTensor", S8 R"(
        input %x : i8[2,6,9,8]
        const %w : i8[5,6,3,3] = {0}
        const %ws : f32[] = {0.01}
        const %wz : i8[] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz {dilations=[2,2], group=1, pads=[2,0,1,2], strides=[2,1]} : i8[2,5,4,6]
        output %y)"},
    // No zero point, the usual form of signed codes; outputs are no whole blocks of oneDNN's.
    {"ConvSymmetric", SYMMETRIC CHANNELS("8") R"(
        input %x : i8[1,4,9,8]
        const %w : i8[8,4,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : i8[1,8,9,8]
        output %y)"},
    {"ConvSymmetricOfColours", SYMMETRIC CHANNELS("32") R"(
        input %x : i8[1,3,16,16]
        const %w : i8[32,3,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=1, pads=[1,1,1,1], strides=[2,2]} : i8[1,32,8,8]
        output %y)"},
    {"ConvSymmetricHead", SYMMETRIC CHANNELS("85") R"(
        input %x : i8[1,40,5,5]
        const %w : i8[85,40,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : i8[1,85,5,5]
        output %y)"},
    {"ConvSymmetricGrouped", SYMMETRIC CHANNELS("12") R"(
        input %x : i8[1,6,9,9]
        const %w : i8[12,3,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=2, pads=[1,1,1,1], strides=[1,1]} : i8[1,12,9,9]
        output %y)"},
    {"ConvSymmetricOfLines", SYMMETRIC CHANNELS("6") R"(
        input %x : i8[2,5,32]
        const %w : i8[6,5,5] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1], group=1, pads=[2,2], strides=[1]} : i8[2,6,32]
        output %y)"},
    {"ConvDepthwise", U8 CHANNELS("24") R"(
        input %x : u8[1,24,14,14]
        const %w : i8[24,1,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=24, pads=[1,1,1,1], strides=[2,2]} : u8[1,24,7,7]
        output %y)"},
    // Real numbers go through an activation before they become codes.
    {"ConvActivated", U8 CHANNELS("16") R"(
        input %x : u8[1,8,17,15]
        const %w : i8[16,8,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {activation="SiLU", dilations=[1,1], group=1, pads=[1,1,1,1], strides=[1,1]} : u8[1,16,17,15]
        output %y)"},
    {"ConvActivatedDepthwiseWithFactors", U8 CHANNELS("6") R"(
        input %x : u8[1,6,14,14]
        const %w : i8[6,1,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {activation="Clip", alpha=-20.0, beta=60.0, dilations=[1,1], factors=f[1.0,2.0,0.5,1.5,3.0,1.0], group=6, pads=[1,1,1,1], strides=[2,2]} : u8[1,6,7,7]
        output %y)"},
    {"ConvOfFactorsAlone", S8 R"(
        input %x : i8[2,6,9,8]
        const %w : i8[3,6,3,3] = {0}
        const %ws : f32[] = {0.01}
        const %wz : i8[] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz {dilations=[1,1], factors=f[1.0,2.0,0.5], group=1, pads=[1,1,1,1], strides=[1,1]} : i8[2,3,9,8]
        output %y)"},
    {"ConvGrouped", U8 CHANNELS("12") R"(
        input %x : u8[1,8,9,9]
        const %w : i8[12,4,3,3] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1,1], group=2, pads=[1,1,1,1], strides=[1,1]} : u8[1,12,9,9]
        output %y)"},
    // Unsigned weights around 128 are signed ones around 0.
    {"ConvUnsignedWeights", U8 R"(
        input %x : u8[1,5,9,9]
        const %w : u8[12,5,1,1] = {0}
        const %ws : f32[] = {0.01}
        const %wz : u8[] = {128}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : u8[1,12,9,9]
        output %y)"},
    // Less 100 they do not fit int8.
    {"ConvWideWeights", U8 R"(
        input %x : u8[1,5,9,9]
        const %w : u8[12,5,3,3] = {0}
        const %ws : f32[] = {0.01}
        const %wz : u8[] = {100}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz )" WINDOW R"( : u8[1,12,9,9]
        output %y)"},
    {"MatMulWideWeights", U8 R"(
        input %x : u8[6,40]
        const %w : u8[40,9] = {0}
        const %ws : f32[] = {0.01}
        const %wz : u8[] = {100}
        %y = QLinearMatMul %x, %xs, %xz, %w, %ws, %wz, %ys, %yz : u8[6,9]
        output %y)"},
    {"ConvOneAxis", U8 CHANNELS("6") R"(
        input %x : u8[2,4,32]
        const %w : i8[6,4,5] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b {dilations=[1], group=1, pads=[2,2], strides=[1]} : u8[2,6,32]
        output %y)"},
    // Long sums of large products: 16 bits would saturate in between.
    {"ConvLargeSums", U8 R"(
        input %x : u8[1,256,6,6]
        const %w : i8[8,256,3,3] = {0}
        const %ws : f32[] = {0.05}
        const %wz : i8[] = {0}
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %wz, %ys, %yz )" WINDOW R"( : u8[1,8,6,6]
        output %y)"},
    {"ConvIntegerOfOneColumnWithAStride", R"(
        input %x : u8[1,7,10,2]
        const %w : i8[35,1,2,2] = {0}
        const %xz : u8[] = {117}
        %y = ConvInteger %x, %w, %xz {dilations=[1,1], group=7, pads=[0,0,0,0], strides=[1,3]} : i32[1,35,9,1]
        output %y)"},
    {"ConvIntegerOfOneRowWithAStride", R"(
        input %x : u8[1,7,2,10]
        const %w : i8[35,1,2,2] = {0}
        const %xz : u8[] = {117}
        %y = ConvInteger %x, %w, %xz {dilations=[1,1], group=7, pads=[0,0,0,0], strides=[3,1]} : i32[1,35,1,9]
        output %y)"},
    {"ConvIntegerOfOnePixelWithStrides", R"(
        input %x : u8[1,6,2,3]
        const %w : i8[12,1,2,3] = {0}
        const %xz : u8[] = {117}
        %y = ConvInteger %x, %w, %xz {dilations=[1,1], group=6, pads=[0,0,0,0], strides=[4,5]} : i32[1,12,1,1]
        output %y)"},
    {"ConvInteger", R"(
        input %x : u8[1,7,9,8]
        const %w : i8[5,7,3,3] = {0}
        const %xz : u8[] = {101}
        %y = ConvInteger %x, %w, %xz )" WINDOW R"( : i32[1,5,9,8]
        output %y)"},
    {"PictureOfThreeChannels", U8 CHANNELS("16") R"(
        input %p : f32[1,3,20,18]
        const %w : i8[16,3,3,3] = {0}
        %x = QuantizeLinear %p, %xs, %xz {axis=0} : u8[1,3,20,18]
        %y = QLinearConv %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b )" WINDOW R"( : u8[1,16,20,18]
        output %y)"},
    {"ConvOfFloatsThenCodes", R"(
        input %p : f32[1,8,17,15]
        const %w : f32[16,8,3,3] = {0}
        const %ys : f32[] = {0.01}
        const %yz : u8[] = {130}
        %c = Conv %p, %w )" WINDOW R"( : f32[1,16,17,15]
        %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,16,17,15]
        output %y)"},
    {"ConvOfFloatsWithFactorsThenCodes", R"(
        input %p : f32[1,8,17,15]
        const %w : f32[8,1,3,3] = {0}
        const %b : f32[8] = {0}
        const %f : f32[1,8,1,1] = {0}
        const %ys : f32[] = {0.00001}
        const %yz : u8[] = {100}
        %c = Conv+Clip+Mul %p, %w, %b, %f {Clip.max=0.15, Clip.min=-0.1, dilations=[1,1], group=8, pads=[1,1,1,1], strides=[1,1]} : f32[1,8,17,15]
        %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,8,17,15]
        output %y)"},
    {"ConvOfFloatsWhoseSumsOthersReadToo", R"(
        input %p : f32[1,8,17,15]
        const %w : f32[16,8,3,3] = {0}
        const %ys : f32[] = {0.01}
        const %yz : u8[] = {130}
        %c = Conv %p, %w )" WINDOW R"( : f32[1,16,17,15]
        %y = QuantizeLinear %c, %ys, %yz {axis=0} : u8[1,16,17,15]
        %r = Relu %c : f32[1,16,17,15]
        %z = QuantizeLinear %r, %ys, %yz {axis=0} : u8[1,16,17,15]
        output %y
        output %z)"},
    {"MatMulWithBias", U8 CHANNELS("70") R"(
        input %x : u8[2,5,40]
        const %w : i8[40,70] = {0}
        %y = QLinearMatMul %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b : u8[2,5,70]
        output %y)"},
    // One row: shared by columns.
    {"MatMulOfARow", S8 CHANNELS("1000") R"(
        input %x : i8[1,512]
        const %w : i8[512,1000] = {0}
        %y = QLinearMatMul %x, %xs, %xz, %w, %ws, %zeros, %ys, %yz, %b : i8[1,1000]
        output %y)"},
    {"MatMulOfTwoComputed", U8 R"(
        input %x : u8[2,3,9,20]
        input %z : u8[3,20,7]
        %y = QLinearMatMul %x, %xs, %xz, %z, %xs, %xz, %ys, %yz : u8[2,3,9,7]
        output %y)"},
    {"MatMulInteger", R"(
        input %x : i8[6,40]
        const %w : i8[40,9] = {0}
        %y = MatMulInteger %x, %w : i32[6,9]
        output %y)"},
    {"AddOfTwoScalesAndBroadcast", U8 R"(
        input %x : u8[1,12,7,5]
        input %z : u8[1,12,1,1]
        const %zs : f32[] = {0.5}
        %a = com.microsoft::QLinearAdd %x, %xs, %xz, %z, %zs, %yz, %ys, %yz : u8[1,12,7,5]
        const %ts : f32[] = {1.3}
        %y = com.microsoft::QLinearAdd %a, %ys, %yz, %a, %ys, %yz, %ts, %xz : u8[1,12,7,5]
        output %y)"},
    {"MulByAGate", S8 R"(
        input %x : i8[1,30,7,5]
        %p = com.microsoft::QLinearGlobalAveragePool %x, %xs, %xz, %xs, %yz : i8[1,30,1,1]
        const %gs : f32[] = {0.00390625}
        const %gz : i8[] = {-128}
        %g = com.microsoft::QLinearSigmoid %p, %xs, %yz, %gs, %gz : i8[1,30,1,1]
        %y = com.microsoft::QLinearMul %x, %xs, %xz, %g, %gs, %gz, %xs, %xz : i8[1,30,7,5]
        output %y)"},
    // Rows that are not dense: each result lies beside the channels of the other.
    {"ProductsSideBySide", U8 R"(
        input %x : u8[1,8,6,5]
        input %z : u8[1,5,6,5]
        %a = com.microsoft::QLinearMul %x, %xs, %xz, %x, %xs, %xz, %ys, %yz : u8[1,8,6,5]
        %b = com.microsoft::QLinearMul %z, %xs, %xz, %z, %xs, %xz, %ys, %yz : u8[1,5,6,5]
        %y = Concat %a, %b {axis=1} : u8[1,13,6,5]
        output %y)"},
    {"ConcatOfDifferentScales", U8 R"(
        input %x : u8[1,8,6,5]
        input %z : u8[1,3,6,5]
        const %zs : f32[] = {0.05}
        %y = com.microsoft::QLinearConcat %zs, %yz, %x, %xs, %xz, %z, %zs, %yz {axis=1} : u8[1,11,6,5]
        output %y)"},
    {"LeakyReluAndClip", S8 R"(
        input %x : i8[1,8,6,5]
        const %s : f32[] = {0.011}
        %a = com.microsoft::QLinearLeakyRelu %x, %xs, %xz, %s, %yz {alpha=0.2} : i8[1,8,6,5]
        %y = Clip %a {max=90.0, min=4.0} : i8[1,8,6,5]
        output %y)"},
    {"AveragePools", S8 R"(
        input %x : i8[1,300,9,6]
        const %s : f32[] = {0.013}
        %a = com.microsoft::QLinearAveragePool %x, %xs, %xz, %s, %yz {ceil_mode=0, count_include_pad=1, dilations=[1,1], kernel_shape=[3,2], pads=[1,1,0,0], strides=[1,1]} : i8[1,300,8,6]
        %y = com.microsoft::QLinearAveragePool %a, %s, %yz, %s, %xz {ceil_mode=1, count_include_pad=0, dilations=[1,1], kernel_shape=[3,3], pads=[0,0,0,0], strides=[2,2]} : i8[1,300,4,3]
        output %y)"},
    // A channel shuffle, whose pieces are views and copies of codes.
    {"MovesCodes", U8 R"(
        input %x : u8[1,8,6,8]
        %a = Reshape %x {shape=[1,2,4,6,8]} : u8[1,2,4,6,8]
        %b = Transpose %a {perm=[0,2,1,3,4]} : u8[1,4,2,6,8]
        %c = Reshape %b {shape=[1,8,6,8]} : u8[1,8,6,8]
        %d, %e = Split %c {axis=1, split=[4,4]} : u8[1,4,6,8], u8[1,4,6,8]
        %f = MaxPool %e {ceil_mode=0, dilations=[1,1], kernel_shape=[3,3], pads=[1,1,1,1], storage_order=0, strides=[1,1]} : u8[1,4,6,8]
        %g = Concat %d, %f {axis=1} : u8[1,8,6,8]
        %y = Pad %g {mode="constant", pads=[0,0,1,1,0,0,0,2], value=117.0} : u8[1,8,7,11]
        output %y)"},
    {"QuantisesPerChannel", R"(
        input %x : f32[1,4,6,5]
        const %s : f32[4] = {0}
        const %z : u8[4] = {3, 99, 128, 255}
        %y = QuantizeLinear %x, %s, %z {axis=1} : u8[1,4,6,5]
        %d = DequantizeLinear %y, %s, %z {axis=1} : f32[1,4,6,5]
        output %y
        output %d)"},
};
#undef U8
#undef S8
#undef SYMMETRIC
#undef CHANNELS
#undef WINDOW

}  // namespace vartml::test
