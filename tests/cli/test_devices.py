import json

import pytest

from pelton.cli import main


def test_devices_are_those_that_load_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    assert "local-task" in capsys.readouterr().out
    assert main(["devices", "--json"]) == 0
    assert "local-sync" in [device["uri"] for device in json.loads(capsys.readouterr().out)]
