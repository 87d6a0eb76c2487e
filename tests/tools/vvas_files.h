// SPDX-License-Identifier: Apache-2.0
// Configurations of vvas_xinfer, shaped like those of its releases.
#pragma once

namespace vartml::test {

// Release 6, ONNX Runtime, a classifier.
inline constexpr char vvas_resnet[] = R"({
  "preprocess-config": {
    "xclbin-location": "/run/media/mmcblk0p1/x_plus_ml.xclbin",
    "library-name": "libvvas_image_process_hw_lib.so",
    "library-config": "{\"kernel-name\":\"image_processing:{image_processing_1}\"}",
    "mean-r": 123.675, "mean-g": 116.28, "mean-b": 103.53,
    "scale-r": 0.017124, "scale-g": 0.017507, "scale-b": 0.017429
  },
  "infer-config": {
    "model-format": "RGB",
    "inference-backend-runtime": "onnxrt",
    "onnxrt-config": {
      "onnx-model-path": "shelf.onnx",
      "input-tensor-layout": "NCHW",
      "onnxrt-ep": "vitisai",
      "vitisai-ep-config": {
        "config-file-path": "./vitisai_config.json", "cache-dir": "cache", "cache-key": "resnet50"
      }
    }
  },
  "postprocess-config": {
    "library-path": "/usr/lib/libvvascore_postprocess_resnet50-1.0.so",
    "library-config": { "topk": 5, "label-file-path": "names.txt" }
  }
})";

// Release 6, VART, a detector; the model is on the board only.
inline constexpr char vvas_yolox[] = R"({
  "preprocess-config": {
    "xclbin-location": "./x_plus_ml.xclbin",
    "maintain-aspect-ratio": 1, "symmetric-padding": 0, "image-pad-value": 114,
    "mean-r": 0.0, "mean-g": 1.0, "mean-b": 2.0, "scale-r": 1.0, "scale-g": 0.5, "scale-b": 0.25,
    "quantization": { "scale-factor": 64.0 }
  },
  "infer-config": {
    "model-format": "BGR",
    "batch-size": 4,
    "inference-max-queue": 30,
    "attach-empty-metadata": true,
    "inference-backend-runtime": "VART",
    "vart-config": {
      "vart-model-path": "/etc/vai/models/yolox m.rai",
      "output-tensor-type": "HW",
      "aie-columns-sharing": false, "start-column": 8, "out-mem-bank": 1,
      "config-file-path": "/etc/vai/vitisai_config.json"
    }
  },
  "postprocess-config": {
    "library-path": "/usr/lib/libvvascore_postprocess_yolo-1.0.so",
    "library-config": {
      "preset": "YOLOx", "conf_thresh": 0.35, "iou_thresh": 0.3, "class_agnostic": true,
      "input_width": 640, "input_height": 640, "grid_strides": [8, 16, 32],
      "max_detections": 50, "class_label_file": "names.txt"
    },
    "dequantization": { "scale-factor": 0.25 }
  }
})";

// Release 6, the second level of a cascade.
inline constexpr char vvas_second_level[] = R"({
  "preprocess-config": {
    "software-ppe": true,
    "mean-r": 0.0, "mean-g": 0.0, "mean-b": 0.0,
    "scale-r": 0.0039, "scale-g": 0.0039, "scale-b": 0.0039
  },
  "infer-config": {
    "inference-level": 2,
    "input-obj-min-width": 40, "input-obj-min-height": 30, "input-obj-max-width": 800,
    "input-class-filters": ["car", "traffic light"],
    "low-latency": true,
    "model-format": "RGB",
    "inference-backend-runtime": "vart",
    "vart-config": { "vart-model-path": "/models/cars" }
  },
  "postprocess-config": {
    "library-path": "/usr/lib/libvvascore_postprocess_resnet18-1.0.so",
    "library-config": { "label-file-path": "names.txt" }
  }
})";

