"""Prints which of the services is active: one_active.py TOKEN_FILE CA_FILE URL URL

Unless all of them answer, one of them is active and the others follow it, this says what each does and exits 1.
"""

import ssl
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

SECONDS = 10.0
UNAVAILABLE = 503


def ask_state(url, headers, tls):
    """What the service says is active: its own address, another one's, or None; and what it says of itself."""
    try:
        with build_opener(ProxyHandler({}), tls).open(Request(f"{url}/readyz", headers=headers), timeout=SECONDS):  # noqa: S310
            return url, "is active"
    except HTTPError as error:
        active = error.headers.get("Nodewise-Active") if error.code == UNAVAILABLE else None
        return active, f"follows {active}" if active else f"says {error.code} {error.reason}"
    except OSError as error:
        return None, f"does not answer ({getattr(error, 'reason', error)})"


def main(token_file, ca_file, *urls):
    """Print the active one; the exit status is 0 if all agree on it, and 1 otherwise."""
    headers = {"Authorization": f"Bearer {Path(token_file).read_text().strip()}"}
    tls = HTTPSHandler(context=ssl.create_default_context(cafile=ca_file))
    states = {url: ask_state(url, headers, tls) for url in urls}
    active = [url for url, (named, _) in states.items() if named == url]
    if len(active) != 1 or any(named != active[0] for named, _ in states.values()):
        sys.exit("; ".join(f"{url} {said}" for url, (_, said) in states.items()))
    print(active[0])


main(*sys.argv[1:])
