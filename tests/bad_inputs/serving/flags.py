"""Wrong flags of run_server.py, and limits that contradict."""

from tests.bad_inputs import matrix


def _flag(name: str, value: str, line: str) -> matrix.Case:
    return matrix.Case({name: value}, line)


CASES: dict[str, matrix.Case] = {
    # ---- Models
    "no model": matrix.Case(
        {"model": None},
        "Give --model, the folders of models, or --config_dir, that of a",
    ),
    "model and config_dir": _flag(
        "config_dir", "{data}", "--model goes without --config_dir: leave it"
    ),
    "model empty": _flag("model", "", "--model"),
    "model without a path": _flag(
        "model", "m=", "--model must be paths of models, or name=path, with"
    ),
    "a name that no URL has": _flag(
        "model", "a:b={data}/models/right", "a name has none of / : ? # %."
    ),
    "a name twice": _flag(
        "model",
        "{data}/models/right,right={data}/models/pb_cut",
        "2 models are called right. Name them apart, as in --model=one=/path",
    ),
    "a folder twice": _flag(
        "model", "{data}/models/right,{data}/models/right/1", "2 models are"
    ),
    # ---- Network
    "port no number": _flag("port", "http", "--port must be a whole number"),
    "port negative": _flag("port", "-1", "--port must be a whole number"),
    "port too large": _flag("port", "65536", "--port must be a whole number"),
    "host is not here": _flag(
        "host", "203.0.113.1", "The server can't listen: "
    ),
    "host is no address": _flag(
        "host", "no.such.host.invalid", "The server can't listen: "
    ),
    "host empty": _flag("host", "", "--host must be given or left out"),
    # ---- Limits
    "requests of no size": _flag(
        "max_request_mb", "0", "--max_request_mb must be a number, above 0"
    ),
    "requests of any size": _flag(
        "max_request_mb", "nan", "--max_request_mb must be a number, above 0"
    ),
    "no queue": _flag("max_queue", "0", "--max_queue must be a whole number"),
    "a queue without an end": _flag(
        "max_queue", "inf", "--max_queue must be a whole number"
    ),
    "no batch": _flag(
        "max_batch_size", "0", "--max_batch_size must be a whole number"
    ),
    "a batch that waits back": _flag(
        "batch_timeout_ms", "-1", "--batch_timeout_ms must be a number, at"
    ),
    "a batch that waits for days": _flag(
        "batch_timeout_ms", "1e9", "--batch_timeout_ms must be a number, at"
    ),
    "no more seconds to stop": _flag(
        "stop_seconds", "-1", "--stop_seconds must be a number, at least 0"
    ),
    "no more seconds to look": _flag(
        "poll_seconds", "soon", "--poll_seconds must be a number, at least 0"
    ),
    "processors negative": _flag(
        "intra_op_threads", "-2", "--intra_op_threads must be a whole number"
    ),
    "unknown": _flag("max_batchsize", "8", "max_batchsize"),
}
