"""Routines of cuSOLVER that take one matrix, looped over many streams.

CuPy's bindings set a handle to the stream that is current where they are called, and some routines wait for the device:
every stream has a thread of the host, in which it is current, and a handle.
"""

from concurrent.futures import ThreadPoolExecutor


class Streams:
    """So many streams, each with a handle of cuSOLVER; `close` lets them go."""

    def __init__(self, count):
        import cupy
        from cupy_backends.cuda.libs import cusolver

        self.library, self.streams = cusolver, [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]
        self.handles = [cusolver.create() for _ in self.streams]
        self.pool = ThreadPoolExecutor(count)

    def each(self, work, count):
        """work(handle, stream's number, b) for all b below count, b on stream b mod their number.

        The streams begin when the current one has come here, and it waits for all of them. Raises what `work` raises.
        """
        import cupy

        now = cupy.cuda.get_current_stream()
        begin = now.record()

        def of_one(s):
            with self.streams[s] as stream:
                stream.wait_event(begin)
                for b in range(s, count, len(self.streams)):
                    work(self.handles[s], s, b)
                return stream.record()

        for end in list(self.pool.map(of_one, range(len(self.streams)))):
            now.wait_event(end)

    def close(self):
        """Handles and threads end; the streams' work is over."""
        for stream in self.streams:
            stream.synchronize()
        for handle in self.handles:
            self.library.destroy(handle)
        self.pool.shutdown()
