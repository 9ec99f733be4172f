"""Generated programs: graphs of many operators, compiled and compared with eager PyTorch."""
