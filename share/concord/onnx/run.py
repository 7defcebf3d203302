"""Runs an ONNX file with onnxruntime, for `concord export --verify=onnxruntime`.

run.py MODEL FOLDER reads FOLDER/request.json:
  inputs    names and .npy files in FOLDER
  steps     how often the model runs
  feedback  outputs that are inputs of the next run
and writes outputs to .npy files in FOLDER. It prints one JSON object: "steps" has a list for each run with the name and
the file of each output; "error" says why it could not.
"""

import json
import pathlib
import sys


def answer(**fields):
    print(json.dumps(fields))
    sys.exit(0)


try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    answer(missing=str(error))


def main():
    model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    request = json.loads((folder / "request.json").read_text())
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = {one["name"]: numpy.load(folder / one["file"]) for one in request["inputs"]}
    names = [output.name for output in session.get_outputs()]
    steps = []
    for step in range(request["steps"]):
        results = dict(zip(names, session.run(names, feed)))
        written = []
        for i, name in enumerate(names):
            file = f"output.{step}.{i}.npy"
            numpy.save(folder / file, results[name])
            written.append({"name": name, "file": file})
        steps.append(written)
        feed.update({request["feedback"][name]: results[name] for name in names if name in request["feedback"]})
    answer(version=onnxruntime.__version__, steps=steps)


try:
    main()
except Exception as error:  # whatever the checker or the runtime raise is the answer
    answer(error=f"{type(error).__name__}: {error}")
