"""The certificate with which the daemons of a cluster show their pages over HTTPS, and the stores that Java reads."""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from hadoop.local.files.own_files import write_own

_LIFE = timedelta(days=3650)
_AUTHORITIES_OF_SYSTEM = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pki/tls/certs/ca-bundle.crt"))
"""Where Linux distributions keep in one file what their machines trust."""
_TRUST_PASSWORD = "changeit"  # noqa: S105  # Java wants one; what is in the store is public


class Certificates:
    """Those in a folder, for daemons that listen on `addresses`."""

    def __init__(self, folder: Path, addresses: Sequence[str]) -> None:
        self._folder = folder
        self._addresses = addresses

    @property
    def certificate(self) -> Path:
        """What a reader of this cluster's pages trusts."""
        return self._folder / "certificate.pem"

    @property
    def authorities(self) -> Path:
        """For SSL_CERT_FILE: what this machine trusts, and this cluster."""
        return self._folder / "authorities.pem"

    def values(self) -> dict[str, object]:
        """The templates' variables of the stores."""
        return {
            "hadoop_key_store": self._folder / "key.p12",
            "hadoop_key_store_password": (self._folder / "password").read_text(encoding="ascii"),
            "hadoop_trust_store": self._folder / "trust.p12",
            "hadoop_trust_store_password": _TRUST_PASSWORD,
        }

    def prepare(self) -> None:
        """Make them, unless there are some for these addresses."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (self.certificate.exists() and set(self._addresses) <= _addresses_in(self.certificate)):
            self._make()
        # Not what SSL_CERT_FILE names: in a shell that uses this cluster, that is the file that is made here.
        named = (Path(ssl.get_default_verify_paths().openssl_cafile), *_AUTHORITIES_OF_SYSTEM)
        known = next((file.read_bytes() for file in named if file.is_file()), b"")
        write_own(self.authorities, known + self.certificate.read_bytes())

    def _make(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        made = _sign(key, self._addresses)
        password = secrets.token_hex(16)
        encryption = serialization.BestAvailableEncryption(password.encode())
        store = pkcs12.serialize_key_and_certificates(b"nodewise", key, made, None, encryption)
        encryption = serialization.BestAvailableEncryption(_TRUST_PASSWORD.encode())
        trust = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(made, b"nodewise")], encryption)
        for name, content in (("key.p12", store), ("password", password.encode()), ("trust.p12", trust)):
            write_own(self._folder / name, content)
        # Last, since it tells that all are there.
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))


def _addresses_in(file: Path) -> set[str]:
    found = x509.load_pem_x509_certificate(file.read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(map(str, names.get_values_for_type(x509.IPAddress)))


def _sign(key: ec.EllipticCurvePrivateKey, addresses: Sequence[str]) -> x509.Certificate:
    """Let a key speak for these addresses."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"nodewise cluster {addresses[0]}")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(one)) for one in addresses]), False)
        .sign(key, hashes.SHA256())
    )
