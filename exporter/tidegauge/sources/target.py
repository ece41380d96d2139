"""How to reach a backend: plain values that the configuration fills and the poller reads."""

import attrs

MIB = 1024 * 1024


@attrs.frozen
class BasicAuth:
    """HTTP basic authentication; the password is read from its file at every poll."""

    username: str
    password_file: str


@attrs.frozen
class Tls:
    """What an https backend is checked against, and what it may check us by.

    Without `ca_file` the system's authorities are trusted. `server_name` is the name the certificate must carry
    when it is not the host of the URL.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    insecure_skip_verify: bool = False


@attrs.frozen
class Target:
    """One page to poll: `timeout` in seconds for the whole poll, `max_page_size` in bytes after decompression."""

    name: str
    url: str
    timeout: float = 5.0
    max_page_size: int = 16 * MIB
    bearer_token_file: str | None = None
    basic_auth: BasicAuth | None = None
    tls: Tls | None = None
