"""A builder's child that needs no builder: what it does is the stem of the request's model.

Run with `-I -S`: it starts in a few milliseconds.
"""

import hashlib
import json
import os
import signal
import sys
import time


def emit(**event):
    os.write(1, (json.dumps(event) + "\n").encode())


def log(text):
    with open(os.path.join(folder, "build.log"), "a") as file:  # noqa: PTH123, PTH118
        file.write(text)


def build():
    emit(event="phase", name="Building", parent=None, steps=2)
    emit(event="step", name="Building", step=1)
    data = b"ptrt" + request["model"].encode()
    with open(os.path.join(folder, "engine"), "xb") as file:  # noqa: PTH123, PTH118
        file.write(data)
    emit(event="end", name="Building")
    emit(
        event="built",
        warnings=["a warning"],
        builder_version="1.7.1.116",
        library="libdouble.so",
        engine_sha256=hashlib.sha256(data).hexdigest(),
        aslr_off=True,
        peak_bytes=1,
    )


def notes():
    emit(event="note", text="not kept on one processor: no")
    build()


def tactics():
    """Leaves what a builder with an editable timing cache does: tables, layers, cache, sidecar."""
    given = os.path.dirname(request["model"])  # noqa: PTH120
    for name in ("tables.log", "layers.txt", "timing.cache", "timing.cache.json"):
        with open(os.path.join(given, name), "rb") as file:  # noqa: PTH123, PTH118
            data = file.read()
        place = "build.log" if name == "tables.log" else name
        with open(os.path.join(folder, place), "ab") as file:  # noqa: PTH123, PTH118
            file.write(data)
    build()


def refuse():
    emit(event="refused", reasons=["node 'n' (T): no"], warnings=[])


def fail():
    emit(event="failed", reasons=["a reason"], warnings=[])


def unwritable():
    emit(event="unwritable", reasons=["No space left on device"])


def crash():
    log("".join(f"[V] line {i}\n" for i in range(100)))
    os.kill(os.getpid(), signal.SIGSEGV)


def verbose():
    log(f"[V] verbose: {request['verbose']}\n")
    os.kill(os.getpid(), signal.SIGSEGV)


def exits():
    os.remove(os.path.join(folder, "build.log"))  # noqa: PTH107, PTH118
    sys.exit("what it says before its log is open")


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def half():
    """Ends in the middle of the line that would have said that it succeeded."""
    os.write(1, b'{"event": "built", "warnings": [')


def hang():
    emit(event="phase", name="Hanging", parent=None, steps=1)
    time.sleep(600)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.close(1)
    time.sleep(600)


def eat():
    held = []
    while True:
        held.append(b"x" * (8 << 20))
        time.sleep(0.005)


def chatty():
    for step in range(20_000):
        emit(event="step", name="Building", step=step)
    build()


def environment():
    with open(os.path.join(folder, "engine"), "x") as file:  # noqa: PTH123, PTH118
        json.dump(dict(os.environ), file)
    fail()


emit(event="ready")
line = sys.stdin.readline()
while line and "early" in json.loads(line):
    line = sys.stdin.readline()
if line:
    request = json.loads(line)
    folder = request["folder"]
    log("[V] a line\n")
    action = os.path.basename(request["model"]).partition(".")[0]  # noqa: PTH119
    # Of "crash_86" the build for sm_86 crashes, and all others go well.
    action, _, sm = action.partition("_")
    globals()["build" if sm and sm != str(request["sm"]) else action]()
