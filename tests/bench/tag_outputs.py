# SPDX-License-Identifier: Apache-2.0
"""usage: tag_outputs.py IN.onnx OUT.onnx: adds what onnxinference 1.26 wants, a metadata property per output name."""
import sys

import onnx

model = onnx.load(sys.argv[1])
for output in model.graph.output:
    entry = model.metadata_props.add()
    entry.key, entry.value = output.name, f'tensor-{output.name}'
onnx.save(model, sys.argv[2])
