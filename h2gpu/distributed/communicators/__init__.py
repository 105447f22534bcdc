"""Who speaks to whom: the protocol, and its adapters to one process, MPI and NCCL."""
