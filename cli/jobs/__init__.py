"""`pelton build`: a file of models, targets and options becomes jobs, run by a pool of workers."""
