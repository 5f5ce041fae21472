"""Runs the service on a free port for the duration of a `with` block. Needs no package."""
import json, pathlib, socket, subprocess, tempfile, time, urllib.error, urllib.request


class Service:
    def __init__(self, program, config, before=()):
        """`config` is the text of the settings; relative paths in them are relative to a temporary directory. `before` stands before the program
        on the command line."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.directory = tempfile.TemporaryDirectory()
        settings = pathlib.Path(self.directory.name) / "config.toml"
        settings.write_text(config)
        self.started = time.monotonic()
        command = [*before, program, "--config", settings, "serve", "--port", self.port]
        self.process = subprocess.Popen([str(part) for part in command], stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.directory.cleanup()

    def call(self, method, path, body=None, **headers):
        """The JSON of the response. An error ends the program with the service's message."""
        return json.loads(self.text(method, path, body, **headers))

    def text(self, method, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers} if data else headers
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            return urllib.request.urlopen(request).read().decode()
        except urllib.error.HTTPError as error:
            if error.code == 503:
                raise
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def wait(self, done):
        """Seconds from the start of the process until `done` returns true without an error."""
        while True:
            try:
                if done():
                    return time.monotonic() - self.started
            except OSError:
                pass
            assert self.process.poll() is None, "the service has exited"
            time.sleep(0.01)
