# SPDX-License-Identifier: Apache-2.0
"""A model that says the same of every picture."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def constant_model(file, outputs, size, fed):
    """Says `outputs` of every picture; boxes are multiplied by the size of the frame where that is fed."""
    nodes = [helper.make_node('ReduceMean', ['images'], ['mean'], keepdims=1),
             helper.make_node('Reshape', ['mean', 'one'], ['number']),
             helper.make_node('Mul', ['number', 'zero'], ['nothing'])]
    constants = [numpy_helper.from_array(np.array([1], np.int64), 'one'),
                 numpy_helper.from_array(np.array([0], np.float32), 'zero')]
    infos = []
    for name, values in outputs.items():
        values = values if values.dtype == np.int64 else values.astype(np.float32)
        constants.append(numpy_helper.from_array(values, f'{name}_says'))
        kind = TensorProto.INT64 if values.dtype == np.int64 else TensorProto.FLOAT
        infos.append(helper.make_tensor_value_info(name, kind, values.shape))
        nodes.append(helper.make_node('Cast', ['nothing'], [f'{name}_nothing'], to=kind))
        said = f'{name}_in_units' if fed and name == 'boxes' else name
        nodes.append(helper.make_node('Add', [f'{name}_says', f'{name}_nothing'], [said]))
    inputs = [helper.make_tensor_value_info('images', TensorProto.FLOAT, [1, 3, size[1], size[0]])]
    if fed:
        inputs.append(helper.make_tensor_value_info('orig_target_sizes', TensorProto.FLOAT, [1, 2]))
        nodes += [helper.make_node('Concat', ['orig_target_sizes'] * 2, ['units'], axis=1),
                  helper.make_node('Mul', ['boxes_in_units', 'units'], ['boxes'])]
    model = helper.make_model(helper.make_graph(nodes, 'says', inputs, infos, constants),
                              opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, file)
