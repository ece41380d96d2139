"""Secrets and certificates from files, read again when they are needed so that rotated ones are picked up."""

import base64
import ssl
from pathlib import Path

from tidegauge.sources import regular
from tidegauge.sources.target import BasicAuth, Target, Tls

MAX_SECRET_SIZE = 64 * 1024
_Stamp = tuple[int, int, int]


class CredentialError(Exception):
    """A secret or certificate cannot be used; the message names its file and never its content."""


def read_secret(path: str) -> str:
    """The text of a secret file without the white space around it.

    Raises CredentialError for a file that cannot be read, is no regular file (a pipe would block the poller), is
    empty, too large or not text.
    """
    try:
        content = regular.head(Path(path), MAX_SECRET_SIZE + 1)
    except regular.UnreadableError as error:
        raise CredentialError(str(error)) from error
    return _secret_text(path, content)


def _secret_text(path: str, content: bytes) -> str:
    if len(content) > MAX_SECRET_SIZE:
        raise CredentialError(f"{path}: expected a secret of at most {MAX_SECRET_SIZE} bytes")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError as error:
        raise CredentialError(f"{path}: expected UTF-8 text") from error
    if not text or not text.isprintable():
        raise CredentialError(f"{path}: expected one line of text, found {'several' if text else 'nothing'}")
    return text


def read_token(path: str) -> str:
    """The token of a secret file, fit for a header; raises CredentialError."""
    token = read_secret(path)
    if not token.isascii() or " " in token:
        raise CredentialError(f"{path}: expected a token of ASCII characters without spaces")
    return token


def bearer(token: str) -> dict[str, str]:
    """The `Authorization` header that carries *token*."""
    return {"Authorization": f"Bearer {token}"}


def authorization(target: Target) -> dict[str, str]:
    """The `Authorization` header of a poll, or nothing; raises CredentialError."""
    if target.bearer_token_file is not None:
        return bearer(read_token(target.bearer_token_file))
    return _basic(target.basic_auth) if target.basic_auth is not None else {}


def _basic(auth: BasicAuth) -> dict[str, str]:
    pair = f"{auth.username}:{read_secret(auth.password_file)}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


class TlsContexts:
    """TLS contexts by their settings, built again when one of the files changed.

    Kept because a new context for each poll would also mean a new connection and handshake for each poll.
    """

    def __init__(self) -> None:
        self._built: dict[Tls, tuple[tuple[_Stamp, ...], ssl.SSLContext]] = {}

    def get(self, tls: Tls) -> ssl.SSLContext:
        """The context for these settings; raises CredentialError if a file cannot be used."""
        stamps = tuple(_stamp(path) for path in (tls.ca_file, tls.cert_file, tls.key_file) if path is not None)
        known = self._built.get(tls)
        if known is None or known[0] != stamps:
            known = (stamps, _context(tls))
            self._built[tls] = known
        return known[1]


def _stamp(path: str) -> _Stamp:
    try:
        found = Path(path).stat()
    except OSError as error:
        raise CredentialError(f"{path}: cannot be read: expected a file, found: {error.strerror}") from error
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            # An encrypted key would otherwise ask for its pass phrase on the terminal.
            context.load_cert_chain(tls.cert_file, tls.key_file, password=lambda: "")
    except (OSError, ValueError) as error:
        files = ", ".join(path for path in (tls.ca_file, tls.cert_file, tls.key_file) if path is not None)
        raise CredentialError(f"{files}: expected certificates and keys in PEM format, found: {error}") from error
    if tls.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
