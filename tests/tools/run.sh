#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `vartml run` as its users call it: exit statuses, console, JSON. $1 is the program, $2 a small model.
set -u
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# expect STATUS PATTERN COMMAND...: the command ends so and says so.
expect() {
    status=$1 pattern=$2
    shift 2
    "$@" >"$folder/out" 2>&1
    found=$?
    if [ "$found" -ne "$status" ] || ! grep -q -- "$pattern" "$folder/out"; then
        echo "FAILED: $*: exit $found, expected $status and '$pattern'; it said:"
        cat "$folder/out"
        failures=$((failures + 1))
    fi
}

expect 0 'usage\|Usage\|OPTIONS' "$program" run --help
expect 2 'MODEL' "$program" run
expect 2 'numerics' "$program" run x.rai --numerics f16
expect 1 'nowhere.rai' "$program" run "$folder/nowhere.rai"
expect 2 "--time: is 'nan', expected a finite number" "$program" run x.rai --time nan
expect 2 '--time: ' "$program" run x.rai --time 0
expect 2 "--tolerance: is '-1', expected a finite number of at least 0" "$program" run x.rai --expect . --tolerance -1
expect 2 '--tolerance requires --expect' "$program" run x.rai --tolerance 1
expect 2 "--tolerance: is 'nan'" "$program" verify x.onnx --tolerance nan
expect 2 "--threshold: is 'nan'" "$program" detect x.onnx x.png --threshold nan
expect 2 "--rate: is '-nan'" "$program" density x.onnx x.mp4 --p95 10 --rate -nan
expect 2 "--quantize-target: is 'nan'" "$program" compile x.onnx --quantize x --quantize-target nan
for option in '--expect d' '--save-outputs d' --steps '--time 3' '-n 3'; do
    expect 2 'has no effect with --profiling-overhead' "$program" run x.rai --profiling-overhead $option
done
expect 2 "--profiling-overhead-limit: is 'nan'" "$program" run x.rai --profiling-overhead --profiling-overhead-limit nan
expect 2 "--threshold: is 'nan'" "$program" diff --threshold nan a b
# Nothing is written over what is read.
cp "$2" "$folder/read.onnx"
expect 2 '--json: is .*read.onnx itself' "$program" run "$folder/read.onnx" -n 1 --json "$folder/./read.onnx"
expect 2 '--json: is .*read.onnx itself' "$program" bench "$2" "$folder/read.onnx" --json "$folder/read.onnx"
expect 2 '-o: is .*read.onnx itself' "$program" profile "$folder/read.onnx" -o "$folder/read.onnx"
cmp -s "$2" "$folder/read.onnx" || { echo "FAILED: the model is lost"; failures=$((failures + 1)); }
# The first line is written at once, so nothing is left to be written at the end.
expect 1 'cannot write to standard output; look' sh -c '"$0" bench "$1" --rounds 1 --time 0.001 2>&1 >/dev/full' "$program" "$2"
echo nonsense >"$folder/bad.rai"
expect 4 'bad.rai' "$program" run "$folder/bad.rai"

# What is saved is what is expected of the next run.
expect 0 "^output '.*': fp32 .*/saved/output_0.npy" "$program" run "$2" -n 1 --save-outputs "$folder/a/saved"
[ -f "$folder/a/saved/output_0.npy" ] || { echo "FAILED: nothing is saved"; failures=$((failures + 1)); }
expect 0 'as expected' "$program" run "$2" -n 1 --expect "$folder/a/saved"
for option in "--expect $folder/a/saved" "--input images=$folder/a/saved/output_0.npy"; do
    expect 2 '--save-outputs: is .*/a/saved/output_0.npy itself' "$program" run "$2" -n 1 $option --save-outputs "$folder/a/saved"
done
# Known before the run, which prints nothing then.
for place in bad.rai bad.rai/a/b; do
    expect 1 '--save-outputs: .*cannot be made a folder that files are written to' "$program" run "$2" -n 1 --save-outputs "$folder/$place"
    grep -q '^InferenceCnt' "$folder/out" && { echo "FAILED: it ran"; failures=$((failures + 1)); }
