"""Loggers: the library's own writes to stdout and stderr, past Python."""

from __future__ import annotations

import os
import time
from enum import IntEnum

from tensorrt.release import Native


class Severity(IntEnum):
    INTERNAL_ERROR = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    VERBOSE = 4


class ILogger(Native):
    Severity = Severity
    INTERNAL_ERROR = Severity.INTERNAL_ERROR
    ERROR = Severity.ERROR
    WARNING = Severity.WARNING
    INFO = Severity.INFO
    VERBOSE = Severity.VERBOSE

    def log(self, severity: Severity, msg: str) -> None:
        raise NotImplementedError


class Logger(ILogger):
    min_severity = Severity.WARNING

    def __init__(self, min_severity: Severity = Severity.WARNING) -> None:
        self.min_severity = min_severity

    def log(self, severity: Severity, msg: str) -> None:
        if severity > self.min_severity:
            return
        stamp = time.strftime("[%m/%d/%Y-%H:%M:%S]")
        line = f"{stamp} [TRT] [{'FEWIV'[severity]}] {msg}\n"
        os.write(2 if severity <= Severity.WARNING else 1, line.encode())
