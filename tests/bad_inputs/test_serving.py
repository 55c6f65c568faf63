"""Bad inputs of run_server.py."""

import socket

from tests.bad_inputs import matrix
from tests.bad_inputs.serving import flags, models
from tests.bad_inputs.serving.inputs import SCRIPT, build

CASES = {
    **flags.CASES,
    **models.CASES,
}

data = matrix.inputs(build)


test_bad_input = matrix.refused(SCRIPT, CASES)


def test_the_port_is_taken(data, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        case = matrix.Case(
            {"port": str(port)},
            f"Choose another --port or --host. Received: host=127.0.0.1, "
            f"port={port}",
        )
        matrix.check(SCRIPT, case, data, tmp_path)