done
expect 1 '--expect: .*/a has no output_0.npy or .pb' "$program" run "$2" -n 1 --expect "$folder/a"
cp -r "$folder/a/saved" "$folder/a/more"
cp "$folder/a/saved/output_0.npy" "$folder/a/more/output_9.npy"
for n in 1 2 3 4 5 6 7 8; do cp "$folder/a/saved/output_0.npy" "$folder/a/more/output_$n.npy"; done
expect 2 '--expect: .*/a/more/output_[0-9].npy is of no output, the model has [0-9]' "$program" run "$2" -n 1 --expect "$folder/a/more"
for option in --inputs --expect --save-outputs --json --device; do
    expect 2 "run: $option: is '', expected [A-Z]" "$program" run "$2" -n 1 $option ''
done
expect 2 "profile: PICTURE: is '', expected a value" "$program" profile "$2" ''
echo nonsense >"$folder/bad.png"
expect 2 'bad.png: is no picture that can be read' "$program" profile "$2" "$folder/bad.png"

# --json - is standard output, which nothing else is printed to, and no file.
for words in "run $2 -n 1 --steps" "bench $2 --rounds 1 --time 0.001" "verify $2" doctor; do
    (cd "$folder" && "$program" $words --json - 2>"$folder/err" >"$folder/json")
    case $(cat "$folder/err") in *'no ONNX Runtime to compare with'*) continue ;; esac
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/json" && [ ! -e "$folder/-" ] ||
        { echo "FAILED: $words --json -:"; cat "$folder/json" "$folder/err"; failures=$((failures + 1)); }
done
expect 1 '--json: standard output: cannot write: No space' sh -c '"$0" run "$1" -n 1 --json - >/dev/full' "$program" "$2"
expect 2 '--json: is -, expected a file' "$program" verify --all "$folder" --json -

model=${VARTML_SHARED:-}/models/mnist_cntk
if [ -f "$model/model.onnx" ]; then
    data=$model/test_data_set_0
    "$program" compile "$model/model.onnx" -o "$folder/m.rai" >/dev/null || exit 1
    "$program" compile "$model/model.onnx" -o "$folder/m.tar.gz" >/dev/null || exit 1
    expect 0 'as expected' "$program" run "$folder/m.tar.gz" -n 1 --inputs "$data" --expect "$data"
    ls | grep -q vaiml_cache_m_ && { echo "FAILED: a folder is left"; failures=$((failures + 1)); }
    for view in hw cpu; do
        expect 0 'as expected' "$program" run "$folder/m.rai" --view $view -n 3 --inputs "$data" \
            --expect "$data" --json "$folder/m.json"
        grep -q '^InferenceCnt 3 TotalDuration [0-9]*us BatchSize 1 Inf/Sec ' "$folder/out" ||
            { echo "FAILED: console"; failures=$((failures + 1)); }
        grep -q '"inferences": 3' "$folder/m.json" || { echo "FAILED: JSON"; failures=$((failures + 1)); }
    done
    expect 6 'NOT as expected' "$program" run "$folder/m.rai" -n 1 --expect "$data"
    expect 0 'jobs in flight: 4 asked' "$program" run "$folder/m.rai" -n 9 --in-flight 4
    expect 0 'steps: ' "$program" run "$folder/m.rai" -n 1 --steps
    expect 2 "expected NAME=FILE with a NAME of 'Input3'" "$program" run "$folder/m.rai" --input x=y.npy
    expect 2 "is given twice for input 'Input3'" "$program" run "$folder/m.rai" \
        --input "Input3=$data/input_0.pb" --input "Input3=$data/input_0.pb"
    expect 1 'input_0' "$program" run "$folder/m.rai" --inputs "$folder"
    mkdir -p "$folder/run=1"
    cp "$data/input_0.pb" "$folder/run=1/x.pb"
    expect 0 'as expected' "$program" run "$folder/m.rai" -n 1 --input "Input3=$folder/run=1/x.pb" --expect "$data"
else
    echo "no models beside the project: only the command line was tested"
fi
[ "$failures" -eq 0 ]