// Release 6, frames that are the model's input already: no pre-processing.
inline constexpr char vvas_tensor_frames[] = R"({
  "infer-config": {
    "model-format": "RGB",
    "inference-backend-runtime": "vart",
    "vart-config": {
      "vart-model-path": "/opt/models/gate.rai", "start-column": 4, "aie-columns-sharing": false
    }
  },
  "postprocess-config": {
    "library-path": "/usr/lib/libvvascore_postprocess_resnet50-1.0.so",
    "library-config": { "topk": 1, "label-file-path": "/opt/models/not-on-this-machine.txt" }
  }
})";

// Release 6, the general library for post-processing: what it does is a word of the file.
inline constexpr char vvas_by_type[] = R"({
  "preprocess-config": {
    "mean-r": 0.0, "mean-g": 0.0, "mean-b": 0.0,
    "scale-r": 0.0039, "scale-g": 0.0039, "scale-b": 0.0039
  },
  "infer-config": {
    "model-format": "RGB",
    "inference-backend-runtime": "onnxrt",
    "onnxrt-config": { "onnx-model-path": "shelf.onnx" }
  },
  "postprocess-config": {
    "library-path": "/usr/lib/libvvascore_postprocess_vart.so",
    "library-config": {
      "type": "NMS", "label-file-path": "names.txt", "topk": 1,
      "nms-threshold": 0.55, "conf-threshold": 0.2, "post-process-print": "false",
      "model-params": {
        "is-obj-score-included": "true", "is-scaling-required": "false",
        "grid-shape": [[4, 4], [2, 2]], "num-anchorboxes": [3, 3], "anchors": [],
        "input-layout": ["NCHW"], "output-layout": ["NHC"], "quant-scale-factors": [8.0]
      }
    }
  }
})";

// Release 3, a detector on a DPU, and the file for its pre-processing.
inline constexpr char vvas_dpu[] = R"({
  "attach-ppe-outbuf": false,
  "inference-level": 1,
  "low-latency": false,
  "inference-max-queue": 100,
  "kernel": {
    "config": {
      "batch-size": 1,
      "model-name": "yolov3_voc",
      "model-class": "YOLOV3",
      "model-format": "RGB",
      "model-path": "/usr/share/vitis_ai_library/models/",
      "vitis-ai-preprocess": false,
      "performance-test": false,
      "max-objects": 3,
      "filter-labels": ["car", "person"],
      "float-feature": 1,
      "segoutfactor": 1.0,
      "seg-out-format": "BGR",
      "debug-level": 0
    }
  }
})";
inline constexpr char vvas_dpu_preprocess[] = R"({
  "xclbin-location": "/run/media/mmcblk0p1/dpu.xclbin",
  "vvas-library-repo": "/usr/lib",
  "device-index": 0,
  "scaler-type": "letterbox", "scaler-horz-align": "center", "scaler-vert-align": "center",
  "scaler-pad-value": 128,
  "kernel": {
    "kernel-name": "image_processing:{image_processing_1}",
    "library-name": "libvvas_xpreprocessor.so",
    "config": { "ppc": 2, "in-mem-bank": 0, "out-mem-bank": 0, "inference-level": 1, "debug_level": 0 }
  }
})";

// Release 1: a list of one kernel, other spellings.
inline constexpr char vvas_oldest[] = R"({
  "xclbin-location": "/media/sd-mmcblk0p1/dpu.xclbin",
  "vvas-library-repo": "/usr/lib/",
  "element-mode": "inplace",
  "kernels": [{
    "library-name": "libvvas_xdpuinfer.so",
    "config": {
      "model-name": "densebox_320_320",
      "model-class": "FACEDETECT",
      "model-path": "/usr/share/vitis_ai_library/models",
      "run_time_model": false,
      "need_preprocess": true,
      "performance_test": false,
      "debug_level": 1
    }
  }]
})";

}  // namespace vartml::test
